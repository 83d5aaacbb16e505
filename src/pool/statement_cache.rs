//! Which prepared statements a connection has, and under which ids.

use super::statements::{StatementText, texts_gone};
use std::sync::{Arc, Weak};
use wire::ColumnType;
use wire::tracker::Prepared;

/// Who runs a statement, and with parameters of which types (two bytes each; empty if that is not known).
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The session.
    pub session: u32,
    /// The types.
    pub types: &'a [u8],
}

/// A statement as one connection's server knows it.
struct Entry {
    text: Weak<StatementText>,
    statement: Prepared,
    used: u64,
    busy: bool,
    // Who has run it last. MySQL derives types within the statement from those of its parameters and does not always
    // forget them when others come, so that a session must not meet those of another.
    session: u32,
    types: Vec<u8>,
    mixed: bool,
}

/// The statements that are prepared on one connection.
#[derive(Default)]
pub struct StatementCache {
    entries: Vec<Entry>,
    clock: u64,
    // Ids to be closed in front of the next command.
    closing: Vec<u32>,
    gone_seen: u64,
}

impl StatementCache {
    /// The server's form of a statement, if it has one that is as good as new for the caller; marks it as used.
    pub fn find(&mut self, text: &Arc<StatementText>, caller: Caller<'_>) -> Option<Prepared> {
        self.clock += 1;
        let entry =
            self.entries.iter_mut().find(|entry| entry.is(text)).filter(|entry| entry.suits(caller))?;
        entry.note(caller);
        entry.used = self.clock;
        Some(entry.statement)
    }
    /// Adds a statement that was prepared just now. The one prepared earlier for the same text, and those used longest ago
    /// that are more than `limit`, will be closed, except for busy ones.
    pub fn add(&mut self, text: &Arc<StatementText>, statement: Prepared, caller: Caller<'_>, limit: usize) {
        text.note_shape(&statement);
        self.remove(text);
        while self.entries.len() >= limit.max(1) {
            let idle = self.entries.iter().enumerate().filter(|(_, entry)| !entry.busy);
            let oldest = idle.min_by_key(|(_, entry)| entry.used);
            let Some((at, _)) = oldest else { break };
            self.closing.push(self.entries.swap_remove(at).statement.id);
        }
        self.clock += 1;
        self.entries.push(Entry {
            text: Arc::downgrade(text),
            statement,
            used: self.clock,
            busy: false,
            session: caller.session,
            types: caller.types.to_vec(),
            mixed: false,
        });
    }
    /// Says whether a statement has parameters or rows underway, so that it must not make room for others.
    pub fn set_busy(&mut self, text: &Arc<StatementText>, busy: bool) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.is(text)) {
            entry.busy = busy;
        }
    }
    /// Has a statement closed.
    pub fn remove(&mut self, text: &Arc<StatementText>) {
        if let Some(at) = self.entries.iter().position(|entry| entry.is(text)) {
            self.closing.push(self.entries.swap_remove(at).statement.id);
        }
    }
    /// Ids of statements to be closed, each once: those removed, and those that no session has open any more.
    pub fn take_closing(&mut self) -> impl Iterator<Item = u32> {
        let gone = texts_gone();
        if gone != self.gone_seen {
            self.gone_seen = gone;
            let closed = self.entries.extract_if(.., |entry| entry.text.strong_count() == 0);
            self.closing.extend(closed.map(|entry| entry.statement.id));
        }
        self.closing.drain(..)
    }
    /// Forgets everything: a reset has closed it on the server.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.closing.clear();
    }
}

impl Entry {
    fn is(&self, text: &Arc<StatementText>) -> bool {
        self.text.as_ptr() == Arc::as_ptr(text)
    }
    fn suits(&self, caller: Caller<'_>) -> bool {
        self.session == caller.session
            || !self.mixed && (self.types.is_empty() || agree(&self.types, caller.types))
    }
    fn note(&mut self, caller: Caller<'_>) {
        self.session = caller.session;
        if caller.types.is_empty() || self.types == caller.types {
            return;
        }
        self.mixed |= !self.types.is_empty() && !agree(&self.types, caller.types);
        let earlier = std::mem::replace(&mut self.types, caller.types.to_vec());
        for (kind, earlier) in self.types.chunks_mut(TYPE).zip(earlier.chunks(TYPE)) {
            if kind.first() == Some(&NULL) {
                kind.copy_from_slice(earlier);
            }
        }
    }
}

/// Bytes of a parameter's type, and the first of them in the type of a parameter that is NULL, which tells nothing.
const TYPE: usize = 2;
const NULL: u8 = ColumnType::MYSQL_TYPE_NULL as u8;

/// Whether two executions have parameters of the same types, as far as these are known.
fn agree(one: &[u8], other: &[u8]) -> bool {
    let is_null = |kind: &[u8]| kind.first() == Some(&NULL);
    one.len() == other.len()
        && one.chunks(TYPE).zip(other.chunks(TYPE)).all(|(a, b)| a == b || is_null(a) || is_null(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{Profile, StatementTexts};

    const ONE: Caller<'_> = Caller { session: 1, types: b"" };

    fn statement(id: u32) -> Prepared {
        Prepared { id, parameters: 0, columns: 0 }
    }
    fn closing(cache: &mut StatementCache) -> Vec<u32> {
        cache.take_closing().collect()
    }

    #[test]
    fn the_statement_used_longest_ago_makes_room() {
        let (texts, mut cache) = (StatementTexts::default(), StatementCache::default());
        let open = ["a", "b", "c"].map(|sql| texts.get(sql.as_bytes(), &Profile::login(None, 45)));
        cache.add(&open[0], statement(1), ONE, 2);
        cache.add(&open[1], statement(2), ONE, 2);
        assert_eq!(cache.find(&open[0], ONE), Some(statement(1)));
        cache.add(&open[2], statement(3), ONE, 2);
        assert_eq!(cache.find(&open[1], ONE), None);
        assert_eq!(cache.find(&open[0], ONE), Some(statement(1)));
        assert_eq!(closing(&mut cache), [2]);
        assert!(closing(&mut cache).is_empty());
        // A limit that was lowered meanwhile, and a statement prepared twice.
        cache.add(&open[2], statement(4), ONE, 1);
        let mut closed = closing(&mut cache);
        closed.sort_unstable();
        assert_eq!(closed, [1, 3]);
    }

    #[test]
    fn a_busy_statement_does_not_make_room() {
        let (texts, mut cache) = (StatementTexts::default(), StatementCache::default());
        let open = ["a", "b"].map(|sql| texts.get(sql.as_bytes(), &Profile::login(None, 45)));
        cache.add(&open[0], statement(1), ONE, 1);
        cache.set_busy(&open[0], true);
        cache.add(&open[1], statement(2), ONE, 1);
        assert_eq!((cache.find(&open[0], ONE), closing(&mut cache)), (Some(statement(1)), vec![]));
        cache.set_busy(&open[0], false);
        cache.add(&open[1], statement(3), ONE, 1);
        assert_eq!(closing(&mut cache), [2, 1]);
    }

    #[test]
    fn what_no_session_has_open_is_closed_and_what_a_reset_took_is_not() {
        let (texts, mut cache) = (StatementTexts::default(), StatementCache::default());
        let kept = texts.get(b"kept", &Profile::login(None, 45));
        cache.add(&kept, statement(1), ONE, 9);
        let dropped = texts.get(b"dropped", &Profile::login(None, 45));
        cache.add(&dropped, statement(2), ONE, 9);
        let second = Arc::clone(&dropped);
        drop(dropped);
        assert!(closing(&mut cache).is_empty());
        drop(second);
        assert_eq!(closing(&mut cache), [2]);
        cache.remove(&kept);
        cache.clear();
        assert_eq!((cache.find(&kept, ONE), closing(&mut cache)), (None, vec![]));
    }

    #[test]
    fn a_session_does_not_meet_the_types_of_another() {
        let (texts, mut cache) = (StatementTexts::default(), StatementCache::default());
        let text = texts.get(b"SELECT ?, ?", &Profile::login(None, 45));
        let found = |cache: &mut StatementCache, session, types: &[u8]| {
            cache.find(&text, Caller { session, types }).is_some()
        };
        cache.add(&text, statement(1), Caller { session: 1, types: b"" }, 9);
        assert!(found(&mut cache, 2, b"\x08\0\x06\0"), "nobody has run it yet");
        assert!(found(&mut cache, 1, b"\x06\0\xFD\0"), "NULL has no type");
        assert!(!found(&mut cache, 2, b"\x08\x80\xFD\0"), "unsigned is another type");
        assert!(!found(&mut cache, 2, b""), "unknown types are others");
        assert!(found(&mut cache, 2, b"\x08\0\xFD\0"));
        assert!(found(&mut cache, 2, b"\xFD\0\xFD\0"), "a session's own types may change");
        assert!(!found(&mut cache, 1, b"\xFD\0\xFD\0"), "others do not meet the change");
        cache.add(&text, statement(2), Caller { session: 1, types: b"\xFD\0\xFD\0" }, 9);
        assert!(found(&mut cache, 2, b"\xFD\0\xFD\0"));
    }
}
