use super::super::ConfigFile;
use super::super::known;
use crate::tables::TABLES;
use std::fs;
use std::path::Path;

fn read(path: &Path) -> Result<ConfigFile, String> {
    ConfigFile::read(path).map_err(|error| error.to_string())
}

#[test]
fn files_are_read_with_what_they_include() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("more")).unwrap();
    let main = dir.path().join("p.cnf");
    fs::write(&main, "datadir = \"/d\"\n@include \"more/users.cnf\"\n").unwrap();
    fs::write(
        dir.path().join("more/users.cnf"),
        "@include \"beside.cnf\"\nscheduler = ();\nerrorlog = \"/x\"\n",
    )
    .unwrap();
    fs::write(
        dir.path().join("more/beside.cnf"),
        "mysql_users = ();\npgsql_servers = ( { anything = [1] } );",
    )
    .unwrap();
    let file = read(&main).unwrap();
    assert_eq!(file.path(), main);
    assert_eq!(file.datadir(), Some("/d".into()));
    let ignored = file.ignored();
    assert_eq!(ignored.len(), 3, "{ignored:?}");
    assert!(ignored[0].ends_with("more/beside.cnf:2: pgsql_servers is left out: pointsman does not have it"));
    assert!(ignored[2].contains("users.cnf:3: errorlog has no effect: the log goes to standard error"));

    fs::write(dir.path().join("more/beside.cnf"), "a = 1;\nmysql_user = ();").unwrap();
    let said = read(&main).err().unwrap();
    assert!(said.ends_with("more/beside.cnf:1: a: there is no section or setting of this name"), "{said}");
    fs::remove_file(dir.path().join("more/beside.cnf")).unwrap();
    let said = read(&main).err().unwrap();
    assert!(said.contains("users.cnf:1: @include: ") && said.contains("beside.cnf: No such file"), "{said}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.cnf");
    assert!(read(&path).err().unwrap().contains("p.cnf: No such file"));
    assert!(read(dir.path()).err().unwrap().ends_with(": not a file"));
    fs::write(&path, b"a = 1;\n\nb = \"\xff\"\n").unwrap();
    assert!(read(&path).err().unwrap().ends_with("p.cnf:3: the text is not UTF-8"));
    fs::write(&path, " ".repeat((16 << 20) + 1)).unwrap();
    assert!(read(&path).err().unwrap().ends_with("more than 16 MiB"));
    for text in ["datadir = 5;", "datadir = \"\";"] {
        fs::write(&path, text).unwrap();
        assert!(read(&path).err().unwrap().contains("p.cnf:1: datadir: "), "{text}");
    }
    assert!(read(Path::new("/dev/null")).unwrap().ignored().is_empty());
}

#[test]
fn names_of_proxysql_are_known() {
    for name in
        ["pgsql_users", "scheduler", "ldap_variables", "restapi", "mysql_galera_hostgroups", "sqlite3_plugin"]
    {
        assert!(known::section(name), "{name}");
    }
    for name in ["mysql_user", "schedulers", "variables", ""] {
        assert!(!known::section(name) && TABLES.iter().all(|table| table.name != name), "{name}");
    }
    assert!(known::variable("mysql-server_capabilities") && known::variable("mysql-eventslog_filename"));
    assert!(!known::variable("mysql-monitor_passwort") && !known::variable("mysql-"));
}
