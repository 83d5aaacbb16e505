//! Passwords: stored forms, scrambles and their verification. Pure; see `login` and `backend` for the exchanges.

mod account;
mod secret;
mod sha_crypt;
mod stored;

pub use account::{Account, Accounts, Learned};
use openssl::sha::Sha1;
pub use secret::Secret;
pub use sha_crypt::ShaCrypt;
#[cfg(test)]
pub(crate) use sha_crypt::tests::OF_SESAME;
pub use stored::StoredPassword;

/// Bytes of challenge that both plugins use.
pub const NONCE: usize = 20;

/// Authentication plugins this crate speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthPlugin {
    /// mysql_native_password
    Native,
    /// caching_sha2_password
    CachingSha2,
    /// mysql_clear_password: the password as it is, so through TLS only.
    Clear,
}

impl AuthPlugin {
    /// The name in packets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Clear => "mysql_clear_password",
        }
    }
    /// The plugin of a name in a packet.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let plugins = [Self::Native, Self::CachingSha2, Self::Clear];
        plugins.into_iter().find(|plugin| plugin.name().as_bytes() == name)
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

fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use openssl::sha::sha1;

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
        assert!(matches!(StoredPassword::parse("*2470"), StoredPassword::Clear(_)));
        let not_hex = format!("*{}", "g".repeat(40));
        assert!(matches!(StoredPassword::parse(&not_hex), StoredPassword::Clear(_)));
    }

    #[test]
    fn a_sha_crypt_hash_is_taken_as_it_is_and_in_hex() {
        for hex in OF_SESAME {
            let text = String::from_utf8(unhex(hex).unwrap()).unwrap();
            for stored in [text, hex.to_owned(), hex.to_lowercase(), format!("0x{hex}")] {
                let stored = StoredPassword::parse(&stored);
                assert_eq!(stored.verify_clear(b"sesame"), Some(clear("sesame")));
                assert!(stored.verify_clear(b"Sesame").is_none());
            }
        }
        for damaged in ["$A$", "$A$005$salt", &format!("244124{}", "0".repeat(134))] {
            assert_eq!(StoredPassword::parse(damaged), StoredPassword::Damaged, "{damaged}");
        }
        assert!(matches!(StoredPassword::parse("244124"), StoredPassword::Clear(_)));
    }

    #[test]
    fn a_password_is_learned_once_proved_and_by_all_copies() {
        for stored in [HASH, OF_SESAME[0]] {
            let password = if stored == HASH { "password" } else { "sesame" };
            let account = Account::new(StoredPassword::parse(stored));
            let copy = account.clone();
            assert!(account.verify_clear(b"wrong").is_none());
            assert_eq!(copy.best_known(), StoredPassword::parse(stored));
            assert_eq!(account.verify_clear(password.as_bytes()), Some(clear(password)));
            assert_eq!(copy.best_known(), StoredPassword::Clear(password.to_owned()));
            assert_eq!(Account::new(copy.password).best_known(), StoredPassword::parse(stored));
        }
        let empty = Account::new(StoredPassword::Empty);
        assert_eq!(empty.verify_clear(b""), Some(Secret::Empty));
        assert_eq!(empty.best_known(), StoredPassword::Empty);
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
        assert!(StoredPassword::Damaged.verify_clear(b"").is_none());
    }

    #[test]
    fn debug_output_keeps_secrets() {
        let account = Account::new(StoredPassword::parse("hunter2"));
        account.verify_clear(b"hunter2").unwrap();
        let shown = format!("{account:?} {:?}", clear("hunter2"));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
