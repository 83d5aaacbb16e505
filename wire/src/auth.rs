//! Passwords: stored forms, scrambles and their verification. Pure; see `login` and `backend` for the exchanges.

/// What is known of a user's password, as `mysql_users.password` holds it.
#[derive(Clone, PartialEq, Eq)]
pub enum StoredPassword {
    /// The user has no password.
    Empty,
    /// In clear.
    Clear(String),
    /// `*` and 40 hex digits: SHA1(SHA1(password)).
    NativeHash([u8; 20]),
    /// A form this build cannot verify, kept so that the refusal can name it (for example `$A$...`).
    Unsupported(&'static str),
}
// parse(&str) -> Self; Debug must not print secrets.

/// What a login proved that lets us log in elsewhere as the same user.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// No password.
    Empty,
    /// The password itself.
    Clear(String),
    /// SHA1(password), enough for mysql_native_password only.
    NativeStage1([u8; 20]),
}

/// Authentication plugins this crate speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthPlugin {
    /// mysql_native_password
    Native,
    /// caching_sha2_password
    CachingSha2,
}

/// One user as a listener needs it.
#[derive(Clone)]
pub struct Account {
    /// How to verify the password.
    pub password: StoredPassword,
}

/// Where a listener finds its users. Called once for each login; must not block on IO.
pub trait Accounts: Send + Sync {
    /// The account, or `None` where there is no such (active) user.
    fn find(&self, user: &str) -> Option<Account>;
}
impl StoredPassword {
    /// Reads the stored form from its text.
    pub fn parse(_text: &str) -> Self {
        unimplemented!()
    }
}
