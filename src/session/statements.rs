//! The prepared statements that a session has open, under the ids that its client knows. What a server calls them is the
//! matter of each connection.

use super::classify::Statement;
use super::route::Routed;
use crate::pool::StatementText;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::SqlError;
use wire::statement::{Execute, LAST_PREPARED};

/// Most statements of one session: MySQL's default of max_prepared_stmt_count, which is for a whole server.
const MOST: usize = 16_382;

/// A statement that a client has prepared and not closed.
pub struct Open {
    /// What it says.
    pub text: Arc<StatementText>,
    /// What running it does to the session.
    pub statement: Statement,
    /// Where running it goes.
    pub routed: Routed,
    /// How many parameters the client was told of.
    pub parameters: u16,
    /// Types of the parameters as the client sent them last, two bytes each.
    pub types: Vec<u8>,
    /// Parameters have been sent in pieces.
    pub long_data: bool,
    /// Rows are still to be fetched.
    pub cursor: bool,
    /// What went wrong with a command that has no answer; told in the answer to the next execution.
    pub failed: Option<SqlError>,
}

impl Open {
    /// A statement that was prepared just now.
    pub fn new(text: Arc<StatementText>, statement: Statement, routed: Routed, parameters: u16) -> Self {
        Self {
            text,
            statement,
            routed,
            parameters,
            types: Vec::new(),
            long_data: false,
            cursor: false,
            failed: None,
        }
    }
    /// Takes note of the types that an execution brings. False if the client has never sent any.
    pub fn learn_types(&mut self, front: &Execute<'_>) -> bool {
        if front.has_types() && !front.types().flatten().eq(self.types.iter().copied()) {
            self.types = front.types().flatten().collect();
        }
        self.types.len() == usize::from(self.parameters) * 2
    }
    /// Whether something of it is underway on the connection that the session holds.
    pub fn is_busy(&self) -> bool {
        self.long_data || self.cursor
    }
}

/// A session's open statements.
#[derive(Default)]
pub struct Statements {
    open: BTreeMap<u32, Open>,
    last: u32,
}

impl Statements {
    /// The id for the next statement: ids go up as a server's do, whether preparing succeeds or not.
    pub fn next_id(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if !matches!(self.last, 0 | LAST_PREPARED) && !self.open.contains_key(&self.last) {
                return self.last;
            }
        }
    }
    /// The id that was given last.
    pub fn last(&self) -> u32 {
        self.last
    }
    /// Whether there are as many as there may be.
    pub fn is_full(&self) -> bool {
        self.open.len() >= MOST
    }
    /// Adds one.
    pub fn insert(&mut self, id: u32, open: Open) {
        self.open.insert(id, open);
    }
    /// One of them.
    pub fn get(&mut self, id: u32) -> Option<&mut Open> {
        self.open.get_mut(&id)
    }
    /// The text of an open statement.
    pub fn text(&self, id: u32) -> Option<&[u8]> {
        self.open.get(&id).map(|open| open.text.sql())
    }
    /// Takes one away.
    pub fn remove(&mut self, id: u32) -> Option<Open> {
        self.open.remove(&id)
    }
    /// Forgets all.
    pub fn clear(&mut self) {
        self.open.clear();
    }
    /// Whether parameters in pieces, and whether rows, are underway for any.
    pub fn underway(&self) -> (bool, bool) {
        let any = |what: fn(&Open) -> bool| self.open.values().any(what);
        (any(|open| open.long_data), any(|open| open.cursor))
    }
}

/// Error 1461, as a server that has no room for another statement.
pub fn too_many() -> SqlError {
    let text = format!("Can't create more than max_prepared_stmt_count statements (current value: {MOST})");
    SqlError::new(1461, "42000", text)
}

/// Error 1615: the text has other parameters than when the client prepared it.
pub fn changed() -> SqlError {
    SqlError::new(1615, "HY000", "Prepared statement needs to be re-prepared")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{Profile, StatementTexts};

    fn open(parameters: u16) -> Open {
        let text = StatementTexts::default().get(b"SELECT ?", &Profile::login(None, 45));
        Open::new(text, Statement::default(), Routed::default(), parameters)
    }

    #[test]
    fn ids_are_never_given_twice() {
        let mut statements = Statements { last: u32::MAX - 2, ..Statements::default() };
        statements.insert(1, open(0));
        assert_eq!([(); 3].map(|()| statements.next_id()), [u32::MAX - 1, 2, 3]);
        assert_eq!(statements.last(), 3);
    }

    #[test]
    fn types_are_kept_until_others_come() {
        let mut open = open(1);
        let mut execute = |rest: &[u8]| {
            let payload = [b"\x17\x01\0\0\0\0\x01\0\0\0", rest].concat();
            let known = open.learn_types(&Execute::parse(&payload, 1, false).unwrap());
            (known, open.types.clone())
        };
        assert_eq!(execute(b"\0\0\x01x"), (false, vec![]));
        assert_eq!(execute(b"\0\x01\xFD\0\x01x"), (true, vec![0xFD, 0]));
        assert_eq!(execute(b"\0\0\x01y"), (true, vec![0xFD, 0]));
        assert_eq!(execute(b"\0\x01\x01\x80\x01"), (true, vec![1, 0x80]));
    }

    #[test]
    fn what_is_underway_is_known() {
        let mut statements = Statements::default();
        statements.insert(1, open(1));
        statements.insert(2, Open { cursor: true, ..open(1) });
        assert_eq!(statements.underway(), (false, true));
        statements.get(1).unwrap().long_data = true;
        statements.remove(2);
        assert_eq!(statements.underway(), (true, false));
        statements.clear();
        assert_eq!(statements.underway(), (false, false));
    }
}
