//! How a deployment's effects are undone: one shot, from the last state (contract: "Completion And Rollback").

use super::{Action, Machine, Map, Pair};
use crate::hostgroups::BgdStatus;
use admin::rows::BgdHostgroupRow;
use std::sync::Arc;

impl Machine {
    /// The topology has drained: success after writer completion, cancellation before it, nothing in NONE.
    pub(super) fn drained(&mut self, cause: &str, actions: &mut Vec<Action>) {
        self.cause = Arc::from(cause);
        match self.status {
            BgdStatus::None => {}
            BgdStatus::ReaderSwitchoverInProgress => self.succeed(actions),
            _ => self.roll_back(actions),
        }
    }

    /// Not a blue/green topology: NONE without rollback. What was pinned, shunned or moved stays with this deployment, and a
    /// later cleanup, refresh or exit undoes it.
    pub(super) fn unclassified(&mut self, cause: &str, actions: &mut Vec<Action>) {
        self.cause = Arc::from(cause);
        self.interval = None;
        self.status = BgdStatus::None;
        self.end_suppression(actions);
        self.publish(actions);
    }

    /// Puts everything back as it was. Green servers, their names and their connections are not touched.
    pub(super) fn roll_back(&mut self, actions: &mut Vec<Action>) {
        let row = self.row.clone();
        self.roll_back_to(row, actions);
    }

    /// As `roll_back`, for a changed configuration: it says where the writer goes, the one before where everything else was.
    pub(super) fn roll_back_to(&mut self, row: BgdHostgroupRow, actions: &mut Vec<Action>) {
        self.unpin_for_good(actions);
        self.row = row;
        self.restore_writer(actions);
        self.forget(actions);
    }

    /// Drops the map. Connections that were opened by a pinned name lead to the green server and would go on serving statements
    /// that now belong to the blue one, so they are drained.
    fn unpin_for_good(&mut self, actions: &mut Vec<Action>) {
        let switched = |pair: &Pair| pair.drained.then(|| pair.blue.clone());
        let drained: Vec<_> =
            self.map.iter().flat_map(|map| &map.pairs).filter_map(switched).map(Action::Drain).collect();
        self.release_pairs(actions);
        actions.extend(drained);
    }

    /// The blue names now mean the promoted servers: the obsolete writer is not restored, green pools are drained.
    fn succeed(&mut self, actions: &mut Vec<Action>) {
        self.status = BgdStatus::SwitchoverCompleted;
        self.publish(actions);
        if self.moved_writer.is_none() {
            self.moved_writer = self.map.as_ref().and_then(Map::writer).map(|pair| pair.blue.clone());
        }
        self.restore_writer(actions);
        self.release_pairs(actions);
        let green = [self.row.green_writer_hostgroup, self.row.green_reader_hostgroup];
        let green: Vec<_> = green.into_iter().flatten().collect();
        if !green.is_empty() {
            actions.push(Action::DrainGreen(green));
        }
        self.forget(actions);
    }

    /// The writer's placement as the configuration wants it.
    pub(super) fn restore_writer(&mut self, actions: &mut Vec<Action>) {
        if let Some(endpoint) = self.moved_writer.take() {
            let (reader, also_reader) = (self.row.reader_hostgroup, self.row.writer_is_also_reader);
            actions.push(Action::ConfigureWriter { endpoint, reader, also_reader });
        }
    }

    /// Drops the map: names of its blue servers and of shunned readers resolve normally again, the readers are back, and the
    /// monitor's connections to either side are closed.
    pub(super) fn release_pairs(&mut self, actions: &mut Vec<Action>) {
        let pairs = self.map.take().map(|map| map.pairs).unwrap_or_default();
        for blue in pairs.iter().map(|pair| &pair.blue).chain(&self.shunned) {
            actions.push(Action::RemoveDns(blue.host.clone()));
            actions.push(Action::PurgeProbes(blue.clone()));
        }
        let hostgroup = self.row.reader_hostgroup;
        actions.extend(self.shunned.drain(..).map(|endpoint| Action::UnshunReader { hostgroup, endpoint }));
        actions.extend(pairs.iter().filter_map(|pair| pair.green_address()).map(Action::PurgeDirect));
    }

    fn forget(&mut self, actions: &mut Vec<Action>) {
        self.end_suppression(actions);
        self.direct = None;
        self.failures = 0;
        self.interval = None;
        self.pending = None;
        self.status = BgdStatus::None;
        self.publish(actions);
    }

    fn end_suppression(&mut self, actions: &mut Vec<Action>) {
        if std::mem::take(&mut self.suppressed) {
            actions.push(Action::ClearSuppression);
        }
    }

    /// Whether something of post-processing stands: replacing the map alone would lose track of it.
    pub(super) fn has_placed(&self) -> bool {
        let switched = self.map.iter().flat_map(|map| &map.pairs).any(|pair| pair.drained);
        switched || !self.shunned.is_empty()
    }
}
