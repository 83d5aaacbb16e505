"""Reads checks.txt: the statements that every client runs. docs/conformance.md explains the notation."""

import json
import re

import lab

HEADER = re.compile(r"== (\S+)(.*)")
STEP = re.compile(r"([a-z]?)([>?]) ?(.*)", re.DOTALL)


class Malformed(lab.Failed):
    """A line of checks.txt that is none of the forms."""


def read(path):
    """The checks in the order of the file, as the clients get them."""
    scripts = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            take_line(scripts, line)
        except (ValueError, IndexError) as error:
            raise Malformed(f"{path}:{number}: {error}: {line!r}") from error
    names = [script["name"] for script in scripts]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Malformed(f"{path}: more than one check is called {', '.join(sorted(twice))}")
    return scripts


def take_line(scripts, line):
    if not line or line.startswith("#"):
        return
    if line.startswith("=="):
        scripts.append(header(line))
    elif line.startswith("|"):
        scripts[-1]["steps"][-1]["sql"] += "\n" + line[2:]
    elif line == "~":
        scripts[-1]["steps"].append({"kind": "move"})
    else:
        scripts[-1]["steps"].append(step(line))


def header(line):
    found = HEADER.fullmatch(line)
    if not found:
        raise ValueError("a header is == NAME [OPTION=VALUE ...]")
    options = dict(word.split("=", 1) for word in found[2].split())
    return {"name": found[1], "server": options.pop("server", None), "options": options, "steps": []}


def step(line):
    found = STEP.fullmatch(line)
    if not found:
        raise ValueError("a step is > SQL, ? [PARAMETERS] SQL, | SQL or ~")
    on, kind, text = found.groups()
    if kind == ">":
        return {"kind": "text", "on": on, "sql": text}
    params, end = json.JSONDecoder().raw_decode(text)
    return {"kind": "prepared", "on": on, "params": params, "sql": text[end:].lstrip()}


def for_client(scripts, server, schema, only):
    """The checks that concern `server` and whose name contains `only`, with the names put in."""
    chosen = []
    for script in scripts:
        if script["server"] not in (None, server) or only not in script["name"]:
            continue
        base = script["name"].replace(".", "_")
        names = {"$db": schema, "$t": f"t_{base}", "$u": f"u_{base}", "$v": f"v_{base}", "$p": f"p_{base}"}
        steps = [dict(step, sql=fill(step["sql"], names)) if "sql" in step else step for step in script["steps"]]
        chosen.append({"name": script["name"], "options": script["options"], "steps": steps})
    return chosen


def fill(sql, names):
    return re.sub(r"\$(db|t|u|v|p)(?![a-z])", lambda match: names[match[0]], sql)
