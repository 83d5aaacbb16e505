//! What the database file goes through: failures while it is written, damage, and other versions.

use super::opening::refusal;
use super::*;
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const DATABASE: &str = "pointsman.db";

fn database(f: &Fixture) -> std::path::PathBuf {
    f.dir.path().join(DATABASE)
}

/// Ends the daemon and leaves its directory.
fn ended(f: Fixture) -> TempDir {
    let Fixture { admin, dir, .. } = f;
    drop(admin);
    dir
}

/// A generation of users: all of them name it.
fn save_users(f: &Fixture, generation: usize) {
    f.ok("DELETE FROM mysql_users");
    for n in 0..20 + generation {
        f.ok(&format!("INSERT INTO mysql_users (username, comment) VALUES ('user{n}', '{generation}')"));
    }
    f.ok("SAVE MYSQL USERS TO DISK");
}

fn generation_of(f: &Fixture) -> usize {
    let rows = f.rows("SELECT comment, count(*) FROM disk.mysql_users GROUP BY comment");
    match rows.as_slice() {
        [] => 0,
        [one] => {
            let (generation, count) = one.split_once('|').unwrap();
            let generation = generation.parse::<usize>().unwrap();
            assert_eq!(count.parse::<usize>().unwrap(), 20 + generation);
            generation
        }
        mixed => panic!("{mixed:?}"),
    }
}

fn reopened(dir: TempDir) -> Fixture {
    let admin = open(dir.path());
    Fixture { admin, daemon: Arc::default(), dir }
}

#[test]
fn a_full_disk_refuses_what_does_not_fit_and_keeps_what_was_saved() {
    let f = fixture();
    save_users(&f, 1);
    let pages: i64 =
        f.admin.store.lock().conn.query_row("PRAGMA disk.page_count", [], |row| row.get(0)).unwrap();
    let limit = |pages: i64| {
        let sql = format!("PRAGMA disk.max_page_count = {pages}");
        f.admin.store.lock().conn.query_row(&sql, [], |_| Ok(())).unwrap();
    };
    limit(pages);
    let long = "x".repeat(100_000);
    f.ok(&format!("INSERT INTO mysql_users (username, comment) VALUES ('long', '{long}')"));
    f.ok(&format!("INSERT INTO mysql_query_rules (rule_id, match_digest) VALUES (1, '{long}')"));
    f.ok("SET mysql-server_version='8.0.99'");
    for module in ["USERS", "QUERY RULES"] {
        let text = f.error(&format!("SAVE MYSQL {module} TO DISK")).message;
        assert!(text.contains(&database(&f).display().to_string()), "{text}");
        assert!(text.contains("the disk is full") && text.contains("nothing was saved"), "{text}");
        assert!(text.ends_with("make room and try again"), "{text}");
    }
    assert_eq!(generation_of(&f), 1);
    limit(pages + 200);
    f.ok("SAVE MYSQL USERS TO DISK");
    let f = reopened(ended(f));
    assert_eq!(f.one("SELECT count(*) FROM mysql_users WHERE length(comment) = 100000"), "1");
    assert_eq!(f.one("SELECT count(*) FROM mysql_query_rules"), "0");
}

#[test]
fn what_keeps_the_file_from_being_written_is_named() {
    let f = fixture();
    save_users(&f, 1);
    f.admin.store.lock().conn.execute_batch("PRAGMA query_only = 1").unwrap();
    let text = f.error("SAVE MYSQL USERS TO DISK").message;
    assert!(text.contains("pointsman.db: it cannot be written; nothing was saved"), "{text}");
    f.admin.store.lock().conn.execute_batch("PRAGMA query_only = 0").unwrap();

    let other = Connection::open(database(&f)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    f.admin.store.lock().conn.busy_timeout(Duration::ZERO).unwrap();
    let text = f.error("SAVE MYSQL USERS TO DISK").message;
    assert!(text.contains("pointsman.db: another program holds it locked; nothing was saved"), "{text}");
    assert!(text.ends_with("end that program and try again"), "{text}");
    drop(other);
    f.ok("SAVE MYSQL USERS TO DISK");
    assert_eq!(generation_of(&f), 1);
}

#[test]
fn after_a_save_a_copy_of_the_file_alone_is_whole() {
    let f = fixture();
    save_users(&f, 3);
    f.ok("SET mysql-wait_timeout=5000");
    f.ok("SAVE MYSQL VARIABLES TO DISK");
    let copy = tempfile::tempdir().unwrap();
    fs::copy(database(&f), copy.path().join(DATABASE)).unwrap();
    let copy = reopened(copy);
    assert_eq!(generation_of(&copy), 3);
    assert_eq!(copy.one("SELECT @@mysql-wait_timeout"), "5000");
}

#[test]
fn a_program_that_reads_the_file_does_not_hold_up_a_save() {
    let f = fixture();
    save_users(&f, 1);
    let other = Connection::open(database(&f)).unwrap();
    other.execute_batch("BEGIN").unwrap();
    other.query_row("SELECT count(*) FROM mysql_users", [], |_| Ok(())).unwrap();
    save_users(&f, 2);
    drop(other);
    assert_eq!(generation_of(&reopened(ended(f))), 2);
}

#[test]
fn a_write_ahead_log_that_was_cut_anywhere_leaves_one_configuration_whole() {
    let f = fixture();
    save_users(&f, 1);
    // A reader of the file keeps the log from being emptied.
    let other = Connection::open(database(&f)).unwrap();
    other.execute_batch("BEGIN").unwrap();
    other.query_row("SELECT count(*) FROM mysql_users", [], |_| Ok(())).unwrap();
    for generation in 2..5 {
        save_users(&f, generation);
    }
    let log = fs::read(f.dir.path().join("pointsman.db-wal")).unwrap();
    let file = fs::read(database(&f)).unwrap();
    assert!(log.len() > 10_000, "{}", log.len());
    let mut found = Vec::new();
    for cut in (0..=log.len()).rev().step_by(1_771) {
        for noise in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(DATABASE), &file).unwrap();
            let mut log = log[..cut].to_vec();
            if noise {
                log.extend((0..5_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8));
                fs::write(dir.path().join("pointsman.db-shm"), [0x5a; 40_000]).unwrap();
            }
            fs::write(dir.path().join("pointsman.db-wal"), log).unwrap();
            found.push(generation_of(&reopened(dir)));
        }
    }
    assert!(found.is_sorted_by(|a, b| a >= b), "{found:?}");
    assert_eq!((found.first(), found.last()), (Some(&4), Some(&1)));
}

/// A table of an earlier version: without the last columns, and with other rules.
const EARLIER_USERS: &str = "CREATE TABLE mysql_users (
    username VARCHAR NOT NULL,
    password VARCHAR,
    active INT NOT NULL DEFAULT 1,
    default_hostgroup INT NOT NULL DEFAULT 0,
    frontend INT NOT NULL DEFAULT 1,
    backend INT NOT NULL DEFAULT 1,
    max_connections INT NOT NULL DEFAULT 10000,
    PRIMARY KEY (username, backend)
)";

fn earlier(rows: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    conn.execute_batch(&format!(
        "{EARLIER_USERS}; {}; {rows};
         CREATE TABLE global_variables (variable_name VARCHAR NOT NULL PRIMARY KEY, variable_value VARCHAR NOT NULL);
         INSERT INTO global_variables VALUES ('mysql-wait_timeout', '5000');",
        ddl::MYSQL_SERVERS
    ))
    .unwrap();
    dir
}

#[test]
fn tables_of_an_earlier_version_are_brought_up_and_a_copy_is_kept() {
    let dir = earlier(
        "INSERT INTO mysql_users (username, password) VALUES ('a', 'hush'), ('b', NULL);
         INSERT INTO mysql_servers (hostname, status) VALUES ('h', 'online')",
    );
    let copy = dir.path().join(concat!("pointsman.db.before-", env!("CARGO_PKG_VERSION")));
    let f = reopened(dir);
    assert_eq!(f.rows("SELECT username, password, comment FROM mysql_users"), ["a|hush|", "b|NULL|"]);
    assert_eq!(f.one("SELECT hostname FROM mysql_servers"), "h");
    assert_eq!(f.one("SELECT @@mysql-wait_timeout"), "5000");
    f.ok("INSERT INTO mysql_query_rules (rule_id) VALUES (1)");
    f.ok("SAVE MYSQL QUERY RULES TO DISK");
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = Connection::open(&copy).unwrap();
    let sql =
        "SELECT count(*) || (SELECT sql FROM sqlite_master WHERE name = 'mysql_users') FROM mysql_users";
    assert_eq!(kept.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap(), format!("2{EARLIER_USERS}"));
    drop(kept);
    // The next start has nothing to do.
    fs::remove_file(&copy).unwrap();
    let f = f.restart();
    assert_eq!(f.one("SELECT count(*) FROM mysql_users"), "2");
    assert!(!copy.exists());
    assert!(
        fs::read_dir(f.dir.path())
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_string_lossy().contains(".part") })
    );
}

#[test]
fn the_first_versions_tables_are_completed() {
    let dir = tempfile::tempdir().unwrap();
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    for ddl in [
        ddl::MYSQL_SERVERS,
        ddl::MYSQL_USERS,
        ddl::MYSQL_REPLICATION_HOSTGROUPS,
        ddl::MYSQL_AWS_RDS_BGD_HOSTGROUPS,
        ddl::GLOBAL_VARIABLES,
    ] {
        conn.execute_batch(ddl).unwrap();
    }
    conn.execute_batch("INSERT INTO mysql_users (username) VALUES ('a')").unwrap();
    drop(conn);
    let f = reopened(dir);
    assert_eq!(f.rows("SELECT username FROM mysql_users"), ["a"]);
    f.ok("SAVE MYSQL QUERY RULES TO DISK");
    assert_eq!(
        fs::read_dir(f.dir.path())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().contains("before") })
            .count(),
        0
    );
}

#[test]
fn a_row_of_an_earlier_version_that_is_not_allowed_any_more_is_named_and_nothing_changes() {
    let dir = earlier("INSERT INTO mysql_users (username, active) VALUES ('a', 7)");
    let text = refusal(dir.path());
    assert!(text.contains("pointsman.db: table mysql_users is of an earlier version"), "{text}");
    assert!(text.contains("active IN (0,1)"), "{text}");
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    let row = conn.query_row("SELECT active FROM mysql_users", [], |row| row.get::<_, i64>(0));
    assert_eq!(row.unwrap(), 7);
    conn.execute_batch("UPDATE mysql_users SET active = 1").unwrap();
    drop(conn);
    assert_eq!(reopened(dir).one("SELECT username FROM mysql_users"), "a");
}

#[test]
fn a_table_that_only_a_later_version_has_is_kept() {
    let f = fixture();
    save_users(&f, 1);
    let dir = ended(f);
    let later = Connection::open(dir.path().join(DATABASE)).unwrap();
    later.execute_batch("CREATE TABLE later (a INT); INSERT INTO later VALUES (5)").unwrap();
    drop(later);
    let f = reopened(dir);
    save_users(&f, 2);
    let later = Connection::open(database(&f)).unwrap();
    assert_eq!(later.query_row("SELECT a FROM later", [], |row| row.get::<_, i64>(0)).unwrap(), 5);
}

#[test]
fn a_database_of_another_program_is_refused_and_kept() {
    for (made, detail) in [
        ("CREATE TABLE scheduler (id INTEGER PRIMARY KEY); CREATE TABLE mysql_users (username)", "scheduler"),
        ("PRAGMA application_id = 7; CREATE TABLE mysql_users (username)", "another program"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(DATABASE);
        Connection::open(&path).unwrap().execute_batch(made).unwrap();
        let before = std::fs::read(&path).unwrap();
        let text = refusal(dir.path());
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert!(text.contains("pointsman.db: not a pointsman database") && text.contains(detail), "{text}");
        let sql = "SELECT group_concat(name) FROM pragma_table_info('mysql_users')";
        let kept = Connection::open(&path).unwrap();
        assert_eq!(kept.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap(), "username");
    }
}

#[test]
fn names_of_variables_that_this_version_does_not_know_are_kept() {
    let f = fixture();
    f.ok("INSERT INTO disk.global_variables VALUES ('mysql-of_another_version', 'x')");
    let f = f.restart();
    f.admin.load_all().unwrap();
    f.ok("SAVE MYSQL VARIABLES TO DISK");
    let sql =
        "SELECT variable_value FROM disk.global_variables WHERE variable_name = 'mysql-of_another_version'";
    assert_eq!(f.one(sql), "x");
}

/// As if the disk were full: the file that a start tries whether there is room with cannot be made.
fn fill(dir: &Path) {
    std::fs::create_dir(dir.join("pointsman.probe")).unwrap();
}

fn make_room(dir: &Path) {
    std::fs::remove_dir(dir.join("pointsman.probe")).unwrap();
}

#[test]
fn a_start_without_room_has_what_was_saved_and_changes_nothing() {
    let f = fixture();
    save_users(&f, 1);
    f.ok("SET mysql-max_connections=77");
    f.ok("SAVE MYSQL VARIABLES TO DISK");
    let dir = ended(f);
    let path = dir.path().join("pointsman.db");
    let before = std::fs::read(&path).unwrap();
    fill(dir.path());
    let f = reopened(dir);
    f.admin.attach(f.daemon.clone());
    f.admin.load_all().unwrap();
    assert_eq!(generation_of(&f), 1);
    assert_eq!(f.daemon.variables().unwrap().max_connections, 77);
    assert_ne!(f.one("SELECT count(*) FROM disk.mysql_users"), "0");
    f.ok("DELETE FROM mysql_users");
    f.ok("LOAD MYSQL USERS FROM DISK");
    assert_eq!(generation_of(&f), 1);
    f.ok("INSERT INTO mysql_users (username) VALUES ('later')");
    for sql in ["SAVE MYSQL USERS TO DISK", "PROXYSQL FLUSH CONFIGDB"] {
        let message = f.error(sql).message;
        assert!(message.contains("directory"), "{sql}: {message}");
    }
    f.error("DELETE FROM disk.mysql_users");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    make_room(f.dir.path());
    f.ok("SAVE MYSQL USERS TO DISK");
    let f = reopened(ended(f));
    assert_eq!(f.one("SELECT count(*) FROM mysql_users WHERE username = 'later'"), "1");
    assert_eq!(f.one("SELECT @@mysql-max_connections"), "77");
}

#[test]
fn a_start_without_room_has_what_the_write_ahead_log_holds() {
    let f = fixture();
    save_users(&f, 1);
    // Who reads keeps the log from being emptied.
    let reader = Connection::open(database(&f)).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM mysql_users").unwrap();
    save_users(&f, 2);
    let copy = tempfile::tempdir().unwrap();
    for end in ["", "-wal"] {
        let name = format!("pointsman.db{end}");
        std::fs::copy(f.dir.path().join(&name), copy.path().join(&name)).unwrap();
    }
    assert_ne!(std::fs::metadata(copy.path().join("pointsman.db-wal")).unwrap().len(), 0);
    fill(copy.path());
    assert_eq!(generation_of(&reopened(copy)), 2);
}

#[test]
fn a_start_without_room_and_without_a_database_takes_the_configuration_file() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    assert!(refusal(dir.path()).contains("make room in the data directory"));
    let text = dir.path().join("p.cnf");
    std::fs::write(
        &text,
        "mysql_users = ({ username = \"u\" })\nmysql_variables = { max_connections = 77 }\n",
    )
    .unwrap();
    let file = ConfigFile::read(&text).unwrap();
    let start = Start { file: Some(&file), ..Start::default() };
    let admin = Admin::open(dir.path(), Variables::default(), &[], &start).unwrap();
    let f = Fixture { admin, daemon: Arc::default(), dir };
    assert_eq!(f.one("SELECT username FROM mysql_users"), "u");
    assert_eq!(f.one("SELECT @@mysql-max_connections"), "77");
    for sql in ["SAVE MYSQL USERS TO DISK", "SELECT * FROM disk.mysql_users"] {
        assert!(f.error(sql).message.contains("No such file"), "{sql}");
    }
    make_room(f.dir.path());
    f.ok("PROXYSQL FLUSH CONFIGDB");
    f.ok("SAVE MYSQL USERS TO DISK");
    assert_eq!(f.one("SELECT username FROM disk.mysql_users"), "u");
}
