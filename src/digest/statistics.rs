//! What is counted of each digest.
//!
//! Sessions count under short locks, each for a sixteenth of the digests. Memory is bounded: once it is used up, statements
//! that have not been counted before are not counted at all, until somebody reads and clears the table.

use admin::Value;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use parking_lot::Mutex;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SHARDS: usize = 16;
/// Memory for what is counted, in bytes.
const MEMORY: usize = 64 << 20;
/// What an allocated text has beside its bytes: two counts of references and the allocator's own.
const TEXT_HEADER: usize = 24;

/// Whose statements are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key<'a> {
    /// Where they went; -1: answered by a rule.
    pub hostgroup: i64,
    /// Default schema; empty without one.
    pub schema: &'a str,
    /// User.
    pub user: &'a str,
    /// Where the client is; empty unless that is tracked.
    pub client: &'a str,
    /// Number of the digest.
    pub digest: u64,
}

/// One execution.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it ended.
    pub ended: Instant,
    /// How long it took.
    pub time: Duration,
    /// Rows it changed.
    pub rows_affected: u64,
    /// Rows it returned.
    pub rows_sent: u64,
}

/// Cheap to clone: who reads the table copies the entries under the locks and makes rows of them outside.
#[derive(Clone)]
struct Entry {
    hash: u64,
    hostgroup: i64,
    schema: Arc<str>,
    user: Arc<str>,
    client: Arc<str>,
    digest: u64,
    text: Arc<[u8]>,
    counts: Counts,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Counts {
    count: u64,
    first_seen: Instant,
    last_seen: Instant,
    sum_us: u64,
    min_us: u64,
    max_us: u64,
    rows_affected: u64,
    rows_sent: u64,
}

impl Entry {
    fn new(hash: u64, key: &Key<'_>, text: &[u8], counts: Counts) -> Self {
        let Key { hostgroup, schema, user, client, digest } = *key;
        let (schema, user, client, text) = (schema.into(), user.into(), client.into(), text.into());
        Self { hash, hostgroup, schema, user, client, digest, text, counts }
    }
    fn key(&self) -> Key<'_> {
        let Self { hostgroup, schema, user, client, digest, .. } = self;
        Key { hostgroup: *hostgroup, schema, user, client, digest: *digest }
    }
    /// Memory that an entry takes, in bytes: two places of the hash table, which is about half empty when it has grown, and its texts
    /// with what the allocator adds to them.
    fn size_with(key: &Key<'_>, text: &[u8]) -> usize {
        let texts = [text.len(), key.schema.len(), key.user.len(), key.client.len()];
        let allocated = texts.map(|length| (length + TEXT_HEADER).next_multiple_of(16));
        2 * size_of::<Self>() + allocated.iter().sum::<usize>()
    }
    fn size(&self) -> usize {
        Self::size_with(&self.key(), &self.text)
    }
    /// As the stats tables show it.
    fn row(&self, clock: Clock) -> Vec<Value> {
        let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let text = |text: &str| Value::Text(text.to_owned());
        vec![
            Value::Int(self.hostgroup),
            text(&self.schema),
            text(&self.user),
            text(&self.client),
            Value::Text(super::show(self.digest)),
            text(&String::from_utf8_lossy(&self.text)),
            number(self.counts.count),
            number(clock.time_of_day(self.counts.first_seen)),
            number(clock.time_of_day(self.counts.last_seen)),
            number(self.counts.sum_us),
            number(self.counts.min_us),
            number(self.counts.max_us),
            number(self.counts.rows_affected),
            number(self.counts.rows_sent),
        ]
    }
}

impl Counts {
    fn new(sample: &Sample) -> Self {
        let us = u64::try_from(sample.time.as_micros()).unwrap_or(u64::MAX);
        Self {
            count: 1,
            first_seen: sample.ended,
            last_seen: sample.ended,
            sum_us: us,
            min_us: us,
            max_us: us,
            rows_affected: sample.rows_affected,
            rows_sent: sample.rows_sent,
        }
    }
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.last_seen = self.last_seen.max(other.last_seen);
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.min_us = self.min_us.min(other.min_us);
        self.max_us = self.max_us.max(other.max_us);
        self.rows_affected = self.rows_affected.saturating_add(other.rows_affected);
        self.rows_sent = self.rows_sent.saturating_add(other.rows_sent);
    }
}

/// What the time of day was, in seconds since 1970, at some instant.
#[derive(Clone, Copy)]
struct Clock {
    instant: Instant,
    unix: u64,
}

impl Clock {
    fn time_of_day(self, at: Instant) -> u64 {
        self.unix + at.saturating_duration_since(self.instant).as_secs()
    }
}

#[derive(Default)]
struct Shard {
    entries: HashTable<Entry>,
    /// Memory that the entries take, in bytes.
    used: usize,
}

/// The statistics of all digests.
pub struct Statistics {
    shards: [Mutex<Shard>; SHARDS],
    memory: usize,
    full: AtomicBool,
    hasher: RandomState,
    clock: Clock,
}

impl Default for Statistics {
    fn default() -> Self {
        Self::with_memory(MEMORY)
    }
}

impl Statistics {
    fn with_memory(memory: usize) -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Self {
            shards: Default::default(),
            memory: memory / SHARDS,
            full: AtomicBool::new(false),
            hasher: RandomState::default(),
            clock: Clock { instant: Instant::now(), unix },
        }
    }
    /// Counts one execution of a statement whose digest has this text.
    pub fn count(&self, key: &Key<'_>, text: &[u8], sample: &Sample) {
        let counts = Counts::new(sample);
        let hash = self.hasher.hash_one(key);
        // In bounds: the remainder is below the number of shards.
        let mut shard = self.shards[(hash >> 32) as usize % SHARDS].lock();
        let known = shard.entries.find_mut(hash, |entry| entry.hash == hash && entry.key() == *key);
        if let Some(entry) = known {
            return entry.counts.add(&counts);
        }
        let size = Entry::size_with(key, text);
        if shard.used + size <= self.memory {
            shard.used += size;
            shard.entries.insert_unique(hash, Entry::new(hash, key, text, counts), |entry| entry.hash);
            return;
        }
        drop(shard);
        if !self.full.swap(true, Ordering::Relaxed) {
            log::warn!(
                "stats_mysql_query_digest is full: statements that are not in it are not counted until it is cleared \
                 (read stats_mysql_query_digest_reset)"
            );
        }
    }
    /// Memory that it takes, in bytes.
    pub fn memory(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().used).sum()
    }
    /// Rows of stats_mysql_query_digest.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        let copy = |shard: &Mutex<Shard>| shard.lock().entries.iter().cloned().collect::<Vec<_>>();
        self.shards.iter().flat_map(copy).map(|entry| entry.row(self.clock)).collect()
    }
    /// The same, cleared.
    pub fn take_rows(&self) -> Vec<Vec<Value>> {
        self.take().rows()
    }
    /// Takes all that was counted: an execution is in what is returned, or in what is counted from then on.
    pub fn take(&self) -> Taken {
        let taken = self.shards.iter().map(|shard| std::mem::take(&mut *shard.lock())).collect();
        self.full.store(false, Ordering::Relaxed);
        Taken { shards: taken, clock: self.clock }
    }
    /// Puts back what was taken, beside what was counted since; what there is no memory for any more is lost.
    pub fn put_back(&self, taken: Taken) {
        for (shard, taken) in self.shards.iter().zip(taken.shards) {
            let mut shard = shard.lock();
            for entry in taken.entries {
                let known = shard.entries.find_mut(entry.hash, |known| known.key() == entry.key());
                let size = entry.size();
                if let Some(known) = known {
                    known.counts.first_seen = known.counts.first_seen.min(entry.counts.first_seen);
                    known.counts.add(&entry.counts);
                } else if shard.used + size <= self.memory {
                    shard.used += size;
                    shard.entries.insert_unique(entry.hash, entry, |entry| entry.hash);
                }
            }
        }
    }
}

/// What was counted up to a moment.
pub struct Taken {
    shards: Vec<Shard>,
    clock: Clock,
}

impl Taken {
    /// Rows of stats_mysql_query_digest.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        let entries = self.shards.iter().flat_map(|shard| shard.entries.iter());
        entries.map(|entry| entry.row(self.clock)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key<'static> = Key { hostgroup: 1, schema: "shop", user: "app", client: "", digest: 0xAB };

    fn sample(us: u64, rows_affected: u64, rows_sent: u64) -> Sample {
        Sample { ended: Instant::now(), time: Duration::from_micros(us), rows_affected, rows_sent }
    }

    fn ints(row: &[Value], columns: std::ops::Range<usize>) -> Vec<i64> {
        let int = |value: &Value| if let Value::Int(number) = value { *number } else { panic!("{value:?}") };
        row[columns].iter().map(int).collect()
    }

    #[test]
    fn executions_add_up() {
        let statistics = Statistics::default();
        statistics.count(&KEY, b"SELECT ?", &sample(30, 0, 2));
        let later = Instant::now() + Duration::from_secs(100);
        statistics.count(&KEY, b"SELECT ?", &Sample { ended: later, ..sample(10, 5, 1) });
        let rows = statistics.rows();
        let text = |text: &str| Value::Text(text.to_owned());
        let names = [
            Value::Int(1),
            text("shop"),
            text("app"),
            text(""),
            text("0x00000000000000AB"),
            text("SELECT ?"),
        ];
        assert_eq!((rows.len(), &rows[0][..6]), (1, &names[..]));
        assert_eq!(statistics.memory(), 2 * size_of::<Entry>() + 4 * 32);
        assert_eq!(ints(&rows[0], 6..7), [2]);
        assert_eq!(ints(&rows[0], 9..14), [40, 10, 30, 5, 3]);
        let seen = ints(&rows[0], 7..9);
        assert!(seen[0] > 1_500_000_000 && (100..=101).contains(&(seen[1] - seen[0])), "{seen:?}");
    }

    #[test]
    fn what_was_put_back_is_as_if_it_had_not_been_taken() {
        let statistics = Statistics::default();
        let other = Key { digest: 0xAC, ..KEY };
        statistics.count(&KEY, b"SELECT ?", &sample(30, 0, 2));
        statistics.count(&other, b"SELECT 2", &sample(1, 0, 0));
        let taken = statistics.take();
        assert_eq!((taken.rows().len(), statistics.rows().len()), (2, 0));
        statistics.count(&KEY, b"SELECT ?", &sample(10, 5, 1));
        statistics.put_back(taken);
        let mut rows = statistics.rows();
        rows.sort_by_key(|row| ints(row, 6..7));
        assert_eq!(rows.len(), 2);
        assert_eq!(ints(&rows[1], 6..7), [2]);
        assert_eq!(ints(&rows[1], 9..14), [40, 10, 30, 5, 3]);
        let used = statistics.memory();
        statistics.take();
        statistics.count(&KEY, b"SELECT ?", &sample(1, 0, 0));
        statistics.count(&other, b"SELECT 2", &sample(1, 0, 0));
        assert_eq!(statistics.memory(), used);
    }

    #[test]
    fn what_is_allocated_keeps_to_the_memory() {
        const LIMIT: usize = 4 << 20;
        let statistics = Statistics::with_memory(LIMIT);
        for digest in 0..40_000 {
            statistics.count(&Key { digest, ..KEY }, b"SELECT ? FROM t", &sample(1, 0, 0));
        }
        assert!(statistics.full.load(Ordering::Relaxed));
        let table = |shard: &Mutex<Shard>| shard.lock().entries.allocation_size();
        let tables: usize = statistics.shards.iter().map(table).sum();
        let texts: usize =
            ["SELECT ? FROM t", KEY.schema, KEY.user, KEY.client].iter().map(|text| text.len() + 16).sum();
        let used = tables + statistics.rows().len() * texts;
        assert!((LIMIT / 2..=LIMIT).contains(&used), "{used}");
    }

    #[test]
    fn what_is_put_back_keeps_to_the_memory() {
        let statistics = Statistics::with_memory(SHARDS * 1_000);
        let fill = |from: u64| {
            for digest in from..from + 1_000 {
                statistics.count(&Key { digest, ..KEY }, &[b'x'; 200], &sample(1, 0, 0));
            }
        };
        fill(0);
        let taken = statistics.take();
        fill(1_000);
        let full = statistics.rows().len();
        statistics.put_back(taken);
        assert!(statistics.memory() <= SHARDS * 1_000);
        assert!(statistics.rows().len() < full + SHARDS);
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let statistics = Statistics::default();
        let others = [
            Key { hostgroup: -1, ..KEY },
            Key { schema: "app", user: "shop", ..KEY },
            Key { user: "other", ..KEY },
            Key { client: "10.0.0.1", ..KEY },
            Key { digest: 0xAC, ..KEY },
        ];
        for key in others.iter().chain([&KEY, &KEY]) {
            statistics.count(key, b"x", &sample(1, 0, 0));
        }
        assert_eq!(statistics.rows().len(), 6);
        assert_eq!(statistics.take_rows().len(), 6);
        assert_eq!(statistics.rows().len(), 0);
    }

    #[test]
    fn memory_is_bounded_and_known_statements_go_on_being_counted() {
        let statistics = Statistics::with_memory(SHARDS * 1_000);
        for digest in 0..1_000 {
            statistics.count(&Key { digest, ..KEY }, &[b'x'; 200], &sample(1, 0, 0));
        }
        let full = statistics.rows().len();
        assert!((SHARDS..=SHARDS * 4).contains(&full), "{full}");
        (0..1_000).for_each(|digest| {
            statistics.count(&Key { digest, ..KEY }, &[b'x'; 200], &sample(1, 0, 0));
        });
        assert_eq!(statistics.rows().len(), full);
        assert!(statistics.rows().iter().all(|row| ints(row, 6..7) == [2]));
        statistics.take_rows();
        statistics.count(&KEY, b"x", &sample(1, 0, 0));
        assert_eq!(statistics.rows().len(), 1);
    }
}
