"""Plain functions in every layout that moves lines about; not a test, so pytest leaves it alone.

``tests/interp/test_rewrite.py`` traces each of them and its rewritten copy.
"""

from __future__ import annotations

import functools

import tritium.ops.hints

MODULE_NUMBER = 3


# The layout is what is tested.
# fmt: off
def assignments(a, b):
    x = 7
    y = (
        a
        + b
    )
    p, q = 1, (2,
               3)
    p, q = q, p
    y += 2
    y += (
        a
        * 2
    )
    z: int = 4
    (w := 5)
    u = v = a
    items = [
        a,
        b,
    ]
    items += [x]
    items[0] = 9
    items[
        1
    ] += 1
    first, *rest = items
    return x, y, p, q, z, w, u, v, first, rest


def conditions(a, b):
    if a and b:
        x = a
    if a or b and not a:  # noqa: RUF021
        x = b
    elif a < b < 5:
        x = 1
    else:
        x = 2
    y = a if a < b else b
    if 0 <= a <= b < 10:
        y = a
    z = a or b or (
        a
        and b
    )
    return x, y, z, a is None, b is not None


def long_conditions(a, b):
    if (
        a  # noqa: RUF021
        and b
        or not a
    ):
        x = b
    else:
        x = 2
    y = (
        a if
        a < b
        else
        b
    )
    if 0 <= a <= (
        b
    ) < 10:
        y = a
    while x > 0 and (
        x < 1000
    ):
        x -= 50
    return y


def loops(a, b):
    total = 0
    for i in range(
        a,
        b,
    ):
        if i == 2:
            continue
        total += i
        if i > 5:
            break
    else:
        total += 100
    while True:
        total = total - 1
        if total > 10:
            continue
        break
    while 1:
        if total < 100:
            break
    while True:
        (
            total
        ) = (
            total
            + 1
        )
        for _ in (
            1,
            2,
        ):
            pass
        break
    while total > 0:
        total -= 50
    values = [i * 2 for i in range(4) if i < 3 and i > 0]
    squares = {
        k: k * k
        for k in (1, 2)
    }
    low = min(
        a,
        b,
    )
    return total, values, squares, low, max(a, b), isinstance(a, int)


def python(a, b):
    import math

    def inner(c, d=a or b):
        e = 1
        return c and d and e

    def deep():
        nonlocal a
        a += 1
        return lambda f: f if f < a < 100 else a

    class Local:
        field = 1 and 2

    try:
        try:
            x = inner(b)
            raise ValueError(
                "x" if x else
                "y"
            )
        except ValueError as problem:
            text = f"{problem} {a and b} {1 < a < 3!r}"
        finally:
            y = math.floor(2.5)
    except KeyError:
        pass
    with Context() as entered:
        z = entered
    match b:
        case 2 if a and b:
            y = 5
        case tritium.ops.hints.sys | 3:
            y = 6
        case _:
            y = 7
    del x
    assert a, "never"
    assert (
        b
    )
    return text, y, z, deep()(3), Local.field


class Context:
    def __enter__(self):
        return "entered"

    def __exit__(self, *args):
        return None


def traced(function):
    @functools.wraps(function)
    def outer(*args):
        return function(*args)

    return outer


@traced
@traced
def decorated(a, b, *, c=1):
    x = a and b
    return x if c else b


def make(captured):
    def closed(a, b):
        nonlocal captured
        captured += 1
        return captured if a < b else MODULE_NUMBER

    return closed


closed = make(10)
def compact(a, b): return a if a and b else b
# fmt: on


EXACT = [assignments, conditions, loops, decorated, closed, compact]
ALL = [*EXACT, long_conditions, python]
