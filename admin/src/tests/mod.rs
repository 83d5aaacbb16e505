//! The admin interface as its clients see it, over a daemon that only remembers what it was told.

mod checksums;
mod columns;
mod commands;
mod config_file;
mod layers;
mod live;
mod opening;
mod packets;
mod process;
mod query_rules;
mod readers;
mod refusals;
mod setup;
mod show;
mod sql;
mod storage;
mod wire_sessions;

use crate::*;
use tempfile::TempDir;

/// Remembers what was published.
#[derive(Default)]
struct Daemon {
    sets: Mutex<Vec<ConfigSet>>,
    commands: Mutex<Vec<ProcessCommand>>,
    refuse: Mutex<Option<SqlError>>,
    /// What the next publications leave out.
    ignore: Mutex<Vec<String>>,
    /// What SAVE MYSQL SERVERS FROM RUNTIME gets.
    saved: Mutex<SavedServers>,
}

impl Runtime for Daemon {
    fn publish(&self, set: ConfigSet) -> Result<Published, SqlError> {
        if let Some(error) = self.refuse.lock().clone() {
            return Err(error);
        }
        self.sets.lock().push(set);
        Ok(Published { ignored: self.ignore.lock().clone() })
    }
    fn command(&self, command: ProcessCommand) -> Result<(), SqlError> {
        self.commands.lock().push(command);
        Ok(())
    }
    fn servers_to_save(&self) -> SavedServers {
        self.saved.lock().clone()
    }
    fn servers_version(&self) -> u64 {
        self.servers().len() as u64
    }
    fn save_digests(&self) -> Result<u64, SqlError> {
        match self.refuse.lock().clone() {
            Some(error) => Err(error),
            None => Ok(7),
        }
    }
    fn metrics(&self) -> String {
        "# TYPE a_total counter\na_total 1\n".to_owned()
    }
}

impl Daemon {
    fn servers(&self) -> Vec<rows::ServersConfig> {
        let sets = self.sets.lock();
        let servers = sets.iter().filter_map(|set| match set {
            ConfigSet::Servers(servers) => Some(servers.clone()),
            _ => None,
        });
        servers.collect()
    }
    fn variables(&self) -> Option<Variables> {
        let sets = self.sets.lock();
        sets.iter().rev().find_map(|set| match set {
            ConfigSet::Variables(variables) => Some((**variables).clone()),
            _ => None,
        })
    }
    fn users(&self) -> Vec<rows::UserRow> {
        let sets = self.sets.lock();
        let users = sets.iter().rev().find_map(|set| match set {
            ConfigSet::Users(users) => Some(users.clone()),
            _ => None,
        });
        users.unwrap_or_default()
    }
}

struct Fixture {
    admin: Admin,
    daemon: Arc<Daemon>,
    dir: TempDir,
}

fn open(dir: &Path) -> Admin {
    Admin::open(dir, Variables::default(), &[], &Start::default()).unwrap()
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let admin = open(dir.path());
    let daemon = Arc::new(Daemon::default());
    admin.attach(daemon.clone());
    admin.load_all().unwrap();
    daemon.sets.lock().clear();
    Fixture { admin, daemon, dir }
}

impl Fixture {
    /// The daemon ends and starts again in the same directory.
    fn restart(self) -> Self {
        let Self { admin, daemon, dir } = self;
        drop(admin);
        let admin = open(dir.path());
        admin.attach(daemon.clone());
        Self { admin, daemon, dir }
    }

    /// Affected rows and info of a statement that returns none.
    #[track_caller]
    fn ok(&self, sql: &str) -> (u64, String) {
        match self.admin.execute(sql) {
            Ok(Answer::Ok { affected, info }) => (affected, info),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[track_caller]
    fn error(&self, sql: &str) -> SqlError {
        match self.admin.execute(sql) {
            Err(error) => error,
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// Rows as `a|b`, NULL as `NULL`.
    #[track_caller]
    fn rows(&self, sql: &str) -> Vec<String> {
        match self.admin.execute(sql) {
            Ok(Answer::Rows { rows, .. }) => rows.into_iter().map(|row| line(&row)).collect(),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[track_caller]
    fn one(&self, sql: &str) -> String {
        let rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
        rows.into_iter().next().unwrap()
    }

    /// Registers the daemon's tables with these rows of runtime_mysql_servers, which it returns to be changed, and of the
    /// blue/green table.
    fn register_runtime(
        &self,
        servers: Vec<Vec<Value>>,
        bgd: Vec<Vec<Value>>,
    ) -> Arc<Mutex<Vec<Vec<Value>>>> {
        let servers = Arc::new(Mutex::new(servers));
        let placed = Arc::clone(&servers);
        let table = LiveTable {
            name: "runtime_mysql_servers",
            schema: Schema::Main,
            ddl: ddl::RUNTIME_MYSQL_SERVERS,
            rows: Arc::new(move || placed.lock().clone()),
        };
        self.admin.register(table).unwrap();
        let tables = [
            ("runtime_mysql_replication_hostgroups", ddl::RUNTIME_MYSQL_REPLICATION_HOSTGROUPS, vec![]),
            ("runtime_mysql_aws_rds_bgd_hostgroups", ddl::RUNTIME_MYSQL_AWS_RDS_BGD_HOSTGROUPS, bgd),
            ("runtime_mysql_hostgroup_attributes", ddl::RUNTIME_MYSQL_HOSTGROUP_ATTRIBUTES, vec![]),
            ("runtime_mysql_servers_ssl_params", ddl::RUNTIME_MYSQL_SERVERS_SSL_PARAMS, vec![]),
            ("runtime_mysql_query_rules", ddl::RUNTIME_MYSQL_QUERY_RULES, vec![]),
            ("runtime_mysql_query_rules_fast_routing", ddl::RUNTIME_MYSQL_QUERY_RULES_FAST_ROUTING, vec![]),
        ];
        for (name, ddl, rows) in tables {
            let rows = Arc::new(move || rows.clone());
            self.admin.register(LiveTable { name, schema: Schema::Main, ddl, rows }).unwrap();
        }
        servers
    }
}

fn line(row: &[Option<String>]) -> String {
    let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
    cells.join("|")
}

fn server_row(hostgroup: i64, host: &str, status: &str) -> Vec<Value> {
    let text = |text: &str| Value::Text(text.into());
    let numbers = |all: &[i64]| all.iter().map(|n| Value::Int(*n)).collect::<Vec<_>>();
    let mut row = vec![Value::Int(hostgroup), text(host)];
    row.extend(numbers(&[3306, 0]));
    row.push(text(status));
    row.extend(numbers(&[1, 0, 1000, 0, 0, 0]));
    row.push(text(""));
    row
}

/// A row of runtime_mysql_aws_rds_bgd_hostgroups, configured or made by discovery.
fn deployment_row(writer: i64, generated: bool) -> Vec<Value> {
    let green = if generated { Value::Null } else { Value::Int(30) };
    let mut row = vec![Value::Int(writer), Value::Int(writer + 1), green.clone(), green];
    row.extend([1, 0, 1000, 800].map(Value::Int));
    row.extend([Value::Text(String::new()), generated.into(), Value::Text("AVAILABLE".into())]);
    row
}
