//! Runs a group of TAP binaries. See `--help`.

use std::process::ExitCode;
use tap::runner::{self, Request};

/// Nothing was run.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let options = match runner::parse(std::env::args_os().skip(1)) {
        Ok(Request::Run(options)) => options,
        Ok(Request::Help) => {
            print!("{}", runner::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("tap-runner: {error}; try --help");
            return ExitCode::from(UNUSABLE);
        }
    };
    match runner::run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tap-runner: {error}");
            ExitCode::from(UNUSABLE)
        }
    }
}
