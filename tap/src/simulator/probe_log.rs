//! Which topology statements reached which simulated backend. Contract: RDS_BGD_Simulator.md, "Probe-Log Operations".

use crate::connection::Endpoint;

/// Which of the two topology statements was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RdsBgdProbeKind {
    /// Does `mysql.rds_topology` exist?
    TableCheck,
    /// What does it contain?
    Metadata,
}

/// One probe that a simulated backend answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdsBgdProbeLog {
    /// Grows with every probe, also over cleanups
    pub sequence_id: u64,
    /// The address the probe was sent to
    pub backend: Endpoint,
    /// The statement
    pub probe_kind: RdsBgdProbeKind,
    /// Whether it came over TLS
    pub encrypted: bool,
}

impl RdsBgdProbeLog {
    /// From (sequence_id, backend_ip, backend_port, probe_kind, encrypted); None if that is not what `row` holds.
    pub(super) fn from_row(row: &[Option<String>]) -> Option<Self> {
        let [Some(sequence_id), Some(ip), Some(port), Some(kind), Some(encrypted)] = row else {
            return None;
        };
        let probe_kind = match kind.as_str() {
            "table_check" => RdsBgdProbeKind::TableCheck,
            "metadata" => RdsBgdProbeKind::Metadata,
            _ => return None,
        };
        let encrypted = match encrypted.as_str() {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        let backend = Endpoint::new(ip.as_str(), port.parse().ok()?);
        Some(Self { sequence_id: sequence_id.parse().ok()?, backend, probe_kind, encrypted })
    }
}

/// Kind and destination of the probes, each run of equal ones shortened to one: the way that a worker went.
pub fn probe_steps(probes: &[RdsBgdProbeLog]) -> Vec<(RdsBgdProbeKind, Endpoint)> {
    let mut steps: Vec<_> = probes.iter().map(|probe| (probe.probe_kind, probe.backend.clone())).collect();
    steps.dedup();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: [&str; 5]) -> Option<RdsBgdProbeLog> {
        RdsBgdProbeLog::from_row(&values.map(|value| Some(value.to_owned())))
    }

    #[test]
    fn a_row_is_typed() {
        let probe = parse(["7", "127.10.0.14", "3306", "metadata", "1"]).unwrap();
        assert_eq!(probe.sequence_id, 7);
        assert_eq!(probe.backend, Endpoint::new("127.10.0.14", 3306));
        assert_eq!((probe.probe_kind, probe.encrypted), (RdsBgdProbeKind::Metadata, true));
    }

    #[test]
    fn any_other_row_is_refused() {
        assert_eq!(parse(["x", "127.10.0.14", "3306", "metadata", "1"]), None);
        assert_eq!(parse(["7", "127.10.0.14", "70000", "metadata", "1"]), None);
        assert_eq!(parse(["7", "127.10.0.14", "3306", "ping", "1"]), None);
        assert_eq!(parse(["7", "127.10.0.14", "3306", "table_check", "2"]), None);
        assert_eq!(RdsBgdProbeLog::from_row(&[None, None, None, None, None]), None);
        assert_eq!(RdsBgdProbeLog::from_row(&[]), None);
    }

    #[test]
    fn steps_are_probes_without_their_repetition() {
        let probe = |kind, ip| parse(["7", ip, "3306", kind, "0"]).unwrap();
        let (blue, green) = ("127.10.0.11", "127.10.0.14");
        let probes = [("table_check", blue), ("metadata", blue), ("metadata", green), ("metadata", green)];
        let steps = probe_steps(&probes.map(|(kind, ip)| probe(kind, ip)));
        let expected = [
            (RdsBgdProbeKind::TableCheck, Endpoint::new(blue, 3306)),
            (RdsBgdProbeKind::Metadata, Endpoint::new(blue, 3306)),
            (RdsBgdProbeKind::Metadata, Endpoint::new(green, 3306)),
        ];
        assert_eq!(steps, expected);
    }
}
