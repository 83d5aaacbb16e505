"""What the client programs in Python share: the list of their checks, values in a form that JSON can hold, and the loop
that runs everything and writes one line of JSON for each check."""

import hashlib
import json
import signal
import sys
import traceback

LONGEST_VALUE = 200  # bytes; of what is longer, length and hash are compared
MOST_ROWS = 1000  # of a longer result, number and hash are compared; a process list has all pooled connections
CHECK_SECONDS = 45
MOVERS = 3  # sessions that keep free server connections busy, so that a session must go on on another one

CHECKS = []


def check(name, **only):
    """Registers a check of the program's own. `server="mysql"` restricts it to one server."""

    def register(function):
        CHECKS.append((name, only, function))
        return function

    return register


def plain(value):
    """`value` as JSON can hold it, with no two different values alike."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value)
        if len(value) > LONGEST_VALUE:
            return {"bytes": len(value), "sha1": hashlib.sha1(value).hexdigest()}
        return "b:" + value.decode("ascii") if value.isascii() else "x:" + value.hex()
    if isinstance(value, str):
        if len(value) > LONGEST_VALUE:
            return {"characters": len(value), "sha1": hashlib.sha1(value.encode("utf-8", "replace")).hexdigest()}
        return "s:" + value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return [plain(item) for item in sorted(value)]
    return f"{type(value).__name__}:{value}"


def rows(values):
    """The rows of a result, or their number and hash where there are many."""
    values = [plain(row) for row in values]
    if len(values) <= MOST_ROWS:
        return values
    return {"rows": len(values), "sha1": hashlib.sha1(json.dumps(values).encode()).hexdigest()}


class TooLong(Exception):
    """A check did not end."""


class Context:
    """One check's way to the server: connections that are closed when it is over."""

    def __init__(self, config, driver, options=None):
        self.config = config
        self.driver = driver
        self.options = dict(options or {})
        self.opened = []
        self.named = {}
        self.movers = []
        self.name = ""

    def connect(self, **options):
        """A connection with the script's options and these."""
        merged = {"user": "conf", "database": self.config["schema"], **self.options, **options}
        if merged["database"] == "-":
            merged["database"] = None
        merged.setdefault("password", self.config["passwords"].get(merged["user"], ""))
        connection = self.driver.connect(self.config, merged)
        self.opened.append(connection)
        return connection

    def on(self, name):
        if name not in self.named:
            self.named[name] = self.connect()
        return self.named[name]

    def run(self, connection, sql):
        """The outcome of a text statement: its result sets, the last of which may be an error."""
        return self.driver.query(connection, sql)

    def value(self, connection, sql):
        """The first value of the first row."""
        return self.driver.scalar(connection, sql)

    def error_of(self, action, *arguments, **named):
        """The error that `action` ends with, or what it returned instead."""
        try:
            return {"returned": plain(action(*arguments, **named))}
        except self.driver.errors as error:
            return {"error": self.driver.error(error)}

    def move(self):
        """Other sessions of the same user take the server connections that are free."""
        for _ in range(MOVERS):
            connection = self.connect(user=self.options.get("user", "conf"), charset="utf8mb4")
            self.driver.query(connection, "BEGIN")
            self.driver.query(connection, "SELECT 1")
            self.movers.append(connection)

    def direct(self):
        """A connection of the administrator's to the server itself, whichever way the checks go; its values are bytes."""
        import pymysql

        return pymysql.connect(
            host=self.config["host"], port=self.config["server_port"], user="dba", password="dba-secret",
            autocommit=None, ssl_disabled=True, read_timeout=30, conv={}, use_unicode=False)

    def close(self):
        for connection in reversed(self.opened):
            try:
                self.driver.close(connection)
            except Exception:  # it may be dead, which is the check's business
                pass


def run_script(context, script):
    """Runs a check of checks.txt and returns the outcome of each of its statements."""
    outcomes = []
    for step in script["steps"]:
        if step["kind"] == "move":
            context.move()
            continue
        connection = context.on(step["on"])
        if step["kind"] == "text":
            outcomes.append(context.driver.query(connection, step["sql"]))
        else:
            params = [parameter(value) for value in step["params"]]
            outcomes.append(context.driver.prepared(connection, step["sql"], params))
    return outcomes


def parameter(value):
    if isinstance(value, str) and value.startswith("hex:"):
        return bytes.fromhex(value[4:])
    return value


def guarded(name, run, context):
    """Runs one check. What it did not expect is no result but a broken check."""

    def expire(_signal, _frame):
        raise TooLong(f"no end after {CHECK_SECONDS} s")

    signal.signal(signal.SIGALRM, expire)
    signal.alarm(CHECK_SECONDS)
    line = {"check": name}
    try:
        line["result"] = plain_result(run(context))
    except Exception as error:
        line["broken"] = f"{type(error).__name__}: {error}"
        line["where"] = traceback.format_exc(limit=-4)
    finally:
        signal.alarm(0)
        context.close()
    print(json.dumps(line), flush=True)


def plain_result(result):
    return json.loads(json.dumps(result))


def main(driver):
    """The program: CONFIG as the runner wrote it, results on standard output."""
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    for script in config["scripts"]:
        if any(step["kind"] == "prepared" for step in script["steps"]) and not driver.has_prepared:
            continue
        guarded(script["name"], lambda context, script=script: run_script(context, script), Context(config, driver, script["options"]))
    for name, only, function in CHECKS:
        if only.get("server", config["server"]) == config["server"] and config["only"] in name:
            context = Context(config, driver)
            context.name = name
            guarded(name, function, context)
