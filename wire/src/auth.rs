//! Passwords: stored forms, scrambles and their verification. Pure; see `login` and `backend` for the exchanges.

use mysql_common::scramble::{scramble_native, scramble_sha256};
use openssl::sha::{Sha1, sha1};
use std::fmt;

/// Bytes of challenge that both plugins use.
pub(crate) const NONCE: usize = 20;

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

impl StoredPassword {
    /// Reads the stored form from its text.
    pub fn parse(text: &str) -> Self {
        if text.is_empty() {
            return Self::Empty;
        }
        if text.starts_with("$A$") {
            return Self::Unsupported("the hash of caching_sha2_password ($A$...)");
        }
        match text.strip_prefix('*').and_then(parse_hex) {
            Some(hash) => Self::NativeHash(hash),
            None => Self::Clear(text.to_owned()),
        }
    }

    /// Verifies the answer of a mysql_native_password client:
    /// SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))).
    pub(crate) fn verify_native(&self, nonce: &[u8], response: &[u8]) -> Option<Secret> {
        let response: [u8; 20] = response.try_into().ok()?;
        match self {
            Self::Clear(password) => {
                let expected = scramble_native(nonce, password.as_bytes())?;
                openssl::memcmp::eq(&expected, &response).then(|| Secret::Clear(password.clone()))
            }
            Self::NativeHash(stage2) => {
                let stage1 = xor(response, salted_sha1(nonce, stage2));
                openssl::memcmp::eq(&sha1(&stage1), stage2).then_some(Secret::NativeStage1(stage1))
            }
            Self::Empty | Self::Unsupported(_) => None,
        }
    }

    /// Verifies the fast answer of a caching_sha2_password client:
    /// SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce).
    pub(crate) fn verify_sha2(&self, nonce: &[u8], response: &[u8]) -> Option<Secret> {
        let Self::Clear(password) = self else { return None };
        let response: [u8; 32] = response.try_into().ok()?;
        let expected = scramble_sha256(nonce, password.as_bytes())?;
        openssl::memcmp::eq(&expected, &response).then(|| Secret::Clear(password.clone()))
    }

    /// Verifies a password that came in clear, as full authentication of caching_sha2_password ends with.
    pub(crate) fn verify_clear(&self, password: &[u8]) -> Option<Secret> {
        let matches = match self {
            Self::Clear(stored) => openssl::memcmp::eq(&sha1(stored.as_bytes()), &sha1(password)),
            Self::NativeHash(stage2) => openssl::memcmp::eq(&sha1(&sha1(password)), stage2),
            Self::Empty => password.is_empty(),
            Self::Unsupported(_) => false,
        };
        let text = matches.then(|| str::from_utf8(password).ok().map(str::to_owned)).flatten()?;
        Some(if text.is_empty() { Secret::Empty } else { Secret::Clear(text) })
    }
}

impl fmt::Debug for StoredPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::Clear(_) => "Clear(..)",
            Self::NativeHash(_) => "NativeHash(..)",
            Self::Unsupported(form) => return write!(f, "Unsupported({form})"),
        })
    }
}

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

impl Secret {
    /// The answer to a mysql_native_password challenge; empty without a password.
    pub(crate) fn native_response(&self, nonce: &[u8]) -> Vec<u8> {
        match self {
            Self::Empty => Vec::new(),
            Self::Clear(password) => {
                scramble_native(nonce, password.as_bytes()).map_or_else(Vec::new, Into::into)
            }
            Self::NativeStage1(stage1) => xor(*stage1, salted_sha1(nonce, &sha1(stage1))).to_vec(),
        }
    }
    /// The fast answer to a caching_sha2_password challenge, or `None` where only the native hash is known.
    pub(crate) fn sha2_response(&self, nonce: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Empty => Some(Vec::new()),
            Self::Clear(password) => {
                Some(scramble_sha256(nonce, password.as_bytes()).map_or_else(Vec::new, Into::into))
            }
            Self::NativeStage1(_) => None,
        }
    }
    /// The password, or `None` where only its hash is known.
    pub(crate) fn clear(&self) -> Option<&str> {
        match self {
            Self::Empty => Some(""),
            Self::Clear(password) => Some(password),
            Self::NativeStage1(_) => None,
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::Clear(_) => "Clear(..)",
            Self::NativeStage1(_) => "NativeStage1(..)",
        })
    }
}

/// Authentication plugins this crate speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthPlugin {
    /// mysql_native_password
    Native,
    /// caching_sha2_password
    CachingSha2,
}

impl AuthPlugin {
    /// The name in packets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }
    /// The plugin of a name in a packet.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::Native, Self::CachingSha2].into_iter().find(|plugin| plugin.name().as_bytes() == name)
    }
}

/// One user as a listener needs it.
#[derive(Debug, Clone)]
pub struct Account {
    /// How to verify the password.
    pub password: StoredPassword,
}

/// Where a listener finds its users. Called once for each login; must not block on IO.
pub trait Accounts: Send + Sync {
    /// The account, or `None` where there is no such (active) user.
    fn find(&self, user: &str) -> Option<Account>;
    /// Asked once a user has proved who they are: an error is told to the client instead of OK, and ends the login.
    fn admit(&self, _user: &str) -> Result<(), crate::SqlError> {
        Ok(())
    }
}

fn salted_sha1(nonce: &[u8], hash: &[u8; 20]) -> [u8; 20] {
    let mut hasher = Sha1::new();
    hasher.update(nonce);
    hasher.update(hash);
    hasher.finish()
}

fn xor<const N: usize>(mut left: [u8; N], right: [u8; N]) -> [u8; N] {
    left.iter_mut().zip(right).for_each(|(l, r)| *l ^= r);
    left
}

fn parse_hex(digits: &str) -> Option<[u8; 20]> {
    if digits.len() != 40 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 20];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &[u8] = b"abcdefghijklmnopqrst";
    /// SELECT PASSWORD('password') of MySQL 5.7.
    const HASH: &str = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";

    fn clear(text: &str) -> Secret {
        Secret::Clear(text.to_owned())
    }

    #[test]
    fn stored_forms_are_told_apart() {
        assert_eq!(StoredPassword::parse(""), StoredPassword::Empty);
        assert_eq!(StoredPassword::parse("pw"), StoredPassword::Clear("pw".to_owned()));
        assert!(matches!(StoredPassword::parse(HASH), StoredPassword::NativeHash(_)));
        assert!(matches!(StoredPassword::parse("$A$005$salt"), StoredPassword::Unsupported(_)));
        assert!(matches!(StoredPassword::parse("*2470"), StoredPassword::Clear(_)));
        let not_hex = format!("*{}", "g".repeat(40));
        assert!(matches!(StoredPassword::parse(&not_hex), StoredPassword::Clear(_)));
    }

    #[test]
    fn a_native_answer_is_verified_against_both_forms_and_yields_stage1() {
        let answer = clear("password").native_response(NONCE);
        let stored = StoredPassword::parse(HASH);
        let stage1 = stored.verify_native(NONCE, &answer).unwrap();
        assert_eq!(stage1, Secret::NativeStage1(sha1(b"password")));
        assert_eq!(stage1.native_response(NONCE), answer);
        assert!(stage1.sha2_response(NONCE).is_none());
        assert_eq!(StoredPassword::parse("password").verify_native(NONCE, &answer), Some(clear("password")));
        assert!(stored.verify_native(b"another nonce here..", &answer).is_none());
        assert!(stored.verify_native(NONCE, answer.get(1..).unwrap()).is_none());
    }

    #[test]
    fn a_sha2_answer_needs_the_clear_form() {
        let answer = clear("password").sha2_response(NONCE).unwrap();
        let stored = StoredPassword::parse("password");
        assert_eq!(stored.verify_sha2(NONCE, &answer), Some(clear("password")));
        assert!(StoredPassword::parse("other").verify_sha2(NONCE, &answer).is_none());
        assert!(StoredPassword::parse(HASH).verify_sha2(NONCE, &answer).is_none());
    }

    #[test]
    fn a_password_in_clear_is_verified_against_each_form() {
        assert_eq!(StoredPassword::parse(HASH).verify_clear(b"password"), Some(clear("password")));
        assert_eq!(StoredPassword::parse("pw").verify_clear(b"pw"), Some(clear("pw")));
        assert_eq!(StoredPassword::Empty.verify_clear(b""), Some(Secret::Empty));
        assert!(StoredPassword::parse(HASH).verify_clear(b"Password").is_none());
        assert!(StoredPassword::Unsupported("x").verify_clear(b"").is_none());
    }

    #[test]
    fn debug_output_keeps_secrets() {
        let shown = format!("{:?} {:?}", StoredPassword::parse("hunter2"), clear("hunter2"));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
