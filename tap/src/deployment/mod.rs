//! One explicit deployment as scenarios of loss and rollback use it: a writer, a reader with a green counterpart and one without, so
//! that each phase has all its effects.

mod drain;
mod expectations;
mod phase;

pub use drain::Drain;
pub use phase::Phase;

use crate::admin::{self, Hostgroups};
use crate::connection::{Error, quote};
use crate::scenario::Scenario;
use crate::simulator::{RdsBgdCluster, RdsBgdHost};

/// A cluster in the hostgroups of one deployment.
pub struct Deployment {
    /// Where
    pub hostgroups: Hostgroups,
    /// Who
    pub cluster: RdsBgdCluster,
}

impl Deployment {
    /// The reader that has a green counterpart.
    pub fn mapped_reader(&self) -> &RdsBgdHost {
        &self.cluster.blue_readers[0]
    }

    /// The reader whose green counterpart is not configured.
    pub fn unmapped_reader(&self) -> &RdsBgdHost {
        &self.cluster.blue_readers[1]
    }

    /// The mapped reader's counterpart.
    pub fn green_reader(&self) -> &RdsBgdHost {
        &self.cluster.green_readers[0]
    }

    /// Writer and readers.
    pub fn blue_servers(&self) -> [&RdsBgdHost; 3] {
        [&self.cluster.blue_writer, self.mapped_reader(), self.unmapped_reader()]
    }

    /// Configures servers and deployment, polled every 100 ms, and loads them to runtime.
    pub fn configure(&self, scenario: &mut Scenario) -> Result<(), Error> {
        self.configure_servers(scenario)?;
        admin::add_deployment(&mut scenario.admin, self.hostgroups)
    }

    /// Configures the servers alone and loads them to runtime. The unmapped reader has weight 0, so that it is known who answers in
    /// the reader hostgroup.
    pub fn configure_servers(&self, scenario: &mut Scenario) -> Result<(), Error> {
        scenario.simulator.read_only_update(&self.cluster.blue_writer.host_endpoint(), false)?;
        let Hostgroups { writer, reader, green_writer, green_reader } = self.hostgroups;
        let unmapped = self.unmapped_reader();
        scenario.admin.execute(&format!(
            "INSERT INTO mysql_servers(hostgroup_id,hostname,port,weight) VALUES ({reader},{},{},0)",
            quote(&unmapped.hostname),
            unmapped.port
        ))?;
        let members = [
            (writer, &self.cluster.blue_writer),
            (reader, self.mapped_reader()),
            (green_writer, &self.cluster.green_writer),
            (green_reader, self.green_reader()),
        ];
        admin::configure_pair(&mut scenario.admin, self.hostgroups, &members)
    }

    /// Both writers publish `phase`.
    pub fn publish(&self, scenario: &mut Scenario, phase: Phase) -> Result<(), Error> {
        match phase {
            Phase::Completed => scenario.publish_completed(&self.cluster),
            _ => scenario.publish(&self.cluster, phase.published()),
        }
    }

    /// Publishes one phase after the other up to `phase`, each when the one before has been taken up.
    pub fn reach(&self, scenario: &mut Scenario, phase: Phase) -> Result<(), Error> {
        for step in Phase::ALL.into_iter().filter(|step| *step <= phase) {
            self.publish(scenario, step)?;
            scenario.admin.wait_until(&admin::status_is(self.hostgroups.writer, step.status()))?;
        }
        Ok(())
    }

    /// The condition that the blue servers are placed as they are in `phase`; AVAILABLE is as configured.
    pub fn placement(&self, phase: Phase) -> String {
        let Hostgroups { writer, reader, .. } = self.hostgroups;
        let blue_writer = &self.cluster.blue_writer;
        let (place, other) = match phase {
            Phase::InProgress => (reader, writer),
            _ => (writer, reader),
        };
        let unmapped = match phase {
            Phase::PostProcessing | Phase::Completed => "status='SHUNNED_AWS_BGD'",
            _ => "status='ONLINE'",
        };
        format!(
            "{} AND {} AND {} AND {}",
            admin::online_in(place, blue_writer),
            admin::absent_from(other, blue_writer),
            admin::online_in(reader, self.mapped_reader()),
            admin::member_with(reader, self.unmapped_reader(), unmapped)
        )
    }

    /// The condition that both green servers are there.
    pub fn green_servers(&self) -> String {
        let Hostgroups { green_writer, green_reader, .. } = self.hostgroups;
        format!(
            "{} AND {}",
            admin::online_in(green_writer, &self.cluster.green_writer),
            admin::online_in(green_reader, self.green_reader())
        )
    }

    /// Opens a connection to each green server, and waits until it is pooled.
    pub fn pool_green(&self, scenario: &mut Scenario) -> Result<(), Error> {
        scenario.answering_ip(self.hostgroups.green_writer)?;
        scenario.answering_ip(self.hostgroups.green_reader)?;
        scenario.admin.wait_until(&self.green_pooled())
    }

    /// The condition that a connection to each green server is pooled.
    pub fn green_pooled(&self) -> String {
        let pooled = [&self.cluster.green_writer, self.green_reader()].map(admin::pooled);
        format!("{}>0 AND {}>0", pooled[0], pooled[1])
    }

    /// The condition that no connection to a green server is pooled.
    pub fn green_drained(&self) -> String {
        let pooled = [&self.cluster.green_writer, self.green_reader()].map(admin::pooled);
        format!("{}+{}=0", pooled[0], pooled[1])
    }
}
