//! runtime_ tables that show what was published last: variables, users and peers.

use crate::rows::{ProxysqlServerRow, UserRow};
use crate::variables::registry::VARIABLES;
use crate::{LiveTable, Schema, Value, Variables, ddl};
use parking_lot::Mutex;
use std::sync::Arc;

/// What is in force, as far as this crate published it.
#[derive(Default)]
pub(crate) struct PublishedState {
    /// `None` before the first LOAD.
    pub variables: Option<Variables>,
    pub users: Vec<UserRow>,
    pub proxysql_servers: Vec<ProxysqlServerRow>,
}

/// The live tables over that state.
pub(crate) fn tables(published: &Arc<Mutex<PublishedState>>) -> [LiveTable; 3] {
    let (of_variables, of_users, of_peers) =
        (Arc::clone(published), Arc::clone(published), Arc::clone(published));
    [
        LiveTable {
            name: "runtime_global_variables",
            schema: Schema::Main,
            ddl: ddl::RUNTIME_GLOBAL_VARIABLES,
            rows: Arc::new(move || {
                let published = of_variables.lock();
                let variables = published.variables.iter();
                variables.flat_map(variable_rows).collect()
            }),
        },
        LiveTable {
            name: "runtime_mysql_users",
            schema: Schema::Main,
            ddl: ddl::RUNTIME_MYSQL_USERS,
            rows: Arc::new(move || user_rows(&of_users.lock().users)),
        },
        LiveTable {
            name: "runtime_proxysql_servers",
            schema: Schema::Main,
            ddl: ddl::RUNTIME_PROXYSQL_SERVERS,
            rows: Arc::new(move || {
                of_peers.lock().proxysql_servers.iter().map(ProxysqlServerRow::values).collect()
            }),
        },
    ]
}

fn variable_rows(variables: &Variables) -> impl Iterator<Item = Vec<Value>> {
    VARIABLES.iter().map(|var| vec![var.name.into(), var.show(variables).into()])
}

/// Active users only, each role of a user as a row of its own.
fn user_rows(users: &[UserRow]) -> Vec<Vec<Value>> {
    let active = users.iter().filter(|user| user.active);
    let split = active.flat_map(|user| {
        let roles = [(false, true, user.frontend), (true, false, user.backend)];
        roles
            .into_iter()
            .filter(|(_, _, has)| *has)
            .map(|(backend, frontend, _)| user_row(user, backend, frontend))
    });
    split.collect()
}

fn user_row(user: &UserRow, backend: bool, frontend: bool) -> Vec<Value> {
    vec![
        user.username.as_str().into(),
        user.password.as_str().into(),
        user.active.into(),
        user.use_ssl.into(),
        user.default_hostgroup.into(),
        user.default_schema.as_deref().into(),
        user.schema_locked.into(),
        user.transaction_persistent.into(),
        user.fast_forward.into(),
        backend.into(),
        frontend.into(),
        user.max_connections.into(),
        user.attributes.as_str().into(),
        user.comment.as_str().into(),
    ]
}
