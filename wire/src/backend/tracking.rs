//! Having the server report what changes in a session (MySQL manual, "Server Tracking of Client Session State"; MariaDB has
//! it from 10.2 on).

use super::exchange::Request;
use super::{Backend, OWN_ANSWER, TextResult};
use crate::tracker::Notices;
use crate::{CapabilityFlags, Command, SqlMode, WireError};
use std::time::Instant;

const DEFAULTS: &str = "SELECT @@session_track_system_variables, @@session_track_schema, \
                        @@session_track_state_change, @@session_track_transaction_info, @@sql_mode, @@autocommit";
/// Asks what is noted of a new session.
pub const NEW_SESSION: &str = "SELECT @@sql_mode, @@autocommit";

impl Backend {
    /// Whether the server is a MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.mariadb
    }
    /// The statement that has the server report everything about a session. MySQL is given the `variables` by name: with `*` it
    /// would add the id of the statement to every answer. MariaDB takes no name that it does not know, and has no such id.
    pub fn tracking_statement(&self, variables: &str) -> String {
        let variables = if self.is_mariadb() { "*" } else { variables };
        format!(
            "SET session_track_system_variables='{variables}', session_track_schema=ON, \
             session_track_state_change=ON, session_track_transaction_info='CHARACTERISTICS'"
        )
    }
    /// Takes note of the last two values of an answer: what sql_mode a new session has, and whether autocommit.
    pub fn note_new_session(&mut self, answer: &TextResult) {
        if let Some([.., Some(sql_mode), Some(autocommit)]) = answer.rows.first().map(Vec::as_slice) {
            self.sql_mode = SqlMode::read(&String::from_utf8_lossy(sql_mode));
            self.autocommits = autocommit != b"0";
        }
    }
    /// Asks a server that can for reports on the schema, on `variables` (names, separated by commas), on other state and on
    /// transactions, and reads what it reports by default, in one round trip. A server that cannot has
    /// [`Backend::tracking`] left empty.
    pub fn track(&mut self, variables: &str, deadline: Instant) -> Result<(), WireError> {
        if !self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK) {
            return Ok(());
        }
        let set = self.tracking_statement(variables);
        let requests: [Request<'_>; 2] =
            [(Command::COM_QUERY, DEFAULTS.as_bytes()), (Command::COM_QUERY, set.as_bytes())];
        let answers = self.exchange(&requests, OWN_ANSWER, deadline)?;
        if let [Ok(defaults), Ok(_)] = answers.as_slice() {
            let notices = read_defaults(defaults);
            self.note_new_session(defaults);
            self.tracking = if self.is_mariadb() { notices } else { notices.map(Notices::of_mysql) };
        }
        Ok(())
    }
}

/// What the server reports to a session that did not ask for more.
fn read_defaults(result: &TextResult) -> Option<Notices> {
    let [row] = result.rows.as_slice() else { return None };
    let text =
        |value: &Option<Vec<u8>>| String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned();
    let [variables, schema, state_change, transaction_info, ..] = row.as_slice() else { return None };
    Some(Notices::new(&text(variables), &text(schema), &text(state_change), &text(transaction_info)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_read_from_their_row() {
        let row =
            ["time_zone,autocommit", "1", "0", "OFF", "ANSI", "1"].map(|text| Some(text.as_bytes().to_vec()));
        let result = TextResult { rows: vec![row.to_vec()], ..TextResult::default() };
        let expected = Notices::new("time_zone,autocommit", "ON", "OFF", "OFF");
        assert_eq!(read_defaults(&result), Some(expected));
        assert_eq!(read_defaults(&TextResult::default()), None);
    }
}
