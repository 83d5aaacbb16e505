//! Names that the simulator's DNS responder answers. Beyond the simulator specification: RDS_BGD_DNS in docs/simulator.md.

use super::RdsBgdSimulator;
use crate::connection::{Error, quote};
use std::time::Duration;

/// What a question for a name is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RdsBgdDnsAnswer {
    /// These addresses
    Addresses {
        /// At least one IP, of either family; one that is there twice counts once
        addresses: Vec<String>,
        /// For how many seconds the answer may be kept; at most 2147483647
        ttl: u32,
        /// How much later it comes; at most a minute, zero for at once
        delay: Duration,
    },
    /// There is no such name, or none any more
    NxDomain,
    /// The name server failed
    ServFail,
    /// Nothing at all
    Drop,
}

impl RdsBgdDnsAnswer {
    /// One IP, at once, to be kept for a second.
    pub fn address(ip: &str) -> Self {
        Self::Addresses { addresses: vec![ip.to_owned()], ttl: 1, delay: Duration::ZERO }
    }
}

impl RdsBgdSimulator {
    /// Starts the DNS responder, if it is off, on a free port of 127.0.0.1, and returns `address:port`, as
    /// mysql-monitor_dns_server wants it. [`Self::cleanup`] ends it.
    pub fn dns_listen(&mut self) -> Result<String, Error> {
        let statement = listen("127.0.0.1:0");
        let address = self.cluster.control.scalar(&statement)?;
        address.ok_or_else(|| self.cluster.control.answer_error(&statement, "NULL".to_owned()))
    }

    /// From now on `name` is answered so.
    pub fn dns_update(&mut self, name: &str, answer: &RdsBgdDnsAnswer) -> Result<(), Error> {
        self.write(&update(name, answer))
    }
}

/// Moves the responder to `address`; an empty one ends it.
pub(super) fn listen(address: &str) -> String {
    format!("SELECT rds_bgd_dns_listen({})", quote(address))
}

pub(super) fn update(name: &str, answer: &RdsBgdDnsAnswer) -> Vec<String> {
    let row = |address: &str, ttl: u32, mode: &str, delay: Duration| {
        format!(
            "INSERT OR REPLACE INTO RDS_BGD_DNS(name,address,ttl,mode,delay_ms) VALUES ({},{},{ttl},{},{})",
            quote(name),
            quote(address),
            quote(mode),
            delay.as_millis()
        )
    };
    let failure = |mode| vec![row("", 0, mode, Duration::ZERO)];
    let rows = match answer {
        RdsBgdDnsAnswer::Addresses { addresses, ttl, delay } => {
            let mode = if delay.is_zero() { "answer" } else { "delay" };
            addresses.iter().map(|address| row(address, *ttl, mode, *delay)).collect()
        }
        RdsBgdDnsAnswer::NxDomain => failure("nxdomain"),
        RdsBgdDnsAnswer::ServFail => failure("servfail"),
        RdsBgdDnsAnswer::Drop => failure("drop"),
    };
    let mut statements = vec![format!("DELETE FROM RDS_BGD_DNS WHERE name={}", quote(name))];
    statements.extend(rows);
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_is_a_row_and_replaces_those_before() {
        let addresses = ["10.0.0.1", "::1"].map(str::to_owned).to_vec();
        let delay = Duration::from_millis(30);
        let statements = update("a.test", &RdsBgdDnsAnswer::Addresses { addresses, ttl: 7, delay });
        assert_eq!(statements.len(), 3);
        assert_eq!(statements[0], "DELETE FROM RDS_BGD_DNS WHERE name='a.test'");
        assert!(statements[1].ends_with("VALUES ('a.test','10.0.0.1',7,'delay',30)"), "{}", statements[1]);
        assert!(statements[2].ends_with("VALUES ('a.test','::1',7,'delay',30)"), "{}", statements[2]);
        // An address may be named twice, as by two labels of a recording.
        assert!(statements[1].starts_with("INSERT OR REPLACE "), "{}", statements[1]);
        let at_once = update("a.test", &RdsBgdDnsAnswer::address("10.0.0.1"));
        assert!(at_once[1].ends_with("VALUES ('a.test','10.0.0.1',1,'answer',0)"), "{}", at_once[1]);
    }

    #[test]
    fn a_failure_is_a_row_without_an_address() {
        for (answer, mode) in [
            (RdsBgdDnsAnswer::NxDomain, "nxdomain"),
            (RdsBgdDnsAnswer::ServFail, "servfail"),
            (RdsBgdDnsAnswer::Drop, "drop"),
        ] {
            let statements = update("a.test", &answer);
            assert!(
                statements[1].ends_with(&format!("VALUES ('a.test','',0,'{mode}',0)")),
                "{}",
                statements[1]
            );
        }
    }
}
