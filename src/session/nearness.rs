//! Keeps a session's thread on the processor that its client runs on, where that is a processor of this machine.
//!
//! On a machine that is busy the system leaves threads where they happen to be, and each wake that goes to another processor costs
//! more than the rest of a statement does. It is free to move the thread away again at once, as it does where another is idle.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use wire::socket::Socket;

/// The client's processor is asked for so often: it costs system calls, and threads stay where they are for long.
const FRESH: Duration = Duration::from_millis(20);

/// On which processors the clients of this machine run.
///
/// Where far more of them than its share run on one processor, they are one program's that serves all its connections by one thread:
/// it needs the processor for itself, and nobody moves there.
pub struct Homes {
    sessions: AtomicUsize,
    /// Of each processor how many.
    of: Box<[AtomicUsize]>,
    processors: usize,
}

impl Default for Homes {
    fn default() -> Self {
        Self {
            sessions: AtomicUsize::new(0),
            of: (0..CpuSet::MAX_CPU).map(|_| AtomicUsize::new(0)).collect(),
            processors: available_parallelism().map_or(1, NonZero::get),
        }
    }
}

impl Homes {
    /// A client that ran on one processor, if that was known, runs on another, or is gone.
    fn moved(&self, from: Option<usize>, to: Option<usize>) {
        match (from, to) {
            (None, Some(_)) => _ = self.sessions.fetch_add(1, Ordering::Relaxed),
            (Some(_), None) => _ = self.sessions.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
        let of = |at: Option<usize>| self.of.get(at?);
        of(from).map(|count| count.fetch_sub(1, Ordering::Relaxed));
        of(to).map(|count| count.fetch_add(1, Ordering::Relaxed));
    }
    /// Whether more than half as many again as its share run on a processor; two may always.
    fn is_crowded(&self, processor: usize) -> bool {
        let here = self.of.get(processor).map_or(0, |count| count.load(Ordering::Relaxed));
        here > 2 && here * self.processors * 2 > self.sessions.load(Ordering::Relaxed) * 3
    }
}

/// One session's part of that.
pub struct Nearness<'a> {
    homes: &'a Homes,
    /// Where its client ran when it was looked for last.
    home: Option<usize>,
    /// When that is next; never for a client on another machine, or that no processor is told of.
    due: Option<Instant>,
}

impl<'a> Nearness<'a> {
    /// Of a session that begins. One that ends at once never looks.
    pub fn new(homes: &'a Homes, now: Instant) -> Self {
        Self { homes, home: None, due: now.checked_add(FRESH) }
    }
    /// A command has come.
    #[inline]
    pub fn follow(&mut self, client: &Socket, now: Instant) {
        if self.due.is_some_and(|due| now >= due) {
            self.due = now.checked_add(FRESH);
            self.look(client);
        }
    }
    #[cold]
    fn look(&mut self, client: &Socket) {
        let home = client.processor().and_then(|number| usize::try_from(number).ok());
        if self.home.is_none() && (home.is_none() || !is_local(client)) {
            self.due = None;
            return;
        }
        self.homes.moved(std::mem::replace(&mut self.home, home), home);
        if let Some(home) = home.filter(|home| !self.homes.is_crowded(*home)) {
            // A thread that the system does not let move serves where it is as well.
            let _ = go_to(home);
        }
    }
}

impl Drop for Nearness<'_> {
    fn drop(&mut self) {
        self.homes.moved(self.home, None);
    }
}

fn is_local(client: &Socket) -> bool {
    let ends = (client.local_addr(), client.peer_addr());
    matches!(ends, (Ok(here), Ok(there)) if here.ip() == there.ip() || there.ip().to_canonical().is_loopback())
}

/// Has the thread go on at a processor, if it may run there. True if it was elsewhere.
fn go_to(processor: usize) -> io::Result<bool> {
    if processor == sched_getcpu() || processor >= CpuSet::MAX_CPU {
        return Ok(false);
    }
    let allowed = sched_getaffinity(None)?;
    if !allowed.is_set(processor) {
        return Ok(false);
    }
    let lasting = lasting(&allowed)?;
    let moved = sched_setaffinity(None, &of([processor]));
    sched_setaffinity(None, &lasting)?;
    moved?;
    Ok(true)
}

/// What the thread is to be told afterwards, which may run on `allowed`. A thread that nobody has limited runs wherever its control
/// group does, today and when the group gets other processors: told those of today, it would stay with them. One that somebody has
/// limited (taskset) stays limited. It may run anywhere when this returns.
fn lasting(allowed: &CpuSet) -> io::Result<CpuSet> {
    let everywhere = of(0..CpuSet::MAX_CPU);
    sched_setaffinity(None, &everywhere)?;
    let is_limited = sched_getaffinity(None)? != *allowed;
    Ok(if is_limited { *allowed } else { everywhere })
}

fn of(processors: impl IntoIterator<Item = usize>) -> CpuSet {
    let mut set = CpuSet::new();
    processors.into_iter().for_each(|processor| set.set(processor));
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{eventually, socket_pair};

    fn only(processor: usize) -> CpuSet {
        of([processor])
    }

    #[test]
    fn a_thread_moves_where_it_may_and_stays_free_to_leave() {
        let allowed = sched_getaffinity(None).unwrap();
        let mut processors = (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number));
        let (Some(here), Some(there)) = (processors.next(), processors.next()) else { return };
        sched_setaffinity(None, &only(here)).unwrap();
        assert!(!go_to(there).unwrap(), "it may not run there");
        eventually("it moves", || {
            // It may have been moved as soon as it could.
            sched_setaffinity(None, &only(here)).unwrap();
            sched_setaffinity(None, &allowed).unwrap();
            go_to(there).unwrap()
        });
        assert!(sched_getaffinity(None).unwrap() == allowed);
        assert!(!go_to(CpuSet::MAX_CPU).unwrap());
    }

    #[test]
    fn a_move_limits_no_thread_to_the_processors_of_today() {
        sched_setaffinity(None, &of(0..CpuSet::MAX_CPU)).unwrap();
        let group = sched_getaffinity(None).unwrap();
        assert!(
            lasting(&group).unwrap() == of(0..CpuSet::MAX_CPU),
            "it is limited by its control group alone"
        );
        let mut processors = (0..CpuSet::MAX_CPU).filter(|number| group.is_set(*number));
        let (Some(one), Some(_)) = (processors.next(), processors.next()) else { return };
        assert!(lasting(&only(one)).unwrap() == only(one), "somebody has limited it");
    }

    #[test]
    fn nobody_moves_where_one_program_has_all_its_connections() {
        let homes = Homes { processors: 2, ..Homes::default() };
        let crowded = |homes: &Homes| [0, 1].map(|processor| homes.is_crowded(processor));
        homes.moved(None, Some(0));
        homes.moved(None, Some(0));
        assert_eq!(crowded(&homes), [false, false], "two are no crowd");
        homes.moved(None, Some(0));
        assert_eq!(crowded(&homes), [true, false]);
        homes.moved(None, Some(1));
        assert_eq!(crowded(&homes), [false, false], "three of four");
        homes.moved(Some(1), Some(0));
        assert_eq!(crowded(&homes), [true, false]);
        (0..2).for_each(|_| homes.moved(Some(0), None));
        assert_eq!(crowded(&homes), [false, false]);
    }

    #[test]
    fn it_looks_again_after_a_while_and_never_for_a_client_elsewhere() {
        let ((_client, socket), now, homes) = (socket_pair(), Instant::now(), Homes::default());
        let mut nearness = Nearness::new(&homes, now);
        nearness.follow(&socket, now);
        assert_eq!((nearness.due, nearness.home), (Some(now + FRESH), None));
        nearness.follow(&socket, now + FRESH);
        assert_eq!(nearness.due, Some(now + 2 * FRESH));
        let known = usize::from(nearness.home.is_some());
        assert_eq!(homes.sessions.load(Ordering::Relaxed), known);
        drop(nearness);
        assert_eq!(homes.sessions.load(Ordering::Relaxed), 0);
        let mut nowhere = Nearness { homes: &homes, home: None, due: None };
        nowhere.follow(&socket, now + FRESH);
        assert_eq!((nowhere.due, nowhere.home), (None, None));
    }
}
