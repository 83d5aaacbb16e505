//! Whether the schema that a login names can be had. A server says no in place of the login's OK; so do we, as far as a server
//! can be asked without a wait. What could not be asked shows at the first statement.

use super::Sessions;
use crate::config::User;
use crate::hostgroups::HostgroupId;
use crate::pool::{Identity, Lease, Offer, Processor, Profile, TRUSTED_IDLE, Want};
use admin::Variables;
use admin::variables::NO_SCHEMA;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::login::Login;
use wire::{SqlError, WireError};

/// For how long a schema that could be opened is not asked for again.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Most pairs of user and schema that are remembered.
const MOST: usize = 10_000;
/// What a server says of a schema: access denied, unknown.
const ABOUT_SCHEMAS: [u16; 2] = [1044, 1049];

/// Whether an error says that a schema cannot be had.
pub fn is_about_schema(error: &SqlError) -> bool {
    ABOUT_SCHEMAS.contains(&error.code)
}

/// Who could open what lately, so that a login costs no round trip in general.
#[derive(Default)]
pub struct KnownSchemas(Mutex<HashMap<Opened, Instant>>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct Opened {
    user: String,
    schema: String,
    hostgroup: HostgroupId,
}

impl KnownSchemas {
    fn knows(&self, opened: &Opened, now: Instant) -> bool {
        self.0.lock().get(opened).is_some_and(|&since| now.duration_since(since) < REMEMBERED)
    }
    fn add(&self, opened: Opened, now: Instant) {
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.retain(|_, since| now.duration_since(*since) < REMEMBERED);
        }
        if known.len() < MOST {
            known.insert(opened, now);
        }
    }
}

/// The connection that a session starts with.
pub fn first_want(user: &User, login: &Login, variables: &Variables) -> Want {
    let of_all = Some(variables.default_schema.as_str()).filter(|schema| *schema != NO_SCHEMA);
    let schema = login.database.as_deref().or(user.default_schema.as_deref()).or(of_all);
    let secret = user.backend_secret.clone().unwrap_or_else(|| login.secret.clone());
    Want {
        identity: Arc::new(Identity::new(&login.user, secret, login.capabilities)),
        profile: Arc::new(Profile::login(schema, login.collation)),
        ahead: None,
        last: None,
        processor: Processor::default(),
        session: 0,
    }
}

impl Sessions {
    /// Asks a server for the schema of a login, if one can be had at once, and returns what it says against it. The
    /// connection is the one that the first statement will need.
    pub(super) fn check_schema(&self, login: &Login) -> Result<(), SqlError> {
        let users = self.config.users();
        let (Some(user), Some(schema)) = (users.get(&login.user), &login.database) else { return Ok(()) };
        let hostgroup = user.default_hostgroup;
        let opened = Opened { user: login.user.clone(), schema: schema.clone(), hostgroup };
        if self.schemas.knows(&opened, Instant::now()) {
            return Ok(());
        }
        match self.open(hostgroup, &first_want(user, login, &self.config.variables())) {
            Some(Ok(lease)) => {
                lease.release(Instant::now(), &self.config.variables());
                self.schemas.add(opened, Instant::now());
                Ok(())
            }
            Some(Err(error)) if is_about_schema(&error) => Err(error),
            _ => Ok(()),
        }
    }
    /// One attempt without a wait for other sessions. `None`: nobody can say.
    fn open(&self, hostgroup: HostgroupId, want: &Want) -> Option<Result<Lease<'_>, SqlError>> {
        let limits = self.config.kept_variables();
        let deadline = Instant::now() + limits.connect_timeout_server;
        let mut lease =
            match self.backends.lease(hostgroup, want, &limits, Instant::now(), TRUSTED_IDLE).ok()? {
                Offer::Ready(lease) => lease,
                Offer::Open(ticket) => match ticket.open(want, deadline) {
                    Ok(lease) => lease,
                    Err(failed) => return Some(Err(failed.error)),
                },
            };
        match lease.prepare(want, || deadline) {
            Ok(()) => Some(Ok(lease)),
            Err(WireError::Sql(error)) => {
                lease.release(Instant::now(), &limits);
                Some(Err(error))
            }
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_opened_is_known_for_a_while() {
        let known = KnownSchemas::default();
        let opened = |schema: &str| Opened { user: "u".into(), schema: schema.into(), hostgroup: 1 };
        let now = Instant::now();
        known.add(opened("a"), now);
        assert!(known.knows(&opened("a"), now) && !known.knows(&opened("b"), now));
        assert!(!known.knows(&opened("a"), now + REMEMBERED));
        for number in 0..2 * MOST {
            known.add(opened(&number.to_string()), now);
        }
        assert_eq!(known.0.lock().len(), MOST);
        known.add(opened("late"), now + REMEMBERED);
        assert_eq!(known.0.lock().len(), 1);
    }
}
