//! Who may log in where: `wire`'s view of mysql_users and of the admin credentials.

use crate::config::Config;
use std::sync::Arc;
use wire::auth::{Account, Accounts, StoredPassword};

/// Frontend users, for the traffic port and the SQLite3 server.
pub struct UserAccounts(pub Arc<Config>);

impl Accounts for UserAccounts {
    fn find(&self, user: &str) -> Option<Account> {
        self.0.users().get(user).map(|user| user.account.clone())
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
