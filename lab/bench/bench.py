#!/usr/bin/env python3
"""What pointsman costs, beside its peers, in the same run: `make bench`.

Starts one MariaDB, and in front of it HAProxy (TCP), MySQL Router, a bare relay and pointsman, each measured in turn,
round by round, so that a machine that drifts drifts for all. Prints medians, the spread of the rounds, and ratios to the
direct lane. Everything listens on loopback and is gone at the end.

  bench.py --pointsman target/release/pointsman --relay target/release/examples/relay
  bench.py ... --rounds 3 --seconds 2 --only text       a quick look at one part
"""

import argparse
import os
import platform
import statistics
import sys

import measure
from lanes import Bench, Failure
from report import say, table

POINT_SELECT = "oltp_point_select"
PARTS = ("text", "prepared", "churn", "admin", "memory")
DIGESTS = 10_000  # rows of stats_mysql_query_digest while it is read
OURS = ("pointsman", "fast_forward")
PROCESSES = ("haproxy", "router", "relay", "pointsman")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pointsman", required=True, metavar="PROGRAM", help="a release build")
    parser.add_argument("--relay", required=True, metavar="PROGRAM", help="a release build of lab/bench/relay.rs")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default 9)")
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement (default 3)")
    parser.add_argument("--connections", default="1,8,64", help="numbers of clients (default 1,8,64)")
    parser.add_argument("--sessions", type=int, default=2000, help="idle sessions for the memory part (default 2000)")
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts to run (default {','.join(PARTS)})")
    return parser.parse_args()


def rounds(lanes, options, title, take):
    """Runs `take(lane)` for every lane, round after round: lane name -> list of results."""
    results = {name: [] for name in lanes}
    for number in range(options.rounds):
        say(f"{title}: round {number + 1} of {options.rounds}")
        # Each round begins with another lane, so that none always comes after the same one.
        names = list(lanes)
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            results[name].append(take(lanes[name]))
    return results


def spread(values, digits):
    """Median and, in brackets, the quartiles of the rounds."""
    middle = statistics.median(values)
    if len(values) < 4:
        return f"{middle:.{digits}f}"
    low, _, high = statistics.quantiles(values, n=4)
    return f"{middle:.{digits}f} [{low:.{digits}f}..{high:.{digits}f}]"


def ratios(results, name, base):
    """Each round's rate by the base lane's of the same round."""
    return [own["rate"] / other["rate"] for own, other in zip(results[name], results[base])]


def report(title, results, base="direct"):
    rows = []
    for name, samples in results.items():
        column = lambda key, digits: spread([sample[key] for sample in samples], digits)
        median = lambda key: f"{statistics.median(sample[key] for sample in samples):.2f}"
        proxy = name != "direct"
        rows.append((name, column("rate", 0), spread(ratios(results, name, base), 3), median("p50"), median("p95"), median("p99"),
                     column("user", 1) if proxy else "-", column("system", 1) if proxy else "-"))
    table(title, ("lane", "per second", f"of {base}", "p50 ms", "p95 ms", "p99 ms", "user us", "system us"), rows)


def beside_relay(results):
    """Our lanes beside a relay that looks at nothing, each round's by the relay's of the same round: what is asked of them."""
    rows = []
    for name in OURS:
        pairs = list(zip(results[name], results["relay"]))
        of = lambda measured, digits=2: spread([measured(own) / measured(relay) for own, relay in pairs], digits)
        above = spread([own["user"] - relay["user"] for own, relay in pairs], 1)
        rows.append((name, of(lambda lane: lane["rate"]), above, of(lambda lane: lane["system"]),
                     of(lambda lane: lane["user"] + lane["system"])))
    table("beside the relay in the same round", ("lane", "per second, of its", "user us above", "system us, of its",
                                                 "user and system us, of its"), rows)


def point_selects(bench, options, part):
    mode = ["--skip_trx=on", "--db-ps-mode=" + ("auto" if part == "prepared" else "disable")]
    for clients in (int(text) for text in options.connections.split(",")):
        take = lambda lane: measure.run(lane, POINT_SELECT, clients, options.seconds, *mode)
        title = f"point select, {part} protocol, {clients} connections"
        results = rounds(bench.lanes, options, title, take)
        report(title, results)
        beside_relay(results)


def readers(bench, options):
    """Traffic while somebody reads the admin port's tables without a pause: its own ones, or those of a daemon that serves
    nobody, which takes as much of the machine but none of the traffic's locks."""
    lane = bench.lanes["pointsman"]
    twin, twin_admin = bench.start_twin(options.pointsman)
    for port in (lane[0], twin):
        measure.fill_digests(bench, port, DIGESTS)

    def take(admin):
        with measure.Reader(admin):
            return measure.run(lane, POINT_SELECT, 8, options.seconds, "--skip_trx=on", "--db-ps-mode=disable")

    lanes = {"no reader": None, "own tables": bench.admin_port, "a twin's": twin_admin}
    title = f"point select, text protocol, 8 connections, tables read meanwhile ({DIGESTS} digests)"
    report(title, rounds(lanes, options, title, take), base="no reader")


def memory(bench, options):
    rows = []
    for name in PROCESSES:
        say(f"memory: {name}")
        rows.append((name, f"{measure.memory(bench.lanes[name], options.sessions):.1f}"))
    table(f"resident KiB for each of {options.sessions} idle sessions", ("lane", "KiB"), rows)


def main():
    options = arguments()
    parts = options.only.split(",")
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise Failure(f"no such part: {', '.join(unknown)} (there are {', '.join(PARTS)})")
    with Bench() as bench:
        # Memory is measured by processes that have served nobody yet.
        if "memory" in parts:
            say("starting")
            bench.start(options.pointsman, options.relay)
            memory(bench, options)
    parts = [part for part in parts if part != "memory"]
    if not parts:
        return
    with Bench() as bench:
        say("starting")
        bench.start(options.pointsman, options.relay)
        measure.sysbench(POINT_SELECT, *(bench.lanes["direct"][at] for at in (0, 2)), 1, 1, command="prepare")
        print(f"{os.cpu_count()} CPUs, Linux {platform.release()}, {options.rounds} rounds of {options.seconds} s")
        for part in parts:
            if part == "admin":
                readers(bench, options)
            elif part == "churn":
                title = "connect, SELECT 1, close: 8 threads"
                report(title, rounds(bench.lanes, options, title, lambda lane: measure.churn(lane, options.seconds)))
            else:
                point_selects(bench, options, part)


try:
    main()
except Failure as failure:
    sys.exit(f"bench: FAILED: {failure}")
