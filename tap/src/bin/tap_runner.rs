//! Runs a group of TAP binaries. See `--help`.

use std::env::args_os;
use std::process::ExitCode;
use tap::{program, runner};

fn main() -> ExitCode {
    program::main("tap-runner", runner::HELP, runner::parse(args_os().skip(1)), runner::run)
}
