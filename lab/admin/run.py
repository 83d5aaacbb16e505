#!/usr/bin/env python3
"""Works the admin port with what operators use, and compares the answers with those written down in sessions/: `make test-admin`.

Command-line clients and drivers run every session; dumps are made and fed back; dolphie shows its dashboard; a
playbook uses Ansible's modules.

Exit status: 0 all as expected; 1 something is not, or it failed; 77 the clients cannot be had here (one line says why).
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))

import ansible_modules  # noqa: E402
import dashboard  # noqa: E402
import dumps  # noqa: E402
import lab  # noqa: E402
import sessions  # noqa: E402

COMMAND_LINE = ("mysql", "mariadb")
DRIVERS = ("pymysql", "connector", "mysql2")
CLIENT_SECONDS = 60
MARK = "=== end of statement "
# MariaDB's client repeats a statement that failed.
REPEATED = re.compile(r"^-+\n.*\n-+\n\n(?=ERROR )", re.MULTILINE)
ERROR = re.compile(r"ERROR (\d+) \(\w+\) at line \d+: (.*)")
BEGUN = time.monotonic()


def say(text):
    print(f"test-admin: [{time.monotonic() - BEGUN:3.0f} s] {text}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", action="append", choices=[*COMMAND_LINE, *DRIVERS], help="only this client (may be repeated)")
    parser.add_argument("--session", default="", help="only sessions whose name contains this, and nothing else")
    parser.add_argument("--show", action="store_true", help="print every answer, as a session file has it")
    parser.add_argument("--daemon", type=pathlib.Path, default=lab.ROOT / "target/debug/pointsman")
    return parser.parse_args()


def by_command_line(client, session, port):
    """What a command-line client prints for each statement."""
    marked = "".join(f"{sql};\nSELECT '{MARK}' AS mark;\n" for sql in session.statements)
    options = [f"-h{lab.HOST}", f"-P{port}", f"-u{session.user}", f"-p{session.password}", "-B", "-n", "--force"]
    run = subprocess.run([lab.REAL_SERVERS, client, *options], input=marked, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=CLIENT_SECONDS)
    if run.returncode == lab.CANNOT:
        raise lab.Cannot(run.stdout.strip())
    printed = [line for line in run.stdout.splitlines() if "[Warning] Using a password" not in line]
    answers = REPEATED.sub("", "\n".join(printed)).split(f"mark\n{MARK}")
    return [[ERROR.sub(r"error \1 \2", line) for line in answer.strip("\n").splitlines()] for answer in answers[:-1]]


def by_driver(client, session, port, libraries):
    """What a driver was answered."""
    config = {"host": lab.HOST, "port": port, "user": session.user, "password": session.password, "statements": session.statements}
    program = {"mysql2": ["node", HERE / "session.js"]}.get(client, [libraries / "python/bin/python", HERE / "session.py", client])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        environment = {**os.environ, "NODE_PATH": str(libraries / "node/node_modules"), "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run([*program, file.name], env=environment, capture_output=True, text=True, timeout=CLIENT_SECONDS)
    if run.returncode:
        raise lab.Failed(f"{client}, {session.name}: {run.stderr[-1500:]}")
    return [sessions.lines(outcome) for outcome in json.loads(run.stdout)]


def compare(client, session, answers, show):
    """The statements that were answered otherwise."""
    problems = []
    if len(answers) != len(session.statements):
        problems.append(f"{client}, {session.name}: {len(answers)} of {len(session.statements)} statements were answered: {answers[-1:]}")
    for sql, expected, found in zip(session.statements, session.expected, answers):
        if show:
            print("\n".join([f"> {sql}", *found]))
        wanted = sessions.of_command_line(expected) if client in COMMAND_LINE else expected
        if not sessions.agree(wanted, found):
            problems.append("\n    ".join([f"{client}, {session.name}: {sql}", "expected:", *wanted, "found:", *found]))
    return problems


def run_client(client, options, libraries):
    """Every session with one client, on a daemon of its own."""
    daemon = lab.Daemon(options.daemon, client, None)
    problems, count = [], 0
    try:
        for path in sorted((HERE / "sessions").glob("*.txt")):
            session = sessions.Session(path)
            if options.session in session.name:
                if client in COMMAND_LINE:
                    answers = by_command_line(client, session, daemon.admin_port)
                else:
                    answers = by_driver(client, session, daemon.admin_port, libraries)
                problems += compare(client, session, answers, options.show)
                count += len(session.statements)
    finally:
        problems += filter(None, [daemon.stop()])
    say(f"{client}: {count} statements, {len(problems)} problems")
    return problems


def run_tool(name, work, options):
    """Something else, on a daemon of its own: `work` returns what is wrong."""
    daemon = lab.Daemon(options.daemon, name, None, "--sqlite3-server")
    problems = []
    try:
        problems += [f"{name}: {problem}" for problem in work(daemon)]
    finally:
        problems += filter(None, [daemon.stop()])
    say(f"{name}: {len(problems)} problems")
    return problems


def run(options):
    libraries = lab.installed("drivers")
    jobs = [lambda client=client: run_client(client, options, libraries) for client in options.client or [*COMMAND_LINE, *DRIVERS]]
    if not options.client and not options.session:
        tools = lab.installed("tools")
        jobs.append(lambda: run_tool("dolphie", lambda daemon: dashboard.problems(daemon, tools), options))
        jobs.append(lambda: run_tool("ansible", lambda daemon: ansible_modules.problems(daemon, tools), options))
        jobs += [lambda name=name: run_tool(name, lambda daemon: dumps.problems(daemon, name), options) for name in dumps.PROGRAMS]
    with concurrent.futures.ThreadPoolExecutor(len(jobs) if not options.show else 1) as pool:
        results = list(pool.map(lambda job: job(), jobs))
    problems = [problem for result in results for problem in result]
    for problem in problems:
        print(f"\n{problem}")
    say(f"{len(problems)} problems in {len(jobs)} programs")
    return not problems


if __name__ == "__main__":
    lab.run_program("test-admin", lambda: run(arguments()))
