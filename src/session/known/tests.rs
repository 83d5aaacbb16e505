use super::*;
use crate::digest::{Options, Writer};
use crate::quoting::Characters;
use crate::quoting::tests::any_quoting;
use crate::session::classify::classify_with;
use crate::template::Gaps;
use proptest::prelude::*;

const UNSET: Quoting = Quoting { plain_backslash: false, ansi_quotes: false, characters: Characters::Plain };
const READING: Reading = Reading { version: 1, quoting: UNSET, digests: true, longest: 1_000 };

/// All that is found of a statement token by token.
fn read(sql: &[u8], reading: Reading, options: &Options) -> (Statement, Arc<Digest>, Option<Template>) {
    let mut text = Vec::new();
    let mut writer = Writer::new(options, &mut text);
    let mut gaps = Gaps::new(sql, reading.quoting);
    let statement = classify_with(sql, reading.quoting, |token, tokens| {
        writer.token(token, tokens);
        gaps.token(token, tokens);
    });
    (statement, Arc::new(Digest::new(text)), gaps.finish())
}

fn known(sql: &str, reading: Reading) -> Known {
    let (statement, digest, template) = read(sql.as_bytes(), reading, &Options::default());
    Known { reading, template: template.unwrap(), statement, digest: Some(digest) }
}

fn found(statements: &KnownStatements, sql: &str, reading: Reading) -> Option<String> {
    let (_, digest) = statements.find(sql.as_bytes(), reading, &mut None)?;
    Some(String::from_utf8_lossy(&digest.unwrap().text).into_owned())
}

#[test]
fn a_statement_with_other_values_is_found() {
    let statements = KnownStatements::default();
    for sql in [
        "SELECT a FROM t WHERE b = 1",
        "SELECT a FROM t WHERE b = 'x'",
        "SELECT a FROM t WHERE b = 1 FOR UPDATE",
    ] {
        assert!(found(&statements, sql, READING).is_none() && statements.wants(sql.as_bytes(), READING));
        statements.keep(sql.as_bytes(), known(sql, READING));
    }
    let find = |sql| found(&statements, sql, READING);
    assert_eq!(find("SELECT a FROM t WHERE b = 22").as_deref(), Some("SELECT a FROM t WHERE b = ?"));
    assert_eq!(find("SELECT a FROM t WHERE b = ''").as_deref(), Some("SELECT a FROM t WHERE b = ?"));
    assert_eq!(
        find("SELECT a FROM t WHERE b = 3 FOR UPDATE").as_deref(),
        Some("SELECT a FROM t WHERE b = ? FOR UPDATE")
    );
    assert_eq!(find("SELECT a FROM t WHERE c = 1"), None);
    let (statement, _) =
        statements.find(b"SELECT a FROM t WHERE b = 9 FOR UPDATE", READING, &mut None).unwrap();
    assert_eq!(statement, known("SELECT a FROM t WHERE b = 1 FOR UPDATE", READING).statement);
}

#[test]
fn what_was_read_otherwise_is_not_found() {
    let statements = KnownStatements::default();
    let sql = "SELECT a FROM t WHERE b = 'x'";
    statements.keep(sql.as_bytes(), known(sql, READING));
    let others = [
        Reading { version: 2, ..READING },
        Reading { quoting: Quoting { plain_backslash: true, ..UNSET }, ..READING },
        Reading { quoting: Quoting { ansi_quotes: true, ..UNSET }, ..READING },
        Reading { quoting: Quoting { characters: Characters::Gbk, ..UNSET }, ..READING },
        Reading { digests: false, ..READING },
    ];
    for reading in others {
        assert_eq!(found(&statements, sql, reading), None, "{reading:?}");
    }
    // Those of before are gone when one of now comes.
    statements.keep(sql.as_bytes(), known(sql, Reading { version: 2, ..READING }));
    assert_eq!(found(&statements, sql, READING), None);
}

#[test]
fn a_statement_that_is_not_read_to_its_end_is_not_known() {
    let statements = KnownStatements::default();
    let sql = |length: usize| format!("SELECT '{}'", "x".repeat(length - "SELECT ''".len()));
    statements.keep(sql(20).as_bytes(), known(&sql(20), READING));
    assert!(found(&statements, &sql(READING.longest), READING).is_some());
    assert!(found(&statements, &sql(READING.longest + 1), READING).is_none());
    assert_eq!(
        [0, 1].map(|more| statements.wants(sql(READING.longest + more).as_bytes(), READING)),
        [true, false]
    );
}

#[test]
fn a_full_set_takes_few() {
    let statements = KnownStatements::default();
    // With equal beginnings: all in one set.
    let sql = |n: usize| format!("SELECT 1 AS {}", "x".repeat(n + 1));
    for n in 0..WAYS {
        assert!(statements.wants(sql(n).as_bytes(), READING));
        statements.keep(sql(n).as_bytes(), known(&sql(n), READING));
        statements.keep(sql(n).as_bytes(), known(&sql(n), READING));
    }
    let count = |to: usize| (0..to).filter(|n| found(&statements, &sql(*n), READING).is_some()).count();
    assert_eq!(count(WAYS), WAYS);
    let taken = (0..1_000).filter(|_| statements.wants(sql(WAYS).as_bytes(), READING)).count();
    assert!((1..500).contains(&taken), "{taken}");
    statements.keep(sql(WAYS).as_bytes(), known(&sql(WAYS), READING));
    assert_eq!((count(WAYS), count(WAYS + 1)), (WAYS - 1, WAYS));
    let generous = Reading { longest: 4_000, ..READING };
    assert_eq!(
        [LONGEST, LONGEST + 1].map(|length| KnownStatements::default().wants(&vec![b'x'; length], generous)),
        [true, false]
    );
}

/// Words, and marks between them.
const PLAIN: [&str; 40] = [
    "SELECT ",
    "UPDATE ",
    "INSERT INTO t ",
    "SET ",
    "USE ",
    "KILL ",
    "CALL ",
    "WITH ",
    "DROP ",
    "XA ",
    "FLUSH ",
    "a",
    "t.",
    "`n`",
    "=",
    ",",
    "(",
    ")",
    ";",
    " ",
    "  ",
    "\n",
    "-",
    "NULL",
    "IN ",
    "FOR ",
    "FOR UPDATE",
    "STATEMENT ",
    "LAST_INSERT_ID(",
    "VALUES ",
    "VERSION()",
    "GET_LOCK(",
    "f(",
    "WARNINGS",
    "INTO ",
    "TEMPORARY ",
    "ROLLBACK ",
    "_utf8 ",
    "@",
    "x",
];
/// What may change the meaning of what stands beside it.
const ODD: [&str; 24] = [
    "--", "-- ", "#", "/*", "*/", "/*!", ".", "...", "?", "@@", "\\", "'", "\"", "`", "b", "N", "_utf8", "e",
    "e+", "0", "0x", "1.", "\u{e9}", "\0",
];
const NUMBERS: [&str; 8] = ["1", "23", "4.5", "0", "00.10", "9999999999", "1e5", "1."];
const TEXTS: [&str; 9] = ["''", "'a'", "'it''s'", "'\\''", "'\"'", "'\\\\'", "'1,2'", "'/*'", "'--'"];
const NAMES: [&str; 4] = ["\"\"", "\"b\"", "\"'\"", "\"--\""];

/// A statement with places for values, and values for them, twice.
fn two_statements() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let one = |pieces: &'static [&'static str]| prop::sample::select(pieces);
    let twice = move |pieces| one(pieces).prop_map(|piece| (piece, piece));
    let piece = prop_oneof![
        8 => twice(&PLAIN),
        1 => twice(&ODD),
        2 => (one(&NUMBERS), one(&NUMBERS)),
        2 => (one(&TEXTS), one(&TEXTS)),
        1 => (one(&NAMES), one(&NAMES)),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| {
        let (first, second): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
        (first.concat().into_bytes(), second.concat().into_bytes())
    })
}

/// What is known of the first statement must hold for the second, if that is taken for the same.
fn check(first: &[u8], second: &[u8], reading: Reading, options: &Options) -> Result<bool, TestCaseError> {
    let (statement, digest, template) = read(first, reading, options);
    let Some(template) = template.filter(|_| !statement.of_values) else { return Ok(false) };
    prop_assert!(template.fits(first, reading.quoting));
    if !template.fits(second, reading.quoting) {
        return Ok(false);
    }
    prop_assert_eq!(key(first), key(second));
    let (other, its_digest, _) = read(second, reading, options);
    prop_assert_eq!(String::from_utf8_lossy(&digest.text), String::from_utf8_lossy(&its_digest.text));
    prop_assert_eq!(statement, other);
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn what_is_known_holds_whatever_the_values(
        (first, second) in two_statements(),
        quoting in any_quoting(),
        (lowercase, no_digits, keep_comment) in any::<(bool, bool, bool)>(),
    ) {
        let options = Options { lowercase, no_digits, keep_comment, grouping_limit: 2, groups_grouping_limit: 2, ..Options::default() };
        check(&first, &second, Reading { quoting, ..READING }, &options)?;
    }
    #[test]
    fn and_for_any_bytes(
        first in prop::collection::vec(any::<u8>(), 0..48),
        at in any::<prop::sample::Index>(),
        byte: u8,
        quoting in any_quoting(),
    ) {
        let mut second = first.clone();
        if let Some(place) = second.get_mut(at.index(first.len().max(1))) {
            *place = byte;
        }
        check(&first, &second, Reading { quoting, ..READING }, &Options::default())?;
    }
}

#[test]
fn statements_of_the_property_are_taken_for_the_same_often_enough() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let same = (0..2_000).filter(|_| {
        let (first, second) = two_statements().new_tree(&mut runner).unwrap().current();
        first != second && check(&first, &second, READING, &Options::default()).unwrap()
    });
    assert!(same.count() > 100);
}

#[test]
fn a_digest_that_is_used_again_is_counted_once() {
    let statements = KnownStatements::default();
    statements.keep(b"SELECT 1", known("SELECT 1", READING));
    let (_, first) = statements.find(b"SELECT 2", READING, &mut None).unwrap();
    let mut recent = first;
    let references = |digest: &Option<Arc<Digest>>| digest.as_ref().map(Arc::strong_count);
    assert_eq!(references(&recent), Some(2));
    let (_, second) = statements.find(b"SELECT 3", READING, &mut recent).unwrap();
    assert_eq!((references(&second), recent), (Some(2), None));
}
