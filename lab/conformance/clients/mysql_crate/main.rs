//! The `mysql` crate as a client of the conformance program: `conformance CONFIG.json` runs the checks that the runner
//! wrote there and prints a line of JSON for each.
#![allow(clippy::unwrap_used)] // a check that cannot go on is a broken check: the runner says so

mod checks;
mod outcome;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, SslOpts, Statement, Value};
use serde_json::{Value as Json, json};

/// Sessions that keep free server connections busy, so that a session must go on on another one.
const MOVERS: usize = 3;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const IO_TIMEOUT: Duration = Duration::from_secs(40);

/// One check's way to the server.
pub struct Context<'a> {
    config: &'a Json,
    user: String,
    database: Option<String>,
    named: HashMap<String, Session>,
    movers: Vec<Conn>,
}

/// A connection and the statements that were prepared on it.
pub struct Session {
    /// The crate's own connection.
    pub conn: Conn,
    statements: HashMap<String, Statement>,
}

impl<'a> Context<'a> {
    fn new(config: &'a Json, options: &Json) -> Self {
        let text = |name: &str| options[name].as_str().map(str::to_owned);
        let database = text("database").or_else(|| config["schema"].as_str().map(str::to_owned));
        Self {
            config,
            user: text("user").unwrap_or_else(|| "conf".to_owned()),
            database: database.filter(|name| name != "-"),
            named: HashMap::new(),
            movers: Vec::new(),
        }
    }

    /// What a connection of this check is opened with.
    pub fn options(&self) -> OptsBuilder {
        OptsBuilder::from_opts(Opts::default())
            .ip_or_hostname(self.config["host"].as_str())
            .tcp_port(u16::try_from(self.config["port"].as_u64().unwrap()).unwrap())
            .prefer_socket(false)
            .user(Some(&self.user))
            .pass(Some(self.password(&self.user)))
            .db_name(self.database.as_deref())
            .tcp_connect_timeout(Some(CONNECT_TIMEOUT))
            .read_timeout(Some(IO_TIMEOUT))
            .write_timeout(Some(IO_TIMEOUT))
            .additional_capabilities(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    }

    /// The same over TLS, with whatever certificate there is.
    pub fn tls_options(&self) -> OptsBuilder {
        let unchecked = SslOpts::default().with_danger_accept_invalid_certs(true);
        self.options().ssl_opts(unchecked.with_danger_skip_domain_validation(true))
    }

    /// The password of one of the accounts; empty where it has none.
    pub fn password(&self, user: &str) -> &'a str {
        self.config["passwords"][user].as_str().unwrap_or("")
    }

    /// A connection as [`Self::options`] says.
    pub fn connect(&self) -> Session {
        Session::new(Conn::new(self.options()).unwrap())
    }

    /// Other sessions of the same user take the server connections that are free.
    pub fn take_free_connections(&mut self) {
        for _ in 0..MOVERS {
            let mut conn = Conn::new(self.options()).unwrap();
            conn.query_drop("BEGIN").unwrap();
            conn.query_drop("SELECT 1").unwrap();
            self.movers.push(conn);
        }
    }

    fn on(&mut self, name: &str) -> &mut Session {
        if !self.named.contains_key(name) {
            let session = self.connect();
            self.named.insert(name.to_owned(), session);
        }
        self.named.get_mut(name).unwrap()
    }

    fn run_script(&mut self, steps: &[Json]) -> Json {
        let mut outcomes = Vec::new();
        for step in steps {
            if step["kind"] == "move" {
                self.take_free_connections();
                continue;
            }
            let session = self.on(step["on"].as_str().unwrap());
            let sql = step["sql"].as_str().unwrap();
            outcomes.push(match step["params"].as_array() {
                Some(params) => session.prepared(sql, params.iter().map(parameter).collect()),
                None => session.run(sql),
            });
        }
        Json::Array(outcomes)
    }
}

impl Session {
    /// A connection on which nothing is prepared yet.
    pub fn new(conn: Conn) -> Self {
        Self { conn, statements: HashMap::new() }
    }

    /// The outcome of a text statement: its result sets, the last of which may be an error.
    pub fn run(&mut self, sql: &str) -> Json {
        match self.conn.query_iter(sql) {
            Ok(result) => outcome::of_result(result),
            Err(error) => json!([outcome::of_error(&error)]),
        }
    }

    /// The same of a prepared statement, which is prepared once for each connection.
    pub fn prepared(&mut self, sql: &str, params: Vec<Value>) -> Json {
        if !self.statements.contains_key(sql) {
            match self.conn.prep(sql) {
                Ok(statement) => self.statements.insert(sql.to_owned(), statement),
                Err(error) => return json!([outcome::of_error(&error)]),
            };
        }
        let statement = &self.statements[sql];
        let described = json!({
            "parameters": statement.params().iter().map(outcome::of_column).collect::<Vec<_>>(),
            "columns": statement.columns().iter().map(outcome::of_column).collect::<Vec<_>>(),
        });
        let result = match self.conn.exec_iter(statement, params) {
            Ok(result) => outcome::of_result(result),
            Err(error) => json!([outcome::of_error(&error)]),
        };
        json!([described, result])
    }
}

fn parameter(value: &Json) -> Value {
    match value {
        Json::Null => Value::NULL,
        Json::Bool(truth) => Value::from(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(signed), _) => Value::Int(signed),
            (None, Some(unsigned)) => Value::UInt(unsigned),
            (None, None) => Value::Double(number.as_f64().unwrap()),
        },
        Json::String(text) => {
            Value::Bytes(text.strip_prefix("hex:").map_or_else(|| text.clone().into_bytes(), from_hex))
        }
        other => panic!("no parameter: {other}"),
    }
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Prints what `run` returns, or that it failed, which makes a broken check.
fn guarded(name: &str, run: impl FnOnce() -> Json) {
    let line = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => json!({ "check": name, "result": result }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            json!({ "check": name, "broken": text.unwrap_or_default(), "where": "" })
        }
    };
    println!("{line}");
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: conformance CONFIG.json");
    let config: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for script in config["scripts"].as_array().unwrap() {
        let name = script["name"].as_str().unwrap();
        if script["options"]["charset"].is_string() {
            continue; // the crate speaks utf8mb4 only
        }
        let mut context = Context::new(&config, &script["options"]);
        guarded(name, || context.run_script(script["steps"].as_array().unwrap()));
    }
    for (name, check) in checks::ALL {
        let possible = *name != "crate.login_tls" || config["server"] == "mysql"; // the MariaDB has no TLS
        if possible && name.contains(config["only"].as_str().unwrap()) {
            let mut context = Context::new(&config, &json!({}));
            guarded(name, || check(&mut context));
        }
    }
}
