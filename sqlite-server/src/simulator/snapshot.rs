//! A copy of a table's committed rows, so that looking at them takes no lock of the database.

use parking_lot::RwLock;
use rusqlite::Row;
use std::sync::atomic::{AtomicU64, Ordering};

/// The newest copy.
pub(super) struct Snapshot<T> {
    tickets: AtomicU64,
    newest: RwLock<(u64, T)>,
}

impl<T> Snapshot<T> {
    /// The copy until the table is read.
    pub(super) fn new(value: T) -> Self {
        Self { tickets: AtomicU64::new(0), newest: RwLock::new((0, value)) }
    }

    /// Looks at the copy. `look` only picks from it: others wait meanwhile.
    pub(super) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.newest.read().1)
    }

    /// Reads the table anew and returns the copy before. Called after a commit, never inside a transaction.
    ///
    /// The ticket is drawn before the table is read. So the newest ticket has seen every commit whose own refresh is
    /// older, and a slower refresh with an older ticket is dropped.
    pub(super) fn refresh<E>(&self, read: impl FnOnce() -> Result<T, E>) -> Result<Option<T>, E> {
        let ticket = self.tickets.fetch_add(1, Ordering::SeqCst) + 1;
        let value = read()?;
        let mut newest = self.newest.write();
        if newest.0 > ticket {
            return Ok(None);
        }
        Ok(Some(std::mem::replace(&mut *newest, (ticket, value)).1))
    }
}

/// The host (a name or an address) and port in a row's first two columns. `None` where they are of another kind: nobody can reach
/// such a host or ask for it, and its row must not hide the others.
pub(super) fn host_and_port(row: &Row<'_>) -> Option<(String, u16)> {
    Some((row.get(0).ok()?, row.get(1).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_refresh_does_not_replace_a_newer_one() {
        let snapshot = Snapshot::new(0);
        let outer = snapshot.refresh(|| {
            assert_eq!(snapshot.refresh(|| Ok::<_, ()>(2)), Ok(Some(0)));
            Ok::<_, ()>(1)
        });
        assert_eq!((outer, snapshot.look(|value| *value)), (Ok(None), 2));
        assert_eq!(snapshot.refresh(|| Err("gone")), Err("gone"));
        assert_eq!(snapshot.look(|value| *value), 2);
    }
}
