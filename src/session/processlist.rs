//! What administrators see of sessions: the process list, users, totals.

use super::commands::Kind;
use super::registry::{Activity, Entry, Registry};
use super::state::TRANSACTION;
use crate::config::Config;
use crate::json;
use crate::pool::{Backends, Peer, StatementTexts};
use admin::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::Command;

/// Rows of stats_mysql_processlist.
pub fn processlist_rows(registry: &Registry) -> Vec<Vec<Value>> {
    let now = Instant::now();
    registry.entries().iter().map(|entry| row(entry, now)).collect()
}

fn row(entry: &Entry, now: Instant) -> Vec<Value> {
    let activity = entry.activity();
    let text = |text: &str| Value::Text(text.to_owned());
    let optional = |text: Option<String>| text.map_or(Value::Null, Value::Text);
    let peer = entry.server(&activity);
    let local = peer.map(|peer| peer.local);
    let endpoint = peer.map(|peer| &peer.endpoint);
    let info = activity.statement().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    vec![
        Value::Int(entry.thread.into()),
        Value::Int(entry.id.into()),
        text(&activity.user),
        optional(activity.schema.as_deref().map(str::to_owned)),
        Value::Text(entry.client.ip().to_string()),
        Value::Int(entry.client.port().into()),
        Value::Int(activity.hostgroup.into()),
        optional(local.map(|local| local.ip().to_string())),
        local.map_or(Value::Null, |local| Value::Int(local.port().into())),
        optional(endpoint.map(|endpoint| endpoint.host.to_string())),
        endpoint.map_or(Value::Null, |endpoint| Value::Int(endpoint.port.into())),
        text(command_name(&activity, peer)),
        Value::Int(millis(now.saturating_duration_since(activity.since))),
        optional(info),
        Value::Int(activity.status.bits().into()),
        optional(extended(&activity, peer)),
    ]
}

/// The command's name, as servers' process lists have it.
fn command_name(activity: &Activity, peer: Option<&Arc<Peer>>) -> &'static str {
    match activity.command {
        None => "Sleep",
        Some(Command::COM_QUERY) if peer.is_none() => "Connect",
        Some(Command::COM_QUERY) => "Query",
        Some(Command::COM_INIT_DB) => "Init DB",
        Some(Command::COM_FIELD_LIST) => "Field List",
        Some(Command::COM_STMT_PREPARE) => "Prepare",
        Some(Command::COM_STMT_EXECUTE) => "Execute",
        Some(Command::COM_STMT_FETCH) => "Fetch",
        Some(Command::COM_STMT_SEND_LONG_DATA) => "Long Data",
        Some(Command::COM_STMT_RESET) => "Reset stmt",
        Some(Command::COM_STMT_CLOSE) => "Close stmt",
        Some(Command::COM_CHANGE_USER) => "Change user",
        Some(Command::COM_RESET_CONNECTION) => "Reset Connection",
        Some(Command::COM_SET_OPTION) => "Set option",
        Some(Command::COM_PROCESS_KILL) => "Kill",
        Some(Command::COM_STATISTICS) => "Statistics",
        Some(Command::COM_PING) => "Ping",
        Some(Command::COM_DEPRECATED_1) => "Shutdown",
        Some(_) => "Daemon",
    }
}

/// A JSON object: the server's id of the connection in the session's hands and, between statements, why it is kept.
fn extended(activity: &Activity, peer: Option<&Arc<Peer>>) -> Option<String> {
    let peer = peer?;
    let mut held = Vec::new();
    if activity.status.intersects(TRANSACTION) {
        held.push("transaction".to_owned());
    }
    let hold = activity.hold.to_string();
    if !hold.is_empty() {
        held.push(hold);
    }
    let held = if held.is_empty() { "null".to_owned() } else { json::text(&held.join(", ")) };
    let id = json::number(peer.connection_id.into());
    Some(json::object(&[("backend_connection_id", id), ("held", held)]))
}

/// Rows of stats_mysql_users: every user who may connect, by name.
pub fn users_rows(registry: &Registry, config: &Config) -> Vec<Vec<Value>> {
    let users = config.users();
    let mut rows: Vec<_> = users.iter().map(|(name, user)| (name, user.max_connections)).collect();
    rows.sort_unstable();
    let row = |(name, most): (&String, u32)| {
        vec![Value::Text(name.clone()), Value::Int(registry.of_user(name).into()), Value::Int(most.into())]
    };
    rows.into_iter().map(row).collect()
}

/// Names and numbers of stats_mysql_global. `refused`: clients that came when there were mysql-max_connections.
pub fn global_figures(
    (registry, backends, texts): (&Registry, &Backends, &StatementTexts),
    uptime: Duration,
    refused: u64,
) -> Vec<(&'static str, u64)> {
    let Registry { counters, commands, .. } = registry;
    let pools = backends.totals();
    let statements = texts.figures();
    let frontends = registry.traffic();
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let entries = registry.entries();
    let how_many = |wanted: fn(&Activity) -> bool| {
        entries.iter().filter(|entry| wanted(&entry.activity())).count() as u64
    };
    vec![
        ("ProxySQL_Uptime", uptime.as_secs()),
        ("Active_Transactions", how_many(|activity| activity.transaction.is_some())),
        ("Client_Connections_aborted", read(&counters.aborted)),
        ("Client_Connections_connected", entries.len() as u64),
        ("Client_Connections_created", read(&counters.created)),
        ("Client_Connections_non_idle", how_many(|activity| activity.command.is_some())),
        ("Server_Connections_aborted", pools.failed),
        ("Server_Connections_connected", pools.held),
        ("Server_Connections_created", pools.opened),
        ("Server_Connections_delayed", pools.delayed),
        ("Com_autocommit", read(&counters.autocommits)),
        ("Com_commit", commands.of_kind(Kind::Commit)),
        ("Com_rollback", commands.of_kind(Kind::Rollback)),
        ("Com_backend_init_db", pools.done.schemas),
        ("Com_backend_stmt_close", pools.done.statements_closed),
        ("Com_backend_stmt_execute", pools.done.executed),
        ("Com_backend_stmt_prepare", pools.done.prepared),
        ("Com_frontend_init_db", commands.of_command(Command::COM_INIT_DB)),
        ("Com_frontend_set_names", read(&counters.set_names)),
        ("Com_frontend_stmt_close", commands.of_command(Command::COM_STMT_CLOSE)),
        ("Com_frontend_stmt_execute", commands.of_command(Command::COM_STMT_EXECUTE)),
        ("Com_frontend_stmt_prepare", commands.of_command(Command::COM_STMT_PREPARE)),
        ("Com_frontend_use_db", commands.of_kind(Kind::Use)),
        ("Questions", registry.questions()),
        ("Slow_queries", read(&counters.slow)),
        ("Queries_backends_bytes_recv", pools.received),
        ("Queries_backends_bytes_sent", pools.sent),
        ("Queries_frontends_bytes_recv", frontends.received),
        ("Queries_frontends_bytes_sent", frontends.sent),
        ("ConnPool_get_conn_failure", pools.refused),
        ("ConnPool_get_conn_immediate", pools.reclaimed),
        ("ConnPool_get_conn_success", pools.asked - pools.refused),
        ("MyHGM_myconnpoll_destroy", pools.done.closed),
        ("MyHGM_myconnpoll_get", pools.asked),
        ("MyHGM_myconnpoll_get_ok", pools.found),
        ("MyHGM_myconnpoll_push", pools.returned),
        ("MyHGM_myconnpoll_reset", pools.done.resets),
        ("Stmt_Cached", statements.texts),
        ("Stmt_Client_Active_Total", statements.of_clients),
        ("Stmt_Client_Active_Unique", statements.texts),
        ("Stmt_Max_Stmt_id", statements.last_id),
        ("Stmt_Server_Active_Total", statements.of_servers),
        ("Stmt_Server_Active_Unique", statements.texts_of_servers),
        ("mysql_killed_backend_connections", read(&counters.killed_connections)),
        ("mysql_killed_backend_queries", read(&counters.killed_queries)),
        ("mysql_unexpected_frontend_packets", read(&counters.unexpected_packets)),
        ("backend_offline_during_query", read(&counters.offline)),
        ("max_connect_timeouts", read(&counters.connect_timeouts)),
        ("generated_error_packets", read(&counters.own_errors)),
        // A thread for each client, where ProxySQL has mysql-threads of them. dolphie shows no page without it.
        ("MySQL_Thread_Workers", entries.len() as u64),
        ("client_host_error_killed_connections", read(&counters.blocked)),
        ("Access_Denied_Wrong_Password", read(&counters.refused_passwords)),
        ("Access_Denied_Max_Connections", refused),
        ("Access_Denied_Max_User_Connections", read(&counters.refused_users)),
    ]
}

/// The text of COM_STATISTICS, as a server words it: MariaDB has no "Flush tables". What a proxy does not have is 0.
pub fn statistics(registry: &Registry, uptime: Duration, mariadb: bool) -> String {
    let flushes = if mariadb { "" } else { "Flush tables: 0  " };
    let questions = registry.questions();
    let slow = registry.counters.slow.load(Ordering::Relaxed);
    let average = questions as f64 / uptime.as_secs_f64().max(1.0);
    format!(
        "Uptime: {}  Threads: {}  Questions: {questions}  Slow queries: {slow}  Opens: 0  {flushes}\
         Open tables: 0  Queries per second avg: {average:.3}",
        uptime.as_secs(),
        registry.sessions()
    )
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
