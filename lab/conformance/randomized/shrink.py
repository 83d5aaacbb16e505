"""Compares what was seen, and leaves out of a script what a difference does not need."""

import json


def difference(steps, direct, through):
    """The first place where two plays differ: the step, and what was seen there either way."""
    logins = len(direct) - len(steps)
    for index, (one, other) in enumerate(zip(direct, through)):
        if one != other:
            return {"step": steps[index - logins] if index >= logins else ["login"], "direct": one, "through": other}
    return None


def parts(found):
    """The parts of an answer that differ, as pairs; all of them where there are more one way."""
    one, other = found["direct"], found["through"]
    length = max(len(one), len(other))
    pairs = zip(one + [None] * (length - len(one)), other + [None] * (length - len(other)))
    return [(left, right) for left, right in pairs if left != right]


def kind(found):
    """What a smaller script must keep to be taken for showing the same: the command, and what of its answer differs."""
    left, right = parts(found)[0]
    if not isinstance(left, dict) or not isinstance(right, dict) or set(left) != set(right):
        what = [sorted(side) if isinstance(side, dict) else None for side in (left, right)]
    else:
        what = sorted(key for key in left if left[key] != right[key])
    return json.dumps([found["step"][1:2], what])


def shrunk(steps, still_differs):
    """Steps without any that can be left out, first by halves, then by ever smaller pieces."""
    size = max(1, len(steps) // 2)
    while True:
        at, smaller = 0, False
        while at < len(steps):
            candidate = steps[:at] + steps[at + size:]
            if candidate and still_differs(candidate):
                steps, smaller = candidate, True
            else:
                at += size
        if size == 1 and not smaller:
            return steps
        size = max(1, size // 2)
