//! Lookups under way: one for each name at a time, on a few threads of their own, so that nobody waits for another's name,
//! and everybody only for as long as he wants.

use super::{Lookup, LookupError, Resolved, Shared};
use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long one lookup may take, whoever waits for it.
const LONGEST: Duration = Duration::from_secs(2);
/// How many names are looked up at the same time.
const THREADS: usize = 8;

type Outcome = Result<Resolved, LookupError>;
type Job = (String, Arc<Flight>);

/// One lookup and those who wait for it.
#[derive(Default)]
pub struct Flight {
    outcome: Mutex<Option<Outcome>>,
    done: Condvar,
}

impl Flight {
    /// Waits for the outcome.
    pub fn wait(&self, name: &str, deadline: Instant) -> Outcome {
        let mut outcome = self.outcome.lock();
        while outcome.is_none() && !self.done.wait_until(&mut outcome, deadline).timed_out() {}
        outcome.clone().unwrap_or_else(|| Err(failed(name, "no answer in time")))
    }

    fn finish(&self, outcome: Outcome) {
        self.outcome.lock().get_or_insert(outcome);
        self.done.notify_all();
    }
}

/// The lookups under way and the threads that perform them, made as they are needed.
pub struct Lookups {
    flights: HashMap<String, Arc<Flight>>,
    jobs: Sender<Job>,
    queue: Receiver<Job>,
    /// Jobs queued or being performed.
    pending: usize,
    threads: Vec<JoinHandle<()>>,
    stopped: bool,
}

impl Default for Lookups {
    fn default() -> Self {
        let (jobs, queue) = unbounded();
        Self { flights: HashMap::new(), jobs, queue, pending: 0, threads: Vec::new(), stopped: false }
    }
}

impl Lookups {
    /// Joins the lookup of a name, or begins one.
    pub fn begin(&mut self, name: &str, shared: &Arc<Shared>) -> Arc<Flight> {
        if let Some(flight) = self.flights.get(name) {
            return flight.clone();
        }
        let flight = Arc::new(Flight::default());
        if self.stopped {
            flight.finish(Err(failed(name, "pointsman is shutting down")));
            return flight;
        }
        if self.pending >= self.threads.len()
            && self.threads.len() < THREADS
            && let Err(error) = self.spawn(shared)
        {
            log::error!("cannot start a thread for DNS lookups: {error}");
        }
        if self.threads.is_empty() {
            flight.finish(Err(failed(name, "no thread to look it up")));
            return flight;
        }
        self.pending += 1;
        self.flights.insert(name.to_owned(), flight.clone());
        // Cannot fail: this very struct holds a receiver.
        let _ = self.jobs.send((name.to_owned(), flight.clone()));
        flight
    }
    /// Lets the lookup of a name end unnoticed: who asks from now on begins another.
    pub fn forget(&mut self, name: &str) {
        self.flights.remove(name);
    }
    /// As `forget`, for every name.
    pub fn forget_all(&mut self) {
        self.flights.clear();
    }
    /// Releases everybody who waits; the threads returned end with the lookup they are at.
    pub fn stop(&mut self) -> Vec<JoinHandle<()>> {
        self.stopped = true;
        self.jobs = unbounded().0;
        for (name, flight) in self.flights.drain() {
            flight.finish(Err(failed(&name, "pointsman is shutting down")));
        }
        std::mem::take(&mut self.threads)
    }
    /// Whether `stop` was called.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// The outcome counts only if nobody forgot the lookup meanwhile.
    fn complete(&mut self, name: &str, flight: &Arc<Flight>) -> bool {
        self.pending = self.pending.saturating_sub(1);
        let current = self.flights.get(name).is_some_and(|known| Arc::ptr_eq(known, flight));
        if current {
            self.flights.remove(name);
        }
        current
    }
    fn spawn(&mut self, shared: &Arc<Shared>) -> std::io::Result<()> {
        let (shared, queue) = (shared.clone(), self.queue.clone());
        let name = format!("dns-lookup-{}", self.threads.len() + 1);
        let thread = std::thread::Builder::new().name(name).spawn(move || work(&shared, &queue))?;
        self.threads.push(thread);
        Ok(())
    }
}

fn work(shared: &Shared, queue: &Receiver<Job>) {
    for (name, flight) in queue {
        if shared.state.lock().lookups.stopped {
            return;
        }
        let outcome = perform(&*shared.source, &name);
        {
            let mut state = shared.state.lock();
            if state.lookups.complete(&name, &flight) {
                shared.take_up(&mut state, &name, &outcome);
            }
        }
        flight.finish(outcome);
    }
}

/// A panic in the resolver must not leave its name without an answer for ever.
fn perform(source: &dyn Lookup, name: &str) -> Outcome {
    let deadline = Instant::now() + LONGEST;
    catch_unwind(AssertUnwindSafe(|| source.lookup(name, deadline)))
        .unwrap_or_else(|_| Err(failed(name, "the resolver panicked")))
}

/// A failure with its reason.
pub fn failed(name: &str, reason: &str) -> LookupError {
    LookupError::Failed { name: name.to_owned(), reason: reason.to_owned() }
}
