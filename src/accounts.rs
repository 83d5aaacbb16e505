//! Who may log in where: `wire`'s view of mysql_users and of the admin credentials.

use crate::config::Config;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use wire::SqlError;
use wire::auth::{Account, Accounts, StoredPassword};

/// Frontend users, for the traffic port and the SQLite3 server.
pub struct UserAccounts {
    config: Arc<Config>,
    /// Tells strangers apart in a way that nobody outside can foresee.
    hasher: RandomState,
}

impl UserAccounts {
    /// The users in force.
    pub fn new(config: Arc<Config>) -> Self {
        Self { config, hasher: RandomState::new() }
    }
}

impl Accounts for UserAccounts {
    fn find(&self, user: &str) -> Option<Account> {
        self.config.users().get(user).map(|user| user.account.clone())
    }
    /// As many strangers as there are users of that kind, in proportion.
    fn has_decoy_hash(&self, user: &str) -> bool {
        let users = self.config.users();
        let hashed = users.values().filter(|user| user.account.needs_password_itself()).count();
        let place = self.hasher.hash_one(user) % users.len().max(1) as u64;
        place < hashed as u64
    }
}

/// Credentials that everyone knows.
const WELL_KNOWN: [(&str, &str); 2] = [("admin", "admin"), ("stats", "stats")];

/// `admin-admin_credentials` and `admin-stats_credentials`, for a client of the admin port.
pub struct AdminAccounts {
    config: Arc<Config>,
    /// Whether the client is on this machine.
    local: bool,
}

impl AdminAccounts {
    /// The credentials in force, for a client at this address.
    pub fn new(config: Arc<Config>, client: SocketAddr) -> Self {
        Self { config, local: client.ip().to_canonical().is_loopback() }
    }

    fn password(&self, user: &str) -> Option<String> {
        let variables = self.config.variables();
        let mut pairs = variables.admin_credentials.iter().chain(&variables.stats_credentials);
        pairs.find(|(name, _)| name == user).map(|(_, password)| password.clone())
    }
}

impl Accounts for AdminAccounts {
    fn find(&self, user: &str) -> Option<Account> {
        self.password(user).map(|password| Account::new(StoredPassword::parse(&password)))
    }

    /// From elsewhere nobody logs in with a password that everyone knows.
    fn admit(&self, user: &str) -> Result<(), SqlError> {
        let password = self.password(user);
        let known = password.is_some_and(|password| WELL_KNOWN.contains(&(user, &password)));
        if self.local || !known {
            return Ok(());
        }
        log::warn!(
            "user '{user}' is refused from elsewhere while its password is the default; change it first"
        );
        Err(SqlError::new(1040, "42000", format!("User '{user}' can only connect locally")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use admin::Variables;
    use admin::rows::UserRow;

    fn row(username: &str, password: &str) -> UserRow {
        UserRow { max_connections: 1, ..UserRow::new(username, password) }
    }

    #[test]
    fn passwords_that_everyone_knows_are_for_this_machine() {
        let own = vec![("root".into(), "hush".into()), ("admin".into(), "hush".into())];
        let changed = Variables { admin_credentials: own, ..Variables::default() };
        let admitted = |variables: &Variables, client: &str, user: &str| {
            let config = Arc::new(Config::new(variables.clone()));
            let accounts = AdminAccounts::new(config, client.parse().unwrap());
            assert!(accounts.find(user).is_some(), "{user}");
            accounts.admit(user).map_err(|error| error.code)
        };
        let default = Variables::default();
        for user in ["admin", "stats"] {
            for local in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
                assert_eq!(admitted(&default, local, user), Ok(()), "{local}");
            }
            for remote in ["10.0.0.1:1", "[2001:db8::1]:1"] {
                assert_eq!(admitted(&default, remote, user), Err(1040), "{remote}");
            }
        }
        assert_eq!(admitted(&changed, "10.0.0.1:1", "admin"), Ok(()));
        assert_eq!(admitted(&changed, "10.0.0.1:1", "root"), Ok(()));
        assert_eq!(admitted(&changed, "10.0.0.1:1", "stats"), Err(1040));
    }

    #[test]
    fn strangers_are_hashed_as_users_are() {
        const HASH: &str = "24412430304124185E5B253853614B272D7C743A177B4D322B121D44\
                            63774E6C696C52674C733276544148667A664B58647A373754326B4E696D766B464E59316E2F56516432";
        let config = Arc::new(Config::new(Variables::default()));
        let accounts = UserAccounts::new(Arc::clone(&config));
        let strangers = || (0..400).filter(|n| accounts.has_decoy_hash(&format!("stranger{n}"))).count();
        assert_eq!(strangers(), 0);
        config.set_users(&[row("a", "clear"), row("b", "clear")]);
        assert_eq!(strangers(), 0);
        config.set_users(&[row("a", HASH), row("b", "clear")]);
        let some = strangers();
        assert!((1..400).contains(&some), "{some}");
        assert_eq!(strangers(), some);
        config.set_users(&[row("a", HASH)]);
        assert_eq!(strangers(), 400);
    }
}
