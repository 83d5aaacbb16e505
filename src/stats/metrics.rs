//! SHOW PROMETHEUS METRICS: what the stats tables show, in Prometheus' text exposition format (version 0.0.4).
//!
//! Nothing is counted here: each metric is a figure of a table.

mod registry;

use super::Sources;
use crate::hostgroups::ServerStatus;
use crate::pool::{HostgroupFigures, ServerFigures};
use admin::Value;
use registry::{FIGURES, HOSTGROUPS, Kind, SERVERS};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// A metric with its values, each with its labels as they are written.
struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    samples: Vec<(String, u64)>,
}

/// All metrics.
pub fn metrics(sources: &Sources) -> String {
    let memory = sources.memory().into_iter().map(|(name, bytes)| (name.to_owned(), bytes));
    // Some are in both tables.
    let figures: HashMap<String, u64> = sources.global().into_iter().chain(memory).collect();
    let mut families = of_figures(&figures);
    families.extend(of_servers(&sources.backends.servers(false)));
    families.extend(of_hostgroups(&sources.backends.hostgroups(false)));
    families.push(of_errors(sources.sessions.registry().errors.rows()));
    write(&families)
}

fn of_figures(figures: &HashMap<String, u64>) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for figure in FIGURES {
        let Some(&value) = figures.get(figure.variable) else { continue };
        let sample = (figure.labels.to_owned(), value);
        match families.last_mut().filter(|last| last.name == figure.metric) {
            Some(last) => last.samples.push(sample),
            None => families.push(Family {
                name: figure.metric,
                kind: figure.kind,
                help: figure.help,
                samples: vec![sample],
            }),
        }
    }
    families
}

fn of_servers(servers: &[ServerFigures]) -> Vec<Family> {
    let family = |metric: &registry::OfServers| {
        let samples = servers.iter().flat_map(|server| {
            let endpoint = escaped(&server.endpoint.to_string());
            let place = format!("endpoint=\"{endpoint}\",hostgroup=\"{}\"", server.hostgroup);
            let labelled = move |(label, value): &(&str, fn(&ServerFigures) -> u64)| {
                let separator = if label.is_empty() { "" } else { "," };
                (format!("{place}{separator}{label}"), value(server))
            };
            metric.values.iter().map(labelled)
        });
        Family { name: metric.metric, kind: metric.kind, help: metric.help, samples: samples.collect() }
    };
    SERVERS.iter().map(family).collect()
}

fn of_hostgroups(hostgroups: &[HostgroupFigures]) -> Vec<Family> {
    let family = |metric: &registry::OfHostgroups| {
        let sample = |of: &HostgroupFigures| (format!("hostgroup=\"{}\"", of.hostgroup), (metric.value)(of));
        let samples = hostgroups.iter().map(sample).collect();
        Family { name: metric.metric, kind: metric.kind, help: metric.help, samples }
    };
    HOSTGROUPS.iter().map(family).collect()
}

/// Rows of stats_mysql_errors, whoever met them.
fn of_errors(rows: Vec<Vec<Value>>) -> Family {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows {
        if let [
            Value::Int(hostgroup),
            Value::Text(host),
            Value::Int(port),
            ..,
            Value::Int(code),
            Value::Int(count),
            _,
            _,
            _,
        ] = row.as_slice()
        {
            let host = escaped(host);
            let labels =
                format!("hostgroup=\"{hostgroup}\",address=\"{host}\",port=\"{port}\",code=\"{code}\"");
            *sums.entry(labels).or_default() += count.unsigned_abs();
        }
    }
    Family {
        name: "proxysql_mysql_error_total",
        kind: Kind::Counter,
        help: "Errors in stats_mysql_errors by server and number; without an address what pointsman itself told clients.",
        samples: sums.into_iter().collect(),
    }
}

/// The number of a status, as ProxySQL's metric has it.
fn status_number(status: ServerStatus) -> u64 {
    match status {
        ServerStatus::Online => 1,
        ServerStatus::Shunned => 2,
        ServerStatus::OfflineSoft => 3,
        ServerStatus::OfflineHard => 4,
        ServerStatus::ShunnedReplicationLag => 5,
        ServerStatus::ShunnedAwsBgd => 6,
    }
}

/// A label's value: backslashes, quotes and line feeds have escapes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn write(families: &[Family]) -> String {
    let mut text = String::new();
    for Family { name, kind, help, samples } in families.iter().filter(|family| !family.samples.is_empty()) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // Nothing fails that writes to a String.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = match labels.as_str() {
                "" => writeln!(text, "{name} {value}"),
                labels => writeln!(text, "{name}{{{labels}}} {value}"),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::sources;
    use super::*;
    use admin::rows::ServersConfig;
    use std::collections::{BTreeSet, HashSet};

    #[test]
    fn the_text_has_the_form_of_the_format() {
        let family = |name, samples: &[(&str, u64)]| Family {
            name,
            kind: Kind::Counter,
            help: "What it is.",
            samples: samples.iter().map(|(labels, value)| ((*labels).to_owned(), *value)).collect(),
        };
        let families = [
            family("a_total", &[("", 7)]),
            family("none_total", &[]),
            family("b_total", &[("x=\"1\"", 1), ("x=\"2\"", u64::MAX)]),
        ];
        assert_eq!(
            write(&families),
            "# HELP a_total What it is.\n# TYPE a_total counter\na_total 7\n\
             # HELP b_total What it is.\n# TYPE b_total counter\n\
             b_total{x=\"1\"} 1\nb_total{x=\"2\"} 18446744073709551615\n"
        );
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }

    #[test]
    fn every_figure_has_its_metric_and_every_metric_its_figure() {
        let sources = sources();
        let memory = sources.memory().into_iter().map(|(name, _)| name.to_owned());
        let shown: BTreeSet<_> = sources.global().into_iter().map(|(name, _)| name).chain(memory).collect();
        let known: BTreeSet<_> = FIGURES.iter().map(|figure| figure.variable.to_owned()).collect();
        assert_eq!(shown, known);
    }

    #[test]
    fn metrics_of_servers_and_hostgroups_tell_which_ones() {
        let sources = sources();
        let servers = vec![crate::testing::server(3, "db\"1")];
        sources
            .backends
            .update(|hostgroups| hostgroups.load(&ServersConfig { servers, ..Default::default() }));
        let text = metrics(&sources);
        let place = "endpoint=\"db\\\"1:3306\",hostgroup=\"3\"";
        for line in [
            format!("proxysql_connpool_conns{{{place},status=\"free\"}} 0"),
            format!("proxysql_connpool_conns_queries_total{{{place}}} 0"),
            format!("proxysql_connpool_conns_status{{{place}}} 1"),
            "proxysql_hostgroup_waiters{hostgroup=\"3\"} 0".to_owned(),
            "proxysql_client_connections_total{status=\"created\"} 0".to_owned(),
        ] {
            assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn figures_of_one_metric_stand_together() {
        let mut seen = HashSet::new();
        let names = FIGURES.iter().map(|figure| figure.metric);
        let mut last = "";
        for name in names.chain(SERVERS.iter().map(|m| m.metric)).chain(HOSTGROUPS.iter().map(|m| m.metric)) {
            assert!(name == last || seen.insert(name), "{name} is in two places");
            last = name;
        }
        let variables: HashSet<_> = FIGURES.iter().map(|figure| figure.variable).collect();
        assert_eq!(variables.len(), FIGURES.len(), "a variable has two metrics");
    }

    #[test]
    fn counters_and_only_counters_end_in_total() {
        let figures = FIGURES.iter().map(|figure| (figure.metric, figure.kind));
        let servers = SERVERS.iter().map(|metric| (metric.metric, metric.kind));
        let hostgroups = HOSTGROUPS.iter().map(|metric| (metric.metric, metric.kind));
        for (name, kind) in figures.chain(servers).chain(hostgroups) {
            assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
        }
    }

    #[test]
    fn errors_are_summed_up_over_clients() {
        let row = |user: &str, code: i64, count: i64| {
            let text = |text: &str| Value::Text(text.to_owned());
            let mut row =
                vec![Value::Int(3), text("db"), Value::Int(3306), text(user), text("::1"), text("")];
            row.extend([code, count, 1, 2].map(Value::Int));
            row.push(text("x"));
            row
        };
        let family = of_errors(vec![row("a", 1062, 2), row("b", 1062, 3), row("a", 1064, 1)]);
        let labels = |code| format!("hostgroup=\"3\",address=\"db\",port=\"3306\",code=\"{code}\"");
        assert_eq!(family.samples, [(labels(1062), 5), (labels(1064), 1)]);
    }
}
