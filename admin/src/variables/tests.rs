use super::registry::{VARIABLES, find};
use super::*;

#[test]
fn each_default_reads_back_as_itself() {
    for var in VARIABLES.iter().filter(|var| !var.is_read_only()) {
        let text = var.show(&Variables::default());
        let mut read = Variables::default();
        assert!(var.apply(&mut read, &text).is_some(), "{} refuses its default", var.name);
        assert!(read == Variables::default(), "{} changes when its default is read", var.name);
    }
}

#[test]
fn each_variable_writes_its_own_field_only() {
    let texts = [
        "false",
        "true",
        "2",
        "7",
        "17",
        "1",
        "4321",
        "9999",
        "caching_sha2_password",
        "ipv6",
        "127.0.0.9:77",
        "a:b",
        "a.b",
        "1200",
        "300000",
        "8.4.0",
        "0",
    ];
    for var in VARIABLES.iter().filter(|var| !var.is_read_only()) {
        let mut changed = Variables::default();
        let default = var.show(&changed);
        let shown_as_set = texts.iter().any(|text| {
            var.apply(&mut changed, text);
            var.show(&changed) == *text && *text != default
        });
        assert!(shown_as_set, "{} shows no text of this test as it was set", var.name);
        for other in VARIABLES.iter().filter(|other| other.name != var.name) {
            assert_eq!(other.show(&changed), other.show(&Variables::default()), "{}", other.name);
        }
    }
}

#[test]
fn values_outside_the_range_change_nothing() {
    let bad = [
        (
            "mysql-connect_timeout_server_max",
            &["9", "3600001", "-1", "", "ten", "1.5", "99999999999999999999"][..],
        ),
        ("mysql-connect_timeout_client", &["499"]),
        ("mysql-free_connections_pct", &["101"]),
        ("mysql-max_stmts_per_connection", &["0", "1025"]),
        ("mysql-monitor_threads_max", &["3", "1025"]),
        ("mysql-max_allowed_packet", &["8191", "1073741825"]),
        ("mysql-shun_recovery_time_sec", &["31536001"]),
        ("mysql-monitor_enabled", &["2", "yes", ""]),
        ("mysql-resolution_family", &["ipv5", ""]),
        ("mysql-default_authentication_plugin", &["sha256_password"]),
        ("mysql-monitor_dns_server", &["127.0.0.1", "ns.example:53"]),
        ("mysql-monitor_replication_lag_count", &["0", "11"]),
        (
            "mysql-monitor_replication_lag_use_percona_heartbeat",
            &["heartbeat", "a.b.c", "a.", "a.b; DROP TABLE t", "`a.b"],
        ),
        ("mysql-monitor_slave_lag_when_null", &["604801"]),
        ("mysql-throttle_connections_per_sec_to_hostgroup", &["0", "100000001"]),
        ("mysql-ping_interval_server_msec", &["999"]),
        ("mysql-tcp_keepalive_time", &["7201"]),
        ("mysql-threads", &["0", "256", "x", ""]),
        ("mysql-verbose_query_error", &["2", ""]),
        ("mysql-interfaces", &["6033"]),
        ("admin-mysql_ifaces", &["", ";"]),
        ("admin-admin_credentials", &["", "admin", ":x"]),
        ("admin-version", &["2"]),
    ];
    for (name, texts) in bad {
        let var = find(name).unwrap();
        for text in texts {
            let mut variables = Variables::default();
            assert!(var.apply(&mut variables, text).is_none(), "{name} accepts '{text}'");
            assert!(variables == Variables::default());
        }
        assert!(!var.expects().is_empty());
    }
}

#[test]
fn booleans_show_as_words() {
    let var = find("MYSQL-Monitor_Enabled").unwrap();
    let mut variables = Variables::default();
    for (text, shown) in [("0", "false"), ("1", "true"), ("FALSE", "false"), (" True ", "true")] {
        var.apply(&mut variables, text).unwrap();
        assert_eq!(var.show(&variables), shown);
    }
}

/// A flag that ProxySQL has as a number.
#[test]
fn auto_discovery_shows_as_a_number() {
    let var = find("mysql-aws_blue_green_deployment_auto_discovery").unwrap();
    let mut variables = Variables::default();
    assert_eq!(var.show(&variables), "1");
    for (text, shown) in [("false", "0"), ("true", "1"), ("0", "0"), ("1", "1")] {
        var.apply(&mut variables, text).unwrap();
        assert_eq!(var.show(&variables), shown);
    }
    assert!(var.apply(&mut variables, "2").is_none());
}

#[test]
fn credentials_stay_out_of_debug_output() {
    let variables = Variables {
        admin_credentials: vec![("root".into(), "hush".into())],
        monitor_password: "hush".into(),
        ..Variables::default()
    };
    let shown = format!("{variables:?}");
    assert!(!shown.contains("hush") && shown.contains("mysql-wait_timeout"));
}

#[test]
fn names_are_sorted_and_unique() {
    assert!(VARIABLES.is_sorted_by(|a, b| a.name < b.name));
}

#[test]
fn a_version_begins_with_its_number() {
    let var = find("mysql-server_version").unwrap();
    let takes = |text: &str| var.apply(&mut Variables::default(), text).is_some();
    let longest = format!("8.0.{}", "1".repeat(251));
    for text in ["8.0.11", "5.7", "10.11.6-MariaDB-0+deb12u1", "8.0.35 (Ubuntu)", longest.as_str()] {
        assert!(takes(text), "{text}");
    }
    let longer = format!("{longest}1");
    for text in
        ["", "garbage", "8", "8.", ".0", "8.x", "8a.0", "v8.0", "8.0\0", "8.0\n1", "8.0\u{e9}", &longer]
    {
        assert!(!takes(text), "{text:?}");
    }
    let text = crate::command::set::wrong_value(var, "garbage").message;
    assert!(text.contains("'mysql-server_version' can't be set to 'garbage': expected a version"), "{text}");
}
