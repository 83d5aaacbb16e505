use super::*;
use admin::rows::{FastRoutingRow, QueryRulesConfig};

fn rule(rule_id: i64) -> QueryRuleRow {
    QueryRuleRow { active: true, ..QueryRuleRow::new(rule_id) }
}

fn set(rules: Vec<QueryRuleRow>) -> RuleSet {
    let (set, ignored) = RuleSet::compile(QueryRulesConfig { rules, ..Default::default() });
    assert_eq!(ignored, Vec::<String>::new());
    set
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn digest(text: &str) -> &'static Arc<Digest> {
    Box::leak(Box::new(Arc::new(Digest { number: 0xAB, text: text.as_bytes().into() })))
}

/// A statement of user app in schema shop.
fn query(text: &str) -> Query<'_> {
    Query {
        user: "app",
        schema: "shop",
        client: "192.168.1.20",
        proxy: Some("10.0.0.1:6033".parse().unwrap()),
        flag: 0,
        text: text.as_bytes(),
        digest: Some(digest(text)),
    }
}

fn hostgroup(set: &RuleSet, text: &str) -> Option<u32> {
    set.judge(&query(text)).hostgroup
}

fn hits(set: &RuleSet) -> Vec<(i64, i64)> {
    let pair = |row: Vec<Value>| match row[..] {
        [Value::Int(id), Value::Int(hits)] => (id, hits),
        _ => panic!("{row:?}"),
    };
    set.hits().into_iter().map(pair).collect()
}

#[test]
fn reads_and_writes_part() {
    let to = |id, pattern: &str, hostgroup| QueryRuleRow {
        match_digest: text(pattern),
        destination_hostgroup: Some(hostgroup),
        apply: true,
        ..rule(id)
    };
    let set = set(vec![to(20, "^SELECT", 2), to(10, "^SELECT.*FOR UPDATE$", 1)]);
    assert_eq!(hostgroup(&set, "select 1"), Some(2));
    assert_eq!(hostgroup(&set, "SELECT a FROM t FOR UPDATE"), Some(1));
    assert_eq!(hostgroup(&set, "UPDATE t SET a=?"), None);
    assert_eq!(hits(&set), [(10, 1), (20, 1)]);
    assert!(set.reads_digest());
}

#[test]
fn every_condition_must_hold() {
    let always = || QueryRuleRow { destination_hostgroup: Some(7), ..rule(1) };
    let cases: [(QueryRuleRow, bool); 20] = [
        (always(), true),
        (QueryRuleRow { username: text("app"), ..always() }, true),
        (QueryRuleRow { username: text("App"), ..always() }, false),
        (QueryRuleRow { schemaname: text("shop"), ..always() }, true),
        (QueryRuleRow { schemaname: text("store"), ..always() }, false),
        (QueryRuleRow { client_addr: text("192.168.1.20"), ..always() }, true),
        (QueryRuleRow { client_addr: text("192.168.1.2"), ..always() }, false),
        (QueryRuleRow { client_addr: text("192.168.%"), ..always() }, true),
        (QueryRuleRow { client_addr: text("192.%.20"), ..always() }, true),
        (QueryRuleRow { client_addr: text("192.%.9.%"), ..always() }, false),
        (QueryRuleRow { proxy_addr: text("10.0.0.1"), proxy_port: Some(6033), ..always() }, true),
        (QueryRuleRow { proxy_addr: text("10.0.0.2"), ..always() }, false),
        (QueryRuleRow { proxy_port: Some(6034), ..always() }, false),
        (QueryRuleRow { digest: text("0x00000000000000ab"), ..always() }, true),
        (QueryRuleRow { digest: text("0xAC"), ..always() }, false),
        (QueryRuleRow { flag_in: 1, ..always() }, false),
        (QueryRuleRow { match_pattern: text("from (a|b)"), ..always() }, true),
        (QueryRuleRow { match_pattern: text("from (a|b)"), re_modifiers: None, ..always() }, false),
        (QueryRuleRow { match_pattern: text("from (a|b)"), negate_match_pattern: true, ..always() }, false),
        (QueryRuleRow { match_digest: text("^UPDATE"), negate_match_pattern: true, ..always() }, true),
    ];
    for (row, matches) in cases {
        let set = set(vec![row.clone()]);
        assert_eq!(hostgroup(&set, "SELECT x FROM a"), matches.then_some(7), "{row:?}");
    }
}

#[test]
fn flags_chain_rules_and_the_last_word_counts() {
    let set = set(vec![
        QueryRuleRow { username: text("app"), flag_out: Some(5), destination_hostgroup: Some(1), ..rule(1) },
        QueryRuleRow { destination_hostgroup: Some(9), ..rule(2) },
        QueryRuleRow { flag_in: 5, timeout: Some(100), error_msg: text("a"), ..rule(3) },
        QueryRuleRow {
            flag_in: 5,
            destination_hostgroup: Some(2),
            apply: true,
            error_msg: text("b"),
            ..rule(4)
        },
        QueryRuleRow { flag_in: 5, destination_hostgroup: Some(3), ..rule(5) },
    ]);
    let verdict = set.judge(&query("SELECT 1"));
    assert_eq!(
        (verdict.hostgroup, verdict.timeout, verdict.error.as_deref()),
        (Some(2), Some(100), Some("b"))
    );
    assert_eq!(hits(&set), [(1, 1), (2, 0), (3, 1), (4, 1), (5, 0)]);
    assert_eq!(set.judge(&Query { flag: 5, ..query("x") }).hostgroup, Some(2));
}

#[test]
fn text_is_rewritten_and_later_rules_see_it() {
    let rewrite = |id, pattern: &str, replacement: &str, modifiers: &str| QueryRuleRow {
        match_pattern: text(pattern),
        replace_pattern: text(replacement),
        re_modifiers: text(modifiers),
        ..rule(id)
    };
    let set = set(vec![
        rewrite(1, r"FROM (\w+)\.(\w+)", r"FROM \2_\1 /* \0, \\, \q, \9 */", ""),
        rewrite(2, "A", "b", "CASELESS,GLOBAL"),
        rewrite(3, "no such", "b", ""),
    ]);
    let rewritten = set.judge(&query("SELECT a FROM s.t, FROM x.y")).text.unwrap();
    assert_eq!(String::from_utf8(rewritten).unwrap(), r"SELECT b FROM t_s /* FROM s.t, \, \q,  */, FROM x.y");
    assert_eq!(set.judge(&query("SELECT 1")).text, None);
    let bytes = Query { text: b"SELECT '\xFF' a", ..query("") };
    assert_eq!(set.judge(&bytes).text.unwrap(), b"SELECT '\xFF' b");
}

#[test]
fn a_statement_that_would_become_too_long_is_refused() {
    let grow = QueryRuleRow {
        match_pattern: text("a"),
        replace_pattern: Some("b".repeat(1 << 20)),
        re_modifiers: text("GLOBAL"),
        ..rule(7)
    };
    let hide = QueryRuleRow { match_pattern: text("^b"), ok_msg: text("fine"), ..rule(8) };
    let set = set(vec![grow, hide]);
    assert_eq!(set.judge(&query("aaa")).text.map(|text| text.len()), Some(3 << 20));
    for length in [16, 1 << 20] {
        let verdict = set.judge(&query(&"a".repeat(length)));
        let error = "query rule 7 would make the statement longer than 16 MiB";
        assert_eq!((verdict.error.as_deref(), verdict.text), (Some(error), None));
    }
}

#[test]
fn look_around_and_back_references_work_within_limits() {
    let set = set(vec![
        QueryRuleRow {
            match_pattern: text(r"^SELECT (?!.*FOR UPDATE)"),
            destination_hostgroup: Some(2),
            ..rule(1)
        },
        QueryRuleRow { match_pattern: text(r"(\w)=\1$"), destination_hostgroup: Some(3), ..rule(2) },
        QueryRuleRow { match_pattern: text(r"^(?=x)(x+x+)+\1y$"), destination_hostgroup: Some(4), ..rule(3) },
    ]);
    assert_eq!(hostgroup(&set, "SELECT 1"), Some(2));
    assert_eq!(hostgroup(&set, "SELECT 1 FOR UPDATE"), None);
    assert_eq!(hostgroup(&set, "DELETE FROM t WHERE a=a"), Some(3));
    assert_eq!(hostgroup(&set, &"x".repeat(60)), None);
}

#[test]
fn the_rest_of_a_rule_is_in_the_verdict() {
    let set = set(vec![QueryRuleRow {
        ok_msg: text("fine"),
        delay: Some(5),
        next_query_flag_in: Some(3),
        sticky_conn: Some(true),
        ..rule(1)
    }]);
    let verdict = set.judge(&query("x"));
    assert_eq!((verdict.ok.as_deref(), verdict.delay, verdict.next_flag), (Some("fine"), Some(5), Some(3)));
    assert_eq!(verdict.multiplex, Some(Multiplex::Off));
    for (column, expected) in [(0, Multiplex::Off), (1, Multiplex::On), (2, Multiplex::IgnoreVariables)] {
        let set = super::tests::set(vec![QueryRuleRow { multiplex: Some(column), ..rule(1) }]);
        assert_eq!(set.judge(&query("x")).multiplex, Some(expected));
    }
}

#[test]
fn fast_routing_decides_where_no_rule_did() {
    let route = |schema: &str, flag_in, destination_hostgroup| FastRoutingRow {
        username: "app".into(),
        schemaname: schema.into(),
        flag_in,
        destination_hostgroup,
        comment: String::new(),
    };
    let rules = vec![
        QueryRuleRow { match_pattern: text("^A"), destination_hostgroup: Some(1), ..rule(1) },
        QueryRuleRow { match_pattern: text("^B"), flag_out: Some(4), ..rule(2) },
    ];
    let fast_routing = vec![route("shop", 0, 20), route("shop", 4, 24), route("other", 0, 30)];
    let (set, _) = RuleSet::compile(QueryRulesConfig { rules, fast_routing });
    assert_eq!(["A", "B", "C"].map(|text| hostgroup(&set, text)), [Some(1), Some(24), Some(20)]);
    assert_eq!(set.judge(&Query { user: "b", ..query("C") }).hostgroup, None);
    assert_eq!(set.fast_routing_rows().len(), 3);
}

#[test]
fn what_cannot_be_evaluated_is_left_out_with_the_reason() {
    let rules = vec![
        QueryRuleRow { match_pattern: text("("), ..rule(1) },
        QueryRuleRow { match_digest: text("a{999999}{999999}"), ..rule(2) },
        QueryRuleRow { digest: text("12"), ..rule(3) },
        QueryRuleRow { proxy_addr: text("here"), ..rule(4) },
        QueryRuleRow { active: false, match_pattern: text("("), ..rule(5) },
        rule(6),
    ];
    let (set, ignored) = RuleSet::compile(QueryRulesConfig { rules, ..Default::default() });
    assert_eq!(set.rows().map(|row| row.rule_id).collect::<Vec<_>>(), [6]);
    let columns = ["match_pattern", "match_digest", "digest", "proxy_addr"];
    assert_eq!(ignored.len(), columns.len());
    for (id, (line, column)) in (1..).zip(ignored.iter().zip(columns)) {
        let begins = format!("mysql_query_rules: rule_id {id} is left out: {column}: ");
        assert!(line.starts_with(&begins) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn expressions_share_memory_and_find_what_they_would_alone() {
    const TEXTS: [&str; 6] =
        ["SELECT a FROM t", "select b from u where x = 'y'", "", "UPDATE t", "aXbXc", "t FOR UPDATE"];
    let patterns = [
        "^SELECT",
        "FROM (t|u)",
        "FOR UPDATE$",
        r"\bt\b",
        "a.*b.*c",
        "^$",
        "(?i)UPDATE",
        "[a-c]{3}",
        "literal",
        r"^(?!S)",
    ];
    let mut scratch = pattern::Scratch::default();
    for text in TEXTS.into_iter().map(str::to_owned).chain([format!("{}SELECT t", "x ".repeat(5000))]) {
        for caseless in [false, true] {
            for source in patterns {
                let expected =
                    fancy_regex::RegexBuilder::new(source).case_insensitive(caseless).build().unwrap();
                let found = Pattern::new(source, caseless).unwrap().matches(text.as_bytes(), &mut scratch);
                assert_eq!(found, expected.is_match(text.as_str()).unwrap(), "{source} in {text}");
            }
        }
    }
    assert!(matches_bytes(b"SELECT '\xFF' a"));
}

fn matches_bytes(text: &[u8]) -> bool {
    Pattern::new("'.' A", true).unwrap().matches(text, &mut pattern::Scratch::default())
}

#[test]
fn known_verdicts_are_what_the_rules_would_say() {
    let rules = vec![
        QueryRuleRow { match_digest: text("^SELECT"), flag_out: Some(1), ..rule(1) },
        QueryRuleRow { flag_in: 1, username: text("app"), destination_hostgroup: Some(11), ..rule(2) },
        QueryRuleRow { flag_in: 1, schemaname: text("shop"), timeout: Some(12), ..rule(3) },
        QueryRuleRow { flag_in: 1, client_addr: text("10.%"), delay: Some(13), ..rule(4) },
        QueryRuleRow { flag_in: 1, proxy_port: Some(6034), next_query_flag_in: Some(14), ..rule(5) },
        QueryRuleRow { flag_in: 7, ok_msg: text("seven"), ..rule(6) },
        QueryRuleRow { digest: text("0xAC"), error_msg: text("digest"), ..rule(7) },
        QueryRuleRow { match_pattern: text("= 5"), destination_hostgroup: Some(15), ..rule(8) },
    ];
    let (set, fresh) = (set(rules.clone()), || super::tests::set(rules.clone()));
    let base = || query("SELECT a = ?");
    let with_number = Arc::new(Digest { number: 0xAC, text: b"UPDATE t".as_slice().into() });
    let others = [
        base(),
        Query { user: "other", ..base() },
        Query { schema: "other", ..base() },
        Query { client: "10.0.0.1", ..base() },
        Query { proxy: Some("10.0.0.1:6034".parse().unwrap()), ..base() },
        Query { proxy: None, ..base() },
        Query { flag: 7, ..base() },
        query("UPDATE t"),
        Query { digest: Some(&with_number), ..base() },
        Query { digest: None, ..base() },
        Query { text: b"UPDATE t SET a = 5", ..query("UPDATE t") },
    ];
    let mut expected = Vec::new();
    // Each after each other, and after itself.
    for first in &others {
        for (at, query) in others.iter().enumerate() {
            let verdict = fresh().judge(query);
            set.judge(first);
            assert_eq!([set.judge(query), set.judge(query)], [verdict.clone(), verdict.clone()], "{at}");
            expected.push(verdict);
        }
    }
    expected.dedup();
    assert!(expected.len() > 8, "{expected:?}");
    // Each is counted, whether it was known or not.
    let (once, times) = (fresh(), 3 * others.len() as i64);
    others.iter().for_each(|query| drop(once.judge(query)));
    assert_eq!(
        hits(&set),
        hits(&once).into_iter().map(|(id, count)| (id, times * count)).collect::<Vec<_>>()
    );
}
