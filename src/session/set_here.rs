//! SET statements while no server can be had: what every server is certain to accept is answered here, and set on the connection
//! that the session gets next. So a client whose driver begins with SET NAMES need not wait before it has asked for anything.
//! ProxySQL answers SET NAMES and SET autocommit itself at all times; here the server does wherever there is one, since it alone
//! knows what it accepts and reports.

use super::classify::Effect;
use super::local::Answer;
use super::settings::{Assignment, Setting};
use super::state::{Session, Step};
use super::unseen::Complaints;
use std::sync::Arc;
use wire::StatusFlags;
use wire::version::{is_mariadb, is_mysql_8};

/// What SET NAMES takes on every server, without a warning.
const NAMES: [&str; 8] = [
    "ascii",
    "binary",
    "latin1",
    "utf8mb4",
    "utf8mb4 COLLATE utf8mb4_bin",
    "utf8mb4 COLLATE utf8mb4_general_ci",
    "utf8mb4 COLLATE utf8mb4_unicode_520_ci",
    "utf8mb4 COLLATE utf8mb4_unicode_ci",
];
/// The same where the server is not a MySQL 8, which warns of the name.
const NAME_OF_OLD: &str = "utf8";
/// The same where it is one.
const NAME_OF_NEW: &str = "utf8mb4 COLLATE utf8mb4_0900_ai_ci";

/// Variables that are on or off and that everybody may set, without a warning.
const SWITCHES: [&str; 4] = ["autocommit", "foreign_key_checks", "sql_auto_is_null", "unique_checks"];

/// Longest wait_timeout that servers take, in seconds.
const LONGEST_WAIT: u32 = 31_536_000;

/// Whether a server accepts a statement that assigns this, and says no more than OK to it. `version`: that of a server of the
/// session's, if it is known.
fn is_certain(setting: &Setting, version: impl Fn() -> Option<String>) -> bool {
    !setting.assignments.is_empty()
        && setting.assignments.iter().all(|assignment| match assignment {
            Assignment::Names(text) => match text.as_str() {
                NAME_OF_OLD => version().is_some_and(|version| is_mariadb(&version) || is_older(&version)),
                NAME_OF_NEW => version().is_some_and(|version| is_mysql_8(&version)),
                text => NAMES.contains(&text),
            },
            Assignment::Variable(name, Some(value)) => match name.as_str() {
                "wait_timeout" => value.parse().is_ok_and(|seconds| (1..=LONGEST_WAIT).contains(&seconds)),
                "time_zone" => is_offset(value),
                name => SWITCHES.contains(&name) && matches!(value.as_str(), "'ON'" | "'OFF'"),
            },
            Assignment::Transaction(level) => level.is_some(),
            _ => false,
        })
}

fn is_older(version: &str) -> bool {
    version.starts_with("5.")
}

/// A time zone as `'+05:30'`, within what every server takes.
fn is_offset(literal: &str) -> bool {
    let [b'\'', b'+' | b'-', h1 @ b'0'..=b'9', h2 @ b'0'..=b'9', b':', b'0'..=b'5', b'0'..=b'9', b'\''] =
        literal.as_bytes()
    else {
        return false;
    };
    matches!((h1, h2), (b'0', _) | (b'1', b'0'..=b'2'))
}

impl Session<'_> {
    /// Whether a statement with this effect need not wait for a server.
    pub(super) fn needs_no_server(&self, effect: &Effect) -> bool {
        let Effect::Set(setting) = effect else { return false };
        let version = || self.shared.backends.known_version(self.hostgroup);
        self.parked.is_none() && is_certain(setting, version)
    }
    /// Has the session's next connection carry what a statement sets.
    pub(super) fn set_here(&mut self, setting: &Setting) -> Step {
        self.shared.registry.counters.note_setting(setting);
        for assignment in &setting.assignments {
            if let Assignment::Variable(name, Some(value)) = assignment
                && name == "autocommit"
            {
                self.status.set(StatusFlags::SERVER_STATUS_AUTOCOMMIT, value == "'ON'");
            }
        }
        // Autocommit that is to be on, too: the server may be one on which it is off.
        setting.apply(Arc::make_mut(&mut self.want.profile));
        if !self.is_mariadb() {
            self.unseen = Some(Complaints::Gone);
        }
        self.count_here();
        Step::Answer(Answer::Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quoting::Quoting;

    #[test]
    fn what_every_server_accepts_is_certain() {
        let certain = |sql: &str, version: Option<&str>| {
            let setting = Setting::parse(sql.as_bytes(), Quoting::default()).unwrap();
            is_certain(&setting, || version.map(str::to_owned))
        };
        for sql in [
            "SET NAMES utf8mb4",
            "set names 'utf8mb4' collate 'utf8mb4_unicode_ci'",
            "SET AUTOCOMMIT = 0",
            "SET SESSION wait_timeout=28800, @@session.time_zone = '+00:00', foreign_key_checks=1",
            "SET time_zone='-12:59'",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        ] {
            assert!(certain(sql, None), "{sql}");
        }
        for sql in [
            "SET NAMES klingon",
            "SET NAMES utf8mb4 COLLATE latin1_bin",
            "SET NAMES DEFAULT",
            "SET CHARACTER SET utf8mb4",
            "SET autocommit=2",
            "SET autocommit=DEFAULT",
            "SET autocommit=0, sql_mode='ANSI'",
            "SET wait_timeout=0",
            "SET wait_timeout=31536001",
            "SET time_zone='Europe/Berlin'",
            "SET time_zone='+13:00'",
            "SET time_zone='+1:00'",
            "SET TRANSACTION READ ONLY",
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION TRANSACTION READ ONLY",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
            "SET GLOBAL wait_timeout=100",
        ] {
            assert!(!certain(sql, Some("9.7.0")), "{sql}");
        }
        let (new, old, mariadb) = (Some("8.4.3"), Some("5.7.44"), Some("5.5.5-10.11.14-MariaDB"));
        for (sql, known) in [
            ("SET NAMES utf8", [false, false, true, true]),
            ("SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci", [false, true, false, false]),
        ] {
            assert_eq!([None, new, old, mariadb].map(|version| certain(sql, version)), known, "{sql}");
        }
    }
}
