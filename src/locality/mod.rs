//! AWS locality: servers in the proxy's Availability Zone or Region are chosen more often.
//!
//! ```text
//! hostgroup policies ─┐
//! hostgroup members ──┼─ manager ── Snapshot ── selection
//! provider's answers ─┘
//! ```
//!
//! The manager asks the provider through leases, keeps what it says in a ledger, and publishes factors. Selection reads these and
//! nothing else. Weights and rows are never changed.

mod aws;
mod groups;
mod ledger;
mod library;
mod manager;
mod map_file;
mod names;
mod policy;
mod provider;
mod report;
mod running;
mod snapshot;
#[cfg(test)]
mod tests;

pub use aws::Aws;
pub use library::{Library, Unusable};
pub use manager::Locality;
pub use map_file::MapFile;
pub use names::{EndpointKind, EndpointName};
pub use policy::Policy;
pub use provider::{Answer, Category, Closed, Inbox, Lease, Location, Nearness, Provider, Subject};
pub use report::Report;
pub use snapshot::{Factors, Snapshot};
