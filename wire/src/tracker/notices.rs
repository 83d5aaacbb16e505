//! Which changes of its session a client is told of: what the server would tell it, had we not asked for more.

use super::changes::{Changes, Entries, Entry, Kind, Pairs};
use crate::WireError;
use crate::packet::{Fields, put_lenenc_int};

/// The values of the session_track_* variables, as an answer is filtered by them (MySQL manual, "Server Tracking of Client
/// Session State"). GTIDs and what this crate does not know pass always.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notices {
    variables: Variables,
    schema: bool,
    state_change: bool,
    transaction: Transaction,
    own: Own,
    /// The flag of a change stands in EOF packets, too, which have no data.
    pub(super) flags_eof: bool,
    /// A transaction is in progress that a statement has begun, not one that an access to a table has.
    pub(super) begun: bool,
}

/// Which of the variables the client has set itself: what they control passes as the server sends it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Own {
    variables: bool,
    schema: bool,
    state_change: bool,
    transaction: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Variables {
    All,
    Listed(Vec<String>),
}

/// How the state of a transaction begins that a statement has begun.
const BEGUN: u8 = b'T';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transaction {
    Off,
    /// Only that a statement has begun a transaction, and the end of that.
    Begun,
    State,
    Characteristics,
}

impl Notices {
    /// From the values as `SELECT @@session_track_...` shows them: `1` or `ON` is on.
    pub fn new(system_variables: &str, schema: &str, state_change: &str, transaction_info: &str) -> Self {
        let on = |value: &str| value == "1" || value.eq_ignore_ascii_case("ON");
        let names = || system_variables.split(',').map(str::trim).filter(|name| !name.is_empty());
        let variables = match names().any(|name| name == "*") {
            true => Variables::All,
            false => Variables::Listed(names().map(str::to_owned).collect()),
        };
        let transaction = match transaction_info {
            info if info.eq_ignore_ascii_case("STATE") => Transaction::State,
            info if info.eq_ignore_ascii_case("CHARACTERISTICS") => Transaction::Characteristics,
            _ => Transaction::Off,
        };
        Self {
            variables,
            schema: on(schema),
            state_change: on(state_change),
            transaction,
            own: Own::default(),
            flags_eof: true,
            begun: false,
        }
    }
    /// As MySQL understands the values: where session_track_transaction_info is OFF it still reports transactions that a
    /// statement begins. Unlike MariaDB it flags no EOF.
    pub fn of_mysql(mut self) -> Self {
        self.flags_eof = false;
        if self.transaction == Transaction::Off {
            self.transaction = Transaction::Begun;
        }
        self
    }
    /// Takes note of what an answer said of the transaction.
    pub fn follow(&mut self, changes: &Changes) {
        if let Some(state) = &changes.transaction_state {
            self.begun = state.as_bytes().first() == Some(&BEGUN);
        }
    }
    /// The client has set a session_track_* variable itself: from here on the server goes by its value.
    pub fn set_by_client(&mut self, variable: &str) {
        let own = &mut self.own;
        match variable {
            "session_track_system_variables" => own.variables = true,
            "session_track_schema" => own.schema = true,
            "session_track_state_change" => own.state_change = true,
            "session_track_transaction_info" => own.transaction = true,
            _ => {}
        }
    }
    /// The session is a new one, which has set nothing yet.
    pub fn reset(&mut self) {
        self.own = Own::default();
        self.begun = false;
    }
    /// `begun`: what the field of this name is at this entry.
    fn admits(&self, entry: &Entry<'_>, begun: &mut bool) -> bool {
        match entry.kind {
            Kind::Variables | Kind::Gtids | Kind::Unknown => true,
            Kind::Schema => self.schema || self.own.schema,
            Kind::State => self.state_change || self.own.state_change,
            Kind::Characteristics => self.transaction == Transaction::Characteristics || self.own.transaction,
            Kind::Transaction => {
                // After the text's length.
                let before = std::mem::replace(begun, entry.data.get(1) == Some(&BEGUN));
                match self.transaction {
                    _ if self.own.transaction => true,
                    Transaction::Off => false,
                    Transaction::Begun => before != *begun,
                    Transaction::State | Transaction::Characteristics => true,
                }
            }
        }
    }
    fn admits_variable(&self, name: &[u8]) -> bool {
        match &self.variables {
            _ if self.own.variables => true,
            Variables::All => true,
            Variables::Listed(names) => names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name)),
        }
    }
    /// Calls `take` with each piece of session-track data that is admitted. An entry of several variables is cut into
    /// entries of one each. `begun` is what the field of this name is before them, and after them. True if nothing was left
    /// out.
    fn for_each(
        &self,
        data: &[u8],
        begun: &mut bool,
        mut take: impl FnMut(Piece<'_>),
    ) -> Result<bool, WireError> {
        let mut all = true;
        for entry in Entries(Fields::new(data)) {
            let entry = entry?;
            if entry.kind != Kind::Variables {
                match self.admits(&entry, begun) {
                    true => take(Piece::Entry(entry.whole)),
                    false => all = false,
                }
                continue;
            }
            for pair in Pairs(Fields::new(entry.data)) {
                let (name, _, whole) = pair?;
                match self.admits_variable(name) {
                    true => take(Piece::Variable(whole)),
                    false => all = false,
                }
            }
        }
        Ok(all)
    }
    /// How much of session-track data is admitted.
    pub(super) fn admitted(&self, data: &[u8], begun: &mut bool) -> Result<Admitted, WireError> {
        let (before, mut length) = (*begun, 0);
        let all = self.for_each(data, begun, |piece| length += piece.length())?;
        let restarted = before && *begun && self.transaction == Transaction::Begun && restarts(data)?;
        Ok(match length {
            _ if all => Admitted::All,
            0 if !restarted => Admitted::Nothing,
            length => Admitted::Part(length),
        })
    }
    /// Appends what is admitted of session-track data.
    pub(super) fn put_admitted(
        &self,
        out: &mut Vec<u8>,
        data: &[u8],
        mut begun: bool,
    ) -> Result<(), WireError> {
        self.for_each(data, &mut begun, |piece| piece.put(out)).map(drop)
    }
}

/// How much of some session-track data passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    All,
    /// So many bytes. It may be none, and still there was a change: a statement that ends a transaction and begins another
    /// (COMMIT AND CHAIN, BEGIN in a transaction) is reported by MySQL with empty data where
    /// session_track_transaction_info is OFF.
    Part(u64),
    Nothing,
}

/// Whether a statement has begun a transaction: its characteristics are reported, and not as those of none.
fn restarts(data: &[u8]) -> Result<bool, WireError> {
    for entry in Entries(Fields::new(data)) {
        let entry = entry?;
        if entry.kind == Kind::Characteristics {
            return Ok(entry.data.first() != Some(&0));
        }
    }
    Ok(false)
}

/// A part of session-track data that passes.
enum Piece<'a> {
    /// An entry, complete.
    Entry(&'a [u8]),
    /// A variable's name and value, still without the type and length that make it an entry.
    Variable(&'a [u8]),
}

impl Piece<'_> {
    fn length(&self) -> u64 {
        match self {
            Piece::Entry(bytes) => bytes.len() as u64,
            Piece::Variable(bytes) => {
                let length = bytes.len() as u64;
                let width = match length {
                    0..=0xFA => 1,
                    0xFB..=0xFFFF => 3,
                    0x1_0000..=0xFF_FFFF => 4,
                    _ => 9,
                };
                1 + width + length
            }
        }
    }
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Piece::Entry(bytes) => out.extend_from_slice(bytes),
            Piece::Variable(bytes) => {
                out.push(0);
                put_lenenc_int(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// BEGIN with everything tracked on MySQL 9.7, SET time_zone and USE before it.
    const ALL: &[u8] = b"\x00\x11\ttime_zone\x06+01:00\x00\x10\x0cstatement_id\x0224\x01\x04\x03app\x02\x011\
                         \x05\t\x08T_______\x04\x13\x12START TRANSACTION;";

    fn admitted(notices: &Notices, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        notices.put_admitted(&mut out, data, false).unwrap();
        match notices.admitted(data, &mut false).unwrap() {
            Admitted::All => assert_eq!(out, data),
            Admitted::Part(length) => assert_eq!(length, out.len() as u64),
            Admitted::Nothing => assert!(out.is_empty()),
        }
        out
    }

    #[test]
    fn what_the_variables_ask_for_is_admitted() {
        let everything = Notices::new("*", "ON", "1", "CHARACTERISTICS");
        assert_eq!(admitted(&everything, ALL), ALL);
        let usual = Notices::new("autocommit, Time_Zone", "1", "0", "OFF");
        assert_eq!(admitted(&usual, ALL), b"\x00\x11\ttime_zone\x06+01:00\x01\x04\x03app");
        let state = Notices::new("", "OFF", "ON", "STATE");
        assert_eq!(admitted(&state, ALL), b"\x02\x011\x05\t\x08T_______");
        assert!(admitted(&Notices::new("", "0", "0", "OFF"), ALL).is_empty());
    }

    #[test]
    fn of_several_variables_in_one_entry_the_admitted_ones_are_kept() {
        let notices = Notices::new("time_zone", "0", "0", "OFF");
        let data = b"\x00\x1b\x08sql_mode\x00\ttime_zone\x06+01:00";
        assert_eq!(admitted(&notices, data), b"\x00\x11\ttime_zone\x06+01:00");
    }

    #[test]
    fn gtids_and_unknown_entries_pass() {
        let data = b"\x03\x05\x00\x03a:7\x2A\x02xy";
        assert_eq!(admitted(&Notices::new("", "0", "0", "OFF"), data), data);
    }

    #[test]
    fn what_the_client_has_set_is_left_to_the_server() {
        let mut notices = Notices::new("", "0", "0", "OFF");
        notices.set_by_client("session_track_schema");
        assert_eq!(admitted(&notices, ALL), b"\x01\x04\x03app");
        for variable in ["system_variables", "state_change", "transaction_info"] {
            notices.set_by_client(&format!("session_track_{variable}"));
        }
        assert_eq!(admitted(&notices, ALL), ALL);
        notices.reset();
        assert!(admitted(&notices, ALL).is_empty());
    }

    proptest! {
        #[test]
        fn wild_data_never_panic(data in prop::collection::vec(any::<u8>(), 0..64)) {
            let notices = Notices::new("a,b", "1", "0", "STATE");
            let mut out = Vec::new();
            let put = notices.put_admitted(&mut out, &data, false);
            prop_assert_eq!(put.is_ok(), notices.admitted(&data, &mut false).is_ok());
        }
    }
}
