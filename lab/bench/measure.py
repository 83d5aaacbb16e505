"""One measurement: sysbench on one lane, and what the lane's own process used meanwhile."""

import os
import re
import subprocess
import time

from client import Connection
from lanes import PASSWORD, SCHEMA, USER, Failure

HERE = os.path.dirname(os.path.abspath(__file__))
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time of a process and all its threads so far, in seconds."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) / TICK, int(fields[12]) / TICK


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])


def sysbench(script, port, user, threads, seconds, *options, command="run"):
    line = ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}",
               f"--mysql-user={user}", f"--mysql-password={PASSWORD}", f"--mysql-db={SCHEMA}", f"--threads={threads}",
               f"--time={seconds}", "--histogram", "--table-size=10000", "--tables=1", *options, command]
    done = subprocess.run(line, capture_output=True, text=True, timeout=seconds + 120)
    if done.returncode:
        raise Failure(f"sysbench on port {port}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def percentiles(output, wanted):
    """Milliseconds, from the lines `   0.123 |*** 45` of a histogram."""
    counts = [(float(a), int(b)) for a, b in re.findall(r"^\s+([\d.]+) \|\**\s+(\d+)$", output, re.M)]
    total, seen, found = sum(count for _, count in counts), 0, []
    for milliseconds, count in counts:
        seen += count
        while len(found) < len(wanted) and seen >= total * wanted[len(found)] / 100:
            found.append(milliseconds)
    return found or [0.0] * len(wanted)


def run(lane, script, threads, seconds, *options):
    """Throughput, p50/p95/p99 in ms, user and system microseconds of the lane's process for each event."""
    port, pid, user = lane
    before = cpu_seconds(pid) if pid else (0, 0)
    output = sysbench(script, port, user, threads, seconds, *options)
    after = cpu_seconds(pid) if pid else (0, 0)
    events = int(re.search(r"total number of events:\s+(\d+)", output)[1])
    elapsed = float(re.search(r"total time:\s+([\d.]+)s", output)[1])
    if not events:
        raise Failure(f"no event on port {port}")
    user_time, system_time = (1e6 * (b - a) / events for a, b in zip(before, after))
    return dict(zip(("rate", "p50", "p95", "p99", "user", "system"),
                    (events / elapsed, *percentiles(output, (50, 95, 99)), user_time, system_time)))


def churn(lane, seconds):
    return run(lane, os.path.join(HERE, "churn.lua"), 8, seconds)


def fill_digests(bench, port, count):
    """Runs `count` statements with digests of their own."""
    letters = str.maketrans("0123456789", "abcdefghij")
    bench.client(port, USER, PASSWORD, "".join(f"SELECT 1 AS {f'n{n}'.translate(letters)};\n" for n in range(count)))


class Reader:
    """Reads the tables of an admin port again and again, as fast as they come, while it is entered."""

    TABLES = ("stats_mysql_query_digest", "stats_mysql_connection_pool", "stats_mysql_processlist", "stats_mysql_global",
              "runtime_mysql_servers")

    def __init__(self, port):
        self.port = port

    def __enter__(self):
        if self.port is None:
            return
        statements = "".join(f"SELECT * FROM {table};" for table in self.TABLES)
        self.source = subprocess.Popen(["yes", statements], stdout=subprocess.PIPE)
        self.client = subprocess.Popen(
            ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.port}", "-uadmin", "-padmin", "-BN", "--unbuffered"],
            stdin=self.source.stdout, stdout=subprocess.DEVNULL)
        self.source.stdout.close()

    def __exit__(self, *_):
        if self.port is None:
            return
        ended = self.client.poll()
        for process in (self.client, self.source):
            process.kill()
            process.wait()
        if ended is not None:
            raise Failure(f"the reader of the admin port ended with {ended}")


def memory(lane, sessions):
    """Resident KiB that each of many idle sessions adds to the lane's process."""
    port, pid, user = lane
    before, held = resident_kib(pid), []
    try:
        for _ in range(sessions):
            held.append(Connection(port, user, PASSWORD))
            held[-1].query("SELECT 1")
        time.sleep(1)
        return (resident_kib(pid) - before) / sessions
    finally:
        for connection in held:
            connection.close()
        time.sleep(1)
