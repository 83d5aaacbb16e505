//! A daemon to try by hand: the embedded database behind it, one user, no configuration to write.

use crate::connection::{Connection, Endpoint, Error, quote};
use crate::daemon::{Daemon, DaemonError, Launch};
use crate::interrupt::Interrupt;
use crate::ports::{free_ports, is_free};
use std::path::Path;
use std::time::Duration;
use std::{io, thread};

/// For `--help`.
pub const HELP: &str = "\
Runs a daemon with its embedded SQLite database and a user testuser/testuser until Ctrl-C.

Usage: run-local --daemon PATH

  --daemon PATH   the daemon (make build)

It uses the ports 6032 (admin), 6033 (traffic) and 6030 (database); free ones of 20000-32000 if one of
these is taken. Nothing is kept: the data directory is a temporary one.

Example:
  run-local --daemon target/debug/pointsman
";

const POLL: Duration = Duration::from_millis(100);
/// Variable and default port of each listener.
const LISTENERS: [(&str, u16); 3] =
    [("admin-mysql_ifaces", 6032), ("mysql-interfaces", 6033), ("sqliteserver-mysql_ifaces", 6030)];

/// Why the daemon does not run, or not any more.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The daemon did not start or stop
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A statement on the admin port
    #[error(transparent)]
    Control(#[from] Error),
    /// Signals or temporary files
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It ended by itself
    #[error("the daemon ended; its log ends with:\n{0}")]
    Ended(String),
}

/// Runs the daemon `program` until a signal comes.
pub fn run(program: &Path) -> Result<(), LocalError> {
    let interrupt = Interrupt::register()?;
    let directory = tempfile::Builder::new().prefix("pointsman-run-").tempdir()?;
    let log_file = directory.path().join("daemon.log");
    let launch = Launch {
        program: program.to_owned(),
        datadir: None,
        hosts_file: None,
        log_file: log_file.clone(),
        pid_file: None,
        settings: settings()?,
    };
    let mut daemon = Daemon::start(&launch, &interrupt)?;
    let addresses = daemon.command_line();
    configure(&mut addresses.connect_admin()?, &addresses.simulator)?;

    println!("pointsman runs with an embedded SQLite database. In another terminal:\n");
    for (what, endpoint, account) in [
        ("statements", &addresses.traffic, &addresses.client),
        ("administration", &addresses.admin, &addresses.administrator),
    ] {
        println!(
            "  {what:<15} mysql -h {} -P {} -u {} -p{}",
            endpoint.host, endpoint.port, account.username, account.password
        );
    }
    println!("\nIts log is in {}. Ctrl-C stops it; nothing is kept.", log_file.display());

    while !interrupt.raised() {
        if daemon.ended().is_some() {
            return Err(LocalError::Ended(daemon.log_tail()));
        }
        thread::sleep(POLL);
    }
    println!("\nStopping.");
    Ok(daemon.stop()?)
}

/// The default ports on loopback, or free ones if one of them is taken.
fn settings() -> io::Result<Vec<(String, String)>> {
    let defaults = LISTENERS.map(|(_, port)| port);
    let ports = match defaults.iter().find(|port| !is_free(**port)) {
        Some(taken) => {
            println!("Port {taken} is taken; using free ports.\n");
            free_ports(LISTENERS.len())?
        }
        None => defaults.to_vec(),
    };
    Ok(LISTENERS
        .iter()
        .zip(ports)
        .map(|((name, _), port)| (name.to_string(), format!("127.0.0.1:{port}")))
        .collect())
}

fn configure(admin: &mut Connection, database: &Endpoint) -> Result<(), Error> {
    let server = format!(
        "INSERT INTO mysql_servers(hostgroup_id, hostname, port) VALUES (0, {}, {})",
        quote(&database.host),
        database.port
    );
    let user =
        "INSERT INTO mysql_users(username, password, default_hostgroup) VALUES ('testuser', 'testuser', 0)";
    for statement in [&server, user, "LOAD MYSQL SERVERS TO RUNTIME", "LOAD MYSQL USERS TO RUNTIME"] {
        admin.execute(statement)?;
    }
    Ok(())
}
