//! What a session has set, and the way from there to what another has set.

use super::identity::Identity;
use super::names::{Names, Server};
use super::processor::Processor;
use super::server_pool::SlotId;
use super::variables::{CHARACTER_SETS, MISTAKEN_DEFAULT, OF_TEXTS, twin};
use crate::quoting::{Characters, Quoting};
use std::sync::Arc;
use std::time::Instant;
use wire::Command;
use wire::SqlMode;
use wire::WireError;
use wire::backend::{Backend, NEW_SESSION, OWN_ANSWER, Request};

/// The sql_mode of a login with CLIENT_IGNORE_SPACE.
const SQL_MODE_IGNORING_SPACE: &str = "CONCAT(@@GLOBAL.sql_mode,',IGNORE_SPACE')";

/// What a session has set on its connection and what can be set again on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Default schema.
    pub schema: Option<Arc<str>>,
    names: Names,
    // Names and values as SET takes them, in the order of the names. Those of character sets differ from `names`.
    variables: Vec<(Arc<str>, Arc<str>)>,
    // What follows from these for the reading of quotes.
    sql_mode: Option<SqlMode>,
    characters: Characters,
}

impl Profile {
    /// That of a session that has logged in and set nothing yet.
    pub fn login(schema: Option<&str>, collation: u16) -> Self {
        let schema = schema.filter(|name| !name.is_empty()).map(Arc::from);
        let names = Names::Login(collation);
        let characters = names.characters();
        Self { schema, names, variables: Vec::new(), sql_mode: None, characters }
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
        left.note_quoting();
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
        changed.note_quoting();
        changed
    }
    /// How quotes are read in its statements, where a session that has not set its sql_mode has `default`.
    pub fn quoting(&self, default: SqlMode) -> Quoting {
        let SqlMode { ansi_quotes, no_backslash_escapes } = self.sql_mode.unwrap_or(default);
        Quoting { plain_backslash: no_backslash_escapes, ansi_quotes, characters: self.characters }
    }
    fn note_quoting(&mut self) {
        self.sql_mode = self.get("sql_mode").filter(|mode| mode.starts_with('\'')).map(SqlMode::read);
        self.characters = match self.get("character_set_client") {
            Some(name) => Characters::of(name.trim_matches('\'')),
            None => self.names.characters(),
        };
    }
    /// The collation id of a login that needs no SET NAMES any more; `None` where the handshake cannot say it.
    pub fn login_collation(&self) -> Option<u16> {
        match self.names {
            Names::Login(id) if id <= u8::MAX.into() => Some(id),
            _ => None,
        }
    }
    /// The collation id of texts in results, where nothing but the login has chosen it.
    pub fn results_collation(&self) -> Option<u16> {
        let chosen = CHARACTER_SETS.iter().any(|name| self.get(name).is_some());
        self.login_collation().filter(|_| !chosen)
    }
    /// SET NAMES, which overrides what was set of character sets before.
    pub fn set_names(&mut self, text: &str) {
        self.names = Names::Set(Arc::from(text));
        self.variables.retain(|(name, _)| !CHARACTER_SETS.contains(&&**name));
        self.note_quoting();
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
        self.note_quoting();
    }
    /// A variable has the value of a login again.
    pub fn unset(&mut self, name: &str) {
        let names = [Some(name), twin(name)];
        self.variables.retain(|(known, _)| !names.contains(&Some(&**known)));
        self.note_quoting();
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
            name if MISTAKEN_DEFAULT.contains(&name) => format!("{name}=@@GLOBAL.{name}"),
            name => format!("{}=DEFAULT", name_on(name, server)),
        }));
        for (name, value) in &wanted.variables {
            if self.get(name) != Some(value) || names && is_character_set(name) {
                parts.push(format!("{}={value}", name_on(name, server)));
            }
        }
        (!parts.is_empty()).then(|| format!("SET {}", parts.join(", ")))
    }
    /// The commands that bring a connection with this profile to the one that is `wanted`.
    pub fn way_to<'a>(&self, wanted: &'a Self, server: &dyn Server) -> Way<'a> {
        let schema = wanted.schema.as_deref().filter(|_| self.schema != wanted.schema);
        Way { set: self.set_statement(wanted, server), schema }
    }
    /// Has a connection that is as new begin with a statement of the configuration, which is not to change what the login said.
    pub fn begin(&self, sql: &str, backend: &mut Backend, deadline: Instant) -> Result<(), WireError> {
        backend.query(sql, OWN_ANSWER, deadline)?;
        let login = self.login_statement(backend);
        backend.query(&login, OWN_ANSWER, deadline)?;
        if backend.tracking.is_some() {
            let new = backend.query(NEW_SESSION, OWN_ANSWER, deadline)?;
            backend.note_new_session(&new);
        }
        Ok(())
    }
    /// Whether something was set that is not in `wanted`.
    pub fn sets_beyond(&self, wanted: &Self) -> bool {
        self.variables.iter().any(|(name, _)| wanted.get(name).is_none())
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

/// The name of a variable on a server, where it may have come from one that has another for it.
fn name_on<'a>(name: &'a str, server: &dyn Server) -> &'a str {
    match (name, server.has_transaction_names()) {
        ("tx_isolation", true)
        | ("tx_read_only", true)
        | ("transaction_isolation", false)
        | ("transaction_read_only", false) => twin(name).unwrap_or(name),
        _ => name,
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
    pub last: Option<SlotId>,
    /// Where its thread runs. A connection whose packets arrive there is preferred.
    pub processor: Processor,
    /// Who asks: what that session may have left itself on a connection may stay there.
    pub session: u64,
}

#[cfg(test)]
mod tests;
