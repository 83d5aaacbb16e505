#!/usr/bin/env python3
"""Plays random scripts of several sessions against real servers, directly and through pointsman, and compares all that clients see.

Of a script that differs, steps are left out for as long as it still differs; what is left is printed, with its seed.
Exit status: 0 nothing differs; 1 something does, or it failed; 77 the servers cannot be had here. docs/conformance.md has the rest.
"""

import argparse
import itertools
import json
import pathlib
import threading
import time

import lab
from randomized import arena, shrink, statements

SERVERS = ("mysql", "mariadb")
CONFIRMATIONS = 2  # times that a difference must show itself again: a machine that stands still for a second is none
BEGUN = time.monotonic()
printing = threading.Lock()


def say(text):
    with printing:
        print(f"random-sessions: [{time.monotonic() - BEGUN:4.0f} s] {text}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first script's; each next one has the next number")
    parser.add_argument("--count", type=int, help="so many scripts for each server (100, if --minutes is not given)")
    parser.add_argument("--minutes", type=float, help="as many scripts as there is time for")
    parser.add_argument("--server", action="append", choices=SERVERS, help="only this server")
    parser.add_argument("--script", type=pathlib.Path, help="a script as it was printed, instead of random ones")
    parser.add_argument("--fast-forward", action="store_true", help="all users have fast_forward")
    parser.add_argument("--daemon", type=pathlib.Path, default=lab.ROOT / "target/debug/pointsman")
    options = parser.parse_args()
    if options.count is None and options.minutes is None:
        options.count = 1 if options.script else 100
    return options


def scripts(options, server):
    """Triples of a seed, the clients and the steps."""
    if options.script:
        lines = [json.loads(line) for line in options.script.read_text().splitlines() if line.startswith(("[", "{"))]
        given = [(options.seed, lines[0], lines[1:])]
    else:
        given = ((seed, *statements.script(seed, server)) for seed in itertools.count(options.seed))
    for script in itertools.islice(given, options.count):
        if options.minutes and time.monotonic() - BEGUN > options.minutes * 60:
            return
        yield script


def examine(place, seed, clients, steps):
    """Plays one script on both pointsmen; returns how many differ."""
    differ, direct = 0, place.direct(clients, steps)
    for fresh in (False, True):
        found = place.difference(clients, steps, fresh, direct)
        kind = found and shrink.kind(found)
        for _ in range(CONFIRMATIONS):
            again = found and place.difference(clients, steps, fresh)
            found = again if again and shrink.kind(again) == kind else None
        if found:
            fewer = place.shrunk(clients, steps, fresh, kind)
            say(described(place, seed, clients, fewer, fresh, place.difference(clients, fewer, fresh) or found))
            differ += 1
    return differ


def described(place, seed, clients, steps, fresh, found):
    """A script, so that --script can play it, and where it differs."""
    named = {name: kind for name, kind in clients.items() if any(step[0] == name for step in steps)}
    lines = [f"{place.server}, seed {seed}, {'a connection for each need' if fresh else 'few connections'}:", json.dumps(named)]
    lines += [json.dumps(step, ensure_ascii=False) for step in steps]
    lines += [f"    differs: {json.dumps(found['step'], ensure_ascii=False)}"]
    for direct, through in shrink.parts(found):
        lines += [f"    direct:  {json.dumps(direct, ensure_ascii=False)}", f"    through: {json.dumps(through, ensure_ascii=False)}"]
    return "\n".join(lines)


def all_scripts(place, options, outcome):
    """Fills `outcome` with the number of scripts and of differences."""
    for seed, clients, steps in scripts(options, place.server):
        outcome["differ"] += examine(place, seed, clients, steps)
        outcome["played"] += 1


def run(options):
    servers, places, problems = lab.Servers(), [], []
    outcomes = {server: {"played": 0, "differ": 0, "failed": True} for server in options.server or SERVERS}

    def of_server(place):
        try:
            all_scripts(place, options, outcomes[place.server])
            outcomes[place.server]["failed"] = False
        except Exception as error:  # the other server's go on
            say(f"{place.server}: {type(error).__name__}: {error}")

    try:
        servers.start()
        places += [arena.Arena(options.daemon, servers, server, options.fast_forward) for server in outcomes]
        threads = [threading.Thread(target=of_server, args=(place,), daemon=True) for place in places]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for place in places:
            problems += place.stop()
        servers.stop()
    for server, outcome in outcomes.items():
        say(f"{server}: {outcome['played']} scripts, {outcome['differ']} differences")
    for problem in problems:
        say(problem)
    return not problems and not any(outcome["differ"] or outcome["failed"] for outcome in outcomes.values())


if __name__ == "__main__":
    lab.run_program("random-sessions", lambda: run(arguments()))
