//! The scheduler thread and its probe threads.
//!
//! There are two crews. The first performs checks of servers that were there the last time, the second those of servers that were
//! not, which usually take as long as they may. So servers that are down take no thread from the others, however many they are.

use super::checks::{Checks, Job};
use super::kind::{Kind, Timetable};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How soon a change of variables is noticed.
const NAP: Duration = Duration::from_millis(50);
/// A probe thread that had nothing to do for as long ends.
const IDLE: Duration = Duration::from_secs(10);

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
    queue: Receiver<Job>,
    /// Who takes the checks of servers that were found to be down since these were queued.
    others: Option<Desk>,
    /// Checks that are queued or under way.
    busy: AtomicUsize,
    stopping: AtomicBool,
}

/// Where a crew takes checks. Its threads end when the last of these has gone.
#[derive(Clone)]
struct Desk {
    crew: Arc<Crew>,
    jobs: Sender<Job>,
}

impl Desk {
    fn queue(&self, job: Job) {
        self.crew.busy.fetch_add(1, Ordering::AcqRel);
        // Cannot fail: the crew holds a receiver.
        let _ = self.jobs.send(job);
    }
}

/// A crew as the scheduler sees it.
struct Staff {
    desk: Desk,
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
        Some(retrying.desk.clone()),
    );
    let mut table = Timetable::default();
    let mut enabled = true;
    let mut placements = 0;
    loop {
        let variables = checks.config().variables();
        let mut next = None;
        if variables.monitor_enabled {
            let mut take_on = |jobs: Vec<Job>| {
                let (late, others) = jobs.into_iter().partition(|job| checks.may_take_long(job));
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
        staff.desk.crew.stopping.store(true, Ordering::Release);
    }
    checks.probes().cut();
    // In this order: the first hold a desk of the second.
    probing.dismiss();
    retrying.dismiss();
}

impl Staff {
    fn new(
        name: &'static str,
        checks: &Arc<Checks>,
        workers: &Arc<Workers>,
        count: fn(&Workers) -> &AtomicUsize,
        limits: fn(&admin::Variables) -> (usize, usize),
        others: Option<Desk>,
    ) -> Self {
        let (jobs, queue) = unbounded();
        let crew = Crew {
            name,
            checks: Arc::clone(checks),
            workers: Arc::clone(workers),
            count,
            limits,
            queue,
            others,
            busy: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        };
        Self { desk: Desk { crew: Arc::new(crew), jobs }, threads: Vec::new() }
    }
    /// Queues checks, and sees to it that there are threads for them.
    fn take_on(&mut self, jobs: Vec<Job>) {
        jobs.into_iter().for_each(|job| self.desk.queue(job));
        let crew = &self.desk.crew;
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
    /// Ends and joins the threads.
    fn dismiss(self) {
        drop(self.desk);
        self.threads.into_iter().flatten().for_each(join);
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
        match crew.queue.recv_timeout(IDLE) {
            Ok(job) => {
                // Counted when it was queued.
                let _done = Counted(&crew.busy);
                if crew.stopping.load(Ordering::Acquire) {
                    return;
                }
                match &crew.others {
                    Some(others) if crew.checks.may_take_long(&job) => others.queue(job),
                    _ => crew.checks.perform(&job),
                }
                if index >= limits().0 {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) if index < limits().1 => {}
            Err(_) => return,
        }
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        log::error!("a thread of the monitor panicked");
    }
}
