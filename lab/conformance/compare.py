"""Compares what was seen directly with what was seen through the proxy."""

import json

LONGEST_SHOWN = 300


def parse(output):
    """The lines that a client wrote, by check."""
    seen = {}
    for line in output.splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            seen[entry["check"]] = entry
    return seen


def differences(direct, through):
    """Pairs of check and the places where it differs."""
    found = []
    for name in sorted(set(direct) | set(through)):
        one, other = direct.get(name), through.get(name)
        if one is None or other is None:
            found.append((name, [("", "ran" if one else "did not run", "ran" if other else "did not run")]))
        elif "broken" in one:
            found.append((name, [("", f"BROKEN CHECK: {one['broken']} {one['where'][-600:]}", "")]))
        elif "broken" in other:
            found.append((name, [("", "ended", f"{other['broken']} {other['where'][-600:]}")]))
        elif one["result"] != other["result"]:
            found.append((name, list(places(one["result"], other["result"], ""))))
    return found


def places(one, other, path):
    """Where two values differ: path, value, other value."""
    if isinstance(one, dict) and isinstance(other, dict) and set(one) == set(other):
        for key in one:
            yield from places(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other)):
            yield from places(left, right, f"{path}[{index}]")
    elif one != other:
        yield path, one, other


def shown(value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + f"... ({len(text)} characters)"


class LocalAnswers:
    """The differences that are meant: exact values, each with a reason. One that no longer differs is an error. An entry may be for runs
    with fast_forward alone."""

    def __init__(self, path, fast_forward):
        entries = json.loads(path.read_text(encoding="utf-8"))
        self.entries = [entry for entry in entries if entry.get("fast_forward", fast_forward) == fast_forward]
        self.used = set()

    def accepts(self, server, client, check, place):
        path, direct, through = place
        for index, entry in enumerate(self.entries):
            if (entry["check"] == check and entry["path"] == path and server in entry["servers"]
                    and client in entry["clients"] and entry["direct"] == direct and entry["through"] == through):
                self.used.add((index, server, client))
                return True
        return False

    def unused(self, ran):
        """Entries that matched nothing, of the servers and clients that ran all their checks."""
        left = []
        for index, entry in enumerate(self.entries):
            for server in entry["servers"]:
                for client in entry["clients"]:
                    if (server, client) in ran and (index, server, client) not in self.used:
                        left.append(f"{entry['check']} ({client}, {server})")
        return left
