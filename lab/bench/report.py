"""What a benchmark prints: progress on standard error, tables on standard output."""

import sys
import time

BEGUN = time.monotonic()


def say(text):
    print(f"bench: [{time.monotonic() - BEGUN:5.0f} s] {text}", file=sys.stderr, flush=True)


def table(title, header, rows):
    print(f"\n{title}\n")
    widths = [max(len(str(row[at])) for row in [header, *rows]) for at in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
    sys.stdout.flush()
