"""Many blue/green deployments on one daemon, and the simulator that plays them: a second daemon of the simulator flavour.

When an effect was done is what the watched daemon's own log says, in microseconds. It writes a transition after it has
published the status, and publishes that after the effects it implies, pins and drains among them. So nobody has to ask the
admin port, which would disturb what is measured.
"""

import datetime
import os
import random
import re
import time

from client import Connection
from lanes import PASSWORD, USER, Bench, Failure, free_ports

INTERVAL_MS = 100  # check_interval_ms of every deployment
ARRIVES_WITHIN = 20  # seconds for a transition; more is a failure, not a measurement
SOURCE, TARGET = "BLUE_GREEN_DEPLOYMENT_SOURCE", "BLUE_GREEN_DEPLOYMENT_TARGET"
TRANSITION = re.compile(r"\[(\S+) .*\] blue/green deployment (\d+): \S+ -> (\S+) \(")

# What AWS says, and what the daemon makes of it.
STATUSES = {
    "AVAILABLE": "AVAILABLE",
    "SWITCHOVER_INITIATED": "WRITER_SWITCHOVER_INITIATED",
    "SWITCHOVER_IN_PROGRESS": "WRITER_SWITCHOVER_IN_PROGRESS",
    "SWITCHOVER_IN_POST_PROCESSING": "WRITER_SWITCHOVER_POST_PROCESSING",
    "SWITCHOVER_COMPLETED": "READER_SWITCHOVER_IN_PROGRESS",
    "": "NONE",
}


class Deployment:
    """A blue writer and reader, and their green counterparts: names, addresses, hostgroups."""

    def __init__(self, number):
        self.hostgroup = 10 * (number + 1)  # of the blue writer; readers and green servers have those that follow
        domain = f"d{number}.eu-north-1.rds.amazonaws.com"
        self.names = [f"{name}.{domain}" for name in ("db", "db-reader", "db-green-abc123", "db-reader-green-abc123")]
        self.addresses = [f"127.{20 + number // 250}.{number % 250}.{host}" for host in range(1, 5)]
        self.blue, _, self.green, _ = self.names
        self.writers = self.addresses[0], self.addresses[2]


class Log:
    """The transitions in a daemon's log, as they come."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, encoding="utf-8", errors="replace")
        self.part = ""
        self.seen = []  # (when, hostgroup, status)

    def read(self):
        *lines, self.part = (self.part + self.file.read()).split("\n")
        for found in filter(None, map(TRANSITION.match, lines)):
            when = datetime.datetime.fromisoformat(found[1].replace("Z", "+00:00")).timestamp()
            self.seen.append((when, int(found[2]), found[3]))
        return len(self.seen)

    def wait(self, hostgroups, status, since):
        """When each of these deployments reached the status, of what was read after `since`."""
        deadline = time.monotonic() + ARRIVES_WITHIN
        while True:
            self.read()
            reached = {hostgroup: when for when, hostgroup, to in reversed(self.seen[since:]) if to == status}
            missing = set(hostgroups) - set(reached)
            if not missing:
                return [reached[hostgroup] for hostgroup in hostgroups]
            if time.monotonic() > deadline:
                raise Failure(f"{len(missing)} deployments are not {status} after {ARRIVES_WITHIN} s; of one the log says last: "
                              f"{self.last_word_of(min(missing))}")
            time.sleep(0.005)

    def last_word_of(self, hostgroup):
        with open(self.path, encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if f"deployment {hostgroup}: " in line]
        return lines[-1].strip() if lines else "nothing"


class Fleet(Bench):
    def __init__(self, count):
        super().__init__()
        self.deployments = [Deployment(number) for number in range(count)]

    def start(self, program):
        """Starts both daemons, and waits until every deployment is AVAILABLE."""
        self.server, *ports = free_ports(5)
        self.simulator_pid = self.start_daemon("simulator", program, ports[:2], [
            "--no-monitor", "--sqlite3-server", "--set", f"sqliteserver-mysql_ifaces=0.0.0.0:{self.server}",
            "--set", "mysql-max_connections=10000"])
        self.simulator = Connection(self.server, USER, PASSWORD)
        self.publish()
        hosts = os.path.join(self.directory, "hosts")
        with open(hosts, "w") as file:
            for deployment in self.deployments:
                file.writelines(f"{address} {name}\n" for address, name in zip(deployment.addresses, deployment.names))
        self.pid = self.start_daemon("watched", program, ports[2:], ["--hosts-file", hosts])
        self.traffic, self.admin = ports[2], Connection(ports[3], "admin", "admin")
        self.log = Log(os.path.join(self.directory, "watched.log"))
        self.configure()
        self.log.wait([deployment.hostgroup for deployment in self.deployments], "AVAILABLE", 0)

    def start_daemon(self, name, program, ports, options):
        traffic, admin = ports
        interfaces = {"mysql-interfaces": traffic, "admin-mysql_ifaces": admin}
        sets = [word for variable, port in interfaces.items() for word in ("--set", f"{variable}=127.0.0.1:{port}")]
        pid = self.spawn(name, [program, "-D", os.path.join(self.directory, name), *sets, *options], traffic)
        connection = Connection(admin, "admin", "admin")
        # One user, and one for the readers of each deployment.
        users = {USER: 0} | {user_of(deployment): deployment.hostgroup + 1 for deployment in self.deployments}
        rows = ",".join(f"('{user}','{PASSWORD}',{hostgroup})" for user, hostgroup in users.items())
        connection.query(f"INSERT INTO mysql_users (username, password, default_hostgroup) VALUES {rows}")
        connection.query("LOAD MYSQL USERS TO RUNTIME")
        connection.close()
        return pid

    def configure(self):
        for variable, value in {
            "mysql-monitor_username": USER, "mysql-monitor_password": PASSWORD,
            # The logs of checks are full after ten seconds, so that what grows later is something else.
            "mysql-monitor_history": 10_000,
        }.items():
            self.admin.query(f"SET {variable}='{value}'")
        self.admin.query("LOAD MYSQL VARIABLES TO RUNTIME")
        servers, pairs, rows = [], [], []
        for deployment in self.deployments:
            writer, *others = range(deployment.hostgroup, deployment.hostgroup + 4)
            servers += [f"({hostgroup},'{name}',{self.server})" for hostgroup, name in zip((writer, *others), deployment.names)]
            pairs.append(f"({writer},{others[0]})")
            rows.append(f"({writer},{','.join(map(str, others))},{INTERVAL_MS})")
        self.admin.query(f"INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES {','.join(servers)}")
        columns = "writer_hostgroup, reader_hostgroup"
        self.admin.query(f"INSERT INTO mysql_replication_hostgroups ({columns}) VALUES {','.join(pairs)}")
        columns += ", green_writer_hostgroup, green_reader_hostgroup, check_interval_ms"
        self.admin.query(f"INSERT INTO mysql_aws_rds_bgd_hostgroups ({columns}) VALUES {','.join(rows)}")
        self.admin.query("LOAD MYSQL SERVERS TO RUNTIME")

    def publish(self):
        """The topology of every deployment, AVAILABLE, at both of its writers."""
        control, rows, read_only = [], [], []
        for deployment in self.deployments:
            read_only.append(f"('{deployment.blue}',{self.server},0)")
            for address in deployment.writers:
                control.append(f"('{address}',{self.server},1)")
                rows += topology(deployment, address, self.server, "AVAILABLE")
        self.simulator.query("BEGIN IMMEDIATE")
        self.simulator.query(f"INSERT OR REPLACE INTO READONLY_STATUS VALUES {','.join(read_only)}")
        columns = "backend_ip, backend_port, topology_present"
        self.simulator.query(f"INSERT OR REPLACE INTO RDS_BGD_CONTROL ({columns}) VALUES {','.join(control)}")
        self.simulator.query(f"INSERT OR REPLACE INTO RDS_BGD_TOPOLOGY VALUES {','.join(rows)}")
        self.simulator.query("COMMIT")

    def change(self, status, deployments=None):
        """Commits the next topology of these deployments, or of all, at once. Returns milliseconds from there to when each was in
        the state that goes with it, its effects done."""
        chosen = deployments or self.deployments
        addresses = ",".join(f"'{address}'" for deployment in chosen for address in deployment.writers)
        where = f"backend_ip IN ({addresses})"
        self.simulator.query("BEGIN IMMEDIATE")
        if status == "":
            self.simulator.query(f"DELETE FROM RDS_BGD_TOPOLOGY WHERE {where}")
        elif status == "SWITCHOVER_COMPLETED":
            self.simulator.query(f"DELETE FROM RDS_BGD_TOPOLOGY WHERE role = '{SOURCE}' AND {where}")
            self.simulator.query(f"UPDATE RDS_BGD_TOPOLOGY SET status = '{status}' WHERE {where}")
        else:
            rows = [row for deployment in chosen for address in deployment.writers
                    for row in topology(deployment, address, self.server, status)]
            self.simulator.query(f"INSERT OR REPLACE INTO RDS_BGD_TOPOLOGY VALUES {','.join(rows)}")
        since = self.log.read()
        committing = time.time()
        self.simulator.query("COMMIT")
        reached = self.log.wait([deployment.hostgroup for deployment in chosen], STATUSES[status], since)
        return [1000 * (when - committing) for when in reached]

    def check(self, status):
        """The runtime table says the same as the log."""
        table = "runtime_mysql_aws_rds_bgd_hostgroups"
        found = int(self.admin.value(f"SELECT COUNT(*) FROM {table} WHERE status = '{STATUSES[status]}'"))
        if found != len(self.deployments):
            raise Failure(f"{found} of {len(self.deployments)} deployments are {STATUSES[status]}, says the runtime table")

    def connect(self, deployment):
        """Leaves a free connection to one of the deployment's blue servers in the pool."""
        connection = Connection(self.traffic, user_of(deployment), PASSWORD)
        connection.query("SELECT 1")
        connection.close()

    def pooled(self, deployment):
        """How many connections there are to its blue servers."""
        names = ",".join(f"'{name}'" for name in deployment.names[:2])
        connections = "SELECT SUM(ConnUsed + ConnFree) FROM stats_mysql_connection_pool"
        return int(self.admin.value(f"{connections} WHERE srv_host IN ({names})"))

    def polls(self):
        """How many topology probes the simulator has seen so far. Its log of them is emptied, so that no file grows."""
        count = self.simulator.value("SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'RDS_BGD_PROBE_LOG'")
        self.simulator.query("DELETE FROM RDS_BGD_PROBE_LOG")
        return int(count)


def user_of(deployment):
    return f"{USER}_{deployment.hostgroup}"


def topology(deployment, address, port, status):
    """Rows of RDS_BGD_TOPOLOGY for one backend."""
    members = (("blue", deployment.blue, SOURCE), ("green", deployment.green, TARGET))
    return [f"('{address}',{port},{order},'{name}','{endpoint}',{port},'{role}','{status}')"
            for order, (name, endpoint, role) in enumerate(members)]


def pause():
    """Some part of an interval, so that changes come at any point of it."""
    time.sleep(random.uniform(0, INTERVAL_MS / 1000))
