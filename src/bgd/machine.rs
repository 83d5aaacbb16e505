//! The state machine of one deployment: observations in, actions out. No IO, no clock.
//!
//! The worker performs the actions in order. Effects come first and the status that implies them is published last, so that
//! whoever reads a status finds its effects done.

mod cleanup;
mod messages;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod side_by_side;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use super::mapping::{Map, Members, Pair};
use super::phase;
use super::topology::Topology;
use crate::hostgroups::{BgdStatus, Endpoint, ServerStatus};
use admin::rows::BgdHostgroupRow;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use messages::{Action, DirectTarget, Observation, ProbeKind, Resolution, Transition};

/// Failures in a row after which the direct probe is given up (contract: "Direct-Probe Lifetime").
const DIRECT_FAILURES: u32 = 3;

/// One deployment's state. See [`Machine::step`].
#[derive(Debug)]
pub struct Machine {
    row: BgdHostgroupRow,
    status: BgdStatus,
    /// What the worker last published.
    published: BgdStatus,
    kind: ProbeKind,
    /// Replaces the configured interval.
    interval: Option<Duration>,
    /// `None` until it is built, and again after a refresh.
    map: Option<Map>,
    direct: Option<DirectTarget>,
    /// Failed polls of the direct target in a row.
    failures: u32,
    suppressed: bool,
    /// The blue writer whose placement this deployment has changed.
    moved_writer: Option<Endpoint>,
    /// Readers this deployment has shunned.
    shunned: Vec<Endpoint>,
    /// Waiting for [`Observation::Resolved`], with the servers that the metadata came with.
    pending: Option<Members>,
    cause: Arc<str>,
}

impl Machine {
    /// A fresh start: state NONE, and the next poll asks whether the table exists.
    pub fn new(row: BgdHostgroupRow) -> Self {
        Self {
            row,
            status: BgdStatus::None,
            published: BgdStatus::None,
            kind: ProbeKind::TableCheck,
            interval: None,
            map: None,
            direct: None,
            failures: 0,
            suppressed: false,
            moved_writer: None,
            shunned: Vec::new(),
            pending: None,
            cause: Arc::from(""),
        }
    }
    /// The configuration in force.
    pub fn row(&self) -> &BgdHostgroupRow {
        &self.row
    }
    /// The status that was published last.
    pub fn published(&self) -> BgdStatus {
        self.published
    }
    /// The blue writer whose placement this deployment has changed.
    pub fn moved_writer(&self) -> Option<&Endpoint> {
        self.moved_writer.as_ref()
    }
    /// The statement of the next poll.
    pub fn kind(&self) -> ProbeKind {
        self.kind
    }
    /// Where the next poll goes; `None`: to a blue writer.
    pub fn direct(&self) -> Option<&DirectTarget> {
        self.direct.as_ref()
    }
    /// The time from the start of one poll to the start of the next.
    pub fn interval(&self) -> Duration {
        self.interval.unwrap_or_else(|| Duration::from_millis(self.row.check_interval_ms.into()))
    }

    /// Takes one observation and says what to do, in order.
    pub fn step(&mut self, observation: Observation, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        match observation {
            Observation::GreenWriterAdded { use_ssl } => {
                if let Some(pair) = self.map.as_mut().and_then(Map::writer_mut) {
                    pair.green_use_ssl = use_ssl;
                }
                if let Some(direct) = &mut self.direct {
                    direct.use_ssl = use_ssl;
                }
                return actions;
            }
            Observation::Resolved(ref resolutions) => self.resolved(resolutions),
            // Whatever else is seen, an unanswered look-up gave nothing.
            _ => {}
        }
        if let Some(members) = self.pending.take() {
            self.settle(&members, &mut actions);
        }
        match observation {
            Observation::Resolved(_) | Observation::GreenWriterAdded { .. } => {}
            Observation::TableAbsent => self.drained("mysql.rds_topology does not exist", &mut actions),
            Observation::TablePresent => self.kind = ProbeKind::Metadata,
            Observation::Vanished => {
                self.kind = ProbeKind::TableCheck;
                self.interval = None;
                self.drained("mysql.rds_topology is gone, error 1146", &mut actions);
            }
            Observation::Metadata { topology, mut members } => {
                if let Some(writer) = &self.moved_writer {
                    members.restore_writer(writer);
                }
                self.metadata(topology, members, now, &mut actions)
            }
            Observation::Failure => self.failed(now, &mut actions),
            Observation::Refresh { row, members } => self.refresh(row, &members, &mut actions),
            Observation::Reload(members) => self.place_again(&members, &mut actions),
            Observation::Exit => {
                self.cause = Arc::from("the worker ends");
                if self.status != BgdStatus::None || self.map.is_some() || self.moved_writer.is_some() {
                    self.roll_back(&mut actions);
                }
            }
        }
        actions
    }

    fn metadata(&mut self, topology: Topology, members: Members, now: Instant, actions: &mut Vec<Action>) {
        self.failures = 0;
        if self.direct.is_some() {
            self.map.iter_mut().flat_map(|map| &mut map.pairs).for_each(|pair| pair.given_up = false);
        }
        let (target, text) = match topology {
            Topology::Empty => return self.drained("mysql.rds_topology is empty", actions),
            Topology::Unclassified => {
                return self.unclassified("no blue/green target in the topology", actions);
            }
            Topology::Target { endpoint, status } => (endpoint, status),
        };
        let Some(state) = phase::state_of(&text) else {
            return self.unclassified("the target has no status", actions);
        };
        self.cause = Arc::from(match state {
            BgdStatus::None => {
                format!("unknown target status {:?}", text.chars().take(64).collect::<String>())
            }
            _ => format!("target status {text}"),
        });
        let completed = state == BgdStatus::WriterSwitchoverCompleted;
        if state < self.status && !(completed && self.status == BgdStatus::ReaderSwitchoverInProgress) {
            self.roll_back(actions);
            if state != BgdStatus::Available {
                return;
            }
        }
        if state > self.status && completed {
            self.complete_writer(actions);
        } else if state > self.status {
            self.enter(state, &target, members, now, actions);
        } else if phase::interval_of(self.status).is_some() {
            self.reconcile(&target, members, now, actions);
        }
    }

    /// Enters AVAILABLE, INITIATED, IN_PROGRESS or POST_PROCESSING from any lower state, with what the skipped ones would have done.
    fn enter(
        &mut self,
        state: BgdStatus,
        target: &str,
        members: Members,
        now: Instant,
        actions: &mut Vec<Action>,
    ) {
        self.drop_leftovers(state, actions);
        self.status = state;
        self.interval = phase::interval_of(state);
        if state >= BgdStatus::WriterSwitchoverInitiated && !self.suppressed {
            self.suppressed = true;
            actions.push(Action::Suppress(members.blue_endpoints()));
        }
        self.set_up(target, members, now, true, actions);
    }

    /// An unclassified result left NONE with effects of a later state; entering an earlier one undoes them.
    fn drop_leftovers(&mut self, state: BgdStatus, actions: &mut Vec<Action>) {
        if state < BgdStatus::WriterSwitchoverPostProcessing && self.has_placed() {
            self.roll_back(actions);
        } else if state < BgdStatus::WriterSwitchoverInProgress {
            self.restore_writer(actions);
        }
    }

    /// The same state again: only what is still open (contract: "Equal And Repeated Phases").
    fn reconcile(&mut self, target: &str, members: Members, now: Instant, actions: &mut Vec<Action>) {
        let rebuilt = self.map.as_ref().is_none_or(|map| self.is_other_target(map, target));
        self.set_up(target, members, now, rebuilt, actions);
    }

    /// Another green environment has taken the place of the one the map is for. From post-processing on, pins and shuns stand in
    /// the map's name, and it stays.
    fn is_other_target(&self, map: &Map, target: &str) -> bool {
        self.status < BgdStatus::WriterSwitchoverPostProcessing && !map.target.eq_ignore_ascii_case(target)
    }

    fn set_up(
        &mut self,
        target: &str,
        members: Members,
        now: Instant,
        placing: bool,
        actions: &mut Vec<Action>,
    ) {
        let usable = |map: &Map| !map.pairs.is_empty() && !self.is_other_target(map, target);
        if placing && !self.map.as_ref().is_some_and(usable) {
            self.release_pairs(actions);
            self.direct = None;
            self.map = Some(Map::build(&self.row, &members, target));
        }
        if placing {
            self.place_green_writer(&members, actions);
            self.demote_writer(actions);
        }
        let unresolved = |map: &Map| -> Vec<Arc<str>> {
            map.pairs
                .iter()
                .filter(|pair| pair.needs_address(now))
                .map(|pair| pair.green_host.clone())
                .collect()
        };
        let hosts = self.map.as_ref().map(unresolved).unwrap_or_default();
        if hosts.is_empty() {
            self.settle(&members, actions);
        } else {
            self.pending = Some(members);
            actions.push(Action::Resolve(hosts));
        }
    }

    /// Explicit mode only: a green writer that its hostgroup lacks is added.
    fn place_green_writer(&self, members: &Members, actions: &mut Vec<Action>) {
        let (Some(hostgroup), Some(pair)) =
            (self.row.green_writer_hostgroup, self.map.as_ref().and_then(Map::writer))
        else {
            return;
        };
        if members.green_writer(&pair.green_host, pair.blue.port).is_none() {
            let endpoint = Endpoint::new(&pair.green_host, pair.blue.port);
            actions.push(Action::AddGreenWriter { hostgroup, endpoint });
        }
    }

    /// Restores a writer that was demoted and is not the mapped one any more; demotes the mapped one in IN_PROGRESS.
    fn demote_writer(&mut self, actions: &mut Vec<Action>) {
        let writer = self.map.as_ref().and_then(Map::writer).map(|pair| pair.blue.clone());
        if self.moved_writer.is_some() && self.moved_writer != writer {
            self.restore_writer(actions);
        }
        if let Some(endpoint) = writer
            && self.status == BgdStatus::WriterSwitchoverInProgress
        {
            self.moved_writer = Some(endpoint.clone());
            actions.push(Action::Demote { endpoint, reader: self.row.reader_hostgroup });
        }
    }

    fn resolved(&mut self, resolutions: &[Resolution]) {
        let open = |pair: &&mut Pair| !pair.offline && !pair.pinned;
        for pair in self.map.iter_mut().flat_map(|map| &mut map.pairs).filter(open) {
            if let Some(found) = resolutions.iter().find(|resolution| resolution.host == pair.green_host) {
                pair.green = Some(found.address);
            }
        }
    }

    /// What follows once names have been looked up.
    fn settle(&mut self, members: &Members, actions: &mut Vec<Action>) {
        let writer = self.map.as_ref().and_then(Map::writer);
        if let Some(pair) = writer
            && let Some(address) = pair.green_address()
        {
            let host = pair.green_host.clone();
            self.direct = Some(DirectTarget { address, use_ssl: pair.green_use_ssl, host });
        }
        if self.status == BgdStatus::WriterSwitchoverPostProcessing {
            self.pin_pairs(actions);
            if self.published != self.status {
                self.place_writer(members, actions);
            }
        }
        self.publish(actions);
    }

    /// Pins what has an address. A pair whose pin was given up is pinned once more, but a pair is drained once (contract:
    /// "Direct-Probe Lifetime").
    fn pin_pairs(&mut self, actions: &mut Vec<Action>) {
        let open = |pair: &&mut Pair| !pair.pinned && !pair.given_up;
        for pair in self.map.iter_mut().flat_map(|map| &mut map.pairs).filter(open) {
            if let Some(green) = pair.green {
                pair.pinned = true;
                let (host, target) = (pair.blue.host.clone(), pair.green_host.clone());
                actions.push(Action::Pin { host, address: green.ip, target });
                if !std::mem::replace(&mut pair.drained, true) {
                    actions.push(Action::Drain(pair.blue.clone()));
                }
            }
        }
    }

    /// Post-processing: the writer takes traffic again, and readers without green counterpart are shunned. Where that would leave
    /// no reader, the writer reads too; without a mapped writer they are left alone.
    fn place_writer(&mut self, members: &Members, actions: &mut Vec<Action>) {
        let Some(map) = &self.map else { return };
        let Some(writer) = map.writer().map(|pair| pair.blue.clone()) else { return };
        let readers: Vec<_> =
            members.blue_readers.iter().filter(|m| m.eligible() && m.endpoint != writer).collect();
        let unmapped: Vec<_> = readers.iter().filter(|member| !map.has_blue(&member.endpoint)).collect();
        let none_left = !readers.is_empty() && unmapped.len() == readers.len();
        let also_reader = self.row.writer_is_also_reader || none_left;
        let reader = self.row.reader_hostgroup;
        actions.push(Action::ConfigureWriter { endpoint: writer.clone(), reader, also_reader });
        self.moved_writer = Some(writer);
        for member in unmapped.iter().filter(|m| m.status == ServerStatus::Online) {
            let endpoint = member.endpoint.clone();
            if !self.shunned.contains(&endpoint) {
                self.shunned.push(endpoint.clone());
            }
            actions.push(Action::ShunReader { hostgroup: reader, endpoint });
        }
    }

    /// SWITCHOVER_COMPLETED: the writer's stable name points to the promoted server again.
    fn complete_writer(&mut self, actions: &mut Vec<Action>) {
        let skipped = self.status == BgdStatus::WriterSwitchoverInProgress;
        self.status = BgdStatus::ReaderSwitchoverInProgress;
        self.interval = None;
        let writer = self.map.as_mut().and_then(Map::writer_mut);
        if let Some(pair) = writer {
            actions.push(Action::RemoveDns(pair.blue.host.clone()));
            if skipped {
                pair.drained = true;
                actions.push(Action::Drain(pair.blue.clone()));
            }
        }
        // Post-processing was never seen: a writer left demoted would take no traffic until the topology drains.
        if skipped {
            self.restore_writer(actions);
        }
        self.publish(actions);
    }

    /// Three failures in a row lose the direct target and the pins that rest on it. These are set again when the green writer
    /// answers again: if they were by the blue writer's word, names could alternate between both servers.
    fn failed(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.direct.is_none() {
            return;
        }
        self.failures += 1;
        if self.failures < DIRECT_FAILURES {
            return;
        }
        self.failures = 0;
        self.direct = None;
        for pair in self.map.iter_mut().flat_map(|map| &mut map.pairs) {
            actions.push(Action::RemoveDns(pair.blue.host.clone()));
            actions.push(Action::PurgeProbes(pair.blue.clone()));
            pair.given_up |= std::mem::take(&mut pair.pinned);
            if let Some(green) = &mut pair.green {
                green.valid_until = green.valid_until.min(now);
            }
        }
    }

    fn refresh(&mut self, row: BgdHostgroupRow, members: &Members, actions: &mut Vec<Action>) {
        self.cause = Arc::from("configuration changed");
        if self.status >= BgdStatus::WriterSwitchoverPostProcessing || self.has_placed() {
            self.roll_back_to(row, actions);
            self.kind = ProbeKind::TableCheck;
            return;
        }
        if self.suppressed {
            if row.reader_hostgroup != self.row.reader_hostgroup {
                actions.push(Action::ClearSuppression);
            }
            actions.push(Action::Suppress(members.blue_endpoints()));
        }
        self.row = row;
        self.direct = None;
        self.failures = 0;
        self.map = None;
    }

    /// A LOAD that does not concern this deployment does not undo its switchover: the green writer is added again, the blue one demoted
    /// again, shunned readers are shunned again. (The contract tells only what follows a LOAD that changes the deployment.)
    fn place_again(&mut self, members: &Members, actions: &mut Vec<Action>) {
        if phase::interval_of(self.status).is_some() {
            self.place_green_writer(members, actions);
        }
        match self.status {
            BgdStatus::WriterSwitchoverInProgress => self.demote_writer(actions),
            BgdStatus::WriterSwitchoverPostProcessing => self.place_writer(members, actions),
            BgdStatus::ReaderSwitchoverInProgress if !self.shunned.is_empty() => {
                self.place_writer(members, actions);
            }
            _ => {}
        }
    }

    fn publish(&mut self, actions: &mut Vec<Action>) {
        if self.published != self.status {
            let (from, cause) = (self.published, self.cause.clone());
            self.published = self.status;
            actions.push(Action::Publish(Transition { from, to: self.status, cause }));
        }
    }
}
