//! The pointsman daemon: configuration snapshots, hostgroups, pools, DNS, monitor, blue/green workers and client sessions.

pub mod bgd;
pub mod config;
pub mod dns;
pub mod hostgroups;
pub mod monitor;
pub mod pool;
pub mod session;
