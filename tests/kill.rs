//! kill -9 at any moment: a SAVE ... TO DISK is kept whole or not at all, and what was answered OK is kept.
//!
//! `POINTSMAN_KILL_ROUNDS` says how often the daemon is killed (`make test-kill`: 1,000).

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use support::{Daemon, client_options, command, within};
use tempfile::TempDir;

const ROUNDS: u64 = 50;
/// One start in so many is killed before it is ready.
const KILLED_STARTS: u64 = 5;
/// Longest that a daemon may run once it has saved something, in milliseconds.
const LONGEST_RUN: u64 = 300;
const PATIENCE: Duration = Duration::from_secs(30);
/// Nothing is behind the addresses that are saved.
const ARGUMENTS: &[&str] = &["--set", "mysql-monitor_enabled=false"];

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pointsman"))
}

fn rounds() -> u64 {
    std::env::var("POINTSMAN_KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap())
}

fn admin(daemon: &Daemon) -> Conn {
    Conn::new(client_options(daemon.admin_port, "admin", "admin").read_timeout(Some(PATIENCE))).unwrap()
}

/// Rows of a table in one generation of its module: every row names the generation, and their number depends on it, so that a
/// mixture of two shows.
struct Table {
    name: &'static str,
    columns: &'static str,
    /// How many rows the smallest generation has.
    rows: u64,
    row: fn(u64) -> String,
}

impl Table {
    fn rows(&self, generation: u64) -> u64 {
        if generation == 0 { 0 } else { self.rows + generation % 37 }
    }

    fn fill(&self, admin: &mut Conn, generation: u64) -> mysql::Result<()> {
        let rows: Vec<String> =
            (1..=self.rows(generation)).map(|n| format!("({}, '{generation}')", (self.row)(n))).collect();
        admin.query_drop(format!("DELETE FROM {}", self.name))?;
        admin.query_drop(format!(
            "INSERT INTO {} ({}, comment) VALUES {}",
            self.name,
            self.columns,
            rows.join(", ")
        ))
    }

    /// The generation of the rows in a layer, which must be one, and all of it.
    fn generation(&self, admin: &mut Conn, layer: &str) -> u64 {
        let name = self.name;
        let sql = format!("SELECT comment, count(*) FROM {layer}{name} GROUP BY comment");
        let found: Vec<(String, u64)> = admin.query(sql).unwrap();
        let generation = match found.as_slice() {
            [] => 0,
            [(comment, _)] => comment.parse().unwrap(),
            several => panic!("{layer}{name} is a mixture: {several:?}"),
        };
        // Users are shown as frontend and as backend in runtime.
        let times = if layer.starts_with("runtime") && name == "mysql_users" { 2 } else { 1 };
        let count = found.first().map_or(0, |(_, count)| *count);
        assert_eq!(count, self.rows(generation) * times, "rows of {layer}{name}, generation {generation}");
        generation
    }
}

/// What one SAVE command covers.
struct Module {
    words: &'static str,
    tables: &'static [Table],
    variables: &'static [&'static str],
}

const MODULES: &[Module] = &[
    Module {
        words: "MYSQL SERVERS",
        tables: &[
            Table {
                name: "mysql_servers",
                columns: "hostgroup_id, hostname",
                rows: 80,
                row: |n| format!("{}, '192.0.2.{n}'", n % 7),
            },
            Table {
                name: "mysql_replication_hostgroups",
                columns: "writer_hostgroup, reader_hostgroup",
                rows: 5,
                row: |n| format!("{n}, {}", 1_000 + n),
            },
            Table {
                name: "mysql_hostgroup_attributes",
                columns: "hostgroup_id",
                rows: 3,
                row: |n| n.to_string(),
            },
        ],
        variables: &[],
    },
    Module {
        words: "MYSQL USERS",
        tables: &[Table {
            name: "mysql_users",
            columns: "username, password",
            rows: 120,
            row: |n| format!("'user{n}', 'secret{n}'"),
        }],
        variables: &[],
    },
    Module {
        words: "MYSQL QUERY RULES",
        tables: &[
            Table {
                name: "mysql_query_rules",
                columns: "rule_id, active, match_digest",
                rows: 90,
                row: |n| format!("{n}, 1, '^SELECT {n}'"),
            },
            Table {
                name: "mysql_query_rules_fast_routing",
                columns: "username, schemaname, destination_hostgroup",
                rows: 40,
                row: |n| format!("'user{n}', 'schema', {n}"),
            },
        ],
        variables: &[],
    },
    Module {
        words: "MYSQL VARIABLES",
        tables: &[],
        variables: &["mysql-max_transaction_idle_time", "mysql-max_transaction_time", "mysql-wait_timeout"],
    },
];

/// Where the values of variables begin, so that they are in range.
const FIRST_VALUE: u64 = 1_000_000;

impl Module {
    fn fill(&self, admin: &mut Conn, generation: u64) -> mysql::Result<()> {
        self.tables.iter().try_for_each(|table| table.fill(admin, generation))?;
        self.variables
            .iter()
            .try_for_each(|name| admin.query_drop(format!("SET {name}={}", FIRST_VALUE + generation)))
    }

    /// The generation in every layer, after a start.
    fn generation(&self, admin: &mut Conn) -> u64 {
        let mut found: Vec<u64> = Vec::new();
        for table in self.tables {
            found.extend(["disk.", "main.", "runtime_"].map(|layer| table.generation(admin, layer)));
        }
        for table in ["disk.global_variables", "main.global_variables", "runtime_global_variables"] {
            for name in self.variables {
                let sql = format!("SELECT variable_value FROM {table} WHERE variable_name = '{name}'");
                let value: Option<u64> = admin.query_first(sql).unwrap();
                // What was never saved is the default.
                found.push(value.map_or(0, |value| value.checked_sub(FIRST_VALUE).unwrap()));
            }
        }
        found.dedup();
        assert_eq!(found.len(), 1, "{}: generations {found:?}", self.words);
        found[0]
    }
}

/// How far a module has come.
#[derive(Default)]
struct Progress {
    tried: AtomicU64,
    answered: AtomicU64,
}

/// Saves one generation after the other until the daemon is gone.
fn save(module: &Module, mut admin: Conn, progress: &Progress) {
    loop {
        let next = progress.tried.load(Ordering::SeqCst) + 1;
        let saved = module.fill(&mut admin, next).and_then(|()| {
            progress.tried.store(next, Ordering::SeqCst);
            admin.query_drop(format!("SAVE {} TO DISK", module.words))
        });
        match saved {
            Ok(()) => progress.answered.store(next, Ordering::SeqCst),
            Err(Error::MySqlError(error)) => panic!("{}: {error}", module.words),
            Err(_) => return,
        }
    }
}

/// Kills a daemon at some moment of its start.
fn kill_a_start(datadir: &Path, arguments: &[&str]) {
    let mut child =
        command(program(), datadir, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(fastrand::u64(0..150)));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_daemon_has_what_was_saved_and_nothing_by_halves() {
    let rounds = rounds();
    let progress: Vec<Progress> = MODULES.iter().map(|_| Progress::default()).collect();
    let mut daemon = Daemon::start(program(), ARGUMENTS);
    // What the modules have before the first SAVE.
    let mut admin = admin(&daemon);
    for module in MODULES {
        module.fill(&mut admin, 1).unwrap();
        admin.query_drop(format!("SAVE {} TO DISK", module.words)).unwrap();
    }
    drop(admin);
    for module in &progress {
        module.tried.store(1, Ordering::SeqCst);
        module.answered.store(1, Ordering::SeqCst);
    }
    let (mut in_the_middle, mut kept_unanswered) = (0, 0);
    for round in 1..=rounds {
        let before: Vec<u64> = progress.iter().map(|module| module.answered.load(Ordering::SeqCst)).collect();
        thread::scope(|scope| {
            for (module, progress) in MODULES.iter().zip(&progress) {
                let admin = self::admin(&daemon);
                scope.spawn(move || save(module, admin, progress));
            }
            let began = within(PATIENCE, || {
                progress
                    .iter()
                    .zip(&before)
                    .any(|(module, before)| module.answered.load(Ordering::SeqCst) > *before)
            });
            assert!(began, "round {round}: nothing was saved\n{}", daemon.log());
            thread::sleep(Duration::from_millis(fastrand::u64(0..LONGEST_RUN)));
            daemon.signal(Signal::KILL);
        });
        daemon.stop(Signal::KILL).unwrap();
        if round % KILLED_STARTS == 0 {
            kill_a_start(daemon.datadir(), ARGUMENTS);
        }
        daemon = daemon.start_again(program(), ARGUMENTS);
        let mut admin = self::admin(&daemon);
        for (module, progress) in MODULES.iter().zip(&progress) {
            let (tried, answered) = (&progress.tried, &progress.answered);
            let (last, ok) = (tried.load(Ordering::SeqCst), answered.load(Ordering::SeqCst));
            let found = module.generation(&mut admin);
            assert!(
                (ok..=last).contains(&found),
                "round {round}: {} is of generation {found}; {ok} was answered, {last} was tried",
                module.words
            );
            in_the_middle += u64::from(last > ok);
            kept_unanswered += u64::from(found > ok);
            // The next one continues from what is there.
            answered.store(found, Ordering::SeqCst);
            tried.store(found, Ordering::SeqCst);
        }
        if round % 50 == 0 || round == rounds {
            let saved: u64 = progress.iter().map(|module| module.answered.load(Ordering::SeqCst)).sum();
            println!(
                "round {round} of {rounds}: about {saved} generations saved, {in_the_middle} SAVE commands were cut, \
                 {kept_unanswered} of them kept whole, the others not at all"
            );
        }
    }
    assert!(in_the_middle > 0, "no SAVE was cut in {rounds} rounds");
}

#[test]
fn a_first_start_that_was_killed_begins_anew() {
    let files = TempDir::new().unwrap();
    let file = files.path().join("p.cnf");
    let users: Vec<String> = (0..200).map(|n| format!("{{ username = \"user{n}\" }}")).collect();
    fs::write(&file, format!("mysql_users = ( {} )", users.join(", "))).unwrap();
    let arguments = ["-c", file.to_str().unwrap()];
    for _ in 0..rounds().div_ceil(10) {
        let datadir = TempDir::new().unwrap();
        for _ in 0..3 {
            kill_a_start(datadir.path(), &arguments);
        }
        let daemon = Daemon::start_in(datadir, program(), &arguments);
        let count: Option<u64> = admin(&daemon).query_first("SELECT count(*) FROM disk.mysql_users").unwrap();
        assert_eq!(count, Some(200));
    }
}
