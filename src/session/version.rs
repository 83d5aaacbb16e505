//! The answers to simple questions for the version and for the connection's id. Who answers `SELECT VERSION()` is
//! mysql-select_version_forwarding's to say.

use super::asked::{Asked, asked};
use super::local::Answer;
use super::processlist;
use super::state::Session;
use super::wording::Wording;
use wire::ColumnType;
use wire::reply::Column;
use wire::version::is_mariadb;

impl Session<'_> {
    /// The answer to a statement that asks for nothing else, unless it is the server's.
    pub(super) fn answer_asked(&mut self, sql: &[u8]) -> Option<Answer> {
        let (what, name) = asked(sql)?;
        match what {
            Asked::ConnectionId => {
                let column = Column::new(name, ColumnType::MYSQL_TYPE_LONGLONG);
                Some(Answer::Row(column, self.id.to_string()))
            }
            Asked::Version => {
                let pooled = self.servers_version();
                let variables = self.shared.config.variables();
                let forwarding = variables.select_version_forwarding;
                let version = known_version(forwarding, &variables.server_version, pooled.as_deref())?;
                Some(Answer::Row(Column::text(name), version.to_owned()))
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
    /// The words of errors of our own.
    pub(super) fn wording(&mut self) -> Wording {
        if self.is_mariadb() { Wording::MariaDb } else { Wording::MySql }
    }
    /// The text of COM_STATISTICS.
    pub(super) fn statistics(&mut self) -> String {
        processlist::statistics(&self.shared.registry, self.shared.uptime(), self.is_mariadb())
    }
}

/// What MariaDB up to 10.11 puts before its version in the greeting, and nowhere else, for old replicas.
const GREETING_ONLY: &str = "5.5.5-";

/// The version to answer with; `None` if the server is to be asked. `forwarding` is 0: the proxy answers; 1: the server; 2: the
/// known version of a pooled connection, else the proxy; 3: the same, else the server. `own` is mysql-server_version, `pooled`
/// what the hostgroup's servers said when a connection to them was opened. With 3 either way the version is the server's, and only
/// the server describes its column as it does elsewhere: so it is asked.
fn known_version<'a>(forwarding: u32, own: &'a str, pooled: Option<&'a str>) -> Option<&'a str> {
    match (forwarding, pooled) {
        (0, _) | (2, None) => Some(own),
        (2, Some(version)) => Some(version.strip_prefix(GREETING_ONLY).unwrap_or(version)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_source_with_and_without_a_pooled_connection() {
        for (forwarding, without, with) in [
            (0, Some("own"), Some("own")),
            (1, None, None),
            (2, Some("own"), Some("pooled")),
            (3, None, None),
        ] {
            assert_eq!(known_version(forwarding, "own", None), without, "{forwarding}");
            assert_eq!(known_version(forwarding, "own", Some("5.5.5-pooled")), with, "{forwarding}");
        }
    }
}
