//! Who may log in where: `wire`'s view of mysql_users and of the admin credentials.

use crate::config::Config;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
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

/// `admin-admin_credentials`, for the admin port.
pub struct AdminAccounts(pub Arc<Config>);

impl Accounts for AdminAccounts {
    fn find(&self, user: &str) -> Option<Account> {
        let variables = self.0.variables();
        let (_, password) = variables.admin_credentials.iter().find(|(name, _)| name == user)?;
        Some(Account::new(StoredPassword::parse(password)))
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
