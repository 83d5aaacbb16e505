#!/usr/bin/env python3
"""Near servers first while whoever tells where servers are is slow, gone and back: `make bench-locality`.

Three servers of equal weight, one in pointsman's zone, one in another zone, one in another Region; clients that stay and clients that
come for one statement each. Every answer tells which server gave it. In each phase the part of the statements that each server
answered stands beside the part that it should have. Exit status 1: a statement failed, or a part is off by more than chance
explains.

  locality.py --pointsman target/release/pointsman [--picture FILE.svg]
  locality.py ... --quick            some seconds, without what takes a refresh or an expiry
"""

import argparse
import collections
import math
import os
import platform
import sys
import threading
import time

from client import Connection
from lanes import PASSWORD, USER, Bench, Failure, free_ports
from picture import Picture
from report import say, table

# Name, Region, zone, and what the weight is multiplied by there.
SERVERS = (
    ("near", "near.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com", "eu-north-1", "eu-north-1a", 4),
    ("mid", "mid.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com", "eu-north-1", "eu-north-1b", 2),
    ("far", "far.c1yqcg0ie39o.eu-west-1.rds.amazonaws.com", "eu-west-1", "eu-west-1a", 1),
)
REFRESH, STALE = 30, 60  # seconds; the first is the least that may be
POLICY = (f'{{"aws":{{"locality_awareness":{{"same_region_multiplier":2,"same_az_multiplier":4,'
          f'"refresh_interval_seconds":{REFRESH},"stale_ttl_seconds":{STALE}}}}}}}')
STAYING, COMING = 4, 2  # clients
PAUSE = 0.004  # seconds between two statements of a client
COMES_WITHIN = 75  # seconds for a state: the longest way is from an answer to its expiry
DEVIATIONS = 5  # standard deviations of a share that chance is allowed: more comes once in 1.7 million shares
EQUAL = (1, 1, 1)
BY_PLACE = tuple(factor for *_, factor in SERVERS)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pointsman", required=True, metavar="PROGRAM")
    parser.add_argument("--seconds", type=float, help="for which each phase is counted (default 8; 3 with --quick)")
    parser.add_argument("--picture", metavar="FILE", help="where to draw the shares over time, as SVG")
    parser.add_argument("--quick", action="store_true", help="without what takes a refresh or an expiry")
    options = parser.parse_args()
    options.seconds = options.seconds or (3 if options.quick else 8)
    return options


class Traffic:
    """Clients that ask who answers, and when each answer came."""

    def __init__(self, port):
        self.port = port
        self.answers = []  # (when, name), None for a statement that failed
        self.failures = collections.Counter()
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(number < STAYING,)) for number in range(STAYING + COMING)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def run(self, stays):
        connection = None
        while not self.ended.wait(PAUSE):
            name = None
            try:
                connection = connection or Connection(self.port, USER, PASSWORD)
                name = connection.value("SELECT name FROM who")
            except (Failure, OSError, ValueError) as error:
                self.failures[str(error)] += 1
            self.answers.append((time.monotonic(), name))
            if connection and not (stays and name):
                connection.close()
                connection = None
        if connection:
            connection.close()


class Map:
    """The map file: there, gone, or a pipe whose reader waits until somebody writes."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "zones")
        self.pipe = os.path.join(directory, "zones.pipe")

    def restore(self, zones=tuple(range(len(SERVERS)))):
        """Writes the file, where each server is at the place of the server of that number."""
        lines = ["self eu-north-1 eu-north-1a"]
        lines += [f"{name} {SERVERS[place][2]} {SERVERS[place][3]}" for (_, name, *_), place in zip(SERVERS, zones)]
        with open(self.path + ".new", "w") as file:
            file.write("\n".join(lines) + "\n")
        os.rename(self.path + ".new", self.path)

    def remove(self):
        os.remove(self.path)

    def hang(self):
        os.mkfifo(self.pipe)
        # Two names, so that it can be written to when the file is back in its place.
        os.link(self.pipe, self.path + ".new")
        os.rename(self.path + ".new", self.path)

    def answer(self):
        """Gives what the file says to who waits at the pipe."""
        deadline = time.monotonic() + COMES_WITHIN
        while True:
            try:
                pipe = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise Failure(f"nobody reads the pipe: {error}") from error
                time.sleep(0.05)
        with open(self.path, "rb") as file, open(pipe, "wb") as out:
            out.write(file.read())
        os.remove(self.pipe)


class Site(Bench):
    """The servers, and pointsman in front of them."""

    def start(self, program):
        ports = free_ports(3 * len(SERVERS) + 2)
        self.map = Map(self.directory)
        rows = []
        for name, host, *_ in SERVERS:
            server, *others = (ports.pop() for _ in range(3))
            self.start_daemon(name, program, others, ["--sqlite3-server", "--set", f"sqliteserver-mysql_ifaces=127.0.0.1:{server}"])
            connection = Connection(server, USER, PASSWORD)
            connection.query("CREATE TABLE who (name TEXT)")
            connection.query(f"INSERT INTO who VALUES ('{name}')")
            connection.close()
            rows.append(f"(0, '{host}', {server}, 100)")
        hosts = os.path.join(self.directory, "hosts")
        with open(hosts, "w") as file:
            file.write(f"127.0.0.1 {' '.join(host for _, host, *_ in SERVERS)}\n")
        self.admin = self.start_daemon(
            "proxy", program, ports, ["--hosts-file", hosts, "--locality-provider", f"file:{self.map.path}"])
        self.admin.query(f"INSERT INTO mysql_servers (hostgroup_id, hostname, port, weight) VALUES {','.join(rows)}")
        self.admin.query(f"INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{POLICY}')")
        self.admin.query("LOAD MYSQL SERVERS TO RUNTIME")
        self.traffic = ports[0]

    def start_daemon(self, name, program, ports, options):
        traffic, admin = ports
        self.spawn(name, [program, "-D", os.path.join(self.directory, name), "-c", "/dev/null", "--no-monitor",
                          "--set", f"mysql-interfaces=127.0.0.1:{traffic}", "--set", f"admin-mysql_ifaces=127.0.0.1:{admin}",
                          *options], traffic)
        connection = Connection(admin, "admin", "admin")
        connection.query(f"INSERT INTO mysql_users (username, password) VALUES ('{USER}', '{PASSWORD}')")
        connection.query("LOAD MYSQL USERS TO RUNTIME")
        return connection

    def switch(self, on):
        self.admin.query(f"SET mysql-aws_locality_awareness = {str(on).lower()}")
        self.admin.query("LOAD MYSQL VARIABLES TO RUNTIME")

    def states(self):
        """What is known of the servers, and what comes of it: states, errors, and multipliers in the order of SERVERS."""
        rows = self.admin.query("SELECT srv_host, state, last_error, multiplier FROM stats_mysql_aws_locality WHERE srv_host <> ''")
        known = {host: rest for host, *rest in rows}
        states, errors, factors = zip(*(known[host] for _, host, *_ in SERVERS))
        return set(states), set(errors), tuple(float(factor) for factor in factors)

    def wait(self, state, factors, error=""):
        """Until this is known of all servers."""
        wanted, deadline = ({state}, {error}, factors), time.monotonic() + COMES_WITHIN
        while (now := self.states()) != wanted:
            if time.monotonic() > deadline:
                raise Failure(f"not {wanted} after {COMES_WITHIN} s, but {now}")
            time.sleep(0.05)


class Phase:
    def __init__(self, name, state, factors, error=""):
        self.name, self.state, self.factors, self.error = name, state, factors, error

    def count(self, site, seconds):
        site.wait(self.state, self.factors, self.error)
        time.sleep(0.2)  # Statements under way were sent by what was known before.
        self.begin = time.monotonic()
        time.sleep(seconds)
        self.end = time.monotonic()
        if site.states()[::2] != ({self.state}, self.factors):
            raise Failure(f"{self.name}: it is {site.states()} already at the end of the phase")

    def shares(self):
        return [factor / sum(self.factors) for factor in self.factors]


def course(site, seconds, quick):
    """What happens, one phase after the other."""
    swapped = tuple(reversed(range(len(SERVERS))))
    steps = [
        (lambda: None, Phase("switched off", "disabled", EQUAL)),
        (lambda: (site.map.hang(), site.switch(True)), Phase("on, no answer yet", "pending", EQUAL)),
        (lambda: (site.map.restore(), site.map.answer()), Phase("answered late", "fresh", BY_PLACE)),
        (lambda: site.map.remove(), Phase("file gone", "stale", BY_PLACE, "provider_error")),
        (lambda: None, Phase("gone too long", "expired", EQUAL, "provider_error")),
        (lambda: site.map.restore(), Phase("file back", "fresh", BY_PLACE)),
        (lambda: site.map.hang(), Phase("no answer", "stale", BY_PLACE, "timeout")),
        (lambda: (site.map.restore(swapped), site.map.answer()), Phase("near and far swapped", "fresh", BY_PLACE[::-1])),
        (lambda: site.switch(False), Phase("switched off again", "disabled", EQUAL)),
    ]
    if quick:
        steps = steps[:3] + steps[-1:]
    for step, phase in steps:
        say(phase.name)
        step()
        phase.count(site, seconds)
    return [phase for _, phase in steps]


def within(answers, begin, end):
    return collections.Counter(name for when, name in answers if begin <= when < end)


def report(phases, answers):
    """Prints what was counted. Returns whether all is as it should be."""
    rows, good, rest = [], True, collections.Counter(name for _, name in answers)
    for phase in phases:
        counts = within(answers, phase.begin, phase.end)
        rest -= counts
        failed = counts.pop(None, 0)
        total, cells, largest = sum(counts.values()), [], 0
        if not total:
            raise Failure(f"{phase.name}: no statement was answered")
        for (name, *_), expected in zip(SERVERS, phase.shares()):
            share = counts[name] / total
            largest = max(largest, abs(share - expected) / math.sqrt(expected * (1 - expected) / total))
            cells.append(f"{share:.3f} ({expected:.3f})")
        good &= not failed and largest <= DEVIATIONS
        rows.append((phase.name, " ".join(filter(None, (phase.state, phase.error))), total, failed, *cells, f"{largest:.1f}",
                     "as it should be" if largest <= DEVIATIONS else "OFF"))
    failed = rest.pop(None, 0)
    good &= not failed
    rows.append(("between phases", "", sum(rest.values()), failed, *[""] * (len(SERVERS) + 2)))
    table(f"shares of the servers, those that they should have in brackets, and the largest difference in standard deviations (at most {DEVIATIONS})",
          ("phase", "what is known", "statements", "failed", *(name for name, *_ in SERVERS), "deviations", ""), rows)
    return good


def draw(path, begin, phases, answers):
    picture = Picture("Share of the statements that each server answers, by second", phases[-1].end - begin)
    for phase in phases:
        picture.phase(phase.name, phase.begin - begin, phase.end - begin)
    for name, *_ in SERVERS:
        points = []
        for second in range(int(phases[-1].end - begin)):
            counts = within(answers, begin + second, begin + second + 1)
            if total := sum(counts.values()):
                points.append((second + 0.5, counts[name] / total))
        picture.line(name, points)
    picture.write(path)


def main():
    options = arguments()
    print(f"{os.cpu_count()} CPUs, Linux {platform.release()}, load {os.getloadavg()[0]:.1f} at the start; {STAYING} clients that stay, "
          f"{COMING} that come for each statement; refresh {REFRESH} s, stale TTL {STALE} s", flush=True)
    with Site() as site:
        site.start(options.pointsman)
        with Traffic(site.traffic) as traffic:
            begin = time.monotonic()
            phases = course(site, options.seconds, options.quick)
    good = report(phases, traffic.answers)
    for failure, count in traffic.failures.most_common(5):
        print(f"{count} x {failure}")
    if options.picture:
        draw(options.picture, begin, phases, traffic.answers)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    if not good:
        sys.exit(1)


try:
    main()
except Failure as failure:
    sys.exit(f"bench: FAILED: {failure}")
