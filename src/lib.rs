//! The pointsman daemon: configuration snapshots, hostgroups, pools, DNS, monitor, blue/green workers and client sessions.

pub mod accounts;
pub mod bgd;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod digest;
pub mod dns;
pub mod hostgroups;
mod json;
pub mod listeners;
pub mod locality;
pub mod monitor;
pub mod periodic;
pub mod places;
pub mod pool;
pub mod ports;
pub mod process;
pub mod quoting;
pub mod rules;
pub mod runtime;
pub mod session;
pub mod stats;
mod template;
#[cfg(test)]
mod testing;
mod tokens;
