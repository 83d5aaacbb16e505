//! A provider that asks AWS: the instance or task for the proxy's own place, the RDS API for those of servers.
//!
//! ```text
//! own place    own ── metadata (IMDSv2), or the task's metadata on ECS
//! endpoints    rds ── places (what listings say), one look for each Region of a batch
//!               │
//!               ├── sign (SigV4) ── http
//!               └── credentials
//! ```
//!
//! One thread asks; it takes batches as they come, and a batch takes no longer than the manager waits.

mod batch;
mod credentials;
mod environment;
mod failure;
mod file;
mod http;
mod metadata;
mod own;
mod places;
mod rds;
mod sign;
#[cfg(test)]
mod tests;
mod xml;

use super::provider::{Answer, Category, Lease, Provider, Subject};
use super::running::Running;
use crate::dns::Dns;
use batch::Asker;
use environment::Environment;
use http::{Client, Patience};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a batch may take from its request on: less than the manager's patience, which is 10 s.
const PATIENCE: Duration = Duration::from_secs(8);

/// What the call under way may take at the end; longer than the longest is allowed, which is credential_process.
const GRACE: Duration = Duration::from_secs(5);

/// The provider.
pub struct Aws {
    shared: Arc<Shared>,
    thread: Mutex<Option<Running>>,
    grace: Duration,
}

/// What the thread and its owner share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Requests that nobody has begun with, and when each must have been answered.
    waiting: BTreeMap<Subject, (Lease, Instant)>,
    /// Those that are being asked about.
    current: BTreeMap<Subject, Lease>,
    stopping: bool,
}

impl Aws {
    /// Starts the thread. The process's environment says who pointsman is, and where AWS is.
    pub fn start(dns: &Arc<Dns>) -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let client = Client::new(dns, ureq::Proxy::try_from_env(), Patience::default(), Arc::clone(&shared));
        Self::start_with(Asker::new(Environment::of_process(), client, Arc::clone(&shared)), shared)
    }
    fn start_with(mut asker: Asker, shared: Arc<Shared>) -> std::io::Result<Self> {
        let its = Arc::clone(&shared);
        let thread = Running::start("locality-aws", move || its.run(&mut asker))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)), grace: GRACE })
    }
}

impl Provider for Aws {
    fn name(&self) -> &str {
        "aws"
    }
    fn shows_table(&self) -> bool {
        true
    }
    fn request(&self, leases: Vec<Lease>) {
        let until = Instant::now() + PATIENCE;
        let mut state = self.shared.state.lock();
        if state.stopping {
            return;
        }
        // Who is asked about anew is not waited for by the question before any more.
        let superseded: Vec<_> = leases
            .into_iter()
            .filter_map(|lease| state.waiting.insert(lease.subject().clone(), (lease, until)))
            .collect();
        drop(state);
        drop(superseded);
        self.shared.changed.notify_all();
    }
    fn shut_down(&self) {
        let mut state = self.shared.state.lock();
        state.stopping = true;
        let unanswered = (std::mem::take(&mut state.waiting), std::mem::take(&mut state.current));
        drop(state);
        drop(unanswered);
        self.shared.changed.notify_all();
        // A call that is under way ends by its own deadline, but a file may be on a server that is gone.
        let thread = self.thread.lock().take();
        if thread.is_some_and(|thread| !thread.join(Instant::now() + self.grace)) {
            log::error!(
                "locality: what is asked of AWS has not come to an end in {} s; is a file of credentials on a server that is gone?",
                self.grace.as_secs()
            );
        }
    }
}

impl Drop for Aws {
    fn drop(&mut self) {
        self.shut_down();
    }
}

impl Shared {
    fn run(&self, asker: &mut Asker) {
        while let Some((subjects, until)) = self.next() {
            asker.ask(&subjects, until);
            // What is left of it, if anything: dropped, it has answered.
            let left = std::mem::take(&mut self.state.lock().current);
            drop(left);
        }
    }
    /// The next batch; `None` at the end.
    fn next(&self) -> Option<(Vec<Subject>, Instant)> {
        loop {
            let mut state = self.state.lock();
            while state.waiting.is_empty() && !state.stopping {
                self.changed.wait(&mut state);
            }
            if state.stopping {
                return None;
            }
            let (now, waiting) = (Instant::now(), std::mem::take(&mut state.waiting));
            // Whose time is over takes none from the others.
            let (asked, late): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|(_, (_, until))| *until > now);
            let until = asked.iter().map(|(_, (_, until))| *until).min();
            state.current = asked.into_iter().map(|(subject, (lease, _))| (subject, lease)).collect();
            let subjects = state.current.keys().cloned().collect();
            drop(state);
            for (_, (lease, _)) in late {
                // Closed: nobody waits for it.
                let _ = lease.answer(Err(Category::Timeout));
            }
            if let Some(until) = until {
                return Some((subjects, until));
            }
        }
    }
    /// Answers for a subject, if that has not been done yet.
    fn answer(&self, subject: &Subject, answer: &Answer) {
        let lease = self.state.lock().current.remove(subject);
        if let Some(lease) = lease {
            // Closed: nobody waits for it.
            let _ = lease.answer(answer.clone());
        }
    }
    /// Waits, and says whether to go on: not at the end.
    fn pause(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.state.lock();
        while !state.stopping {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        !state.stopping
    }
    fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }
}
