"""Reads sessions/: statements, and below each what it is answered.

    # ...              a comment; "# user NAME PASSWORD" says who the session is of
    > SQL              a statement
    ok 2               OK, with the number of rows
    empty              a result without rows
    a<TAB>b            a result: the names of the columns, then its rows, as the command-line clients print them
    error 1045 text    an error
    ~ PATTERN          a line that this regular expression describes
"""

import re

ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\0": "\\0"}


class Session:
    """One file."""

    def __init__(self, path):
        self.name = path.stem
        self.user, self.password = "admin", "admin"
        self.statements, self.expected = [], []
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("# user "):
                self.user, self.password = line.split()[2:]
            elif line.startswith("> "):
                self.statements.append(line[2:])
                self.expected.append([])
            elif line and not line.startswith("# "):
                self.expected[-1].append(line)


def lines(outcome):
    """An outcome as the files have it."""
    if "error" in outcome:
        number, message = outcome["error"]
        return [f"error {number} {message}"]
    if "ok" in outcome:
        return [f"ok {outcome['ok']}"]
    if not outcome["rows"]:
        return ["empty"]
    return ["\t".join(cell(value) for value in row) for row in [outcome["columns"], *outcome["rows"]]]


def cell(value):
    return "NULL" if value is None else "".join(ESCAPED.get(character, character) for character in value)


def agree(expected, found):
    """Whether the lines of an answer are those that are expected."""
    return len(expected) == len(found) and all(
        re.fullmatch(one[2:], other) if one.startswith("~ ") else one == other for one, other in zip(expected, found))


def of_command_line(expected):
    """What the command-line clients show of it: nothing where there are no rows."""
    return [line for line in expected if line != "empty" and not line.startswith("ok ")]
