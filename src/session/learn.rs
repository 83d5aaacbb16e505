//! What a SET statement has changed: as the server reports it, or else as the text says.

use super::classify::Effect;
use super::hold::Reason;
use super::settings::{Assignment, Setting};
use super::state::Session;
use crate::pool::{CHARACTER_SETS, is_restorable, literal};
use std::sync::Arc;
use wire::tracker::{Notices, Outcome};

/// Most variables that are remembered for one session, and the longest value in bytes; beyond, its connection stays with it.
const MAX_VARIABLES: usize = 32;
const MAX_VALUE: usize = 2048;
/// How the variables begin that say what a server reports.
const SESSION_TRACK: &str = "session_track_";

/// Variables that are LAST_INSERT_ID().
const INSERT_ID: [&str; 2] = ["last_insert_id", "identity"];

/// Has a client be told what it asks for by the `session_track_*` variables that its statement sets: the answer to that goes by
/// them already. Returns what was in force before, for when the statement fails; `None` if it sets none of them.
pub fn heed(notices: &mut Notices, effect: &Effect) -> Option<Notices> {
    let Effect::Set(setting) = effect else { return None };
    let mut before = None;
    for assignment in &setting.assignments {
        if let Assignment::Variable(name, _) = assignment
            && name.starts_with(SESSION_TRACK)
        {
            before.get_or_insert_with(|| notices.clone());
            notices.set_by_client(name);
        }
    }
    before
}

impl Session<'_> {
    /// Takes note of a SET statement that has succeeded.
    pub(super) fn learn(&mut self, setting: &Setting, outcome: &Outcome) {
        let Some(lease) = &mut self.lease else { return };
        let tracked = lease.backend().tracking.is_some();
        let reported = &outcome.changes.variables;
        let value_of = |name: &str| {
            reported.iter().rev().find(|(known, _)| known == name).map(|(_, value)| literal(name, value))
        };
        let mut seen: Vec<&str> = Vec::new();
        for assignment in &setting.assignments {
            match assignment {
                Assignment::Names(text) => {
                    Arc::make_mut(&mut self.want.profile).set_names(text);
                    seen.extend(CHARACTER_SETS);
                }
                Assignment::CharacterSet => {
                    self.ask_for_names();
                    seen.extend(CHARACTER_SETS);
                }
                Assignment::Variable(name, constant) => {
                    let value = if tracked { value_of(name).flatten() } else { constant.clone() };
                    self.remember(name, value);
                    if INSERT_ID.contains(&name.as_str()) {
                        self.hold.note_unknown_insert_id();
                    }
                    seen.push(name);
                }
                Assignment::NextTransaction => self.hold.add(Reason::NextTransaction),
                Assignment::Transaction(_) if !tracked => self.hold.add_variable("transaction_isolation"),
                Assignment::Transaction(_) => {}
            }
        }
        for (name, value) in reported.iter().filter(|(name, _)| !seen.contains(&name.as_str())) {
            self.remember(name, literal(name, value));
        }
        self.profile_in_force();
    }
    /// Takes note of what decides how quotes are read, where something else than a SET statement has set it. The session keeps its
    /// connection, so nothing need be remembered for another.
    pub(super) fn learn_quoting(&mut self, outcome: &Outcome) {
        let decides = |name: &str| matches!(name, "sql_mode" | "character_set_client");
        for (name, value) in outcome.changes.variables.iter().filter(|(name, _)| decides(name)) {
            self.remember(name, literal(name, value));
        }
        self.profile_in_force();
    }
    /// Remembers the value of a variable, or keeps the connection if that cannot be had elsewhere.
    fn remember(&mut self, name: &str, value: Option<String>) {
        if self.lease.as_ref().is_some_and(|lease| lease.ignores(name)) {
            return;
        }
        if name.starts_with(SESSION_TRACK) {
            if let Some(notices) = self.lease.as_mut().and_then(|lease| lease.backend().tracking.as_mut()) {
                notices.set_by_client(name);
            }
            return self.hold.add(Reason::SessionTrack);
        }
        let profile = &self.want.profile;
        let Some(value) = value.filter(|value| value.len() <= MAX_VALUE && is_restorable(name)) else {
            return self.hold.add_variable(name);
        };
        if name == "autocommit" && value == "'ON'" && profile.get(name).is_none() && self.expects_autocommit()
        {
            return;
        }
        let profile = &self.want.profile;
        match value.as_str() {
            "DEFAULT" => Arc::make_mut(&mut self.want.profile).unset(name),
            _ if profile.set_count() >= MAX_VARIABLES && profile.get(name).is_none() => {
                self.hold.add_variable(name)
            }
            _ => Arc::make_mut(&mut self.want.profile).set(name, &value),
        }
    }
    /// SET CHARACTER SET takes the collation of the schema, which no report tells: the server is asked.
    fn ask_for_names(&mut self) {
        let rows = self.ask_here("SELECT @@character_set_client, @@collation_connection");
        let texts = rows.ok().and_then(|rows| {
            let row = rows.into_iter().next()?;
            let texts = row.into_iter().map(|value| String::from_utf8(value?).ok());
            texts.collect::<Option<Vec<_>>>()
        });
        match texts.as_deref() {
            Some([names, collation]) => {
                let profile = Arc::make_mut(&mut self.want.profile);
                profile.set_names(names);
                profile.set("collation_connection", &format!("'{collation}'"));
            }
            _ => self.hold.add(Reason::State),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_statement_asks_to_be_told_is_heeded_in_its_own_answer() {
        let silent = Notices::new("", "0", "0", "OFF");
        for (sql, heeded) in [
            ("SET session_track_schema = ON", &["session_track_schema"][..]),
            (
                "SET sql_mode = '', @@session.session_track_system_variables = '*', session_track_state_change = 1",
                &["session_track_system_variables", "session_track_state_change"],
            ),
            ("SET time_zone = '+01:00'", &[]),
        ] {
            let mut notices = silent.clone();
            let effect =
                Setting::parse(sql.as_bytes(), crate::quoting::Quoting::default()).map(Effect::Set).unwrap();
            let before = heed(&mut notices, &effect);
            let mut expected = silent.clone();
            heeded.iter().for_each(|name| expected.set_by_client(name));
            assert_eq!(notices, expected, "{sql}");
            assert_eq!(before, (!heeded.is_empty()).then(|| silent.clone()), "{sql}");
        }
    }
}
