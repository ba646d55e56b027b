"""Branches: what is decided at compile time, what is merged, and early returns."""

from __future__ import annotations

import collections

import pytest
from tests.frontend.kernels import F32, I32, I64, PTR, ConstantSpec, ir, jit, ops, refused, results

import tritium.language as tl
from tritium.ops.arith import Add
from tritium.ops.control import If
from tritium.ops.memory import Store

Pair = collections.namedtuple("Pair", "x y")
Limits = collections.namedtuple("Limits", "low high")


def test_named_tuples_of_different_types() -> None:
    @jit
    def kernel(out, n):
        pair = Pair(x=1, y=n) if n > 3 else Limits(low=n, high=2)
        tl.store(out, pair.x)

    problem = refused(kernel, "E0402", PTR, I32, at="Limits(low=n, high=2)")
    assert "(x=constexpr[1], y=int32)" in problem.message
    assert "(low=int32, high=constexpr[2])" in problem.message

    @jit
    def variable(out, n):
        pair = Pair(1, n)
        if n > 3:
            pair = Limits(n, 2)
        tl.store(out, pair.x)

    refused(variable, "E0402", PTR, I32, at="pair")

    @jit
    def loop(out, n):
        pair = Pair(1, n)
        for _ in range(n):
            pair = (n, 2)
        tl.store(out, pair.x)

    refused(loop, "E0401", PTR, I32, at="pair")

    @jit
    def alike(out, n):
        pair = Pair(1, n)
        if n > 3:
            pair = Pair(n, 2)
        for _ in range(n):
            pair = Pair(pair.y, pair.x)
        tl.store(out, pair.x * 10 + pair.y)

    assert results(alike, 5) == 25
    assert results(alike, 2) == 12


# ---- compile-time conditions -------------------------------------------------------------------


@jit
def static_if(out, FLAG: tl.constexpr):
    if FLAG:
        tl.store(out, 1)
    else:
        tl.store(out, undefined_name)


def test_only_the_taken_branch_is_visited() -> None:
    function = ir(static_if, PTR, True)
    assert not ops(function, If)
    assert results(static_if, True) == 1
    refused(static_if, "E0101", PTR, False, at="undefined_name")


@pytest.mark.parametrize("value, taken", [(None, 2), (0, 2), (7, 1), (True, 1)])
def test_known_conditions(value: object, taken: int) -> None:
    @jit
    def kernel(out, FLAG: tl.constexpr):
        x = 2
        if FLAG:
            x = 1
        tl.store(out, x)

    assert results(kernel, value) == taken


@pytest.mark.parametrize("value", [1.5, "relu", (1, 2)])
def test_other_known_conditions_are_refused(value: object) -> None:
    @jit
    def kernel(out, FLAG: tl.constexpr):
        if FLAG:
            tl.store(out, 1)

    assert "condition is" in refused(kernel, "E0206", PTR, value, at="FLAG").message


@jit
def after_return(out):
    tl.store(out, 1)
    return
    raise ValueError("never visited")


@jit
def static_return(out, FLAG: tl.constexpr):
    if FLAG:
        tl.store(out, 1)
        return
    while True:
        import os


def test_code_after_a_return_is_not_visited() -> None:
    assert results(after_return) == 1
    assert results(static_return, True) == 1
    refused(static_return, "E0110", PTR, False, at="import os")


@jit
def elif_chain(out, MODE: tl.constexpr, n):
    if MODE == "a":
        x = n + 1
    elif MODE == "b":
        x = n + 2
    elif n > 3:
        x = n + 3
    else:
        x = n
    tl.store(out, x)


@pytest.mark.parametrize("mode, n, expected", [("a", 5, 6), ("b", 5, 7), ("c", 5, 8), ("c", 2, 2)])
def test_elif(mode: str, n: int, expected: int) -> None:
    assert results(elif_chain, mode, n) == expected


# ---- run-time conditions -----------------------------------------------------------------------


@jit
def merge(out, n):
    x = 1
    y = n
    if n > 3:
        x = 5
    else:
        y = y * 2
    tl.store(out, x * 100 + y)


def test_changed_variables_are_merged() -> None:
    function = ir(merge, PTR, I32)
    (branch,) = ops(function, If)
    assert [result.name for result in branch.results] == ["x", "y"]
    assert [str(result.type) for result in branch.results] == ["int32", "int32"]
    assert results(merge, 4) == 504
    assert results(merge, 3) == 106


def test_unchanged_values_are_not_merged() -> None:
    @jit
    def kernel(out, n):
        x = n + 1
        nothing = None
        pair = (n, None, 3)
        if n > 3:
            tl.store(out, x)
            x = x
            nothing = None
        tl.store(out + 1, x + pair[2])
        if nothing is None and pair[1] is None:
            tl.store(out + 2, pair[0])

    (branch,) = ops(ir(kernel, PTR, I32), If)
    assert branch.results == []
    assert results(kernel, 9, size=3) == [10, 13, 9]


def test_a_branch_that_does_nothing_leaves_nothing() -> None:
    @jit
    def kernel(out, n):
        if n > 3:
            pass
        tl.store(out, n)

    assert not ops(ir(kernel, PTR, I32), If)


def test_assigned_in_both_branches() -> None:
    @jit
    def kernel(out, n):
        if n > 3:
            x = n
        else:
            x = 7
        tl.store(out, x)

    assert [results(kernel, 4), results(kernel, 3)] == [4, 7]


def test_nested_and_tuples() -> None:
    @jit
    def kernel(out, n):
        pair = (n, (n, None))
        if n > 3:
            if n > 5:
                pair = (n + 1, (n, None))
            else:
                pair = (n, (n * 2, None))
        tl.store(out, pair[0])
        tl.store(out + 1, pair[1][0])
        if pair[1][1] is None:
            tl.store(out + 2, 1)

    assert results(kernel, 2, size=3) == [2, 2, 1]
    assert results(kernel, 4, size=3) == [4, 8, 1]
    assert results(kernel, 6, size=3) == [7, 6, 1]


@pytest.mark.parametrize("value, expected", [(0, 2), (5, 1), (-1, 1)])
def test_integer_conditions_test_against_zero(value: int, expected: int) -> None:
    @jit
    def kernel(out, n):
        x = 2
        if n:
            x = 1
        tl.store(out, x)

    assert results(kernel, value) == expected


def test_pointer_conditions_test_for_null() -> None:
    @jit
    def kernel(out, p):
        x = 2
        if p:
            x = 1
        tl.store(out, x)

    assert results(kernel, results_array()) == 1


def results_array() -> object:
    import numpy as np

    return np.zeros(1, np.int32)


def test_a_tile_of_one_element_is_a_condition() -> None:
    @jit
    def kernel(out, n):
        x = 2
        if tl.full((1, 1), n, tl.int32) > 3:
            x = 1
        tl.store(out, x)

    assert [results(kernel, 4), results(kernel, 3)] == [1, 2]


def test_block_conditions_are_refused() -> None:
    @jit
    def kernel(out, n):
        if tl.arange(0, 4) > n:
            tl.store(out, 1)

    problem = refused(kernel, "E0403", PTR, I32, at="tl.arange(0, 4) > n")
    assert "tile<4xi1>" in problem.message


def test_types_must_agree() -> None:
    @jit
    def kernel(out, n, f):
        x = n
        if n > 3:
            x = f
        tl.store(out, x)

    problem = refused(kernel, "E0402", PTR, I32, F32, at="x")
    assert problem.message == "x is fp32 in one branch and int32 in the other"
    assert problem.loc is not None
    assert problem.loc.line == kernel.fn.__code__.co_firstlineno + 4

    @jit
    def none(out, n):
        x = None
        if n > 3:
            x = n
        tl.store(out, x)

    assert "None" in refused(none, "E0402", PTR, I32, at="x").message


def test_an_argument_that_is_known_may_be_reassigned() -> None:
    @jit
    def kernel(out, n, m):
        if m > 3:
            n = n + m
        tl.store(out, n)

    function = ir(kernel, PTR, ConstantSpec(1), I32)
    assert len(ops(function, If)) == 1
    assert results(kernel, ConstantSpec(1), 5) == 6
    assert results(kernel, ConstantSpec(1), 2) == 1
    refused(kernel, "E0402", PTR, ConstantSpec(1), I64, at="n")


def test_a_variable_of_one_branch() -> None:
    @jit
    def kernel(out, n):
        if n > 3:
            x = n
        tl.store(out, 1)

    assert results(kernel, 4) == 1

    @jit
    def used(out, n):
        if n > 3:
            x = n
        tl.store(out, x)

    problem = refused(used, "E0103", PTR, I32, at="x")
    assert "before the if" in problem.help


def test_a_variable_of_one_branch_may_be_assigned_later() -> None:
    @jit
    def kernel(out, n):
        if n > 3:
            x = n
        x = 5
        tl.store(out, x)

    assert results(kernel, 4) == 5


# ---- returns -----------------------------------------------------------------------------------


def test_early_return_of_a_kernel() -> None:
    @jit
    def kernel(out, n):
        if n > 3:
            return
        x = n + 1
        tl.store(out, x)

    function = ir(kernel, PTR, I32)
    (branch,) = ops(function, If)
    assert branch.results == []
    assert ops(function, Store)[0].parent is branch.otherwise.block
    assert [results(kernel, 5), results(kernel, 2)] == [0, 3]


def test_return_in_the_else_branch() -> None:
    @jit
    def kernel(out, n):
        if n > 3:
            x = n
        else:
            return
        tl.store(out, x)

    assert [results(kernel, 5), results(kernel, 2)] == [5, 0]


def test_both_branches_return() -> None:
    @jit
    def kernel(out, n):
        if n > 3:
            tl.store(out, 1)
            return
        else:
            tl.store(out, 2)
            return
        tl.store(out, undefined_name)

    assert [results(kernel, 5), results(kernel, 2)] == [1, 2]


def test_what_follows_stands_once() -> None:
    @jit
    def kernel(out, a, b):
        if a > 0:
            if b > 0:
                tl.store(out, 1)
                return
            tl.store(out, 2)
        if a > 5:
            if b < -5:
                return
        tl.store(out + 1, a + b)

    function = ir(kernel, PTR, I32, I32)
    assert len(ops(function, Add)) == 1
    for a in (-1, 1, 6):
        for b in (-7, -1, 1):
            first = 1 if a > 0 and b > 0 else 2 if a > 0 else 0
            second = 0 if (a > 0 and b > 0) or (a > 5 and b < -5) else a + b
            assert results(kernel, a, b, size=2) == [first, second]


def test_variables_survive_a_return_on_some_paths() -> None:
    @jit
    def kernel(out, a, b):
        x = a
        if a > 0:
            y = tl.arange(0, 4) + b
            if b > 0:
                return
            x = a * 10
        else:
            y = tl.arange(0, 4)
        tl.store(out + y, x)

    assert results(kernel, 1, 1, size=4) == [0, 0, 0, 0]
    assert results(kernel, 1, 0, size=4) == [10, 10, 10, 10]
    assert results(kernel, -1, 1, size=4) == [-1, -1, -1, -1]


def test_pointers_survive_a_return_on_some_paths() -> None:
    @jit
    def kernel(out, a, b):
        if a > 0:
            p = out + a
            if b > 0:
                return
        else:
            p = out
        tl.store(p, 9)

    assert results(kernel, 1, 1, size=2) == [0, 0]
    assert results(kernel, 1, 0, size=2) == [0, 9]
    assert results(kernel, 0, 1, size=2) == [9, 0]


def test_returns_under_static_ifs_and_loops() -> None:
    @jit
    def kernel(out, n, CHECK: tl.constexpr):
        if CHECK:
            if n < 0:
                return
        for i in tl.static_range(3):
            if n == i:
                return
            tl.store(out + i, n)

    branches = ops(ir(kernel, PTR, I32, True), If)
    assert all(branch.results == [] for branch in branches)
    assert results(kernel, -1, True, size=3) == [0, 0, 0]
    assert results(kernel, -1, False, size=3) == [-1, -1, -1]
    assert results(kernel, 2, True, size=3) == [2, 2, 0]


@jit
def pick(n, f):
    if n > 3:
        return n * 2
    if n > 1:
        if f > 0.0:
            return n + 50
        n = n + 1
    return n


def test_returned_values_are_merged() -> None:
    @jit
    def kernel(out, n, f):
        tl.store(out, pick(n, f) + 1)

    def expected(n: int, f: float) -> int:
        if n > 3:
            return n * 2
        if n > 1 and f > 0:
            return n + 50
        return n + 1 if n > 1 else n

    for n in (0, 1, 2, 3, 4, 5):
        for f in (-1.0, 1.0):
            assert results(kernel, n, f) == expected(n, f) + 1


def test_constants_and_tiles_are_returned_together() -> None:
    @jit
    def callee(n, x):
        if n > 3:
            return x
        return 0

    @jit
    def kernel(out, n, f):
        tl.store(out, callee(n, f).to(tl.int32))
        tl.store(out + 1, callee(n, n.to(tl.int64)).to(tl.int32))
        tl.store(out + 2 + tl.arange(0, 2), callee(n, tl.arange(5, 7)))

    assert results(kernel, 4, 2.5, size=4) == [2, 4, 5, 6]
    assert results(kernel, 3, 2.5, size=4) == [0, 0, 0, 0]


def test_tuples_are_returned() -> None:
    @jit
    def callee(n):
        if n > 3:
            return n, 1.5, None
        return 7, 2.5, None

    @jit
    def kernel(out, n):
        a, b, c = callee(n)
        tl.store(out, a + b.to(tl.int32) + (1000 if c is None else 0))

    assert [results(kernel, 4), results(kernel, 3)] == [1005, 1009]


def test_a_path_without_return_gives_zeros() -> None:
    @jit
    def callee(n):
        if n > 3:
            return n

    @jit
    def kernel(out, n):
        tl.store(out, callee(n))

    (branch,) = ops(ir(kernel, PTR, I32), If)
    assert str(branch.results[0].type) == "int32"


def test_returned_types_must_agree() -> None:
    @jit
    def callee(n, f):
        if n > 3:
            return n
        return f

    @jit
    def kernel(out, n, f):
        tl.store(out, callee(n, f))

    problem = refused(kernel, "E0406", PTR, I32, F32, at="return f")
    assert problem.message == "the returned types differ: int32 and fp32"
    assert problem.loc is not None
    assert problem.loc.call_site is not None
    assert problem.loc.call_site.function == "kernel"


def test_a_kernel_may_return_a_value() -> None:
    @jit
    def kernel(out, n):
        tl.store(out, n)
        if n > 3:
            return n
        return 1.5

    assert results(kernel, 4) == 4


# ---- conditional expressions -------------------------------------------------------------------


def test_conditional_expressions() -> None:
    @jit
    def kernel(out, n, FLAG: tl.constexpr):
        a = 1 if n > 3 else 2
        b = n if FLAG else undefined_name
        c = n + 1 if n > 3 else n
        d = None if n > 3 else None
        tl.store(out, a * 100 + b * 10 + c + (1000 if d is None else 0))

    assert results(kernel, 4, True) == 1000 + 100 + 40 + 5
    assert results(kernel, 3, True) == 1000 + 200 + 30 + 3


def test_a_side_is_computed_only_if_needed() -> None:
    @jit
    def kernel(out, p, n):
        tl.store(out, tl.load(p + n) if n >= 0 else -1)

    (branch,) = ops(ir(kernel, PTR, PTR, I32), If)
    assert len(branch.then.ops) == 3
    assert results(kernel, results_array(), -(2**31)) == -1


def test_conditional_expressions_refused() -> None:
    @jit
    def types(out, n):
        tl.store(out, 1 if n > 3 else 2.0)

    problem = refused(types, "E0402", PTR, I32, at="2.0")
    assert "constexpr[1]" in problem.message
    assert "constexpr[2.0]" in problem.message

    @jit
    def block(out, n):
        x = 1 if tl.arange(0, 4) > n else 2
        tl.store(out, x)

    problem = refused(block, "E0403", PTR, I32, at="tl.arange(0, 4) > n")
    assert "tl.where" in problem.help
