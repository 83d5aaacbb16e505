//! credential_process: a program that prints credentials.

use super::answer;
use crate::locality::aws::failure::Failure;
use crate::locality::provider::Category;
use aws_credential_types::Credentials;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const WHO: &str = "credential_process";
/// What it may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// Most that is read of what it prints, in bytes.
const LARGEST: usize = 64 << 10;
/// How often its end is looked for, once it has closed its output.
const LOOK: Duration = Duration::from_millis(10);

/// Runs it in a shell, as SDKs do. What it says on its standard error goes nowhere, since it may be secret.
pub fn find(command: &str, until: Instant) -> Result<Credentials, Failure> {
    let until = until.min(Instant::now() + PATIENCE);
    let failed = |category, why: String| {
        Failure::new(category, format!("{WHO} {why}"))
            .advising("run the profile's credential_process by hand")
    };
    let child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // So that what the shell starts ends with it.
        .process_group(0)
        .spawn();
    let child =
        child.map_err(|error| failed(Category::ProviderError, format!("cannot be run: {}", error.kind())))?;
    let mut running = Running { child, reaped: false };
    let printed = running.output(until).map_err(|error| {
        let category = match error.kind() {
            io::ErrorKind::TimedOut => Category::Timeout,
            _ => Category::ProviderError,
        };
        failed(category, format!("failed: {error}"))
    })?;
    match String::from_utf8(printed) {
        Ok(printed) => answer::read_json(WHO, &printed),
        Err(_) => Err(Failure::invalid(WHO, "it is no text")),
    }
}

/// A child that is ended with all that it started.
struct Running {
    child: Child,
    /// Its end has been seen, and its id may be another's.
    reaped: bool,
}

impl Running {
    fn output(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "it did not end in time");
        let mut printed = Vec::new();
        let mut pipe = self.child.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout =
                Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            let mut ready = [PollFd::new(&pipe, PollFlags::IN)];
            match poll(&mut ready, Some(&timeout)) {
                Ok(0) => return Err(late()),
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            let mut piece = [0; 4096];
            match pipe.read(&mut piece)? {
                0 => break,
                count => printed.extend_from_slice(&piece[..count]),
            }
            if printed.len() > LARGEST {
                return Err(io::Error::other("it prints too much"));
            }
        }
        loop {
            let status = self.child.try_wait()?;
            self.reaped = status.is_some();
            match status {
                Some(status) if status.success() => return Ok(printed),
                Some(status) => return Err(io::Error::other(status.to_string())),
                None if Instant::now() >= until => return Err(late()),
                None => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            // Fails where all have ended meanwhile.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str) -> Result<Credentials, Failure> {
        find(command, Instant::now() + Duration::from_secs(20))
    }

    #[test]
    fn what_it_prints_is_read() {
        let found =
            run(r#"printf '{"Version":1,"AccessKeyId":"A","SecretAccessKey":"%s"}' "$((40 + 2))""#).unwrap();
        assert_eq!((found.access_key_id(), found.secret_access_key()), ("A", "42"));
    }

    #[test]
    fn its_failures_are_told_without_what_it_says() {
        for (command, category) in [
            ("echo hush; echo hush >&2; exit 3", Category::ProviderError),
            ("echo hush", Category::InvalidAnswer),
            ("yes hush", Category::ProviderError),
            ("/nonexistent/hush", Category::ProviderError),
        ] {
            let failure = run(command).unwrap_err();
            assert_eq!(failure.category, category, "{failure}");
            assert!(!failure.to_string().contains("hush"), "{failure}");
        }
    }

    #[test]
    fn one_that_does_not_end_is_ended_with_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}; wait", path.display());
        let failure = find(&command, Instant::now() + Duration::from_millis(500)).unwrap_err();
        assert_eq!(failure.category, Category::Timeout, "{failure}");
        let sleeper = std::fs::read_to_string(path).unwrap();
        let status = std::path::PathBuf::from(format!("/proc/{}/stat", sleeper.trim()));
        // Gone, or a zombie that nobody has waited for yet.
        let ended = || std::fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z "));
        crate::testing::eventually("its child ends", ended);
    }
}
