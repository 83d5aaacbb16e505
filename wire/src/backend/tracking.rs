//! Having the server report what changes in a session (MySQL manual, "Server Tracking of Client Session State"; MariaDB has
//! it from 10.2 on).

use super::exchange::Request;
use super::{Backend, TextResult};
use crate::{CapabilityFlags, Command, WireError};
use std::time::Instant;

/// What a server reports to a session that did not ask for more: the defaults of its session_track_* variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackDefaults {
    /// session_track_system_variables: names, separated by commas, or `*`.
    pub variables: String,
    /// session_track_schema.
    pub schema: bool,
    /// session_track_state_change.
    pub state_change: bool,
    /// session_track_transaction_info: OFF, STATE or CHARACTERISTICS.
    pub transaction_info: String,
}

const DEFAULTS: &str = "SELECT @@session_track_system_variables, @@session_track_schema, \
                        @@session_track_state_change, @@session_track_transaction_info";
/// Most bytes of an answer to the set-up.
const LIMIT: usize = 64 << 10;

impl Backend {
    /// Whether the server is a MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.server_version.contains("MariaDB")
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
        let answers = self.exchange(&requests, LIMIT, deadline)?;
        if let [Ok(defaults), Ok(_)] = answers.as_slice() {
            self.tracking = TrackDefaults::read(defaults);
        }
        Ok(())
    }
}

impl TrackDefaults {
    fn read(result: &TextResult) -> Option<Self> {
        let [row] = result.rows.as_slice() else { return None };
        let mut texts = row
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned());
        Some(Self {
            variables: texts.next()?,
            schema: texts.next()? == "1",
            state_change: texts.next()? == "1",
            transaction_info: texts.next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_read_from_their_row() {
        let row = ["time_zone,autocommit", "1", "0", "OFF"].map(|text| Some(text.as_bytes().to_vec()));
        let result = TextResult { columns: Vec::new(), rows: vec![row.to_vec()] };
        let expected = TrackDefaults {
            variables: "time_zone,autocommit".to_owned(),
            schema: true,
            state_change: false,
            transaction_info: "OFF".to_owned(),
        };
        assert_eq!(TrackDefaults::read(&result), Some(expected));
        assert_eq!(TrackDefaults::read(&TextResult::default()), None);
    }
}
