#!/usr/bin/env python3
"""Runs the same checks against real servers directly and through pointsman, with seven clients, and prints what differs.

Exit status: 0 nothing differs but what local_answers.json lists; 1 something does, or it failed; 77 the servers or the
clients cannot be had here (one line says why). docs/conformance.md has the rest.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import checks
import compare
import lab

HERE = pathlib.Path(__file__).resolve().parent
SERVERS = ("mysql", "mariadb")
CLIENTS = ("mysql-cli", "mariadb-cli", "pymysql", "connector", "mysqlclient", "mysql2", "mysql-crate")
CLIENT_SECONDS = 300
AT_ONCE = 4  # clients: each has a schema of its own, and some checks wait
BEGUN = time.monotonic()
printing = threading.Lock()
running = set()  # the clients' processes


def say(text):
    with printing:
        print(f"conformance: [{time.monotonic() - BEGUN:4.0f} s] {text}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", action="append", choices=CLIENTS, help="only this client (may be repeated)")
    parser.add_argument("--server", action="append", choices=SERVERS, help="only this server")
    parser.add_argument("--check", default="", help="only checks whose name contains this")
    parser.add_argument("--fast-forward", action="store_true", help="every user has fast_forward")
    parser.add_argument("--show", action="store_true", help="print the direct results, too")
    parser.add_argument("--json", type=pathlib.Path, help="write the differences to this file")
    parser.add_argument("--daemon", type=pathlib.Path, default=lab.ROOT / "target/debug/pointsman")
    parser.add_argument("--crate-client", type=pathlib.Path, default=lab.ROOT / "target/debug/examples/conformance")
    return parser.parse_args()


def command(client, libraries, options):
    """The program of a client."""
    python = str(libraries / "python/bin/python")
    programs = {
        "mysql-cli": [sys.executable, str(HERE / "clients/command_line.py"), "mysql"],
        "mariadb-cli": [sys.executable, str(HERE / "clients/command_line.py"), "mariadb"],
        "mysql2": ["node", str(HERE / "clients/mysql2.js")],
        "mysql-crate": [str(options.crate_client)],
    }
    return programs.get(client, [python, str(HERE / f"clients/{client}_checks.py")])


class Run:
    """The checks of all clients against one server."""

    def __init__(self, options, scripts, answers, libraries, servers, server):
        self.options, self.scripts, self.answers, self.libraries = options, scripts, answers, libraries
        self.servers, self.server = servers, server
        self.daemon = lab.Daemon(options.daemon, server, servers)
        self.daemon.configure(fast_forward=options.fast_forward)

    def pass_of(self, client, way, port):
        """What `client` sees through `port`."""
        schema = "conf_" + client.replace("-", "_")
        self.servers.fresh_schema(self.server, schema)
        self.servers.warm_up(self.server)
        config = {
            "client": client, "server": self.server, "host": lab.HOST, "port": port, "way": way,
            "server_port": self.servers.ports[self.server], "schema": schema, "passwords": lab.PASSWORDS,
            "only": self.options.check,
            "scripts": checks.for_client(self.scripts, self.server, schema, self.options.check),
        }
        with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
            file = pathlib.Path(directory, "config.json")
            file.write_text(json.dumps(config))
            environment = {
                **self.servers.environment, "NODE_PATH": str(self.libraries / "node/node_modules"),
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            process = subprocess.Popen(
                [*command(client, self.libraries, self.options), str(file)], env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            running.add(process)
            try:
                output, errors = process.communicate(timeout=CLIENT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = process.communicate()
                errors += f"\nkilled after {CLIENT_SECONDS} s"
            finally:
                running.discard(process)
        if process.returncode:
            say(f"{client}, {self.server}, {way}: ended with {process.returncode}: {errors[-1500:]}")
        return compare.parse(output), process.returncode

    def client(self, client):
        begun = time.monotonic()
        direct, first = self.pass_of(client, "direct", self.servers.ports[self.server])
        through, second = self.pass_of(client, "through", self.daemon.port)
        found = compare.differences(direct, through)
        result = {"client": client, "server": self.server, "names": sorted(direct), "found": found, "failed": bool(first or second)}
        result["left"], result["unlisted"] = unlisted(result, self.answers)
        say(f"{client}, {self.server}: {len(direct)} checks, {result['unlisted']} differ "
            f"({time.monotonic() - begun:.0f} s){shown(result['left'])}")
        if self.options.show:
            for name, entry in direct.items():
                say(f"{name}: {json.dumps(entry, ensure_ascii=False)}")
        return result


def unlisted(result, answers):
    """The differences of a client's that local_answers.json does not list, and the number of checks that have some."""
    left, number = [], 0
    for name, places in result["found"]:
        places = [place for place in places if not answers.accepts(result["server"], result["client"], name, place)]
        number += bool(places)
        left += [{"check": name, "client": result["client"], "server": result["server"], "path": path, "direct": direct,
                  "through": through} for path, direct, through in places]
    return left, number


def shown(left):
    """The differences as text."""
    return "".join(
        f"\n{entry['check']} ({entry['client']}, {entry['server']}) {entry['path']}"
        f"\n    direct:  {compare.shown(entry['direct'])}\n    through: {compare.shown(entry['through'])}"
        for entry in left)


def report(results, answers, options, problems):
    """Prints the table, and again below it what is wrong; returns whether all is well."""
    wrong = sum(result["unlisted"] + result["failed"] for result in results)
    print(f"\n{'client':<14}{'server':<10}{'checks':>8}{'local answers':>15}{'different':>11}")
    for result in results:
        local = len(result["found"]) - result["unlisted"]
        print(f"{result['client']:<14}{result['server']:<10}{len(result['names']):>8}{local:>15}{result['unlisted']:>11}")
    names = {name for result in results for name in result["names"]}
    print(f"\n{len(names)} distinct checks, {sum(len(result['names']) for result in results)} runs")
    if options.json:
        left = [entry for result in results for entry in result["left"]]
        options.json.write_text(json.dumps(left, ensure_ascii=False, indent=1))
    if not options.check:
        ran = {(result["server"], result["client"]) for result in results}
        problems += [f"local_answers.json: no longer different: {entry}" for entry in answers.unused(ran)]
    problems += [shown(result["left"]) for result in results if result["left"]]
    for problem in problems:
        print(f"\n{problem.strip()}")
    return not wrong and not problems and bool(names)


def run(options):
    scripts = checks.read(HERE / "checks.txt")
    answers = compare.LocalAnswers(HERE / "local_answers.json", options.fast_forward)
    libraries = lab.installed("drivers")
    servers, runs, problems = lab.Servers(), [], []
    try:
        say("starting the servers")
        servers.start()
        for server in options.server or SERVERS:
            runs.append(Run(options, scripts, answers, libraries, servers, server))
        jobs = [(run, client) for client in options.client or CLIENTS for run in runs]
        pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        try:
            results = list(pool.map(lambda job: job[0].client(job[1]), jobs))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.kill()
    finally:
        problems += [problem for problem in (run.daemon.stop() for run in runs) if problem]
        servers.stop()
    return report(results, answers, options, problems)


if __name__ == "__main__":
    lab.run_program("conformance", lambda: run(arguments()))
