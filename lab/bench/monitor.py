#!/usr/bin/env python3
"""What following many blue/green deployments costs, and how soon they are followed: `make bench-monitor`.

One daemon follows 200 deployments, polled every 100 ms, that a second one simulates. Measured are its CPU time, threads, memory
and descriptors, and the time from the commit of a new topology to the status and the effects that go with it. Targets stand
beside the measurements; one that is missed is no failure of the run.

  monitor.py --pointsman target/sim/release/pointsman
  monitor.py ... --deployments 3 --quick           some seconds, to see whether it works
"""

import argparse
import collections
import math
import os
import platform
import re
import sys
import time

from fleet import INTERVAL_MS, Fleet, pause
from lanes import Failure
from measure import cpu_seconds, resident_kib
from report import say, table

# Each status of a switchover, with the milliseconds between polls until it is seen.
PHASES = {
    "SWITCHOVER_INITIATED": 250,
    "SWITCHOVER_IN_PROGRESS": INTERVAL_MS,
    "SWITCHOVER_IN_POST_PROCESSING": INTERVAL_MS,
    "SWITCHOVER_COMPLETED": INTERVAL_MS,
    "": INTERVAL_MS,
    "AVAILABLE": INTERVAL_MS,
}
CPU_TARGET = 0.5  # of a core
REACTION_MARGIN_MS = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pointsman", required=True, metavar="PROGRAM", help="a release build of the simulator flavour")
    parser.add_argument("--deployments", type=int, default=200, help="how many (default 200)")
    parser.add_argument("--minutes", type=float, default=10, help="for which growth is watched (default 10)")
    parser.add_argument("--quick", action="store_true", help="few samples, and growth for two seconds")
    options = parser.parse_args()
    options.samples, options.waves, options.seconds, options.settle = (3, 1, 1, 0.5) if options.quick else (200, 5, 30, 30)
    options.growth = 2 if options.quick else 60 * options.minutes
    return options


def percentile(values, percent):
    """The smallest value that so many percent are not above."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


def spread(values):
    return [f"{value:.1f}" for value in (percentile(values, 50), percentile(values, 99), max(values))]


def verdict(met):
    return "met" if met else "MISSED"


def statuses(watched, options):
    """Every deployment changes at once, phase after phase: whether each status comes within two intervals."""
    taken = collections.defaultdict(list)
    for wave in range(options.waves):
        say(f"all {options.deployments} switch over at once: {wave + 1} of {options.waves}")
        for status in PHASES:
            pause()
            taken[status] += watched.change(status)
            watched.check(status)
    rows = []
    for status, interval in PHASES.items():
        samples, most = taken[status], 2 * interval
        rows.append((status or "no rows", len(samples), *spread(samples), most, verdict(max(samples) <= most)))
    table(f"from commit to status, {options.deployments} deployments at once, ms",
          ("topology", "samples", "p50", "p99", "max", "target", ""), rows)


def reactions(watched, count):
    """One deployment after the other goes into post-processing, while all are polled at the same pace: from the commit to when
    pins are set and old connections are drained."""
    taken = []
    while len(taken) < count:
        for deployment in watched.deployments:
            watched.connect(deployment)
        watched.change("SWITCHOVER_IN_PROGRESS")
        for deployment in watched.deployments[:count - len(taken)]:
            if not watched.pooled(deployment):
                raise Failure(f"no connection to {deployment.blue} that a drain could end")
            pause()
            taken += watched.change("SWITCHOVER_IN_POST_PROCESSING", [deployment])
            if left := watched.pooled(deployment):
                raise Failure(f"{left} connections to {deployment.blue} and its reader are left after post-processing")
            if len(taken) % 50 == 0:
                say(f"reaction, {len(watched.deployments)} deployments: {len(taken)} of {count}")
        # Those that were left out follow, so that all end alike.
        watched.change("SWITCHOVER_COMPLETED")
        watched.change("")
        watched.change("AVAILABLE")
    return taken


def report_reactions(results):
    rows = []
    for deployments, taken in results.items():
        target, met = "", ""
        if deployments == 1:
            target = f"p99 <= {INTERVAL_MS + REACTION_MARGIN_MS}"
            met = verdict(percentile(taken, 99) <= INTERVAL_MS + REACTION_MARGIN_MS)
        rows.append((deployments, len(taken), *spread(taken), target, met))
    table("from commit to effects (pins set, old connections drained), one switchover at a time, ms",
          ("deployments", "samples", "p50", "p99", "max", "target", ""), rows)


def threads(pid):
    """How many threads there are of each name, numbers aside."""
    counts = collections.Counter()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm") as file:
            counts[re.sub(r"\d+$", "N", file.read().strip())] += 1
    return counts


class Usage:
    """What a daemon has used so far, and what it holds."""

    def __init__(self, watched):
        self.at = time.monotonic()
        self.cpu = cpu_seconds(watched.pid)
        self.simulator = sum(cpu_seconds(watched.simulator_pid))
        self.polls = watched.polls()
        self.resident = resident_kib(watched.pid)
        self.threads = sum(threads(watched.pid).values())
        self.descriptors = len(os.listdir(f"/proc/{watched.pid}/fd"))

    def since(self, before):
        """The same, in rates since then: polls a second, and shares of a core."""
        seconds = self.at - before.at
        user, system = ((now - then) / seconds for now, then in zip(self.cpu, before.cpu))
        return (self.polls - before.polls) / seconds, user, system, (self.simulator - before.simulator) / seconds


def observe(watched, status, seconds, settle):
    """What is used while nothing changes: at the beginning, and at the end."""
    say(f"steady in {status}: settling for {settle} s")
    time.sleep(settle)
    first = last = Usage(watched)
    while last.at < first.at + seconds:
        time.sleep(min(10, max(0.1, first.at + seconds - time.monotonic())))
        previous, last = last, Usage(watched)
        polls, user, system, _ = last.since(previous)
        say(f"steady in {status}: {last.at - first.at:.0f} of {seconds:.0f} s, {polls:.0f} polls a second, "
            f"{user + system:.3f} of a core, {last.resident} KiB")
    watched.check(status)
    return first, last


def steady(watched, options):
    """CPU time at both paces, and what grows at the faster one."""
    slow = observe(watched, "AVAILABLE", options.seconds, options.settle)
    watched.change("SWITCHOVER_INITIATED")
    watched.change("SWITCHOVER_IN_PROGRESS")
    fast = observe(watched, "SWITCHOVER_IN_PROGRESS", options.growth, options.settle)
    rows = []
    for status, pace, target, (first, last) in (
            ("AVAILABLE", 250, None, slow), ("SWITCHOVER_IN_PROGRESS", INTERVAL_MS, CPU_TARGET, fast)):
        polls, user, system, simulator = last.since(first)
        wanted = options.deployments * 1000 / pace
        aim = (f"< {target}", verdict(user + system < target)) if target else ("", "")
        rows.append((status, f"{polls:.0f} of {wanted:.0f}", *(f"{share:.3f}" for share in (user, system, user + system)), *aim,
                     f"{simulator:.3f}"))
    table(f"CPU of the daemon with {options.deployments} deployments, share of one core",
          ("topology", "polls a second", "user", "system", "both", "target", "", "the simulator's"), rows)
    first, last = fast
    held = (("resident KiB", first.resident, last.resident), ("threads", first.threads, last.threads),
            ("descriptors", first.descriptors, last.descriptors))
    table(f"held, {last.at - first.at:.0f} s apart", ("what", "at the start", "at the end", "growth"),
          [(what, before, after, after - before) for what, before, after in held])
    counts = threads(watched.pid)
    workers = counts.pop("bgd-N")
    table("threads", ("name", "count", "target", ""), [
        ("bgd-N", workers, f"{options.deployments}, one for each", verdict(workers == options.deployments)),
        *((name, count, "", "") for name, count in sorted(counts.items()))])


def load():
    return " ".join(f"{average:.1f}" for average in os.getloadavg())


def main():
    options = arguments()
    print(f"{os.cpu_count()} CPUs, Linux {platform.release()}, load {load()} at the start", flush=True)
    results = {}
    for count in dict.fromkeys((1, options.deployments)):
        with Fleet(count) as watched:
            say(f"starting with {count} deployments")
            watched.start(options.pointsman)
            say(f"reaction, {count} deployments")
            results[count] = reactions(watched, options.samples)
            if count == options.deployments:
                report_reactions(results)
                statuses(watched, options)
                steady(watched, options)
    print(f"\nload {load()} at the end")


try:
    main()
except Failure as failure:
    sys.exit(f"bench: FAILED: {failure}")
