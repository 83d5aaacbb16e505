"""dolphie in a terminal of its own: it must know a ProxySQL, and show its panels with figures of this daemon."""

import pathlib
import subprocess
import sys
import tempfile
import time

import lab

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 60
SET_UP = (
    "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (3, '127.0.0.1', {port})",
    "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('testuser', 'testuser', 3)",
    "INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES (1, 1, '^SELECT', 3, 1)",
    "LOAD MYSQL SERVERS TO RUNTIME",
    "LOAD MYSQL USERS TO RUNTIME",
    "LOAD MYSQL QUERY RULES TO RUNTIME",
)
# What it must have asked.
ASKED = ("@@admin-version", "SHOW GLOBAL VARIABLES", "stats_mysql_global", "stats_mysql_commands_counters",
         "stats_mysql_connection_pool", "stats_mysql_processlist", "stats_mysql_query_rules")


def client(port, user, password, statements):
    command = [lab.REAL_SERVERS, "mariadb", f"-h{lab.HOST}", f"-P{port}", f"-u{user}", f"-p{password}", "-e", ";".join(statements)]
    run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS)
    if run.returncode:
        raise lab.Failed(f"{user}: {run.stderr}")


def listens(port):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        # Seen from outside, so that the relay counts no client of its own.
        if any(line.split()[1].endswith(f":{port:04X}") for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]):
            return
        time.sleep(0.05)
    raise lab.Failed(f"nothing listens on port {port}")


def problems(daemon, tools):
    """What dolphie does not show, what it did not ask, and what it was refused."""
    client(daemon.admin_port, "admin", "admin", [text.format(port=daemon.sqlite_port) for text in SET_UP])
    client(daemon.port, "testuser", "testuser", ["SELECT 1", "SELECT 2"])
    shown = ("[CONNECTED]", "ProxySQL 3.0.0", "Workers", "Hostgroup Summary (1)", str(daemon.sqlite_port), "ONLINE", "Query Rules (1)",
             "^SELECT", "Yes", "Command Stats (1)", "Processlist (")
    [port] = lab.free_ports(1)
    with tempfile.TemporaryDirectory(prefix="dolphie-") as home, tempfile.TemporaryFile("w+") as record:
        relay = subprocess.Popen([sys.executable, HERE / "record.py", str(port), str(daemon.admin_port)], stdout=record)
        try:
            listens(port)
            program = [tools / "python/bin/python", HERE / "terminal.py", home, str(SECONDS), *shown, "--", tools / "python/bin/dolphie"]
            options = ["-h", lab.HOST, "-P", str(port), "-u", "admin", "-p", "admin", "--pypi-repo", f"http://{lab.HOST}:1/",
                       "--panels", "dashboard,processlist,proxysql_hostgroup_summary,proxysql_mysql_query_rules,proxysql_command_stats"]
            run = subprocess.run([*program, *options], capture_output=True, text=True, timeout=SECONDS * 2)
        finally:
            relay.terminate()
            relay.wait()
        record.seek(0)
        lines = record.read().splitlines()
    found = []
    if run.returncode:
        found.append(f"the screen lacks something: {run.stderr[-500:]}\n{run.stdout}")
    found += [f"did not ask {text}" for text in ASKED if not any(text in line for line in lines)]
    found += [f"was refused: {before}\n{line}" for before, line in zip(lines, lines[1:]) if line.startswith("E ")]
    return found
