//! The configuration file, as a process meets it: where it is found, when it counts, and what a broken one leads to.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::prelude::Queryable;
use pair::{program, try_connect};
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{Daemon, command, ended};
use tempfile::TempDir;

/// A directory with a configuration file in it.
struct Files(TempDir);

impl Files {
    fn new(text: &str) -> Self {
        let files = Self(TempDir::new().unwrap());
        files.write(text);
        files
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("p.cnf")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }

    fn start(&self) -> Daemon {
        Daemon::start(program(), &["-c", self.path().to_str().unwrap()])
    }

    fn restart(&self, daemon: Daemon, more: &[&str]) -> Daemon {
        let path = self.path();
        daemon.restart(program(), &[&["-c", path.to_str().unwrap()], more].concat())
    }
}

fn texts(daemon: &Daemon, sql: &str) -> Vec<String> {
    let mut admin = try_connect(daemon.admin_port, "admin", "admin").unwrap();
    admin.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

const USERS: &str = "SELECT username || ' ' || comment FROM mysql_users ORDER BY 1";

/// Runs a daemon that is expected not to start; what it printed.
fn refused(mut command: Command) -> String {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = ended(&mut child);
    if status.is_none() {
        child.kill().unwrap();
    }
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(1), "{text}");
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("pointsman: ")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    lines[0].to_owned()
}

#[test]
fn a_new_daemon_is_configured_by_the_file_and_from_then_on_by_its_database() {
    let files = Files::new(
        "mysql_users = ( { username = \"a\"; password = \"a-secret\" }, { username = \"b\" } )
         mysql_servers = ( { address = \"127.0.0.1\"; port = 1; hostgroup = 3 } )
         mysql_variables = { connect_timeout_server_max = 10 }
         scheduler = ( { id = 1 } )
         errorlog = \"/somewhere.log\"",
    );
    let daemon = files.start();
    let path = files.path().display().to_string();
    let log = daemon.log();
    assert!(log.contains(&format!("the configuration is that of {path}\n")), "{log}");
    for warned in ["scheduler is left out", "errorlog has no effect"] {
        assert_eq!(log.matches(warned).count(), 1, "{log}");
    }
    assert!(!log.contains("secret"), "{log}");
    assert_eq!(texts(&daemon, "SELECT hostgroup_id || hostname FROM runtime_mysql_servers"), ["3127.0.0.1"]);
    // Who is let in meets the hostgroup without servers.
    for (password, code) in [("a-secret", 9001), ("other", 1045)] {
        let refusal = try_connect(daemon.traffic_port, "a", password).unwrap_err();
        assert!(matches!(&refusal, mysql::Error::MySqlError(error) if error.code == code), "{refusal}");
    }

    files.write("mysql_users = ( { username = \"b\"; comment = \"new\" }, { username = \"c\" } )");
    let daemon = files.restart(daemon, &[]);
    assert_eq!(texts(&daemon, USERS), ["a ", "b "]);
    assert!(daemon.log().contains(&format!("tables and variables of {path} are not looked at")));

    let daemon = files.restart(daemon, &["--reload"]);
    assert_eq!(texts(&daemon, USERS), ["a ", "b new", "c "]);
    assert!(daemon.log().contains(&format!("with {path} merged into it (--reload)")));

    let daemon = files.restart(daemon, &["--initial"]);
    assert_eq!(texts(&daemon, USERS), ["b new", "c "]);
    assert!(daemon.log().contains("pointsman.db.bak"), "{}", daemon.log());
    let (status, log) = daemon.terminate();
    assert!(status.is_some_and(|status| status.success()), "{log}");
}

#[test]
fn a_broken_file_is_refused_before_anything_is_made() {
    for (text, said) in [
        (
            "mysql_users =\n(\n  { username = \"a\"; password = \"hush\" }\n  { username = \"b\" }\n)",
            ":4: mysql_users: a comma or )",
        ),
        ("mysql_users = ( { usrname = \"a\" } )", ":1: mysql_users.usrname: "),
        ("mysql_variables = {\n wait_timeout = \"hush\"\n", ":3: mysql_variables: "),
        ("mysql_server = ( )", ":1: mysql_server: "),
    ] {
        let files = Files::new(text);
        let datadir = TempDir::new().unwrap();
        let path = files.path().display().to_string();
        let line = refused(command(program(), datadir.path(), &["-c", &path]));
        assert!(line.starts_with(&format!("{path}{said}")), "{line}");
        assert!(!line.contains("hush"), "{line}");
        assert!(!datadir.path().join("pointsman.db").exists());
    }
    let datadir = TempDir::new().unwrap();
    let line = refused(command(program(), datadir.path(), &["-c", "/nowhere/p.cnf"]));
    assert!(line.starts_with("/nowhere/p.cnf: "), "{line}");
}

#[test]
fn a_file_is_corrected_after_a_start_that_failed() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let text = |address: &str| format!("mysql_variables = {{ interfaces = \"{address}\" }}");
    let files = Files::new(&text(&address));
    let datadir = TempDir::new().unwrap();
    let arguments = ["-D", datadir.path().to_str().unwrap(), "--set", "admin-mysql_ifaces=127.0.0.1:0", "-c"];
    let mut wrong = Command::new(program());
    wrong.args(arguments).arg(files.path());
    assert!(refused(wrong).contains(&address));
    files.write(&text("127.0.0.1:0"));
    let mut child = Command::new(program());
    let mut child = child.args(arguments).arg(files.path()).stderr(Stdio::null()).spawn().unwrap();
    let ready = support::within(std::time::Duration::from_secs(30), || datadir.path().join("ports").exists());
    let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM);
    assert!(ended(&mut child).is_some() && ready);
}

#[test]
fn the_file_says_where_the_data_is() {
    let data = TempDir::new().unwrap();
    let inner = data.path().join("inner");
    let files =
        Files::new(&format!("datadir = \"{}\"\nmysql_users = ( {{ username = 5 }} )", inner.display()));
    // What is refused tells how far it came: the directory is made, the database is not.
    let mut wrong = Command::new(program());
    wrong.arg("-c").arg(files.path());
    assert!(refused(wrong).contains("mysql_users.username"));
    assert!(inner.is_dir() && !inner.join("pointsman.db").exists());
    // -D goes before it, and a file that lies there is found.
    let other = data.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::copy(files.path(), other.join("pointsman.cnf")).unwrap();
    let mut wrong = Command::new(program());
    wrong.arg("-D").arg(&other);
    assert!(refused(wrong).starts_with(&format!("{}/pointsman.cnf:2: ", other.display())));
}

#[test]
fn the_example_of_the_manual_starts() {
    let manual =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration-file.md")).unwrap();
    let example = manual.split("```cfg\n").nth(1).unwrap().split("```").next().unwrap();
    let files = Files::new(&example.replace("admin:change-me", "admin:admin"));
    let daemon = files.start();
    let log = daemon.log();
    assert!(!log.contains("left out"), "{log}");
    let counts = "SELECT (SELECT count(*) FROM runtime_mysql_servers) || (SELECT count(*) FROM mysql_users)
                  || (SELECT count(*) FROM runtime_mysql_aws_rds_bgd_hostgroups) || (SELECT count(*) FROM runtime_mysql_query_rules)";
    assert_eq!(texts(&daemon, counts), ["2212"]);
    // Written and read again it is the same.
    let written = texts(&daemon, "SELECT CONFIG FILE");
    files.write(&written[0]);
    let again = files.start();
    let directory = |daemon: &Daemon| daemon.datadir().canonicalize().unwrap().display().to_string();
    let second = texts(&again, "SELECT CONFIG FILE")[0].replace(&directory(&again), &directory(&daemon));
    assert_eq!(second, written[0]);
}
