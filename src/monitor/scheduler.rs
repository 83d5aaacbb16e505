//! The scheduler thread and its probe threads.
//!
//! There are two crews. The first performs checks of servers that were there the last time, the second those of servers that were
//! not, which usually take as long as they may. So servers that are down take no thread from the others, however many they are.
//! One that has just gone down is not waited for long while others wait: its check is handed to the second crew, which prefers
//! servers that have failed less.

use super::checks::Checks;
use super::job::Job;
use super::kind::{Cycles, Kind, Timetable};
use super::queue::{Queue, Taken};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How soon a change of variables is noticed.
const NAP: Duration = Duration::from_millis(50);
/// A probe thread that had nothing to do for as long ends.
const IDLE: Duration = Duration::from_secs(10);
/// How long the last in line waits for those before it, if none of these servers answers.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
/// What any server is given to answer.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(10);

/// How many probe threads there are, for the statistics.
#[derive(Debug, Default)]
pub struct Workers {
    /// Threads that check servers.
    pub probing: AtomicUsize,
    /// Threads that check servers which were not there the last time.
    pub retrying: AtomicUsize,
    /// Threads started so far.
    pub started: AtomicUsize,
}

/// What a crew's threads share.
struct Crew {
    name: &'static str,
    checks: Arc<Checks>,
    workers: Arc<Workers>,
    /// Where the crew's threads are counted.
    count: fn(&Workers) -> &AtomicUsize,
    /// Most threads, and how many of them stay when idle.
    limits: fn(&admin::Variables) -> (usize, usize),
    queue: Queue<Job>,
    /// Who takes the checks of servers that were found to be down or slow since these were queued.
    others: Option<Arc<Crew>>,
    /// Checks that are queued or under way.
    busy: AtomicUsize,
}

impl Crew {
    fn queue(&self, job: Job) {
        self.busy.fetch_add(1, Ordering::AcqRel);
        let rank = self.checks.may_take_long(&job).unwrap_or(0);
        self.queue.push(rank, job);
    }
    /// How long a server is waited for while others wait; `None` if none do, or this crew waits as long as it takes.
    fn patience(&self) -> Option<Duration> {
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        if self.others.is_none() || waiting == 0 {
            return None;
        }
        let (most, _) = (self.limits)(&self.checks.config().variables());
        let threads = u32::try_from(most).unwrap_or(u32::MAX);
        Some((LONGEST_WAIT.saturating_mul(threads) / waiting).max(SHORTEST_PATIENCE))
    }
}

/// A crew as the scheduler sees it.
struct Staff {
    crew: Arc<Crew>,
    threads: Vec<Option<JoinHandle<()>>>,
}

/// Runs until `stop` is disconnected, then joins the probe threads.
pub fn run(checks: &Arc<Checks>, workers: &Arc<Workers>, stop: &Receiver<()>) {
    let mut retrying = Staff::new(
        "monitor-retry",
        checks,
        workers,
        |workers| &workers.retrying,
        |variables| (variables.monitor_threads_max / 2, 0),
        None,
    );
    let mut probing = Staff::new(
        "monitor-probe",
        checks,
        workers,
        |workers| &workers.probing,
        |variables| {
            let most = variables.monitor_threads_max.div_ceil(2);
            (most, variables.monitor_threads_min.min(most))
        },
        Some(Arc::clone(&retrying.crew)),
    );
    let mut table = Timetable::default();
    let mut cycles = Cycles::default();
    let mut enabled = true;
    let mut placements = 0;
    loop {
        let variables = checks.config().variables();
        let mut next = None;
        if variables.monitor_enabled {
            let mut take_on = |jobs: Vec<Job>| {
                let (late, others) = jobs.into_iter().partition(|job| checks.may_take_long(job).is_some());
                probing.take_on(others);
                retrying.take_on(late);
            };
            // Asked for first: what comes later is seen the next time.
            let latest = checks.placements();
            for kind in table.due(&variables, Instant::now()) {
                if kind == Kind::Ping {
                    checks.probes().sweep();
                }
                take_on(checks.due(kind));
                if kind == Kind::ReadOnly && cycles.discovers(variables.monitor_topology_discovery_interval) {
                    take_on(checks.discoveries());
                }
            }
            if std::mem::replace(&mut placements, latest) != latest {
                take_on(checks.of_newcomers());
            }
            next = table.next();
        } else if enabled {
            checks.forget();
            table.reset();
        }
        enabled = variables.monitor_enabled;
        drop(variables);
        let nap = next.map_or(NAP, |next| next.saturating_duration_since(Instant::now()).min(NAP));
        if stop.recv_timeout(nap) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    for staff in [&probing, &retrying] {
        staff.crew.queue.close();
    }
    checks.probes().cut();
    for staff in [probing, retrying] {
        staff.threads.into_iter().flatten().for_each(join);
    }
}

impl Staff {
    fn new(
        name: &'static str,
        checks: &Arc<Checks>,
        workers: &Arc<Workers>,
        count: fn(&Workers) -> &AtomicUsize,
        limits: fn(&admin::Variables) -> (usize, usize),
        others: Option<Arc<Crew>>,
    ) -> Self {
        let crew = Crew {
            name,
            checks: Arc::clone(checks),
            workers: Arc::clone(workers),
            count,
            limits,
            queue: Queue::default(),
            others,
            busy: AtomicUsize::new(0),
        };
        Self { crew: Arc::new(crew), threads: Vec::new() }
    }
    /// Queues checks, and sees to it that there are threads for them.
    fn take_on(&mut self, jobs: Vec<Job>) {
        let crew = &self.crew;
        jobs.into_iter().for_each(|job| crew.queue(job));
        let (most, _) = (crew.limits)(&crew.checks.config().variables());
        let wanted = crew.busy.load(Ordering::Acquire).min(most);
        if self.threads.len() < wanted {
            self.threads.resize_with(wanted, || None);
        }
        for (index, thread) in self.threads.iter_mut().enumerate() {
            if thread.as_ref().is_some_and(JoinHandle::is_finished) {
                thread.take().into_iter().for_each(join);
            }
            if thread.is_none() && index < wanted {
                *thread = spawn(crew, index);
            }
        }
    }
}

fn spawn(crew: &Arc<Crew>, index: usize) -> Option<JoinHandle<()>> {
    let shared = Arc::clone(crew);
    let name = format!("{}-{}", crew.name, index + 1);
    match std::thread::Builder::new().name(name).spawn(move || probe(&shared, index)) {
        Ok(thread) => {
            crew.workers.started.fetch_add(1, Ordering::Relaxed);
            Some(thread)
        }
        Err(error) => {
            log::error!("cannot start a thread for checks, which are late therefore: {error}");
            None
        }
    }
}

/// Counts while it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::AcqRel);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Performs checks until the thread is one too many, or has had none for a while and need not stay.
fn probe(crew: &Crew, index: usize) {
    let _counted = Counted::new((crew.count)(&crew.workers));
    let limits = || (crew.limits)(&crew.checks.config().variables());
    loop {
        match crew.queue.take(IDLE) {
            Taken::Next(job) => {
                // Counted when it was queued.
                let _done = Counted(&crew.busy);
                match &crew.others {
                    Some(others) if crew.checks.may_take_long(&job).is_some() => others.queue(job),
                    others => {
                        let done = crew.checks.perform(&job, crew.patience());
                        if let (false, Some(others)) = (done, others) {
                            others.queue(job);
                        }
                    }
                }
                if index >= limits().0 {
                    return;
                }
            }
            Taken::Nothing if index < limits().1 => {}
            Taken::Nothing | Taken::Closed => return,
        }
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        log::error!("a thread of the monitor panicked");
    }
}
