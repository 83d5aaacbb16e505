//! Black-box tests of the daemon: a TAP producer, the client of the blue/green simulator, the runner of test
//! groups and the demonstration. Nothing here links the daemon's own crates.

pub mod admin;
pub mod command_line;
pub mod connection;
pub mod daemon;
pub mod demo;
pub mod deployment;
pub mod emitter;
pub mod env_files;
pub mod hosts;
pub mod interrupt;
pub mod local;
pub mod ports;
pub mod program;
pub mod replay;
pub mod runner;
pub mod scenario;
pub mod simulator;
