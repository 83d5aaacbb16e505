//! What makes a pooled connection fit a session: who it is logged in as, and what was set on it since.

use std::sync::Arc;
use wire::CapabilityFlags;
use wire::auth::Secret;

/// Capabilities that change what the peer sees, so that a connection of one class cannot serve a session of another.
const CLASS: CapabilityFlags = CapabilityFlags::CLIENT_DEPRECATE_EOF
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_SESSION_TRACK)
    .union(CapabilityFlags::CLIENT_IGNORE_SPACE)
    .union(CapabilityFlags::CLIENT_INTERACTIVE)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);

/// Capabilities of a class that decide how packets are laid out: the server must have them where the client has.
const LAYOUT: CapabilityFlags =
    CapabilityFlags::CLIENT_DEPRECATE_EOF.union(CapabilityFlags::CLIENT_SESSION_TRACK);

/// Who a connection is logged in as, fixed at login. No `Debug`: it holds a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// User name.
    pub user: String,
    /// What the client proved of its password.
    pub secret: Secret,
    /// Capabilities asked for, reduced to those that the peer notices.
    pub class: CapabilityFlags,
    /// Collation id of the login.
    pub collation: u16,
}

impl Identity {
    /// The identity of a client that has `capabilities`.
    pub fn new(user: &str, secret: Secret, capabilities: CapabilityFlags, collation: u16) -> Self {
        Self { user: user.to_owned(), secret, class: capabilities & CLASS, collation }
    }
    /// Capabilities without which answers of a server with `capabilities` could not be passed on unchanged.
    pub fn missing(&self, capabilities: CapabilityFlags) -> CapabilityFlags {
        (self.class & LAYOUT).difference(capabilities)
    }
}

/// What a session has set on its connection and what can be set again on another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Default schema.
    pub schema: Option<Arc<str>>,
    /// SET statements in force, in order.
    pub settings: Arc<[Arc<str>]>,
}

impl Profile {
    /// What is left to do on a connection with this profile so that it becomes `wanted`; `None` where that is
    /// impossible (a schema cannot be taken away).
    pub fn steps_to<'a>(&self, wanted: &'a Profile) -> Option<Steps<'a>> {
        let (reset, settings) = match wanted.settings.strip_prefix(&*self.settings) {
            Some(rest) => (false, rest),
            None => (true, &*wanted.settings),
        };
        let schema = match (&self.schema, &wanted.schema) {
            (have, want) if have == want => None,
            (_, Some(want)) => Some(&**want),
            (_, None) => return None,
        };
        Some(Steps { reset, settings, schema })
    }
}

/// The way from one profile to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps<'a> {
    /// Reset the connection first: it has settings that are not wanted.
    pub reset: bool,
    /// Statements to run.
    pub settings: &'a [Arc<str>],
    /// Schema to change to, afterwards.
    pub schema: Option<&'a str>,
}

impl Steps<'_> {
    /// Round trips needed.
    pub fn count(&self) -> usize {
        // The reset itself, the character set, and often the schema.
        const RESET: usize = 3;
        self.settings.len() + usize::from(self.schema.is_some()) + usize::from(self.reset) * RESET
    }
}

/// A connection a session asks for.
#[derive(Clone)]
pub struct Want {
    /// Login.
    pub identity: Arc<Identity>,
    /// State.
    pub profile: Profile,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(schema: Option<&str>, settings: &[&str]) -> Profile {
        Profile { schema: schema.map(Arc::from), settings: settings.iter().map(|&s| Arc::from(s)).collect() }
    }

    #[test]
    fn a_profile_grows_and_forgets_by_a_reset_but_keeps_a_schema() {
        let plain = profile(None, &[]);
        let set = profile(Some("a"), &["SET NAMES x"]);
        assert_eq!(plain.steps_to(&plain).map(|s| s.count()), Some(0));
        assert_eq!(plain.steps_to(&set).map(|s| s.count()), Some(2));
        assert_eq!(set.steps_to(&profile(Some("b"), &["SET NAMES x"])).map(|s| s.schema), Some(Some("b")));
        assert_eq!(set.steps_to(&profile(None, &["SET NAMES x"])), None);
        let other = profile(Some("a"), &["SET NAMES y"]);
        let forgetting = set.steps_to(&other).unwrap();
        assert!(forgetting.reset && forgetting.settings.len() == 1 && forgetting.schema.is_none());
    }

    #[test]
    fn only_capabilities_that_the_peer_notices_count() {
        let noticed = CapabilityFlags::CLIENT_DEPRECATE_EOF | CapabilityFlags::CLIENT_FOUND_ROWS;
        let identity = Identity::new("u", Secret::Empty, noticed | CapabilityFlags::CLIENT_SSL, 45);
        assert_eq!(identity.class, noticed);
        assert_eq!(identity.missing(CapabilityFlags::empty()), CapabilityFlags::CLIENT_DEPRECATE_EOF);
        assert!(identity.missing(noticed).is_empty());
    }
}
