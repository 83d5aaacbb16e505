use super::*;
use proptest::prelude::*;

fn with(sql: &[u8], options: &Options) -> Vec<u8> {
    let mut out = Vec::new();
    write(sql, Quoting::default(), options, &mut out);
    out
}

fn digest(sql: &str) -> String {
    String::from_utf8(with(sql.as_bytes(), &Options::default())).unwrap()
}

#[test]
fn values_become_question_marks() {
    for (sql, expected) in [
        ("SELECT c FROM sbtest1 WHERE id=1234", "SELECT c FROM sbtest1 WHERE id=?"),
        ("select *  from\n\tt where a = 'it''s' and b = \"x\\\"y\"", "select * from t where a = ? and b = ?"),
        ("SELECT -1, +2, - 3, a-1, a - -1, (-5)", "SELECT ?,?,?,a-?,a - ?,(?)"),
        ("SELECT 1.5, .5, 1e5, 0xAF", "SELECT ?,?,?,..."),
        ("SELECT 0b01, x'4D', B'01', _utf8 'a'", "SELECT ?,?,?,..."),
        (
            "SELECT t1.c2, t.5a, `na me`, @u1, @@session.x FROM t1",
            "SELECT t1.c2,t.5a,`na me`,@u1,@@session.x FROM t1",
        ),
        (
            "UPDATE t SET a = NULL, b = b + 1 WHERE c IS NULL AND d IS NOT NULL",
            "UPDATE t SET a = ?,b = b + ? WHERE c IS NULL AND d IS NOT NULL",
        ),
        ("INSERT INTO t ( a , b ) VALUES ( 1 , 'x' )", "INSERT INTO t (a,b) VALUES (?,?)"),
        ("SELECT 1 -- why\n, 2 # end", "SELECT ?,?"),
        ("/* app */ SELECT/**/1;", "SELECT ?"),
        ("SELECT 1;SELECT 2 ; ", "SELECT ?; SELECT ?"),
        ("SELECT ? FROM t WHERE a IN (?, ?)", "SELECT ? FROM t WHERE a IN (?,?)"),
        (
            "SELECT count(*) FROM t WHERE a in (-1,2,-3,4,5) LIMIT 5, 10",
            "SELECT count(*) FROM t WHERE a in (?,?,?,...) LIMIT ?,?",
        ),
        ("SELECT 'open", "SELECT ?"),
        ("SELECT /*!40001 SQL_NO_CACHE */ 1", "SELECT /*!? SQL_NO_CACHE */ ?"),
        ("", ""),
        (";", ""),
    ] {
        assert_eq!(digest(sql), expected, "{sql}");
    }
}

#[test]
fn rows_of_values_end_after_some() {
    let rows = |count: usize| digest(&format!("INSERT INTO t VALUES {}", vec!["(1,'a')"; count].join(", ")));
    assert_eq!(rows(2), "INSERT INTO t VALUES (?,?),(?,?)");
    assert_eq!(rows(10).matches("(?,?)").count(), 10);
    assert_eq!(rows(11), format!("INSERT INTO t VALUES {},...", ["(?,?)"; 10].join(",")));
    assert_eq!(rows(50), rows(11));
    assert_eq!(digest("SELECT (1),(a),(2)"), "SELECT (?),(a),(?)");
}

#[test]
fn options_change_the_text() {
    let sql = b"SELECT /* a  b */ T1.x FROM Db2 WHERE a = NULL AND b IN (1,2)";
    let check = |change: fn(&mut Options), expected: &str| {
        let mut options = Options::default();
        change(&mut options);
        assert_eq!(String::from_utf8_lossy(&with(sql, &options)), expected);
    };
    check(|o| o.lowercase = true, "select t1.x from db2 where a = ? and b in (?,?)");
    check(|o| o.no_digits = true, "SELECT T?.x FROM Db? WHERE a = ? AND b IN (?,?)");
    check(|o| o.replace_null = false, "SELECT T1.x FROM Db2 WHERE a = NULL AND b IN (?,?)");
    check(|o| o.keep_comment = true, "SELECT /* a  b */ T1.x FROM Db2 WHERE a = ? AND b IN (?,?)");
    check(|o| o.grouping_limit = 1, "SELECT T1.x FROM Db2 WHERE a = ? AND b IN (?,...)");
    check(|o| o.max_digest_length = 16, "SELECT T1.x FROM");
    check(|o| o.max_digest_length = 15, "SELECT T1.x");
    check(|o| o.max_query_length = 22, "SELECT T1.x");
}

#[test]
fn kept_comments_end_lists_and_are_never_last() {
    let options = Options { keep_comment: true, ..Options::default() };
    for (sql, expected) in [
        ("/* a */;", ""),
        ("SELECT 1 /* a */; /* b */", "SELECT ?"),
        ("SELECT 1,2,3,4,/* a */5,6", "SELECT ?,?,?,...,/* a */ ?,?"),
        ("SELECT 1,2,3,4 /* a */,5", "SELECT ?,?,?,... /* a */,?"),
        ("VALUES (1),(/* a */2)", "VALUES (?),(/* a */ ?)"),
        ("SELECT - /* a */ 1", "SELECT - /* a */ ?"),
    ] {
        assert_eq!(String::from_utf8_lossy(&with(sql.as_bytes(), &options)), expected, "{sql}");
        assert_eq!(String::from_utf8_lossy(&with(expected.as_bytes(), &options)), expected, "{expected}");
    }
}

#[test]
fn a_plain_backslash_ends_no_text_early() {
    let mut out = Vec::new();
    let plain = Quoting { plain_backslash: true, ..Quoting::default() };
    write(br"SELECT '\', a", plain, &Options::default(), &mut out);
    assert_eq!(out, b"SELECT ?,a");
}

#[test]
fn double_quotes_are_read_alike_under_each_sql_mode() {
    let mut out = Vec::new();
    let ansi = Quoting { ansi_quotes: true, ..Quoting::default() };
    write(br#"SELECT "a", 'b' FROM "t""#, ansi, &Options::default(), &mut out);
    assert_eq!(String::from_utf8_lossy(&out), "SELECT ?,? FROM ?");
}

#[test]
fn hashes_are_shown_and_read() {
    let shown = show(hash(b"SELECT ?"));
    assert_eq!((shown.len(), parse(&shown)), (18, Some(hash(b"SELECT ?"))));
    assert_eq!(parse("0x00000000000000ff"), Some(255));
    assert_eq!((parse("ff"), parse("0x"), parse("0x+1")), (None, None, None));
}

/// Pieces that are more likely to mean something together than random bytes.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "1",
        "-",
        "+",
        ",",
        "(",
        ")",
        "'a'",
        "''",
        "\"",
        "`",
        "`n`",
        "?",
        "...",
        ".",
        "/*",
        "*/",
        "/*!",
        "/",
        "*",
        "--",
        "#",
        "\n",
        " ",
        "NULL",
        "IS ",
        "NOT ",
        "SELECT",
        "SELECT ",
        "IN ",
        "x",
        "x'1'",
        "_utf8",
        "_utf8 ",
        "'",
        "a",
        "a1",
        "1a",
        "0x1",
        "1e",
        "e5",
        ";",
        "@",
        "@@",
        "\\",
        "\u{e9}",
        "1,2,3,4,5",
        "(1),(2),(3)",
        "(?),...,",
        "t.",
        ".5",
        "\0",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

fn check_fixpoint(sql: &[u8], options: &Options) -> Result<(), TestCaseError> {
    let once = with(sql, options);
    prop_assert!(once.len() <= options.max_digest_length);
    if once != with(sql, &Options { max_digest_length: usize::MAX, ..options.clone() }) {
        // What stood behind the end may have told what stands before it.
        return Ok(());
    }
    let twice = with(&once, options);
    prop_assert_eq!(
        String::from_utf8_lossy(&once),
        String::from_utf8_lossy(&twice),
        "{:?}",
        String::from_utf8_lossy(sql)
    );
    Ok(())
}

fn small() -> Options {
    Options { groups_grouping_limit: 2, max_digest_length: 40, ..Options::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn a_digest_is_its_own_digest(sql in pieces(), keep_comment: bool, lowercase: bool) {
        check_fixpoint(&sql, &Options { keep_comment, lowercase, ..Options::default() })?;
        check_fixpoint(&sql, &Options { keep_comment, lowercase, ..small() })?;
    }
    #[test]
    fn so_is_that_of_any_bytes(sql in prop::collection::vec(any::<u8>(), 0..96), no_digits: bool) {
        check_fixpoint(&sql, &Options::default())?;
        with(&sql, &Options { no_digits, ..small() });
    }
}
