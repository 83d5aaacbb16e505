//! Plays a recorded switchover to a running simulator. See `--help`.

use std::env::args_os;
use std::process::ExitCode;
use tap::{program, replay};

fn main() -> ExitCode {
    program::main("replay", replay::HELP, replay::parse(args_os().skip(1)), replay::run)
}
