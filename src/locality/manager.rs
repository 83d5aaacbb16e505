//! The thread that keeps what is known and publishes, and the one that asks: a provider that does not return, such as a file on a
//! server that is gone, keeps nothing waiting but the questions to itself.

use super::groups::{self, Group, subject_of};
use super::ledger::Ledger;
use super::provider::{Category, Closed, Inbox, Lease, Provider, Subject, Ticket};
use super::report::{self, Report};
use super::running::Running;
use super::snapshot::Snapshot;
use crate::dns::Dns;
use crate::hostgroups::Endpoint;
use crate::pool::Backends;
use crossbeam_channel::{Sender, TrySendError, bounded};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Hostgroups are looked at this often; LOAD has them looked at sooner.
const LOOK: Duration = Duration::from_secs(1);
/// What a provider gets to return from a request when the daemon ends, before it is told so.
const RETURN: Duration = Duration::from_secs(1);
/// What it gets after that to give its leases back.
const GRACE: Duration = Duration::from_secs(5);
/// So many batches wait for a provider that does not return from the one before.
const BATCHES: usize = 16;

/// Locality awareness: off until [`Locality::enable`].
pub struct Locality {
    shared: Arc<Shared>,
    manager: Mutex<Option<Running>>,
    /// Calls the provider.
    asker: Mutex<Option<Running>>,
}

struct Shared {
    backends: Arc<Backends>,
    dns: Arc<Dns>,
    provider: Option<Arc<dyn Provider>>,
    inbox: Arc<Inbox>,
    /// To the asker.
    batches: Mutex<Option<Sender<Vec<Lease>>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    enabled: bool,
    stopping: bool,
    ledger: Ledger,
}

impl Locality {
    /// Without a provider every subject is `provider_unavailable`, and all servers stay neutral.
    pub fn new(backends: Arc<Backends>, dns: Arc<Dns>, provider: Option<Arc<dyn Provider>>) -> Self {
        let (inbox, batches, state) = Default::default();
        let shared = Arc::new(Shared { backends, dns, provider, inbox, batches, state });
        Self { shared, manager: Mutex::default(), asker: Mutex::default() }
    }
    /// Starts the threads.
    pub fn start(&self) -> std::io::Result<()> {
        if let Some(provider) = self.shared.provider.clone() {
            let (send, batches) = bounded::<Vec<Lease>>(BATCHES);
            let inbox = Arc::clone(&self.shared.inbox);
            // What still waits when the daemon ends goes back unasked.
            let ask = move || {
                batches.iter().take_while(|_| inbox.is_open()).for_each(|batch| provider.request(batch));
            };
            *self.asker.lock() = Some(Running::start("locality-ask", ask)?);
            *self.shared.batches.lock() = Some(send);
        }
        let shared = Arc::clone(&self.shared);
        *self.manager.lock() = Some(Running::start("locality", move || shared.run())?);
        Ok(())
    }
    /// mysql-aws_locality_awareness. Once it is off every choice goes by the configured weights, nobody is asked, and answers under
    /// way are ignored.
    pub fn enable(&self, enabled: bool) {
        let mut state = self.shared.state.lock();
        if state.enabled == enabled {
            return;
        }
        state.enabled = enabled;
        if !enabled {
            state.ledger.keep(&Default::default());
            self.shared.backends.set_locality(Snapshot::default());
        }
        drop(state);
        match enabled {
            true => log::info!(
                "locality: switched on; servers are chosen by weight and place where a hostgroup has a policy"
            ),
            false => log::info!("locality: switched off; servers are chosen by their weights alone"),
        }
        self.shared.inbox.rouse();
    }
    /// Hostgroups have been loaded.
    pub fn look(&self) {
        self.shared.inbox.rouse();
    }
    /// Whether stats_mysql_aws_locality is to be there.
    pub fn shows_table(&self) -> bool {
        self.shared.provider.as_ref().is_some_and(|provider| provider.shows_table())
    }
    /// What each server's weight is multiplied by, and why.
    pub fn report(&self) -> Vec<Report> {
        let groups = self.shared.groups();
        let state = self.shared.state.lock();
        report::of(&groups, state.enabled, &state.ledger, Instant::now())
    }
    /// Ends it: no more work for the provider, its answers under way are let end, the threads are joined, the provider let go.
    /// A provider that keeps a lease, or does not return, stays in memory, since it might still answer.
    pub fn stop(&self) {
        self.shared.inbox.close();
        self.shared.state.lock().stopping = true;
        self.shared.inbox.rouse();
        *self.shared.batches.lock() = None;
        let (manager, asker) = (self.manager.lock().take(), self.asker.lock().take());
        // No request follows the word that it is to end.
        if let Some(asker) = &asker {
            asker.ends_by(Instant::now() + RETURN);
        }
        let provider = self.shared.provider.as_ref();
        if let Some(provider) = provider {
            provider.shut_down();
        }
        let deadline = Instant::now() + GRACE;
        let returned = self.shared.inbox.drain(deadline);
        // Both, whatever comes of the first.
        let joined = [manager, asker].map(|thread| thread.is_none_or(|thread| thread.join(deadline)));
        let joined = joined.into_iter().all(|joined| joined);
        if let Some(provider) = provider.filter(|_| !returned || !joined) {
            log::error!(
                "locality: provider {} keeps questions {} s after it was told to end; it stays loaded until the process ends",
                provider.name(),
                GRACE.as_secs()
            );
            std::mem::forget(Arc::clone(provider));
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut until = None;
        // Without a provider all that is asked fails alike: said once each time that it is switched on.
        let mut unavailable = false;
        loop {
            let answers = self.inbox.wait(until);
            let groups = self.groups();
            let now = Instant::now();
            let mut state = self.state.lock();
            if state.stopping {
                return;
            }
            if !state.enabled {
                (until, unavailable) = (None, false);
                continue;
            }
            for (ticket, answer) in answers {
                match state.ledger.answer(ticket, answer, now, fastrand::f64()) {
                    Some((_, Category::ProviderUnavailable)) if unavailable => {}
                    Some((_, Category::ProviderUnavailable)) => {
                        unavailable = true;
                        tell_unavailable();
                    }
                    Some((subject, category)) => tell(subject, category),
                    None => {}
                }
            }
            state.ledger.keep(&groups::wanted(&groups));
            let due = state.ledger.due(now);
            let (snapshot, expiry) = groups::snapshot(&groups, &state.ledger, now);
            // Under the lock, so that nothing is published after it has been switched off.
            self.backends.set_locality(snapshot);
            let next = state.ledger.next().into_iter().chain(expiry).min();
            drop(state);
            self.ask(due);
            until = Some(next.unwrap_or(now + LOOK).min(now + LOOK));
        }
    }
    /// Hostgroups with a policy. A pinned name stands for the server that it leads to.
    fn groups(&self) -> Vec<Group> {
        let members = self.backends.read(|hostgroups| hostgroups.locality());
        let group = |(hostgroup, policy, members): (_, _, Vec<Endpoint>)| {
            let member = |endpoint: Endpoint| {
                let target = self.dns.pinned_target(&endpoint.host);
                let subject = subject_of(target.as_deref().unwrap_or(&endpoint.host));
                (endpoint, subject)
            };
            Group { hostgroup, policy, members: members.into_iter().map(member).collect() }
        };
        members.into_iter().map(group).collect()
    }
    fn ask(&self, due: Vec<(Ticket, Subject)>) {
        if due.is_empty() {
            return;
        }
        let leases = due.into_iter().map(|(ticket, subject)| self.inbox.lease(ticket, subject));
        // Closed: the daemon ends.
        let Ok(leases) = leases.collect::<Result<Vec<Lease>, Closed>>() else { return };
        if self.provider.is_none() {
            return refuse(leases, Category::ProviderUnavailable);
        }
        // No sender: the daemon ends.
        let sent = self.batches.lock().as_ref().map(|batches| batches.try_send(leases));
        match sent {
            None | Some(Ok(())) => {}
            Some(Err(TrySendError::Full(leases))) => refuse(leases, Category::Timeout),
            Some(Err(TrySendError::Disconnected(leases))) => refuse(leases, Category::ProviderError),
        }
    }
}

fn refuse(leases: Vec<Lease>, why: Category) {
    for lease in leases {
        // Closed: nobody waits for it.
        let _ = lease.answer(Err(why));
    }
}

fn tell_unavailable() {
    log::warn!(
        "locality: {}: nobody tells where servers are, and all are chosen by their weights; start pointsman with --locality-provider \
         (docs/locality.md), or SET mysql-aws_locality_awareness = false",
        Category::ProviderUnavailable.as_str()
    );
}

fn tell(subject: &Subject, category: Category) {
    let category = category.as_str();
    match subject {
        Subject::Own => log::warn!("locality: asking where this proxy runs failed: {category}"),
        Subject::Endpoint(host) => log::warn!("locality: asking where {host} is failed: {category}"),
    }
}
