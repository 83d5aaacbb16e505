use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

pub(super) fn refusal(dir: &Path) -> String {
    match Admin::open(dir, Variables::default(), &[], &Start::default()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("opened"),
    }
}

#[test]
fn a_second_daemon_on_the_directory_is_refused() {
    let first = fixture();
    let text = refusal(first.dir.path());
    assert!(text.contains("pointsman.lock") && text.contains("another pointsman"), "{text}");
    first.restart();
}

#[test]
fn what_is_not_a_database_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pointsman.db");
    fs::write(&path, "these are notes, not a database".repeat(100)).unwrap();
    let text = refusal(dir.path());
    assert!(text.contains("pointsman.db: not a pointsman database"), "{text}");
    assert!(!text.contains('\n'));
    assert!(fs::read_to_string(&path).unwrap().starts_with("these are notes"));
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    // Notes and databases of others keep their mode, too.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    refusal(dir.path());
    assert_eq!(mode(&path), 0o644);
    fs::remove_file(&path).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE orders (id INT)").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refusal(dir.path()).contains("it has a table orders"));
    assert_eq!(mode(&path), 0o644);
}

#[test]
fn a_damaged_database_is_refused_and_kept() {
    let f = fixture();
    f.ok("INSERT INTO mysql_users (username) VALUES ('someone')");
    f.ok("SAVE MYSQL USERS TO DISK");
    let path = f.dir.path().join("pointsman.db");
    let Fixture { admin, dir, .. } = f;
    drop(admin);
    let mut bytes = fs::read(&path).unwrap();
    // The header stays: every page after the first is overwritten.
    bytes[4096..].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    let text = refusal(dir.path());
    assert!(text.contains("pointsman.db") && text.contains("damaged"), "{text}");
    assert!(!text.contains('\n'));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_directory_that_is_missing_or_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = refusal(&dir.path().join("nowhere"));
    assert!(text.contains("nowhere"), "{text}");
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(refusal(&file).contains("file"));
}

#[test]
fn the_database_is_its_owners_alone() {
    let f = fixture();
    let path = f.dir.path().join("pointsman.db");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let f = f.restart();
    assert_eq!(fs::metadata(f.dir.path().join("pointsman.db")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn overrides_are_in_force_but_not_saved() {
    let dir = tempfile::tempdir().unwrap();
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let overrides = [set("mysql-interfaces", "127.0.0.1:7000"), set("mysql-wait_timeout", "5000")];
    let admin = Admin::open(dir.path(), Variables::default(), &overrides, &Start::default()).unwrap();
    assert_eq!(admin.variables().unwrap().mysql_interfaces, "127.0.0.1:7000");
    let f = Fixture { admin, daemon: Arc::default(), dir };
    assert_eq!(f.one("SELECT @@mysql-wait_timeout"), "5000");
    assert_eq!(f.rows("SELECT * FROM disk.global_variables"), Vec::<String>::new());
    let f = f.restart();
    assert_eq!(f.one("SELECT @@mysql-wait_timeout"), "28800000");
}

#[test]
fn wrong_overrides_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, value, said) in [
        ("mysql-nothing", "1", "no such variable"),
        ("mysql-wait_timeout", "soon", "'soon'"),
        ("admin-admin_credentials", "hush", "user:password pairs"),
    ] {
        let overrides = [(name.to_owned(), value.to_owned())];
        let error =
            Admin::open(dir.path(), Variables::default(), &overrides, &Start::default()).err().unwrap();
        assert!(error.0.contains(said) && error.0.contains(name), "{error}");
        assert!(!error.0.contains("hush"));
    }
}

#[test]
fn defaults_come_from_the_caller_until_something_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    let defaults = Variables { sqliteserver_interfaces: "0.0.0.0:3306".into(), ..Variables::default() };
    let admin = Admin::open(dir.path(), defaults, &[], &Start::default()).unwrap();
    assert_eq!(admin.variables().unwrap().sqliteserver_interfaces, "0.0.0.0:3306");
}

#[test]
fn a_stored_value_that_does_not_fit_is_left_out_and_kept() {
    let f = fixture();
    f.ok("INSERT INTO disk.global_variables VALUES ('mysql-wait_timeout', 'soon'), ('mysql-max_connections', '0'),
          ('mysql-monitor_password', x'ff'), (x'ff', 'x'), ('mysql-ping_timeout_server', '300')");
    f.ok("PROXYSQL RESTART");
    let f = f.restart();
    f.admin.load_all().unwrap();
    let variables = f.daemon.variables().unwrap();
    let defaults = Variables::default();
    assert_eq!(variables.wait_timeout, defaults.wait_timeout);
    assert_eq!(variables.max_connections, defaults.max_connections);
    assert_eq!(variables.monitor_password, defaults.monitor_password);
    assert_eq!(variables.ping_timeout_server, Duration::from_millis(300));
    assert_eq!(f.one("SELECT @@mysql-wait_timeout"), "28800000");
    let stored =
        "SELECT variable_value FROM disk.global_variables WHERE variable_name = 'mysql-wait_timeout'";
    assert_eq!(f.one(stored), "soon");
    let Fixture { admin, dir, .. } = f;
    drop(admin);
    let overrides = [("mysql-wait_timeout".to_owned(), "1000".to_owned())];
    let admin = Admin::open(dir.path(), Variables::default(), &overrides, &Start::default()).unwrap();
    assert_eq!(admin.variables().unwrap().wait_timeout, Duration::from_secs(1));
}

#[test]
fn what_is_replaced_is_named_but_no_secret() {
    let f = fixture();
    f.ok("UPDATE global_variables SET variable_value = 'soon' WHERE variable_name = 'mysql-wait_timeout'");
    f.ok("UPDATE global_variables SET variable_value = x'ff' WHERE variable_name = 'mysql-monitor_password'");
    f.ok(
        "UPDATE global_variables SET variable_value = 'hush' WHERE variable_name = 'admin-admin_credentials'",
    );
    let lines = crate::stored::replace_unfit(&f.admin.store.lock().conn, &Variables::default()).unwrap();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for name in
        ["'mysql-wait_timeout' can't be set to 'soon'", "mysql-monitor_password", "admin-admin_credentials"]
    {
        assert!(lines.iter().any(|line| line.contains(name)), "{name}: {lines:?}");
    }
    assert!(!lines.concat().contains("hush"));
}

#[test]
fn tables_of_a_later_version_are_named_and_kept() {
    let f = fixture();
    f.ok("INSERT INTO mysql_users (username) VALUES ('someone')");
    f.ok("SAVE MYSQL USERS TO DISK");
    f.admin.store.lock().conn.execute_batch("ALTER TABLE disk.mysql_users ADD COLUMN more INT").unwrap();
    let Fixture { admin, dir, .. } = f;
    drop(admin);
    let text = refusal(dir.path());
    assert!(text.contains("pointsman.db: table mysql_users has a column more,"), "{text}");
    let kept = rusqlite::Connection::open(dir.path().join("pointsman.db")).unwrap();
    kept.query_row("SELECT username FROM mysql_users", [], |row| row.get::<_, String>(0)).unwrap();
}

#[test]
fn a_stored_row_that_does_not_fit_is_named() {
    let f = fixture();
    f.ok("INSERT INTO disk.mysql_servers (hostname, max_connections) VALUES ('a', 'many')");
    let Fixture { admin, dir, .. } = f;
    drop(admin);
    let text = refusal(dir.path());
    assert!(
        text.contains(
            "pointsman.db: mysql_servers (hostgroup_id=0, hostname='a', port=3306).max_connections: 'many'"
        ),
        "{text}"
    );
}

#[test]
fn nothing_is_saved_to_a_file_that_is_gone() {
    let f = fixture();
    let path = f.dir.path().join("pointsman.db");
    fs::rename(&path, f.dir.path().join("aside")).unwrap();
    for sql in ["SAVE MYSQL SERVERS TO DISK", "SAVE MYSQL VARIABLES TO DISK", "LOAD MYSQL USERS FROM DISK"] {
        assert!(f.error(sql).message.contains("pointsman.db: No such file"), "{sql}");
    }
    fs::write(&path, "").unwrap();
    assert!(f.error("SAVE MYSQL USERS TO DISK").message.contains("replaced"));
    assert_eq!(fs::read(&path).unwrap(), b"");
    fs::rename(f.dir.path().join("aside"), &path).unwrap();
    f.ok("SAVE MYSQL USERS TO DISK");
}

#[test]
fn statements_do_not_look_into_a_file_that_was_put_in_the_database_s_place() {
    let f = fixture();
    let (path, aside) = (f.dir.path().join("pointsman.db"), f.dir.path().join("aside"));
    // One connection that reads has the old file open, another would open the new one.
    assert_eq!(f.one("SELECT count(*) FROM disk.mysql_users"), "0");
    fs::rename(&path, &aside).unwrap();
    for (file, said) in [(None, "No such file"), (Some("another"), "replaced")] {
        file.map(|text| fs::write(&path, text)).transpose().unwrap();
        for forget in [false, true] {
            if forget {
                f.admin.store.forget_readers();
            }
            for sql in [
                "SELECT count(*) FROM disk.mysql_users",
                "SELECT 1 FROM mysql_servers WHERE EXISTS (SELECT 1 FROM disk.mysql_users)",
                "INSERT INTO disk.mysql_users (username) VALUES ('u')",
                "DELETE FROM disk.mysql_users",
                "CHECKSUM DISK MYSQL USERS",
            ] {
                let message = f.error(sql).message;
                assert!(message.contains(said), "{sql}: {message}");
            }
            assert_eq!(f.one("SELECT count(*) FROM mysql_users"), "0");
        }
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), file);
    }
    fs::rename(&aside, &path).unwrap();
    f.ok("INSERT INTO disk.mysql_users (username) VALUES ('u')");
    assert_eq!(f.one("SELECT count(*) FROM disk.mysql_users"), "1");
}
