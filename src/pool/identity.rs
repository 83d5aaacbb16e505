//! Who a pooled connection is logged in as.

use wire::CapabilityFlags;
use wire::auth::Secret;

/// Capabilities that a server must know of, so that a connection of one class cannot serve a session of another.
const CLASS: CapabilityFlags = CapabilityFlags::CLIENT_FOUND_ROWS
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_IGNORE_SPACE)
    .union(CapabilityFlags::CLIENT_INTERACTIVE)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);

/// Capabilities asked for on every connection: they only change the form of answers, which is translated for each client.
pub const EVERY: CapabilityFlags =
    CapabilityFlags::CLIENT_DEPRECATE_EOF.union(CapabilityFlags::CLIENT_SESSION_TRACK);

/// Who a connection is logged in as, fixed at login. No `Debug`: it holds a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// User name.
    pub user: String,
    /// What the client proved of its password.
    pub secret: Secret,
    /// Capabilities asked for, reduced to those that the server notices.
    pub class: CapabilityFlags,
}

impl Identity {
    /// The identity of a client that has `capabilities`.
    pub fn new(user: &str, secret: Secret, capabilities: CapabilityFlags) -> Self {
        Self { user: user.to_owned(), secret, class: capabilities & CLASS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_capabilities_that_the_server_notices_count() {
        let noticed = CapabilityFlags::CLIENT_LOCAL_FILES | CapabilityFlags::CLIENT_FOUND_ROWS;
        let translated = CapabilityFlags::CLIENT_DEPRECATE_EOF | CapabilityFlags::CLIENT_SSL;
        assert_eq!(Identity::new("u", Secret::Empty, noticed | translated).class, noticed);
    }
}
