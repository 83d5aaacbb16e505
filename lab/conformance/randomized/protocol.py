"""A client of the MySQL protocol that hides nothing: an answer is the list of its parts, with all that packets say."""

import hashlib
import socket
import struct

SECONDS = 40  # until an answer comes; servers wait a second for locks
LONGEST_VALUE = 400  # bytes that are shown; of more, length and hash are compared

FOUND_ROWS, SESSION_TRACK, DEPRECATE_EOF = 1 << 1, 1 << 23, 1 << 24
CONNECT_WITH_DB, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH = 1 << 3, 1 << 9, 1 << 15, 1 << 19
LONG_PASSWORD, LONG_FLAG, TRANSACTIONS = 1 << 0, 1 << 2, 1 << 13
MULTI_STATEMENTS, MULTI_RESULTS, PS_MULTI_RESULTS = 1 << 16, 1 << 17, 1 << 18
ALWAYS = (CONNECT_WITH_DB | PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH | LONG_PASSWORD | LONG_FLAG | TRANSACTIONS
          | MULTI_STATEMENTS | MULTI_RESULTS | PS_MULTI_RESULTS)
COLLATION = 45  # utf8mb4_general_ci, which both servers know

QUIT, INIT_DB, QUERY, PING, CHANGE_USER, RESET_CONNECTION = 1, 2, 3, 14, 17, 31
PREPARE, EXECUTE, LONG_DATA, CLOSE, RESET, SET_OPTION, FETCH = 22, 23, 24, 25, 26, 27, 28

MORE_RESULTS, CURSOR_EXISTS, LAST_ROW_SENT, STATE_CHANGED = 1 << 3, 1 << 6, 1 << 7, 1 << 14
LONGLONG, DOUBLE, VAR_STRING, TYPE_NULL = 8, 5, 253, 6
STATES = ("variable", "schema", "changed", "gtids", "characteristics", "transaction")


class Lost(Exception):
    """The connection ended where an answer was due."""


class Reader:
    """The fields of one packet."""

    def __init__(self, packet):
        self.packet, self.at = packet, 0

    def take(self, count):
        piece = self.packet[self.at:self.at + count]
        self.at += count
        return piece

    def rest(self):
        return self.take(len(self.packet) - self.at)

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def length(self):
        first = self.number(1)
        return self.number({0xFC: 2, 0xFD: 3, 0xFE: 8}[first]) if first > 0xFB else first

    def text(self):
        return self.take(self.length())

    def until_null(self):
        piece = self.take(self.packet.index(0, self.at) - self.at)
        self.at += 1
        return piece


def shown(data):
    """Bytes as text, no two different ones alike."""
    if len(data) > LONGEST_VALUE:
        return f"{len(data)} bytes, {hashlib.sha1(data).hexdigest()}"
    return data.decode("latin-1")


def scramble(plugin, password, salt):
    """The proof of a password."""
    secret = password.encode()
    if not secret:
        return b""
    if plugin == "mysql_native_password":
        once = hashlib.sha1(secret).digest()
        mask = hashlib.sha1(salt + hashlib.sha1(once).digest()).digest()
    else:  # caching_sha2_password
        once = hashlib.sha256(secret).digest()
        mask = hashlib.sha256(hashlib.sha256(once).digest() + salt).digest()
    return bytes(one ^ other for one, other in zip(once, mask))


class Client:
    """One connection. `flags` are the capabilities that differ between clients."""

    def __init__(self, address, user, password, schema, flags):
        self.flags = flags
        self.socket = socket.create_connection(address, timeout=SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.sequence = 0
        greeting = Reader(self.packet())
        greeting.number(1)
        greeting.until_null()
        greeting.number(4)
        salt = greeting.take(8)
        greeting.take(1 + 2 + 1 + 2 + 2 + 1 + 10)
        salt += greeting.take(13)[:12]
        plugin = greeting.until_null().decode()
        proof = scramble(plugin, password, salt)
        self.send(
            struct.pack("<IIB23x", ALWAYS | flags, 1 << 24, COLLATION) + user.encode() + b"\0" + bytes([len(proof)]) + proof
            + schema.encode() + b"\0" + plugin.encode() + b"\0")
        self.login = self.finish_login(password)

    def finish_login(self, password):
        """What the login ends with: switches of the plugin differ, and are not told."""
        while True:
            packet = self.packet()
            if packet[0] == 0xFE:
                switch = Reader(packet[1:])
                plugin = switch.until_null().decode()
                self.send(scramble(plugin, password, switch.rest()[:20]))
            elif packet[0] != 1:  # 1: caching_sha2_password knows the password, and OK follows
                return self.end(packet)[0]

    def close(self):
        self.file.close()
        self.socket.close()

    def leave(self):
        self.command(QUIT)
        while self.socket.recv(4096):
            pass
        self.close()

    # --- packets ---

    def send(self, payload):
        self.socket.sendall(len(payload).to_bytes(3, "little") + bytes([self.sequence]) + payload)
        self.sequence = (self.sequence + 1) % 256

    def packet(self):
        try:
            header = self.file.read(4)
            payload = self.file.read(int.from_bytes(header[:3], "little"))
        except OSError as error:
            raise Lost(type(error).__name__) from error
        if len(header) < 4:
            raise Lost("end")
        if header[3] != self.sequence:
            raise Lost(f"packet {header[3]} instead of {self.sequence}")
        self.sequence = (self.sequence + 1) % 256
        return payload

    def command(self, number, body=b""):
        self.sequence = 0
        try:
            self.send(bytes([number]) + body)
        except OSError as error:
            raise Lost(type(error).__name__) from error

    # --- answers ---

    def end(self, packet):
        """An OK, EOF or error packet: what it says, and the status flags."""
        reader = Reader(packet)
        kind = reader.number(1)
        if kind == 0xFF:
            code, state = reader.number(2), reader.take(6)
            return {"error": code, "state": shown(state), "text": shown(reader.rest())}, 0
        if kind == 0xFE and len(packet) < 9 and not self.flags & DEPRECATE_EOF:
            warnings, status = reader.number(2), reader.number(2)
            return {"end": "EOF", "warnings": warnings, "status": status}, status
        answer = {"end": "OK", "affected": reader.length(), "insert_id": reader.length()}
        status = answer["status"] = reader.number(2)
        answer["warnings"] = reader.number(2)
        if self.flags & SESSION_TRACK:
            answer["info"] = shown(reader.text()) if reader.at < len(packet) else ""
            answer["states"] = states(reader.text()) if status & STATE_CHANGED else []
        answer["rest"] = shown(reader.rest())
        return answer, status

    def columns(self, count, kind):
        """Definitions of columns or parameters. Of the EOF that may be behind them only the cursor is told: pointsman makes it, and
        cannot know yet what the end of the result will say."""
        parts = [{kind: definition(self.packet())} for _ in range(count)]
        if count and not self.flags & DEPRECATE_EOF:
            _, status = self.end(self.packet())
            parts.append({"end of definitions": status & CURSOR_EXISTS})
        return parts

    def rows(self):
        """Rows as they come, and what ends them."""
        parts = []
        while True:
            packet = self.packet()
            if packet[0] == 0xFF or packet[0] == 0xFE and len(packet) < 0xFFFFFF:
                last, status = self.end(packet)
                return [*parts, last], status
            parts.append({"row": shown(packet)})

    def answer(self):
        """All results of a command that may have several."""
        parts = []
        while True:
            packet = self.packet()
            if packet[0] in (0x00, 0xFE, 0xFF):
                last, status = self.end(packet)
                parts.append(last)
            else:
                count = Reader(packet).length()
                parts += [{"columns": count}, *self.columns(count, "column")]
                if parts[-1].get("end of definitions"):
                    return parts  # without DEPRECATE_EOF nothing follows
                more, status = self.rows()
                parts += more
            if not status & MORE_RESULTS:
                return parts

    def simple(self):
        return [self.end(self.packet())[0]]

    # --- commands ---

    def query(self, sql):
        self.command(QUERY, sql.encode())
        return self.answer()

    def change_user(self, user, password, schema):
        """As a client that does not know which plugin the account has."""
        self.command(CHANGE_USER, user.encode() + b"\0\0" + schema.encode() + b"\0" + COLLATION.to_bytes(2, "little")
                     + b"mysql_native_password\0")
        return [self.finish_login(password)]

    def prepare(self, sql):
        """The statement's id, or None, and the answer without it."""
        self.command(PREPARE, sql.encode())
        packet = self.packet()
        if packet[0] == 0xFF:
            return None, [self.end(packet)[0]]
        reader = Reader(packet[1:])
        number, columns, parameters = reader.number(4), reader.number(2), reader.number(2)
        parts = [{"columns": columns, "parameters": parameters, "rest": shown(reader.rest())}]
        return number, parts + self.columns(parameters, "parameter") + self.columns(columns, "column")

    def execute(self, number, parameters, types, cursor, long_data=()):
        """`types`: whether the types of the parameters are told, as they must be the first time."""
        body = struct.pack("<IBI", number, 1 if cursor else 0, 1)
        if parameters:
            nulls = sum(1 << index for index, value in enumerate(parameters) if value is None)
            body += nulls.to_bytes((len(parameters) + 7) // 8, "little") + bytes([1 if types else 0])
            values = [binary(value) for value in parameters]
            if types:
                body += b"".join(struct.pack("<BB", kind, 0) for kind, _ in values)
            body += b"".join(data for index, (_, data) in enumerate(values) if index not in long_data)
        self.command(EXECUTE, body)
        return self.answer()

    def fetch(self, number, count):
        self.command(FETCH, struct.pack("<II", number, count))
        return self.rows()[0]


def binary(value):
    """The type and the bytes of a parameter."""
    if value is None:
        return TYPE_NULL, b""
    if isinstance(value, int):
        return LONGLONG, struct.pack("<q", value)
    if isinstance(value, float):
        return DOUBLE, struct.pack("<d", value)
    data = value.encode()
    return VAR_STRING, bytes([len(data)]) + data  # no parameter is longer than 250 bytes


def definition(packet):
    """A column definition; that of COM_FIELD_LIST has a default behind it."""
    reader = Reader(packet)
    names = [shown(reader.text()) for _ in range(6)]
    reader.length()
    numbers = [reader.number(size) for size in (2, 4, 1, 2, 1, 2)]
    names_of_numbers = ("charset", "length", "type", "flags", "decimals", "filler")
    return {**dict(zip(("catalog", "schema", "table", "org_table", "name", "org_name"), names)),
            **dict(zip(names_of_numbers, numbers)), "rest": shown(reader.rest())}


def states(data):
    """The session state changes of an OK packet."""
    reader, changes = Reader(data), []
    while reader.at < len(data):
        kind = reader.number(1)
        change = Reader(reader.text())
        name = STATES[kind] if kind < len(STATES) else kind
        if name == "variable":
            while change.at < len(change.packet):
                changes.append([name, shown(change.text()), shown(change.text())])
        else:
            changes.append([name, shown(change.rest())])
    return changes
