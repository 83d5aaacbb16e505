//! From rows of the tables to what is evaluated.

use super::fast::FastRouting;
use super::memo::Memo;
use super::pattern::{Address, Pattern, Replacement};
use super::{Rule, RuleSet};
use admin::rows::{QueryRuleRow, QueryRulesConfig};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

impl RuleSet {
    /// The active rules in the order of their ids. Also what was left out, and why: rules that cannot be evaluated.
    pub fn compile(config: QueryRulesConfig) -> (Self, Vec<String>) {
        let mut active: Vec<_> = config.rules.into_iter().filter(|row| row.active).collect();
        active.sort_by_key(|row| row.rule_id);
        let (mut rules, mut ignored) = (Vec::new(), Vec::new());
        for row in active {
            let id = row.rule_id;
            let unread = unread(&row);
            ignored.extend(unread.iter().map(|what| format!("mysql_query_rules: rule_id {id}: {what}")));
            match compile(row) {
                Ok(rule) => rules.push(rule),
                Err(reason) => ignored.push(format!("mysql_query_rules: rule_id {id} is left out: {reason}")),
            }
        }
        let reads_digest = rules.iter().any(|rule| rule.digest.is_some() || rule.match_digest.is_some());
        let fast = FastRouting::new(config.fast_routing);
        let memo = match rules.is_empty() && fast.is_empty() {
            true => Memo::default(),
            false => Memo::new(
                rules.iter().any(|rule| rule.client.is_some()),
                rules.iter().any(|rule| rule.proxy.is_some() || rule.row.proxy_port.is_some()),
            ),
        };
        (Self { rules, fast, reads_digest, memo, scratches: Mutex::default() }, ignored)
    }
}

/// What a rule says that nothing comes of, though the rest of it is followed.
fn unread(row: &QueryRuleRow) -> Vec<String> {
    let modifiers = row.re_modifiers.as_deref().unwrap_or_default().split(',').map(str::trim);
    let unknown = modifiers
        .filter(|word| !word.is_empty() && !MODIFIERS.iter().any(|known| known.eq_ignore_ascii_case(word)));
    let mut unread: Vec<String> = unknown
        .map(|word| format!("re_modifiers: '{}' is neither CASELESS nor GLOBAL", word.escape_debug()))
        .collect();
    if !row.attributes.is_empty() && !admin::rows::is_json_object(&row.attributes) {
        unread.push("attributes: it is no JSON object".to_owned());
    }
    unread
}

const MODIFIERS: [&str; 2] = ["CASELESS", "GLOBAL"];

/// Why a rule cannot be evaluated: the column, and what is wrong with it.
fn compile(row: QueryRuleRow) -> Result<Rule, String> {
    let modifiers = row.re_modifiers.as_deref().unwrap_or_default();
    let has = |name: &str| modifiers.split(',').any(|modifier| modifier.trim().eq_ignore_ascii_case(name));
    let (caseless, global) = (has("CASELESS"), has("GLOBAL"));
    let pattern = |column: &str, text: &Option<String>| {
        let compiled = text.as_deref().map(|text| Pattern::new(text, caseless)).transpose();
        compiled.map_err(|reason| format!("{column}: {reason}"))
    };
    let digest = row.digest.as_deref().map(|text| {
        crate::digest::parse(text).ok_or_else(|| format!("digest: '{text}' is not 0x and hexadecimal digits"))
    });
    let proxy = row
        .proxy_addr
        .as_deref()
        .map(|text| text.parse().map_err(|_| format!("proxy_addr: '{text}' is not an address")));
    Ok(Rule {
        client: row.client_addr.as_deref().map(Address::new),
        proxy: proxy.transpose()?,
        digest: digest.transpose()?,
        match_digest: pattern("match_digest", &row.match_digest)?,
        match_pattern: pattern("match_pattern", &row.match_pattern)?,
        replacement: row.replace_pattern.as_deref().map(|text| Replacement::new(text, global)),
        error: row.error_msg.as_deref().map(Arc::from),
        ok: row.ok_msg.as_deref().map(Arc::from),
        hits: AtomicU64::new(0),
        row,
    })
}
