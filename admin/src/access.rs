//! Who uses the database when: one change at a time, and reading beside each other.
//!
//! Statements that only read run on connections of their own, so that a long one holds up neither other readers nor, for
//! longer than [`PATIENCE`], a change: it is interrupted then.

use crate::STATEMENT_LIMIT;
use crate::answer::Answer;
use crate::current::{Client, Current, Epoch, Role};
use crate::error::{self, failed, from_sqlite};
use crate::live::Registered;
use crate::store::{self, DiskFile, Places, Store};
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use rusqlite::Connection;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};
use wire::SqlError;

/// How long a change waits for readers before they are interrupted.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a reader waits for a change, or for a connection.
const READER_WAIT: Duration = Duration::from_secs(10);
/// Most statements that read at a time, of administrators and of readers of statistics each.
const MOST_READERS: usize = 8;
/// Connections that are kept for the next of them, each.
const KEPT_READERS: usize = 2;

/// The database and its connections.
pub(crate) struct Database {
    writer: Mutex<Store>,
    /// Readers share it; who changes something has it alone.
    gate: RwLock<()>,
    /// Moves on when a change has waited long enough: readers that began before end.
    epoch: Epoch,
    places: Places,
    file: DiskFile,
    /// Every live table.
    pub live: Registered,
    held: Arc<AtomicUsize>,
    of_admin: Readers,
    of_stats: Readers,
}

/// The writing connection, while nobody else reads or writes.
pub(crate) struct Writing<'a> {
    store: MutexGuard<'a, Store>,
    _alone: RwLockWriteGuard<'a, ()>,
}

impl Deref for Writing<'_> {
    type Target = Store;
    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl Database {
    /// The database of an open store.
    pub fn new(store: Store) -> Self {
        Self {
            gate: RwLock::new(()),
            epoch: Epoch::default(),
            places: store.places.clone(),
            file: store.file.clone(),
            live: store.live.clone(),
            held: Arc::clone(&store.held),
            of_admin: Readers::default(),
            of_stats: Readers::default(),
            writer: Mutex::new(store),
        }
    }

    /// The writing connection, alone. Changes of others end first (a client's after [`STATEMENT_LIMIT`]); readers are waited
    /// for a moment only.
    pub fn lock(&self) -> Writing<'_> {
        self.alone(self.writer.lock())
    }

    /// The same for a client's statement, which is given up where others take too long.
    pub fn lock_for_client(&self) -> Result<Writing<'_>, SqlError> {
        self.writer
            .try_lock_for(STATEMENT_LIMIT)
            .map(|store| self.alone(store))
            .ok_or_else(|| busy(STATEMENT_LIMIT))
    }

    fn alone<'a>(&'a self, store: MutexGuard<'a, Store>) -> Writing<'a> {
        loop {
            if let Some(alone) = self.gate.try_write_for(PATIENCE) {
                return Writing { store, _alone: alone };
            }
            self.epoch.advance();
        }
    }

    /// Closes the connections that read and are idle, so that new ones see another file.
    pub fn forget_readers(&self) {
        for readers in [&self.of_admin, &self.of_stats] {
            readers.state.lock().idle.clear();
        }
    }

    /// Runs a client's statement beside others if it only reads; `None` if it does not. What readers of statistics send is
    /// never let change anything.
    pub fn read(&self, client: &Client, sql: &str) -> Result<Option<Answer>, SqlError> {
        let answered = self.with_reader(client, |reader| {
            if client.role == Role::Admin && !reader.only_reads(sql) {
                return Ok(None);
            }
            let running = reader.current.begin_reading(client, STATEMENT_LIMIT, &self.epoch);
            let answer = Answer::collect(&reader.conn, sql, store::room(&self.held), || {
                running.check_disk(&self.file)
            });
            answer.map(Some).map_err(|error| if running.gave_way() { gave_way() } else { error })
        });
        answered?.unwrap_or(Ok(None))
    }

    /// Has `what` done with a reading connection of the client's kind. `None` if an administrator can have none: the writing one
    /// is there. None is opened while another file is in the place of the database's, which nobody has asked to be read.
    pub fn with_reader<T>(
        &self,
        client: &Client,
        what: impl FnOnce(&Reader) -> T,
    ) -> Result<Option<T>, SqlError> {
        let until = Instant::now() + READER_WAIT;
        let _shared = self.gate.try_read_until(until).ok_or_else(|| busy(READER_WAIT))?;
        let readers = match client.role {
            Role::Admin => &self.of_admin,
            Role::Stats => &self.of_stats,
        };
        let mut place = readers.take(until)?;
        let opens = client.role == Role::Stats || self.file.check().is_ok();
        if place.reader.is_none() && opens {
            match Reader::open(&self.places, client.role, &self.live) {
                Ok(reader) => place.reader = Some(reader),
                Err(error) if client.role == Role::Admin => {
                    log::warn!("no connection to read the admin database: {}", error::text(&error));
                }
                Err(error) => return Err(from_sqlite(&error)),
            }
        }
        Ok(place.reader.as_ref().map(what))
    }
}

fn busy(waited: Duration) -> SqlError {
    let seconds = waited.as_secs();
    failed(format!("other statements did not end within {seconds} s; try again"))
}

fn gave_way() -> SqlError {
    let seconds = PATIENCE.as_secs();
    failed(format!("interrupted: a change waited for longer than {seconds} s; try again"))
}

/// A connection that reads.
pub(crate) struct Reader {
    pub conn: Connection,
    current: Current,
}

impl Reader {
    fn open(places: &Places, role: Role, live: &Registered) -> rusqlite::Result<Self> {
        let current = Current::default();
        let conn = store::connect_reader(places, role, live, &current)?;
        Ok(Self { conn, current })
    }

    /// Whether a statement changes nothing, or is none: its error is told then as any reader's.
    fn only_reads(&self, sql: &str) -> bool {
        self.conn.prepare(sql).map_or(true, |statement| statement.readonly())
    }
}

/// Connections of one kind.
#[derive(Default)]
struct Readers {
    state: Mutex<ReadersState>,
    returned: Condvar,
}

#[derive(Default)]
struct ReadersState {
    idle: Vec<Reader>,
    used: usize,
}

/// A place among the readers, and its connection once there is one. Both go back when it is dropped.
struct Place<'a> {
    readers: &'a Readers,
    reader: Option<Reader>,
}

impl Readers {
    fn take(&self, until: Instant) -> Result<Place<'_>, SqlError> {
        let mut state = self.state.lock();
        while state.used >= MOST_READERS {
            if self.returned.wait_until(&mut state, until).timed_out() {
                return Err(busy(READER_WAIT));
            }
        }
        state.used += 1;
        Ok(Place { readers: self, reader: state.idle.pop() })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.readers.state.lock();
        state.used -= 1;
        let kept = if state.idle.len() < KEPT_READERS { self.reader.take() } else { None };
        state.idle.extend(kept);
        drop(state);
        self.readers.returned.notify_one();
    }
}
