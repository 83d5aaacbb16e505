//! SAVE ... FROM RUNTIME: what is in force becomes what memory holds.

use super::load_save::Module;
use crate::answer::Answer;
use crate::error::{failed, from_sqlite};
use crate::rows::ServerRow;
use crate::tables::{self, Group};
use crate::variables::registry::VARIABLES;
use crate::{Admin, SavedServers};
use rusqlite::types::Value as Cell;
use wire::SqlError;

/// Performs the command. What is to be said of it is in the OK's info.
pub(super) fn from_runtime(admin: &Admin, module: &Module) -> Result<Answer, SqlError> {
    let servers = match module.group {
        // The daemon is asked without the store's lock.
        Group::Servers => admin.daemon()?.servers_to_save(),
        _ => SavedServers::default(),
    };
    let mut store = admin.store.lock();
    let saved = match module.group {
        Group::Servers => servers_from_runtime(&mut store.conn, &servers.rows),
        Group::Users => users_from_runtime(&mut store.conn),
        Group::QueryRules => query_rules_from_runtime(&mut store.conn),
        Group::ProxysqlServers => proxysql_servers_from_runtime(&mut store.conn),
        Group::Variables => {
            let published = admin.published.lock().variables.clone();
            let published = published.ok_or_else(|| failed("nothing was loaded to runtime yet"))?;
            let of_module = VARIABLES.iter().filter(|var| var.name.starts_with(module.prefix));
            let values: Vec<_> = of_module.map(|var| (var.name, var.show(&published))).collect();
            store.set_variables(&values)
        }
    };
    saved.map_err(|error| from_sqlite(&error))?;
    servers.notes.iter().for_each(|note| log::info!("SAVE {} FROM RUNTIME: {note}", module.words));
    Ok(Answer::Ok { affected: 0, info: servers.notes.join("; ") })
}

/// A full replacement; what discovery made is not configuration.
fn servers_from_runtime(conn: &mut rusqlite::Connection, servers: &[ServerRow]) -> rusqlite::Result<()> {
    let transaction = conn.transaction()?;
    for table in tables::of(Group::Servers) {
        let name = table.name;
        transaction.execute(&format!("DELETE FROM main.{name}"), [])?;
        let sql = "SELECT group_concat('?'), group_concat(name) FROM pragma_table_info(?1)";
        let (marks, columns): (String, String) =
            transaction.query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if name == "mysql_servers" {
            let mut insert = transaction.prepare(&format!("INSERT INTO main.{name} VALUES ({marks})"))?;
            for row in servers {
                let cells = row.values(row.status.as_str()).into_iter().map(Cell::from);
                insert.execute(rusqlite::params_from_iter(cells))?;
            }
            continue;
        }
        let explicit = if name == "mysql_aws_rds_bgd_hostgroups" { " WHERE auto_generated = 0" } else { "" };
        transaction.execute(
            &format!("INSERT INTO main.{name} SELECT {columns} FROM main.runtime_{name}{explicit}"),
            [],
        )?;
    }
    transaction.commit()
}

/// Users come back split into their frontend and backend rows; those that are not in runtime stay, inactive.
fn users_from_runtime(conn: &mut rusqlite::Connection) -> rusqlite::Result<()> {
    let transaction = conn.transaction()?;
    transaction.execute("UPDATE main.mysql_users SET active = 0", [])?;
    transaction
        .execute("INSERT OR REPLACE INTO main.mysql_users SELECT * FROM main.runtime_mysql_users", [])?;
    transaction.commit()
}

/// Rules that are not in runtime stay, inactive; fast routing is replaced.
fn query_rules_from_runtime(conn: &mut rusqlite::Connection) -> rusqlite::Result<()> {
    conn.transaction().and_then(|transaction| {
        transaction.execute_batch(
            "UPDATE main.mysql_query_rules SET active = 0;
             INSERT OR REPLACE INTO main.mysql_query_rules SELECT * FROM main.runtime_mysql_query_rules;
             DELETE FROM main.mysql_query_rules_fast_routing;
             INSERT INTO main.mysql_query_rules_fast_routing
                 SELECT * FROM main.runtime_mysql_query_rules_fast_routing;",
        )?;
        transaction.commit()
    })
}

fn proxysql_servers_from_runtime(conn: &mut rusqlite::Connection) -> rusqlite::Result<()> {
    let transaction = conn.transaction()?;
    transaction.execute_batch(
        "DELETE FROM main.proxysql_servers;
         INSERT INTO main.proxysql_servers SELECT * FROM main.runtime_proxysql_servers;",
    )?;
    transaction.commit()
}
