//! A daemon of one's own: started on free ports with an empty data directory, never left behind.
//!
//! Shared by the tests and benchmarks that drive the real program; each uses what it needs of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mysql::OptsBuilder;
use rustix::process::{Pid, Signal, kill_process};

/// Making keys, certificate and database at the first start takes a while on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Running statements get up to 5 s, then threads are joined.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// A running pointsman; killed on drop.
pub struct Daemon {
    child: Child,
    datadir: tempfile::TempDir,
    pub admin_port: u16,
    pub traffic_port: u16,
}

/// The command line of a daemon on free ports.
pub fn command(program: &Path, datadir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    // Not the machine's own configuration file. The last -c counts.
    command.arg("-D").arg(datadir).args(["-c", "/dev/null"]);
    for variable in ["admin-mysql_ifaces", "mysql-interfaces", "sqliteserver-mysql_ifaces"] {
        command.arg("--set").arg(format!("{variable}=127.0.0.1:0"));
    }
    command.args(arguments).stdin(Stdio::null()).env_remove("RUST_LOG");
    command
}

/// How a daemon ended, if it did in time.
pub fn ended(child: &mut Child) -> Option<ExitStatus> {
    let mut status = None;
    within(STOP_TIMEOUT, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status
}

impl Daemon {
    /// Starts `program` on free ports with `arguments` more and an empty data directory, and waits until it is ready.
    pub fn start(program: &Path, arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), program, arguments)
    }

    /// The same in a data directory that may have been used before.
    pub fn start_in(datadir: tempfile::TempDir, program: &Path, arguments: &[&str]) -> Self {
        Self::start_with(datadir, program, arguments, &[])
    }

    /// The same with variables of the environment.
    pub fn start_with(
        datadir: tempfile::TempDir,
        program: &Path,
        arguments: &[&str],
        variables: &[(String, String)],
    ) -> Self {
        let log = File::create(datadir.path().join("log")).unwrap();
        // One that was killed leaves its ports behind.
        let _ = fs::remove_file(datadir.path().join("ports"));
        let mut command = command(program, datadir.path(), arguments);
        command.envs(variables.iter().cloned()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| panic!("starting {}: {error}", program.display()));
        let mut daemon = Self { child, datadir, admin_port: 0, traffic_port: 0 };
        let ready = within(START_TIMEOUT, || {
            let ended = daemon.child.try_wait().unwrap();
            assert!(ended.is_none(), "the daemon ended before it was ready:\n{}", daemon.log());
            daemon.port_of("admin").is_some() && daemon.port_of("mysql").is_some()
        });
        assert!(ready, "the daemon did not become ready:\n{}", daemon.log());
        daemon.admin_port = daemon.port_of("admin").unwrap();
        daemon.traffic_port = daemon.port_of("mysql").unwrap();
        daemon
    }

    pub fn datadir(&self) -> &Path {
        self.datadir.path()
    }

    /// DATADIR/ports has a line for each listener: its name and the address it is bound to.
    pub fn port_of(&self, listener: &str) -> Option<u16> {
        let text = fs::read_to_string(self.datadir.path().join("ports")).ok()?;
        let (complete_lines, _) = text.rsplit_once('\n')?;
        let mut lines = complete_lines.lines().filter_map(|line| line.split_once(' '));
        let (_, address) = lines.find(|(name, _)| *name == listener)?;
        address.rsplit_once(':')?.1.parse().ok()
    }

    /// The daemon's resident memory, in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// The most memory that was resident since the start or since [`Self::restart_peak`], in KiB.
    pub fn peak_resident_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    /// The part of the resident memory that is stack of clients' threads, in KiB: it is known by its size.
    pub fn stacks_kib(&self) -> u64 {
        let maps = fs::read_to_string(format!("/proc/{}/smaps", self.child.id())).unwrap();
        let value = |line: &str| line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
        let (mut size, mut total) = (0, 0);
        for line in maps.lines() {
            if line.starts_with("Size:") {
                size = value(line).unwrap();
            } else if line.starts_with("Rss:") && (240..=272).contains(&size) {
                total += value(line).unwrap();
            }
        }
        total
    }

    pub fn restart_peak(&self) {
        // proc(5): writing 5 resets the peak to what is resident now.
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    fn memory_kib(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How often a thread of the daemon has gone to sleep so far.
    pub fn sleeps_of(&self, thread: &str) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let mut tasks = tasks.map(|task| task.unwrap().path());
        let is =
            |path: &PathBuf| fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == thread);
        let status = fs::read_to_string(tasks.find(is).unwrap().join("status")).unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        count.trim().parse().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends a signal that ends the daemon, and returns how it ended, if in time.
    pub fn stop(&mut self, signal: Signal) -> Option<ExitStatus> {
        self.signal(signal);
        ended(&mut self.child)
    }

    /// How the daemon ended by itself, if in time.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        ended(&mut self.child)
    }

    /// Asks the daemon to end, as an init system would, and returns how it did, if in time, and its log.
    pub fn terminate(mut self) -> (Option<ExitStatus>, String) {
        let status = self.stop(Signal::TERM);
        (status, self.log())
    }

    /// Ends the daemon cleanly and starts another in the same data directory.
    pub fn restart(mut self, program: &Path, arguments: &[&str]) -> Self {
        let status = self.stop(Signal::TERM);
        assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", self.log());
        self.start_again(program, arguments)
    }

    /// Starts another in the same data directory, after this one has ended in whatever way.
    pub fn start_again(mut self, program: &Path, arguments: &[&str]) -> Self {
        let datadir = std::mem::replace(&mut self.datadir, tempfile::tempdir().unwrap());
        Self::start_in(datadir, program, arguments)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.datadir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of a port on loopback, without TLS. Time limits are the caller's to add.
pub fn client_options(port: u16, user: &str, password: &str) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .prefer_socket(false)
        .user(Some(user))
        .pass(Some(password))
}

/// Looks again and again until `done` says so or `limit` is over, and returns whether it did.
pub fn within(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
