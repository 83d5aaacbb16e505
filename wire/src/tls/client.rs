//! The client's side of TLS: what servers are checked with, and what they are shown.

use super::{OLDEST, handshake_error};
use crate::WireError;
use crate::socket::{Buffered, Stream};
use openssl::error::ErrorStack;
use openssl::ssl::{
    HandshakeError, Ssl, SslContext, SslContextBuilder, SslFiletype, SslMethod, SslMode, SslVerifyMode,
    SslVersion,
};
use openssl::x509::X509VerifyResult;
use openssl::x509::store::X509Lookup;
use openssl::x509::verify::X509VerifyFlags;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// Paths of files and directories in PEM form, and what else decides of a connection to a server. Nothing is set where a text is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ClientFiles {
    /// Certificates of the CAs that servers' certificates must come from. Without them, none is verified.
    pub ca: String,
    /// Directory of such certificates, by the hashes of their names.
    pub capath: String,
    /// Our certificate, with those that lead to its CA.
    pub cert: String,
    /// Its key.
    pub key: String,
    /// Certificates that are not valid any more.
    pub crl: String,
    /// Directory of such lists, by the hashes of their names.
    pub crlpath: String,
    /// Ciphers for TLS 1.2, as OpenSSL names them, separated by `:`.
    pub cipher: String,
    /// TLSv1.2, TLSv1.3 or both, separated by `,`.
    pub versions: String,
}

/// How TLS is spoken to a server. Cheap to clone.
#[derive(Clone)]
pub struct ClientTls(SslContext);

impl ClientTls {
    /// Reads the files. Errors name the column of mysql_servers_ssl_params and the file.
    pub fn new(files: &ClientFiles) -> Result<Self, WireError> {
        let mut builder = builder().map_err(|error| WireError::Tls(error.to_string()))?;
        let context = &mut builder;
        let given = |text: &str| !text.is_empty();
        if given(&files.ca) {
            set("ssl_ca", &files.ca, |path| context.load_verify_locations(Some(path), None))?;
        }
        if given(&files.capath) {
            set("ssl_capath", &files.capath, |path| context.load_verify_locations(None, Some(path)))?;
        }
        if given(&files.ca) || given(&files.capath) {
            context.set_verify(SslVerifyMode::PEER);
        }
        if given(&files.crl) {
            set("ssl_crl", &files.crl, |path| {
                let lookup = context.cert_store_mut().add_lookup(X509Lookup::file())?;
                lookup.load_crl_file(path, SslFiletype::PEM).map(drop)
            })?;
        }
        if given(&files.crlpath) {
            set("ssl_crlpath", &files.crlpath, |_| {
                let lookup = context.cert_store_mut().add_lookup(X509Lookup::hash_dir())?;
                lookup.add_dir(&files.crlpath, SslFiletype::PEM)
            })?;
        }
        if given(&files.crl) || given(&files.crlpath) {
            let flags = X509VerifyFlags::CRL_CHECK | X509VerifyFlags::CRL_CHECK_ALL;
            let set = context.cert_store_mut().set_flags(flags);
            set.map_err(|error| WireError::Tls(error.to_string()))?;
        }
        if given(&files.cert) {
            set("ssl_cert", &files.cert, |path| context.set_certificate_chain_file(path))?;
        }
        if given(&files.key) {
            set("ssl_key", &files.key, |path| {
                context.set_private_key_file(path, SslFiletype::PEM)?;
                // Without a certificate there is nothing that it could be the key of.
                if given(&files.cert) { context.check_private_key() } else { Ok(()) }
            })?;
        }
        if given(&files.cipher) {
            let wrong = |_| WireError::Tls(format!("ssl_cipher '{}' names no cipher", files.cipher));
            context.set_cipher_list(&files.cipher).map_err(wrong)?;
        }
        if given(&files.versions) {
            set_versions(context, &files.versions)?;
        }
        Ok(Self(builder.build()))
    }
    /// The client's side of a handshake. `name` is sent as SNI, unless it is an address; it is not compared with the certificate.
    pub(crate) fn connect(&self, socket: Buffered, name: &str) -> Result<Stream, WireError> {
        let unusable = |error: ErrorStack| WireError::Tls(error.to_string());
        let mut session = Ssl::new(&self.0).map_err(unusable)?;
        if !name.is_empty() && name.parse::<IpAddr>().is_err() {
            session.set_hostname(name).map_err(unusable)?;
        }
        match session.connect(socket) {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err(HandshakeError::Failure(stream)) if stream.ssl().verify_result() != X509VerifyResult::OK => {
                Err(WireError::Untrusted(stream.ssl().verify_result().error_string()))
            }
            Err(error) => Err(handshake_error(error)),
        }
    }
}

fn builder() -> Result<SslContextBuilder, ErrorStack> {
    let mut context = SslContext::builder(SslMethod::tls_client())?;
    context.set_min_proto_version(Some(OLDEST))?;
    context.set_mode(
        SslMode::AUTO_RETRY
            | SslMode::ACCEPT_MOVING_WRITE_BUFFER
            | SslMode::ENABLE_PARTIAL_WRITE
            | SslMode::RELEASE_BUFFERS,
    );
    Ok(context)
}

/// Has OpenSSL use a path, after a look whether it can be read: the system's reason is the clearer one.
fn set(column: &str, path: &str, set: impl FnOnce(&Path) -> Result<(), ErrorStack>) -> Result<(), WireError> {
    let wrong = |reason: &dyn std::fmt::Display| {
        WireError::Tls(format!("{column} '{}' cannot be used: {reason}", path.escape_debug()))
    };
    let path = Path::new(path);
    let readable = match path.is_dir() {
        true => fs::read_dir(path).map(drop),
        false => super::check_plain(path).and_then(|()| fs::File::open(path).map(drop)),
    };
    readable.map_err(|error| wrong(&error))?;
    set(path).map_err(|error| wrong(&error))
}

fn set_versions(context: &mut SslContextBuilder, list: &str) -> Result<(), WireError> {
    let (mut least, mut most) = (None, None);
    for (name, version) in [("TLSv1.2", SslVersion::TLS1_2), ("TLSv1.3", SslVersion::TLS1_3)] {
        if list.split(',').any(|asked| asked.trim().eq_ignore_ascii_case(name)) {
            least = least.or(Some(version));
            most = Some(version);
        }
    }
    if least.is_none() {
        return Err(WireError::Tls(format!("tls_version '{list}' names neither TLSv1.2 nor TLSv1.3")));
    }
    let set = context.set_min_proto_version(least).and_then(|()| context.set_max_proto_version(most));
    set.map_err(|error| WireError::Tls(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::handshake;
    use super::super::{Files, Generated};
    use super::*;
    use std::path::PathBuf;

    struct Set {
        dir: tempfile::TempDir,
        made: Generated,
    }

    impl Set {
        /// Files of a new CA and of a certificate of its.
        fn new() -> Self {
            let (dir, made) = (tempfile::tempdir().unwrap(), Generated::new().unwrap());
            let files = Files::in_dir(dir.path());
            fs::write(files.ca, &made.ca).unwrap();
            fs::write(files.cert, &made.cert).unwrap();
            fs::write(files.key, &made.key).unwrap();
            Self { dir, made }
        }
        fn path(&self, file: fn(Files) -> PathBuf) -> String {
            file(Files::in_dir(self.dir.path())).to_str().unwrap().to_owned()
        }
        fn ca(&self) -> String {
            self.path(|files| files.ca)
        }
    }

    #[test]
    fn a_server_is_who_its_ca_says() {
        let (known, unknown) = (Set::new(), Set::new());
        let trusting = |ca: String| ClientTls::new(&ClientFiles { ca, ..ClientFiles::default() }).unwrap();
        let with = |client: &ClientTls| handshake(&known.made, client).1;
        with(&trusting(known.ca())).unwrap();
        with(&trusting(String::new())).unwrap();
        assert!(matches!(with(&trusting(unknown.ca())), Err(WireError::Untrusted(_))));
    }

    #[test]
    fn versions_and_ciphers_are_those_that_are_named() {
        let set = Set::new();
        for (versions, cipher, expected) in [
            ("TLSv1.2", "", "TLSv1.2"),
            ("tlsv1.3 ", "", "TLSv1.3"),
            ("TLSv1.2,TLSv1.3", "", "TLSv1.3"),
            ("TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256", "TLSv1.2"),
        ] {
            let files =
                ClientFiles { versions: versions.into(), cipher: cipher.into(), ..ClientFiles::default() };
            let (server, client) = handshake(&set.made, &ClientTls::new(&files).unwrap());
            client.unwrap();
            let server = server.unwrap();
            assert_eq!(server.ssl().version_str(), expected);
            let used = server.ssl().current_cipher().unwrap().name();
            assert!(cipher.is_empty() || used == cipher, "{used}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let (set, other) = (Set::new(), Set::new());
        let nonsense = set.dir.path().join("nonsense").to_str().unwrap().to_owned();
        fs::write(&nonsense, "nonsense").unwrap();
        let none = "/nowhere/x.pem".to_owned();
        let usual = ClientFiles::default;
        for (files, column, what) in [
            (ClientFiles { ca: none.clone(), ..usual() }, "ssl_ca", "/nowhere/x.pem"),
            (ClientFiles { ca: nonsense.clone(), ..usual() }, "ssl_ca", "nonsense"),
            (ClientFiles { capath: none.clone(), ..usual() }, "ssl_capath", "No such file"),
            (ClientFiles { cert: nonsense.clone(), ..usual() }, "ssl_cert", "nonsense"),
            (ClientFiles { key: none.clone(), ..usual() }, "ssl_key", "No such file"),
            (ClientFiles { crl: nonsense.clone(), ..usual() }, "ssl_crl", "nonsense"),
            (ClientFiles { crlpath: none.clone(), ..usual() }, "ssl_crlpath", "/nowhere"),
            (ClientFiles { cipher: "ROT13".into(), ..usual() }, "ssl_cipher", "ROT13"),
            (ClientFiles { versions: "TLSv1.1".into(), ..usual() }, "tls_version", "TLSv1.1"),
            (
                ClientFiles {
                    cert: set.path(|files| files.cert),
                    key: other.path(|files| files.key),
                    ..usual()
                },
                "ssl_key",
                "pointsman-key.pem",
            ),
        ] {
            let said = ClientTls::new(&files).err().unwrap().to_string();
            assert!(said.contains(&format!("{column} '")) && said.contains(what), "{said}");
        }
        let whole = ClientFiles {
            ca: set.ca(),
            cert: set.path(|files| files.cert),
            key: set.path(|files| files.key),
            capath: set.dir.path().to_str().unwrap().into(),
            ..usual()
        };
        handshake(&set.made, &ClientTls::new(&whole).unwrap()).1.unwrap();
    }

    #[test]
    fn a_list_of_what_is_revoked_must_be_there_where_it_is_asked_for() {
        let set = Set::new();
        let empty = tempfile::tempdir().unwrap();
        let files = ClientFiles {
            ca: set.ca(),
            crlpath: empty.path().to_str().unwrap().into(),
            ..ClientFiles::default()
        };
        match handshake(&set.made, &ClientTls::new(&files).unwrap()).1 {
            Err(WireError::Untrusted(why)) => assert!(why.contains("CRL"), "{why}"),
            other => panic!("{:?}", other.err()),
        }
    }
}
