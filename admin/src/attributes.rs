//! mysql_hostgroup_attributes and mysql_servers_ssl_params: rows, typed and shown.

use crate::Value;
use crate::read::Cells;
use serde_json::Value as Json;
use wire::SqlError;

/// A row of mysql_hostgroup_attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostgroupAttributesRow {
    /// hostgroup_id
    pub hostgroup_id: u32,
    /// max_num_online_servers, 0 to 1,000,000
    pub max_num_online_servers: u32,
    /// autocommit; `None` is -1, not set
    pub autocommit: Option<bool>,
    /// free_connections_pct, 0 to 100
    pub free_connections_pct: u32,
    /// init_connect
    pub init_connect: String,
    /// multiplex
    pub multiplex: bool,
    /// connection_warming
    pub connection_warming: bool,
    /// throttle_connections_per_sec, 1 to 1,000,000
    pub throttle_connections_per_sec: u32,
    /// ignore_session_variables: empty or JSON
    pub ignore_session_variables: String,
    /// hostgroup_settings: empty or JSON
    pub hostgroup_settings: String,
    /// servers_defaults: empty or JSON
    pub servers_defaults: String,
    /// comment
    pub comment: String,
}

/// What servers_defaults says of servers that are discovered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServersDefaults {
    /// weight
    pub weight: Option<u32>,
    /// max_connections
    pub max_connections: Option<u32>,
    /// use_ssl
    pub use_ssl: Option<bool>,
}

impl HostgroupAttributesRow {
    /// A row whose other columns have the defaults of mysql_hostgroup_attributes.
    pub fn new(hostgroup_id: u32) -> Self {
        Self {
            hostgroup_id,
            max_num_online_servers: 1_000_000,
            autocommit: None,
            free_connections_pct: 10,
            init_connect: String::new(),
            multiplex: true,
            connection_warming: false,
            throttle_connections_per_sec: 1_000_000,
            ignore_session_variables: String::new(),
            hostgroup_settings: String::new(),
            servers_defaults: String::new(),
            comment: String::new(),
        }
    }

    pub(crate) fn read(cells: &Cells<'_>) -> Result<Self, SqlError> {
        Ok(Self {
            hostgroup_id: cells.number("hostgroup_id")?,
            max_num_online_servers: cells.number("max_num_online_servers")?,
            autocommit: cells.number_if_set::<u32>("autocommit")?.map(|set| set != 0),
            free_connections_pct: cells.number("free_connections_pct")?,
            init_connect: cells.text("init_connect")?,
            multiplex: cells.flag("multiplex")?,
            connection_warming: cells.flag("connection_warming")?,
            throttle_connections_per_sec: cells.number("throttle_connections_per_sec")?,
            ignore_session_variables: cells.text("ignore_session_variables")?,
            hostgroup_settings: cells.text("hostgroup_settings")?,
            servers_defaults: cells.text("servers_defaults")?,
            comment: cells.text("comment")?,
        })
    }

    /// The row as runtime_mysql_hostgroup_attributes shows it.
    pub fn values(&self) -> Vec<Value> {
        vec![
            self.hostgroup_id.into(),
            self.max_num_online_servers.into(),
            self.autocommit.map_or(-1, i64::from).into(),
            self.free_connections_pct.into(),
            self.init_connect.as_str().into(),
            self.multiplex.into(),
            self.connection_warming.into(),
            self.throttle_connections_per_sec.into(),
            self.ignore_session_variables.as_str().into(),
            self.hostgroup_settings.as_str().into(),
            self.servers_defaults.as_str().into(),
            self.comment.as_str().into(),
        ]
    }

    /// The names in ignore_session_variables, in lower case; `None` where it is no JSON array of texts.
    pub fn ignored_session_variables(&self) -> Option<Vec<String>> {
        if self.ignore_session_variables.is_empty() {
            return Some(Vec::new());
        }
        let names: Vec<Json> = serde_json::from_str(&self.ignore_session_variables).ok()?;
        names.iter().map(|name| Some(name.as_str()?.trim().to_ascii_lowercase())).collect()
    }

    /// What servers_defaults says, and a line for each part of it that says nothing here.
    pub fn servers_defaults(&self) -> (ServersDefaults, Vec<String>) {
        let (mut defaults, mut ignored) = (ServersDefaults::default(), Vec::new());
        let mut ignore = |what: String| {
            let id = self.hostgroup_id;
            ignored.push(format!("mysql_hostgroup_attributes: servers_defaults of hostgroup {id}: {what}"));
        };
        if self.servers_defaults.is_empty() {
            return (defaults, ignored);
        }
        let Ok(Json::Object(settings)) = serde_json::from_str(&self.servers_defaults) else {
            ignore("it is no JSON object".into());
            return (defaults, ignored);
        };
        for (key, value) in &settings {
            let limited = |most: u32| {
                let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                number.filter(|number| *number <= most)
            };
            let (known, expected) = match key.as_str() {
                "weight" => {
                    defaults.weight = limited(10_000_000);
                    (defaults.weight.is_some(), "a number from 0 to 10000000")
                }
                "max_connections" => {
                    defaults.max_connections = limited(u32::MAX);
                    (defaults.max_connections.is_some(), "a number from 0 to 4294967295")
                }
                "use_ssl" => {
                    defaults.use_ssl = limited(1).map(|set| set == 1);
                    (defaults.use_ssl.is_some(), "0 or 1")
                }
                _ => {
                    ignore(format!("there is no default named '{}'", key.escape_debug()));
                    continue;
                }
            };
            if !known {
                ignore(format!("{key} must be {expected}"));
            }
        }
        (defaults, ignored)
    }
}

/// A row of mysql_servers_ssl_params: TLS with one server, as one user of it or as any.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are columns, by their names")]
pub struct ServerSslParamsRow {
    /// hostname, trimmed
    pub hostname: String,
    pub port: u16,
    /// Empty for any user.
    pub username: String,
    pub ssl_ca: String,
    pub ssl_cert: String,
    pub ssl_key: String,
    pub ssl_capath: String,
    pub ssl_crl: String,
    pub ssl_crlpath: String,
    pub ssl_cipher: String,
    pub tls_version: String,
    pub comment: String,
}

impl ServerSslParamsRow {
    /// A row whose other columns have the defaults of mysql_servers_ssl_params.
    pub fn new(hostname: impl Into<String>, port: u16) -> Self {
        Self {
            hostname: hostname.into(),
            port,
            username: String::new(),
            ssl_ca: String::new(),
            ssl_cert: String::new(),
            ssl_key: String::new(),
            ssl_capath: String::new(),
            ssl_crl: String::new(),
            ssl_crlpath: String::new(),
            ssl_cipher: String::new(),
            tls_version: String::new(),
            comment: String::new(),
        }
    }

    pub(crate) fn read(cells: &Cells<'_>) -> Result<Self, SqlError> {
        Ok(Self {
            hostname: cells.hostname("hostname")?,
            port: cells.number("port")?,
            username: cells.text("username")?,
            ssl_ca: cells.text("ssl_ca")?,
            ssl_cert: cells.text("ssl_cert")?,
            ssl_key: cells.text("ssl_key")?,
            ssl_capath: cells.text("ssl_capath")?,
            ssl_crl: cells.text("ssl_crl")?,
            ssl_crlpath: cells.text("ssl_crlpath")?,
            ssl_cipher: cells.text("ssl_cipher")?,
            tls_version: cells.text("tls_version")?,
            comment: cells.text("comment")?,
        })
    }

    /// The row as runtime_mysql_servers_ssl_params shows it.
    pub fn values(&self) -> Vec<Value> {
        vec![
            self.hostname.as_str().into(),
            self.port.into(),
            self.username.as_str().into(),
            self.ssl_ca.as_str().into(),
            self.ssl_cert.as_str().into(),
            self.ssl_key.as_str().into(),
            self.ssl_capath.as_str().into(),
            self.ssl_crl.as_str().into(),
            self.ssl_crlpath.as_str().into(),
            self.ssl_cipher.as_str().into(),
            self.tls_version.as_str().into(),
            self.comment.as_str().into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(text: &str) -> (ServersDefaults, Vec<String>) {
        let row = HostgroupAttributesRow { servers_defaults: text.into(), ..HostgroupAttributesRow::new(7) };
        row.servers_defaults()
    }

    #[test]
    fn servers_defaults_are_read_with_blanks_around() {
        let (found, ignored) = defaults(" \n{ \"weight\": 5, \"max_connections\":20, \"use_ssl\" : 1 }\t ");
        let expected = ServersDefaults { weight: Some(5), max_connections: Some(20), use_ssl: Some(true) };
        assert_eq!((found, ignored.len()), (expected, 0));
        let (found, _) = defaults("{\"use_ssl\":0}");
        assert_eq!(found, ServersDefaults { use_ssl: Some(false), ..ServersDefaults::default() });
        assert_eq!(defaults(""), (ServersDefaults::default(), vec![]));
    }

    #[test]
    fn what_says_nothing_is_told_and_the_rest_counts() {
        let (found, ignored) =
            defaults("{\"weight\":10000001,\"max_connections\":9,\"use_ssl\":2,\"colour\":\"red\"}");
        assert_eq!(found, ServersDefaults { max_connections: Some(9), ..ServersDefaults::default() });
        assert_eq!(ignored.len(), 3);
        assert!(ignored.iter().all(|line| line.contains("servers_defaults of hostgroup 7")), "{ignored:?}");
        for wrong in
            ["{", "[1]", "5", "null", "{\"weight\":-1}", "{\"weight\":1.5}", "{\"weight\":\"5\"}", "  "]
        {
            let (found, ignored) = defaults(wrong);
            assert_eq!((found, ignored.len()), (ServersDefaults::default(), 1), "{wrong}");
        }
    }
}
