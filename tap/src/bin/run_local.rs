//! Runs a daemon to try by hand. See `--help`.

use std::process::ExitCode;
use tap::local;

fn main() -> ExitCode {
    let daemon = match local::parse(std::env::args_os().skip(1)) {
        Ok(Some(daemon)) => daemon,
        Ok(None) => {
            print!("{}", local::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("run-local: {error}; try --help");
            return ExitCode::from(2);
        }
    };
    match local::run(&daemon) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("run-local: {error}");
            ExitCode::FAILURE
        }
    }
}
