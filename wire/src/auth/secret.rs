//! What a login proved, and the answers to a server's challenge that can be made from it.

use super::{salted_sha1, xor};
use mysql_common::scramble::{scramble_native, scramble_sha256};
use openssl::sha::sha1;
use std::fmt;

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
