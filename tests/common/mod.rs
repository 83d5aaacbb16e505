//! A daemon process for tests: its own data directory, free ports, ended by pid whatever happens.

#![allow(dead_code, missing_docs, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long the daemon may take to be ready or to end.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Daemon {
    child: Child,
    datadir: TempDir,
}

/// The command, with ports the system chooses.
pub fn command(datadir: &Path, extra: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pointsman"));
    command.arg("-D").arg(datadir).env_remove("RUST_LOG");
    for name in ["mysql-interfaces", "admin-mysql_ifaces", "sqliteserver-mysql_ifaces"] {
        command.arg("--set").arg(format!("{name}=127.0.0.1:0"));
    }
    command.args(extra).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Waits for a process to end; past the deadline it is killed and the test fails.
pub fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the daemon did not end in time");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs a daemon that is expected not to start: its exit code and what it printed.
pub fn run_to_end(datadir: &Path, extra: &[&str]) -> (Option<i32>, String) {
    let mut child = command(datadir, extra).spawn().unwrap();
    let status = wait(&mut child);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (status.code(), text)
}

impl Daemon {
    /// A daemon with the SQLite3 server, in a new data directory.
    pub fn start() -> Self {
        Self::start_in(TempDir::new().unwrap(), &["--sqlite3-server"])
    }

    pub fn start_in(datadir: TempDir, extra: &[&str]) -> Self {
        let mut command = command(datadir.path(), extra);
        let log = fs::File::create(datadir.path().join("log")).unwrap();
        let mut child = command.stderr(log).spawn().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !datadir.path().join("ports").exists() {
            let ended = child.try_wait().unwrap();
            if ended.is_some() || Instant::now() > deadline {
                let _ = child.kill();
                let log = fs::read_to_string(datadir.path().join("log")).unwrap_or_default();
                panic!("the daemon is not ready (ended: {ended:?}); its log:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { child, datadir }
    }

    /// A daemon whose traffic goes to its own SQLite3 server, as testuser/testuser.
    pub fn start_with_backend() -> Self {
        let daemon = Self::start();
        let backend = daemon.port("sqliteserver");
        daemon.admin_all(&[
            "INSERT INTO mysql_users(username, password, default_hostgroup) VALUES ('testuser', 'testuser', 0)",
            "LOAD MYSQL USERS TO RUNTIME",
            &format!(
                "INSERT INTO mysql_servers(hostgroup_id, hostname, port) VALUES (0, '{}', {})",
                backend.ip(),
                backend.port()
            ),
            "LOAD MYSQL SERVERS TO RUNTIME",
        ]);
        daemon
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn datadir(&self) -> &Path {
        self.datadir.path()
    }

    /// The address of `admin`, `mysql` or `sqliteserver`.
    pub fn port(&self, name: &str) -> SocketAddr {
        let text = fs::read_to_string(self.datadir.path().join("ports")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.datadir.path().join("log")).unwrap()
    }

    pub fn connect(&self, port: &str, user: &str, password: &str) -> mysql::Result<Conn> {
        Conn::new(options(self.port(port), user, password))
    }

    pub fn admin(&self) -> Conn {
        self.connect("admin", "admin", "admin").unwrap()
    }

    pub fn client(&self) -> Conn {
        self.connect("mysql", "testuser", "testuser").unwrap()
    }

    pub fn admin_all(&self, statements: &[&str]) {
        let mut admin = self.admin();
        for statement in statements {
            admin.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    /// Sends a signal (TERM, INT) and waits: the exit status and how long it took.
    pub fn stop(&mut self, signal: &str) -> (ExitStatus, Duration) {
        let start = Instant::now();
        self.signal(signal);
        (wait(&mut self.child), start.elapsed())
    }

    pub fn signal(&self, name: &str) {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// Stops this daemon cleanly and starts another in the same data directory.
    pub fn restart(mut self, extra: &[&str]) -> Self {
        assert_eq!(self.stop("TERM").0.code(), Some(0), "{}", self.log());
        let datadir = std::mem::replace(&mut self.datadir, TempDir::new().unwrap());
        Self::start_in(datadir, extra)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn options(address: SocketAddr, user: &str, password: &str) -> OptsBuilder {
    OptsBuilder::new()
        .ip_or_hostname(Some(address.ip().to_string()))
        .tcp_port(address.port())
        .user(Some(user))
        .pass(Some(password))
        .prefer_socket(false)
        .tcp_connect_timeout(Some(PATIENCE))
        .read_timeout(Some(PATIENCE))
}
