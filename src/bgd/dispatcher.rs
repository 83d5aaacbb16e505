//! Keeps one worker for each active deployment that has an eligible blue writer.

use super::Effects;
use super::worker::{End, Worker};
use crate::hostgroups::{HostgroupId, Hostgroups, ServerStatus};
use admin::rows::BgdHostgroupRow;
use crossbeam_channel::{Sender, bounded};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long a deployment waits for another worker after its last one panicked or could not be started.
pub(super) const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The dispatcher thread and its workers. It sleeps until its bell rings: placement has changed, a worker has ended, or it is to stop.
pub struct Dispatcher {
    stop: Arc<AtomicBool>,
    bell: Sender<()>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Dispatcher {
    /// Starts the dispatcher.
    pub fn start(effects: Effects) -> std::io::Result<Self> {
        let (bell, rung) = bounded(1);
        let stop = Arc::new(AtomicBool::new(false));
        effects.backends.ring(bell.clone());
        let mut workers = Workers::new(effects, bell.clone());
        let stopped = Arc::clone(&stop);
        let run = move || {
            while !stopped.load(Ordering::Acquire) {
                match workers.attend(Instant::now()) {
                    Some(due) => drop(rung.recv_deadline(due)),
                    None => drop(rung.recv()),
                }
            }
            workers.stop();
        };
        let thread = Builder::new().name("bgd-dispatch".into()).spawn(run)?;
        Ok(Self { stop, bell, thread: Mutex::new(Some(thread)) })
    }
    /// Stops it: every worker rolls back its active state and is joined.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        // Full, it rings already.
        let _ = self.bell.try_send(());
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            log::error!("the blue/green dispatcher panicked");
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An active deployment as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    row: BgdHostgroupRow,
    checksum: u64,
    /// It has a blue writer that is not OFFLINE_*.
    eligible: bool,
    /// [`crate::hostgroups::Deployment::since`]: another one is another deployment.
    since: u64,
}

impl Wanted {
    /// Every active deployment, by writer hostgroup.
    pub(super) fn all(hostgroups: &Hostgroups) -> BTreeMap<HostgroupId, Self> {
        let active = hostgroups.deployments().iter().filter(|(_, deployment)| deployment.row.active);
        let wanted = active.map(|(id, deployment)| {
            let row = deployment.row.clone();
            let (eligible, since) = (hostgroups.has_writer(*id), deployment.since);
            (*id, Self { checksum: checksum(hostgroups, &row), row, eligible, since })
        });
        wanted.collect()
    }
}

/// A change of it is a change of the deployment: its row and its eligible servers as configured, wherever they have been moved
/// since. Weight and comments do not count (contract: "Deployment Checksum").
fn checksum(hostgroups: &Hostgroups, row: &BgdHostgroupRow) -> u64 {
    let mut hash = DefaultHasher::new();
    let green = (row.green_writer_hostgroup, row.green_reader_hostgroup);
    (row.writer_hostgroup, row.reader_hostgroup, green, row.writer_is_also_reader).hash(&mut hash);
    (row.check_interval_ms, row.check_timeout_ms).hash(&mut hash);
    let blue = [Some(row.writer_hostgroup), Some(row.reader_hostgroup)];
    for hostgroup in blue.into_iter().chain([green.0, green.1]).flatten() {
        for (endpoint, server) in hostgroups.configured(hostgroup) {
            if !ServerStatus::from(server.status).is_offline() {
                (hostgroup, endpoint, server.use_ssl).hash(&mut hash);
            }
        }
    }
    hash.finish()
}

/// The workers there are, and those there ought to be.
pub(super) struct Workers {
    effects: Effects,
    /// Rung by workers that end.
    bell: Sender<()>,
    generation: Option<u64>,
    loads: u64,
    wanted: BTreeMap<HostgroupId, Wanted>,
    pub(super) running: BTreeMap<HostgroupId, Running>,
    /// Deployments whose last worker failed, and when they get another.
    failed: BTreeMap<HostgroupId, Instant>,
}

/// A worker, and what it was told.
pub(super) struct Running {
    pub(super) worker: Worker,
    checksum: u64,
    since: u64,
    /// The last LOAD that it was told of.
    loads: u64,
}

impl Workers {
    /// None yet.
    pub(super) fn new(effects: Effects, bell: Sender<()>) -> Self {
        Self {
            effects,
            bell,
            generation: None,
            loads: 0,
            wanted: BTreeMap::new(),
            running: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Does what is to be done now. Returns when there will be more, if nothing happens before.
    pub(super) fn attend(&mut self, now: Instant) -> Option<Instant> {
        self.look();
        self.reap(now);
        self.dismiss();
        self.staff(now);
        self.failed.values().min().copied()
    }

    /// Takes up a new generation. A deployment without writer is looked at each time, since the monitor may place one.
    fn look(&mut self) {
        let Self { wanted, generation, loads, .. } = self;
        self.effects.backends.read(|hostgroups| {
            *loads = hostgroups.loads();
            if *generation != Some(hostgroups.generation()) {
                *generation = Some(hostgroups.generation());
                *wanted = Wanted::all(hostgroups);
            }
            for (id, wanted) in wanted.iter_mut().filter(|(_, wanted)| !wanted.eligible) {
                wanted.eligible = hostgroups.has_writer(*id);
            }
        });
    }

    fn reap(&mut self, now: Instant) {
        let ended: Vec<_> =
            self.running.iter().filter(|(_, running)| running.worker.ended()).map(|(id, _)| *id).collect();
        for id in ended {
            if self.running.remove(&id).is_some_and(|running| running.worker.join() == End::Panicked) {
                self.failed.insert(id, now + RESTART_DELAY);
            }
        }
    }

    fn dismiss(&self) {
        for (id, running) in &self.running {
            let followed = |wanted: &Wanted| wanted.eligible && wanted.since == running.since;
            let needed = self.wanted.get(id).is_some_and(followed);
            if !needed && !running.worker.stopping() {
                log::info!(
                    "blue/green deployment {id}: disabled, removed or without blue writer; its worker ends"
                );
                running.worker.stop();
            }
        }
    }

    /// Starts workers, hands changed configurations on and tells of LOADs that changed nothing. A worker that is ending is waited for first.
    fn staff(&mut self, now: Instant) {
        self.failed.retain(|_, until| *until > now);
        for (id, wanted) in self.wanted.iter().filter(|(_, wanted)| wanted.eligible) {
            match self.running.get_mut(id) {
                Some(running) if running.worker.stopping() => {}
                Some(running) => {
                    if running.checksum != wanted.checksum {
                        running.checksum = wanted.checksum;
                        running.worker.refresh(wanted.row.clone());
                    } else if running.loads != self.loads {
                        running.worker.reload();
                    }
                    running.loads = self.loads;
                }
                None if self.failed.contains_key(id) => {}
                None => match Worker::start(&self.effects, wanted.row.clone(), self.bell.clone()) {
                    Ok(worker) => {
                        log::info!("blue/green deployment {id}: its worker starts");
                        let Wanted { checksum, since, .. } = *wanted;
                        let loads = self.loads;
                        self.running.insert(*id, Running { worker, checksum, since, loads });
                    }
                    Err(error) => {
                        log::error!("blue/green deployment {id}: cannot start its worker: {error}");
                        self.failed.insert(*id, now + RESTART_DELAY);
                    }
                },
            }
        }
    }

    /// Ends them all.
    pub(super) fn stop(&mut self) {
        self.running.values().for_each(|running| running.worker.stop());
        while let Some((_, running)) = self.running.pop_first() {
            running.worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::config;
    use super::*;
    use crate::hostgroups::Endpoint;
    use crate::testing::server;
    use admin::rows::{ConfiguredStatus, ServersConfig};

    fn wanted(config: &ServersConfig) -> BTreeMap<HostgroupId, Wanted> {
        let mut hostgroups = Hostgroups::default();
        hostgroups.load(config);
        Wanted::all(&hostgroups)
    }

    #[test]
    fn the_checksum_follows_what_a_worker_depends_on_and_nothing_else() {
        let base = wanted(&config());
        let changed = |change: fn(&mut ServersConfig)| {
            let mut config = config();
            change(&mut config);
            wanted(&config)[&10].checksum != base[&10].checksum
        };
        assert!(!changed(|_| {}));
        assert!(!changed(|config| config.servers[0].weight = 7));
        assert!(!changed(|config| config.servers[0].comment = "x".into()));
        assert!(!changed(|config| config.bgd[0].comment = "x".into()));
        assert!(!changed(|config| config.servers.push(server(99, "other.x"))));
        assert!(!changed(|config| config.servers[0].status = ConfiguredStatus::Shunned));
        assert!(changed(|config| config.servers[0].use_ssl = true));
        assert!(changed(|config| config.servers[0].port = 3307));
        assert!(changed(|config| config.servers[1].status = ConfiguredStatus::OfflineSoft));
        assert!(changed(|config| config.servers[1].hostgroup_id = 10));
        assert!(changed(|config| config.servers.push(server(30, "db-green-1.x"))));
        assert!(changed(|config| config.bgd[0].check_timeout_ms = 900));
        assert!(changed(|config| config.bgd[0].writer_is_also_reader = true));
        assert!(changed(|config| config.bgd[0].green_reader_hostgroup = Some(41)));
    }

    #[test]
    fn the_checksum_does_not_follow_placement() {
        let mut hostgroups = Hostgroups::default();
        hostgroups.load(&config());
        let before = Wanted::all(&hostgroups);
        hostgroups.demote(10, 20, &Endpoint::new("db.x", 3306));
        hostgroups.add_discovered(30, &Endpoint::new("db-green-1.x", 3306));
        assert_eq!(Wanted::all(&hostgroups), before);
    }

    #[test]
    fn only_active_deployments_are_wanted_and_only_those_with_a_writer_staffed() {
        let mut config = config();
        assert!(wanted(&config)[&10].eligible);
        config.servers[0].status = ConfiguredStatus::OfflineSoft;
        assert!(!wanted(&config)[&10].eligible);
        config.servers.clear();
        assert!(!wanted(&config)[&10].eligible);
        config.bgd[0].active = false;
        assert!(wanted(&config).is_empty());
    }
}
