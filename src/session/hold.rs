//! Why a session keeps the connection in its hands instead of giving it back after each statement.

use std::fmt::{self, Display};

/// One reason to keep a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// An XA transaction was begun and neither committed nor rolled back.
    Xa,
    /// SET TRANSACTION, which is for the next transaction alone.
    NextTransaction,
    /// SAVEPOINT without autocommit, before anything has begun a transaction: no status flag tells of it.
    Savepoint,
    /// User variables.
    UserVariable,
    /// Temporary tables.
    TemporaryTable,
    /// LOCK TABLES, FLUSH TABLES WITH READ LOCK and the like.
    TableLock,
    /// GET_LOCK().
    NamedLock,
    /// PREPARE: a statement that has a name.
    PreparedText,
    /// A session variable that cannot be set again elsewhere.
    Variable,
    /// The session changed what its server tracks.
    SessionTrack,
    /// A stored procedure, which may leave anything.
    Procedure,
    /// Rows of a cursor are still to be fetched.
    Cursor,
    /// Parameters sent in pieces, before their statement is executed.
    LongData,
    /// A function that the server does not have itself, which may have set user variables. They are worth the connection, but not an
    /// error where it is lost.
    StoredFunction,
    /// Something else that lives and dies with the connection, or may.
    State,
    /// mysql-multiplexing is off.
    MultiplexingOff,
    /// The user's fast_forward.
    FastForward,
}

use Reason::*;

/// Every reason, in the order of its number, and what the process list says of it.
const TEXTS: [(Reason, &str); 17] = [
    (Xa, "XA transaction"),
    (NextTransaction, "SET TRANSACTION"),
    (Savepoint, "savepoint"),
    (UserVariable, "user variables"),
    (TemporaryTable, "temporary table"),
    (TableLock, "table lock"),
    (NamedLock, "GET_LOCK"),
    (PreparedText, "PREPARE"),
    (Variable, "unrestorable variable"),
    (SessionTrack, "session_track variable"),
    (Procedure, "stored procedure"),
    (Cursor, "open cursor"),
    (LongData, "long data"),
    (StoredFunction, "stored function"),
    (State, "session state"),
    (MultiplexingOff, "multiplexing off"),
    (FastForward, "fast_forward"),
];

/// A set of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reasons(u32);

impl Reasons {
    /// One alone.
    fn of(reason: Reason) -> Self {
        Self(1 << reason as u8)
    }
    /// Adds one.
    pub fn add(&mut self, reason: Reason) {
        self.0 |= Self::of(reason).0;
    }
    /// Takes one away.
    pub fn remove(&mut self, reason: Reason) {
        self.0 &= !Self::of(reason).0;
    }
    /// Whether one is among them.
    pub fn contains(self, reason: Reason) -> bool {
        self.0 & Self::of(reason).0 != 0
    }
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Whether something is left on the connection that must not be lost with it, and that another session would find: it is reset
    /// before one gets it.
    pub fn leave_something(self) -> bool {
        let mut left = self;
        left.remove(MultiplexingOff);
        left.remove(StoredFunction);
        !left.is_empty()
    }
}

/// Most ids that are remembered of statements that may have named theirs.
const MOST_REPORTED: usize = 64;

/// What the connection in hand means to the session, apart from what the status flags say.
#[derive(Default)]
pub struct Hold {
    /// Why it is kept until the session ends, or the reason does.
    pub reasons: Reasons,
    /// The variable that [`Reason::Variable`] means.
    pub variable: Option<String>,
    /// The next statement may read what the last one left.
    pub linger: bool,
    /// LAST_INSERT_ID() on the connection is this session's, not what an earlier one left. By itself it holds nothing.
    pub own_insert_id: bool,
    /// A statement has reported an id that LAST_INSERT_ID() is, or else it is what an earlier session left: an id that an INSERT names
    /// is reported like one that the server made. The session's own before that statement.
    pub unproven_insert_id: Option<u64>,
    /// Warnings and errors on the connection are this session's, likewise.
    pub own_diagnostics: bool,
    /// There are some.
    pub complaint: bool,
    /// How many, as far as their answer has told.
    pub warnings: u16,
    /// SQLSTATE of the error among them.
    pub error_state: Option<[u8; 5]>,
    /// Words among which are the variables that SET STATEMENT had set and the server has set back, which MariaDB reports with the next
    /// change.
    pub set_back: Option<String>,
    /// LAST_INSERT_ID() on the connection may be another than the session knows.
    pub unknown_insert_id: bool,
    /// The last id that was reported may be one that its statement named.
    pub named_insert_id: bool,
    /// Ids reported before that one, since `unproven_insert_id`, of which the same may be true.
    pub reported_insert_ids: Vec<u64>,
    /// An error has left open whether the transaction goes on: it tells no status.
    pub in_doubt: bool,
    /// The last statement was interrupted, perhaps with the whole connection: nobody else is to find out.
    pub interrupted: bool,
}

impl Hold {
    /// Becomes what `other` tells, without allocating unless a variable is new.
    pub fn follow(&mut self, other: &Hold) {
        (self.reasons, self.linger) = (other.reasons, other.linger);
        if self.variable != other.variable {
            self.variable.clone_from(&other.variable);
        }
    }
    /// Notes that a statement has made LAST_INSERT_ID() what no answer tells.
    pub fn note_unknown_insert_id(&mut self) {
        self.own_insert_id = true;
        self.unknown_insert_id = true;
        self.unproven_insert_id = None;
        self.named_insert_id = false;
    }
    /// Notes that a statement has reported an id, which it may have named; `before`: the session's own until then.
    pub fn note_reported(&mut self, before: u64, named: bool) {
        if !named {
            self.reported_insert_ids.clear();
        } else if self.unproven_insert_id.is_some() {
            if self.reported_insert_ids.len() >= MOST_REPORTED {
                self.reported_insert_ids.remove(0);
            }
            self.reported_insert_ids.push(before);
        }
        self.unproven_insert_id.get_or_insert(before);
    }
    /// Keeps the connection for a reason.
    pub fn add(&mut self, reason: Reason) {
        self.reasons.add(reason);
    }
    /// Whether there is one reason, and nothing of the last statement to be read, or yet to be found out.
    pub fn is_only(&self, reason: Reason) -> bool {
        let Self { reasons, linger, complaint, in_doubt, interrupted, ref set_back, .. } = *self;
        let open = linger || complaint || in_doubt || interrupted || set_back.is_some();
        reasons == Reasons::of(reason) && !open
    }
    /// Keeps it for a variable that cannot be set again elsewhere.
    pub fn add_variable(&mut self, name: &str) {
        self.add(Variable);
        self.variable.get_or_insert_with(|| name.to_owned());
    }
}

impl Display for Hold {
    /// The reasons, separated by commas; nothing if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (reason, text) in TEXTS.iter().filter(|(reason, _)| self.reasons.contains(*reason)) {
            write!(f, "{separator}{text}")?;
            if let (Variable, Some(name)) = (reason, &self.variable) {
                write!(f, " {name}")?;
            }
            separator = ", ";
        }
        if self.linger {
            write!(f, "{separator}last answer may be read")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_and_go_and_are_told() {
        let mut hold = Hold::default();
        assert_eq!(hold.to_string(), "");
        hold.add(NamedLock);
        hold.add_variable("timestamp");
        hold.add_variable("insert_id");
        assert_eq!(hold.to_string(), "GET_LOCK, unrestorable variable timestamp");
        hold.reasons.remove(NamedLock);
        assert!(hold.reasons.contains(Variable) && !hold.reasons.contains(NamedLock));
        hold.linger = true;
        assert_eq!(hold.to_string(), "unrestorable variable timestamp, last answer may be read");
    }

    #[test]
    fn every_reason_has_its_own_text() {
        for (number, (reason, _)) in TEXTS.iter().enumerate() {
            assert_eq!(*reason as usize, number);
        }
    }

    #[test]
    fn a_connection_kept_by_configuration_or_a_function_alone_has_nothing_left_on_it() {
        let mut reasons = Reasons::default();
        reasons.add(MultiplexingOff);
        reasons.add(StoredFunction);
        assert!(!reasons.is_empty() && !reasons.leave_something());
        reasons.add(UserVariable);
        assert!(reasons.leave_something());
    }
}
