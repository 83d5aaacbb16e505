//! A user as a listener needs it, and where listeners find their users.

use super::{Secret, StoredPassword};
use crate::SqlError;
use crate::login::Login;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The password behind a stored hash, once a client has sent it and the hash has proved it. Kept in memory only, and
/// shared by all copies: who keeps accounts makes a new one when the stored form changes.
#[derive(Clone, Default)]
pub struct Learned(Arc<OnceLock<String>>);

impl Learned {
    /// Whether what is learned by one is known to the other.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Learned(..)" } else { "Learned()" })
    }
}

/// One user as a listener needs it.
#[derive(Debug, Clone)]
pub struct Account {
    /// How to verify the password.
    pub password: StoredPassword,
    /// What is known beyond the stored form.
    pub learned: Learned,
    /// Whether the user may log in through TLS only.
    pub require_tls: bool,
}

impl Account {
    /// A user of whom only the stored password is known, and who may log in without TLS.
    pub fn new(password: StoredPassword) -> Self {
        Self { password, learned: Learned::default(), require_tls: false }
    }
    /// The form that proves most: the password itself once it was learned, otherwise what is stored.
    pub fn best_known(&self) -> StoredPassword {
        match self.learned.0.get() {
            Some(password) => StoredPassword::Clear(password.clone()),
            None => self.password.clone(),
        }
    }
    /// Whether only the password itself proves anything: it is stored as `$A$` and was not learned.
    pub fn needs_password_itself(&self) -> bool {
        matches!(self.password, StoredPassword::ShaCrypt(_)) && self.learned.0.get().is_none()
    }
    /// Verifies a password that came in clear, and keeps it where only its hash was known.
    pub(crate) fn verify_clear(&self, password: &[u8]) -> Option<Secret> {
        let secret = self.best_known().verify_clear(password)?;
        if let (StoredPassword::NativeHash(_) | StoredPassword::ShaCrypt(_), Secret::Clear(text)) =
            (&self.password, &secret)
        {
            // Another login may have been first; it proved the same password.
            let _ = self.learned.0.set(text.clone());
        }
        Some(secret)
    }
}

/// Where a listener finds its users. Called once for each login; only `check_schema` may do IO.
pub trait Accounts: Send + Sync {
    /// The account, or `None` where there is no such (active) user.
    fn find(&self, user: &str) -> Option<Account>;
    /// Whether a user who does not exist is treated as one with a `$A$` hash, so that a stranger cannot tell by the packets who
    /// exists. Must not change from login to login.
    fn has_decoy_hash(&self, _user: &str) -> bool {
        false
    }
    /// Asked once a user has proved who they are: an error is told to the client instead of OK, and ends the login.
    fn admit(&self, _user: &str) -> Result<(), SqlError> {
        Ok(())
    }
    /// Asked before `admit` about a login that names a schema: whether the client can have it, in the words of a server that
    /// says no.
    fn check_schema(&self, _login: &Login) -> Result<(), SqlError> {
        Ok(())
    }
}
