//! Shows one switchover under live traffic. See `--help`.

use std::env::args_os;
use std::process::ExitCode;
use tap::{demo, program};

fn main() -> ExitCode {
    program::main("demo", demo::HELP, program::daemon_path(args_os().skip(1)), |daemon| demo::run(daemon))
}
