//! What was found of statements, kept for those that differ from them in their values alone: nearly all that a program sends.

use super::classify::Statement;
use crate::digest::Digest;
use crate::quoting::Quoting;
use crate::template::{Template, key};
use arc_swap::ArcSwap;
use std::sync::Arc;

/// Statements with equal beginnings are in one set.
const SETS: usize = 512;
/// Most statements of a set.
const WAYS: usize = 8;
/// Longest statement that is kept, in bytes. Longer ones that differ from it in their values are found by it all the same.
const LONGEST: usize = 2048;
/// Into a set that is full every so many of the statements come that are not there.
const SELDOM: usize = 16;

/// What statements were read with: with something else other things are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Version of the variables.
    pub version: u64,
    /// How quotes are read.
    pub quoting: Quoting,
    /// A digest is made.
    pub digests: bool,
    /// As many bytes are read for the digest: that of a longer statement is of its beginning.
    pub longest: usize,
}

/// What was found of a statement.
pub struct Known {
    /// How.
    pub reading: Reading,
    /// The statement without its values.
    pub template: Template,
    /// What it does. It must not be [of its values](Statement::of_values).
    pub statement: Statement,
    /// Its digest, if one was made.
    pub digest: Option<Arc<Digest>>,
}

/// Read without a lock: sessions on all processors read the same few.
type Set = ArcSwap<Vec<Arc<Known>>>;

/// The statements that are known, for all sessions. Memory is bounded.
pub struct KnownStatements {
    sets: Box<[Set]>,
}

impl Default for KnownStatements {
    fn default() -> Self {
        Self { sets: (0..SETS).map(|_| Set::default()).collect() }
    }
}

impl KnownStatements {
    /// What was found of a statement that differs from this one in its values alone. `recent`: the digest that the session has used
    /// last ([`again`]).
    pub fn find(
        &self,
        sql: &[u8],
        reading: Reading,
        recent: &mut Option<Arc<Digest>>,
    ) -> Option<(Statement, Option<Arc<Digest>>)> {
        if sql.len() > reading.longest {
            return None;
        }
        let set = self.set(sql)?.load();
        let fits =
            |known: &&Arc<Known>| known.reading == reading && known.template.fits(sql, reading.quoting);
        let known = set.iter().find(fits)?;
        Some((known.statement.clone(), again(known.digest.as_ref(), recent)))
    }
    /// Whether a statement that was not found is to be kept: where there is no room for all, a few will do, so that those which
    /// never come again cost little.
    pub fn wants(&self, sql: &[u8], reading: Reading) -> bool {
        let is_full = || self.set(sql).is_some_and(|set| set.load().len() >= WAYS);
        sql.len() <= LONGEST.min(reading.longest) && (!is_full() || fastrand::usize(..SELDOM) == 0)
    }
    /// Keeps what was found of a statement.
    pub fn keep(&self, sql: &[u8], known: Known) {
        let Some(set) = self.set(sql) else { return };
        let known = Arc::new(known);
        set.rcu(|set| {
            let current = |other: &&Arc<Known>| other.reading.version == known.reading.version;
            let mut set: Vec<_> = set.iter().filter(current).cloned().collect();
            if set.iter().any(|other| other.reading == known.reading && other.template == known.template) {
                // Another session was faster.
                return set;
            }
            if set.len() >= WAYS {
                let place = fastrand::usize(..set.len());
                set.swap_remove(place);
            }
            set.push(Arc::clone(&known));
            set
        });
    }
    fn set(&self, sql: &[u8]) -> Option<&Set> {
        self.sets.get((key(sql) >> 32) as usize % SETS)
    }
}

/// A digest for one more use: the session's `recent` one, if it is that. Sessions on all processors use the same few, so that each
/// new count of references would take its memory from another processor.
pub fn again(digest: Option<&Arc<Digest>>, recent: &mut Option<Arc<Digest>>) -> Option<Arc<Digest>> {
    let digest = digest?;
    let same = recent.take_if(|recent| Arc::ptr_eq(recent, digest));
    Some(same.unwrap_or_else(|| Arc::clone(digest)))
}

#[cfg(test)]
mod tests;
