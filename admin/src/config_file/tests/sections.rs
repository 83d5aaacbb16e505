use super::*;
use crate::tables::{Group, TABLES};
use rusqlite::types::Value as Cell;

#[track_caller]
fn refusal(text: &str) -> String {
    match load(text) {
        Err(said) => said,
        Ok(loaded) => panic!("{text}: {loaded:?}"),
    }
}

/// `column=value` of the only row.
#[track_caller]
fn only_row(text: &str) -> Vec<String> {
    let rows = load(text).unwrap().rows;
    assert_eq!(rows.len(), 1, "{text}");
    let cells = rows[0].columns.iter().zip(&rows[0].cells);
    let shown = cells.map(|(column, cell)| match cell {
        Cell::Integer(number) => format!("{column}={number}"),
        Cell::Text(text) => format!("{column}='{text}'"),
        other => panic!("{other:?}"),
    });
    shown.collect()
}

#[test]
fn columns_have_the_names_of_their_table_and_some_have_others_too() {
    for names in [("address", "hostgroup"), ("host", "hostgroup_id"), ("hostname", "hostgroup")] {
        let text = format!("mysql_servers = ( {{ {} = \"a\"; {} = 3; port = 0x10 }} )", names.0, names.1);
        assert_eq!(only_row(&text), ["hostname='a'", "hostgroup_id=3", "port=16"]);
    }
    let rule = "mysql_query_rules = ( { rule_id = 1; flagIN = 0; OK_msg = \"\"; } )";
    assert_eq!(only_row(rule), ["rule_id=1", "flagIN=0", "OK_msg=''"]);
    // A comment that must not be NULL may be left out, as in ProxySQL's files.
    let fast =
        "mysql_query_rules_fast_routing = ( { username=\"u\" schemaname=\"s\" destination_hostgroup=1 } )";
    assert_eq!(only_row(fast).last().unwrap(), "comment=''");
    assert_eq!(
        refusal("mysql_replication_hostgroups = ( { writer_hostgroup = 1; address = \"a\" } )"),
        "p.cnf:1: mysql_replication_hostgroups.address: mysql_replication_hostgroups has no such column"
    );
}

#[test]
fn every_table_has_a_section() {
    for table in TABLES.iter().filter(|table| table.group != Group::Variables) {
        let loaded = load(&format!("{} = ();", table.name)).unwrap();
        assert!(loaded.rows.is_empty());
        assert!(refusal(&format!("{} = 1;", table.name)).contains("a list of groups"));
        assert!(refusal(&format!("{} = ( 1 );", table.name)).contains("a group { ... } is expected"));
    }
}

#[test]
fn rows_that_do_not_fit_are_named() {
    for (text, said) in [
        (
            "mysql_servers = (\n {\n port = 1 } )",
            "p.cnf:2: mysql_servers.hostname: is missing in the group that begins here",
        ),
        ("mysql_query_rules = ( { active = 1 } )", "p.cnf:1: mysql_query_rules.rule_id: is missing"),
        (
            "mysql_query_rules = ( { rule_id = 1; flagin = 1 } )",
            "p.cnf:1: mysql_query_rules.flagin: mysql_query_rules has no such column; flagIN is written so",
        ),
        (
            "mysql_servers = ( { hostname = \"a\"; wieght = 1 } )",
            "p.cnf:1: mysql_servers.wieght: mysql_servers has no such column",
        ),
        (
            "mysql_servers = ( { hostname = \"a\";\n port = \"3306\" } )",
            "p.cnf:2: mysql_servers.port: a string; an integer is expected",
        ),
        (
            "mysql_servers = ( { hostname = \"a\"; use_ssl = true } )",
            "p.cnf:1: mysql_servers.use_ssl: true or false; an integer is expected",
        ),
        (
            "mysql_servers = ( { hostname = 5 } )",
            "p.cnf:1: mysql_servers.hostname: an integer; a string is expected",
        ),
        (
            "mysql_servers = ( { hostname = \"a\"\n host = \"b\" } )",
            "p.cnf:2: mysql_servers.host: hostname is given a second time",
        ),
        (
            "mysql_servers = ( { hostname = \"a\"\n\n port = 70000 } )",
            "p.cnf:3: mysql_servers.port: CHECK constraint failed",
        ),
        (
            "mysql_servers = ( { hostname = \"a\"\n status = \"UP\" } )",
            "p.cnf:2: mysql_servers.status: CHECK constraint failed",
        ),
        (
            "mysql_servers = ( { hostname = \"a\" },\n{ hostname = \"a\" } )",
            "p.cnf:2: mysql_servers.hostname: UNIQUE constraint failed",
        ),
        (
            "mysql_servers = ( { hostname = \"a\" },\n{ hostname = \"b\"; weight = 1; max_connections = 5000000000 } )",
            "p.cnf:2: mysql_servers (hostgroup_id=0, hostname='b', port=3306).max_connections: 5000000000 is out of range",
        ),
        (
            "mysql_servers = ( { hostname = \" \" } )",
            "p.cnf:1: mysql_servers (hostgroup_id=0, hostname=' ', port=3306).hostname: ' ' is not a host name",
        ),
        (
            "mysql_users = ( { username = \"u\"; attributes = \"{\" } )",
            "p.cnf:1: mysql_users.attributes: CHECK constraint failed",
        ),
        (
            "mysql_query_rules = ( { rule_id = 1\n replace_pattern = \"x\" } )",
            "p.cnf:2: mysql_query_rules.replace_pattern: CHECK",
        ),
    ] {
        let found = refusal(text);
        assert!(found.starts_with(said), "{found}\n{said}");
    }
}

#[test]
fn passwords_are_never_shown() {
    for text in [
        "mysql_users = ( { username = \"u\"; password = \"hush\" }, { username = \"u\"; password = \"hush\" } )",
        "mysql_users = ( { username = \"u\"; password = \"hush\"; active = 7 } )",
        "mysql_users = ( { username = \"u\"; password = (\"hush\") } )",
        "mysql_users = ( { username = \"u\"; password = \"hush\"; passwort = \"hush\" } )",
        "admin_variables = { admin_credentials = \"hush\" }",
        "mysql_variables = { monitor_passwort = \"hush\" }",
        "mysql_variables = { monitor_password = (\"hush\") }",
    ] {
        let said = refusal(text);
        assert!(!said.contains("hush"), "{said}");
    }
}

#[test]
fn variables_are_typed_by_their_registry() {
    let loaded = load(
        "mysql_variables = { wait_timeout = 5000; have_ssl = false; multiplexing = \"1\"; eventslog_format = 4 };
         admin_variables : { admin_credentials = \"a:b;c:d\", version = \"2\" }",
    );
    let loaded = loaded.unwrap();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        loaded.variables,
        [
            ("mysql-wait_timeout", text("5000")),
            ("mysql-have_ssl", text("false")),
            ("mysql-multiplexing", text("true")),
            ("admin-admin_credentials", text("a:b;c:d")),
        ]
    );
    // Of ProxySQL's own variables some are left out; other names are mistakes.
    assert_eq!(loaded.ignored, ["mysql_variables.eventslog_format"]);
    for (text, said) in [
        (
            "mysql_variables = {\n wait_timeot = 1 }",
            "p.cnf:2: mysql_variables.wait_timeot: there is no variable mysql-wait_timeot",
        ),
        (
            "mysql_variables = {\n wait_timeout = -1 }",
            "p.cnf:2: mysql_variables.wait_timeout: Variable 'mysql-wait_timeout' can't be set to '-1'",
        ),
        (
            "mysql_variables = { wait_timeout = 1.5 }",
            "p.cnf:1: mysql_variables.wait_timeout: a number with a fraction; a string,",
        ),
        (
            "mysql_variables = { wait_timeout = 1; WAIT_timeout = 2 }",
            "p.cnf:1: mysql_variables.WAIT_timeout: stands here a second time",
        ),
        ("mysql_variables = ( )", "p.cnf:1: mysql_variables: a list ( ); a group { ... } is expected"),
    ] {
        let found = refusal(text);
        assert!(found.starts_with(said), "{found}\n{said}");
    }
}

#[test]
fn a_file_of_proxysql_is_taken_as_it_is() {
    let settings = parse(
        "datadir=\"/var/lib/proxysql\"
         errorlog=\"/var/lib/proxysql/proxysql.log\"
         admin_variables= { admin_credentials=\"admin:admin;radmin:radmin\" mysql_ifaces=\"0.0.0.0:6032\"
             refresh_interval=2000 cluster_username=\"c\" cluster_password=\"c\" web_enabled=false }
         mysql_variables= {
             threads=4 max_connections=2048 default_query_delay=0 default_query_timeout=36000000 have_compress=true
             poll_timeout=2000 interfaces=\"0.0.0.0:6033\" default_schema=\"information_schema\" stacksize=1048576
             server_version=\"8.0.11\" connect_timeout_server=3000 monitor_username=\"monitor\"
             monitor_password=\"monitor\" monitor_history=600000 monitor_connect_interval=60000
             monitor_ping_interval=10000 monitor_read_only_interval=1500 monitor_read_only_timeout=500
             ping_interval_server_msec=120000 ping_timeout_server=500 commands_stats=true sessions_sort=true
             connect_retries_on_failure=10 eventslog_filename=\"events\" ssl_p2s_ca=\"\" query_retries_on_failure=1 }
         mysql_servers = ( { address=\"10.0.0.1\" , port=3306 , hostgroup=0 , status=\"ONLINE\" , weight=1 , compression=0
             max_replication_lag=10 , max_latency_ms=0 } , )
         mysql_users: ( { username = \"root\" , password = \"\" , default_hostgroup = 0 , active = 1 } )
         mysql_query_rules: ( { rule_id=1 active=1 match_pattern=\"^SELECT .* FOR UPDATE$\" destination_hostgroup=0 apply=1 } )
         scheduler= ( { id=1 active=0 interval_ms=10000 filename=\"/bin/true\" arg1=\"0\" } )
         mysql_replication_hostgroups= ( { writer_hostgroup=30 reader_hostgroup=40 comment=\"test repl 1\" } )
         pgsql_variables= { threads=4 }",
    );
    let loaded = super::super::sections::load(&settings.unwrap(), Wanted::All).unwrap();
    assert_eq!(loaded.rows.len(), 4);
    let taken: Vec<&str> = loaded.variables.iter().map(|(name, _)| *name).collect();
    assert!(taken.contains(&"mysql-monitor_read_only_timeout") && taken.contains(&"admin-admin_credentials"));
    assert_eq!(loaded.variables.len() + loaded.ignored.len(), 32, "{:?}", loaded.ignored);
}

#[test]
fn only_wanted_sections_are_looked_at() {
    let text = "mysql_users = ( { username = \"u\" } ); mysql_servers = ( { hostname = 5 } ); mysql_variables = { wait_timeout = 1 }
                admin_variables = { nonsense = 1 }";
    let settings = parse(text).unwrap();
    let load = |wanted| {
        super::super::sections::load(&settings, wanted)
            .map(|loaded| (loaded.rows.len(), loaded.variables.len()))
    };
    assert_eq!(load(Wanted::Tables(Group::Users)), Ok((1, 0)));
    assert_eq!(load(Wanted::Variables("mysql-")), Ok((0, 1)));
    assert!(load(Wanted::Tables(Group::Servers)).is_err());
    assert!(load(Wanted::Variables("admin-")).is_err());
    assert!(load(Wanted::All).is_err());
}
