//! The hash that `mysql.user` keeps of a caching_sha2_password password: SHA-256 crypt (U. Drepper, "Unix crypt using
//! SHA-256 and SHA-512") with a salt of 20 bytes, which no library takes: theirs end at 16.

use openssl::sha::{Sha256, sha256};

const SALT: usize = 20;
const DIGEST: usize = 43;
/// Rounds are stored in thousands (MySQL, caching_sha2_password_digest_rounds).
const ROUNDS_UNIT: u32 = 1000;
/// MySQL takes no longer password for this plugin, in bytes. The cost of a hash grows with it.
const LONGEST_PASSWORD: usize = 256;

/// The parts of `$A$RRR$` (three hex digits of rounds), salt and digest.
#[derive(Clone, PartialEq, Eq)]
pub struct ShaCrypt {
    rounds: u32,
    salt: [u8; SALT],
    digest: [u8; DIGEST],
}

impl ShaCrypt {
    /// Reads the stored form; `None` where it has another shape. The salt may hold any bytes but NUL and `$`.
    pub(super) fn parse(stored: &[u8]) -> Option<Self> {
        let rest = stored.strip_prefix(b"$A$")?;
        let (rounds, rest) = rest.split_first_chunk::<3>()?;
        let (salt, digest) = rest.strip_prefix(b"$")?.split_first_chunk::<SALT>()?;
        if !rounds.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let rounds = u32::from_str_radix(str::from_utf8(rounds).ok()?, 16).ok().filter(|&n| n > 0)?;
        let digest = digest.try_into().ok()?;
        Some(Self { rounds: rounds * ROUNDS_UNIT, salt: *salt, digest })
    }

    /// Whether this is the hash of `password`. Takes milliseconds, by design.
    pub(super) fn matches(&self, password: &[u8]) -> bool {
        password.len() <= LONGEST_PASSWORD
            && openssl::memcmp::eq(&encode(&crypt(password, &self.salt, self.rounds)), &self.digest)
    }
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finish()
}

/// Bytes of `pattern`, over and over.
fn repeated(pattern: &[u8], length: usize) -> Vec<u8> {
    pattern.iter().copied().cycle().take(length).collect()
}

/// Steps 1 to 21 of the specification.
fn crypt(password: &[u8], salt: &[u8], rounds: u32) -> [u8; 32] {
    let alternate = hash(&[password, salt, password]);
    let mut first = [password, salt].concat();
    first.extend(repeated(&alternate, password.len()));
    let mut length = password.len();
    while length > 0 {
        first.extend_from_slice(if length & 1 == 1 { &alternate } else { password });
        length >>= 1;
    }
    let mut digest = sha256(&first);

    let of_password = sha256(&repeated(password, password.len() * password.len()));
    let password = repeated(&of_password, password.len());
    let [first_byte, ..] = digest;
    let of_salt = sha256(&repeated(salt, salt.len() * (16 + usize::from(first_byte))));
    let salt = repeated(&of_salt, salt.len());

    for round in 0..rounds {
        let odd = round % 2 == 1;
        let (before, after): (&[u8], &[u8]) = if odd { (&password, &digest) } else { (&digest, &password) };
        let salt: &[u8] = if round % 3 == 0 { &[] } else { &salt };
        let again: &[u8] = if round % 7 == 0 { &[] } else { &password };
        digest = hash(&[before, salt, again, after]);
    }
    digest
}

/// Crypt's own base 64, which also shuffles the bytes.
fn encode(digest: &[u8; 32]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let byte = |at: usize| u32::from(digest.get(at).copied().unwrap_or_default());
    let mut text = Vec::with_capacity(DIGEST + 1);
    let mut put = |mut bits: u32, characters: usize| {
        for _ in 0..characters {
            text.extend(ALPHABET.get((bits & 63) as usize));
            bits >>= 6;
        }
    };
    let (mut high, mut middle, mut low) = (0, 10, 20);
    for _ in 0..10 {
        put(byte(high) << 16 | byte(middle) << 8 | byte(low), 4);
        (high, middle, low) = ((low + 1) % 30, (high + 1) % 30, (middle + 1) % 30);
    }
    put(byte(31) << 8 | byte(30), 3);
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::auth::unhex;

    /// `SELECT HEX(authentication_string)` of MySQL 9.7 for three accounts whose password is "sesame". The first salt
    /// holds control characters, the last was made with 5,000 rounds, which was the default of MySQL 8.
    pub(crate) const OF_SESAME: [&str; 3] = [
        "24412430304124185E5B253853614B272D7C743A177B4D322B121D44\
         63774E6C696C52674C733276544148667A664B58647A373754326B4E696D766B464E59316E2F56516432",
        "2441243030412473145D5042406562617C1A376F255B207E07460C42\
         5335574C42684C4D3553376476374F586768424354302F4157486556357650743978394F564D6A6E4931",
        "24412430303524176E1F2B3506316F194D784F6D4F092A34566D056C\
         774D4F7A69544C7A48634837634441415130446778386C4F7A637978506B314C47743975774644596437",
    ];

    #[test]
    fn hashes_of_a_real_server_are_verified() {
        for (index, hex) in OF_SESAME.iter().enumerate() {
            let hash = ShaCrypt::parse(&unhex(hex).unwrap()).unwrap();
            assert_eq!(hash.rounds, if index == 2 { 5_000 } else { 10_000 });
            assert!(hash.matches(b"sesame"), "{index}");
            assert!(!hash.matches(b"Sesame") && !hash.matches(b""), "{index}");
            assert!(!hash.matches(&[b's'; LONGEST_PASSWORD + 1]));
        }
    }

    #[test]
    fn another_program_makes_the_same_hashes() {
        // As `openssl passwd -5` has them.
        for (password, salt, digest) in [
            ("Hello world!", "saltstring", "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
            (
                "a password that is longer than thirty-two bytes, and then some more",
                "sixteen.bytes.ab",
                "k0XxmAs9GHiyWU3bvf1l.ckU3fycZ.vZpSPw7O9.e6D",
            ),
        ] {
            let made = encode(&crypt(password.as_bytes(), salt.as_bytes(), 5000));
            assert_eq!(made, digest.as_bytes());
        }
    }

    #[test]
    fn other_shapes_are_refused() {
        let whole = unhex(OF_SESAME[0]).unwrap();
        for length in 0..whole.len() {
            assert!(ShaCrypt::parse(&whole[..length]).is_none(), "{length}");
        }
        assert!(ShaCrypt::parse(&[&whole[..], b"x"].concat()).is_none());
        assert!(ShaCrypt::parse(&[b"$A$000$", &whole[7..]].concat()).is_none());
        assert!(ShaCrypt::parse(&[b"$A$0x5$", &whole[7..]].concat()).is_none());
    }
}
