//! Query rules: what is done with a statement, and where it goes. Pure: no IO, no clock.

mod compile;
mod fast;
mod memo;
mod pattern;
#[cfg(test)]
mod tests;

use crate::digest::Digest;
use admin::Value;
use admin::rows::QueryRuleRow;
use fast::FastRouting;
use memo::Memo;
use parking_lot::Mutex;
use pattern::{Address, Pattern, Replacement, Scratch, TooLong};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What rules look at.
pub struct Query<'a> {
    /// Who sent it.
    pub user: &'a str,
    /// The session's schema; empty without one.
    pub schema: &'a str,
    /// The client's address.
    pub client: &'a str,
    /// The proxy's address and port that the client is connected to.
    pub proxy: Option<SocketAddr>,
    /// The flag that evaluation begins with.
    pub flag: u32,
    /// The statement, comments included.
    pub text: &'a [u8],
    /// Its digest, if it was made.
    pub digest: Option<&'a Arc<Digest>>,
}

/// What the rules that matched say. Where several say something of one thing, the last one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Hostgroup to go to, instead of the user's.
    pub hostgroup: Option<u32>,
    /// An error to answer with.
    pub error: Option<Arc<str>>,
    /// Info text of an OK to answer with.
    pub ok: Option<Arc<str>>,
    /// Longest time the statement may run, in milliseconds.
    pub timeout: Option<u32>,
    /// How long to hold it back, in milliseconds.
    pub delay: Option<u32>,
    /// The text to send instead.
    pub text: Option<Vec<u8>>,
    /// What becomes of the session's connection.
    pub multiplex: Option<Multiplex>,
    /// The flag of the session's next statement.
    pub next_flag: Option<u32>,
}

/// The column `multiplex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplex {
    /// 0: the session keeps its connection from here on.
    Off,
    /// 1: it no longer does.
    On,
    /// 2: user variables in this statement do not make it keep the connection.
    IgnoreVariables,
}

/// One active rule.
struct Rule {
    row: QueryRuleRow,
    client: Option<Address>,
    proxy: Option<IpAddr>,
    digest: Option<u64>,
    match_digest: Option<Pattern>,
    match_pattern: Option<Pattern>,
    replacement: Option<Replacement>,
    error: Option<Arc<str>>,
    ok: Option<Arc<str>>,
    hits: AtomicU64,
}

/// Everything LOAD MYSQL QUERY RULES puts in force.
#[derive(Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    fast: FastRouting,
    reads_digest: bool,
    memo: Memo,
    scratches: Mutex<Vec<Scratch>>,
}

/// Most memories for searching that are kept.
const SCRATCHES: usize = 64;

impl RuleSet {
    /// Whether there is nothing to evaluate.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.fast.is_empty()
    }
    /// Whether a rule looks at the digest of statements.
    pub fn reads_digest(&self) -> bool {
        self.reads_digest
    }
    /// Judges one statement, and counts the rules that matched.
    pub fn judge(&self, query: &Query<'_>) -> Verdict {
        if let Some(known) = self.memo.find(query) {
            known.matched.iter().filter_map(|&at| self.rules.get(at)).for_each(Rule::count);
            return known.verdict.clone();
        }
        let Evaluation { verdict, matched, of_text } = self.evaluate(query);
        if !of_text {
            self.memo.keep(query, &verdict, matched);
        }
        verdict
    }
    fn evaluate(&self, query: &Query<'_>) -> Evaluation {
        let mut verdict = Verdict::default();
        let (mut matched, mut of_text) = (Vec::new(), false);
        let mut text = Cow::Borrowed(query.text);
        let mut flag = query.flag;
        let mut scratch = self.scratches.lock().pop().unwrap_or_default();
        for (at, rule) in self.rules.iter().enumerate() {
            if rule.row.flag_in != flag || !rule.may_match(query, &mut scratch) {
                continue;
            }
            of_text |= rule.match_pattern.is_some();
            if !rule.fits(&rule.match_pattern, &text, &mut scratch) {
                continue;
            }
            rule.count();
            matched.push(at);
            rule.apply(&mut verdict);
            if let (Some(pattern), Some(replacement)) = (&rule.match_pattern, &rule.replacement) {
                match pattern.replace(&text, replacement) {
                    Ok(Some(replaced)) => text = Cow::Owned(replaced),
                    Ok(None) => {}
                    Err(TooLong) => {
                        verdict.error = Some(rule.too_long());
                        break;
                    }
                }
            }
            flag = rule.row.flag_out.unwrap_or(flag);
            if rule.row.apply {
                break;
            }
        }
        let mut scratches = self.scratches.lock();
        if scratches.len() < SCRATCHES {
            scratches.push(scratch);
        }
        drop(scratches);
        if verdict.hostgroup.is_none() {
            verdict.hostgroup = self.fast.find(query.user, query.schema, flag);
        }
        if let Cow::Owned(text) = text {
            verdict.text = Some(text);
        }
        Evaluation { verdict, matched, of_text }
    }
    /// The rules in force, as rows of their table.
    pub fn rows(&self) -> impl Iterator<Item = &QueryRuleRow> {
        self.rules.iter().map(|rule| &rule.row)
    }
    /// Rows of runtime_mysql_query_rules_fast_routing.
    pub fn fast_routing_rows(&self) -> Vec<Vec<Value>> {
        self.fast.rows()
    }
    /// Rows of stats_mysql_query_rules.
    pub fn hits(&self) -> Vec<Vec<Value>> {
        let row = |rule: &Rule| {
            let hits = i64::try_from(rule.hits.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
            vec![Value::Int(rule.row.rule_id), Value::Int(hits)]
        };
        self.rules.iter().map(row).collect()
    }
}

/// What evaluating the rules has come to.
struct Evaluation {
    verdict: Verdict,
    /// Places of the rules that matched.
    matched: Vec<usize>,
    /// A rule has looked at the statement's own text, values included.
    of_text: bool,
}

impl Rule {
    fn count(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }
    /// Whether everything that the rule names fits, but for `match_pattern`. The cheap conditions come first.
    fn may_match(&self, query: &Query<'_>, scratch: &mut Scratch) -> bool {
        let row = &self.row;
        let named = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        let address = query.proxy.map(|proxy| proxy.ip());
        let port = query.proxy.map(|proxy| proxy.port());
        let digest_text = query.digest.map_or(&[][..], |digest| &digest.text);
        named(&row.username, query.user)
            && named(&row.schemaname, query.schema)
            && self.client.as_ref().is_none_or(|wanted| wanted.matches(query.client))
            && self.proxy.is_none_or(|wanted| address == Some(wanted))
            && row.proxy_port.is_none_or(|wanted| port == Some(wanted))
            && self.digest.is_none_or(|wanted| query.digest.is_some_and(|digest| digest.number == wanted))
            && self.fits(&self.match_digest, digest_text, scratch)
    }
    fn fits(&self, pattern: &Option<Pattern>, text: &[u8], scratch: &mut Scratch) -> bool {
        pattern.as_ref().is_none_or(|pattern| pattern.matches(text, scratch) != self.row.negate_match_pattern)
    }
    /// The error for a statement that this rule would make longer than any may be.
    fn too_long(&self) -> Arc<str> {
        format!("query rule {} would make the statement longer than 16 MiB", self.row.rule_id).into()
    }
    fn apply(&self, verdict: &mut Verdict) {
        let row = &self.row;
        verdict.hostgroup = row.destination_hostgroup.or(verdict.hostgroup);
        verdict.timeout = row.timeout.or(verdict.timeout);
        verdict.delay = row.delay.or(verdict.delay);
        verdict.next_flag = row.next_query_flag_in.or(verdict.next_flag);
        if self.error.is_some() {
            verdict.error.clone_from(&self.error);
        }
        if self.ok.is_some() {
            verdict.ok.clone_from(&self.ok);
        }
        let multiplex = match (row.multiplex, row.sticky_conn) {
            (Some(0), _) | (None, Some(true)) => Some(Multiplex::Off),
            (Some(1), _) | (None, Some(false)) => Some(Multiplex::On),
            (Some(_), _) => Some(Multiplex::IgnoreVariables),
            (None, None) => None,
        };
        verdict.multiplex = multiplex.or(verdict.multiplex);
    }
}
