//! The answers to simple questions for the version and for the connection's id. Who answers `SELECT VERSION()` is
//! mysql-select_version_forwarding's to say.

use super::asked::{Asked, asked};
use super::local::Answer;
use super::processlist;
use super::state::Session;
use super::wording::Wording;
use mysql_common::collations::{Collation, CollationId};
use wire::reply::{BINARY, Column, Description};
use wire::version::is_mariadb;
use wire::{ColumnFlags, ColumnType};

impl Session<'_> {
    /// The answer to a statement that asks for nothing else, unless it is the server's.
    pub(super) fn answer_asked(&mut self, sql: &[u8]) -> Option<Answer> {
        let (what, name) = asked(sql)?;
        match what {
            Asked::ConnectionId => {
                let (kind, length) = match self.is_mariadb() {
                    true => (ColumnType::MYSQL_TYPE_LONG, 10),
                    false => (ColumnType::MYSQL_TYPE_LONGLONG, 21),
                };
                let flags =
                    ColumnFlags::NOT_NULL_FLAG | ColumnFlags::UNSIGNED_FLAG | ColumnFlags::BINARY_FLAG;
                let description = Description { collation: BINARY, length, flags, decimals: 0 };
                Some(Answer::Row(Column::expression(name, kind, description), self.id.to_string()))
            }
            Asked::Version | Asked::VersionVariable => {
                let pooled = self.servers_version();
                let variables = self.shared.config.variables();
                let forwarding = variables.select_version_forwarding;
                let version = known_version(forwarding, &variables.server_version, pooled.as_deref())?;
                let description = self.want.profile.results_collation().and_then(|collation| {
                    describe(what == Asked::VersionVariable, version, pooled.as_deref()?, collation)
                });
                let column = match description {
                    Some(description) => {
                        Column::expression(name, ColumnType::MYSQL_TYPE_VAR_STRING, description)
                    }
                    None if forwarding == DESCRIBED_BY_SERVER => return None,
                    None => Column::text(name),
                };
                Some(Answer::Row(column, version.to_owned()))
            }
        }
    }
    /// The version of the server at hand, or that a pooled connection of the hostgroup knows.
    fn servers_version(&mut self) -> Option<String> {
        match &mut self.lease {
            Some(lease) => Some(lease.backend().server_version.clone()),
            None => self.shared.backends.known_version(self.hostgroup),
        }
    }
    /// Whether answers of our own are to be MariaDB's: as the session's last connection tells, or another. Where none does,
    /// mysql-server_version does.
    pub(super) fn is_mariadb(&mut self) -> bool {
        if let Some(lease) = &mut self.lease {
            self.had_mariadb = Some(lease.backend().is_mariadb());
        }
        if let Some(mariadb) = self.had_mariadb {
            return mariadb;
        }
        let of_variable = || is_mariadb(&self.shared.config.variables().server_version);
        self.servers_version().map_or_else(of_variable, |version| is_mariadb(&version))
    }
    /// The version of the session's server, or else what clients are told.
    pub(super) fn version_at_hand(&mut self) -> String {
        self.servers_version().unwrap_or_else(|| self.shared.config.variables().server_version.clone())
    }
    /// The words of errors of our own.
    pub(super) fn wording(&mut self) -> Wording {
        if self.is_mariadb() { Wording::MariaDb } else { Wording::MySql }
    }
    /// The text of COM_STATISTICS.
    pub(super) fn statistics(&mut self) -> String {
        processlist::statistics(&self.shared.registry, self.shared.uptime(), self.is_mariadb())
    }
}

/// The value of mysql-select_version_forwarding with which the answer is as the server's in all.
const DESCRIBED_BY_SERVER: u32 = 3;
/// Length of @@version in characters, in MySQL 9.
const VARIABLE_LENGTH: u32 = 21_845;
/// Decimals of texts.
const MYSQL_TEXT: u8 = 31;
const MARIADB_TEXT: u8 = 39;

/// How the server with the version `pooled` describes the column of `version` to a session that has logged in with a collation;
/// `None` where that is not known.
fn describe(variable: bool, version: &str, pooled: &str, collation: u16) -> Option<Description> {
    let mariadb = is_mariadb(pooled);
    let server = pooled.strip_prefix(GREETING_ONLY).unwrap_or(pooled);
    let major: u32 = server.split('.').next()?.parse().ok()?;
    // From 11 on MariaDB may take another collation than that of the login.
    let known = match (mariadb, variable) {
        (true, _) => major == 10,
        (false, true) => major >= 9,
        (false, false) => true,
    };
    // MySQL 8.0 has added 255.
    let has_collation = collation != u16::from(u8::MAX) || !mariadb && major >= 8;
    let resolved = Collation::resolve(CollationId::from(collation));
    // No client talks in these, whatever it says at its login.
    let is_spoken = !matches!(resolved.charset(), "ucs2" | "utf16" | "utf16le" | "utf32");
    if !known || !has_collation || !is_spoken || resolved.id() == CollationId::UNKNOWN_COLLATION_ID {
        return None;
    }
    let characters = match variable && !mariadb {
        true => VARIABLE_LENGTH,
        false => u32::try_from(version.chars().count()).ok()?,
    };
    Some(Description {
        collation,
        length: characters.saturating_mul(resolved.max_len().into()),
        flags: if variable { ColumnFlags::empty() } else { ColumnFlags::NOT_NULL_FLAG },
        decimals: if mariadb { MARIADB_TEXT } else { MYSQL_TEXT },
    })
}

/// What MariaDB up to 10.11 puts before its version in the greeting, and nowhere else, for old replicas.
const GREETING_ONLY: &str = "5.5.5-";

/// The version to answer with; `None` if the server is to be asked. `forwarding` is 0: the proxy answers; 1: the server; 2: the
/// known version of a pooled connection, else the proxy; 3: the same, else the server. `own` is mysql-server_version, `pooled`
/// what the hostgroup's servers said when a connection to them was opened.
fn known_version<'a>(forwarding: u32, own: &'a str, pooled: Option<&'a str>) -> Option<&'a str> {
    match (forwarding, pooled) {
        (0, _) | (2, None) => Some(own),
        (2 | DESCRIBED_BY_SERVER, Some(version)) => {
            Some(version.strip_prefix(GREETING_ONLY).unwrap_or(version))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_is_described_as_the_server_does_or_not_at_all() {
        let maria = "5.5.5-10.11.19-MariaDB";
        for (variable, pooled, collation, expected) in [
            (false, "9.7.4-2", 255, Some((28, 1, 31))),
            (true, "9.7.4-2", 45, Some((87_380, 0, 31))),
            (true, "9.7.4-2", 33, Some((65_535, 0, 31))),
            (false, "5.7.44", 8, Some((7, 1, 31))),
            (true, "8.0.36", 8, None),
            (false, "5.7.44", 255, None),
            (false, maria, 45, Some((28, 1, 39))),
            (true, maria, 8, Some((7, 0, 39))),
            (false, maria, 255, None),
            (false, "11.4.2-MariaDB", 45, None),
            (false, "9.7.4-2", 54, None),
            (false, "9.7.4-2", 0, None),
            (false, "unknown", 45, None),
        ] {
            let expected = expected.map(|(length, flags, decimals)| Description {
                collation,
                length,
                flags: ColumnFlags::from_bits_truncate(flags),
                decimals,
            });
            assert_eq!(describe(variable, "9.7.4-2", pooled, collation), expected, "{pooled} {collation}");
        }
    }

    #[test]
    fn each_value_has_its_source_with_and_without_a_pooled_connection() {
        for (forwarding, without, with) in [
            (0, Some("own"), Some("own")),
            (1, None, None),
            (2, Some("own"), Some("pooled")),
            (3, None, Some("pooled")),
        ] {
            assert_eq!(known_version(forwarding, "own", None), without, "{forwarding}");
            assert_eq!(known_version(forwarding, "own", Some("5.5.5-pooled")), with, "{forwarding}");
        }
    }
}
