//! The scheduler thread and its probe threads.

use super::checks::{Checks, Job};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How soon a change of variables is noticed.
const NAP: Duration = Duration::from_millis(50);
/// A probe thread that had nothing to do for as long ends.
const IDLE: Duration = Duration::from_secs(10);

/// What the scheduler and its probe threads share.
struct Crew {
    checks: Arc<Checks>,
    queue: Receiver<Job>,
    stopping: AtomicBool,
}

/// Runs until `stop` is disconnected, then joins the probe threads.
pub fn run(checks: Arc<Checks>, stop: &Receiver<()>) {
    let (jobs, queue) = unbounded();
    let crew = Arc::new(Crew { checks, queue, stopping: AtomicBool::new(false) });
    let mut threads: Vec<Option<JoinHandle<()>>> = Vec::new();
    let mut version = 0;
    let mut next = Instant::now();
    loop {
        let config = crew.checks.config();
        let now = Instant::now();
        if config.variables_version() != version {
            version = config.variables_version();
            next = now;
        }
        if now >= next {
            next = now + config.variables().monitor_read_only_interval;
            cycle(&crew, &jobs, &mut threads);
        }
        let nap = next.saturating_duration_since(Instant::now()).min(NAP);
        if stop.recv_timeout(nap) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    crew.stopping.store(true, Ordering::Release);
    drop(jobs);
    crew.checks.probes().cut();
    threads.into_iter().flatten().for_each(join);
}

fn cycle(crew: &Arc<Crew>, jobs: &Sender<Job>, threads: &mut Vec<Option<JoinHandle<()>>>) {
    crew.checks.probes().sweep();
    let variables = crew.checks.config().variables();
    if variables.monitor_enabled {
        for job in crew.checks.due() {
            // Cannot fail: the crew holds a receiver.
            let _ = jobs.send(job);
        }
    }
    let wanted = crew.checks.busy().min(variables.monitor_threads_max);
    if threads.len() < wanted {
        threads.resize_with(wanted, || None);
    }
    for (index, thread) in threads.iter_mut().enumerate() {
        if thread.as_ref().is_some_and(JoinHandle::is_finished) {
            thread.take().into_iter().for_each(join);
        }
        if thread.is_none() && index < wanted {
            *thread = spawn(crew, index);
        }
    }
}

fn spawn(crew: &Arc<Crew>, index: usize) -> Option<JoinHandle<()>> {
    let crew = Arc::clone(crew);
    let name = format!("monitor-probe-{}", index + 1);
    match std::thread::Builder::new().name(name).spawn(move || probe(&crew, index)) {
        Ok(thread) => Some(thread),
        Err(error) => {
            log::error!("cannot start a thread for checks, which are late therefore: {error}");
            None
        }
    }
}

/// Performs checks until there are none for a while, or the thread is one too many.
fn probe(crew: &Crew, index: usize) {
    while let Ok(job) = crew.queue.recv_timeout(IDLE) {
        if crew.stopping.load(Ordering::Acquire) {
            return;
        }
        crew.checks.perform(&job);
        if index >= crew.checks.config().variables().monitor_threads_max {
            return;
        }
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        log::error!("a thread of the monitor panicked");
    }
}
