//! Rows of the configuration tables, read into their types. SQLite lets any value into any column, so each cell is checked.

use crate::rows::{
    BgdHostgroupRow, ConfiguredStatus, HostgroupAttributesRow, ReplicationHostgroupRow, ServerRow,
    ServerSslParamsRow, ServersConfig, UserRow,
};
use crate::{proxysql_servers, query_rules};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use wire::SqlError;

/// Whether the rows of every table can be typed.
pub(crate) fn all_rows(conn: &Connection) -> Result<(), SqlError> {
    servers(conn)?;
    users(conn)?;
    query_rules::read(conn)?;
    proxysql_servers::read(conn).map(drop)
}

/// Reads what LOAD MYSQL SERVERS commits.
pub(crate) fn servers(conn: &Connection) -> Result<ServersConfig, SqlError> {
    Ok(ServersConfig {
        servers: table(conn, "mysql_servers", "hostgroup_id, hostname, port", server)?,
        replication: table(conn, "mysql_replication_hostgroups", "writer_hostgroup", replication_hostgroup)?,
        bgd: table(conn, "mysql_aws_rds_bgd_hostgroups", "writer_hostgroup", bgd_hostgroup)?,
        hostgroup_attributes: table(
            conn,
            "mysql_hostgroup_attributes",
            "hostgroup_id",
            HostgroupAttributesRow::read,
        )?,
        ssl_params: table(
            conn,
            "mysql_servers_ssl_params",
            "hostname, port, username",
            ServerSslParamsRow::read,
        )?,
    })
}

/// Reads mysql_users.
pub(crate) fn users(conn: &Connection) -> Result<Vec<UserRow>, SqlError> {
    table(conn, "mysql_users", "username, backend", user)
}

/// Reads the rows of one user.
pub(crate) fn users_named(conn: &Connection, name: &str) -> Result<Vec<UserRow>, SqlError> {
    let rows = table(conn, "mysql_users", "username, backend", |cells| {
        // Rows of others may be what they like.
        let own = cells.text("username").is_ok_and(|username| username == name);
        if own { user(cells).map(Some) } else { Ok(None) }
    })?;
    Ok(rows.into_iter().flatten().collect())
}

/// Reads names and values of the variables whose names begin with `prefix`.
pub(crate) fn variables(conn: &Connection, prefix: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut rows = table(conn, "global_variables", "variable_name", |cells| {
        let name = cells.text("variable_name")?;
        // Any variable may be a credential: a value that is no text is refused without being shown.
        let value = cells.text("variable_value").map_err(|_| {
            let text =
                format!("global_variables.variable_value: the value of {name} (not shown) is not text");
            SqlError::new(1366, "HY000", text)
        })?;
        Ok((name, value))
    })?;
    rows.retain(|(name, _)| name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix)));
    Ok(rows)
}

/// Reads a table of `main`, typed, in the order of its key.
pub(crate) fn table<T>(
    conn: &Connection,
    table: &'static str,
    key: &'static str,
    typed: impl Fn(&Cells<'_>) -> Result<T, SqlError>,
) -> Result<Vec<T>, SqlError> {
    let sqlite = |error: rusqlite::Error| crate::error::from_sqlite(&error);
    let mut statement =
        conn.prepare(&format!("SELECT * FROM main.{table} ORDER BY {key}")).map_err(sqlite)?;
    let mut cursor = statement.query([]).map_err(sqlite)?;
    let mut rows = Vec::new();
    while let Some(row) = cursor.next().map_err(sqlite)? {
        rows.push(typed(&Cells { table, key, row })?);
    }
    Ok(rows)
}

fn server(cells: &Cells<'_>) -> Result<ServerRow, SqlError> {
    Ok(ServerRow {
        hostgroup_id: cells.number("hostgroup_id")?,
        hostname: cells.hostname("hostname")?,
        port: cells.number("port")?,
        gtid_port: cells.number("gtid_port")?,
        status: cells.status("status")?,
        weight: cells.number("weight")?,
        compression: cells.flag("compression")?,
        max_connections: cells.number("max_connections")?,
        max_replication_lag: cells.number("max_replication_lag")?,
        use_ssl: cells.flag("use_ssl")?,
        max_latency_ms: cells.number("max_latency_ms")?,
        comment: cells.text("comment")?,
    })
}

fn replication_hostgroup(cells: &Cells<'_>) -> Result<ReplicationHostgroupRow, SqlError> {
    Ok(ReplicationHostgroupRow {
        writer_hostgroup: cells.number("writer_hostgroup")?,
        reader_hostgroup: cells.number("reader_hostgroup")?,
        check_type: cells.text("check_type")?.to_ascii_lowercase(),
        comment: cells.text("comment")?,
    })
}

fn bgd_hostgroup(cells: &Cells<'_>) -> Result<BgdHostgroupRow, SqlError> {
    Ok(BgdHostgroupRow {
        writer_hostgroup: cells.number("writer_hostgroup")?,
        reader_hostgroup: cells.number("reader_hostgroup")?,
        green_writer_hostgroup: Some(cells.number("green_writer_hostgroup")?),
        green_reader_hostgroup: Some(cells.number("green_reader_hostgroup")?),
        active: cells.flag("active")?,
        writer_is_also_reader: cells.flag("writer_is_also_reader")?,
        check_interval_ms: cells.number("check_interval_ms")?,
        check_timeout_ms: cells.number("check_timeout_ms")?,
        comment: cells.text("comment")?,
    })
}

fn user(cells: &Cells<'_>) -> Result<UserRow, SqlError> {
    Ok(UserRow {
        username: cells.text("username")?,
        password: cells.secret("password")?.unwrap_or_default(),
        active: cells.flag("active")?,
        use_ssl: cells.flag("use_ssl")?,
        default_hostgroup: cells.number("default_hostgroup")?,
        default_schema: cells.optional_text("default_schema")?.filter(|schema| !schema.is_empty()),
        schema_locked: cells.flag("schema_locked")?,
        transaction_persistent: cells.flag("transaction_persistent")?,
        fast_forward: cells.flag("fast_forward")?,
        backend: cells.flag("backend")?,
        frontend: cells.flag("frontend")?,
        max_connections: cells.number("max_connections")?,
        attributes: cells.text("attributes")?,
        comment: cells.text("comment")?,
    })
}

/// One row, its cells asked for by column and type.
pub(crate) struct Cells<'a> {
    table: &'static str,
    /// The columns of its key, separated by commas.
    key: &'static str,
    row: &'a Row<'a>,
}

impl Cells<'_> {
    fn value(&self, column: &str) -> Result<ValueRef<'_>, SqlError> {
        self.row.get_ref(column).map_err(|error| crate::error::from_sqlite(&error))
    }

    pub(crate) fn number<T: TryFrom<i64>>(&self, column: &str) -> Result<T, SqlError> {
        match self.value(column)? {
            ValueRef::Integer(number) => T::try_from(number)
                .map_err(|_| self.refuse(column, ValueRef::Integer(number), "out of range")),
            other => Err(self.refuse(column, other, "not an integer")),
        }
    }

    pub(crate) fn flag(&self, column: &str) -> Result<bool, SqlError> {
        match self.value(column)? {
            ValueRef::Integer(0) => Ok(false),
            ValueRef::Integer(1) => Ok(true),
            other => Err(self.refuse(column, other, "not 0 or 1")),
        }
    }

    pub(crate) fn optional_number<T: TryFrom<i64>>(&self, column: &str) -> Result<Option<T>, SqlError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            _ => self.number(column).map(Some),
        }
    }

    /// As `optional_number`, where a negative number means the same as NULL: not set.
    pub(crate) fn number_if_set<T: TryFrom<i64>>(&self, column: &str) -> Result<Option<T>, SqlError> {
        match self.value(column)? {
            ValueRef::Integer(..0) => Ok(None),
            _ => self.optional_number(column),
        }
    }

    pub(crate) fn optional_flag(&self, column: &str) -> Result<Option<bool>, SqlError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            _ => self.flag(column).map(Some),
        }
    }

    pub(crate) fn optional_text(&self, column: &str) -> Result<Option<String>, SqlError> {
        let value = self.value(column)?;
        match (value, value.as_str_or_null()) {
            (ValueRef::Text(_) | ValueRef::Null, Ok(text)) => Ok(text.map(str::to_owned)),
            _ => Err(self.refuse(column, value, "not text")),
        }
    }

    pub(crate) fn text(&self, column: &str) -> Result<String, SqlError> {
        let text = self.optional_text(column)?;
        text.ok_or_else(|| self.refuse(column, ValueRef::Null, "not text"))
    }

    pub(crate) fn hostname(&self, column: &str) -> Result<String, SqlError> {
        let text = self.text(column)?;
        match text.trim() {
            name if name.is_empty() || name.contains(char::is_control) => {
                Err(self.refuse(column, self.value(column)?, "not a host name"))
            }
            name => Ok(name.to_owned()),
        }
    }

    /// As `optional_text`, for values that no error may show. UNHEX(...) makes a BLOB of a hash.
    fn secret(&self, column: &str) -> Result<Option<String>, SqlError> {
        if let ValueRef::Blob(bytes) = self.value(column)?
            && let Ok(text) = str::from_utf8(bytes)
        {
            return Ok(Some(text.to_owned()));
        }
        self.optional_text(column).map_err(|_| {
            SqlError::new(1366, "HY000", format!("{}: the value (not shown) is not text", self.place(column)))
        })
    }

    fn status(&self, column: &str) -> Result<ConfiguredStatus, SqlError> {
        match self.text(column)?.to_ascii_uppercase().as_str() {
            "ONLINE" => Ok(ConfiguredStatus::Online),
            "SHUNNED" => Ok(ConfiguredStatus::Shunned),
            "OFFLINE_SOFT" => Ok(ConfiguredStatus::OfflineSoft),
            "OFFLINE_HARD" => Ok(ConfiguredStatus::OfflineHard),
            _ => Err(self.refuse(column, self.value(column)?, "not a status")),
        }
    }

    fn refuse(&self, column: &str, value: ValueRef<'_>, why: &str) -> SqlError {
        let (place, shown) = (self.place(column), show(value));
        SqlError::new(1366, "HY000", format!("{place}: {shown} is {why}"))
    }

    /// Table, key and column, such as `mysql_users (username='u', backend=1).password`.
    fn place(&self, column: &str) -> String {
        let part = |name: &str| Some(format!("{name}={}", show(self.value(name).ok()?)));
        let key: Vec<String> = self.key.split(", ").filter_map(part).collect();
        format!("{} ({}).{column}", self.table, key.join(", "))
    }
}

/// A value as errors show it.
fn show(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => format!("{number:?}"),
        ValueRef::Text(bytes) => format!("'{}'", shorten(bytes)),
        ValueRef::Blob(bytes) => format!("a BLOB of {} bytes", bytes.len()),
    }
}

fn shorten(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(64).collect()
}
