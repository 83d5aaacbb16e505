//! Immutable configuration snapshots, published by LOAD and read without locks.

mod servers_tls;

use crate::rules::RuleSet;
use admin::Variables;
use admin::rows::{QueryRulesConfig, ServerSslParamsRow, UserRow};
use arc_swap::ArcSwap;
use servers_tls::ServersTls;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use wire::WireError;
use wire::auth::{Account, Learned, Secret, StoredPassword};
use wire::socket::{KEEPALIVE, Socket};
use wire::tls::ClientTls;

/// A user as sessions need it: the columns of mysql_users, by their names.
#[derive(Clone)]
pub struct User {
    /// How to verify the password.
    pub account: Account,
    /// What to log in to servers with, where a backend row of its own says so. Otherwise the client's password serves both.
    pub backend_secret: Option<Secret>,
    /// Hostgroup of statements no rule claims.
    pub default_hostgroup: u32,
    /// Schema where the client names none.
    pub default_schema: Option<String>,
    /// The session may not leave its schema.
    pub schema_locked: bool,
    /// Statements of a transaction go where it began, whatever rules say.
    pub transaction_persistent: bool,
    /// The session keeps one server connection, and nothing looks at its statements.
    pub fast_forward: bool,
    /// Most connections of clients at a time; 0 admits none.
    pub max_connections: u32,
}

/// Active frontend users by name.
pub type Users = HashMap<String, User>;

/// Variables that one thread keeps, so that it can look at them often without counting references that all share.
pub struct Kept {
    version: u64,
    variables: Arc<Variables>,
}

impl Kept {
    /// Other variables have another version.
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl Deref for Kept {
    type Target = Variables;

    fn deref(&self) -> &Variables {
        &self.variables
    }
}

/// The snapshots in force.
pub struct Config {
    variables: ArcSwap<Variables>,
    users: ArcSwap<Users>,
    rules: ArcSwap<RuleSet>,
    /// There are some, which is cheaper to ask.
    has_rules: AtomicBool,
    servers_tls: ServersTls,
    version: AtomicU64,
}

impl Config {
    /// Starts with the given variables and no users.
    pub fn new(variables: Variables) -> Self {
        Self {
            variables: ArcSwap::from_pointee(variables),
            users: ArcSwap::default(),
            rules: ArcSwap::default(),
            has_rules: AtomicBool::new(false),
            servers_tls: ServersTls::default(),
            version: AtomicU64::new(1),
        }
    }
    /// Variables in force.
    pub fn variables(&self) -> arc_swap::Guard<Arc<Variables>> {
        self.variables.load()
    }
    /// Has TCP look after a new connection as the variables say.
    pub fn keep_alive(&self, socket: &Socket) {
        let time = self.variables().keepalive();
        if time != Some(KEEPALIVE) {
            // Where that fails the connection has gone, and its first use tells.
            let _ = socket.set_keepalive(time);
        }
    }
    /// Variables in force, to be kept.
    pub fn kept_variables(&self) -> Kept {
        let version = self.variables_version();
        Kept { version, variables: self.variables.load_full() }
    }
    /// Follows a change of the variables.
    pub fn refresh(&self, kept: &mut Kept) {
        if self.variables_version() != kept.version {
            *kept = self.kept_variables();
        }
    }
    /// Users in force.
    pub fn users(&self) -> arc_swap::Guard<Arc<Users>> {
        self.users.load()
    }
    /// How `user` speaks TLS to a server. Errors name the file that cannot be used.
    pub fn tls_with(&self, host: &str, port: u16, user: &str) -> Result<ClientTls, WireError> {
        self.servers_tls.with(host, port, user, &self.variables(), Instant::now())
    }
    /// Grows when TLS with some server is spoken otherwise from then on.
    pub fn tls_generation(&self) -> u64 {
        self.servers_tls.generation()
    }
    /// Puts mysql_servers_ssl_params in force, for new connections.
    pub fn set_ssl_params(&self, rows: &[ServerSslParamsRow]) {
        self.servers_tls.set_params(rows);
    }
    /// Query rules in force.
    pub fn rules(&self) -> arc_swap::Guard<Arc<RuleSet>> {
        self.rules.load()
    }
    /// Whether there are any.
    pub fn has_rules(&self) -> bool {
        self.has_rules.load(Ordering::Acquire)
    }
    /// Puts query rules in force, with no hits yet. Returns what was left out, and why.
    pub fn set_rules(&self, config: QueryRulesConfig) -> Vec<String> {
        let (rules, ignored) = RuleSet::compile(config);
        let has_rules = !rules.is_empty();
        self.rules.store(Arc::new(rules));
        self.has_rules.store(has_rules, Ordering::Release);
        ignored
    }
    /// Grows with each change of the variables; workers poll at once when it does.
    pub fn variables_version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
    /// Puts variables in force.
    pub fn set_variables(&self, variables: Variables) {
        let before = self.variables.swap(Arc::new(variables));
        if before.ssl_p2s != self.variables().ssl_p2s {
            self.servers_tls.note_change();
        }
        self.version.fetch_add(1, Ordering::AcqRel);
    }
    /// Puts users in force: active frontend rows, with the passwords of the backend rows beside them. Sessions that are
    /// logged in go on as they are.
    pub fn set_users(&self, rows: &[UserRow]) {
        let before = self.users.load();
        let active = || rows.iter().filter(|row| row.active);
        let backends: HashMap<&str, &str> = active()
            .filter(|row| row.backend && !row.frontend)
            .map(|row| (row.username.as_str(), row.password.as_str()))
            .collect();
        let users = active().filter(|row| row.frontend).map(|row| {
            let user = User {
                account: account(row, &before),
                backend_secret: backends.get(row.username.as_str()).and_then(|text| backend_secret(text)),
                default_hostgroup: row.default_hostgroup,
                default_schema: row.default_schema.clone(),
                schema_locked: row.schema_locked,
                transaction_persistent: row.transaction_persistent,
                fast_forward: row.fast_forward,
                max_connections: row.max_connections,
            };
            (row.username.clone(), user)
        });
        self.users.store(Arc::new(users.collect()));
    }
}

/// How a client logs in. What was learned of a password lasts as long as its stored form.
fn account(row: &UserRow, before: &Users) -> Account {
    let password = StoredPassword::parse(&row.password);
    let same = before.get(&row.username).filter(|user| user.account.password == password);
    let learned = same.map_or_else(Learned::default, |user| user.account.learned.clone());
    Account { password, learned, require_tls: row.use_ssl }
}

/// What a server can be told of a stored password. A hash proves nothing to a server; the client's own proof may.
fn backend_secret(text: &str) -> Option<Secret> {
    match StoredPassword::parse(text) {
        StoredPassword::Empty => Some(Secret::Empty),
        StoredPassword::Clear(password) => Some(Secret::Clear(password)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn row(password: &str, frontend: bool, backend: bool) -> UserRow {
        UserRow {
            default_hostgroup: 3,
            max_connections: 7,
            backend,
            frontend,
            ..UserRow::new("app", password)
        }
    }

    #[test]
    fn connections_are_kept_alive_as_variables_say() {
        use rustix::net::sockopt::{socket_keepalive, tcp_keepidle};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for (used, seconds, expected) in
            [(true, 120, Some(120)), (true, 0, Some(120)), (true, 30, Some(30)), (false, 30, None)]
        {
            let socket = Socket::new(std::net::TcpStream::connect(address).unwrap()).unwrap();
            Config::new(Variables {
                use_tcp_keepalive: used,
                tcp_keepalive_time: Duration::from_secs(seconds),
                ..Variables::default()
            })
            .keep_alive(&socket);
            let stream = socket.stream();
            let found = socket_keepalive(stream).unwrap().then(|| tcp_keepidle(stream).unwrap().as_secs());
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_backend_row_of_its_own_gives_the_servers_password() {
        let config = Config::new(Variables::default());
        let secret = |rows: &[UserRow]| {
            config.set_users(rows);
            config.users().get("app").map(|user| user.backend_secret.clone())
        };
        assert_eq!(secret(&[row("front", true, true)]), Some(None));
        let split = [row("front", true, false), row("back", false, true)];
        assert_eq!(secret(&split), Some(Some(Secret::Clear("back".into()))));
        let inactive = [row("front", true, false), UserRow { active: false, ..row("back", false, true) }];
        assert_eq!(secret(&inactive), Some(None));
        let hash = format!("*{}", "0A".repeat(20));
        assert_eq!(secret(&[row("front", true, false), row(&hash, false, true)]), Some(None));
        assert_eq!(secret(&[row("back", false, true)]), None, "no client can be a user of servers alone");
    }

    #[test]
    fn a_learned_password_lasts_as_long_as_its_stored_form() {
        let config = Config::new(Variables::default());
        let load = |password: &str, use_ssl| {
            config.set_users(&[UserRow { use_ssl, ..row(password, true, true) }]);
            config.users().get("app").map(|user| user.account.clone()).unwrap()
        };
        let same = |one: &Account, other: &Account| one.learned.is_shared_with(&other.learned);
        let hash = format!("*{}", "0A".repeat(20));
        let first = load(&hash, false);
        let again = load(&hash, true);
        assert!(again.require_tls && !first.require_tls);
        assert!(same(&first, &again));
        let changed = load(&format!("*{}", "0B".repeat(20)), true);
        assert!(!same(&again, &changed));
        assert!(!same(&changed, &load(&hash, true)));
    }
}
