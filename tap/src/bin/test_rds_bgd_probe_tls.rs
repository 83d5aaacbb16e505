//! Whether a worker's probes are encrypted: the blue writer's row decides for blue, and in a deployment without green hostgroups for
//! green too; a configured green writer's row decides for green. Each worker asks for the table, then blue, then green.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind, RdsBgdProbeLog, probe_steps};

/// Each case has hostgroups of its own, and another cluster than the two before: their workers may still be ending.
const FIRST_HOSTGROUP: u32 = 1200;
/// Probes after a change of TLS, enough to take each kept connection into use again.
const PROBES_AFTER_CHANGE: usize = 4;

fn main() -> ExitCode {
    scenario::run(20, |tap, scenario| {
        let port = scenario.server_port();
        let clusters = [hosts::cluster_1_green_a(port), hosts::cluster_2(port), hosts::cluster_3(port)];
        test_automatic(tap, scenario, &clusters[0], hostgroups(0), false)?;
        test_automatic(tap, scenario, &clusters[1], hostgroups(1), true)?;
        test_explicit(tap, scenario, &clusters[2], hostgroups(2), (true, true))?;
        test_explicit(tap, scenario, &clusters[0], hostgroups(3), (true, false))?;
        test_explicit(tap, scenario, &clusters[1], hostgroups(4), (false, true))?;
        test_explicit(tap, scenario, &clusters[2], hostgroups(5), (false, false))?;
        // The last one is still there, with connections in clear to either writer.
        test_change(tap, scenario, &clusters[2], true)?;
        test_change(tap, scenario, &clusters[2], false)
    })
}

const fn hostgroups(case: u32) -> Hostgroups {
    Hostgroups::starting_at(FIRST_HOSTGROUP + 4 * case)
}

fn test_automatic(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
    encrypted: bool,
) -> Result<(), Error> {
    let case = format!("automatic, use_ssl={}", u8::from(encrypted));
    prepare(scenario, cluster, hostgroups, &[(hostgroups.writer, &cluster.blue_writer)])?;
    use_ssl(scenario, &cluster.blue_writer, encrypted)?;
    let baseline = scenario.simulator.probe_log_last_sequence()?;
    admin::discover(&mut scenario.admin, 1, true)?;
    let made = scenario.admin.wait_until(&admin::discovered_alone(hostgroups));
    tap.ok_result(made, &format!("{case}: a deployment is made"));
    admin::discover(&mut scenario.admin, 0, true)?;
    expect_way(tap, scenario, cluster, baseline, &case, (encrypted, encrypted))
}

fn test_explicit(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
    (blue, green): (bool, bool),
) -> Result<(), Error> {
    let case = format!("explicit, use_ssl={} on blue, {} on green", u8::from(blue), u8::from(green));
    let members =
        [(hostgroups.writer, &cluster.blue_writer), (hostgroups.green_writer, &cluster.green_writer)];
    prepare(scenario, cluster, hostgroups, &members)?;
    use_ssl(scenario, &cluster.blue_writer, blue)?;
    use_ssl(scenario, &cluster.green_writer, green)?;
    let baseline = scenario.simulator.probe_log_last_sequence()?;
    admin::add_deployment(&mut scenario.admin, hostgroups)?;
    expect_way(tap, scenario, cluster, baseline, &case, (blue, green))
}

/// A topology and servers for it, nothing of the case before, and no deployment yet.
fn prepare(
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
    members: &[(u32, &RdsBgdHost)],
) -> Result<(), Error> {
    scenario.clean_up()?;
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    scenario.publish(cluster, "AVAILABLE")?;
    admin::configure_pair(&mut scenario.admin, hostgroups, members)
}

/// Three tests: both writers' rows change, and from the first probe on that shows it no other is seen.
fn test_change(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    encrypted: bool,
) -> Result<(), Error> {
    let case = format!("use_ssl changes to {}", u8::from(encrypted));
    let baseline = scenario.simulator.probe_log_last_sequence()?;
    let changes = [&cluster.blue_writer, &cluster.green_writer].map(|host| set_use_ssl(host, encrypted));
    admin::change_servers(&mut scenario.admin, &changes)?;
    for host in [&cluster.blue_writer, &cluster.green_writer] {
        let probe = scenario.wait_for_metadata(host, baseline, Some(encrypted));
        tap.ok_result(probe, &format!("{case}: {} is asked so", host.ip));
    }
    let mut seen = baseline;
    for _ in 0..PROBES_AFTER_CHANGE {
        seen = scenario.wait_for_metadata(&cluster.green_writer, seen, Some(encrypted))?;
    }
    let probes = scenario.simulator.probe_log_since(baseline)?;
    let changed: Vec<_> = probes.iter().skip_while(|probe| probe.encrypted != encrypted).collect();
    let lasting = changed.iter().all(|probe| probe.encrypted == encrypted);
    tap.ok(lasting, &format!("{case}: no connection from before is used again"));
    Ok(())
}

/// Two tests: table check on blue, metadata on blue, metadata on green; encrypted as given for (blue, green).
fn expect_way(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    baseline: u64,
    case: &str,
    (blue_encrypted, green_encrypted): (bool, bool),
) -> Result<(), Error> {
    let (blue, green) = (cluster.blue_writer.endpoint(), cluster.green_writer.endpoint());
    let (check, metadata) = (RdsBgdProbeKind::TableCheck, RdsBgdProbeKind::Metadata);
    // Probes before are those of discovery.
    let first = scenario.wait_for_probe(&cluster.blue_writer, check, baseline, None)?;
    scenario.wait_for_metadata(&cluster.green_writer, first, None)?;
    let mut probes = scenario.simulator.probe_log_since(first - 1)?;
    probes.retain(|probe| cluster.get_writers().contains(&probe.backend));
    let expected = [(check, blue.clone()), (metadata, blue.clone()), (metadata, green)];
    tap.is(probe_steps(&probes), expected.into(), &format!("{case}: table check, blue, green"));
    let as_configured = |probe: &RdsBgdProbeLog| {
        probe.encrypted == if probe.backend == blue { blue_encrypted } else { green_encrypted }
    };
    let wrong: Vec<_> = probes.iter().filter(|probe| !as_configured(probe)).collect();
    tap.is(wrong, Vec::new(), &format!("{case}: no probe is encrypted otherwise"));
    Ok(())
}

fn use_ssl(scenario: &mut Scenario, host: &RdsBgdHost, encrypted: bool) -> Result<(), Error> {
    admin::change_servers(&mut scenario.admin, &[set_use_ssl(host, encrypted)])
}

fn set_use_ssl(host: &RdsBgdHost, encrypted: bool) -> String {
    admin::update_server(host, &format!("use_ssl={}", u8::from(encrypted)))
}
