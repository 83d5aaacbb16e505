//! Shows one switchover under live traffic. See `--help`.

use std::process::ExitCode;
use tap::demo::{self, Request};

fn main() -> ExitCode {
    let daemon = match demo::parse(std::env::args_os().skip(1)) {
        Ok(Request::Run(daemon)) => daemon,
        Ok(Request::Help) => {
            print!("{}", demo::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("demo: {error}; try --help");
            return ExitCode::from(2);
        }
    };
    match demo::run(&daemon) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}
