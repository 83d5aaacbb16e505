use super::*;
use crate::tables::TABLES;
use std::{fs, thread};

/// A daemon's directory and its configuration file, which is kept elsewhere.
struct Place {
    datadir: TempDir,
    files: TempDir,
}

impl Place {
    fn new(text: &str) -> Self {
        let place = Self { datadir: tempfile::tempdir().unwrap(), files: tempfile::tempdir().unwrap() };
        place.write(text);
        place
    }

    fn file(&self) -> PathBuf {
        self.files.path().join("p.cnf")
    }

    fn write(&self, text: &str) {
        fs::write(self.file(), text).unwrap();
    }

    fn open(&self, how: Start<'_>) -> Result<Admin, String> {
        let file = ConfigFile::read(&self.file()).map_err(|error| error.to_string())?;
        let start = Start { file: Some(&file), ..how };
        Admin::open(self.datadir.path(), Variables::default(), &[], &start).map_err(|error| error.to_string())
    }

    /// A start that comes to its end; what it begins with.
    fn start(&self, how: Start<'_>) -> Fixture {
        let admin = self.open(how).unwrap();
        let daemon = Arc::new(Daemon::default());
        admin.attach(daemon.clone());
        admin.load_all().unwrap();
        Fixture { admin, daemon, dir: tempfile::tempdir().unwrap() }
    }

    fn exists(&self, name: &str) -> bool {
        self.datadir.path().join(name).exists()
    }
}

const USUAL: Start<'_> = Start { file: None, initial: false, reload: false };
const INITIAL: Start<'_> = Start { initial: true, ..USUAL };
const RELOAD: Start<'_> = Start { reload: true, ..USUAL };

fn users(text: &str) -> String {
    format!("mysql_users = ( {text} ); mysql_variables = {{ wait_timeout = 5000 }}")
}

const USERS: &str = "SELECT group_concat(username) FROM (SELECT username FROM mysql_users ORDER BY 1)";

#[test]
fn a_new_database_is_made_from_the_file() {
    let place = Place::new(&users("{ username = \"a\" }"));
    let f = place.start(USUAL);
    assert_eq!(f.one(USERS), "a");
    assert_eq!(f.daemon.users().len(), 1);
    assert_eq!(f.daemon.variables().unwrap().wait_timeout, Duration::from_secs(5));
    assert_eq!(f.rows("SELECT username, active, max_connections FROM disk.mysql_users"), ["a|1|10000"]);
    // Defaults are not saved: they follow the version.
    assert_eq!(f.rows("SELECT * FROM disk.global_variables"), ["mysql-wait_timeout|5000"]);
}

#[test]
fn a_database_counts_more_than_the_file() {
    let place = Place::new(&users("{ username = \"a\" }"));
    drop(place.start(USUAL));
    place.write("mysql_users = ( { username = 5; nonsense = 1 } ); mysql_variables = { nonsense = 1 }");
    let f = place.start(USUAL);
    assert_eq!(f.one(USERS), "a");
    assert_eq!(f.one("SELECT @@mysql-wait_timeout"), "5000");
    f.ok("DELETE FROM mysql_users");
    f.ok("SAVE MYSQL USERS TO DISK");
    drop(f);
    assert_eq!(place.start(USUAL).one(USERS), "NULL");
}

#[test]
fn a_file_counts_until_a_start_with_it_came_to_its_end() {
    let place = Place::new(&users("{ username = \"a\" }, { username = \"b\" }"));
    drop(place.open(USUAL).unwrap());
    place.write(&users("{ username = \"c\" }"));
    drop(place.open(USUAL).unwrap());
    drop(place.start(USUAL));
    place.write(&users("{ username = \"d\" }"));
    assert_eq!(place.start(USUAL).one(USERS), "c");
}

#[test]
fn reload_merges_the_file_into_the_database() {
    let place = Place::new(&users("{ username = \"a\"; comment = \"old\" }, { username = \"b\" }"));
    drop(place.start(USUAL));
    place.write("mysql_users = ( { username = \"a\"; comment = \"new\" }, { username = \"c\" } )");
    let f = place.start(RELOAD);
    assert_eq!(f.rows("SELECT username, comment FROM mysql_users ORDER BY 1"), ["a|new", "b|", "c|"]);
    assert_eq!(f.one("SELECT @@mysql-wait_timeout"), "5000");
    drop(f);
    assert_eq!(place.start(USUAL).one(USERS), "a,b,c");
}

#[test]
fn initial_puts_the_database_aside() {
    let place = Place::new(&users("{ username = \"a\" }"));
    drop(place.start(USUAL));
    place.write(&users("{ username = \"b\" }"));
    // What a failed start leaves does not take the place of what was put aside.
    drop(place.open(INITIAL).unwrap());
    let f = place.start(INITIAL);
    assert_eq!(f.one(USERS), "b");
    let kept = rusqlite::Connection::open(place.datadir.path().join("pointsman.db.bak")).unwrap();
    let user = |conn: &rusqlite::Connection| {
        conn.query_row("SELECT username FROM mysql_users", [], |row| row.get::<_, String>(0)).unwrap()
    };
    assert_eq!(user(&kept), "a");
    drop((kept, f));
    drop(place.start(INITIAL));
    assert_eq!(
        user(&rusqlite::Connection::open(place.datadir.path().join("pointsman.db.bak")).unwrap()),
        "b"
    );
}

#[test]
fn initial_is_the_way_out_of_a_damaged_database() {
    let place = Place::new(&users("{ username = \"a\" }"));
    let noise = "these are notes, not a database".repeat(100);
    fs::write(place.datadir.path().join("pointsman.db"), &noise).unwrap();
    assert!(place.open(USUAL).err().unwrap().contains("not a pointsman database"));
    assert_eq!(place.start(INITIAL).one(USERS), "a");
    assert_eq!(fs::read_to_string(place.datadir.path().join("pointsman.db.bak")).unwrap(), noise);
}

#[test]
fn a_file_that_is_refused_changes_nothing() {
    let place = Place::new("mysql_users = (\n { username = 5 } )");
    for how in [USUAL, INITIAL, RELOAD] {
        let said = place.open(how).err().unwrap();
        assert!(said.ends_with("p.cnf:2: mysql_users.username: an integer; a string is expected"), "{said}");
        assert!(!place.exists("pointsman.db"));
    }
    place.write(&users("{ username = \"a\" }"));
    drop(place.start(USUAL));
    place.write("mysql_users = ( { username = 5 } )");
    for how in [INITIAL, RELOAD] {
        assert!(place.open(how).is_err());
        assert!(!place.exists("pointsman.db.bak"));
    }
    assert_eq!(place.start(USUAL).one(USERS), "a");
}

#[test]
fn a_database_of_another_version_is_left_as_it_is() {
    let place = Place::new(&users("{ username = \"a\" }"));
    let f = place.start(USUAL);
    f.admin.store.lock().conn.execute_batch("ALTER TABLE disk.mysql_users ADD COLUMN more INT").unwrap();
    drop(f);
    place.write(&users("{ username = \"b\" }"));
    assert!(place.open(RELOAD).err().unwrap().contains("mysql_users has a column more"));
    let kept = rusqlite::Connection::open(place.datadir.path().join("pointsman.db")).unwrap();
    let count = "SELECT count(*) FROM mysql_users WHERE username = 'b'";
    assert_eq!(kept.query_row(count, [], |row| row.get::<_, i64>(0)), Ok(0));
}

#[test]
fn every_module_loads_from_the_file() {
    let place = Place::new("");
    let f = place.start(USUAL);
    place.write(
        "mysql_servers = ( { address = \"a\" }, { address = \"b\" } )
         mysql_replication_hostgroups = ( { writer_hostgroup = 1; reader_hostgroup = 2 } )
         mysql_aws_rds_bgd_hostgroups = ( { writer_hostgroup = 1; reader_hostgroup = 2
             green_writer_hostgroup = 3; green_reader_hostgroup = 4 } )
         mysql_users = ( { username = \"u\"; password = \"p\" } )
         mysql_query_rules = ( { rule_id = 7; match_digest = \"^SELECT \\d+$\"; apply = 1 } )
         mysql_query_rules_fast_routing = ( { username = \"u\"; schemaname = \"s\"; destination_hostgroup = 1 } )
         mysql_variables = { wait_timeout = 5000 }
         admin_variables = { admin_credentials = \"x:y\" }
         sqliteserver_variables = { read_only = true }",
    );
    f.ok("INSERT INTO mysql_servers (hostname, comment) VALUES ('b', 'old'), ('c', 'kept')");
    for (module, count) in [
        ("MYSQL SERVERS", 4),
        ("mysql  users", 1),
        ("MYSQL QUERY RULES", 2),
        ("MYSQL VARIABLES", 1),
        ("ADMIN VARIABLES", 1),
        ("SQLITESERVER VARIABLES", 1),
    ] {
        assert_eq!(f.ok(&format!("LOAD {module} FROM CONFIG;")), (count, String::new()), "{module}");
    }
    assert_eq!(f.rows("SELECT hostname, comment FROM mysql_servers ORDER BY 1"), ["a|", "b|", "c|kept"]);
    assert_eq!(f.one("SELECT match_digest FROM mysql_query_rules"), r"^SELECT \d+$");
    assert_eq!(f.one("SELECT @@sqliteserver-read_only"), "true");
    assert_eq!(f.one("SELECT @@admin-admin_credentials"), "x:y");
    // Memory alone changed.
    assert_eq!(f.one("SELECT count(*) FROM disk.mysql_servers"), "0");
    assert_eq!(f.daemon.servers().last().unwrap().servers.len(), 0);
    f.ok("LOAD MYSQL SERVERS TO RUNTIME");
    assert_eq!(f.daemon.servers().last().unwrap().servers.len(), 3);
}

#[test]
fn loading_a_file_that_does_not_fit_changes_nothing() {
    let f = fixture();
    assert_eq!(f.error("LOAD MYSQL USERS FROM CONFIG").message, "ProxySQL Admin Error: Config file unknown");

    let place = Place::new(&users("{ username = \"a\" }"));
    let f = place.start(USUAL);
    let path = place.file();
    for (text, said) in [
        ("mysql_users = ( { username = \"b\" }", ":1: mysql_users: a comma or ) is expected"),
        ("mysql_users = ( { username = \"b\" }, { username = \"b\" } )", ":1: mysql_users.username: UNIQUE"),
        ("nonsense = 1", ":1: nonsense: there is no section or setting of this name"),
    ] {
        place.write(text);
        let error = f.error("LOAD MYSQL USERS FROM CONFIG");
        let path = path.display();
        let begins =
            format!("ProxySQL Admin Error: Unable to open or parse config file {path}: {path}{said}");
        assert!(error.message.starts_with(&begins), "{}", error.message);
        assert_eq!(f.one(USERS), "a");
    }
    fs::remove_file(&path).unwrap();
    let said = f.error("LOAD MYSQL USERS FROM CONFIG").message;
    assert!(said.contains("Unable to open or parse config file") && said.contains("No such file"), "{said}");
    // Only the sections of the module are looked at.
    place.write("mysql_users = ( { username = \"b\" } ); mysql_servers = ( { hostname = 1 } )");
    assert_eq!(f.ok("LOAD MYSQL USERS FROM CONFIG").0, 1);
}

#[test]
fn what_is_left_out_is_counted() {
    let place = Place::new("");
    let f = place.start(USUAL);
    place.write("mysql_variables = { eventslog_format = 2; server_capabilities = 1; wait_timeout = 1 }");
    let (rows, info) = f.ok("LOAD MYSQL VARIABLES FROM CONFIG");
    assert_eq!(rows, 1);
    assert!(info.contains('2'), "{info}");
}

/// Rows of every configuration table in memory.
fn memory(f: &Fixture) -> Vec<Vec<String>> {
    TABLES.iter().map(|table| f.rows(&format!("SELECT * FROM main.{} ORDER BY 1, 2", table.name))).collect()
}

#[test]
fn the_written_file_gives_the_same_configuration() {
    let f = fixture();
    let hard =
        "'\" \\ \\\\ \\n \\d {a} (b) # // /* */ @include '' é 日本 ' || char(10, 13, 9, 12, 1, 127) || '$'";
    for sql in [
        &format!("INSERT INTO mysql_servers (hostname, port, comment) VALUES ('a', 0, {hard}), ('b', 1, '')"),
        "INSERT INTO mysql_replication_hostgroups VALUES (1, 2, 'super_read_only', 'c')",
        "INSERT INTO mysql_aws_rds_bgd_hostgroups VALUES (1, 2, 3, 4, 1, 1, 500, 100, '')",
        &format!(
            "INSERT INTO mysql_users (username, password, attributes) VALUES ('u', {hard}, '{{\"a\":1}}')"
        ),
        "INSERT INTO mysql_users (username, frontend, backend) VALUES ('v', 1, 0), ('v', 0, 1)",
        &format!(
            "INSERT INTO mysql_query_rules (rule_id, match_digest, re_modifiers) VALUES (5, {hard}, '')"
        ),
        "INSERT INTO mysql_query_rules (rule_id, cache_ttl, next_query_flagIN) VALUES (6, 1, 3000000000)",
        "INSERT INTO mysql_query_rules_fast_routing VALUES ('u', 's', 1, 2, '')",
        "SET mysql-monitor_password='p\"\\ä', mysql-wait_timeout=1234",
    ] {
        f.ok(sql);
    }
    let text = f.one("SELECT CONFIG FILE");
    let place = Place::new(&text);
    let g = place.start(USUAL);
    assert_eq!(memory(&g), memory(&f));
    assert_eq!(g.one("select  config file").replace(g.datadir(), f.datadir()), text);
    // NULL has no word in the file. Where it is not the default, an empty text says the same.
    f.ok("UPDATE mysql_query_rules SET re_modifiers = NULL");
    assert!(f.one("SELECT CONFIG FILE").contains("re_modifiers = \"\";"));
}

impl Fixture {
    fn datadir(&self) -> &str {
        self.admin.datadir.to_str().unwrap()
    }
}

#[test]
fn memory_that_would_not_load_is_not_written() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostname, max_connections) VALUES ('a', 'many')");
    assert!(f.error("SELECT CONFIG FILE").message.contains(").max_connections: 'many'"));
    f.ok("DELETE FROM mysql_servers");
    f.ok("UPDATE global_variables SET variable_value = 'soon' WHERE variable_name = 'mysql-wait_timeout'");
    assert!(f.error("SELECT CONFIG FILE").message.contains("'mysql-wait_timeout' can't be set to 'soon'"));
}

#[test]
fn files_are_written_whole_and_only_over_their_like() {
    use std::os::unix::fs::PermissionsExt;
    let f = fixture();
    let path = f.dir.path().join("out.cnf");
    let shown = path.display();
    for sql in [format!("SELECT CONFIG INTO OUTFILE {shown}"), format!("SAVE CONFIG TO FILE '{shown}';")] {
        f.ok("INSERT INTO mysql_users (username) SELECT 'u' || count(*) FROM mysql_users");
        assert_eq!(f.ok(&sql), (0, String::new()));
        assert_eq!(fs::read_to_string(&path).unwrap(), f.one("SELECT CONFIG FILE"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let kept = f.dir.path().join("mine.cnf");
    fs::write(&kept, "# mine").unwrap();
    let link = f.dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for (path, said) in [
        (kept.to_str().unwrap(), "exists, and is not a file that this command wrote"),
        (link.to_str().unwrap(), "exists, and is not a file that this command wrote"),
        (f.dir.path().to_str().unwrap(), "exists, and is not"),
        ("/nowhere/at/all.cnf", "No such file"),
        ("out.cnf", "needs its whole path"),
        ("", "needs its whole path"),
    ] {
        let error = f.error(&format!("SAVE CONFIG TO FILE '{path}'"));
        assert!(error.message.contains(said), "{}", error.message);
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), "# mine");
    assert_eq!(left_aside(&f), 0);
}

#[test]
fn several_may_write_one_file_at_once() {
    let f = fixture();
    let path = f.dir.path().join("out.cnf");
    let neighbour = f.dir.path().join("out.cnf.new");
    fs::write(&neighbour, "# mine").unwrap();
    let text = f.one("SELECT CONFIG FILE");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..20).for_each(|_| crate::config_file::write(&path, &text).unwrap()));
        }
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(fs::read_to_string(&neighbour).unwrap(), "# mine");
    assert_eq!(left_aside(&f), 0);
}

/// Files that were begun and not put in place.
fn left_aside(f: &Fixture) -> usize {
    let names = fs::read_dir(f.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().starts_with(".pointsman-")).count()
}
