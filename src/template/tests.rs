use super::*;
use proptest::prelude::*;

fn template(sql: &str) -> Option<Template> {
    let mut tokens = Tokens::new(sql.as_bytes(), Quoting::default());
    let mut gaps = Gaps::new(sql.as_bytes(), Quoting::default());
    while let Some(token) = tokens.next() {
        gaps.token(token, &tokens);
    }
    gaps.finish()
}

fn fits(first: &str, second: &str) -> bool {
    template(first).unwrap().fits(second.as_bytes(), Quoting::default())
}

#[test]
fn other_values_fit() {
    for (first, second) in [
        ("SELECT c FROM sbtest1 WHERE id=50123", "SELECT c FROM sbtest1 WHERE id=7"),
        ("SELECT 1", "SELECT 0000000000000000000000000000000000000000"),
        ("a=1 AND b=2", "a=1.5 AND b=20"),
        ("a='x'", "a='it''s \"5\"'"),
        ("a='x' b", r"a='\'' b"),
        ("a='' OR b=\"\"", "a='1' OR b=\"2\""),
        ("VALUES (1,'a',NULL,-2)", "VALUES (22,'bb',NULL,-33)"),
        ("SELECT x'4D', _utf8 'a', N'b'", "SELECT x'4E4F', _utf8 '', N'cc'"),
        ("BEGIN", "BEGIN"),
        ("", ""),
    ] {
        assert!(fits(first, second) && fits(second, first) && fits(first, first), "{first} {second}");
        assert_eq!(key(first.as_bytes()), key(second.as_bytes()), "{first} {second}");
    }
}

#[test]
fn other_statements_do_not() {
    for (first, second) in [
        ("SELECT c FROM t WHERE id=1", "SELECT d FROM t WHERE id=1"),
        ("SELECT c FROM t WHERE id=1", "SELECT c FROM t WHERE id=1 "),
        ("SELECT c FROM t WHERE id=1 ", "SELECT c FROM t WHERE id=1"),
        ("SELECT c FROM t WHERE id=1", "SELECT c FROM t WHERE id="),
        ("SELECT c FROM t1", "SELECT c FROM t2"),
        ("SELECT /* 1 */ 1", "SELECT /* 2 */ 1"),
        ("a=1", "a=-1"),
        ("a=1", "a=1x"),
        ("a=1", "a=1e5"),
        ("a=1", "a=1.x"),
        ("a=1", "a=1.5.5"),
        ("a=1", "a='1'"),
        ("a='x'", "a=\"x\""),
        ("a='x'", "a='x"),
        ("a='x'", r"a='\'"),
        ("a='x'", "a='x' OR 'y'"),
        ("a IN (1,2)", "a IN (1,2,3)"),
        ("a=NULL", "a=1"),
    ] {
        assert!(!fits(first, second), "{first} {second}");
    }
}

#[test]
fn a_plain_backslash_is_a_byte_like_any_other() {
    let template = template("a='x' b").unwrap();
    let sql = br"a='\' b";
    let fits = |plain_backslash| template.fits(sql, Quoting { plain_backslash, ..Quoting::default() });
    assert_eq!([false, true].map(fits), [false, true]);
}

#[test]
fn values_of_odd_kinds_have_no_template() {
    for sql in ["a=1e5", "a=0x1F", "a=.5", "a=1.", "a=1..2", "a=1.5.x", "a=1.5x", "a='x", "a=\"x'"] {
        assert_eq!(template(sql), None, "{sql}");
    }
    assert_eq!(template(&"1,".repeat(MOST_GAPS + 1)), None);
    assert!(template(&"1,".repeat(MOST_GAPS)).is_some());
}

#[test]
fn keys_end_before_the_first_value() {
    let keys = |texts: &[&str]| {
        let mut keys: Vec<_> = texts.iter().map(|text| key(text.as_bytes())).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    };
    assert_eq!(
        keys(&["SELECT 1", "SELECT 22222222222222222222", "SELECT 'x'", "SELECT \"", "SELECT 9,a"]),
        1
    );
    assert_eq!(keys(&["SELECT a", "SELECT b", "SELECT ", "SELECT", "SELECT a FROM t", ""]), 6);
    let long = "x".repeat(KEYED);
    assert_eq!(keys(&[&format!("{long}a"), &format!("{long}b")]), 1);
}

proptest! {
    #[test]
    fn bytes_that_end_a_key_are_found_all_at_once(bytes: [u8; 8]) {
        let found = stops(u64::from_le_bytes(bytes)).to_le_bytes();
        let expected = bytes.map(|byte| match byte {
            b'0'..=b'9' | b'\'' | b'"' | b'#' | b'&' => 0x80,
            _ => 0,
        });
        prop_assert_eq!(found, expected);
    }
}
