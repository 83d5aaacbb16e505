#!/usr/bin/env python3
"""Records what a client sends to the admin port: a relay in front of it that prints each statement, and each error.

    lab/admin/record.py LISTEN_PORT ADMIN_PORT

TLS and compression are hidden from the client, since both would hide the statements. Output, a line each:

    Q TEXT    a statement (COM_QUERY), with \\n for line ends      P TEXT   a statement to be prepared
    U NAME    a change of schema (COM_INIT_DB)                    C NUMBER another command
    E TEXT    the error that the line before was answered with
"""

import socket
import sys
import threading

CLIENT_COMPRESS, CLIENT_SSL, CLIENT_ZSTD = 1 << 5, 1 << 11, 1 << 26
NO_ATTRIBUTES = b"\x00\x01"  # before a statement, of clients that can send query attributes
NAMES = {2: "U", 3: "Q", 22: "P"}
lock = threading.Lock()


def say(kind, text):
    with lock:
        print(kind, text.replace("\\", "\\\\").replace("\n", "\\n"), flush=True)


def read_packet(stream):
    try:
        header = stream.read(4)
        if len(header) < 4:
            return None, b""
        return header[3], stream.read(int.from_bytes(header[:3], "little"))
    except ConnectionError:  # a client that was killed
        return None, b""


def hide(greeting):
    """The greeting without capabilities that would hide what is said."""
    version_end = greeting.index(0, 1)
    low = version_end + 1 + 4 + 8 + 1
    high = low + 2 + 1 + 2
    bits = int.from_bytes(greeting[low : low + 2], "little") | int.from_bytes(greeting[high : high + 2], "little") << 16
    bits &= ~(CLIENT_COMPRESS | CLIENT_SSL | CLIENT_ZSTD)
    changed = bytearray(greeting)
    changed[low : low + 2] = (bits & 0xFFFF).to_bytes(2, "little")
    changed[high : high + 2] = (bits >> 16).to_bytes(2, "little")
    return bytes(changed)


def from_server(server, client, fresh):
    stream = server.makefile("rb")
    first = True
    while True:
        number, payload = read_packet(stream)
        if number is None:
            break
        if first:
            payload, first = hide(payload), False
        elif fresh.is_set():
            fresh.clear()
            if payload[:1] == b"\xff":
                say("E", payload[3:].decode("utf-8", "replace"))
        client.sendall(len(payload).to_bytes(3, "little") + bytes([number]) + payload)
    client.close()


def from_client(client, server, fresh):
    stream = client.makefile("rb")
    while True:
        number, payload = read_packet(stream)
        if number is None:
            break
        if number == 0 and payload:
            kind = NAMES.get(payload[0])
            text = payload[1:].removeprefix(NO_ATTRIBUTES).decode("utf-8", "replace") if kind else str(payload[0])
            say(kind or "C", text)
            fresh.set()
        server.sendall(len(payload).to_bytes(3, "little") + bytes([number]) + payload)
    server.close()


def main():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
        fresh = threading.Event()
        for work, ends in ((from_server, (server, client)), (from_client, (client, server))):
            threading.Thread(target=work, args=(*ends, fresh), daemon=True).start()


if __name__ == "__main__":
    main()
