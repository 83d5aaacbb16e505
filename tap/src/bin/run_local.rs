//! Runs a daemon to try by hand. See `--help`.

use std::env::args_os;
use std::process::ExitCode;
use tap::{local, program};

fn main() -> ExitCode {
    let parsed = program::daemon_path(args_os().skip(1));
    program::main("run-local", local::HELP, parsed, |daemon| local::run(daemon).map(|()| true))
}
