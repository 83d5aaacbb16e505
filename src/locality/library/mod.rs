//! A provider in a shared object: `--locality-provider library:PATH`.
//!
//! ```text
//! create ── request, request, … ── shut_down ── destroy, unloading
//! ```
//!
//! Whoever calls one of these functions has the instance meanwhile, so that they are never called at the same time. A function that does not
//! come back keeps it for good: nothing else is called then, and the library stays loaded until the process ends.

mod ffi;
mod leases;

use super::provider::{Lease, Provider};
use ffi::Instance;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::thread::Builder;
use std::time::{Duration, Instant as Time};

/// What loading and create may take.
const START: Duration = Duration::from_secs(10);
/// What a request under way and shut_down may take together, and what destroy may take.
const GRACE: Duration = Duration::from_secs(5);

/// Why a library is not used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the locality provider {path}: {problem}")]
pub struct Unusable {
    path: PathBuf,
    problem: Problem,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Library(#[from] ffi::Problem),
    #[error(transparent)]
    Path(#[from] io::Error),
    #[error("it is not ready after {} s; see what it waits for, or start without it", .0.as_secs())]
    Late(Duration),
}

/// A library that is loaded.
pub struct Library {
    name: String,
    shows_table: bool,
    grace: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    /// It can be asked.
    Ready(Instance),
    /// One of its functions is under way.
    Busy,
    /// It was told to end, and can be destroyed.
    Ended(Instance),
    /// One of its functions has not come back in time.
    Stuck,
}

impl State {
    fn take(&mut self) -> Option<Instance> {
        match std::mem::replace(self, Self::Busy) {
            Self::Ready(instance) => Some(instance),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl Library {
    /// Loads a library and makes it ready. A path that is not absolute is relative to the working directory.
    pub fn open(path: &Path, config: &str) -> Result<Self, Unusable> {
        Self::open_within(path, config, START, GRACE)
    }
    fn open_within(path: &Path, config: &str, start: Duration, grace: Duration) -> Result<Self, Unusable> {
        let unusable = |problem| Unusable { path: path.to_owned(), problem };
        let path = absolute(path).map_err(|error| unusable(error.into()))?;
        let config = config.to_owned();
        let opened = in_time("locality-start", Time::now() + start, move || Instance::open(&path, &config));
        let instance = match opened {
            Ok(Some(Ok(instance))) => instance,
            Ok(Some(Err(problem))) => return Err(unusable(problem.into())),
            Ok(None) => return Err(unusable(Problem::Late(start))),
            Err(error) => return Err(unusable(error.into())),
        };
        let (name, shows_table) = (instance.name.clone(), instance.shows_table);
        let state = Mutex::new(State::Ready(instance));
        Ok(Self { name, shows_table, grace, state, changed: Condvar::new() })
    }
    /// Also when it has been given up: then the instance is dropped, which leaves it loaded.
    fn put_back(&self, instance: Instance) {
        let mut state = self.state.lock();
        if matches!(*state, State::Busy) {
            *state = State::Ready(instance);
        }
        drop(state);
        self.changed.notify_all();
    }
    /// The instance, once no function of it is under way.
    fn wait(&self, deadline: Time) -> Option<Instance> {
        let mut state = self.state.lock();
        while matches!(*state, State::Busy) {
            if self.changed.wait_until(&mut state, deadline).timed_out() && matches!(*state, State::Busy) {
                *state = State::Stuck;
            }
        }
        state.take()
    }
}

impl Provider for Library {
    fn name(&self) -> &str {
        &self.name
    }
    fn shows_table(&self) -> bool {
        self.shows_table
    }
    fn request(&self, leases: Vec<Lease>) {
        // Ended, or stuck: dropped leases are answered.
        let Some(mut instance) = self.state.lock().take() else { return };
        let handles: Vec<_> = leases.into_iter().filter_map(ffi::lend).collect();
        if !handles.is_empty() {
            instance.request(&handles);
        }
        self.put_back(instance);
    }
    fn shut_down(&self) {
        let deadline = Time::now() + self.grace;
        let Some(mut instance) = self.wait(deadline) else { return };
        let told = in_time("locality-end", deadline, move || {
            instance.shut_down();
            instance
        });
        *self.state.lock() = match told {
            Ok(Some(instance)) => State::Ended(instance),
            // Without a thread it is not told, and so must not be destroyed.
            Ok(None) | Err(_) => State::Stuck,
        };
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // It has been told, unless the daemon has not even started.
        self.shut_down();
        let destroyed = match std::mem::replace(self.state.get_mut(), State::Stuck) {
            State::Ended(instance) => {
                let destroyed = in_time("locality-end", Time::now() + self.grace, move || instance.destroy());
                destroyed.is_ok_and(|ended| ended.is_some())
            }
            _ => false,
        };
        if !destroyed {
            log::error!(
                "locality: provider {} has not come back from one of its functions in {} s; it stays loaded until the process ends",
                self.name,
                self.grace.as_secs()
            );
        }
    }
}

/// Calls what may not come back, on a thread of its own, which is joined; or left, and `None` returned, if it takes too long. What it
/// returns later is dropped there.
fn in_time<T: Send + 'static>(
    name: &str,
    deadline: Time,
    call: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    // Without room, so that what nobody waits for does not get lost in between.
    let (sender, receiver) = crossbeam_channel::bounded(0);
    let thread = Builder::new().name(name.to_owned()).spawn(move || {
        let _ = sender.send(call());
    })?;
    let returned = receiver.recv_deadline(deadline).ok();
    if returned.is_some() {
        // It has nothing left to do. A panic in it would have kept it from sending.
        let _ = thread.join();
    }
    Ok(returned)
}

#[cfg(test)]
mod tests;
