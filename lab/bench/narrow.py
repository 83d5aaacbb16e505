#!/usr/bin/env python3
"""Transactions of many clients over few server connections: `make bench-narrow`.

sysbench oltp_read_write through pointsman, whose server row allows fewer connections than there are clients, with prepared
statements and without, against MySQL 9.7 and MariaDB. While it runs, the connections are counted on the server. It fails if
sysbench sees an error, be it one that it would ignore, or if there was a connection too many.

  narrow.py --pointsman target/debug/pointsman [--server mariadb] [--seconds 5]

Exit status: 0 all was well; 1 it was not; 77 the servers cannot be had here.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import lab

SERVERS = ("mysql", "mariadb")
MODES = {"prepared": "auto", "text": "disable"}
USER, SCHEMA = "conf", "conf_narrow"
# So many rows that no two of these transactions wait for each other in a circle: a deadlock is an error here.
ROWS = 200_000
WATCH_SECONDS = 0.2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pointsman", type=pathlib.Path, required=True, metavar="PROGRAM")
    parser.add_argument("--server", action="append", choices=SERVERS, help="only this server")
    parser.add_argument("--mode", action="append", choices=MODES, help="only this mode")
    parser.add_argument("--threads", type=int, default=32, help="clients (default 32)")
    parser.add_argument("--connections", type=int, default=8, help="max_connections of the server row (default 8)")
    parser.add_argument("--seconds", type=int, default=60, help="of each run (default 60)")
    return parser.parse_args()


def sysbench(port, threads, command, *more):
    return [
        "sysbench", "oltp_read_write", "--db-driver=mysql", f"--mysql-host={lab.HOST}", f"--mysql-port={port}", f"--mysql-user={USER}",
        f"--mysql-password={lab.PASSWORDS[USER]}", f"--mysql-db={SCHEMA}", "--tables=1", f"--table-size={ROWS}", f"--threads={threads}",
        *more, command,
    ]


class Watch:
    """The most connections that the user had on the server at one time, while it is entered."""

    def __init__(self, servers, server):
        self.count = lambda: int(servers.sql(
            server, f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{USER}'"))
        self.most = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, name="watch")

    def watch(self):
        while not self.ended.wait(WATCH_SECONDS):
            self.most = max(self.most, self.count())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def narrow(daemon, servers, connections):
    """Lets the daemon open so many connections to the server."""
    statements = f"UPDATE mysql_servers SET max_connections = {connections}; LOAD MYSQL SERVERS TO RUNTIME"
    run = servers.client("mariadb", ["-uadmin", "-padmin", "-e", statements], daemon.admin_port, input="")
    if run.returncode:
        raise lab.Failed(f"configuring the daemon: {run.stderr}")


def number(pattern, output):
    found = re.search(pattern, output)
    if not found:
        raise lab.Failed(f"sysbench said:\n{output[-2000:]}")
    return float(found[1])


def run(options, servers, daemon, server, mode):
    """One run; whether it was as it should be."""
    line = sysbench(daemon.port, options.threads, "run", f"--time={options.seconds}", f"--db-ps-mode={MODES[mode]}")
    with Watch(servers, server) as watch:
        done = subprocess.run(line, capture_output=True, text=True, timeout=options.seconds + 120)
    if done.returncode:
        print(f"{server}, {mode}: sysbench ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
        return False
    per_second = r"\(([\d.]+) per sec\.\)"
    transactions = number(rf"transactions:\s+\d+\s+{per_second}", done.stdout)
    p95 = number(r"95th percentile:\s+([\d.]+)", done.stdout)
    errors, reconnects = (int(number(rf"{what}:\s+(\d+)", done.stdout)) for what in ("ignored errors", "reconnects"))
    print(f"{server}, {mode}: {transactions:.0f} transactions per second, p95 {p95:.0f} ms, {errors} errors, {reconnects} reconnects, "
          f"at most {watch.most} connections for {options.threads} clients", flush=True)
    return errors == reconnects == 0 and 0 < watch.most <= options.connections


def main():
    options = arguments()
    if not shutil.which("sysbench"):
        raise lab.Cannot("sysbench is missing (lab/bench/install.sh)")
    servers = lab.Servers()
    good = True
    try:
        servers.start()
        for server in options.server or SERVERS:
            servers.fresh_schema(server, SCHEMA)
            daemon = lab.Daemon(options.pointsman, server, servers)
            try:
                daemon.configure()
                narrow(daemon, servers, options.connections)
                subprocess.run(sysbench(daemon.port, 1, "prepare"), check=True, stdout=subprocess.DEVNULL, timeout=300)
                for mode in options.mode or MODES:
                    good &= run(options, servers, daemon, server, mode)
            finally:
                wrong = daemon.stop()
            if wrong:
                print(wrong)
                good = False
    finally:
        servers.stop()
    return good


lab.run_program("narrow", main)
