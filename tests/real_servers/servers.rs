//! The real servers, started and stopped with `lab/real-servers.sh`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use mysql::Conn;
use tap::ports::free_ports;

use crate::setup::{client, connect};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lab/real-servers.sh");
/// What the script exits with where the servers cannot run.
const CANNOT: i32 = 77;

/// Which of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    MySql,
    MariaDb,
}

/// A running MySQL and a running MariaDB of our own; stopped, and their data deleted, on drop.
pub struct Servers {
    state: tempfile::TempDir,
    mysql_port: u16,
    mariadb_port: u16,
}

impl Servers {
    /// `None`, after saying so, where the servers are not installed and nobody demands them.
    pub fn start() -> Option<Self> {
        let state = tempfile::tempdir().unwrap();
        let ports = free_ports(2).unwrap();
        let servers = Self { state, mysql_port: ports[0], mariadb_port: ports[1] };
        let output = servers.script("start").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => Some(servers),
            Some(CANNOT) if std::env::var_os("POINTSMAN_REQUIRE_REAL_SERVERS").is_none_or(|v| v != "1") => {
                crate::tell(&format!("SKIPPED: {}", said.trim()));
                None
            }
            _ => panic!("the real servers did not start: {said}"),
        }
    }

    pub fn port(&self, kind: Kind) -> u16 {
        match kind {
            Kind::MySql => self.mysql_port,
            Kind::MariaDb => self.mariadb_port,
        }
    }

    /// A file that MySQL has made in its data directory.
    pub fn mysql_file(&self, name: &str) -> String {
        let cache = || {
            let home = || std::path::PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
            let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(home, Into::into);
            cache.join("pointsman/mysql-sid")
        };
        let root = std::env::var_os("POINTSMAN_MYSQL_ROOT").map_or_else(cache, std::path::PathBuf::from);
        let file = root.join(format!("srv/pointsman-{}", self.mysql_port)).join(name);
        file.to_str().unwrap().to_owned()
    }

    /// A direct connection of the account that may do everything.
    pub fn dba(&self, kind: Kind) -> Conn {
        connect(client(self.port(kind), "dba", "dba-secret"))
    }

    /// Runs a command-line client with `input`.
    pub fn command_line(&self, kind: Kind, arguments: &[&str], input: &Path) -> Output {
        let client = match kind {
            Kind::MySql => "mysql",
            Kind::MariaDb => "mariadb",
        };
        let input = std::fs::File::open(input).unwrap();
        self.script(client).args(arguments).stdin(input).output().unwrap()
    }

    fn script(&self, command: &str) -> Command {
        let mut script = Command::new(SCRIPT);
        script
            .arg(command)
            .stdin(Stdio::null())
            .env("POINTSMAN_REAL_SERVERS_DIR", self.state.path())
            .env("POINTSMAN_MYSQL_PORT", self.mysql_port.to_string())
            .env("POINTSMAN_MARIADB_PORT", self.mariadb_port.to_string());
        script
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.script("stop").stdout(Stdio::null()).status();
    }
}
