//! What prepared statements say, kept once however many sessions have them open, and how connections come by them.

use super::connection::Connection;
use super::figures::number;
use super::profile::Profile;
use super::statement_cache::Caller;
use crate::digest::{self, Options};
use admin::{Value, Variables};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;
use wire::backend::Backend;
use wire::tracker::Prepared;
use wire::{Command, SqlMode, WireError};

/// The table of texts is searched for texts that are gone when it has grown to this, or to twice what was left last time.
const FIRST_SWEEP: usize = 64;

/// How many texts were given up so far: when it moves, connections look for statements to close.
static GONE: AtomicU64 = AtomicU64::new(0);

/// See [`GONE`].
pub(super) fn texts_gone() -> u64 {
    GONE.load(Ordering::Acquire)
}

/// What a statement says, and where: the same text means something else in another schema or under another sql_mode.
pub struct StatementText {
    sql: Box<[u8]>,
    profile: Profile,
    id: u64,
    /// Parameters and columns, as the last server to prepare it said.
    shape: [AtomicU16; 2],
}

impl StatementText {
    /// The SQL text.
    pub fn sql(&self) -> &[u8] {
        &self.sql
    }
    /// Takes note of what a server said of it.
    pub(super) fn note_shape(&self, statement: &Prepared) {
        let [parameters, columns] = &self.shape;
        parameters.store(statement.parameters, Ordering::Relaxed);
        columns.store(statement.columns, Ordering::Relaxed);
    }
    /// A row of stats_mysql_prepared_statements_info.
    fn row(&self, sessions: usize, connections: usize, options: &Options) -> Vec<Value> {
        let mut digest = Vec::new();
        digest::write(&self.sql, self.profile.quoting(SqlMode::default()), options, &mut digest);
        let schema = self.profile.schema.as_deref().unwrap_or_default();
        let [parameters, columns] = &self.shape;
        vec![
            number(self.id),
            Value::Text(schema.to_owned()),
            Value::Text(String::new()),
            Value::Text(digest::show(digest::hash(&digest))),
            number(sessions as u64),
            number(connections as u64),
            Value::Int(columns.load(Ordering::Relaxed).into()),
            Value::Int(parameters.load(Ordering::Relaxed).into()),
            Value::Text(String::from_utf8_lossy(&self.sql).into_owned()),
        ]
    }
}

impl Drop for StatementText {
    fn drop(&mut self) {
        GONE.fetch_add(1, Ordering::Release);
    }
}

/// All texts that some session has open.
#[derive(Default)]
pub struct StatementTexts {
    known: Mutex<Known>,
    hasher: RandomState,
}

/// How many statements are prepared: of texts that some client has open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatementFigures {
    /// Texts.
    pub texts: u64,
    /// Statements that clients have open.
    pub of_clients: u64,
    /// Statements on server connections.
    pub of_servers: u64,
    /// Texts that are prepared on some server connection.
    pub texts_of_servers: u64,
    /// The number of the text that came last.
    pub last_id: u64,
}

#[derive(Default)]
struct Known {
    by_hash: HashMap<u64, Vec<Weak<StatementText>>>,
    last_id: u64,
    sweep_at: usize,
}

impl StatementTexts {
    /// The one text of its kind.
    pub fn get(&self, sql: &[u8], profile: &Profile) -> Arc<StatementText> {
        let hash = self.hasher.hash_one((sql, &profile.schema));
        let mut known = self.known.lock();
        known.sweep();
        let Known { by_hash, last_id, .. } = &mut *known;
        let same_hash = by_hash.entry(hash).or_default();
        let open =
            same_hash.iter().filter_map(Weak::upgrade).find(|t| *t.sql == *sql && t.profile == *profile);
        open.unwrap_or_else(|| {
            *last_id += 1;
            let (id, shape) = (*last_id, Default::default());
            let text = Arc::new(StatementText { sql: sql.into(), profile: profile.clone(), id, shape });
            same_hash.push(Arc::downgrade(&text));
            text
        })
    }
    /// How many there are.
    pub fn figures(&self) -> StatementFigures {
        let known = self.known.lock();
        let mut figures = StatementFigures { last_id: known.last_id, ..StatementFigures::default() };
        for text in known.by_hash.values().flatten() {
            // As in the rows: sessions hold a text; connections, and the table here, know of it.
            let (sessions, connections) = (text.strong_count(), text.weak_count().saturating_sub(1));
            if sessions > 0 {
                figures.texts += 1;
                figures.of_clients += sessions as u64;
                figures.of_servers += connections as u64;
                figures.texts_of_servers += u64::from(connections > 0);
            }
        }
        figures
    }
    /// Rows of stats_mysql_prepared_statements_info: by when they were prepared first.
    pub fn rows(&self, options: &Options) -> Vec<Vec<Value>> {
        let copy = |text: &Weak<StatementText>| {
            // Sessions hold a text; connections, and the table here, know of it.
            let (sessions, knowing) = (text.strong_count(), text.weak_count());
            text.upgrade().map(|text| (text, sessions, knowing.saturating_sub(1)))
        };
        let mut open: Vec<_> = self.known.lock().by_hash.values().flatten().filter_map(copy).collect();
        open.sort_unstable_by_key(|(text, ..)| text.id);
        let row = |(text, sessions, connections): (Arc<StatementText>, usize, usize)| {
            text.row(sessions, connections, options)
        };
        open.into_iter().map(row).collect()
    }
}

impl Known {
    fn sweep(&mut self) {
        if self.by_hash.len() < self.sweep_at.max(FIRST_SWEEP) {
            return;
        }
        self.by_hash.retain(|_, texts| {
            texts.retain(|text| text.strong_count() > 0);
            !texts.is_empty()
        });
        self.sweep_at = 2 * self.by_hash.len();
    }
}

impl Connection<Backend> {
    /// A statement's form on this connection; prepared if need be, under schema and variables of its text.
    /// After `WireError::Sql` the connection can still be used.
    pub fn statement(
        &mut self,
        text: &Arc<StatementText>,
        caller: Caller<'_>,
        limits: &Variables,
    ) -> Result<Prepared, WireError> {
        if let Some(statement) = self.statements.find(text, caller) {
            return Ok(statement);
        }
        let deadline = Instant::now() + limits.connect_timeout_server;
        let moment = self.profile.with_texts_of(&text.profile);
        let there = self.profile.way_to(&moment, &self.transport);
        let back = moment.way_to(&self.profile, &self.transport);
        let (there, back) = (there.requests(), back.requests());
        let prepare = [(Command::COM_STMT_PREPARE, &*text.sql)];
        [&there[..], &prepare, &back].into_iter().for_each(|requests| self.shared.work.sent_all(requests));
        let statement = self.transport.prepare(&there, &text.sql, &back, deadline)?;
        self.statements.add(text, statement, caller, limits.max_stmts_per_connection);
        Ok(statement)
    }
    /// Queues the closing of statements, in front of the next command.
    #[inline]
    pub fn queue_closes(&mut self) {
        for id in self.statements.take_closing() {
            self.transport.channel.queue_raw(&wire::statement::close(id));
            self.shared.work.statement_closed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::statement_cache::StatementCache;
    use crate::quoting::Quoting;

    #[test]
    fn sessions_share_a_text_and_not_its_namesakes() {
        let texts = StatementTexts::default();
        let plain = Profile::login(None, 45);
        let elsewhere = Profile::login(Some("a"), 45);
        let first = texts.get(b"SELECT 1", &plain);
        assert!(Arc::ptr_eq(&first, &texts.get(b"SELECT 1", &plain)));
        assert!(!Arc::ptr_eq(&first, &texts.get(b"SELECT 2", &plain)));
        assert!(!Arc::ptr_eq(&first, &texts.get(b"SELECT 1", &elsewhere)));
    }

    #[test]
    fn texts_that_are_gone_are_forgotten() {
        let texts = StatementTexts::default();
        let plain = Profile::login(None, 45);
        let kept = texts.get(b"kept", &plain);
        for number in 0..10_000 {
            texts.get(format!("SELECT {number}").as_bytes(), &plain);
        }
        assert!(texts.known.lock().by_hash.len() <= 2 * FIRST_SWEEP);
        assert!(Arc::ptr_eq(&kept, &texts.get(b"kept", &plain)));
    }

    #[test]
    fn rows_tell_who_has_a_statement() {
        let texts = StatementTexts::default();
        let profile = Profile::login(Some("shop"), 45);
        let sessions = [texts.get(b"SELECT ?, 2", &profile), texts.get(b"SELECT ?, 2", &profile)];
        let mut caches = [StatementCache::default(), StatementCache::default(), StatementCache::default()];
        let caller = Caller { session: 1, types: b"" };
        for cache in &mut caches {
            cache.add(&sessions[0], Prepared { id: 9, parameters: 1, columns: 2 }, caller, 10);
        }
        let options = Options::default();
        let mut digest = Vec::new();
        digest::write(b"SELECT 7, 8", Quoting::default(), &options, &mut digest);
        let text = |text: &str| Value::Text(text.to_owned());
        let digest = text(&digest::show(digest::hash(&digest)));
        let numbers = [2, 3, 2, 1].map(Value::Int);
        let expected =
            [&[Value::Int(1), text("shop"), text(""), digest], &numbers[..], &[text("SELECT ?, 2")]];
        assert_eq!(texts.rows(&options), [expected.concat()]);
        let figures =
            StatementFigures { texts: 1, of_clients: 2, of_servers: 3, texts_of_servers: 1, last_id: 1 };
        assert_eq!(texts.figures(), figures);
        caches[0].clear();
        assert_eq!(texts.rows(&options)[0][5], Value::Int(2));
        drop(sessions);
        assert!(texts.rows(&options).is_empty());
        assert_eq!(texts.figures(), StatementFigures { last_id: 1, ..StatementFigures::default() });
    }
}
