"""Makes scripts: from a seed, what several sessions send in turn. docs/conformance.md explains the steps."""

import random

from . import topics

SESSIONS = "abc"
CLIENTS = (0, 1, 3)  # which of play.CAPABILITIES they have
MOST_TOPICS = 7  # of one script: few topics that meet often find more than all of them thinly spread


class Maker:
    """Fills the gaps of statements. Whoever asks in the same order gets the same values."""

    def __init__(self, chance, server):
        self.chance, self.server = chance, server

    def fill(self, text, own):
        """`own` is the number of the session's own table; now and then another one's is meant."""
        pieces = text.split("{")
        filled = [pieces[0]]
        for piece in pieces[1:]:
            gap, rest = piece.split("}", 1)
            filled.append(str(self.gap(gap, own)) + rest)
        return "".join(filled)

    def gap(self, gap, own):
        chance = self.chance
        if gap == "t":
            return f"t{own}" if chance.random() < 0.95 else f"t{chance.randrange(len(SESSIONS))}"
        if gap == "own":
            return own
        options = topics.GAPS[gap]
        if isinstance(options, range):
            return chance.choice(options)
        return self.fill(chance.choice(options), own)

    def choose(self, statements):
        """One of a topic's statements for this server; a pair says which server it is for."""
        while True:
            statement = self.chance.choice(statements)
            if isinstance(statement, str):
                return statement
            if statement[0] == self.server:
                return statement[1]

    def parameters(self, count):
        chance = self.chance
        return [chance.choice((None, 1, 7, -3, 50, 2.5, "x", "7", "it's")) for _ in range(count)]


def script(seed, server):
    """The flags of the sessions' clients, and the steps."""
    chance = random.Random(f"{seed} {server}")
    maker = Maker(chance, server)
    names = SESSIONS[:chance.choice((1, 2, 2, 3))]
    chosen = ["basics", *chance.sample(sorted(topics.STATEMENTS), chance.randint(2, MOST_TOPICS))]
    commands = chance.sample(sorted(topics.COMMANDS), chance.randint(0, 3))
    moves = chance.choice((0.0, 0.15, 0.4))
    steps = []
    for _ in range(chance.choice((8, 15, 30, 50))):
        who = chance.choice(names)
        own = SESSIONS.index(who)
        if chance.random() < moves:
            steps.append(["~"])
        if commands and chance.random() < 0.25:
            steps += [[who, *step] for step in command(maker, chance.choice(commands), own)]
        else:
            steps.append([who, "query", maker.fill(maker.choose(topics.STATEMENTS[chance.choice(chosen)]), own)])
    return {name: chance.choice(CLIENTS) for name in names}, steps


def command(maker, kind, own):
    """The steps of one of the commands that are no text statements."""
    chance = maker.chance
    slot = chance.randrange(2)
    if kind == "prepared":
        sql = maker.fill(maker.choose(topics.PREPARED), own)
        parameters = maker.parameters(sql.count("?"))
        return [["prepare", slot, sql], ["execute", slot, parameters, True, False]]
    if kind == "again":
        count = chance.randint(0, 3)
        return [["execute", slot, maker.parameters(count), chance.random() < 0.7, False]]
    if kind == "cursor":
        sql = maker.fill(maker.choose(topics.CURSORS), own)
        first = [["prepare", slot, sql], ["execute", slot, maker.parameters(sql.count("?")), True, True]]
        return first + [["fetch", slot, chance.randint(1, 3)]] * chance.randint(0, 3)
    if kind == "fetch":
        return [["fetch", slot, chance.randint(1, 3)]]
    if kind == "long_data":
        return [["long_data", slot, chance.randrange(2), chance.choice(("abc", "", "7"))]]
    if kind in ("close", "reset"):
        return [[kind, slot]]
    if kind == "set_option":
        return [["set_option", chance.randrange(2)]]
    if kind == "init_db":
        return [["init_db", chance.choice(("$db", "$db_two"))]]
    if kind == "change_user":
        return [["change_user", chance.choice(("conf", "conf_reader", "conf_other")), chance.choice(("$db", "$db_two"))]]
    return [[kind]]  # ping, reset_connection
