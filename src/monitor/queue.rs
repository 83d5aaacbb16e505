//! Checks that wait for a thread: those of servers that have failed least go first.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What waits, by rank and then in the order in which it came.
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: BTreeMap<(u32, u64), T>,
    last: u64,
    closed: bool,
}

/// What a thread that asks for work is told.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken<T> {
    /// The first in line.
    Next(T),
    /// There was nothing all the time.
    Nothing,
    /// There will be nothing more.
    Closed,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let state = State { waiting: BTreeMap::new(), last: 0, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> Queue<T> {
    /// Adds one. The lowest rank goes first.
    pub fn push(&self, rank: u32, item: T) {
        let mut state = self.state.lock();
        state.last += 1;
        let place = (rank, state.last);
        state.waiting.insert(place, item);
        drop(state);
        self.changed.notify_one();
    }
    /// Takes the first, for which it waits at most `patience`.
    pub fn take(&self, patience: Duration) -> Taken<T> {
        let until = Instant::now() + patience;
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return Taken::Closed;
            }
            if let Some((_, item)) = state.waiting.pop_first() {
                return Taken::Next(item);
            }
            if self.changed.wait_until(&mut state, until).timed_out() {
                return Taken::Nothing;
            }
        }
    }
    /// How many wait.
    pub fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }
    /// Drops what waits, and takes in no thread any more.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_rank_goes_first_and_of_the_same_the_oldest() {
        let queue = Queue::default();
        for (rank, name) in [(2, "dead"), (0, "slow"), (1, "new"), (0, "slower")] {
            queue.push(rank, name);
        }
        assert_eq!(queue.len(), 4);
        for name in ["slow", "slower", "new", "dead"] {
            assert_eq!(queue.take(Duration::ZERO), Taken::Next(name));
        }
        assert_eq!(queue.take(Duration::ZERO), Taken::Nothing);
        queue.push(0, "late");
        queue.close();
        assert_eq!(queue.take(Duration::from_secs(10)), Taken::Closed);
    }

    #[test]
    fn who_waits_is_woken() {
        let queue = Queue::default();
        std::thread::scope(|scope| {
            let waiting: Vec<_> =
                (0..2).map(|_| scope.spawn(|| queue.take(Duration::from_secs(60)))).collect();
            queue.push(0, ());
            crate::testing::eventually("one to take it", || queue.len() == 0);
            queue.close();
            let told: Vec<_> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(told.contains(&Taken::Next(())) && told.contains(&Taken::Closed), "{told:?}");
        });
    }
}
