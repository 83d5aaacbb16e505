//! Flags, logging, signals, and the order of starting and stopping.

use crossbeam_channel::Sender;
use pointsman::cli::{self, Invocation, Options};
use pointsman::daemon::{Daemon, Stop};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os().skip(1)) {
        Ok(Invocation::Help) => print!("{}", cli::HELP),
        Ok(Invocation::Version) => println!("pointsman {}", env!("CARGO_PKG_VERSION")),
        Ok(Invocation::Run(options)) => return run(&options),
        Err(message) => return fail(&message),
    }
    ExitCode::SUCCESS
}

fn run(options: &Options) -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("info"))
        // At finer levels the HTTP client tells of what it sends, which may be secret.
        .filter_module("ureq", log::LevelFilter::Warn)
        .filter_module("ureq_proto", log::LevelFilter::Warn)
        .format(|out, record| {
            let (time, level, target) = (out.timestamp_micros(), record.level(), record.target());
            let style = out.default_level_style(level);
            writeln!(
                out,
                "[{time} {style}{level:<5}{style:#} {target}] {}",
                one_line(&record.args().to_string())
            )
        })
        .init();
    std::panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        log::error!("thread {} panicked at {place}", thread.name().unwrap_or("without a name"));
    }));

    let (stop, stops) = crossbeam_channel::unbounded();
    // Signals are caught before anything starts, so that an early one stops the daemon cleanly too.
    let mut signals = match Signals::new([SIGTERM, SIGINT]) {
        Ok(signals) => signals,
        Err(error) => return fail(&format!("cannot catch signals: {error}")),
    };
    // A file that has reached a size limit is an error where it is written, and not the end of the daemon.
    if let Err(error) = flag::register(SIGXFSZ, Arc::default()) {
        return fail(&format!("cannot catch signals: {error}"));
    }
    let handle = signals.handle();
    let forwarding = stop.clone();
    let forwarder =
        thread::Builder::new().name("signals".into()).spawn(move || forward(&mut signals, &forwarding));
    let forwarder = match forwarder {
        Ok(forwarder) => forwarder,
        Err(error) => return fail(&format!("cannot start a thread: {error}")),
    };

    // Asked for now, since the file may have been replaced by the time of a restart.
    let program = std::env::current_exe();
    let (code, restart) = match Daemon::start(options, stop) {
        Ok(daemon) => {
            // The channel cannot close first: the daemon holds a sender.
            let reason = stops.recv().unwrap_or(Stop::Gracefully);
            daemon.stop(reason);
            log::info!("stopped");
            (ExitCode::SUCCESS, reason == Stop::Restart)
        }
        Err(error) => (fail(&error.to_string()), false),
    };
    handle.close();
    // It forwards and nothing else; a panic in it has been logged.
    let _ = forwarder.join();
    if restart { begin_anew(program) } else { code }
}

/// Becomes a new process of the same program and arguments. Returns only if that fails.
fn begin_anew(program: std::io::Result<PathBuf>) -> ExitCode {
    log::info!("starting again");
    // What is asked of one start alone was done.
    let lasting = |argument: &OsString| argument != "--initial" && argument != "--reload";
    let error = match program {
        Ok(program) => {
            std::process::Command::new(program).args(std::env::args_os().skip(1).filter(lasting)).exec()
        }
        Err(error) => error,
    };
    fail(&format!("cannot start again: {error}; start it by hand"))
}

/// The first signal stops the daemon, a second one hurries it.
fn forward(signals: &mut Signals, stop: &Sender<Stop>) {
    for (count, signal) in signals.forever().enumerate() {
        if count == 0 {
            log::info!("signal {signal}: stopping; running statements get up to 5 seconds");
            // Fails only when the daemon is gone already.
            let _ = stop.send(Stop::Gracefully);
        } else {
            log::warn!("signal {signal} again: leaving at once");
            std::process::exit(1);
        }
    }
}

/// Names and texts of clients and servers stand in messages: control characters in them must not forge lines.
fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for c in message.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

fn fail(message: &str) -> ExitCode {
    eprintln!("pointsman: {}", one_line(message));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_one_line() {
        assert_eq!(one_line("a\nb\x1b[31m é"), "a\\nb\\u{1b}[31m é");
    }
}
