//! What prepared statements say, kept once however many sessions have them open, and how connections come by them.

use super::connection::Connection;
use super::profile::Profile;
use super::statement_cache::Caller;
use admin::Variables;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;
use wire::WireError;
use wire::backend::Backend;
use wire::tracker::Prepared;

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
}

impl StatementText {
    /// The SQL text.
    pub fn sql(&self) -> &[u8] {
        &self.sql
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

#[derive(Default)]
struct Known {
    by_hash: HashMap<u64, Vec<Weak<StatementText>>>,
    sweep_at: usize,
}

impl StatementTexts {
    /// The one text of its kind.
    pub fn get(&self, sql: &[u8], profile: &Profile) -> Arc<StatementText> {
        let hash = self.hasher.hash_one((sql, &profile.schema));
        let mut known = self.known.lock();
        known.sweep();
        let same_hash = known.by_hash.entry(hash).or_default();
        let open =
            same_hash.iter().filter_map(Weak::upgrade).find(|t| *t.sql == *sql && t.profile == *profile);
        open.unwrap_or_else(|| {
            let text = Arc::new(StatementText { sql: sql.into(), profile: profile.clone() });
            same_hash.push(Arc::downgrade(&text));
            text
        })
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
        let statement = self.transport.prepare(&there, &text.sql, &back, deadline)?;
        self.statements.add(text, statement, caller, limits.max_stmts_per_connection);
        Ok(statement)
    }
    /// Queues the closing of statements, in front of the next command.
    #[inline]
    pub fn queue_closes(&mut self) {
        for id in self.statements.take_closing() {
            self.transport.channel.queue_raw(&wire::statement::close(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
