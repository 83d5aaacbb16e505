"""What the programs of the lab share: how they end, their clients, the two servers, and a daemon for each of them."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
REAL_SERVERS = ROOT / "lab" / "real-servers.sh"
CANNOT = 77
GREETING_VERSION = 5  # behind the packet's header and the protocol's number
HOST = "127.0.0.1"
START_SECONDS = 30
STOP_SECONDS = 20
LOWEST_PORT, HIGHEST_PORT = 20_000, 32_000  # below what the kernel gives to outgoing connections

PASSWORDS = {
    "conf": "conf-secret",
    "conf_reader": "reader-secret",
    "conf_admin": "admin-secret",
    "conf_other": "other-secret",
    "conf_empty": "",
}


class Cannot(Exception):
    """The machine lacks something; the text says what."""


class Failed(Exception):
    """What should have worked did not."""


def run_program(name, work):
    """Ends the process as its program's work ends: `work` returns whether all was well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of every "finally"
    try:
        sys.exit(0 if work() else 1)
    except Cannot as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(1 if os.environ.get("POINTSMAN_REQUIRE_REAL_SERVERS") == "1" else CANNOT)
    except (Failed, subprocess.TimeoutExpired) as error:
        print(f"{name}: FAILED: {error}", file=sys.stderr)
        sys.exit(1)


def installed(what):
    """Where install.sh has put the "drivers" or "tools"."""
    run = subprocess.run([ROOT / "lab/conformance/install.sh", what], stdout=subprocess.PIPE, text=True, timeout=900)
    if run.returncode == CANNOT:
        raise Cannot(f"the {what} cannot be installed")
    if run.returncode:
        raise Failed(f"the {what} were not installed")
    return pathlib.Path(run.stdout.strip().splitlines()[-1])


def free_ports(count):
    """Ports that nobody listens on, held until all are found."""
    sockets, ports = [], []
    for port in range(LOWEST_PORT + os.getpid() % 5_000, HIGHEST_PORT):
        if len(ports) == count:
            break
        candidate = socket.socket()
        try:
            candidate.bind((HOST, port))
        except OSError:
            candidate.close()
            continue
        sockets.append(candidate)
        ports.append(port)
    for candidate in sockets:
        candidate.close()
    if len(ports) < count:
        raise Failed("no free ports")
    return ports


class Servers:
    """MySQL and MariaDB, started by lab/real-servers.sh and stopped with the program."""

    def __init__(self):
        self.state = tempfile.mkdtemp(prefix="conformance-servers-")
        mysql, mariadb = free_ports(2)
        self.ports = {"mysql": mysql, "mariadb": mariadb}
        self.environment = {
            **os.environ,
            "POINTSMAN_REAL_SERVERS_DIR": self.state,
            "POINTSMAN_MYSQL_PORT": str(mysql),
            "POINTSMAN_MARIADB_PORT": str(mariadb),
        }

    def start(self):
        run = subprocess.run([REAL_SERVERS, "start"], env=self.environment, capture_output=True, text=True, timeout=240)
        if run.returncode == CANNOT:
            raise Cannot(run.stderr.strip())
        if run.returncode:
            raise Failed(f"the servers did not start:\n{run.stderr}")
        for server in self.ports:
            self.sql(server, accounts(server))

    def sql(self, server, statements):
        """Runs statements as the administrator and returns what they print."""
        arguments = ["-udba", "-pdba-secret", "-BN", "-e", statements]
        run = self.client(server, arguments, self.ports[server], input="")
        if run.returncode:
            raise Failed(f"{server}: {run.stderr}")
        return run.stdout

    def client(self, server, arguments, port, **named):
        """Runs the server's own command-line client."""
        command = [REAL_SERVERS, server, f"-h{HOST}", f"-P{port}", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120, **named)

    def version(self, server):
        """What the server's greeting says: MariaDB puts 5.5.5- before its version, and drivers decide by it."""
        with socket.create_connection((HOST, self.ports[server]), timeout=10) as connection:
            greeting = connection.recv(256)
        return greeting[GREETING_VERSION:].split(b"\0", 1)[0].decode()

    def fresh_schema(self, server, schema):
        self.sql(server, f"DROP DATABASE IF EXISTS {schema}; DROP DATABASE IF EXISTS {schema}_gone; "
                         f"DROP USER IF EXISTS {schema}_made; CREATE DATABASE {schema} CHARACTER SET utf8mb4")

    def warm_up(self, server):
        """Logs every account in once over TLS, so that caching_sha2_password knows it: some drivers cannot log in for
        the first time without TLS."""
        for user, password in PASSWORDS.items():
            run = self.client(server, [f"-u{user}", f"--password={password}", "-e", "DO 1"], self.ports[server], input="")
            if run.returncode:
                raise Failed(f"{user} cannot log in to {server}: {run.stderr}")

    def stop(self):
        subprocess.run([REAL_SERVERS, "stop"], env=self.environment, stdout=subprocess.DEVNULL, timeout=120)
        shutil.rmtree(self.state, ignore_errors=True)


def accounts(server):
    lines = [f"CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'" for user, password in PASSWORDS.items()]
    lines += [rf"GRANT ALL ON `conf\_%`.* TO '{user}'@'%'" for user in ("conf", "conf_reader", "conf_other")]
    lines.append("GRANT ALL ON *.* TO 'conf_admin'@'%' WITH GRANT OPTION")
    if server == "mysql":
        lines.append("INSTALL COMPONENT 'file://component_query_attributes'")
        lines.append("SET GLOBAL local_infile = ON")
        lines.append("SET GLOBAL log_bin_trust_function_creators = ON")
    return ";".join(lines)


class Daemon:
    """A pointsman in front of one server, which it says it is once it is configured."""

    def __init__(self, program, server, servers, *more):
        self.server = server
        self.servers = servers
        self.directory = tempfile.mkdtemp(prefix=f"conformance-{server}-")
        self.log = pathlib.Path(self.directory, "log")
        arguments = [program, "-D", self.directory, *more]
        for variable in ("admin-mysql_ifaces", "mysql-interfaces", "sqliteserver-mysql_ifaces"):
            arguments += ["--set", f"{variable}={HOST}:0"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        ports = self.wait_ready()
        self.admin_port, self.port, self.sqlite_port = ports["admin"], ports["mysql"], ports.get("sqliteserver")

    def wait_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            ports = self.bound_ports()
            if "admin" in ports and "mysql" in ports:
                return ports
            time.sleep(0.05)
        raise Failed(f"the daemon did not become ready:\n{self.log.read_text()}")

    def bound_ports(self):
        try:
            lines = pathlib.Path(self.directory, "ports").read_text().splitlines()
        except FileNotFoundError:
            return {}
        pairs = [line.split(" ", 1) for line in lines if " " in line]
        return {name: int(address.rsplit(":", 1)[1]) for name, address in pairs}

    def configure(self, max_connections=1000, variables=(), fast_forward=False):
        """`variables`: names and values of some more. `fast_forward`: of every user."""
        statements = [
            f"INSERT INTO mysql_servers (hostgroup_id, hostname, port, max_connections) "
            f"VALUES (1, '{HOST}', {self.servers.ports[self.server]}, {max_connections})",
            f"SET mysql-server_version='{self.servers.version(self.server)}'",
        ]
        statements += [f"SET mysql-{name}='{value}'" for name, value in variables]
        statements += [
            "INSERT INTO mysql_users (username, password, default_hostgroup, fast_forward) "
            f"VALUES ('{user}', '{password}', 1, {int(fast_forward)})"
            for user, password in PASSWORDS.items()
        ]
        statements += [f"LOAD MYSQL {what} TO RUNTIME" for what in ("SERVERS", "USERS", "VARIABLES")]
        arguments = ["-uadmin", "-padmin", "-e", ";".join(statements)]
        run = self.servers.client("mariadb", arguments, self.admin_port, input="")
        if run.returncode:
            raise Failed(f"configuring the daemon: {run.stderr}")

    def stop(self):
        """Ends the daemon and returns what is wrong with how it ended, if anything is."""
        self.process.terminate()
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "not in time"
        log = self.log.read_text(errors="replace")
        shutil.rmtree(self.directory, ignore_errors=True)
        if status != 0 or "panicked" in log:
            return f"the daemon in front of {self.server} ended with {status}; its log:\n{log[-4000:]}"
        return None
