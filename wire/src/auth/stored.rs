//! Passwords as `mysql_users.password` holds them, and their verification.

use super::{Secret, ShaCrypt, salted_sha1, unhex, xor};
use mysql_common::scramble::{scramble_native, scramble_sha256};
use openssl::sha::sha1;
use std::fmt;

/// What is known of a user's password.
#[derive(Clone, PartialEq, Eq)]
pub enum StoredPassword {
    /// The user has no password.
    Empty,
    /// In clear.
    Clear(String),
    /// `*` and 40 hex digits: SHA1(SHA1(password)).
    NativeHash([u8; 20]),
    /// `$A$...`, what mysql.user keeps for caching_sha2_password; or the same in hex digits.
    ShaCrypt(Box<ShaCrypt>),
    /// It begins like a hash of caching_sha2_password and is none. Nobody can log in with it.
    Damaged,
}

impl StoredPassword {
    /// Reads the stored form from its text. `$A$` hashes are also taken in hex digits, as `HEX(authentication_string)` and
    /// `SHOW CREATE USER` (with print_identified_with_as_hex) give them, because their salt may hold control characters.
    pub fn parse(text: &str) -> Self {
        const HEX_OF_A: &str = "244124"; // $A$
        const HEX_DIGITS: usize = 140;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let bytes = if digits.len() == HEX_DIGITS && digits.starts_with(HEX_OF_A) {
            unhex(digits).unwrap_or_default()
        } else {
            text.as_bytes().to_vec()
        };
        if text.is_empty() {
            Self::Empty
        } else if bytes.starts_with(b"$A$") {
            ShaCrypt::parse(&bytes).map_or(Self::Damaged, |hash| Self::ShaCrypt(Box::new(hash)))
        } else {
            let hash = text.strip_prefix('*').and_then(unhex).and_then(|hash| hash.try_into().ok());
            hash.map_or_else(|| Self::Clear(text.to_owned()), Self::NativeHash)
        }
    }

    /// What the log and the documentation call the form.
    pub fn form(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Clear(_) => "clear",
            Self::NativeHash(_) => "*SHA1",
            Self::ShaCrypt(_) => "$A$",
            Self::Damaged => "damaged $A$",
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
            Self::Empty | Self::ShaCrypt(_) | Self::Damaged => None,
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
            Self::ShaCrypt(hash) => hash.matches(password),
            Self::Empty => password.is_empty(),
            Self::Damaged => false,
        };
        let text = matches.then(|| str::from_utf8(password).ok().map(str::to_owned)).flatten()?;
        Some(if text.is_empty() { Secret::Empty } else { Secret::Clear(text) })
    }
}

impl fmt::Debug for StoredPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredPassword({})", self.form())
    }
}
