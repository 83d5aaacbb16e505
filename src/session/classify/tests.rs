use super::*;

fn effect(sql: &str) -> Effect {
    classify(sql.as_bytes(), Quoting::default()).effect
}

#[test]
fn how_many_answers_are_certain() {
    for (sql, answers) in [
        ("SELECT 1", 1),
        ("SELECT 1;", 1),
        ("SELECT ';'; (SELECT 2) ; DO 1 -- ; 4", 3),
        ("CALL p()", usize::MAX),
        ("CALL p(); SELECT 1", 2),
    ] {
        assert_eq!(classify(sql.as_bytes(), Quoting::default()).answers(), answers, "{sql}");
    }
}

#[test]
fn ordinary_statements_leave_nothing() {
    for sql in [
        "SELECT 1",
        "  /* app */ select @@version, '@x', `@y` from t -- @z",
        "(SELECT 1) UNION (SELECT 2);",
        "SELECT 1; SELECT 2",
        "INSERT INTO t VALUES ('a;b')",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "START TRANSACTION",
        "CREATE TABLE t (temp INT)",
        "SHOW DATABASES",
        "DROP TABLE schema_log",
        "SELECT temporary, value FROM t",
        "",
    ] {
        assert_eq!(effect(sql), Effect::Nothing, "{sql}");
    }
}

#[test]
fn functions_that_a_server_does_not_have_itself_are_seen() {
    let calls = |sql: &str| classify(sql.as_bytes(), Quoting::default()).calls.routines(false);
    for sql in [
        "SELECT f()",
        "select 1 + app . f (2)",
        "SELECT app.abs(1)",
        "SELECT `f`(1), 2",
        "SELECT \"f\"(1)",
        "SELECT * FROM t WHERE a IN (1, f(2))",
        "SELECT COALESCE(f(1), 2)",
        "(SELECT f(1))",
        "SELECT 1; SELECT f(1)",
        "INSERT INTO t VALUES (f(1))",
        "INSERT INTO t SET a = f(1)",
        "INSERT INTO t SELECT f(1)",
        "INSERT INTO t (a, b) SELECT f(1), 2",
        "INSERT INTO t TABLE s ORDER BY f(1)",
        "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = f(1)",
        "REPLACE app.t VALUES (1, f(2))",
        "UPDATE t SET a = f(a)",
        "DELETE FROM t WHERE f(a)",
        "DO f(1)",
        "CREATE TABLE t (a INT) AS SELECT f(1) AS a",
        "SET time_zone = f()",
        "SET STATEMENT sql_mode = f() FOR SELECT 1",
        "WITH a (n) AS (SELECT f(1)) SELECT n FROM a",
        "WITH a AS (SELECT 1) SELECT f(1) FROM a",
        "WITH RECURSIVE a AS (SELECT f(1)) SELECT 1 FROM a",
        "SELECT a FROM t GROUP BY a WITH ROLLUP HAVING f(a)",
        "LOAD DATA INFILE 'f' INTO TABLE t CHARACTER SET utf8mb4 (a, @b) SET c = f(@b)",
        "CREATE TABLE t (a SET('x')) AS SELECT f(1) AS a",
    ] {
        assert!(calls(sql), "{sql}");
    }
    for sql in [
        "SELECT c FROM sbtest1 WHERE id = 1",
        "SELECT COUNT(*), max(a), f, t.g FROM t WHERE a IN (1, 2) AND (b OR c)",
        "SELECT f FROM t AS t2 JOIN (SELECT 1) x USING (a)",
        "SELECT CAST(a AS DECIMAL(10, 2)), CAST(b AS DATETIME(6)), DATE_ADD(a, INTERVAL (1) DAY)",
        "SELECT a FROM t WHERE MATCH (a) AGAINST ('x') AND b = ANY (SELECT 1)",
        "SELECT ROW_NUMBER() OVER (PARTITION BY a) FROM t PARTITION (p0) USE INDEX (i)",
        "INSERT INTO t (a, b) VALUES (1, 2), (3, 4)",
        "INSERT IGNORE INTO `app`.`t` (`a`) VALUES (LAST_INSERT_ID())",
        "INSERT t(a) VALUE (1)",
        "REPLACE INTO \"t\" (a) SELECT REPLACE(a, 'x', 'y') FROM t",
        "CREATE TABLE t (id INT(11), KEY i (id), CONSTRAINT c FOREIGN KEY (id) REFERENCES u (id))",
        "ALTER TABLE t ADD INDEX i (a)",
        "CREATE TABLE t (a SET('x', 'y'), b CHAR(9) CHARACTER SET latin1, KEY i (a))",
        "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (a) ON DELETE SET NULL, ADD INDEX i (a)",
        "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a, b)",
        "LOAD DATA INFILE 'f' INTO TABLE `t` CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' (a) SET b = NOW()",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "WITH a (n) AS (SELECT 1) SELECT n FROM a",
        "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 9) SELECT n FROM a",
        "INSERT INTO t (a) WITH RECURSIVE b (n) AS (SELECT 1) SELECT n FROM b",
        // Those that MySQL has had, or Aurora has.
        "SELECT MD5(a), SHA1(a), ENCRYPT(a), AsText(a), AURORA_VERSION() FROM t",
    ] {
        assert!(!calls(sql), "{sql}");
    }
}

#[test]
fn what_may_live_on_the_connection_is_state() {
    for sql in [
        "SELECT @x := 1",
        "SELECT id INTO @a FROM t",
        "SELECT GET_LOCK('a', 1)",
        "CREATE TEMPORARY TABLE t (a INT)",
        "create or replace temporary table t (a int)",
        "LOCK TABLES t READ",
        "FLUSH TABLES WITH READ LOCK",
        "PREPARE s FROM 'SELECT 1'",
        "CALL p()",
        "SET @x = 1",
        "SELECT 1; SET NAMES utf8mb4",
        "USE a; SELECT 1",
        "DROP DATABASE a",
        "DROP SCHEMA a",
        "/*!40101 SET NAMES utf8 */",
        "HANDLER t OPEN",
        "XA START 'a'",
        "SELECT PREVIOUS VALUE FOR s",
        "INSERT INTO t VALUES (NEXT VALUE FOR s)",
        "SELECT NEXTVAL(s)",
        "SELECT LASTVAL(s)",
        "'nonsense'",
        "frobnicate",
    ] {
        assert!(matches!(effect(sql), Effect::Hold(_)), "{sql}");
    }
}

#[test]
fn use_and_set_are_understood() {
    assert_eq!(effect("use `a``b`;"), Effect::Use("a`b".into()));
    assert_eq!(effect("/* x */ USE shop"), Effect::Use("shop".into()));
    assert_eq!(effect("USE"), Effect::Hold(Reason::State));
    assert!(matches!(effect("SET NAMES utf8mb4"), Effect::Set(_)));
    assert!(matches!(effect("/* x */ SET autocommit=0;"), Effect::Set(_)));
}

#[test]
fn what_the_next_statement_may_read_is_noticed() {
    let calc = classify(b"SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1", Quoting::default());
    assert!(calc.calculates_rows && !calc.reads_insert_id);
    let plain = classify(b"INSERT INTO t VALUES (last_insert_id())", Quoting::default());
    assert!(plain.reads_insert_id && !plain.calculates_rows && !plain.sets_insert_id);
    let set = classify(b"UPDATE t SET a = LAST_INSERT_ID(a + 1)", Quoting::default());
    assert!(set.sets_insert_id);
    assert!(classify(b"SELECT row_count() - 1", Quoting::default()).reads_counts);
    assert!(classify(b"SELECT Found_Rows() + 1", Quoting::default()).reads_counts);
    assert!(classify(b"INSERT INTO t VALUES (1) RETURNING id", Quoting::default()).returns_rows);
    for sql in [
        "show warnings",
        "SHOW COUNT(*) ERRORS",
        "SELECT @@warning_count",
        "SELECT @@error_count",
        "GET DIAGNOSTICS @n = NUMBER",
    ] {
        assert!(classify(sql.as_bytes(), Quoting::default()).reads_diagnostics, "{sql}");
    }
    assert!(!classify(b"SELECT * FROM errors", Quoting::default()).reads_diagnostics);
    assert!(!classify(b"SELECT 'LAST_INSERT_ID()'", Quoting::default()).reads_insert_id);
    assert!(classify(b"SELECT @@session.identity", Quoting::default()).reads_insert_id);
    assert!(!classify(b"SELECT identity FROM t", Quoting::default()).reads_insert_id);
}

#[test]
fn what_was_complained_of_stays_until_a_statement_with_tables() {
    for sql in ["SHOW ERRORS", "GET DIAGNOSTICS @n = NUMBER", "SELECT 1", "COMMIT", "SET @a = 1"] {
        assert!(classify(sql.as_bytes(), Quoting::default()).keeps_diagnostics(), "{sql}");
    }
    for sql in [
        "SELECT 1 FROM t",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "TRUNCATE TABLE t",
        "LOCK TABLES t READ",
    ] {
        assert!(!classify(sql.as_bytes(), Quoting::default()).keeps_diagnostics(), "{sql}");
    }
    assert_eq!(effect("GET DIAGNOSTICS @n = NUMBER"), Effect::Hold(Reason::UserVariable));
}

#[test]
fn reasons_are_told_apart_and_end() {
    let passing = |words: &str| Effect::Passing(words.to_owned());
    for (sql, expected) in [
        ("LOCK TABLES t READ", Effect::Hold(Reason::TableLock)),
        ("FLUSH TABLES WITH READ LOCK", Effect::Hold(Reason::TableLock)),
        ("FLUSH PRIVILEGES", Effect::Nothing),
        ("UNLOCK TABLES", Effect::Release(Reason::TableLock)),
        ("UNLOCK TABLES; LOCK TABLES t READ", Effect::Hold(Reason::TableLock)),
        ("FLUSH TABLES t FOR EXPORT", Effect::Hold(Reason::TableLock)),
        ("XA START 'commit'", Effect::Hold(Reason::Xa)),
        ("XA BEGIN 'a'", Effect::Hold(Reason::Xa)),
        ("XA COMMIT 'a'", Effect::Release(Reason::Xa)),
        ("XA END 'start'", Effect::Nothing),
        ("xa rollback 'a'", Effect::Release(Reason::Xa)),
        ("SELECT RELEASE_ALL_LOCKS()", Effect::Release(Reason::NamedLock)),
        ("SELECT RELEASE_ALL_LOCKS(), GET_LOCK('a', 1)", Effect::Hold(Reason::NamedLock)),
        ("SELECT @x", Effect::Hold(Reason::UserVariable)),
        ("CREATE TEMPORARY TABLE t (a INT)", Effect::Hold(Reason::TemporaryTable)),
        ("CREATE TEMP VIEW t AS SELECT 1", Effect::Hold(Reason::TemporaryTable)),
        ("COMMIT RELEASE", Effect::Hold(Reason::State)),
        ("SELECT 1; XA START 'a'", Effect::Hold(Reason::Xa)),
        ("LOCK INSTANCE FOR BACKUP", Effect::Hold(Reason::State)),
        ("UNLOCK INSTANCE", Effect::Nothing),
        ("ROLLBACK WORK AND NO CHAIN RELEASE", Effect::Hold(Reason::State)),
        ("ROLLBACK TO SAVEPOINT a", Effect::Nothing),
        ("RELEASE SAVEPOINT a", Effect::Nothing),
        ("COMMIT AND CHAIN NO RELEASE", Effect::Nothing),
        ("PREPARE s FROM 'SELECT 1'", Effect::Hold(Reason::PreparedText)),
        ("CALL p()", Effect::Hold(Reason::Procedure)),
        (
            "SET STATEMENT max_statement_time=1, SQL_MODE='' FOR SELECT 2",
            passing("max_statement_time 1 sql_mode "),
        ),
        (
            "SET STATEMENT sql_mode=IF(1, SUBSTR('a' FROM 1 FOR 1), '') FOR SELECT 2 FOR UPDATE",
            passing("sql_mode if 1 substr from 1 for 1 "),
        ),
        ("SET STATEMENT max_statement_time=1 FOR CALL p()", Effect::Hold(Reason::Procedure)),
        ("SET STATEMENT max_statement_time=@x FOR SELECT 1", Effect::Hold(Reason::UserVariable)),
        ("SET STATEMENT max_statement_time=1 FOR SET NAMES utf8", Effect::Hold(Reason::State)),
        ("SET STATEMENT max_statement_time=1 FOR USE a", Effect::Hold(Reason::State)),
        ("SET STATEMENT max_statement_time=1", Effect::Hold(Reason::State)),
        ("SELECT 1; SET STATEMENT max_statement_time=1 FOR SELECT 2", Effect::Hold(Reason::State)),
    ] {
        assert_eq!(effect(sql), expected, "{sql}");
    }
}

#[test]
fn a_count_alone_is_recognised() {
    assert_eq!(only_count(b"select row_count();"), Some((Count::Affected, "row_count()".into())));
    assert_eq!(only_count(b" SELECT FOUND_ROWS ( )"), Some((Count::Found, "FOUND_ROWS()".into())));
    assert_eq!(only_count(b"SELECT ROW_COUNT() AS n;"), Some((Count::Affected, "n".into())));
    assert_eq!(only_count(b"SELECT FOUND_ROWS() as `a b`"), Some((Count::Found, "a b".into())));
    for sql in [
        "SELECT ROW_COUNT() + 1 AS n",
        "SELECT ROW_COUNT() AS n FROM t",
        "SELECT ROW_COUNT() AS",
        "SELECT ROW_COUNT() AS `a``b`",
        "SELECT ROW_COUNT(), 1",
        "SELECT f()",
        "DO ROW_COUNT()",
    ] {
        assert_eq!(only_count(sql.as_bytes()), None, "{sql}");
    }
}

#[test]
fn what_the_proxy_answers_is_seen_to_be_about_it() {
    use crate::session::{asked::asked, kill::Kill, local::answer, own_status::OwnStatus};
    let peer = std::net::Ipv4Addr::LOCALHOST.into();
    let mut answered = 0;
    for start in ["", " ", "\n", "/* x */ "] {
        for text in [
            "SELECT CONNECTION_ID()",
            "select connection_id ( ) AS `x`;",
            "SELECT VERSION() v LIMIT 1",
            "SELECT @@version",
            "SELECT @@version AS 'from'",
            "select @@version_comment limit 1",
            "select USER()",
            "SHOW STATUS LIKE 'Ssl_cipher'",
            "show session status like 'Ssl_version%'",
            "KILL 5",
            "kill query 5;",
        ] {
            let sql = format!("{start}{text}").into_bytes();
            let own = answer(&sql, "app", peer).is_some()
                || OwnStatus::parse(&sql).is_some()
                || asked(&sql).is_some();
            if own || Kill::parse(&sql, || "9.7.0".to_owned(), 1).is_some() {
                assert!(classify(&sql, Quoting::default()).about_proxy, "{start}{text}");
                answered += 1;
            }
        }
    }
    assert!(answered >= 30, "{answered}");
    for sql in [
        "BEGIN NOT ATOMIC KILL 5; END",
        "SELECT 1; KILL 5",
        "UPDATE t SET a=1;kill query 5",
        "PREPARE s FROM 'KILL 5'",
        "execute s",
    ] {
        assert!(classify(sql.as_bytes(), Quoting::default()).about_proxy, "{sql}");
    }
    for sql in ["SELECT c FROM sbtest1 WHERE id=50123", "UPDATE t SET a=1", "BEGIN", "SELECT `version`"] {
        assert!(!classify(sql.as_bytes(), Quoting::default()).about_proxy, "{sql}");
    }
}

#[test]
fn functions_may_have_their_names_in_quotes() {
    let judged = |sql: &str| classify(sql.as_bytes(), Quoting::default());
    assert_eq!(judged("SELECT `get_lock`('a', 1)").effect, Effect::Hold(Reason::NamedLock));
    assert_eq!(judged("SELECT `Release_All_Locks` ()").effect, Effect::Release(Reason::NamedLock));
    assert_eq!(judged("SELECT `nextval`(s)").effect, Effect::Hold(Reason::State));
    assert!(judged("SELECT `row_count`() + 1").reads_counts && judged("SELECT `found_rows`()").reads_counts);
    let (reads, sets) = (judged("SELECT `last_insert_id`()"), judged("DO `last_insert_id`(7)"));
    assert!(reads.reads_insert_id && !reads.sets_insert_id);
    assert!(sets.reads_insert_id && sets.sets_insert_id);
    // Of a schema, a column, a table.
    for sql in [
        "SELECT app.`get_lock`(1)",
        "SELECT `get_lock` FROM t",
        "INSERT INTO `get_lock` (a) VALUES (1)",
        "CREATE TABLE `get_lock` (a INT)",
        "SELECT 'get_lock'(1)",
        "SELECT `get_lock`, (1)",
    ] {
        assert_eq!(judged(sql).effect, Effect::Nothing, "{sql}");
    }
}

#[test]
fn quotes_are_read_as_the_server_reads_them() {
    let ansi = Quoting { ansi_quotes: true, ..Quoting::default() };
    let gbk = Quoting { characters: crate::quoting::Characters::Gbk, ..Quoting::default() };
    for (sql, quoting) in [
        (&br#"SELECT 1 AS "a\", GET_LOCK('x', 0) AS "b""#[..], ansi),
        (br#"SELECT "get_lock"('x', 0)"#, ansi),
        (b"SELECT '\xa8\\', GET_LOCK('x', 0)", gbk),
        (b"SELECT \xa8`, GET_LOCK('x', 0) AS `b`", gbk),
    ] {
        assert_eq!(classify(sql, quoting).effect, Effect::Hold(Reason::NamedLock), "{sql:?}");
        assert_ne!(classify(sql, Quoting::default()).effect, Effect::Hold(Reason::NamedLock), "{sql:?}");
    }
    assert_eq!(classify(br#"USE "a""b""#, ansi).effect, Effect::Use("a\"b".into()));
    let hidden = b"SELECT '\xa8\\', 'a' FOR UPDATE";
    let kinds = [Quoting::default(), gbk].map(|quoting| classify(hidden, quoting).kind);
    assert_eq!(kinds, [Kind::Select, Kind::SelectForUpdate]);
    assert!(
        matches!(classify(b"SET sql_mode = \"ANSI\"", ansi).effect, Effect::Set(setting) if setting.is_constant())
    );
}

#[test]
fn what_is_plain_is_known_by_its_answer_alone() {
    let is_plain = |sql: &str| classify(sql.as_bytes(), Quoting::default()).is_plain();
    for sql in ["SELECT a FROM t", "INSERT INTO t VALUES (1)", "COMMIT", "SELECT SLEEP(1)"] {
        assert!(is_plain(sql), "{sql}");
    }
    for sql in [
        "SET @a = 1",
        "USE a",
        "SHOW PROCESSLIST",
        "SELECT ROW_COUNT()",
        "SELECT LAST_INSERT_ID()",
        "SELECT LAST_INSERT_ID(5)",
        "SELECT @@warning_count",
        "SELECT SQL_CALC_FOUND_ROWS a FROM t",
        "SELECT GET_LOCK('a', 1)",
        "SELECT f(1)",
        "INSERT INTO t VALUES (1) RETURNING a",
        "ALTER DATABASE a COLLATE b",
    ] {
        assert!(!is_plain(sql), "{sql}");
    }
}
