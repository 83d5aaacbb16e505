"""The ways from a client to the server that are compared: each a process of its own in front of one MariaDB."""

import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "pointsman")
MYSQL_ROOT = os.environ.get("POINTSMAN_MYSQL_ROOT", os.path.join(CACHE, "mysql-sid"))
USER, FAST_USER, PASSWORD, SCHEMA = "bench", "bench_fast", "bench-secret", "bench"
READY_WITHIN = 60
CONNECTIONS = 3000


class Failure(Exception):
    """Something that ends the run, in one line."""


def free_ports(count):
    """Ports below those that outgoing connections take, so that no churn of clients collides with a listener."""
    ports, candidate = [], 20000 + os.getpid() % 8000
    while len(ports) < count:
        candidate += 1
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", candidate))
                ports.append(candidate)
            except OSError:
                pass
    return ports


class Bench:
    """Every process of a run; all are ended on exit, by their process ids."""

    def __init__(self):
        # Inherited by the lanes: a session through a proxy takes two descriptors.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.directory = tempfile.mkdtemp(prefix="pointsman-bench-")
        self.processes = []
        self.lanes = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(self.router_directory(), ignore_errors=True)

    def router_directory(self):
        return os.path.join(MYSQL_ROOT, "srv", f"pointsman-router-{os.getpid()}")

    def spawn(self, name, command, port):
        log = open(os.path.join(self.directory, name + ".log"), "wb")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return process.pid
            except OSError:
                time.sleep(0.1)
        with open(log.name, errors="replace") as text:
            raise Failure(f"{name} did not start: {text.read()[-600:]}")

    def client(self, port, user, password, sql, *options):
        """Runs SQL with MariaDB's command-line client."""
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", f"-u{user}", f"-p{password}", "-BN", *options]
        done = subprocess.run(command, input=sql, text=True, capture_output=True, timeout=60)
        if done.returncode:
            raise Failure(f"{user} on port {port}: {done.stderr.strip()}")
        return done.stdout

    def start(self, pointsman, relay):
        server, haproxy, router, bare, traffic, admin = free_ports(6)
        self.start_server(server)
        self.lanes["direct"] = (server, None, USER)
        self.lanes["haproxy"] = (haproxy, self.start_haproxy(haproxy, server), USER)
        self.lanes["router"] = (router, self.start_router(router, server), USER)
        command = [relay, f"127.0.0.1:{bare}", f"127.0.0.1:{server}"]
        self.lanes["relay"] = (bare, self.spawn("relay", command, bare), USER)
        pid = self.start_pointsman(pointsman, traffic, admin, server)
        self.lanes["pointsman"] = (traffic, pid, USER)
        self.lanes["fast_forward"] = (traffic, pid, FAST_USER)
        self.admin_port = admin

    def start_twin(self, program):
        """A second pointsman, which serves no client: its traffic and admin ports."""
        traffic, admin = free_ports(2)
        self.start_pointsman(program, traffic, admin, self.lanes["direct"][0], "twin")
        return traffic, admin

    def start_server(self, port):
        data = os.path.join(self.directory, "data")
        install = ["mariadb-install-db", "--no-defaults", "--user=root", "--auth-root-authentication-method=normal",
                   "--skip-test-db", f"--datadir={data}"]
        subprocess.run(install, check=True, capture_output=True)
        accounts = os.path.join(self.directory, "accounts.sql")
        with open(accounts, "w") as file:
            file.write(f"CREATE DATABASE {SCHEMA};\n")
            for user in (USER, FAST_USER):
                file.write(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{PASSWORD}';\n")
                file.write(f"GRANT ALL ON {SCHEMA}.* TO '{user}'@'%';\n")
        self.spawn("mariadb", [
            shutil.which("mariadbd"), "--no-defaults", "--user=root", f"--datadir={data}", f"--init-file={accounts}",
            f"--socket={self.directory}/mariadb.sock", f"--pid-file={self.directory}/mariadb.pid", "--bind-address=127.0.0.1",
            "--skip-name-resolve", f"--port={port}", f"--max-connections={CONNECTIONS}", "--back-log=1000",
            "--innodb-flush-log-at-trx-commit=2", "--thread-cache-size=100"], port)

    def start_haproxy(self, port, server):
        path = os.path.join(self.directory, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(f"""global
    maxconn {2 * CONNECTIONS}
    nbthread 2
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen mysql
    bind 127.0.0.1:{port}
    server db 127.0.0.1:{server}
""")
        return self.spawn("haproxy", ["haproxy", "-db", "-f", path], port)

    def start_router(self, port, server):
        directory = self.router_directory()
        os.makedirs(directory)
        inside = directory.removeprefix(MYSQL_ROOT)
        with open(os.path.join(directory, "router.conf"), "w") as file:
            file.write(f"""[DEFAULT]
logging_folder={inside}
runtime_folder={inside}
data_folder={inside}
max_total_connections={CONNECTIONS}
[logger]
level=WARNING
[routing:bench]
bind_address=127.0.0.1
bind_port={port}
destinations=127.0.0.1:{server}
routing_strategy=first-available
client_ssl_mode=PASSTHROUGH
server_ssl_mode=AS_CLIENT
max_connections={CONNECTIONS}
""")
        command = ["chroot", MYSQL_ROOT, "mysqlrouter", "--user=root", "-c", f"{inside}/router.conf"]
        return self.spawn("router", command, port)

    def start_pointsman(self, program, traffic, admin, server, name="pointsman"):
        data = os.path.join(self.directory, name)
        pid = self.spawn(name, [program, "-D", data, "--no-monitor", "--set", f"mysql-interfaces=127.0.0.1:{traffic}",
                                       "--set", f"admin-mysql_ifaces=127.0.0.1:{admin}"], traffic)
        self.client(admin, "admin", "admin", f"""
            INSERT INTO mysql_servers (hostgroup_id, hostname, port, max_connections) VALUES (0, '127.0.0.1', {server}, {CONNECTIONS});
            INSERT INTO mysql_users (username, password, default_hostgroup, fast_forward) VALUES
                ('{USER}', '{PASSWORD}', 0, 0), ('{FAST_USER}', '{PASSWORD}', 0, 1);
            LOAD MYSQL SERVERS TO RUNTIME; LOAD MYSQL USERS TO RUNTIME;""")
        return pid
