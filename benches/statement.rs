//! What digests, query rules and counting cost for one short statement: `cargo bench --bench statement`.

use admin::rows::{QueryRuleRow, QueryRulesConfig};
use divan::{Bencher, black_box};
use pointsman::digest::statistics::{Key, Sample, Statistics};
use pointsman::digest::{self, Digest, Options};
use pointsman::quoting::Quoting;
use pointsman::rules::{Query, RuleSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SQL: &[u8] = b"SELECT c FROM sbtest1 WHERE id=50123";
const DIGEST: &[u8] = b"SELECT c FROM sbtest1 WHERE id=?";

fn main() {
    divan::main();
}

/// Text and number of the digest.
#[divan::bench]
fn digest(bencher: Bencher<'_, '_>) {
    let (options, mut out) = (Options::default(), Vec::new());
    bencher.bench_local(|| {
        digest::write(black_box(SQL), Quoting::default(), &options, &mut out);
        digest::hash(&out)
    });
}

/// Counting one execution of a known digest; with two threads, as two sessions that run the same statement.
#[divan::bench(threads = [1, 2])]
fn count(bencher: Bencher<'_, '_>) {
    let statistics = Statistics::default();
    let ended = Instant::now();
    bencher.bench(|| {
        let key = Key { hostgroup: 1, schema: "sbtest", user: "app", client: "", digest: 0xABCD };
        let sample = Sample { ended, time: Duration::from_micros(80), rows_affected: 0, rows_sent: 1 };
        statistics.count(black_box(&key), DIGEST, &sample);
    });
}

fn judge(bencher: Bencher<'_, '_>, patterns: &[&str]) {
    let rule = |(rule_id, pattern): (i64, &&str)| QueryRuleRow {
        active: true,
        match_digest: Some((*pattern).to_owned()),
        destination_hostgroup: Some(1),
        apply: true,
        ..QueryRuleRow::new(rule_id)
    };
    let rules = (1..).zip(patterns).map(rule).collect();
    let digest = Arc::new(Digest { number: 0xABCD, text: DIGEST.into() });
    let (rules, _) = RuleSet::compile(QueryRulesConfig { rules, ..Default::default() });
    bencher.bench_local(|| {
        rules.judge(black_box(&Query {
            user: "app",
            schema: "sbtest",
            client: "127.0.0.1",
            proxy: None,
            flag: 0,
            text: SQL,
            digest: Some(&digest),
        }))
    });
}

/// A read/write split of two rules, of which the second matches.
#[divan::bench]
fn two_rules(bencher: Bencher<'_, '_>) {
    judge(bencher, &["^SELECT.*FOR UPDATE$", "^SELECT"]);
}

/// One rule with a look-ahead.
#[divan::bench]
fn look_ahead(bencher: Bencher<'_, '_>) {
    judge(bencher, &["^SELECT(?!.*FOR UPDATE)"]);
}
