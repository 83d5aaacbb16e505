//! What an OK packet says of changes in the session: its session-track data (MySQL protocol, OK_Packet, "Session State
//! Information"; MariaDB's form is the same, but may have several variables in one entry).

use crate::WireError;
use crate::packet::Fields;
use std::ops::Deref;

/// Changes in a session that a server reported, in the order in which they came. A server reports only what it was asked to
/// (the session_track_* variables). Nearly every answer reports none, which costs no memory.
#[derive(Debug, Clone, Default)]
pub struct SessionChanges(Option<Box<Changes>>);

/// What has changed in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The default schema; empty for none. It is also reported where it stays as it was.
    pub schema: Option<String>,
    /// System variables that were set, with their values as text; a later entry overrides an earlier one. MySQL's
    /// `statement_id`, which is a new one in each answer and cannot be set, is left out.
    pub variables: Vec<(String, String)>,
    /// Something of the session has changed, be it one of the above or what has no name here: a user variable, a temporary
    /// table, a prepared statement.
    pub state_changed: bool,
    /// The state of the transaction, eight characters such as `T_______` (MySQL manual, "Server Tracking of Client Session
    /// State", session_track_transaction_info).
    pub transaction_state: Option<String>,
    /// Statements that would start the transaction in progress, or set what the next one will be; empty for none.
    pub transaction_characteristics: Option<String>,
    /// Identifiers of the transactions that were committed.
    pub gtids: Option<String>,
}

impl Deref for SessionChanges {
    type Target = Changes;

    fn deref(&self) -> &Changes {
        self.0.as_deref().unwrap_or(const { &Changes::NONE })
    }
}

impl PartialEq for SessionChanges {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SessionChanges {}

impl SessionChanges {
    /// Takes up one OK packet's session-track data.
    #[cold]
    pub(super) fn add(&mut self, data: &[u8]) -> Result<(), WireError> {
        for entry in Entries(Fields::new(data)) {
            self.0.get_or_insert_with(|| Box::new(Changes::NONE)).add(&entry?)?;
        }
        Ok(())
    }
}

impl Changes {
    const NONE: Self = Self {
        schema: None,
        variables: Vec::new(),
        state_changed: false,
        transaction_state: None,
        transaction_characteristics: None,
        gtids: None,
    };

    fn add(&mut self, entry: &Entry<'_>) -> Result<(), WireError> {
        let mut fields = Fields::new(entry.data);
        match entry.kind {
            Kind::Variables => {
                for pair in Pairs(fields) {
                    let (name, value, _) = pair?;
                    if name != STATEMENT_ID {
                        self.variables.push((text(name), text(value)));
                    }
                }
            }
            Kind::Schema => self.schema = Some(text(fields.lenenc_bytes()?)),
            // The data are a text: "1".
            Kind::State => self.state_changed = true,
            Kind::Gtids => {
                let _encoding = fields.u8()?;
                self.gtids = Some(text(fields.lenenc_bytes()?));
            }
            Kind::Characteristics => self.transaction_characteristics = Some(text(fields.lenenc_bytes()?)),
            Kind::Transaction => self.transaction_state = Some(text(fields.lenenc_bytes()?)),
            Kind::Unknown => {}
        }
        Ok(())
    }
}

/// Reported with every statement where all variables are tracked (MySQL 8.0.20 and later).
const STATEMENT_ID: &[u8] = b"statement_id";

/// Names and values are texts in the connection's own character set or in UTF-8.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What an entry is about (MySQL source, enum enum_session_state_type).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Variables,
    Schema,
    State,
    Gtids,
    Characteristics,
    Transaction,
    Unknown,
}

impl Kind {
    fn of(byte: u8) -> Self {
        match byte {
            0 => Self::Variables,
            1 => Self::Schema,
            2 => Self::State,
            3 => Self::Gtids,
            4 => Self::Characteristics,
            5 => Self::Transaction,
            _ => Self::Unknown,
        }
    }
}

/// One entry of session-track data.
pub(super) struct Entry<'a> {
    pub(super) kind: Kind,
    /// What follows its type and length.
    pub(super) data: &'a [u8],
    /// All of it.
    pub(super) whole: &'a [u8],
}

/// The entries of session-track data; ends after an error.
pub(super) struct Entries<'a>(pub(super) Fields<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_item(&mut self.0, |fields| {
            let kind = Kind::of(fields.u8()?);
            Ok((kind, fields.lenenc_bytes()?))
        })
        .map(|item| item.map(|((kind, data), whole)| Entry { kind, data, whole }))
    }
}

/// The variables of one entry: name, value, and all bytes of both; ends after an error.
pub(super) struct Pairs<'a>(pub(super) Fields<'a>);

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<(&'a [u8], &'a [u8], &'a [u8]), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_item(&mut self.0, |fields| Ok((fields.lenenc_bytes()?, fields.lenenc_bytes()?)))
            .map(|item| item.map(|((name, value), whole)| (name, value, whole)))
    }
}

/// One more item of a list, with its bytes; `None` at the end of the list or after an error.
fn next_item<'a, T>(
    fields: &mut Fields<'a>,
    read: impl FnOnce(&mut Fields<'a>) -> Result<T, WireError>,
) -> Option<Result<(T, &'a [u8]), WireError>> {
    if fields.is_empty() {
        return None;
    }
    let before = fields.remaining();
    let item = read(fields).map(|item| {
        let length = before.len() - fields.remaining().len();
        (item, before.get(..length).unwrap_or_default())
    });
    if item.is_err() {
        fields.rest();
    }
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(data: &[u8]) -> SessionChanges {
        let mut changes = SessionChanges::default();
        changes.add(data).unwrap();
        changes
    }
    fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn variables_come_one_by_one_from_mysql() {
        // SET NAMES latin1 on MySQL 9.7 with session_track_system_variables='*'.
        let data = b"\x00\x1c\x14character_set_client\x06latin1\x00 \x18character_set_connection\x06latin1\
                     \x00\x1d\x15character_set_results\x06latin1\x00\x10\x0cstatement_id\x0221\x02\x011";
        let names = ["character_set_client", "character_set_connection", "character_set_results"];
        let changes = changes(data);
        assert_eq!(changes.variables, variables(&names.map(|name| (name, "latin1"))));
        assert!(changes.state_changed && changes.schema.is_none());
    }

    #[test]
    fn variables_may_share_an_entry_as_mariadb_allows() {
        let changes = changes(b"\x00\x1b\x08sql_mode\x00\ttime_zone\x06+01:00\x01\x04\x03app\x02\x011");
        assert_eq!(changes.variables, variables(&[("sql_mode", ""), ("time_zone", "+01:00")]));
        assert_eq!(changes.schema.as_deref(), Some("app"));
    }

    #[test]
    fn transactions_and_gtids_are_told() {
        // START TRANSACTION READ ONLY, and CREATE TABLE with session_track_gtids, on MySQL 9.7.
        let started = changes(b"\x05\t\x08T_______\x04\x1d\x1cSTART TRANSACTION READ ONLY;");
        assert_eq!(started.transaction_state.as_deref(), Some("T_______"));
        assert_eq!(started.transaction_characteristics.as_deref(), Some("START TRANSACTION READ ONLY;"));
        let committed =
            changes(b"\x03(\x00&d699756a-ec8a-11f1-9845-02fc00000001:7\x05\t\x08________\x04\x01\x00");
        assert_eq!(committed.gtids.as_deref(), Some("d699756a-ec8a-11f1-9845-02fc00000001:7"));
        assert_eq!(committed.transaction_characteristics.as_deref(), Some(""));
        assert!(!committed.state_changed);
    }

    #[test]
    fn unknown_entries_are_skipped_and_cut_ones_refused() {
        let known = changes(b"\x2A\x03abc\x01\x04\x03app");
        assert_eq!(known.schema.as_deref(), Some("app"));
        for cut in
            [&b"\x01"[..], b"\x01\x04\x03ap", b"\x01\x02\x03a", b"\x00\x03\x02ab", b"\x03\x00", b"\x00\xFF"]
        {
            assert!(SessionChanges::default().add(cut).is_err(), "{cut:?}");
        }
    }
}
