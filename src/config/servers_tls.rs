//! TLS with servers: which files are for whom, and what was read of them.

use admin::Variables;
use admin::rows::ServerSslParamsRow;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::WireError;
use wire::tls::{ClientFiles, ClientTls};

/// Files are read anew after so long: certificates are replaced, and lists of revoked ones grow.
const FRESH: Duration = Duration::from_secs(60);

/// Rows of mysql_servers_ssl_params: by host and port, then by user; an empty name is for any.
type Params = HashMap<(String, u16), HashMap<String, ClientFiles>>;

/// See the module.
#[derive(Default)]
pub struct ServersTls {
    params: ArcSwap<Params>,
    read: Mutex<HashMap<ClientFiles, (Instant, ClientTls)>>,
    generation: AtomicU64,
}

impl ServersTls {
    /// Puts rows in force. Of two for the same server and user the first counts.
    pub fn set_params(&self, rows: &[ServerSslParamsRow]) {
        let mut params = Params::new();
        for row in rows {
            let server = params.entry((row.hostname.trim().to_owned(), row.port)).or_default();
            server.entry(row.username.clone()).or_insert_with(|| ClientFiles {
                ca: row.ssl_ca.clone(),
                capath: row.ssl_capath.clone(),
                cert: row.ssl_cert.clone(),
                key: row.ssl_key.clone(),
                crl: row.ssl_crl.clone(),
                crlpath: row.ssl_crlpath.clone(),
                cipher: row.ssl_cipher.clone(),
                versions: row.tls_version.clone(),
            });
        }
        let before = self.params.swap(Arc::new(params));
        if before != self.params.load_full() {
            self.note_change();
        }
    }
    /// What new connections speak is not what those before did.
    pub fn note_change(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
    /// How often that was.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
    /// How `user` speaks TLS to a server: as its row says, or that for any user of the server, or else the variables.
    pub fn with(
        &self,
        host: &str,
        port: u16,
        user: &str,
        variables: &Variables,
        now: Instant,
    ) -> Result<ClientTls, WireError> {
        let params = self.params.load();
        let server = params.get(&(host.to_owned(), port));
        let files = server.and_then(|users| users.get(user).or_else(|| users.get("")));
        let files = files.unwrap_or(&variables.ssl_p2s);
        let known =
            self.read.lock().get(files).filter(|(at, _)| now < *at + FRESH).map(|(_, tls)| tls.clone());
        if let Some(tls) = known {
            return Ok(tls);
        }
        let tls = ClientTls::new(files)?;
        let mut read = self.read.lock();
        read.retain(|_, (at, _)| now < *at + FRESH);
        read.insert(files.clone(), (now, tls.clone()));
        Ok(tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is not there tells who was asked for it.
    fn asked(tls: &ServersTls, host: &str, port: u16, user: &str) -> String {
        let missing = |name: &str| format!("/nowhere/{name}");
        let ssl_p2s = ClientFiles { ca: missing("variables"), ..ClientFiles::default() };
        let variables = Variables { ssl_p2s, ..Variables::default() };
        let said = tls.with(host, port, user, &variables, Instant::now()).err().unwrap().to_string();
        let found = ["variables", "any", "app"].into_iter().find(|name| said.contains(&missing(name)));
        found.unwrap_or_else(|| panic!("{said}")).to_owned()
    }

    #[test]
    fn the_row_that_names_the_user_counts_most_and_variables_least() {
        let row = |username: &str, name: &str| ServerSslParamsRow {
            username: username.into(),
            ssl_ca: format!("/nowhere/{name}"),
            ..ServerSslParamsRow::new("db", 3306)
        };
        let tls = ServersTls::default();
        assert_eq!(asked(&tls, "db", 3306, "app"), "variables");
        tls.set_params(&[row("", "any"), row("app", "app"), row("app", "other")]);
        assert_eq!(asked(&tls, "db", 3306, "app"), "app");
        assert_eq!(asked(&tls, "db", 3306, "other"), "any");
        assert_eq!(asked(&tls, "db", 3307, "app"), "variables");
        assert_eq!(asked(&tls, "other", 3306, "app"), "variables");
    }

    #[test]
    fn files_are_read_again_after_a_while() {
        let dir = tempfile::tempdir().unwrap();
        wire::tls::ServerTls::load_or_create(dir.path()).unwrap();
        let ca = dir.path().join("pointsman-ca.pem");
        let row =
            ServerSslParamsRow { ssl_ca: ca.to_str().unwrap().into(), ..ServerSslParamsRow::new("db", 3306) };
        let tls = ServersTls::default();
        tls.set_params(&[row]);
        let (variables, start) = (Variables::default(), Instant::now());
        let at = |now| tls.with("db", 3306, "app", &variables, now).is_ok();
        assert!(at(start));
        std::fs::remove_file(&ca).unwrap();
        assert!(at(start + FRESH / 2));
        assert!(!at(start + FRESH));
    }
}
