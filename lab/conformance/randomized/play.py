"""Plays a script against an address, and says what its clients saw."""

import lab

from . import protocol

CAPABILITIES = (protocol.DEPRECATE_EOF, protocol.SESSION_TRACK)
MOVERS = 4  # in each of two groups that take turns at keeping connections busy
KEEPS = ("DO 0", "SET NAMES latin1", "SET time_zone = '+05:00', sql_mode = 'ANSI_QUOTES'", "SET @v1 = 'leaked', autocommit = 0")
LEAVES = "SELECT LAST_INSERT_ID(77), 1/0"  # for whom gets the connection: nobody must find it
USER = "conf"
LOST = 2013


class Session:
    """One client, with its prepared statements by slot."""

    def __init__(self, address, schema, kind):
        self.schema, self.slots, self.lost = schema, {}, False
        flags = sum(flag for bit, flag in enumerate(CAPABILITIES) if kind >> bit & 1)
        self.client = protocol.Client(address, USER, lab.PASSWORDS[USER], schema, flags)
        self.begin()

    def begin(self):
        """A server does not say anew what FOUND_ROWS() is: it is what the thread found for whom it served before."""
        self.client.query("SELECT 1")

    def step(self, verb, *arguments):
        if self.lost:
            return []
        arguments = [self.named(argument) if isinstance(argument, str) else argument for argument in arguments]
        numbers = [statement["number"] for statement in self.slots.values()]
        try:
            answer = [without_chance(part, numbers) for part in getattr(self, verb)(*arguments)]
        except protocol.Lost:
            answer = []
            self.lost = True
        # Where a server ends the connection, pointsman may say so first.
        self.lost |= any(isinstance(part, dict) and part.get("error") == LOST for part in answer)
        return ["lost"] if self.lost else answer

    def named(self, text):
        return text.replace("$db", self.schema)

    def query(self, sql):
        return self.client.query(sql)

    def init_db(self, name):
        self.client.command(protocol.INIT_DB, name.encode())
        return without_warnings(self.client.simple())

    def ping(self):
        self.client.command(protocol.PING)
        return self.client.simple()

    def set_option(self, number):
        self.client.command(protocol.SET_OPTION, number.to_bytes(2, "little"))
        return without_warnings(self.client.simple())

    def reset_connection(self):
        self.slots.clear()
        self.client.command(protocol.RESET_CONNECTION)
        answer = self.client.simple()
        self.begin()
        return answer

    def change_user(self, user, schema):
        self.slots.clear()
        answer = self.client.change_user(user, lab.PASSWORDS[user], schema)
        self.begin()
        return answer

    def prepare(self, slot, sql):
        number, answer = self.client.prepare(sql)
        self.close(slot)
        if number is not None:
            self.slots[slot] = {"number": number, "parameters": answer[0]["parameters"], "long": set(), "typed": False, "cursor": False}
        return answer

    def execute(self, slot, values, types, cursor):
        if slot not in self.slots:
            return ["no statement"]
        statement = self.slots[slot]
        values = [values[index % len(values)] if values else None for index in range(statement["parameters"])]
        long, statement["long"] = statement["long"], set()
        values = ["" if index in long else value for index, value in enumerate(values)]
        types = types or statement["typed"] != kinds(values) or bool(long)
        statement["typed"] = kinds(values)
        answer = self.client.execute(statement["number"], values, types, cursor, long)
        statement["cursor"] = any(part.get("end of definitions") or part.get("status", 0) & protocol.CURSOR_EXISTS for part in answer)
        return answer

    def fetch(self, slot, count):
        """Only where there is a cursor: the error has MariaDB's number of the statement, also in SHOW WARNINGS."""
        if slot not in self.slots or not self.slots[slot]["cursor"]:
            return ["no cursor"]
        answer = self.client.fetch(self.slots[slot]["number"], count)
        self.slots[slot]["cursor"] = bool(answer[-1].get("status", 0) & protocol.CURSOR_EXISTS)
        return answer

    def long_data(self, slot, parameter, data):
        if slot not in self.slots or parameter >= self.slots[slot]["parameters"]:
            return ["no statement"]
        self.slots[slot]["long"].add(parameter)
        number = self.slots[slot]["number"]
        self.client.command(protocol.LONG_DATA, number.to_bytes(4, "little") + parameter.to_bytes(2, "little") + data.encode())
        return []

    def reset(self, slot):
        if slot not in self.slots:
            return ["no statement"]
        self.slots[slot].update(long=set(), cursor=False)
        self.client.command(protocol.RESET, self.slots[slot]["number"].to_bytes(4, "little"))
        return self.client.simple()

    def close(self, slot):
        if slot in self.slots:
            self.client.command(protocol.CLOSE, self.slots.pop(slot)["number"].to_bytes(4, "little"))
        return []


def without_chance(part, numbers):
    """Without what differs in every play, or depends on what a connection tracks: pointsman's track more than others."""
    if not isinstance(part, dict):
        return part
    if "error" in part:
        for number in numbers:  # MariaDB's errors about statements
            part["text"] = part["text"].replace(f"({number})", "(its number)")
    if "states" in part:
        part["states"] = sorted(state for state in part["states"] if state[0] != "transaction" and state[1] != "statement_id")
    if "status" in part and not part.get("states"):
        part["status"] &= ~protocol.STATE_CHANGED
    return part


def without_warnings(answer):
    """Of a command that has no warnings of its own: MySQL says how many the statement before had."""
    return [{key: value for key, value in part.items() if key != "warnings"} for part in answer]


def kinds(values):
    return [protocol.binary(value)[0] for value in values]


class Movers:
    """Sessions whose transactions take the connections that are free, so that the next statement needs another one."""

    def __init__(self, address, schema):
        self.address, self.schema, self.groups = address, schema, [[], []]

    def move(self):
        busy, free = self.groups
        if not free:
            free += [protocol.Client(self.address, USER, lab.PASSWORDS[USER], self.schema, 0) for _ in range(MOVERS)]
        for mover, keeps in zip(free, KEEPS):
            mover.query(keeps)
            mover.query("BEGIN")
            mover.query(LEAVES)
        for mover in busy:
            mover.query("ROLLBACK")
        if busy:  # the one with a variable must not keep its connection
            busy[-1].command(protocol.RESET_CONNECTION)
            busy[-1].simple()
        self.groups.reverse()

    def close(self):
        for mover in sum(self.groups, []):
            mover.close()


def play(address, schema, kinds_of_clients, steps, moves):
    """What the sessions saw: an answer for each step. `moves`: whether there is anything to move between."""
    sessions, movers, seen = {}, Movers(address, schema), []
    try:
        for name, kind in kinds_of_clients.items():
            sessions[name] = Session(address, schema, kind)
            seen.append([name, sessions[name].client.login])
        for step in steps:
            if step[0] != "~":
                seen.append(sessions[step[0]].step(*step[1:]))
            elif moves:
                movers.move()
                seen.append([])
            else:
                seen.append([])
    finally:
        movers.close()
        for session in sessions.values():
            session.client.close()
    return seen
