//! Words that mean something to a judgement: verbs, and what may follow them.

use crate::session::hold::Reason;

/// What a statement does, as far as its first word tells.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum Verb {
    #[default]
    None,
    Stateless,
    /// INSERT and REPLACE.
    Insert,
    /// CREATE, DROP and ALTER: some of their objects are state.
    Definition,
    Flush,
    Unlock,
    Xa,
    Use,
    Set,
    /// MariaDB's SET STATEMENT ... FOR: variables have a value for one statement.
    SetStatement,
}

/// The verb that a statement begins with, and why the connection is kept for it.
pub fn verb(word: &[u8]) -> (Verb, Option<Reason>) {
    match word {
        b"SELECT" | b"UPDATE" | b"DELETE" | b"WITH" | b"TABLE" | b"VALUES" | b"SHOW" | b"EXPLAIN"
        | b"DESCRIBE" | b"DESC" | b"ANALYZE" | b"OPTIMIZE" | b"CHECK" | b"REPAIR" | b"CHECKSUM"
        | b"RENAME" | b"TRUNCATE" | b"GRANT" | b"REVOKE" | b"DO" | b"BEGIN" | b"START" | b"COMMIT"
        | b"ROLLBACK" | b"SAVEPOINT" | b"RELEASE" | b"LOAD" | b"KILL" | b"HELP" | b"GET" => {
            (Verb::Stateless, None)
        }
        b"INSERT" | b"REPLACE" => (Verb::Insert, None),
        b"CREATE" | b"DROP" | b"ALTER" => (Verb::Definition, None),
        b"USE" => (Verb::Use, None),
        b"SET" => (Verb::Set, None),
        b"FLUSH" => (Verb::Flush, None),
        b"UNLOCK" => (Verb::Unlock, None),
        b"XA" => (Verb::Xa, None),
        b"LOCK" => (Verb::Stateless, Some(Reason::TableLock)),
        b"PREPARE" | b"EXECUTE" | b"DEALLOCATE" => (Verb::Stateless, Some(Reason::PreparedText)),
        b"CALL" => (Verb::Stateless, Some(Reason::Procedure)),
        _ => (Verb::Stateless, Some(Reason::State)),
    }
}

/// The longest verb: DEALLOCATE.
pub const LONGEST_VERB: usize = 10;

/// Words that mean something after the verb, the usual ones first.
const MEANINGFUL: [&[u8]; 42] = [
    b"FROM",
    b"SET",
    b"INTO",
    b"SELECT",
    b"TABLE",
    b"VALUE",
    b"LAST_INSERT_ID",
    b"RETURNING",
    b"UPDATE",
    b"START",
    b"STATEMENT",
    b"BEGIN",
    b"COMMIT",
    b"ROLLBACK",
    b"LOCK",
    b"EXPORT",
    b"INSTANCE",
    b"TEMPORARY",
    b"TEMP",
    b"RELEASE",
    b"DATABASE",
    b"SCHEMA",
    b"GET_LOCK",
    b"RELEASE_ALL_LOCKS",
    b"RECURSIVE",
    b"NEXTVAL",
    b"LASTVAL",
    b"KILL",
    b"WARNINGS",
    b"ERRORS",
    b"WARNING_COUNT",
    b"ERROR_COUNT",
    b"DIAGNOSTICS",
    b"ROW_COUNT",
    b"FOUND_ROWS",
    b"SQL_CALC_FOUND_ROWS",
    b"IDENTITY",
    b"TABLES",
    b"VERSION",
    b"VERSION_COMMENT",
    b"CONNECTION_ID",
    b"USER",
];

/// For each letter of the alphabet the lengths, as bits, of the meaningful words that begin with it. Nearly every other word
/// is told from them by this.
const LENGTHS: [u32; 32] = {
    let mut lengths = [0; 32];
    let mut at = 0;
    while at < MEANINGFUL.len() {
        let word = MEANINGFUL[at];
        lengths[(word[0] & 31) as usize] |= 1 << word.len();
        at += 1;
    }
    lengths
};

/// The meaningful word that this one is in any case, or nothing.
pub fn meaning(word: &[u8]) -> &'static [u8] {
    let first = word.first().map_or(0, |letter| letter & 31);
    let lengths = LENGTHS.get(usize::from(first)).copied().unwrap_or_default();
    if word.len() >= 32 || lengths & 1 << word.len() == 0 {
        return b"";
    }
    MEANINGFUL.iter().find(|known| known.eq_ignore_ascii_case(word)).copied().unwrap_or_default()
}

/// A word in upper case, or nothing for one that is longer than any verb.
pub fn upper<'b>(word: &[u8], buffer: &'b mut [u8; LONGEST_VERB]) -> &'b [u8] {
    let Some(buffer) = buffer.get_mut(..word.len()) else { return b"" };
    buffer.copy_from_slice(word);
    buffer.make_ascii_uppercase();
    buffer
}
