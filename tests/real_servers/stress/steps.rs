//! What a session does at random. Each step checks what it can of its answers.

use std::time::{Duration, Instant};

use mysql::Error;
use mysql::prelude::Queryable;

use super::model::{SHOW, Settings};
use super::session::{Session, connect};

pub type Step = fn(&mut Session);

/// Steps after which any connection will do; without autocommit some begin a transaction all the same.
pub const FREE: &[Step] = &[
    set_time_zone,
    set_names,
    set_number,
    set_sql_mode,
    set_autocommit,
    change_schema,
    settings,
    own_row,
    transaction,
    insert,
    last_insert_id,
    warnings,
    error,
    counted,
    several_results,
    killed,
];

/// Steps after which the session must keep its connection.
pub const BINDING: &[Step] = &[
    user_variable,
    temporary_table,
    named_lock,
    named_statement,
    own_row,
    open_transaction,
    commit,
    roll_back,
];

/// For so long a connection certainly stays with what a statement left on it. Beyond that it depends on the machine.
const SOON: Duration = Duration::from_millis(500);

fn set_time_zone(session: &mut Session) {
    let zone = session.random.choice(["+01:00", "-03:30", "+09:00"]).unwrap();
    session.run(&format!("SET time_zone='{zone}'"));
    session.model.settings.time_zone = zone.to_owned();
}

fn set_names(session: &mut Session) {
    let (names, collation) = session
        .random
        .choice([
            ("latin1", "latin1_swedish_ci"),
            ("utf8mb4 COLLATE utf8mb4_bin", "utf8mb4_bin"),
            ("latin1 COLLATE latin1_bin", "latin1_bin"),
        ])
        .unwrap();
    session.run(&format!("SET NAMES {names}"));
    session.model.settings.collation = collation.to_owned();
}

fn set_number(session: &mut Session) {
    let number = session.random.u32(1_000..9_000).to_string();
    session.run(&format!("SET SESSION group_concat_max_len={number}"));
    session.model.settings.group_concat_max_len = number;
}

fn set_sql_mode(session: &mut Session) {
    let mode = session.random.choice(["", "NO_ZERO_DATE", "PIPES_AS_CONCAT"]).unwrap();
    session.run(&format!("SET sql_mode='{mode}'"));
    session.model.settings.sql_mode = mode.to_owned();
}

fn set_autocommit(session: &mut Session) {
    let to = session.random.choice(["0", "1"]).unwrap();
    session.run(&format!("SET autocommit={to}"));
    if to == "1" && session.model.settings.autocommit == "0" {
        session.model.commit();
    }
    session.model.settings.autocommit = to.to_owned();
}

fn change_schema(session: &mut Session) {
    let schema = session.random.choice(["app", "information_schema"]).unwrap();
    session.note(&format!("COM_INIT_DB {schema}"));
    session.conn.select_db(schema).unwrap();
    session.model.settings.schema = schema.to_owned();
}

pub fn settings(session: &mut Session) {
    // A prepared statement stays in the schema that it was prepared in.
    let sql = format!("{SHOW} /* {} */", session.model.settings.schema);
    let row: (String, String, String, String, String, String) = session.row(&sql);
    assert_eq!(Settings::from(row), session.model.settings);
}

fn own_row(session: &mut Session) {
    if session.random.bool() {
        let value = session.random.u32(..);
        session.run(&format!("UPDATE app.stress SET v={value} WHERE id={}", session.number));
        session.model.set_value(value);
    }
    let sql = format!("SELECT v FROM app.stress WHERE id={}", session.number);
    let value: u32 = session.row(&sql);
    session.model.touch();
    assert_eq!(value, session.model.value);
}

fn open_transaction(session: &mut Session) {
    session.run("BEGIN");
    session.model.commit();
    session.model.in_transaction = true;
}

fn commit(session: &mut Session) {
    session.run("COMMIT");
    session.model.commit();
}

fn roll_back(session: &mut Session) {
    session.run("ROLLBACK");
    session.model.roll_back();
}

fn transaction(session: &mut Session) {
    open_transaction(session);
    own_row(session);
    last_insert_id(session);
    if session.random.bool() { commit(session) } else { roll_back(session) }
}

fn insert(session: &mut Session) {
    let rows = session.random.usize(1..4);
    let values = vec![format!("({})", session.number); rows].join(",");
    session.run(&format!("INSERT INTO app.stress_ids (tag) VALUES {values}"));
    session.model.touch();
    assert_eq!(session.conn.affected_rows(), rows as u64);
    session.model.insert_id = session.conn.last_insert_id();
    let tag: u32 = session.row("SELECT tag FROM app.stress_ids WHERE id=LAST_INSERT_ID()");
    assert_eq!(tag, session.number);
}

fn last_insert_id(session: &mut Session) {
    let id: u64 = session.row("SELECT LAST_INSERT_ID()");
    assert_eq!(id, session.model.insert_id);
}

fn warnings(session: &mut Session) {
    let begun = Instant::now();
    session.run(&format!("SELECT CAST('{}x' AS SIGNED)", session.number));
    assert_eq!(session.conn.warnings(), 1);
    diagnostics(session, begun, &format!("'{}x'", session.number));
}

fn error(session: &mut Session) {
    let begun = Instant::now();
    let missing = format!("missing_{}", session.number);
    let code = session.code(&format!("SELECT * FROM app.{missing}"));
    session.model.touch();
    assert_eq!(code, 1146);
    diagnostics(session, begun, &missing);
}

/// What the statement that began then complained of.
fn diagnostics(session: &mut Session, begun: Instant, of: &str) {
    session.note("SHOW WARNINGS");
    let rows: Vec<(String, u32, String)> = session.conn.query("SHOW WARNINGS").unwrap();
    match &rows[..] {
        [(_, _, text)] => assert!(text.contains(of), "{text}, not of {of}"),
        [] => assert!(begun.elapsed() > SOON, "nothing is left of {of}"),
        more => panic!("{more:?}"),
    }
}

fn counted(session: &mut Session) {
    let rows = session.random.usize(1..6);
    session.run(&vec!["SELECT 1"; rows].join(" UNION ALL "));
    session.note("SELECT FOUND_ROWS()");
    let found: Option<usize> = session.conn.query_first("SELECT FOUND_ROWS()").unwrap();
    assert_eq!(found, Some(rows));
}

fn several_results(session: &mut Session) {
    let sql = format!("SELECT {0}; SELECT @@time_zone, {0}", session.number);
    session.note(&sql);
    let mut results = session.conn.query_iter(&sql).unwrap();
    let first: Vec<u32> = results.iter().unwrap().map(|row| mysql::from_row(row.unwrap())).collect();
    let second: Vec<(String, u32)> =
        results.iter().unwrap().map(|row| mysql::from_row(row.unwrap())).collect();
    drop(results);
    assert_eq!(first, [session.number]);
    assert_eq!(second, [(session.model.settings.time_zone.clone(), session.number)]);
}

/// KILL QUERY at any moment: it ends this statement or none.
fn killed(session: &mut Session) {
    let id = session.conn.connection_id();
    let pause = Duration::from_millis(session.random.u64(..20));
    let mut killer = connect(session.lab, session.route);
    session.note("SLEEP(), and KILL QUERY");
    let slept = std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(pause);
            killer.query_drop(format!("KILL QUERY {id}")).unwrap();
        });
        session.conn.query_first::<String, _>("SELECT 'slept' FROM (SELECT SLEEP(0.01)) t")
    });
    match slept {
        Ok(row) => assert_eq!(row.as_deref(), Some("slept")),
        Err(Error::MySqlError(error)) => assert_eq!(error.code, 1317, "{error}"),
        Err(error) => panic!("{error}"),
    }
    session.model.touch();
}

fn user_variable(session: &mut Session) {
    if session.random.bool() {
        let value = session.random.u32(..);
        session.run(&format!("SET @stress={value}"));
        session.model.variable = Some(value);
    }
    let value: Option<u32> = session.row("SELECT @stress");
    assert_eq!(value, session.model.variable);
}

fn temporary_table(session: &mut Session) {
    const COUNT: &str = "SELECT COUNT(*) FROM app.stress_temporary";
    match session.model.temporary {
        None => {
            assert_eq!(session.code(COUNT), 1146);
            session.model.touch();
            // Its rows are no part of transactions.
            session.run("CREATE TEMPORARY TABLE app.stress_temporary (a INT) ENGINE=MyISAM");
            session.model.temporary = Some(0);
        }
        Some(rows) => {
            session.run("INSERT INTO app.stress_temporary VALUES (1)");
            assert_eq!(session.row::<u32>(COUNT), rows + 1);
            session.model.temporary = Some(rows + 1);
            session.model.touch();
        }
    }
}

/// The lock of an earlier life is free, soon at least.
fn named_lock(session: &mut Session) {
    let name = format!("stress_{}", session.number);
    if session.model.has_lock {
        assert_eq!(session.row::<u8>(&format!("SELECT IS_FREE_LOCK('{name}')")), 0);
    } else {
        assert_eq!(session.row::<u8>(&format!("SELECT GET_LOCK('{name}', 30)")), 1);
        session.model.has_lock = true;
    }
}

fn named_statement(session: &mut Session) {
    if session.random.bool() {
        let answer = session.random.u32(..);
        session.run(&format!("PREPARE stress FROM 'SELECT {answer}'"));
        session.model.named = Some(answer);
    }
    match session.model.named {
        Some(answer) => {
            session.note("EXECUTE stress");
            assert_eq!(session.conn.query_first::<u32, _>("EXECUTE stress").unwrap(), Some(answer));
        }
        None => assert_eq!(session.code("EXECUTE stress"), 1243),
    }
}
