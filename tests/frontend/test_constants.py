"""Values that are known when a kernel is compiled, and numbers that it assigns."""

from __future__ import annotations

import enum
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests.frontend.kernels import F32, I32, PTR, ConstantSpec, ir, jit, ops, refused, results

import tritium.language as tl
from tritium.ops.arith import Add, Mul
from tritium.ops.compare import Lt
from tritium.ops.constexpr import constexpr
from tritium.ops.control import If
from tritium.ops.create import Constant
from tritium.ops.logic import And


def test_constants_are_computed_in_python() -> None:
    @jit
    def kernel(out, A: tl.constexpr):
        b: tl.constexpr = (-7 // 2) * 100 + (-7 % 4) * 10 + 2**3
        tl.store(out, b + A)

    function = ir(kernel, PTR, 5)
    assert [op.value for op in ops(function, Constant)] == [-400 + 10 + 8 + 5]
    assert results(kernel, 5) == -377


def test_assigned_numbers_are_tiles() -> None:
    @jit
    def kernel(out):
        x = 7
        y = -2
        tl.store(out, x // y)
        tl.store(out + 1, x % y)

    # As C divides: Python's floor division would give -4 and -1.
    assert results(kernel, size=2) == [-3, 1]
    assert [op.value for op in ops(ir(kernel, PTR), Constant)][:2] == [7, -2]


def test_types_of_assigned_numbers() -> None:
    @jit
    def kernel(out):
        a = True
        b = 2**31
        c = 2**40
        d = 1.5
        e = 1e-40
        f, (g, h) = 1, (2.0, None)
        tl.static_assert(a.dtype == tl.int1)
        tl.static_assert(b.dtype == tl.uint32)
        tl.static_assert(c.dtype == tl.int64)
        tl.static_assert(d.dtype == tl.float32)
        tl.static_assert(e.dtype == tl.float64)
        tl.static_assert(f.dtype == tl.int32 and g.dtype == tl.float32)
        tl.static_assert(h is None)
        tl.store(out, 1)

    assert results(kernel) == 1


def test_an_assigned_number_may_be_a_shape() -> None:
    @jit
    def kernel(out):
        n = 4
        half = n // 2
        rows, columns = half, n - half
        m: tl.constexpr = n * 2
        sizes = (m, 3)
        x = tl.full((rows, columns), -7 // half + tl.constexpr(half), tl.int32)
        for _ in tl.static_range(half):
            x += sizes[half - 1]
        tl.static_assert(half == 2)
        tl.store(out + tl.arange(0, n), tl.reshape(x, (n,)) + tl.program_id(half - 2))

    assert results(kernel, size=4) == [-1 + 6] * 4


def test_local_constants_are_folded_as_tiles_are_computed() -> None:
    @jit
    def kernel(out):
        seven = 7
        a = -seven // 2 + 8
        b = -seven % 4 + 8
        c = (2147483647 + seven) // 2147483647 + 5
        d = (seven / 2).to(tl.int32)
        tl.static_assert(tl.arange(0, a).shape[0] == 5)
        tl.static_assert(tl.arange(0, b).shape[0] == 5)
        tl.static_assert(tl.arange(0, c).shape[0] == 5)
        tl.static_assert(tl.arange(0, d).shape[0] == 3)
        tl.store(out, 1)

    assert results(kernel) == 1


def test_what_changes_at_run_time_is_no_constant() -> None:
    @jit
    def carried(out, m):
        n = 4
        for _ in range(m):
            tl.store(out + tl.arange(0, n), 0)
            n = n * 2

    problem = refused(carried, "E0205", PTR, I32, at="n")
    assert "end must be known" in problem.message
    assert problem.help == "declare it as n: tl.constexpr"

    @jit
    def afterwards(out, m):
        n = 4
        for _ in range(2):
            for _ in range(m):
                n = n * 2
            tl.store(out + tl.arange(0, n), 0)

    refused(afterwards, "E0205", PTR, I32, at="n")

    @jit
    def branch(out, m):
        n = 4
        if m > 3:
            n = 8
        tl.store(out, tl.zeros((n, 4), tl.int32))

    problem = refused(branch, "E0205", PTR, I32, at="(n, 4)")
    assert problem.help == "declare it as n: tl.constexpr"

    @jit
    def argument(out, m):
        n = m * 0 + 4
        tl.store(out + tl.arange(0, n), 0)

    refused(argument, "E0205", PTR, I32, at="n")

    @jit
    def inside(out, m):
        for _ in range(m):
            n = 2
            n = n * 2
            tl.store(out + tl.arange(0, n), 5)

    assert results(inside, 2, size=4) == [5] * 4


def test_places_in_the_library_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    @jit
    def kernel(out, n):
        x = tl.zeros((4, n), tl.int32)
        tl.store(out, tl.cdiv(n, 2))

    problem = refused(kernel, "E0205", PTR, I32, at="(4, n)")
    assert problem.loc is not None
    assert problem.loc.call_site is None
    monkeypatch.setenv("TRITON_FRONT_END_DEBUGGING", "1")
    problem = refused(kernel, "E0205", PTR, I32, at="shape")
    assert problem.loc is not None
    assert "standard.py" in problem.loc.file

    @jit
    def rounded(out, n):
        tl.store(out, tl.cdiv(n, 2))

    monkeypatch.delenv("TRITON_FRONT_END_DEBUGGING")
    function = ir(rounded, PTR, I32)
    assert {str(op.loc.file) for op in function.walk()} == {__file__}
    (add,) = ops(function, Add)
    assert add.loc.col == 22
    assert add.loc.call_site is None


def test_a_missing_constexpr() -> None:
    @jit
    def kernel(out, BLOCK):
        tl.store(out + tl.arange(0, BLOCK), 0)

    problem = refused(kernel, "E0205", PTR, I32, at="BLOCK")
    assert "int32" in problem.message
    assert "tl.constexpr" in problem.help

    @jit
    def nested(out, BLOCK):
        x = tl.full((2, BLOCK), 0, tl.int32)
        tl.store(out, x)

    refused(nested, "E0205", PTR, I32, at="(2, BLOCK)")


def test_strings_need_a_declaration() -> None:
    @jit
    def declared(out):
        mode: tl.constexpr = "a"
        tl.store(out, 1 if mode == "a" else 2)

    assert results(declared) == 1

    @jit
    def kernel(out):
        mode = "tf32"
        tl.store(out, 1)

    problem = refused(kernel, "E0204", PTR, at="mode")
    assert "mode: tl.constexpr" in problem.help


def test_declarations() -> None:
    @jit
    def kernel(out, n, A: tl.constexpr):
        B: tl.constexpr = A * 2
        C: "tl.constexpr" = (B, None, tl.float32)
        D: tl.constexpr
        D = B + 1
        e: tl.int64 = n
        tl.store(out + tl.arange(0, B) + C[0] - D + 1, tl.zeros((B,), C[2]).to(tl.int32) + e)

    assert results(kernel, 3, 2, size=4) == [3, 3, 3, 3]


def test_declarations_refused() -> None:
    @jit
    def twice(out, n):
        n: tl.constexpr = 3
        tl.store(out, n)

    refused(twice, "E0120", PTR, I32, at="n")

    @jit
    def run_time(out, n):
        m: tl.constexpr = n + 1
        tl.store(out, m)

    problem = refused(run_time, "E0205", PTR, I32, at="n + 1")
    assert "m: tl.constexpr" in problem.message
