//! The accounts as one connection sees them: users who have proved who they are get a place in the registry, or are refused.

use super::Sessions;
use wire::SqlError;
use wire::auth::{Account, Accounts};
use wire::login::Login;

/// The configured accounts, with what a session needs beyond a password.
pub struct Admission<'a, E> {
    /// The accounts.
    pub accounts: &'a dyn Accounts,
    /// What every session shares.
    pub shared: &'a Sessions,
    /// Gives a user a place, within the user's max_connections.
    pub enter: E,
}

impl<E: Fn(&str, u32) -> Result<(), SqlError> + Send + Sync> Accounts for Admission<'_, E> {
    fn find(&self, user: &str) -> Option<Account> {
        self.accounts.find(user)
    }
    fn has_decoy_hash(&self, user: &str) -> bool {
        self.accounts.has_decoy_hash(user)
    }
    fn check_schema(&self, login: &Login) -> Result<(), SqlError> {
        self.shared.check_schema(login)
    }
    fn admit(&self, user: &str) -> Result<(), SqlError> {
        self.accounts.admit(user)?;
        // A user who vanished meanwhile has no limit, and no session either.
        let most = self.shared.config.users().get(user).map_or(u32::MAX, |user| user.max_connections);
        (self.enter)(user, most)
    }
}
