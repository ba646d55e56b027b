# ruff: noqa: E501 - a body is one piece

"""Every construct of the Python subset, run both ways."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl

NAMES = """
import math, enum
from typing import NamedTuple
import collections
G = tl.constexpr(8)
PLAIN = 8
LIST = [1,2]
T = tl.constexpr((1,2,3))
class Color(enum.Enum):
    RED = 1
Pair = collections.namedtuple("Pair", "a b")
class NT(NamedTuple):
    a: int
    b: int = 5
def plainf(x): return x
@tritium.constexpr_function
def cf(x): return x+1
@tl.constexpr
def flag_gems(x): return x + 1
@jit
def add(a,b=3,*,c=4): return a+b+c
@jit
def varargs(*a): return a[0]+a[1]
@jit(noinline=True)
def ni(a): return a+1
@jit
def none_fn(a):
    tl.static_assert(True)
@jit
def early(a):
    if a > 3:
        return 1.5
    return 2
@jit
def early_tuple(a):
    if a > 3:
        return a, 2
    return 1, a
@jit
def rec(a, N: tl.constexpr):
    if N == 0: return a
    return rec(a+1, N-1)
@jit
def oneline(x): return x*2
@jit
def takes_fn(f: tl.constexpr, x): return f(x)
@jit
def loops(a): return loops(a)
@jit
def void_if(a):
    if a > 100:
        return 7
"""
"""What the bodies may call."""

WORKS: list[tuple[str, int]] = [
    ("tl.store(out, add(n))", 12),
    ("tl.store(out, add(n, c=7))", 15),
    ("tl.store(out, varargs(n, m))", 12),
    ("tl.store(out, ni(n))", 6),
    ("a, b = early_tuple(n)\ntl.store(out, a + b)", 7),
    ("tl.store(out, rec(n, 3))", 8),
    ("tl.store(out, oneline(n))", 10),
    ("tl.store(out, takes_fn(oneline, n))", 10),
    ("none_fn(n)\ntl.store(out, n)", 5),
    ("x = void_if(n)\ntl.store(out, n)", 5),
    ("tl.store(out, G)", 8),
    ("tl.store(out, T[1])", 2),
    ("tl.store(out, len(T))", 3),
    ("tl.store(out, cf(8))", 9),
    ("tl.store(out, flag_gems(8))", 9),
    ("p = Pair(n, m)\ntl.store(out, p.a + p.b)", 12),
    ("p = NT(n)\ntl.store(out, p.a + p.b)", 10),
    ("p = NT(n, b=m)\nfor i in range(0):\n    p = NT(1, 2)\ntl.store(out, p.a + p.b)", 12),
    ("i = 0\nwhile i < m:\n    i += 1\ntl.store(out, i)", 7),
    (
        "v = tl.arange(0, 4)\ns = 0\nwhile tl.sum(v) < 20:\n    v = v + 1\n    s += 1\ntl.store(out, tl.sum(v) - 1 + s - s)",
        21,
    ),
    ("a = b = n\ntl.store(out, b)", 5),
    ("x: tl.constexpr = 2 in (1, 2)\ntl.store(out, x)", 1),
    ("a: tl.constexpr = 2 ** 2\ntl.store(out, a)", 4),
    ("x = 9 if n > 3 else 2\ntl.store(out, x)", 9),
    ("x = (n > 3) + (m > 3) + (f > 1)\nx = 1 if 3 < n < m else 0\ntl.store(out, x + 2)", 3),
    ("t = (1, 2, 3)\ns = 0\nfor i in tl.static_range(len(t)):\n    s += t[i]\ntl.store(out, s)", 6),
    ("t = (1, 2) + (3,)\na, (b, c) = t[0], (t[1], t[2])\ntl.store(out, a + b + c)", 6),
    ("t = [x * 2 for x in (1, 2, 3) if x != 0]\ntl.store(out, t[0] + t[1] + t[2])", 12),
    ("if (y := n + 1) > 3:\n    tl.store(out, y)", 6),
    ("tl.store(out, min(n, m))", 5),
    ("tl.store(out, max(n, m, 3))", 7),
    ("tl.store(out, max(1, 2, 3))", 3),
    ("tl.store(out, abs(2 - m) + abs(-3))", 8),
    ("tl.store(out, int(3.7))", 3),
    ('tl.store(out, float("inf") > 3)', 1),
    ("tl.store(out, isinstance(n, tl.tensor))", 1),
    ('tl.store(out, 2 if hasattr(n, "dtype") else 1)', 2),
    ('tl.store(out, 2 if hasattr(n, "T") and not hasattr(n, "S") else 1)', 2),
    (
        'tl.store(out, 2 if hasattr(n, "sum") and hasattr(tl, "sum") and hasattr((1,), "S") else 1)',
        1,
    ),
    ('tl.store(out, getattr(n, "nope", 3))', 3),
    ("tl.store(out, n.dtype is tl.int32)", 1),
    ("tl.store(out, math.floor(math.pi))", 3),
    ("tl.store(out, Color.RED is Color.RED)", 1),
    ("s = 0\nfor i in range(5, 0, -1):\n    s += i\ntl.store(out, s)", 15),
    ("s = 0\nstep = 0 - (n - 4)\nfor i in range(n, 0, step):\n    s += i\ntl.store(out, s)", 15),
    (
        "s = 0\nfor i in tl.range(0, 3, num_stages=2, flatten=True, loop_unroll_factor=2, warp_specialize=False):\n    s += i\ntl.store(out, s * 2)",
        6,
    ),
    (
        "s = 0\nfor i in range(3):\n    for j in tl.static_range(2):\n        if j == 1:\n            s += i\n        else:\n            if i > 1:\n                s += 1\n            else:\n                s += 3\ntl.store(out, s)",
        10,
    ),
    ('d: tl.constexpr = "tf32"\nif d == "tf32":\n    tl.store(out, n)', 5),
    ('x: tl.constexpr = f"a{G}b"\ntl.static_assert(x == "a8b")\ntl.store(out, 1)', 1),
    ("x = tl.zeros((4, 2), tl.int32)\ntl.store(out, x.shape[0] * x.shape[1])", 8),
    ("t = (n, m)\nif n > 3:\n    t = (m, n)\ntl.store(out, t[0])", 7),
    ("s = (n, m)\nfor i in range(3):\n    s = (s[1], s[0])\na, b = s\ntl.store(out, a + b)", 12),
    ('assert n > 3\nassert n > 3, "msg"\ntl.store(out, n)', 5),
    ("assert 1 == 1\ntl.store(out, n)", 5),
    ('"doc"\n3\nNone\npass\ntl.store(out, n)', 5),
    ("t = (n, 3)\ntl.store(out, add(*t))", 12),
    ("x: tl.int64 = n\ntl.store(out, x)", 5),
    ("x: tl.constexpr\nx = 8\ntl.store(out, tl.sum(tl.full((x,), 1, tl.int32)))", 8),
    (
        "if n > 3:\n    if m > 100:\n        tl.store(out, 1)\n        return\n    elif m > 6:\n        tl.store(out, 5)\n        return\n    tl.store(out, 9)\ntl.store(out, 2)",
        5,
    ),
    ("if n is None:\n    raise ValueError\nif n is not None and True:\n    tl.store(out, n)", 5),
    (
        "x = 3\nx -= 1\nx *= 3\nx //= 2\nx %= 4\nx <<= 1\nx >>= 1\nx |= 2\nx &= 2\nx ^= 0\ntl.store(out, x)",
        2,
    ),
    ("t = (1, 2, 3, 4)\ntl.store(out, t[-1] * len(t[1:3]) // 2)", 4),
]
"""Bodies of a kernel of (out, n = 5, m = 7, f = 2.5), and what they store."""


def kernel_of(body: str) -> Any:
    """The kernel with that body."""
    text = f"{NAMES}\n@jit\ndef kernel(out, n, m, f):\n"
    text += "".join(f"    {line}\n" for line in body.splitlines())
    file = f"<subset {body}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"tl": tl, "jit": tritium.jit, "tritium": tritium}
    names["__name__"] = __name__
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names["kernel"]


@pytest.mark.parametrize(("body", "expected"), WORKS)
def test_constructs_that_work(body: str, expected: int) -> None:
    kernel = kernel_of(body)
    for launch in (kernel, kernel.interpret):
        out = np.zeros(16, np.int32)
        launch[(1,)](out, 5, 7, 2.5)
        assert out[0] == expected
