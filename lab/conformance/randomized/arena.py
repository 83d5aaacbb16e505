"""A real server with two pointsmen in front of it, and the plays on them."""

import re
import time

import lab

from . import play, protocol, shrink, statements, topics

SCHEMA = "conf_random"
FREE_SECONDS = 40  # until sessions that have left have let go of their tables and locks
LOCKS_FREE = " AND ".join(f"IS_FREE_LOCK('{name.replace('$db', SCHEMA)}')" for name in topics.GAPS["lock"])
# A statement that waits for another session's lock waits for as long either way. The data need not outlive a crash.
GLOBALS = {
    "innodb_lock_wait_timeout": 1, "lock_wait_timeout": 1, "sync_binlog": 0, "innodb_flush_log_at_trx_commit": 0,
}


class Arena:
    """One pointsman shares few connections between the sessions, the other opens a connection whenever a session needs one."""

    def __init__(self, program, servers, server, fast_forward):
        self.server, self.address = server, (lab.HOST, servers.ports[server])
        servers.sql(server, "; ".join(f"SET GLOBAL {name} = {value}" for name, value in GLOBALS.items()))
        servers.warm_up(server)
        self.dba = protocol.Client(self.address, "dba", "dba-secret", "app", 0)
        self.daemons = [lab.Daemon(program, server, servers) for _ in range(2)]
        self.daemons[0].configure(max_connections=len(statements.SESSIONS) + 2 * play.MOVERS, fast_forward=fast_forward)
        self.daemons[1].configure(variables=[("free_connections_pct", 0)], fast_forward=fast_forward)

    def stop(self):
        self.dba.close()
        return [problem for problem in (daemon.stop() for daemon in self.daemons) if problem]

    def direct(self, clients, steps):
        return self.play(self.address, clients, steps, False)

    def difference(self, clients, steps, fresh, direct=None):
        """The first difference between what is seen directly, which may be known already, and through pointsman, or None."""
        direct = direct or self.direct(clients, steps)
        through = self.play((lab.HOST, self.daemons[fresh].port), clients, steps, not fresh)
        return shrink.difference(steps, direct, through)

    def shrunk(self, clients, steps, fresh, kind):
        def still_differs(fewer):
            found = self.difference(clients, fewer, fresh)
            return found is not None and shrink.kind(found) == kind

        return shrink.shrunk(steps, still_differs)

    def play(self, address, clients, steps, moves):
        self.begin(steps)
        return play.play(address, SCHEMA, clients, steps, moves)

    # --- the schema ---

    def begin(self, steps):
        """Makes the schema anew, as soon as nobody of the play before holds anything."""
        deadline = time.monotonic() + FREE_SECONDS
        while not self.emptied():
            if time.monotonic() > deadline:
                raise lab.Failed(f"{self.server}: locks of the play before are not given back")
        self.must("; ".join([f"USE {SCHEMA}", *needed(steps)]))

    def emptied(self):
        self.roll_back_prepared()
        drops = "; ".join(f"DROP DATABASE IF EXISTS {name}" for name in (SCHEMA, SCHEMA + "_two"))
        answer = self.dba.query(drops)  # waits for a second, if it must
        free = self.dba.query(f"SELECT {LOCKS_FREE}")
        if "error" in answer[-1] or {"row": "\x011"} not in free:
            return False
        self.must("; ".join((
            f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4", f"CREATE DATABASE {SCHEMA}_two CHARACTER SET latin1",
            f"CREATE TABLE {SCHEMA}_two.other (a INT)", f"INSERT INTO {SCHEMA}_two.other VALUES (1)")))
        return True

    def roll_back_prepared(self):
        for part in self.dba.query("XA RECOVER"):
            if "row" in part:
                row = protocol.Reader(part["row"].encode("latin-1"))
                form, length, _, data = (row.text().decode() for _ in range(4))
                self.dba.query(f"XA ROLLBACK '{data[:int(length)]}', '{data[int(length):]}', {form}")

    def must(self, sql):
        for part in self.dba.query(sql):
            if "error" in part:
                raise lab.Failed(f"{self.server}: {part}")


def needed(steps):
    """The statements of the setup for what a script names, and for what these name in turn: to make all takes longer than most scripts."""
    text, chosen = str(steps), []
    while True:
        more = [made for made in topics.SETUP if made not in chosen and re.search(rf"\b{subject(made)}\b", text)]
        if not more:
            return [made for made in topics.SETUP if made in chosen]
        chosen += more
        text += str(more)


def subject(made):
    """What a statement of the setup makes, or adds to."""
    return re.match(r"CREATE TRIGGER .*? ON (\w+)|CREATE \w+ (\w+)|INSERT INTO (\w+)", made).expand(r"\1\2\3")
