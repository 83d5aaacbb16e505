//! Plays a recording to a running simulator, for a person who watches the daemon meanwhile.

use crate::command_line::{CommandLine, CommandLineError};
use crate::connection::Error;
use crate::simulator::{RdsBgdRecording, RdsBgdSimulator, RecordingError};
use lexopt::prelude::*;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::{fs, io};

/// Printed by `--help`.
pub const HELP: &str = "\
Plays a recorded switchover to the simulator of a running daemon.

Usage: replay --recording FILE [--speed N]

  --recording FILE   such as tap/recordings/monitor_trace.txt (format: docs/simulator.md)
  --speed N          so many times as fast as recorded (default 1)

TAP_HOST, TAP_SIMPORT, TAP_USERNAME and TAP_PASSWORD say where the simulator is and who
logs in (default 127.0.0.1:3306, testuser). The address for mysql-monitor_dns_server is
printed. What the recording has set stays.
";

/// What to play.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    recording: PathBuf,
    speed: NonZeroU32,
}

/// Why it was not played to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read
    #[error("{path}: {source}")]
    Read {
        /// The file
        path: PathBuf,
        /// The reason
        source: io::Error,
    },
    /// The file is no recording
    #[error("{path}: {source}")]
    Parse {
        /// The file
        path: PathBuf,
        /// The place in it
        source: RecordingError,
    },
    /// The environment
    #[error(transparent)]
    Environment(#[from] CommandLineError),
    /// The simulator
    #[error(transparent)]
    Simulator(#[from] Error),
}

/// The arguments, without the program's name; None for `--help`.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut recording, mut speed) = (None, NonZeroU32::MIN);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("recording") => recording = Some(PathBuf::from(parser.value()?)),
            Long("speed") => speed = parser.value()?.parse()?,
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    recording
        .map(|recording| Some(Options { recording, speed }))
        .ok_or_else(|| "--recording is missing".into())
}

/// Plays it. Whether it came to its end, which it does unless there is an error.
pub fn run(options: &Options) -> Result<bool, ReplayError> {
    let command_line = CommandLine::from_environment(|file| println!("{file}"))?;
    let path = &options.recording;
    let text = fs::read_to_string(path).map_err(|source| ReplayError::Read { path: path.clone(), source })?;
    let recording = RdsBgdRecording::parse(&text, command_line.simulator.port)
        .map_err(|source| ReplayError::Parse { path: path.clone(), source })?;
    let mut simulator = RdsBgdSimulator::connect(command_line.simulator, &command_line.client, false)?;
    println!("mysql-monitor_dns_server='{}'", simulator.dns_listen()?);
    println!("playing for {:.1} s", (recording.length() / options.speed.get()).as_secs_f32());
    recording.play(&mut simulator, options.speed)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_is_required_and_the_speed_is_not() {
        let parsed = |line: &str| parse(line.split_whitespace().map(OsString::from));
        let options = |speed| Options { recording: "r".into(), speed: NonZeroU32::new(speed).unwrap() };
        assert_eq!(parsed("--recording r").unwrap(), Some(options(1)));
        assert_eq!(parsed("--speed 20 --recording r").unwrap(), Some(options(20)));
        assert_eq!(parsed("--help").unwrap(), None);
        for line in ["", "--recording", "--recording r --speed 0", "--recording r --speed x", "r"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_file_that_is_missing_or_wrong_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let recording = directory.path().join("recording");
        let options = Options { recording: recording.clone(), speed: NonZeroU32::MIN };
        let refused = || run(&options).unwrap_err().to_string();
        assert!(refused().contains(&recording.display().to_string()));
        fs::write(&recording, "0 topology blue empty").unwrap();
        assert!(refused().contains("recording: line 1, field 3"), "{}", refused());
    }
}
