"""mysqldump and mariadb-dump of the admin database: what they write is fed back, and nothing is lost."""

import os
import pathlib
import subprocess

import lab

PROGRAMS = ("mysqldump", "mariadb-dump")
TABLES = ("mysql_servers", "mysql_users", "mysql_query_rules", "mysql_replication_hostgroups", "global_variables")
ROWS = [
    "INSERT INTO mysql_servers (hostgroup_id, hostname, port, comment) VALUES (1, 'a', 1, 'it''s \"quoted\" and \\ slashed'), (2, 'b', 2, 'ü\t\n')",
    "INSERT INTO mysql_users (username, password, attributes) VALUES ('u', NULL, '{\"a\":1}'), ('v', '', '')",
    "INSERT INTO mysql_query_rules (rule_id, match_pattern, replace_pattern) VALUES (7, '^(a|b)''\\d+$', '\\1')",
    "INSERT INTO mysql_replication_hostgroups (writer_hostgroup, reader_hostgroup) VALUES (1, 2)",
]
SECONDS = 60


def command(program, port, *arguments):
    """A program of MySQL's from its own directory, or of MariaDB's."""
    options = ["--no-defaults", f"-h{lab.HOST}", f"-P{port}", "-uadmin", "-padmin", *arguments]
    if program.startswith("mariadb"):
        return [program, *options]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "pointsman/mysql-sid")
    return ["chroot", os.environ.get("POINTSMAN_MYSQL_ROOT", str(cache)), f"/usr/bin/{program}", *options]


def run(program, port, *arguments, text=""):
    done = subprocess.run(command(program, port, *arguments), input=text, capture_output=True, text=True, timeout=SECONDS)
    errors = [line for line in done.stderr.splitlines() if "[Warning]" not in line and "insecure" not in line]
    if done.returncode or errors:
        raise lab.Failed(f"{program} {' '.join(arguments)}: {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout


def contents(client, port):
    return [run(client, port, "-BN", "-e", f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]


def problems(daemon, program):
    client = "mariadb" if program.startswith("mariadb") else "mysql"
    port = daemon.admin_port
    for statement in ROWS:
        run(client, port, "-e", statement)
    before = contents(client, port)
    dump = run(program, port, "--no-create-info", "--skip-triggers", "main", *TABLES)
    # Rows that are read-only are the daemon's own and come back by themselves.
    for table in TABLES:
        run(client, port, "-e", f"DELETE FROM {table}")
    run(client, port, "--default-character-set=utf8mb4", "main", text=dump)
    after = contents(client, port)
    found = [f"{table} has come back otherwise:\n{one}\n{other}" for table, one, other in zip(TABLES, before, after) if one != other]
    run(client, port, "-e", "LOAD MYSQL SERVERS TO RUNTIME; LOAD MYSQL USERS TO RUNTIME; LOAD MYSQL QUERY RULES TO RUNTIME; LOAD MYSQL VARIABLES TO RUNTIME")
    return found
