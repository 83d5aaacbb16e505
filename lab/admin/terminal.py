"""Runs a full-screen program in a terminal of its own until texts have been on its screen:

    terminal.py HOME SECONDS TEXT... -- PROGRAM ARGUMENTS...

Exit status 1, with the last screen, where they do not come.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

import pyte

LINES, COLUMNS = 90, 230


def start(home, command):
    process, terminal = pty.fork()
    if process == 0:
        environment = {**os.environ, "HOME": home, "TERM": "xterm-256color", "LINES": str(LINES), "COLUMNS": str(COLUMNS)}
        os.execve(command[0], command, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    return process, terminal


def watch(terminal, texts, seconds):
    """The texts that did not come, and the last screen."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    missing, deadline = set(texts), time.monotonic() + seconds
    while missing and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                stream.feed(os.read(terminal, 1 << 16))
            except OSError:  # the program has ended
                break
            continue
        shown = "\n".join(screen.display)
        missing = {text for text in missing if text not in shown}
    return missing, "\n".join(line.rstrip() for line in screen.display if line.strip())


def main():
    home, seconds, *rest = sys.argv[1:]
    end = rest.index("--")
    process, terminal = start(home, rest[end + 1 :])
    try:
        missing, screen = watch(terminal, rest[:end], float(seconds))
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    if missing:
        print(screen)
        sys.exit(f"not on the screen: {', '.join(sorted(missing))}")


main()
