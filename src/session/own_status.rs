//! What SHOW STATUS says of the connection that asks: its TLS and its compression. A server would describe its connection
//! with the proxy instead of the client's.

use super::asked::Text;
use super::local::Answer;
use super::state::Session;
use mysql_common::collations::{Collation, CollationId};
use wire::channel::Channel;
use wire::reply::{Column, Description, Origin, Reply};
use wire::{ColumnFlags, ColumnType, WireError};

/// What is asked: names that begin like this, or this one alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnStatus {
    name: &'static str,
    prefix: bool,
}

/// In the order in which servers list them, and whether nothing else than what is here begins so.
const KNOWN: [(&str, bool); 4] =
    [("Compression", false), ("Ssl_cipher", true), ("Ssl_cipher_list", true), ("Ssl_version", true)];

impl OwnStatus {
    /// Reads `SHOW [SESSION | LOCAL] STATUS LIKE 'name'`, where a `%` may follow the name. Anything else is a server's to
    /// answer.
    pub fn parse(sql: &[u8]) -> Option<Self> {
        let mut text = Text::short(sql)?;
        text.space();
        text.word("SHOW")?;
        text.needed_space()?;
        if text.word("SESSION").or_else(|| text.word("LOCAL")).is_some() {
            text.needed_space()?;
        }
        text.word("STATUS")?;
        text.needed_space()?;
        text.word("LIKE")?;
        text.space();
        let quote = [b"'", b"\""].into_iter().find(|quote| text.take(*quote))?;
        let written = text.identifier();
        let prefix = text.take(b"%");
        let closed = text.take(quote) && text.end_of_statement();
        let (name, alone) =
            KNOWN.into_iter().find(|(name, _)| written.eq_ignore_ascii_case(name.as_bytes()))?;
        (closed && (alone || !prefix)).then_some(Self { name, prefix })
    }
    /// The names of the rows of the answer.
    pub fn found(self) -> impl Iterator<Item = &'static str> {
        let names = KNOWN.into_iter().map(|(name, _)| name);
        names.filter(move |name| *name == self.name || self.prefix && name.starts_with(self.name))
    }
    /// Writes the answer, which is about the channel that it goes to.
    pub fn write(self, columns: &[Column], reply: Reply<'_>) -> Result<(), WireError> {
        let found: Vec<_> = self.found().map(|name| (name, value(name, reply.channel))).collect();
        let mut rows = reply.rows(columns)?;
        for (name, value) in &found {
            rows.row([Some(name.as_bytes()), Some(value.as_bytes())])?;
        }
        rows.finish()
    }
}

impl Session<'_> {
    /// The answer to a question about the client's own connection.
    pub(super) fn answer_own_status(&mut self, sql: &[u8]) -> Option<Answer> {
        let status = OwnStatus::parse(sql)?;
        let mariadb = self.is_mariadb();
        let columns = columns(mariadb, self.want.profile.results_collation());
        Some(Answer::Status(status, Box::new(columns)))
    }
}

/// How a server describes one of the columns of SHOW STATUS.
struct Described {
    name: &'static str,
    origin: Origin,
    /// Its width.
    characters: u32,
    always: bool,
}

const fn described(name: &'static str, origin: Origin, characters: u32, always: bool) -> Described {
    Described { name, origin, characters, always }
}

const fn of_mysql(name: &'static str) -> Origin {
    Origin { schema: "performance_schema", table: "session_status", name }
}

const fn of_mariadb(name: &'static str) -> Origin {
    Origin { schema: "information_schema", table: "SESSION_STATUS", name }
}

static MYSQL: [Described; 2] = [
    described("Variable_name", of_mysql("Variable_name"), 64, true),
    described("Value", of_mysql("Value"), 1_024, false),
];

static MARIADB: [Described; 2] = [
    described("Variable_name", of_mariadb("VARIABLE_NAME"), 64, true),
    described("Value", of_mariadb("VARIABLE_VALUE"), 4_096, true),
];

/// The columns of the answer to a session that has logged in with a collation.
fn columns(mariadb: bool, collation: Option<u16>) -> [Column; 2] {
    let resolved = collation.map(|collation| Collation::resolve(CollationId::from(collation)));
    let resolved = resolved.filter(|resolved| resolved.id() != CollationId::UNKNOWN_COLLATION_ID);
    let column = |described: &'static Described| {
        let Described { name, origin, characters, always } = described;
        let (Some(collation), Some(resolved)) = (collation, &resolved) else { return Column::text(*name) };
        let flags = match always {
            true => ColumnFlags::NOT_NULL_FLAG | ColumnFlags::NO_DEFAULT_VALUE_FLAG,
            false => ColumnFlags::empty(),
        };
        let length = characters * u32::from(resolved.max_len());
        let description = Description { collation, length, flags, decimals: 0 };
        Column::of_table(*name, ColumnType::MYSQL_TYPE_VAR_STRING, description, origin)
    };
    if mariadb { MARIADB.each_ref().map(column) } else { MYSQL.each_ref().map(column) }
}

fn value(name: &str, channel: &Channel) -> &'static str {
    let stream = channel.stream();
    match name {
        "Compression" if channel.is_compressed() => "ON",
        "Compression" => "OFF",
        "Ssl_version" => stream.tls_version().unwrap_or_default(),
        // Of the list of those possible, OpenSSL's binding only tells the one in use.
        _ => stream.cipher().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_the_connection_are_understood() {
        for (sql, name, prefix) in [
            ("SHOW STATUS LIKE 'Ssl_version'", "Ssl_version", false),
            ("SHOW STATUS LIKE 'Ssl_version%';", "Ssl_version", true),
            ("show session status like \"ssl_cipher%\"", "Ssl_cipher", true),
            (" SHOW\tLOCAL STATUS LIKE'ssl_cipher_list' ; ", "Ssl_cipher_list", false),
            ("SHOW STATUS LIKE 'compression'", "Compression", false),
        ] {
            assert_eq!(OwnStatus::parse(sql.as_bytes()), Some(OwnStatus { name, prefix }), "{sql}");
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_characters_are() {
        let (name, value) = ("Variable_name", "Value");
        let described = |origin, collation, length, flags| {
            let flags = ColumnFlags::from_bits_truncate(flags);
            let description = Description { collation, length, flags, decimals: 0 };
            move |name: &str| Column::of_table(name, ColumnType::MYSQL_TYPE_VAR_STRING, description, origin)
        };
        let [of_name, of_value] = &MYSQL;
        let mysql = columns(false, Some(255));
        assert_eq!(mysql[0], described(&of_name.origin, 255, 256, 0x1001)(name));
        assert_eq!(mysql[1], described(&of_value.origin, 255, 4_096, 0)(value));
        let [of_name, of_value] = &MARIADB;
        let mariadb = columns(true, Some(8));
        assert_eq!(mariadb[0], described(&of_name.origin, 8, 64, 0x1001)(name));
        assert_eq!(mariadb[1], described(&of_value.origin, 8, 4_096, 0x1001)(value));
        // Where SET NAMES was said, or something that is no collation.
        for unknown in [None, Some(0)] {
            assert_eq!(columns(false, unknown), [Column::text(name), Column::text(value)]);
        }
    }

    #[test]
    fn anything_else_is_a_servers_to_answer() {
        for sql in [
            "SHOW STATUS",
            "SHOW GLOBAL STATUS LIKE 'Ssl_version'",
            "SHOW STATUS LIKE 'Ssl%'",
            "SHOW STATUS LIKE 'Compression%'",
            "SHOW STATUS LIKE 'Ssl_version' OR 1",
            "SHOW STATUS LIKE 'Ssl_version\"",
            "SHOW STATUS LIKE 'Ssl_version'; SELECT 1",
            "SHOW STATUS LIKE 'Ssl_accepts'",
            "SHOW STATUS LIKE ''",
            "SHOWSTATUS LIKE 'Ssl_version'",
        ] {
            assert_eq!(OwnStatus::parse(sql.as_bytes()), None, "{sql}");
        }
    }
}
