//! Traffic through pointsman to a real MySQL 9.7 and a real MariaDB, compared with the same traffic without it.
//!
//! The servers come from `lab/install-servers.sh`. Where they are missing the test says so and passes, unless
//! POINTSMAN_REQUIRE_REAL_SERVERS=1. POINTSMAN_CHECK=TEXT runs those checks alone that have it in their names. The simulator flavour cannot watch real servers, so it has no such test.
#![cfg(not(feature = "test-rds-bgd"))]
// A step that fails is a test that fails.
#![allow(clippy::unwrap_used)]

mod capabilities;
mod compression;
mod connections;
#[allow(dead_code)] // it serves others, too
#[path = "../support/daemon.rs"]
mod daemon;
mod limits;
mod monitor;
mod passwords;
mod relay;
mod results;
mod rules;
mod servers;
mod setup;
mod state;
mod statements;
mod stress;
mod tls;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use setup::Lab;

type Check = (&'static str, fn(&Lab));

/// One start of the servers and the daemon serves all of these, in this order: the first needs accounts that nobody has
/// used yet.
const CHECKS: &[Check] = &[
    ("first login of an account, with and without TLS", connections::first_login),
    ("full authentication again after the server forgot the account", connections::forgotten_account),
    ("a wrong password is refused with 1045", connections::wrong_password),
    ("TLS to the server where use_ssl says so", connections::tls_to_the_server),
    ("TLS as mysql_servers_ssl_params says", tls::parameters),
    ("a $A$ hash, which teaches the daemon the password", passwords::sha_crypt_hash),
    ("a *SHA1 hash and a server that takes it", passwords::native_hash_to_mariadb),
    ("a *SHA1 hash and a server that does not", passwords::native_hash_to_mysql),
    ("a client without TLS where use_ssl says so", passwords::tls_demanded_of_the_client),
    ("a login into a schema that the server refuses", passwords::schema_that_is_refused),
    ("how the status of the client's connection is described", connections::own_status),
    ("the next client gets the pooled connection", connections::pooled_connection),
    ("KILL QUERY ends a statement on its server", limits::kill_query),
    ("KILL CONNECTION ends a session and its statement", limits::kill_connection),
    ("whom a client may kill", limits::whom_to_kill),
    ("a statement over its time is killed", limits::statement_time_limit),
    ("a transaction that is left open is rolled back", limits::idle_limit_of_a_transaction),
    ("the statement of a client that vanished is killed", limits::vanished_client),
    ("a user's max_connections", limits::limit_of_a_user),
    ("ids in a server's process list", limits::ids_in_a_process_list),
    ("the process list says why a connection is kept", limits::process_list),
    ("replicas that are late", monitor::replication_lag),
    ("settings follow their session", state::settings_follow_their_session),
    ("a reset while all connections are taken", state::reset_while_all_is_taken),
    ("collations of any id", state::collations),
    ("schemas, however chosen", state::schemas),
    ("locks without autocommit", state::locks_without_autocommit),
    ("nothing is left for the next session", state::nothing_is_left),
    ("what functions leave is their session's", state::what_functions_leave),
    ("what triggers and views leave is their session's", state::what_triggers_and_views_leave),
    ("a schema that is changed", state::schema_that_is_changed),
    ("errors without autocommit", state::errors_without_autocommit),
    ("a schema that is gone", state::schema_that_is_gone),
    ("what is set for one statement or for all sessions", state::set_for_others),
    ("a server without autocommit", state::no_autocommit_for_anybody),
    ("ids of other sessions", state::ids_of_other_sessions),
    ("a prepared XA transaction", state::prepared_xa),
    ("a connection that kills itself", state::kill_oneself),
    ("COMMIT RELEASE", state::commit_and_release),
    ("what the last statement left", state::what_the_last_statement_left),
    ("warnings and errors after another session", state::complaints_after_a_move),
    ("reads to one server, writes to another", rules::read_write_split),
    ("prepared statements of sessions that take turns", statements::taking_turns),
    ("how many statements a server has", statements::counts),
    ("parameters in pieces, and cursors", statements::pieces_and_cursors),
    ("procedures with OUT parameters", statements::procedures),
    ("files of the client", statements::files),
    ("changes of user", statements::changes_of_user),
    ("many sessions at random on few connections", stress::sessions_at_random),
    ("every column type", results::column_types),
    ("statements that return no rows", results::statements_without_rows),
    ("errors, also in the middle of a result", results::errors),
    ("several results of one statement", results::several_results),
    ("a result of 5 MB", results::five_megabytes),
    ("packets at the 16 MiB limit, both ways", results::packet_limit),
    ("a value of 20 MB, both ways", results::twenty_megabytes),
    ("memory stays bounded while a large result streams", results::bounded_memory),
    ("every mix of DEPRECATE_EOF and SESSION_TRACK", capabilities::every_mix),
    ("the command-line clients", results::command_line_clients),
    ("connections to servers are compressed where their rows say so", compression::connections_to_servers),
    ("the command-line clients, compressing", compression::command_line_clients),
    ("the command-line clients on the admin port", results::command_line_clients_on_the_admin_port),
];

#[test]
fn real_servers() {
    let Some(lab) = Lab::start() else { return };
    let mut failed = Vec::new();
    let wanted = std::env::var("POINTSMAN_CHECK").unwrap_or_default();
    for (name, check) in CHECKS.iter().filter(|(name, _)| name.contains(&wanted)) {
        let passed = catch_unwind(AssertUnwindSafe(|| check(&lab))).is_ok();
        tell(&format!("{name} ... {}", if passed { "ok" } else { "FAILED" }));
        if !passed {
            failed.push(*name);
        }
    }
    let log = lab.stop();
    assert!(failed.is_empty(), "failed: {failed:?}\nthe daemon's log:\n{log}");
}

/// Written past the test harness, which hides what a passing test prints.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "real servers: {line}");
}
