//! The text format of recordings: a line for each change, fields apart by blanks, `#` before comments. Pure.

use super::{Change, Moment, RdsBgdRecording};
use crate::connection::Endpoint;
use crate::simulator::{RdsBgdBackend, RdsBgdBackendMode, RdsBgdDnsAnswer, RdsBgdHost, RdsBgdTopologyRow};
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

/// What a recording has where something else is expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, field {field}: {}, expected {expected}", found.as_ref().map_or("nothing".to_owned(), |found| format!("'{found}'")))]
pub struct RecordingError {
    /// From 1
    pub line: usize,
    /// From 1, as blanks part them
    pub field: usize,
    /// None where the line ends
    pub found: Option<String>,
    /// What belongs there
    pub expected: &'static str,
}

pub(super) fn parse(text: &str, port: u16) -> Result<RdsBgdRecording, RecordingError> {
    let mut recording = RdsBgdRecording { hosts: Vec::new(), moments: Vec::new() };
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut fields = Fields::new(index + 1, line);
        if fields.peek().is_none() {
            continue;
        }
        if fields.peek() == Some("host") {
            fields.skip();
            let host = host(&mut fields, port, &recording)?;
            recording.hosts.push(host);
        } else {
            let last = recording.moments.last().map_or(Duration::ZERO, |moment| moment.offset);
            let offset = fields.take("'host', or milliseconds that do not go back", |word| {
                word.parse().ok().map(Duration::from_millis).filter(|offset| *offset >= last)
            })?;
            let change = change(&mut fields, &recording.hosts)?;
            match recording.moments.last_mut().filter(|moment| moment.offset == offset) {
                Some(moment) => moment.changes.push(change),
                None => recording.moments.push(Moment { offset, changes: vec![change] }),
            }
        }
        fields.end()?;
    }
    Ok(recording)
}

/// `LABEL HOSTNAME ADDRESS`
fn host(
    fields: &mut Fields<'_>,
    port: u16,
    recording: &RdsBgdRecording,
) -> Result<(String, RdsBgdHost), RecordingError> {
    let label = fields.take("a label that no host has yet", |word| {
        // An address is an address wherever a label may stand.
        let free = recording.host(word).is_none() && word.parse::<IpAddr>().is_err();
        (free && !word.contains([',', '/'])).then(|| word.to_owned())
    })?;
    let hostname = fields.take("a hostname", |word| Some(word.to_owned()))?;
    let ip = fields.take("an IP address", |word| word.parse::<IpAddr>().ok())?.to_string();
    Ok((label, RdsBgdHost { hostname, ip, port }))
}

type Hosts = [(String, RdsBgdHost)];

/// `KIND LABEL[,LABEL...] ...`
fn change(fields: &mut Fields<'_>, hosts: &Hosts) -> Result<Change, RecordingError> {
    let kinds = ["topology", "read_only", "backend", "dns"];
    let kind = fields
        .take("topology, read_only, backend or dns", |word| kinds.into_iter().find(|kind| *kind == word))?;
    let of = fields.take("labels of hosts, apart by commas", |word| {
        word.split(',').map(|label| labelled(hosts, label)).collect::<Option<Vec<_>>>()
    })?;
    let ips = || of.iter().map(|host| host.endpoint()).collect();
    Ok(match kind {
        "topology" => topology(fields, ips(), hosts)?,
        "read_only" => {
            let value =
                fields.take("yes or no", |word| ["no", "yes"].iter().position(|known| *known == word))?;
            Change::ReadOnly(of.iter().map(|host| host.host_endpoint()).collect(), value == 1)
        }
        "backend" => Change::Backend(ips(), backend(fields)?),
        _ => Change::Dns(of.iter().map(|host| host.hostname.clone()).collect(), dns(fields, hosts)?),
    })
}

/// `empty`, `drop`, `error CODE MESSAGE`, or rows apart by `/`: `ID LABEL ROLE STATUS`.
fn topology(fields: &mut Fields<'_>, of: Vec<Endpoint>, hosts: &Hosts) -> Result<Change, RecordingError> {
    match fields.peek() {
        Some("empty") => {
            fields.skip();
            return Ok(Change::Topology(of, Vec::new()));
        }
        Some("drop") => {
            fields.skip();
            return Ok(Change::Drop(of));
        }
        Some("error") => {
            fields.skip();
            let code = fields.number("an error code (1-65535)")?;
            return Ok(Change::Error(of, code, fields.rest()));
        }
        _ => {}
    }
    let mut rows = Vec::new();
    loop {
        rows.push(row(fields, hosts)?);
        if fields.peek() != Some("/") {
            return Ok(Change::Topology(of, rows));
        }
        fields.skip();
    }
}

fn row(fields: &mut Fields<'_>, hosts: &Hosts) -> Result<RdsBgdTopologyRow, RecordingError> {
    let id = fields.take("empty, drop, error, or the id of a row", |word| Some(word.to_owned()))?;
    let host = fields.take("the label of a host", |word| labelled(hosts, word))?;
    let role = fields.take("source or target", |word| match word {
        "source" => Some("BLUE_GREEN_DEPLOYMENT_SOURCE"),
        "target" => Some("BLUE_GREEN_DEPLOYMENT_TARGET"),
        _ => None,
    })?;
    let status = fields.take("a status", |word| (word != "/").then(|| word.to_owned()))?;
    Ok(RdsBgdTopologyRow {
        id,
        endpoint: host.hostname.clone(),
        port: host.port,
        role: role.to_owned(),
        status,
    })
}

/// `MODE [latency MS] [close_after N]`
fn backend(fields: &mut Fields<'_>) -> Result<RdsBgdBackend, RecordingError> {
    let mode = fields.take("serve, read_only, refuse or stall", |word| match word {
        "serve" => Some(RdsBgdBackendMode::Serve),
        "read_only" => Some(RdsBgdBackendMode::ReadOnly),
        "refuse" => Some(RdsBgdBackendMode::Refuse),
        "stall" => Some(RdsBgdBackendMode::Stall),
        _ => None,
    })?;
    let mut backend = RdsBgdBackend::from(mode);
    while fields.peek().is_some() {
        match fields.option(&["latency", "close_after"], "latency or close_after")? {
            "latency" => backend.latency = fields.milliseconds()?,
            _ => backend.close_after = fields.number("a number of statements")?,
        }
    }
    Ok(backend)
}

/// `nxdomain`, `servfail`, `drop`, or `ADDRESS[,ADDRESS...] [ttl SECONDS] [delay MS]`, where a label stands for its address.
fn dns(fields: &mut Fields<'_>, hosts: &Hosts) -> Result<RdsBgdDnsAnswer, RecordingError> {
    let address = |word: &str| match labelled(hosts, word) {
        Some(host) => Some(host.ip.clone()),
        None => word.parse::<IpAddr>().ok().map(|address| address.to_string()),
    };
    let answer =
        fields.take("nxdomain, servfail, drop, or labels or addresses, apart by commas", |word| {
            Some(match word {
                "nxdomain" => RdsBgdDnsAnswer::NxDomain,
                "servfail" => RdsBgdDnsAnswer::ServFail,
                "drop" => RdsBgdDnsAnswer::Drop,
                _ => RdsBgdDnsAnswer::Addresses {
                    addresses: word.split(',').map(address).collect::<Option<_>>()?,
                    ttl: 1,
                    delay: Duration::ZERO,
                },
            })
        })?;
    let RdsBgdDnsAnswer::Addresses { addresses, mut ttl, mut delay } = answer else { return Ok(answer) };
    while fields.peek().is_some() {
        match fields.option(&["ttl", "delay"], "ttl or delay")? {
            // DNS has no longer one.
            "ttl" => {
                ttl = fields.take("seconds (0-2147483647)", |word| {
                    word.parse().ok().filter(|ttl| i32::try_from(*ttl).is_ok())
                })?
            }
            _ => delay = fields.milliseconds()?,
        }
    }
    Ok(RdsBgdDnsAnswer::Addresses { addresses, ttl, delay })
}

fn labelled<'a>(hosts: &'a Hosts, label: &str) -> Option<&'a RdsBgdHost> {
    hosts.iter().find(|(known, _)| known == label).map(|(_, host)| host)
}

/// The fields of one line, taken one after the other.
struct Fields<'a> {
    line: usize,
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Fields<'a> {
    fn new(line: usize, text: &'a str) -> Self {
        Self { line, words: text.split_whitespace().collect(), next: 0 }
    }
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }
    fn skip(&mut self) {
        self.next += 1;
    }
    /// Takes a field that `read` makes sense of.
    fn take<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, RecordingError> {
        let value = self.peek().and_then(read).ok_or_else(|| self.error(expected))?;
        self.skip();
        Ok(value)
    }
    fn number<T: FromStr>(&mut self, expected: &'static str) -> Result<T, RecordingError> {
        self.take(expected, |word| word.parse().ok())
    }
    /// At most a minute, the simulator's limit.
    fn milliseconds(&mut self) -> Result<Duration, RecordingError> {
        self.take("milliseconds (0-60000)", |word| {
            word.parse().ok().filter(|time| *time <= 60_000).map(Duration::from_millis)
        })
    }
    fn option(
        &mut self,
        known: &[&'static str],
        expected: &'static str,
    ) -> Result<&'static str, RecordingError> {
        self.take(expected, |word| known.iter().copied().find(|known| *known == word))
    }
    /// All that is left, with single blanks.
    fn rest(&mut self) -> String {
        let rest = self.words.get(self.next..).unwrap_or_default().join(" ");
        self.next = self.words.len();
        rest
    }
    fn end(&self) -> Result<(), RecordingError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.error("the end of the line")) }
    }
    fn error(&self, expected: &'static str) -> RecordingError {
        RecordingError {
            line: self.line,
            field: self.next + 1,
            found: self.peek().map(str::to_owned),
            expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: &str = "host blue db-1.test 127.10.0.11 # the first\n\nhost green db-2.test ::1\n";

    /// The one change of a recording with two hosts.
    fn one(line: &str) -> Result<Change, RecordingError> {
        let recording = parse(&format!("{HOSTS}{line}"), 3307)?;
        assert_eq!(recording.moments.len(), 1, "{line}");
        Ok(recording.moments[0].changes[0].clone())
    }

    fn endpoints(hosts: &[&str]) -> Vec<Endpoint> {
        hosts.iter().map(|host| Endpoint::new(*host, 3307)).collect()
    }

    #[test]
    fn topologies() {
        let both = || endpoints(&["127.10.0.11", "::1"]);
        let row = |id: &str, endpoint: &str, role: &str| RdsBgdTopologyRow {
            id: id.into(),
            endpoint: endpoint.into(),
            port: 3307,
            role: format!("BLUE_GREEN_DEPLOYMENT_{role}"),
            status: "AVAILABLE".into(),
        };
        let rows = vec![row("7", "db-1.test", "SOURCE"), row("x", "db-2.test", "TARGET")];
        let line = "0 topology blue,green 7 blue source AVAILABLE / x green target AVAILABLE";
        assert_eq!(one(line), Ok(Change::Topology(both(), rows)));
        assert_eq!(one("0 topology blue,green empty"), Ok(Change::Topology(both(), vec![])));
        assert_eq!(one("0 topology green drop"), Ok(Change::Drop(endpoints(&["::1"]))));
        let error = Change::Error(endpoints(&["::1"]), 1105.try_into().unwrap(), "it is broken".into());
        assert_eq!(one("0 topology green error 1105 it is  broken"), Ok(error));
    }

    #[test]
    fn read_only_values_and_backends() {
        let named = endpoints(&["db-1.test", "db-2.test"]);
        assert_eq!(one("5 read_only blue,green yes"), Ok(Change::ReadOnly(named.clone(), true)));
        assert_eq!(one("5 read_only blue,green no"), Ok(Change::ReadOnly(named, false)));
        let blue = || endpoints(&["127.10.0.11"]);
        for (text, mode) in [
            ("serve", RdsBgdBackendMode::Serve),
            ("read_only", RdsBgdBackendMode::ReadOnly),
            ("refuse", RdsBgdBackendMode::Refuse),
            ("stall", RdsBgdBackendMode::Stall),
        ] {
            assert_eq!(one(&format!("5 backend blue {text}")), Ok(Change::Backend(blue(), mode.into())));
        }
        let slow =
            RdsBgdBackend { latency: Duration::from_millis(20), close_after: 3, ..RdsBgdBackend::default() };
        assert_eq!(one("5 backend blue serve close_after 3 latency 20"), Ok(Change::Backend(blue(), slow)));
    }

    #[test]
    fn names() {
        let names = || vec!["db-1.test".to_owned()];
        for (text, answer) in [
            ("nxdomain", RdsBgdDnsAnswer::NxDomain),
            ("servfail", RdsBgdDnsAnswer::ServFail),
            ("drop", RdsBgdDnsAnswer::Drop),
        ] {
            assert_eq!(one(&format!("5 dns blue {text}")), Ok(Change::Dns(names(), answer)));
        }
        let addresses = ["127.10.0.11", "10.0.0.1", "::1"].map(str::to_owned).to_vec();
        let answer = RdsBgdDnsAnswer::Addresses { addresses, ttl: 5, delay: Duration::from_millis(20) };
        assert_eq!(one("5 dns blue blue,10.0.0.1,green ttl 5 delay 20"), Ok(Change::Dns(names(), answer)));
    }

    #[test]
    fn changes_of_one_time_are_one_moment() {
        let lines = "0 read_only blue no\n0 read_only green yes\n10 read_only blue yes\n";
        let recording = parse(&format!("{HOSTS}{lines}"), 3306).unwrap();
        let shape: Vec<_> =
            recording.moments.iter().map(|m| (m.offset.as_millis(), m.changes.len())).collect();
        assert_eq!(shape, [(0, 2), (10, 1)]);
        assert_eq!(parse("# nothing\n\n", 3306).unwrap().moments, []);
    }

    #[test]
    fn an_error_names_line_and_field() {
        for (text, message) in [
            (
                "x topology blue empty",
                "line 4, field 1: 'x', expected 'host', or milliseconds that do not go back",
            ),
            (
                "-1 topology blue empty",
                "line 4, field 1: '-1', expected 'host', or milliseconds that do not go back",
            ),
            (
                "5 read_only blue no\n4 read_only blue no",
                "line 5, field 1: '4', expected 'host', or milliseconds that do not go back",
            ),
            ("host blue a 1.2.3.4", "line 4, field 2: 'blue', expected a label that no host has yet"),
            ("host ::2 a 1.2.3.4", "line 4, field 2: '::2', expected a label that no host has yet"),
            ("host new a 1.2.3", "line 4, field 4: '1.2.3', expected an IP address"),
            ("host new", "line 4, field 3: nothing, expected a hostname"),
            (
                "5 topologie blue empty",
                "line 4, field 2: 'topologie', expected topology, read_only, backend or dns",
            ),
            (
                "5 topology blue,red empty",
                "line 4, field 3: 'blue,red', expected labels of hosts, apart by commas",
            ),
            ("5 topology blue", "line 4, field 4: nothing, expected empty, drop, error, or the id of a row"),
            ("5 topology blue error 0 x", "line 4, field 5: '0', expected an error code (1-65535)"),
            ("5 topology blue empty now", "line 4, field 5: 'now', expected the end of the line"),
            ("5 topology blue 1 blue main A", "line 4, field 6: 'main', expected source or target"),
            (
                "5 topology blue 1 blue source A /",
                "line 4, field 9: nothing, expected empty, drop, error, or the id of a row",
            ),
            ("5 topology blue 1 blue source / 2", "line 4, field 7: '/', expected a status"),
            ("5 read_only blue maybe", "line 4, field 4: 'maybe', expected yes or no"),
            (
                "5 backend blue serve latency 60001",
                "line 4, field 6: '60001', expected milliseconds (0-60000)",
            ),
            ("5 backend blue serve soon", "line 4, field 5: 'soon', expected latency or close_after"),
            (
                "5 dns blue red",
                "line 4, field 4: 'red', expected nxdomain, servfail, drop, or labels or addresses, apart by commas",
            ),
            ("5 dns blue nxdomain ttl 5", "line 4, field 5: 'ttl', expected the end of the line"),
            ("5 dns blue blue ttl x", "line 4, field 6: 'x', expected seconds (0-2147483647)"),
            (
                "5 dns blue blue ttl 2147483648",
                "line 4, field 6: '2147483648', expected seconds (0-2147483647)",
            ),
        ] {
            assert_eq!(parse(&format!("{HOSTS}{text}"), 3306).unwrap_err().to_string(), message, "{text}");
        }
    }
}
