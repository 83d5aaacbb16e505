//! Certificates and TLS contexts.

mod client;

use crate::WireError;
use crate::socket::{Buffered, Stream};
pub use client::{ClientFiles, ClientTls};
use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::{Padding, Rsa};
use openssl::ssl::{HandshakeError, SslAcceptor, SslAcceptorBuilder, SslMethod, SslVersion};
use openssl::x509::extension::{BasicConstraints, KeyUsage, SubjectAlternativeName};
use openssl::x509::{X509, X509Builder, X509NameBuilder};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEY_BITS: u32 = 2048;
const VALID_DAYS: u32 = 3650;
/// The oldest version of TLS on either side, as MySQL has it.
const OLDEST: SslVersion = SslVersion::TLS1_2;

/// TLS for a listener, plus the RSA key that caching_sha2_password uses on plain connections.
#[derive(Clone)]
pub struct ServerTls(Arc<Material>);

struct Material {
    acceptor: SslAcceptor,
    rsa: RsaPair,
}

struct RsaPair {
    key: Rsa<Private>,
    public_pem: Vec<u8>,
}

impl ServerTls {
    /// Reads `pointsman-{ca,cert,key}.pem` from `dir`; makes a self-signed set first where there is none.
    /// Errors name the file and what to do.
    pub fn load_or_create(dir: &Path) -> Result<Self, WireError> {
        let files = Files::in_dir(dir);
        if !files.cert.exists() && !files.key.exists() {
            files.create()?;
        }
        Self::load(dir)
    }
    /// Reads the files anew. Errors name the file and what to do.
    pub fn load(dir: &Path) -> Result<Self, WireError> {
        let files = Files::in_dir(dir);
        let cert = read(&files.cert)?;
        let key = read(&files.key)?;
        let bad_key = |e| unusable(&files.key, "is no private key in PEM form", e);
        let bad_pair = |e| unusable(&files.cert, "is no certificate for the key beside it", e);
        let key = PKey::private_key_from_pem(&key).map_err(bad_key)?;
        let acceptor = acceptor(&cert, &key).map_err(bad_pair)?.build();
        // A key of another kind cannot encrypt passwords; clients ask for the public key anyway, so any will do.
        let rsa = key.rsa().or_else(|_| Rsa::generate(KEY_BITS)).and_then(RsaPair::new).map_err(bad_key)?;
        Ok(Self(Arc::new(Material { acceptor, rsa })))
    }
    /// The server's side of a handshake.
    pub(crate) fn accept(&self, socket: Buffered) -> Result<Stream, WireError> {
        match self.0.acceptor.accept(socket) {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err(error) => Err(handshake_error(error)),
        }
    }
    /// The public key that clients encrypt their password with, in PEM form.
    pub(crate) fn public_key(&self) -> &[u8] {
        &self.0.rsa.public_pem
    }
    /// Undoes RSA-OAEP; `None` if the bytes were not made with our public key.
    pub(crate) fn decrypt(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let key = &self.0.rsa.key;
        if bytes.len() != key.size() as usize {
            return None;
        }
        let mut clear = vec![0; key.size() as usize];
        let length = key.private_decrypt(bytes, &mut clear, Padding::PKCS1_OAEP).ok()?;
        clear.truncate(length);
        Some(clear)
    }
}

impl RsaPair {
    fn new(key: Rsa<Private>) -> Result<Self, ErrorStack> {
        let public_pem = key.public_key_to_pem()?;
        Ok(Self { key, public_pem })
    }
}

/// The first certificate is the server's; others lead to a CA that clients know.
fn acceptor(chain: &[u8], key: &PKey<Private>) -> Result<SslAcceptorBuilder, ErrorStack> {
    // The version before this one is without TLS 1.3.
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server())?;
    acceptor.set_min_proto_version(Some(OLDEST))?;
    let mut chain = X509::stack_from_pem(chain)?.into_iter();
    if let Some(own) = chain.next() {
        acceptor.set_certificate(&own)?;
    }
    for issuer in chain {
        acceptor.add_extra_chain_cert(issuer)?;
    }
    acceptor.set_private_key(key)?;
    acceptor.check_private_key()?;
    Ok(acceptor)
}

/// On sockets that block, a handshake "would block" when its time is up.
fn handshake_error<S>(error: HandshakeError<S>) -> WireError {
    match error {
        HandshakeError::WouldBlock(_) => io::Error::from(io::ErrorKind::TimedOut).into(),
        HandshakeError::SetupFailure(error) => WireError::Tls(error.to_string()),
        HandshakeError::Failure(handshake) => match handshake.into_error().into_io_error() {
            Ok(error) => error.into(),
            Err(error) => WireError::Tls(error.to_string()),
        },
    }
}

struct Files {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
}

impl Files {
    fn in_dir(dir: &Path) -> Self {
        Self {
            ca: dir.join("pointsman-ca.pem"),
            cert: dir.join("pointsman-cert.pem"),
            key: dir.join("pointsman-key.pem"),
        }
    }
    fn create(&self) -> Result<(), WireError> {
        let set = Generated::new().map_err(|e| WireError::Tls(format!("cannot make a certificate: {e}")))?;
        write_atomically(&self.ca, &set.ca, 0o644)?;
        write_atomically(&self.key, &set.key, 0o600)?;
        write_atomically(&self.cert, &set.cert, 0o644)
    }
}

struct Generated {
    ca: Vec<u8>,
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Generated {
    /// A CA of our own and a server certificate signed by it. The CA's key is not kept.
    fn new() -> Result<Self, ErrorStack> {
        let ca_key = PKey::from_rsa(Rsa::generate(KEY_BITS)?)?;
        let mut ca = builder("pointsman self-signed CA", &ca_key)?;
        let ca_name = name("pointsman self-signed CA")?;
        ca.set_issuer_name(&ca_name)?;
        ca.append_extension(BasicConstraints::new().critical().ca().build()?)?;
        ca.append_extension(KeyUsage::new().critical().key_cert_sign().crl_sign().build()?)?;
        ca.sign(&ca_key, MessageDigest::sha256())?;
        let ca = ca.build();

        let key = PKey::from_rsa(Rsa::generate(KEY_BITS)?)?;
        let mut cert = builder("pointsman self-signed server", &key)?;
        cert.set_issuer_name(&ca_name)?;
        cert.append_extension(BasicConstraints::new().critical().build()?)?;
        let names = SubjectAlternativeName::new()
            .dns("localhost")
            .ip("127.0.0.1")
            .ip("::1")
            .build(&cert.x509v3_context(Some(&ca), None))?;
        cert.append_extension(names)?;
        cert.sign(&ca_key, MessageDigest::sha256())?;

        Ok(Self { ca: ca.to_pem()?, cert: cert.build().to_pem()?, key: key.private_key_to_pem_pkcs8()? })
    }
}

fn name(common_name: &str) -> Result<openssl::x509::X509Name, ErrorStack> {
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_text("CN", common_name)?;
    Ok(name.build())
}

fn builder(common_name: &str, key: &PKey<Private>) -> Result<X509Builder, ErrorStack> {
    let mut builder = X509::builder()?;
    builder.set_version(2)?; // X.509 v3
    let mut serial = BigNum::new()?;
    serial.rand(127, MsbOption::MAYBE_ZERO, false)?;
    let serial = serial.to_asn1_integer()?;
    builder.set_serial_number(&serial)?;
    let subject = name(common_name)?;
    builder.set_subject_name(&subject)?;
    let (from, until) = (Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(VALID_DAYS)?);
    builder.set_not_before(&from)?;
    builder.set_not_after(&until)?;
    builder.set_pubkey(key)?;
    Ok(builder)
}

fn read(path: &Path) -> Result<Vec<u8>, WireError> {
    check_plain(path).and_then(|()| fs::read(path)).map_err(|e| unusable(path, "cannot be read", e))
}

/// An error where a path leads to no file: a pipe could keep its reader waiting for ever.
fn check_plain(path: &Path) -> io::Result<()> {
    match fs::metadata(path)?.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file")),
    }
}

fn unusable(path: &Path, what: &str, cause: impl std::fmt::Display) -> WireError {
    let path = path.display();
    WireError::Tls(format!(
        "{path} {what} ({cause}): put it right, or remove pointsman-cert.pem and pointsman-key.pem there to have new ones made"
    ))
}

fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> Result<(), WireError> {
    let write = || -> io::Result<()> {
        let draft = path.with_extension("pem.new");
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().map_err(|e| {
        let path = path.display();
        WireError::Tls(format!("{path} cannot be written ({e}): make its directory writable"))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use openssl::ssl::NameType;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::OnceLock;

    /// How tests that verify nothing speak TLS, if they do.
    pub(crate) fn unverified(tls: bool) -> Option<&'static ClientTls> {
        static SHARED: OnceLock<ClientTls> = OnceLock::new();
        tls.then(|| SHARED.get_or_init(|| ClientTls::new(&ClientFiles::default()).unwrap()))
    }

    /// One set for all tests of the crate: keys are slow to make.
    pub(crate) fn server_tls() -> ServerTls {
        static SHARED: OnceLock<ServerTls> = OnceLock::new();
        SHARED
            .get_or_init(|| {
                let dir = tempfile::tempdir().unwrap();
                ServerTls::load_or_create(dir.path()).unwrap()
            })
            .clone()
    }

    #[test]
    fn a_set_is_made_once_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        ServerTls::load_or_create(dir.path()).unwrap();
        let files = Files::in_dir(dir.path());
        let key = fs::read(&files.key).unwrap();
        assert_eq!(fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
        ServerTls::load_or_create(dir.path()).unwrap();
        assert_eq!(fs::read(&files.key).unwrap(), key);
        let ca = X509::from_pem(&fs::read(&files.ca).unwrap()).unwrap();
        let cert = X509::from_pem(&fs::read(&files.cert).unwrap()).unwrap();
        assert!(cert.verify(&ca.public_key().unwrap()).unwrap());
    }

    #[test]
    fn a_bad_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("pointsman-key.pem"), "nonsense").unwrap();
        fs::write(dir.path().join("pointsman-cert.pem"), "nonsense").unwrap();
        let text = ServerTls::load_or_create(dir.path()).err().unwrap().to_string();
        assert!(text.contains("pointsman-key.pem") && text.contains("remove"), "{text}");
    }

    #[test]
    fn a_pipe_keeps_nobody_waiting() {
        let dir = tempfile::tempdir().unwrap();
        ServerTls::load_or_create(dir.path()).unwrap();
        let key = Files::in_dir(dir.path()).key;
        fs::remove_file(&key).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&key).status().unwrap().success());
        let text = ServerTls::load_or_create(dir.path()).err().unwrap().to_string();
        assert!(text.contains("pointsman-key.pem cannot be read (not a file)"), "{text}");
        let files = ClientFiles { ca: key.to_str().unwrap().to_owned(), ..ClientFiles::default() };
        let text = ClientTls::new(&files).err().unwrap().to_string();
        assert!(text.contains("ssl_ca") && text.contains("not a file"), "{text}");
    }

    type Accepted = Result<openssl::ssl::SslStream<Buffered>, HandshakeError<Buffered>>;

    /// A handshake of a client with a server that has this certificate: what either side has of it.
    pub(super) fn handshake(set: &Generated, client: &ClientTls) -> (Accepted, Result<Stream, WireError>) {
        let key = PKey::private_key_from_pem(&set.key).unwrap();
        let server = acceptor(&set.cert, &key).unwrap().build();
        let (ours, theirs) = crate::socket::tests::pair();
        std::thread::scope(|scope| {
            let accepted = scope.spawn(|| server.accept(Buffered::new(theirs, &[])));
            let stream = client.connect(Buffered::new(ours, &[]), "db.example.com");
            (accepted.join().unwrap(), stream)
        })
    }

    #[test]
    fn a_server_is_told_the_name_that_it_is_known_by() {
        let client = ClientTls::new(&ClientFiles::default()).unwrap();
        let (server, stream) = handshake(&Generated::new().unwrap(), &client);
        assert!(stream.unwrap().is_encrypted());
        assert_eq!(server.unwrap().ssl().servername(NameType::HOST_NAME), Some("db.example.com"));
    }

    #[test]
    fn rsa_round_trip() {
        round_trip(&server_tls());
    }

    #[test]
    fn a_certificate_of_another_kind_leaves_passwords_their_rsa_key() {
        let curve = openssl::ec::EcGroup::from_curve_name(openssl::nid::Nid::X9_62_PRIME256V1).unwrap();
        let key = PKey::from_ec_key(openssl::ec::EcKey::generate(&curve).unwrap()).unwrap();
        let mut cert = builder("elliptic", &key).unwrap();
        cert.set_issuer_name(&name("elliptic").unwrap()).unwrap();
        cert.sign(&key, MessageDigest::sha256()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let files = Files::in_dir(dir.path());
        fs::write(&files.cert, cert.build().to_pem().unwrap()).unwrap();
        fs::write(&files.key, key.private_key_to_pem_pkcs8().unwrap()).unwrap();
        round_trip(&ServerTls::load_or_create(dir.path()).unwrap());
    }

    fn round_trip(tls: &ServerTls) {
        let public = Rsa::public_key_from_pem(tls.public_key()).unwrap();
        let mut sealed = vec![0; public.size() as usize];
        public.public_encrypt(b"secret", &mut sealed, Padding::PKCS1_OAEP).unwrap();
        assert_eq!(tls.decrypt(&sealed).unwrap(), b"secret");
        sealed.pop();
        assert!(tls.decrypt(&sealed).is_none());
        assert!(tls.decrypt(&[0; 256]).is_none());
    }
}
