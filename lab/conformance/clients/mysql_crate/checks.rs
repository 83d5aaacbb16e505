//! The checks that only this client has.

use std::io::Write;

use mysql::prelude::Queryable;
use mysql::{
    AccessMode, ChangeUserOpts, Compression, Conn, Error, IsolationLevel, LocalInfileHandler, OptsBuilder,
    TxOpts, Value,
};
use serde_json::{Value as Json, json};

use crate::outcome::{of_error, of_result};
use crate::{Context, Session};

type Check = fn(&mut Context<'_>) -> Json;

pub const ALL: &[(&str, Check)] = &[
    ("crate.login", login),
    ("crate.login_refused", login_refused),
    ("crate.login_tls", login_tls),
    ("crate.compression", compression),
    ("crate.ping_and_select_db", ping_and_select_db),
    ("crate.change_user", change_user),
    ("crate.reset", reset),
    ("crate.transactions", transactions),
    ("crate.statement_cache", statement_cache),
    ("crate.batch", batch),
    ("crate.local_infile", local_infile),
    ("crate.session_states", session_states),
    ("crate.large_parameters", large_parameters),
    ("crate.results_left_unread", results_left_unread),
];

fn done<T>(result: Result<T, Error>) -> Json {
    result.map_or_else(|error| of_error(&error), |_| json!("done"))
}

fn login(context: &mut Context<'_>) -> Json {
    let mut session = context.connect();
    let id: u64 = session.conn.query_first("SELECT CONNECTION_ID()").unwrap().unwrap();
    let same = id == u64::from(session.conn.connection_id());
    context.take_free_connections();
    let id: u64 = session.conn.query_first("SELECT CONNECTION_ID()").unwrap().unwrap();
    let again = id == u64::from(session.conn.connection_id());
    json!([session.conn.server_version(), same, again])
}

fn login_refused(context: &mut Context<'_>) -> Json {
    let attempt = |options: OptsBuilder| done(Conn::new(options));
    json!([
        attempt(context.options().pass(Some("wrong"))),
        json!(Conn::new(context.options().user(Some("nobody_like_this"))).is_err()), // by any plugin
        attempt(context.options().db_name(Some("no_such_schema"))),
        attempt(context.options().user(Some("conf_empty")).pass(None::<String>).db_name(None::<String>)),
    ])
}

fn login_tls(context: &mut Context<'_>) -> Json {
    let mut session = Session::new(Conn::new(context.tls_options()).unwrap());
    json!([session.run("SELECT DATABASE()"), session.run("SELECT REPEAT('x', 100000)")])
}

fn compression(context: &mut Context<'_>) -> Json {
    let mut session =
        Session::new(Conn::new(context.options().compress(Some(Compression::default()))).unwrap());
    json!([
        session.run("SELECT 'short'"),
        session.run("SELECT REPEAT('x', 1000000)"),
        session.run(&format!("SELECT LENGTH('{}')", "y".repeat(3_000_000))),
        session.prepared("SELECT ?", vec![Value::Int(1)]),
        session.run("SELECT * FROM nothing_here"),
    ])
}

fn ping_and_select_db(context: &mut Context<'_>) -> Json {
    let mut session = context.connect();
    let mut answers = vec![done(session.conn.ping()), done(session.conn.select_db("information_schema"))];
    context.take_free_connections();
    answers.push(session.run("SELECT DATABASE()"));
    answers.push(done(session.conn.select_db("no_such_schema")));
    answers.push(session.run("SELECT DATABASE()"));
    Json::Array(answers)
}

fn change_user(context: &mut Context<'_>) -> Json {
    let mut session = context.connect();
    session.run("SET @a = 1, time_zone = '+03:00'");
    let other = ChangeUserOpts::new()
        .with_user(Some("conf_other".to_owned()))
        .with_pass(Some(context.password("conf_other").to_owned()))
        .with_db_name(Some("information_schema".to_owned()));
    let mut answers = vec![done(session.conn.change_user(other))];
    answers.push(session.run("SELECT CURRENT_USER(), DATABASE(), @a, @@time_zone"));
    context.take_free_connections();
    answers.push(session.run("SELECT CURRENT_USER(), DATABASE()"));
    let wrong = ChangeUserOpts::new().with_user(Some("conf".to_owned())).with_pass(Some("wrong".to_owned()));
    answers.push(done(session.conn.change_user(wrong)));
    Json::Array(answers)
}

fn reset(context: &mut Context<'_>) -> Json {
    let mut session = context.connect();
    session.run("SET @a = 1, time_zone = '+03:00'");
    session.run("CREATE TEMPORARY TABLE crate_reset (a INT)");
    let mut answers = vec![done(session.conn.reset())];
    answers.push(session.run("SELECT @a, @@time_zone, DATABASE()"));
    answers.push(session.run("SELECT * FROM crate_reset"));
    Json::Array(answers)
}

fn transactions(context: &mut Context<'_>) -> Json {
    let mut session = context.connect();
    session.run("CREATE TABLE crate_transactions (a INT PRIMARY KEY) ENGINE=InnoDB");
    let options = TxOpts::default()
        .set_isolation_level(Some(IsolationLevel::ReadCommitted))
        .set_access_mode(Some(AccessMode::ReadWrite));
    let mut transaction = session.conn.start_transaction(options).unwrap();
    transaction.query_drop("INSERT INTO crate_transactions VALUES (1)").unwrap();
    context.take_free_connections();
    transaction.query_drop("INSERT INTO crate_transactions VALUES (2)").unwrap();
    transaction.commit().unwrap();
    let mut transaction = session.conn.start_transaction(TxOpts::default()).unwrap();
    transaction.query_drop("DELETE FROM crate_transactions").unwrap();
    drop(transaction); // rolls back
    session.run("SELECT * FROM crate_transactions ORDER BY a")
}

/// A small cache closes statements and prepares them again.
fn statement_cache(context: &mut Context<'_>) -> Json {
    let mut conn = Conn::new(context.options().stmt_cache_size(3)).unwrap();
    let mut answers = Vec::new();
    for turn in 0..30 {
        let result = conn.exec_iter(format!("SELECT {}, ?", turn % 7), (turn,));
        answers.push(result.map_or_else(|error| of_error(&error), of_result));
        if turn % 10 == 5 {
            context.take_free_connections();
        }
    }
    Json::Array(answers)
}

fn batch(context: &mut Context<'_>) -> Json {
    let mut session = context.connect();
    session.run("CREATE TABLE crate_batch (a INT PRIMARY KEY, b VARCHAR(20))");
    let rows = (0..200).map(|number| (number, format!("row {number}")));
    let inserted = done(session.conn.exec_batch("INSERT INTO crate_batch VALUES (?, ?)", rows));
    let again =
        done(session.conn.exec_batch("INSERT INTO crate_batch VALUES (?, ?)", [(500, "new"), (1, "there")]));
    json!([inserted, again, session.run("SELECT COUNT(*), MAX(b) FROM crate_batch")])
}

fn local_infile(context: &mut Context<'_>) -> Json {
    let handler = LocalInfileHandler::new(|name, stream| {
        if name == b"fails" {
            return Err(std::io::Error::other("the client has no such file"));
        }
        (0..50_000).try_for_each(|number| writeln!(stream, "{number}\tline"))
    });
    let mut session = Session::new(Conn::new(context.options().local_infile_handler(Some(handler))).unwrap());
    session.run("CREATE TABLE crate_infile (a INT, b VARCHAR(20))");
    json!([
        session.run("LOAD DATA LOCAL INFILE 'made' INTO TABLE crate_infile"),
        session.run("SELECT COUNT(*), SUM(a) FROM crate_infile"),
        session.run("LOAD DATA LOCAL INFILE 'made' INTO TABLE nothing_here"),
        session.run("SELECT 'goes on'"),
    ])
}

fn session_states(context: &mut Context<'_>) -> Json {
    let mut session = context.connect();
    let mut answers = Vec::new();
    for sql in [
        "DO 1",
        "SET time_zone = '+01:00'",
        "USE information_schema",
        "SET autocommit = 0",
        "SET NAMES latin1",
    ] {
        session.conn.query_drop(sql).unwrap();
        answers.push(
            session.conn.session_state_changes().map_or_else(|error| error.to_string(), |s| format!("{s:?}")),
        );
        context.take_free_connections();
    }
    json!(answers)
}

/// The crate sends what is longer than a packet as long data.
fn large_parameters(context: &mut Context<'_>) -> Json {
    let mut session = context.connect();
    let mut answers = Vec::new();
    for size in [0, 1, 250, 251, 65_535, 65_536, 5_000_000, 17_825_792] {
        answers.push(
            session.prepared("SELECT LENGTH(?), MD5(?)", vec![Value::Bytes(vec![b'x'; size]), Value::Int(5)]),
        );
    }
    Json::Array(answers)
}

fn results_left_unread(context: &mut Context<'_>) -> Json {
    let mut session = context.connect();
    let sql = "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3; SELECT 4; DO 1";
    let mut result = session.conn.query_iter(sql).unwrap();
    let first: Option<u64> =
        result.iter().and_then(|mut set| set.next()).map(|row| row.unwrap().get(0).unwrap());
    drop(result);
    json!([first, session.run("SELECT 'goes on'")])
}
