"""A connection to a MySQL port: logs in with mysql_native_password and runs statements, one after the other."""

import hashlib
import socket
import struct

from lanes import Failure

# LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH, DEPRECATE_EOF
CAPABILITIES = 0x00000001 | 0x00000200 | 0x00002000 | 0x00008000 | 0x00080000 | 0x01000000
PATIENCE = 60  # seconds for an answer


class Connection:
    def __init__(self, port, user, password):
        self.name = f"{user} on port {port}"
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")
        self.log_in(user, password)

    def close(self):
        self.stream.close()
        self.socket.close()

    def query(self, sql):
        """Rows of texts; none where the answer is no result set."""
        self.send(0, b"\x03" + sql.encode())
        head = self.receive()
        if head[:1] == b"\0":
            return []
        for _ in range(head[0]):
            self.receive()
        rows = []
        while (packet := self.receive())[:1] != b"\xfe":
            rows.append(texts(packet))
        return rows

    def value(self, sql):
        """The first column of the one row."""
        [(value, *_)] = self.query(sql)
        return value

    def log_in(self, user, password):
        greeting = self.receive()
        at = greeting.index(b"\0", 1) + 5
        nonce = greeting[at:at + 8] + greeting[at + 27:at + 39]
        stage1 = hashlib.sha1(password.encode()).digest()
        salted = hashlib.sha1(nonce + hashlib.sha1(stage1).digest()).digest()
        answer = bytes(a ^ b for a, b in zip(stage1, salted))
        self.send(1, struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 45) + user.encode() + b"\0" + bytes([len(answer)]) + answer
                  + b"mysql_native_password\0")
        if self.receive()[:1] == b"\xfe":
            raise Failure(f"{self.name}: asks for another authentication plugin")

    def send(self, sequence, payload):
        self.socket.sendall(len(payload).to_bytes(3, "little") + bytes([sequence]) + payload)

    def receive(self):
        header = self.stream.read(4)
        if len(header) < 4:
            raise Failure(f"{self.name}: the connection was closed")
        packet = self.stream.read(int.from_bytes(header[:3], "little"))
        if packet[:1] == b"\xff":
            raise Failure(f"{self.name}: {packet[3:].decode(errors='replace')}")
        return packet


def texts(packet):
    """The columns of a row, None for NULL."""
    columns, at = [], 0
    while at < len(packet):
        length, at = packet[at], at + 1
        if length == 0xfb:
            columns.append(None)
            continue
        if length > 0xfb:
            size = {0xfc: 2, 0xfd: 3, 0xfe: 8}[length]
            length, at = int.from_bytes(packet[at:at + size], "little"), at + size
        columns.append(packet[at:at + length].decode())
        at += length
    return columns
