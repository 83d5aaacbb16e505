//! LOAD and SAVE: moving configuration between runtime, memory and disk.

use super::save::from_runtime;
use super::text::after;
use crate::answer::Answer;
use crate::config_file::Wanted;
use crate::error::failed;
use crate::tables::Group;
use crate::variables::registry;
use crate::{Admin, ConfigSet, Variables, proxysql_servers, query_rules, read};
use rusqlite::Connection;
use wire::SqlError;

/// What a command moves: a group of tables, and for variables which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Module {
    pub words: &'static str,
    pub group: Group,
    /// Variables whose names begin so.
    pub prefix: &'static str,
}

impl Module {
    /// Its sections of a configuration file.
    fn wanted(&self) -> Wanted {
        match self.group {
            Group::Variables => Wanted::Variables(self.prefix),
            group => Wanted::Tables(group),
        }
    }
}

const MODULES: &[Module] = &[
    Module { words: "MYSQL SERVERS", group: Group::Servers, prefix: "" },
    Module { words: "MYSQL USERS", group: Group::Users, prefix: "" },
    Module { words: "MYSQL QUERY RULES", group: Group::QueryRules, prefix: "" },
    Module { words: "PROXYSQL SERVERS", group: Group::ProxysqlServers, prefix: "" },
    Module { words: "MYSQL VARIABLES", group: Group::Variables, prefix: "mysql-" },
    Module { words: "ADMIN VARIABLES", group: Group::Variables, prefix: "admin-" },
    Module { words: "SQLITESERVER VARIABLES", group: Group::Variables, prefix: "sqliteserver-" },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    MemoryToRuntime,
    RuntimeToMemory,
    DiskToMemory,
    MemoryToDisk,
}

/// How memory is put in force.
pub(super) const TO_RUNTIME: &[&str] = &["FROM MEMORY", "FROM MEM", "TO RUNTIME", "TO RUN"];

const MOVES: &[(&str, &[&str], Move)] = &[
    ("LOAD", TO_RUNTIME, Move::MemoryToRuntime),
    ("LOAD", &["FROM DISK", "TO MEMORY", "TO MEM"], Move::DiskToMemory),
    ("SAVE", &["TO MEMORY", "TO MEM", "FROM RUNTIME", "FROM RUN"], Move::RuntimeToMemory),
    ("SAVE", &["TO DISK", "FROM MEMORY", "FROM MEM"], Move::MemoryToDisk),
];

/// Reads a LOAD or SAVE command from a collapsed statement.
pub(super) fn parse(statement: &str) -> Option<(&'static Module, Move)> {
    MODULES.iter().find_map(|module| {
        let way = MOVES.iter().find(|(verb, ways, _)| {
            let way = after(statement, verb).and_then(|rest| after(rest, module.words));
            way.is_some_and(|way| ways.iter().any(|each| each.eq_ignore_ascii_case(way)))
        });
        way.map(|(_, _, way)| (module, *way))
    })
}

/// How the names of the variables begin that words such as MYSQL VARIABLES mean.
pub(super) fn variables_prefix(words: &str) -> Option<&'static str> {
    let variables = MODULES.iter().filter(|module| module.group == Group::Variables);
    variables.into_iter().find(|module| module.words.eq_ignore_ascii_case(words)).map(|module| module.prefix)
}

/// What `LOAD ... FROM CONFIG` wants of the file.
pub(super) fn from_config(statement: &str) -> Option<Wanted> {
    let rest = after(statement, "LOAD")?;
    let says = |words: &str| after(rest, words).is_some_and(|way| way.eq_ignore_ascii_case("FROM CONFIG"));
    MODULES.iter().find(|module| says(module.words)).map(Module::wanted)
}

/// Performs one command. Commands run one at a time, so that runtime ends up with what the last one loaded.
pub(super) fn run(admin: &Admin, module: &Module, way: Move) -> Result<Answer, SqlError> {
    let _one_at_a_time = admin.moving.lock();
    if way != Move::MemoryToRuntime {
        admin.check_writable()?;
    }
    match way {
        Move::MemoryToRuntime => return to_runtime(admin, module).map(|ignored| answer(0, &ignored)),
        Move::RuntimeToMemory => return from_runtime(admin, module),
        Move::DiskToMemory => {
            let mut store = admin.store.lock();
            store.file.check()?;
            // What disk holds may be another program's work: memory takes nothing that would not load.
            let check = |conn: &Connection| read_set(admin, conn, module).map(drop);
            store.disk_to_memory(module.group, module.prefix, &admin.defaults, check)?;
        }
        Move::MemoryToDisk => {
            let mut store = admin.store.lock();
            store.file.check()?;
            if !store.writable {
                // It was so at the start. There may be room again.
                admin.store.forget_readers();
                store.reopen_file().map_err(failed)?;
            }
            // What disk holds must load, or the daemon could not start again.
            read_set(admin, &store.conn, module)?;
            match module.group {
                Group::Variables => store.variables_to_disk(module.prefix),
                group => store.memory_to_disk(group),
            }
            .map_err(|error| store.file_error(&error))?;
        }
    }
    Ok(Answer::done())
}

/// LOAD of everything, variables last: publishing them opens the listeners.
pub(crate) fn load_all(admin: &Admin) -> Result<(), SqlError> {
    let _one_at_a_time = admin.moving.lock();
    for module in MODULES.iter().filter(|module| module.group != Group::Variables) {
        to_runtime(admin, module)?;
    }
    to_runtime(admin, &Module { words: "VARIABLES", group: Group::Variables, prefix: "" }).map(drop)
}

/// OK with what changed, and how much was left out.
pub(super) fn answer(affected: u64, ignored: &[String]) -> Answer {
    let info = match ignored.len() {
        0 => String::new(),
        1 => "1 entry ignored, see the log".into(),
        count => format!("{count} entries ignored, see the log"),
    };
    Answer::Ok { affected, info }
}

/// Returns what was left out; who leaves an entry out logs it.
fn to_runtime(admin: &Admin, module: &Module) -> Result<Vec<String>, SqlError> {
    let runtime = admin.daemon()?;
    // Rows are read under the store's lock; the daemon publishes without it.
    let (set, mut ignored) = read_set(admin, &admin.store.lock().conn, module)?;
    ignored.iter().for_each(|entry| log::warn!("LOAD {}: {entry}", module.words));
    ignored.extend(runtime.publish(set.clone())?.ignored);
    let mut published = admin.published.lock();
    match set {
        ConfigSet::Servers(config) => admin.checksums.servers(&config),
        ConfigSet::Users(users) => published.users = users,
        ConfigSet::Variables(variables) => published.variables = Some(*variables),
        ConfigSet::ProxysqlServers(rows) => published.proxysql_servers = rows,
        ConfigSet::QueryRules(_) => {}
    }
    // Live tables look at what was published.
    drop(published);
    admin.checksums.loaded(module.group);
    Ok(ignored)
}

/// The module's rows in memory, typed, and what was left out.
fn read_set(admin: &Admin, conn: &Connection, module: &Module) -> Result<(ConfigSet, Vec<String>), SqlError> {
    match module.group {
        Group::Servers => Ok((ConfigSet::Servers(read::servers(conn)?), Vec::new())),
        Group::QueryRules => Ok((ConfigSet::QueryRules(query_rules::read(conn)?), Vec::new())),
        Group::Users => Ok((ConfigSet::Users(read::users(conn)?), Vec::new())),
        Group::ProxysqlServers => Ok((ConfigSet::ProxysqlServers(proxysql_servers::read(conn)?), Vec::new())),
        Group::Variables => {
            let rows = read::variables(conn, module.prefix)?;
            let base = admin.published.lock().variables.clone();
            let (mut variables, ignored) = typed_variables(base.as_ref().unwrap_or(&admin.defaults), &rows)?;
            // Memory may still hold false from before PROXYSQL READONLY: that ends with READWRITE, and not with a LOAD.
            variables.admin_read_only |= base.is_some_and(|base| base.admin_read_only);
            Ok((ConfigSet::Variables(Box::new(variables)), ignored))
        }
    }
}

/// Applies rows of global_variables to `base`. Unknown names are left out and reported; a value that does not fit refuses the whole.
pub(crate) fn typed_variables(
    base: &Variables,
    rows: &[(String, String)],
) -> Result<(Variables, Vec<String>), SqlError> {
    let mut variables = base.clone();
    let mut ignored = Vec::new();
    for (name, value) in rows {
        // Names in the table are exact: of two spellings of one name neither could be preferred.
        match registry::find(name).filter(|var| var.name == name) {
            Some(var) if var.is_read_only() => {
                if *value != var.show(base) {
                    ignored.push(format!("global_variables: {name} is read-only, and stays what it is"));
                }
            }
            Some(var) => var.apply(&mut variables, value).ok_or_else(|| {
                let wrong = super::set::wrong_value(var, value);
                SqlError { message: format!("global_variables.variable_value: {}", wrong.message), ..wrong }
            })?,
            None => ignored.push(format!("global_variables: unknown variable {name}")),
        }
    }
    if rows.iter().any(|(name, _)| name.ends_with("_credentials")) {
        ignored.extend(administrators_that_only_read(&variables));
    }
    Ok((variables, ignored))
}

/// Entries of admin-stats_credentials that count for nothing, because admin-admin_credentials has the name.
fn administrators_that_only_read(variables: &Variables) -> Vec<String> {
    let is_admin = |user: &str| variables.admin_credentials.iter().any(|(name, _)| name == user);
    let both = variables.stats_credentials.iter().filter(|(user, _)| is_admin(user));
    both.map(|(user, _)| {
        let user = user.escape_debug();
        format!("global_variables: admin-stats_credentials: '{user}' is in admin-admin_credentials, and so an administrator")
    })
    .collect()
}
