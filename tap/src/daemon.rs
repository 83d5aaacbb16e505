//! The daemon under test as a child process: started with a data directory of its own, always stopped.

use crate::command_line::CommandLine;
use crate::connection::Endpoint;
use crate::interrupt::Interrupt;
use crate::ports::free_ports;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Making keys, certificate and database at the first start takes a while on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Running statements get up to 5 s, then threads are joined.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const TAIL_LINES: usize = 20;

/// Why the daemon could not be started or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The program, its log or its directory
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with the path
        what: String,
        /// The reason
        source: io::Error,
    },
    /// It ended before it was ready
    #[error("the daemon ended before it was ready ({status}); its log ends with:\n{log_tail}")]
    Died {
        /// How
        status: ExitStatus,
        /// The log's last lines
        log_tail: String,
    },
    /// It runs, but DATADIR/ports does not name all ports in time
    #[error("the daemon was not ready within {} s; its log ends with:\n{log_tail}", START_TIMEOUT.as_secs())]
    NotReady {
        /// The log's last lines
        log_tail: String,
    },
    /// A signal ended the wait
    #[error("interrupted")]
    Interrupted,
    /// It was asked to stop and did not
    #[error("the daemon did not stop within {} s of SIGTERM and was killed", STOP_TIMEOUT.as_secs())]
    NotStopped,
    /// It ended, with another status than 0
    #[error("the daemon ended with {0}, not with status 0")]
    BadExit(ExitStatus),
}

impl DaemonError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }
}

/// How to start a daemon.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The daemon's executable
    pub program: PathBuf,
    /// For `-D`: made if it is missing, and kept. None: a temporary one
    pub datadir: Option<PathBuf>,
    /// For `--hosts-file`
    pub hosts_file: Option<PathBuf>,
    /// Receives standard output and standard error
    pub log_file: PathBuf,
    /// Receives the process number, before the daemon is ready
    pub pid_file: Option<PathBuf>,
    /// For `--set`: variable and value
    pub settings: Vec<(String, String)>,
}

/// The `--set` values that move all three listeners to free ports.
pub fn free_port_settings() -> Result<Vec<(String, String)>, DaemonError> {
    let ports = free_ports(3).map_err(DaemonError::io("looking for free ports"))?;
    let variables = ["admin-mysql_ifaces", "mysql-interfaces", "sqliteserver-mysql_ifaces"];
    // The simulator must answer on every loopback address.
    let hosts = ["127.0.0.1", "127.0.0.1", "0.0.0.0"];
    let setting =
        |((variable, host), port): ((&str, &str), u16)| (variable.to_owned(), format!("{host}:{port}"));
    Ok(variables.into_iter().zip(hosts).zip(ports).map(setting).collect())
}

/// A running daemon. Dropping it stops it; [`Daemon::stop`] also tells how it ended.
pub struct Daemon {
    child: Child,
    log_file: PathBuf,
    ports: Ports,
    _temporary: Option<TempDir>,
}

impl Daemon {
    /// Starts the daemon and waits until it has written DATADIR/ports.
    pub fn start(launch: &Launch, interrupt: &Interrupt) -> Result<Self, DaemonError> {
        let log_name = launch.log_file.display();
        let log = File::create(&launch.log_file).map_err(DaemonError::io(format!("creating {log_name}")))?;
        let also_log = log.try_clone().map_err(DaemonError::io(format!("opening {log_name}")))?;
        let (datadir, temporary) = data_directory(launch.datadir.as_deref())?;

        let mut command = Command::new(&launch.program);
        command.args(["-f", "-D"]).arg(&datadir).arg("--sqlite3-server");
        // Not the machine's own configuration file.
        command.args(["-c", "/dev/null"]);
        if let Some(hosts_file) = &launch.hosts_file {
            command.arg("--hosts-file").arg(hosts_file);
        }
        for (variable, value) in &launch.settings {
            command.arg("--set").arg(format!("{variable}={value}"));
        }
        // A process group of its own: Ctrl-C reaches only us, and we stop the daemon when the report is complete.
        command.stdin(Stdio::null()).stdout(log).stderr(also_log).process_group(0);
        let mut child =
            command.spawn().map_err(DaemonError::io(format!("starting {}", launch.program.display())))?;

        let noted = launch.pid_file.as_ref().map_or(Ok(()), |file| fs::write(file, child.id().to_string()));
        let ready = noted
            .map_err(DaemonError::io("writing the daemon's process number"))
            .and_then(|()| wait_until_ready(&mut child, &datadir, &launch.log_file, interrupt));
        match ready {
            Ok(ports) => Ok(Self { child, log_file: launch.log_file.clone(), ports, _temporary: temporary }),
            Err(error) => {
                // The first error is the one to report.
                let _ = stop(&mut child);
                Err(error)
            }
        }
    }

    /// Where it listens, with the default accounts.
    pub fn command_line(&self) -> CommandLine {
        CommandLine::at(self.ports.traffic.clone(), self.ports.admin.clone(), self.ports.simulator.clone())
    }

    /// How it ended, if it is not running any more.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        log_tail(&self.log_file)
    }

    /// How long its log is by now, in bytes.
    pub fn log_length(&self) -> u64 {
        fs::metadata(&self.log_file).map_or(0, |file| file.len())
    }

    /// What it has written to its log after the first `length` bytes.
    pub fn log_after(&self, length: u64) -> String {
        let mut text = Vec::new();
        let read = File::open(&self.log_file).and_then(|mut file| {
            file.seek(SeekFrom::Start(length))?;
            file.read_to_end(&mut text)
        });
        match read {
            Ok(_) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => format!("cannot read {}: {error}\n", self.log_file.display()),
        }
    }

    /// Sends SIGTERM and waits. Only exit status 0 is Ok.
    pub fn stop(mut self) -> Result<(), DaemonError> {
        let status = stop(&mut self.child)?;
        if status.success() { Ok(()) } else { Err(DaemonError::BadExit(status)) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After stop() the child has been waited for and this does nothing.
        let _ = stop(&mut self.child);
    }
}

fn data_directory(chosen: Option<&Path>) -> Result<(PathBuf, Option<TempDir>), DaemonError> {
    if let Some(path) = chosen {
        let made = fs::create_dir_all(path);
        return made
            .map(|()| (path.to_owned(), None))
            .map_err(DaemonError::io(format!("making {}", path.display())));
    }
    let temporary = tempfile::Builder::new().prefix("pointsman-tap-").tempdir();
    let temporary = temporary.map_err(DaemonError::io("making a temporary data directory"))?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

fn wait_until_ready(
    child: &mut Child,
    datadir: &Path,
    log_file: &Path,
    interrupt: &Interrupt,
) -> Result<Ports, DaemonError> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        if let Some(ports) = fs::read_to_string(datadir.join("ports")).ok().as_deref().and_then(Ports::parse)
        {
            return Ok(ports);
        }
        if let Some(status) = child.try_wait().map_err(DaemonError::io("waiting for the daemon"))? {
            return Err(DaemonError::Died { status, log_tail: log_tail(log_file) });
        }
        if interrupt.raised() {
            return Err(DaemonError::Interrupted);
        }
        if Instant::now() >= deadline {
            return Err(DaemonError::NotReady { log_tail: log_tail(log_file) });
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// SIGTERM, then SIGKILL after a deadline. Does nothing to a child that has been waited for.
fn stop(child: &mut Child) -> Result<ExitStatus, DaemonError> {
    let waiting = || DaemonError::io("waiting for the daemon");
    if let Some(status) = child.try_wait().map_err(waiting())? {
        return Ok(status);
    }
    // Not waited for yet, so the pid is ours.
    let signalled = kill_process(Pid::from_child(child), Signal::TERM).is_ok();
    let deadline = Instant::now() + STOP_TIMEOUT;
    while signalled && Instant::now() < deadline {
        if let Some(status) = child.try_wait().map_err(waiting())? {
            return Ok(status);
        }
        thread::sleep(POLL_INTERVAL);
    }
    child.kill().map_err(DaemonError::io("killing the daemon"))?;
    child.wait().map_err(waiting())?;
    Err(DaemonError::NotStopped)
}

fn log_tail(log_file: &Path) -> String {
    let text = fs::read(log_file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// The contents of DATADIR/ports: a line `name address:port` for each listener.
#[derive(Debug, PartialEq, Eq)]
struct Ports {
    admin: Endpoint,
    traffic: Endpoint,
    simulator: Endpoint,
}

impl Ports {
    /// None unless all three listeners are named, as in a file that is not complete yet.
    fn parse(text: &str) -> Option<Self> {
        let (complete_lines, _) = text.rsplit_once('\n')?;
        let find = |wanted: &str| {
            complete_lines.lines().find_map(|line| {
                let (name, address) = line.trim().split_once(' ')?;
                (name == wanted).then_some(())?;
                reachable(address.trim().parse().ok()?)
            })
        };
        Some(Self { admin: find("admin")?, traffic: find("mysql")?, simulator: find("sqliteserver")? })
    }
}

/// The address to connect to for a listener's address: a wildcard listener is reached over loopback.
fn reachable(address: SocketAddr) -> Option<Endpoint> {
    let host = if address.ip().is_unspecified() { "127.0.0.1".to_owned() } else { address.ip().to_string() };
    (address.port() != 0).then(|| Endpoint::new(host, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_by_name_and_wildcards_become_loopback() {
        let ports =
            Ports::parse("mysql 127.0.0.1:20001\nadmin 127.0.0.2:20000\nsqliteserver 0.0.0.0:20002\n")
                .unwrap();
        assert_eq!(ports.admin, Endpoint::new("127.0.0.2", 20000));
        assert_eq!(ports.traffic, Endpoint::new("127.0.0.1", 20001));
        assert_eq!(ports.simulator, Endpoint::new("127.0.0.1", 20002));
    }

    #[test]
    fn an_incomplete_file_is_not_ready() {
        let cut_off = "admin 127.0.0.1:20000\nmysql 127.0.0.1:20001\nsqliteserver 0.0.0.0:2";
        for text in ["", "admin 127.0.0.1:20000\n", cut_off, "admin x\nmysql y\nsqliteserver z\n"] {
            assert_eq!(Ports::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn free_ports_move_all_three_listeners() {
        let settings = free_port_settings().unwrap();
        let names: Vec<_> = settings.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["admin-mysql_ifaces", "mysql-interfaces", "sqliteserver-mysql_ifaces"]);
        assert!(settings[2].1.starts_with("0.0.0.0:"));
    }

    /// A stand-in for the daemon: a shell script that gets the daemon's arguments.
    fn launch(directory: &Path, script: &str) -> Launch {
        use std::os::unix::fs::PermissionsExt;
        let program = directory.join("daemon");
        // Written by a child process: were it open for writing here while another test forks, starting it would fail.
        let written =
            Command::new("sh").args(["-c", "printf '%s' \"$1\" > \"$0\""]).arg(&program).arg(script).status();
        assert!(written.unwrap().success());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Launch {
            program,
            datadir: None,
            hosts_file: None,
            log_file: directory.join("log"),
            pid_file: None,
            settings: Vec::new(),
        }
    }

    const WRITE_PORTS: &str =
        "printf 'admin 127.0.0.1:1\\nmysql 127.0.0.1:2\\nsqliteserver 127.0.0.1:3\\n' > \"$3/ports\"";

    #[test]
    fn a_daemon_that_dies_is_noticed_and_its_log_shown() {
        let directory = tempfile::tempdir().unwrap();
        let launch = launch(directory.path(), "#!/bin/sh\necho \"port 6032 is taken\" >&2\nexit 1\n");
        let error = Daemon::start(&launch, &Interrupt::default()).err().unwrap();
        assert!(
            matches!(&error, DaemonError::Died { log_tail, .. } if log_tail == "port 6032 is taken"),
            "{error}"
        );
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let mut launch = launch(directory.path(), "");
        launch.program = directory.path().join("missing");
        let error = Daemon::start(&launch, &Interrupt::default()).err().unwrap().to_string();
        assert!(error.contains("missing"), "{error}");
    }

    #[test]
    fn a_daemon_is_stopped_by_sigterm_and_must_end_with_0() {
        let directory = tempfile::tempdir().unwrap();
        for (exit, good) in [("exit 0", true), ("exit 3", false)] {
            // The trap is set before the daemon says that it is ready.
            let script =
                format!("#!/bin/sh\ntrap '{exit}' TERM\n{WRITE_PORTS}\nwhile :; do sleep 0.05; done\n");
            let launch = launch(directory.path(), &script);
            let daemon = Daemon::start(&launch, &Interrupt::default()).unwrap();
            assert_eq!(daemon.command_line().traffic, Endpoint::new("127.0.0.1", 2));
            fs::write(&launch.log_file, "first\nsecond\n").unwrap();
            assert_eq!((daemon.log_after(6), daemon.log_length()), ("second\n".to_owned(), 13));
            assert_eq!(daemon.stop().is_ok(), good, "{exit}");
        }
    }
}
