"""Names: variables, closures, globals, builtins; and statements that bind or use them."""

from __future__ import annotations

import math
from math import ceil
from typing import Any

import numpy as np
import pytest
from tests.frontend.kernels import I32, PTR, define, ir, jit, ops, refused, results

import tritium.language as tl
from tritium import knobs
from tritium.ops.callable import constexpr_function
from tritium.ops.constexpr import constexpr
from tritium.ops.create import Constant
from tritium.ops.report import Assert

BLOCK = tl.constexpr(4)
SIZES = tl.constexpr((2, (3, 4)))
NUMBER = 8
TEXT = "relu"
LIST = [1, 2]
NOTHING = None
ALIAS = tl.exp2
SHAPE = tl.tuple((tl.constexpr(2), tl.constexpr(2)))


class Config:
    WIDTH = 4


@jit
def helper(x):
    return x + BLOCK


def test_globals_that_can_be_used() -> None:
    @jit
    def kernel(out, n):
        x = tl.zeros(SHAPE, tl.float32)
        y = ALIAS(tl.sum(tl.sum(x, 0), 0))
        if NOTHING is None:
            tl.store(out + tl.arange(0, BLOCK), helper(n) + SIZES[1][0])
        tl.store(out + 4, y.to(tl.int32) + Config.WIDTH + ceil(1.5) + int(math.tau))

    assert results(kernel, 5, size=5) == [12, 12, 12, 12, 1 + 4 + 2 + 6]


@pytest.mark.parametrize("name, kind", [("NUMBER", "int"), ("TEXT", "str"), ("LIST", "list")])
def test_plain_globals_are_refused(name: str, kind: str) -> None:
    kernel = define(f"def kernel(out):\n    x = 1 + {name}\n", **{name: globals()[name]})
    problem = refused(kernel, "E0102", PTR, at=name)
    assert problem.message.startswith(f"global {name} is a plain {kind}")
    assert f"{name} = tl.constexpr({globals()[name]!r})" in problem.help


def test_plain_globals_can_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    @jit
    def kernel(out):
        tl.store(out + tl.arange(0, 4), NUMBER + LIST[1] + len(TEXT))

    with knobs.compilation.scope():
        knobs.compilation.allow_non_constexpr_globals = True
        assert results(kernel, size=4) == [14] * 4
    refused(kernel, "E0102", PTR, at="NUMBER")
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    assert results(kernel, size=4) == [14] * 4


def plain(x: Any) -> Any:
    return x


def test_plain_functions_are_refused() -> None:
    @jit
    def kernel(out):
        tl.store(out, plain(1))

    problem = refused(kernel, "E0111", PTR, at="plain")
    assert "constexpr_function" in problem.help


def test_closures() -> None:
    width = tl.constexpr(4)
    number = 7

    @jit
    def inner(x):
        return x + width

    @constexpr_function
    def known():
        return number

    @jit
    def kernel(out, n):
        tl.store(out + tl.arange(0, width), inner(n) + known())

    assert results(kernel, 1, size=4) == [12] * 4

    @jit
    def refers(out):
        tl.store(out, number)

    refused(refers, "E0102", PTR, at="number")

    @jit
    def early(out):
        tl.store(out, later)

    refused(early, "E0101", PTR, at="later")
    later = tl.constexpr(1)
    assert results(early) == 1


def make(value: int) -> Any:
    factor = constexpr(value)

    @jit
    def kernel(out, n):
        tl.store(out, n * factor)

    return kernel


def test_closures_of_one_function_differ() -> None:
    assert results(make(2), 5) == 10
    assert results(make(3), 5) == 15


def test_locals_come_before_globals() -> None:
    @jit
    def kernel(out, BLOCK: tl.constexpr):
        len = BLOCK + 1
        tl.store(out, len)

    assert results(kernel, 7) == 8


def test_undefined_names() -> None:
    @jit
    def kernel(out, offsets):
        tl.store(out, ofsets + 1)

    problem = refused(kernel, "E0101", PTR, I32, at="ofsets")
    assert problem.message == "ofsets is not defined"
    assert problem.help == "did you mean offsets?"
    assert isinstance(problem, NameError)

    @jit
    def function(out):
        tl.store(out, arange(0, 4))

    assert refused(function, "E0101", PTR, at="arange").help == "write tl.arange"

    @jit
    def builtin(out, n):
        tl.store(out, any(n))

    assert refused(builtin, "E0101", PTR, I32, at="any").help == "write tl.any"

    @jit
    def other(out, n):
        tl.store(out, enumerate(n))

    assert "len" in refused(other, "E0101", PTR, I32, at="enumerate").help

    @jit
    def unknown(out):
        zzz_unknown()

    assert "tl.constexpr" in refused(unknown, "E0101", PTR, at="zzz_unknown").help

    @jit
    def augmented(out):
        total += 1

    refused(augmented, "E0101", PTR, at="total")


def test_a_global_that_changes_is_read_anew() -> None:
    kernel = define("def kernel(out):\n    tl.store(out, G)\n", G=constexpr(1))
    assert results(kernel) == 1
    kernel.fn.__globals__["G"] = constexpr(2)
    assert results(kernel) == 2


def test_numpy_and_other_modules() -> None:
    @jit
    def kernel(out):
        tl.store(out, int(np.float32(2.5) if False else np.pi))

    assert results(kernel) == 3


# ---- statements --------------------------------------------------------------------------------


def test_statements_without_effect() -> None:
    @jit
    def kernel(out, n):
        """What it does."""
        pass
        ...
        "text"
        n + 1
        tl.store(out, n)

    assert results(kernel, 3) == 3


def test_several_targets() -> None:
    @jit
    def kernel(out, n):
        a = b = n + 1
        tl.store(out, a + b)

    assert results(kernel, 3) == 8


def test_assert() -> None:
    @jit
    def kernel(out, n, A: tl.constexpr):
        assert n > 3, "too small"
        assert A == 4
        assert 1 == 2
        tl.store(out, n)

    function = ir(kernel, PTR, I32, 4)
    assert len(ops(function, Constant)) == 1
    kept = ops(ir(kernel, PTR, I32, 4, debug=True), Assert)
    assert [each.message for each in kept] == ["too small", "", ""]
    assert [each.place.line - kept[0].place.line for each in kept] == [0, 1, 2]

    @jit
    def visited(out):
        assert undefined_name

    refused(visited, "E0101", PTR, at="undefined_name")


@pytest.mark.parametrize(
    "statement, construct, at",
    [
        ("del out", "del", None),
        ("global x", "global", None),
        ("import os", "import", None),
        ("from os import path", "import", None),
        ("raise ValueError(1)", "raise", None),
        ("with out:\n        pass", "with", "with out:"),
        ("class A:\n        pass", "a class", "class A:"),
        ("def f():\n        pass", "a nested function", "def f():"),
        ("try:\n        pass\n    finally:\n        pass", "try", "try:"),
        ("match out:\n        case _:\n            pass", "match", "match out:"),
        ("x = yield", "yield", "yield"),
    ],
)
def test_statements_that_kernels_lack(statement: str, construct: str, at: str | None) -> None:
    kernel = define(f"def kernel(out):\n    {statement}\n")
    problem = refused(kernel, "E0110", PTR, at=at or statement)
    assert problem.message == f"{construct} is not part of the kernel language"


def test_nested_functions_say_what_to_do() -> None:
    kernel = define("def kernel(out):\n    def f():\n        pass\n")
    assert "@tritium.jit" in refused(kernel, "E0110", PTR, at="def f():").help


def test_the_text_of_an_error() -> None:
    @jit
    def inner(x):
        return x + undefined_name

    @jit
    def kernel(out, n):
        tl.store(out, inner(n))

    problem = refused(kernel, "E0101", PTR, I32, at="undefined_name")
    line = inner.fn.__code__.co_firstlineno + 2
    text = str(problem)
    assert f"test_names.py:{line}:20" in text
    assert "        return x + undefined_name\n" in text
    assert "called from" in text
    assert "in kernel" in text
