//! What makes a pooled connection fit a session: who it is logged in as, and what was set on it since.

use super::variables::{CHARACTER_SETS, OF_TEXTS, twin};
use mysql_common::collations::{Collation, CollationId};
use std::borrow::Cow;
use std::sync::Arc;
use wire::auth::Secret;
use wire::backend::{Backend, Request};
use wire::version::is_mysql_8;
use wire::{CapabilityFlags, Command};

/// Capabilities that a server must know of, so that a connection of one class cannot serve a session of another.
const CLASS: CapabilityFlags = CapabilityFlags::CLIENT_FOUND_ROWS
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_IGNORE_SPACE)
    .union(CapabilityFlags::CLIENT_INTERACTIVE)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);

/// Capabilities asked for on every connection: they only change the form of answers, which is translated for each client.
pub const EVERY: CapabilityFlags =
    CapabilityFlags::CLIENT_DEPRECATE_EOF.union(CapabilityFlags::CLIENT_SESSION_TRACK);

/// Who a connection is logged in as, fixed at login. No `Debug`: it holds a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// User name.
    pub user: String,
    /// What the client proved of its password.
    pub secret: Secret,
    /// Capabilities asked for, reduced to those that the server notices.
    pub class: CapabilityFlags,
}

impl Identity {
    /// The identity of a client that has `capabilities`.
    pub fn new(user: &str, secret: Secret, capabilities: CapabilityFlags) -> Self {
        Self { user: user.to_owned(), secret, class: capabilities & CLASS }
    }
}

/// The character set and collation that a session talks in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// Those of the collation id that the client logged in with.
    Login(u16),
    /// What followed SET NAMES.
    Set(Arc<str>),
}

impl Names {
    /// What follows SET NAMES to have them on a server.
    fn literal(&self, server: &dyn Server) -> Cow<'_, str> {
        match self {
            Self::Set(text) => Cow::Borrowed(text),
            Self::Login(id) => Cow::Owned(login_names(*id, server)),
        }
    }
}

/// A login with a collation that the server does not know gets the server's own default, so that is what it has again.
fn login_names(id: u16, server: &dyn Server) -> String {
    let collation = Collation::resolve(CollationId::from(id));
    if collation.id() == CollationId::UNKNOWN_COLLATION_ID || !server.knows_collation(id) {
        return "DEFAULT".to_owned();
    }
    format!("{} COLLATE {}", collation.charset(), collation.collation())
}

/// What must be known of a server to speak to it of collations.
pub trait Server {
    /// Whether the server has the collation of this id.
    fn knows_collation(&self, id: u16) -> bool;
    /// Whether its client logged in with CLIENT_IGNORE_SPACE, which adds IGNORE_SPACE to the global sql_mode.
    fn ignores_space(&self) -> bool;
}

/// The sql_mode of a login with CLIENT_IGNORE_SPACE.
const SQL_MODE_IGNORING_SPACE: &str = "CONCAT(@@GLOBAL.sql_mode,',IGNORE_SPACE')";

impl Server for Backend {
    fn knows_collation(&self, id: u16) -> bool {
        // MySQL 8.0 has added ids from 255 on, MariaDB others from 576 and 2048 on.
        match id {
            255..=575 => is_mysql_8(&self.server_version),
            576.. => self.is_mariadb(),
            _ => true,
        }
    }
    fn ignores_space(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_IGNORE_SPACE)
    }
}

/// What a session has set on its connection and what can be set again on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Default schema.
    pub schema: Option<Arc<str>>,
    names: Names,
    // Names and values as SET takes them, in the order of the names. Those of character sets differ from `names`.
    variables: Vec<(Arc<str>, Arc<str>)>,
}

impl Profile {
    /// That of a session that has logged in and set nothing yet.
    pub fn login(schema: Option<&str>, collation: u16) -> Self {
        let schema = schema.filter(|name| !name.is_empty()).map(Arc::from);
        Self { schema, names: Names::Login(collation), variables: Vec::new() }
    }
    /// The state of a fresh login, but for the schema, which no reset takes away.
    pub fn after_reset(&self, collation: u16) -> Self {
        Self { schema: self.schema.clone(), ..Self::login(None, collation) }
    }
    /// What is left of it after COM_RESET_CONNECTION, as a server's client sees it: MySQL forgets the character set of the login,
    /// MariaDB its CLIENT_IGNORE_SPACE.
    pub fn as_reset_by_client(&self, collation: u16, mariadb: bool, ignores_space: bool) -> Self {
        let mut reset = self.after_reset(collation);
        if !mariadb {
            reset.set_names("DEFAULT");
        } else if ignores_space {
            reset.set("sql_mode", "@@GLOBAL.sql_mode");
        }
        reset
    }
    /// What MariaDB leaves of it when it has refused COM_CHANGE_USER: schema and character set.
    pub fn after_refused_change(&self) -> Self {
        let mut left = self.clone();
        left.variables.retain(|(name, _)| CHARACTER_SETS.contains(&&**name));
        left
    }
    /// The same in another schema.
    pub fn in_schema(&self, schema: Option<Arc<str>>) -> Self {
        Self { schema, ..self.clone() }
    }
    /// The part of it that decides what the text of a statement means.
    pub fn of_texts(&self) -> Self {
        let variables = self.variables.iter().filter(|(name, _)| OF_TEXTS.contains(&&**name)).cloned();
        Self { variables: variables.collect(), ..self.clone() }
    }
    /// The same but for that part, which is as in another. A schema cannot be taken away, so it stays where there is none.
    pub fn with_texts_of(&self, other: &Self) -> Self {
        let schema = other.schema.clone().or_else(|| self.schema.clone());
        let mut changed = Self { schema, names: other.names.clone(), ..self.clone() };
        changed.variables.retain(|(name, _)| !OF_TEXTS.contains(&&**name));
        for (name, value) in &other.of_texts().variables {
            changed.set(name, value);
        }
        changed
    }
    /// The collation id of a login that needs no SET NAMES any more; `None` where the handshake cannot say it.
    pub fn login_collation(&self) -> Option<u16> {
        match self.names {
            Names::Login(id) if id <= u8::MAX.into() => Some(id),
            _ => None,
        }
    }
    /// SET NAMES, which overrides what was set of character sets before.
    pub fn set_names(&mut self, text: &str) {
        self.names = Names::Set(Arc::from(text));
        self.variables.retain(|(name, _)| !CHARACTER_SETS.contains(&&**name));
    }
    /// A variable has a value now, written as SET takes it.
    pub fn set(&mut self, name: &str, literal: &str) {
        match name {
            // Each of them sets the other.
            "character_set_connection" => self.unset("collation_connection"),
            "collation_connection" => self.unset("character_set_connection"),
            _ if twin(name).is_some() => self.unset(name),
            _ => {}
        }
        match self.position(name) {
            Ok(at) => {
                self.variables.iter_mut().skip(at).take(1).for_each(|(_, value)| *value = literal.into())
            }
            Err(at) => self.variables.insert(at, (name.into(), literal.into())),
        }
    }
    /// A variable has the value of a login again.
    pub fn unset(&mut self, name: &str) {
        let names = [Some(name), twin(name)];
        self.variables.retain(|(known, _)| !names.contains(&Some(&**known)));
    }
    /// The value of a variable that was set.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.variables.get(self.position(name).ok()?)?;
        Some(value)
    }
    /// How many variables were set.
    pub fn set_count(&self) -> usize {
        self.variables.len()
    }
    fn position(&self, name: &str) -> Result<usize, usize> {
        self.variables.binary_search_by(|(known, _)| (**known).cmp(name))
    }
    /// How much a connection with this profile lacks to have the one that is `wanted`: 0 for nothing; `None` where it cannot have it,
    /// because a schema cannot be taken away.
    pub fn distance(&self, wanted: &Self) -> Option<usize> {
        if self.schema.is_some() && wanted.schema.is_none() {
            return None;
        }
        let schema = usize::from(self.schema != wanted.schema);
        if self.names == wanted.names && self.variables == wanted.variables {
            return Some(schema);
        }
        let missing = |from: &Self, to: &Self| {
            to.variables.iter().filter(|(name, value)| from.get(name) != Some(value)).count()
        };
        let names = usize::from(self.names != wanted.names);
        Some(schema + names + missing(self, wanted) + missing(wanted, self))
    }
    /// The SET statement that brings a connection with this profile to the one that is `wanted`; `None` if there is nothing to set.
    pub fn set_statement(&self, wanted: &Self, server: &dyn Server) -> Option<String> {
        let is_character_set = |name: &str| CHARACTER_SETS.contains(&name);
        let undone = self.variables.iter().filter(|(name, _)| wanted.get(name).is_none());
        let (character_sets, others): (Vec<_>, Vec<_>) = undone.partition(|(name, _)| is_character_set(name));
        let names = self.names != wanted.names || !character_sets.is_empty();
        let mut parts = Vec::new();
        if names {
            parts.push(format!("NAMES {}", wanted.names.literal(server)));
        }
        parts.extend(others.iter().map(|(name, _)| match &**name {
            "sql_mode" if server.ignores_space() => format!("sql_mode={SQL_MODE_IGNORING_SPACE}"),
            name => format!("{name}=DEFAULT"),
        }));
        for (name, value) in &wanted.variables {
            if self.get(name) != Some(value) || names && is_character_set(name) {
                parts.push(format!("{name}={value}"));
            }
        }
        (!parts.is_empty()).then(|| format!("SET {}", parts.join(", ")))
    }
    /// The commands that bring a connection with this profile to the one that is `wanted`.
    pub fn way_to<'a>(&self, wanted: &'a Self, server: &dyn Server) -> Way<'a> {
        let schema = wanted.schema.as_deref().filter(|_| self.schema != wanted.schema);
        Way { set: self.set_statement(wanted, server), schema }
    }
    /// The SET statement that brings a connection that was reset, to this profile of a fresh login.
    pub fn login_statement(&self, server: &dyn Server) -> String {
        let mut text = format!("SET NAMES {}", self.names.literal(server));
        if server.ignores_space() {
            // MariaDB's reset forgets it.
            text.push_str(&format!(", sql_mode={SQL_MODE_IGNORING_SPACE}"));
        }
        text
    }
}

/// The way from one profile to another.
pub struct Way<'a> {
    /// A SET statement.
    pub set: Option<String>,
    /// The schema to enter after it.
    pub schema: Option<&'a str>,
}

impl Way<'_> {
    /// Its commands, in order.
    pub fn requests(&self) -> Vec<Request<'_>> {
        let set = self.set.iter().map(|set| (Command::COM_QUERY, set.as_bytes()));
        set.chain(self.schema.map(|schema| (Command::COM_INIT_DB, schema.as_bytes()))).collect()
    }
}

/// A connection a session asks for.
#[derive(Clone)]
pub struct Want {
    /// Login.
    pub identity: Arc<Identity>,
    /// State.
    pub profile: Arc<Profile>,
    /// The state that the next statement leads to: a connection that has it already does as well.
    pub ahead: Option<Arc<Profile>>,
    /// The slot the session used last. Its connection is preferred: the threads at both ends know each other's processor.
    pub last: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A server that knows what its number says: 8 for MySQL 8, 108 for one whose client ignores space.
    struct Fake(u16);

    impl Server for Fake {
        fn knows_collation(&self, id: u16) -> bool {
            id < 255 || self.0 % 100 == 8
        }
        fn ignores_space(&self) -> bool {
            self.0 > 100
        }
    }

    fn profile(schema: Option<&str>, variables: &[(&str, &str)]) -> Profile {
        let mut profile = Profile::login(schema, 45);
        variables.iter().for_each(|(name, value)| profile.set(name, value));
        profile
    }

    #[test]
    fn distance_grows_with_what_differs_and_a_schema_stays() {
        let plain = profile(None, &[]);
        let set = profile(Some("a"), &[("time_zone", "'x'")]);
        assert_eq!(plain.distance(&plain), Some(0));
        assert_eq!(plain.distance(&set), Some(2));
        assert_eq!(set.distance(&profile(None, &[("time_zone", "'x'")])), None);
        assert_eq!(set.distance(&profile(Some("b"), &[("time_zone", "'y'")])), Some(3));
    }

    #[test]
    fn what_is_not_wanted_goes_back_to_its_default() {
        let have = profile(None, &[("sql_mode", "''"), ("time_zone", "'x'")]);
        let want = profile(None, &[("sql_mode", "'ANSI'"), ("wait_timeout", "5")]);
        let set = have.set_statement(&want, &Fake(8)).unwrap();
        assert_eq!(set, "SET time_zone=DEFAULT, sql_mode='ANSI', wait_timeout=5");
        assert_eq!(want.set_statement(&want, &Fake(8)), None);
    }

    #[test]
    fn a_variable_that_has_two_names_is_one() {
        let mut set = profile(None, &[("tmp_table_size", "1"), ("tmp_memory_table_size", "2")]);
        assert_eq!(set, profile(None, &[("tmp_memory_table_size", "2")]));
        set.unset("tmp_table_size");
        assert_eq!(set, profile(None, &[]));
    }

    #[test]
    fn names_come_first_and_what_overrides_them_after() {
        let plain = profile(None, &[]);
        let mut set = plain.clone();
        set.set("character_set_results", "utf8");
        set.set_names("latin1");
        set.set("character_set_results", "NULL");
        set.set("character_set_connection", "latin2");
        set.set("collation_connection", "'latin2_bin'");
        let there = plain.set_statement(&set, &Fake(8)).unwrap();
        assert_eq!(there, "SET NAMES latin1, character_set_results=NULL, collation_connection='latin2_bin'");
        let back = set.set_statement(&plain, &Fake(8)).unwrap();
        assert_eq!(back, "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci");
        set.set_names("latin1");
        assert_eq!(set.set_count(), 0);
    }

    #[test]
    fn a_collation_that_a_server_lacks_is_its_default_as_in_its_own_handshake() {
        for (id, known, text) in [
            (255, 8, "utf8mb4 COLLATE utf8mb4_0900_ai_ci"),
            (303, 8, "utf8mb4 COLLATE utf8mb4_ja_0900_as_cs"),
            (255, 10, "DEFAULT"),
            (63, 10, "binary COLLATE binary"),
            (60_000, 8, "DEFAULT"),
        ] {
            let statement = Profile::login(None, id).login_statement(&Fake(known));
            assert_eq!(statement, format!("SET NAMES {text}"), "{id}");
        }
        assert_eq!(Profile::login(None, 255).login_collation(), Some(255));
        assert_eq!(Profile::login(None, 303).login_collation(), None);
    }

    #[test]
    fn a_login_that_ignores_space_has_it_again() {
        let set = profile(None, &[("sql_mode", "''")]);
        let mode = "sql_mode=CONCAT(@@GLOBAL.sql_mode,',IGNORE_SPACE')";
        let back = set.set_statement(&profile(None, &[]), &Fake(108)).unwrap();
        assert_eq!(back, format!("SET {mode}"));
        let fresh = profile(None, &[]).login_statement(&Fake(108));
        assert_eq!(fresh, format!("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci, {mode}"));
    }

    #[test]
    fn what_a_client_has_after_its_reset_is_its_servers_matter() {
        let used = profile(Some("s"), &[("sql_mode", "''"), ("character_set_results", "NULL")]);
        let mysql = used.as_reset_by_client(45, false, true);
        assert_eq!((mysql.schema.as_deref(), mysql.set_count()), (Some("s"), 0));
        assert_eq!(mysql.login_statement(&Fake(8)), "SET NAMES DEFAULT");
        let mariadb = used.as_reset_by_client(45, true, true);
        assert_eq!(mariadb.get("sql_mode"), Some("@@GLOBAL.sql_mode"));
        assert_eq!(used.as_reset_by_client(45, true, false), Profile::login(Some("s"), 45));
        let left = used.after_refused_change();
        assert_eq!((left.get("sql_mode"), left.get("character_set_results")), (None, Some("NULL")));
    }

    #[test]
    fn what_a_text_means_can_be_had_for_a_moment() {
        let mut here =
            profile(Some("here"), &[("autocommit", "'OFF'"), ("sql_mode", "''"), ("time_zone", "'x'")]);
        let there = profile(Some("there"), &[("sql_mode", "'ANSI'"), ("wait_timeout", "5")]).of_texts();
        assert_eq!(there, profile(Some("there"), &[("sql_mode", "'ANSI'")]));
        let moment = here.with_texts_of(&there);
        assert_eq!(moment.schema.as_deref(), Some("there"));
        assert_eq!(here.set_statement(&moment, &Fake(8)).unwrap(), "SET sql_mode='ANSI'");
        assert_eq!(moment.set_statement(&here, &Fake(8)).unwrap(), "SET sql_mode=''");
        here.set_names("latin1");
        here.set("character_set_results", "NULL");
        let moment = here.with_texts_of(&there);
        assert!(
            moment
                .set_statement(&here, &Fake(8))
                .unwrap()
                .starts_with("SET NAMES latin1, character_set_results=NULL")
        );
    }

    /// What a server makes of a SET statement: values by name, those of character sets after NAMES.
    fn apply(state: &mut Profile, statement: &str) {
        for part in statement.trim_start_matches("SET ").split(", ") {
            match part.split_once('=') {
                None if part.ends_with("utf8mb4_general_ci") => {
                    state.set_names("x");
                    state.names = Names::Login(45);
                }
                None => state.set_names(part.trim_start_matches("NAMES ")),
                Some((name, "DEFAULT")) => state.unset(name),
                Some((name, value)) => state.set(name, value),
            }
        }
    }

    fn any_profile() -> impl Strategy<Value = Profile> {
        let name = proptest::sample::select(
            &[
                "autocommit",
                "sql_mode",
                "time_zone",
                "character_set_results",
                "collation_connection",
                "character_set_connection",
            ][..],
        );
        let value = proptest::sample::select(&["'a'", "'b'", "1"][..]);
        let names = proptest::option::of(proptest::sample::select(&["latin1", "gbk"][..]));
        (proptest::collection::vec((name, value), 0..5), names).prop_map(|(set, names)| {
            let mut profile = Profile::login(None, 45);
            names.into_iter().for_each(|names| profile.set_names(names));
            set.into_iter().for_each(|(name, value)| profile.set(name, value));
            profile
        })
    }

    proptest! {
        #[test]
        fn the_statement_leads_from_any_profile_to_any_other(have in any_profile(), want in any_profile()) {
            let mut state = have.clone();
            if let Some(statement) = have.set_statement(&want, &Fake(8)) {
                apply(&mut state, &statement);
            }
            prop_assert_eq!(&state, &want);
            prop_assert_eq!(have.distance(&want) == Some(0), have == want);
        }
    }

    #[test]
    fn only_capabilities_that_the_server_notices_count() {
        let noticed = CapabilityFlags::CLIENT_LOCAL_FILES | CapabilityFlags::CLIENT_FOUND_ROWS;
        let translated = CapabilityFlags::CLIENT_DEPRECATE_EOF | CapabilityFlags::CLIENT_SSL;
        assert_eq!(Identity::new("u", Secret::Empty, noticed | translated).class, noticed);
    }
}
