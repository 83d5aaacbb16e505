use super::*;
use crate::bgd::tests::{Site, Table};

#[test]
fn a_refresh_finds_the_writer_that_a_poll_has_demoted_again() {
    let site = Site::with(Table::Broken, |_| {});
    site.stop_worker();
    let row = crate::bgd::fixtures::row();
    let mut poller = Poller::new(site.effects.clone(), row.clone(), Arc::default());
    let (endpoint, status) = ("db-green-1.bgd.test".into(), "SWITCHOVER_IN_PROGRESS".into());
    let (topology, members) = (Topology::Target { endpoint, status }, poller.members());
    poller.observe(Observation::TablePresent);
    poller.observe(Observation::Metadata { topology, members });
    assert_eq!(poller.members().blue_writers, [], "it is demoted");
    // LOAD has put it back, and a poll that did not know of LOAD yet has demoted it again.
    poller.refresh(row);
    let target = poller.blue_target().map(|target| target.host.to_string());
    assert_eq!(target.map_err(|(_, reason)| reason), Ok("db.bgd.test".to_owned()));
}
