//! What the dispatcher tells a worker.

use admin::rows::BgdHostgroupRow;
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// The longest a worker sleeps without looking up.
const NAP: Duration = Duration::from_millis(50);

/// How long a new configuration rests before a worker polls by it. Whoever changes servers usually publishes the topology that goes
/// with them right after, and a poll in between would pair the new servers with the old topology.
pub(super) const REST: Duration = Duration::from_millis(40);

/// What ended a worker's sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// LOAD has placed the servers anew; nothing else is due.
    Reload,
    /// The time has come, or something is to be done now.
    Due,
}

/// One worker's mailbox.
#[derive(Debug, Default)]
pub(super) struct Control {
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Orders {
    stop: bool,
    ended: bool,
    reload: bool,
    refresh: Option<(Instant, BgdHostgroupRow)>,
}

impl Control {
    /// Asks the worker to roll back and end.
    pub fn stop(&self) {
        self.orders.lock().stop = true;
        self.changed.notify_all();
    }
    /// Whether the worker has been asked to end.
    pub fn stopping(&self) -> bool {
        self.orders.lock().stop
    }
    /// Says that the worker has ended.
    pub fn end(&self) {
        self.orders.lock().ended = true;
    }
    /// Whether it has.
    pub fn ended(&self) -> bool {
        self.orders.lock().ended
    }
    /// Hands the worker a new configuration.
    pub fn refresh(&self, row: BgdHostgroupRow) {
        self.orders.lock().refresh = Some((Instant::now() + REST, row));
        self.changed.notify_all();
    }
    /// Tells the worker that LOAD has placed the servers anew.
    pub fn reload(&self) {
        self.orders.lock().reload = true;
        self.changed.notify_all();
    }
    /// The configuration to take up now, if there is one.
    pub fn take_refresh(&self) -> Option<BgdHostgroupRow> {
        let mut orders = self.orders.lock();
        let due = orders.refresh.as_ref().is_some_and(|(due, _)| *due <= Instant::now());
        if due { orders.refresh.take().map(|(_, row)| row) } else { None }
    }
    /// Sleeps until `until`, or until there is an order to follow or `interrupted` says so.
    pub fn wait(&self, until: Instant, interrupted: impl Fn() -> bool) -> Woken {
        let mut orders = self.orders.lock();
        loop {
            let now = Instant::now();
            let due = orders.refresh.as_ref().map(|(due, _)| *due);
            if orders.stop || now >= until || due.is_some_and(|due| due <= now) || interrupted() {
                return Woken::Due;
            }
            if std::mem::take(&mut orders.reload) {
                return Woken::Reload;
            }
            let wake = due.map_or(until, |due| due.min(until)).min(now + NAP);
            self.changed.wait_until(&mut orders, wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_to_stop_ends_the_sleep() {
        let control = Control::default();
        assert!(!control.stopping());
        control.stop();
        control.wait(Instant::now() + Duration::from_secs(3600), || false);
        assert!(control.stopping());
    }

    #[test]
    fn an_interruption_ends_the_sleep() {
        Control::default().wait(Instant::now() + Duration::from_secs(3600), || true);
    }

    #[test]
    fn a_reload_is_told_once_and_after_an_order_to_stop_not_at_all() {
        let control = Control::default();
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(3600));
        control.reload();
        assert_eq!(control.wait(later, || false), Woken::Reload);
        assert_eq!(control.wait(now, || false), Woken::Due);
        control.reload();
        control.stop();
        assert_eq!(control.wait(later, || false), Woken::Due);
    }

    #[test]
    fn a_configuration_rests_before_it_is_taken_up_once() {
        let control = Control::default();
        let handed = Instant::now();
        control.refresh(super::super::fixtures::row());
        control.wait(handed + Duration::from_secs(3600), || false);
        assert!(handed.elapsed() >= REST);
        assert!(control.take_refresh().is_some());
        assert!(control.take_refresh().is_none());
    }
}
