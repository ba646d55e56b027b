"""Calls: inlining, arguments and their places, recursion, functions that run at compile time."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.frontend.kernels import F32, I32, PTR, define, ir, jit, ops, refused, results, underlined

import tritium.language as tl
from tritium.diagnostics import InternalError, TritiumError, frames
from tritium.ops.arith import Add, Mul
from tritium.ops.callable import constexpr_function
from tritium.ops.constexpr import constexpr
from tritium.ops.control import Yield
from tritium.ops.create import Constant
from tritium.ops.emit import surface
from tritium.ops.memory import Load
from tritium.ops.reduce import Reduce

Pair = namedtuple("Pair", ["first", "second"])


class Point(NamedTuple):
    x: int
    y: int = 5


# ---- inlining ----------------------------------------------------------------------------------


@jit
def scaled(x, factor=3, *, offset=0):
    return x * factor + offset


def test_defaults_and_keywords() -> None:
    @jit
    def kernel(out, n):
        tl.store(out, scaled(n))
        tl.store(out + 1, scaled(n, 2))
        tl.store(out + 2, scaled(n, offset=1))
        tl.store(out + 3, scaled(offset=n, factor=n, x=n))

    assert results(kernel, 5, size=4) == [15, 10, 16, 30]


@jit
def filled(n: tl.constexpr, value):
    return tl.zeros((n,), tl.int32) + value


@jit
def literal(n):
    return tl.arange(0, n)


def test_constants_stay_constants_in_calls() -> None:
    @jit
    def kernel(out, N: tl.constexpr):
        tl.store(out + literal(4), filled(4, N) + literal(N))

    assert results(kernel, 4, size=4) == [4, 5, 6, 7]

    @jit
    def local(out):
        n = 4
        tl.store(out + literal(n), 7)

    assert results(local, size=4) == [7] * 4

    @jit
    def run_time(out, n):
        tl.store(out, literal(n))

    problem = refused(run_time, "E0205", PTR, I32, at="n")
    assert problem.loc is not None
    assert problem.loc.function == "literal"
    assert problem.loc.call_site is not None
    assert underlined(problem.loc.call_site) == "literal(n)"

    @jit
    def declared(out, n):
        tl.store(out, filled(n, 1))

    refused(declared, "E0205", PTR, I32, at="(n,)")


def test_results_may_be_constants() -> None:
    @jit
    def size(n):
        return n * 2

    @jit
    def kernel(out):
        tl.store(out + tl.arange(0, size(2)), 1)

    assert results(kernel, size=4) == [1, 1, 1, 1]


def test_variable_arguments_and_tuples() -> None:
    @jit
    def total(first, *rest):
        for i in tl.static_range(len(rest)):
            first += rest[i]
        return first, len(rest)

    @jit
    def swap(pair):
        return pair[1], pair[0]

    @jit
    def kernel(out, n, t):
        a, b = total(n, *t, n)
        tl.store(out, a * 10 + b)
        c, d = swap((n, 7))
        tl.store(out + 1, c * 10 + d)
        tl.store(out + 2, total(*t)[0])

    assert results(kernel, 3, (4, 5), size=3) == [153, 73, 9]


def test_functions_without_result() -> None:
    @jit
    def put(p, x):
        tl.store(p, x)

    @jit
    def kernel(out, n):
        nothing = put(out, n)
        if nothing is None:
            put(out + 1, n + 1)

    assert results(kernel, 3, size=2) == [3, 4]


def test_functions_as_values() -> None:
    @jit
    def double(x):
        return x * 2

    @jit
    def apply(f: tl.constexpr, x):
        return f(x)

    @jit
    def kernel(out, n, F: tl.constexpr, FS: tl.constexpr):
        tl.store(out, apply(F, n) + FS[1](n) + apply(double, 1))

    assert results(kernel, 3, double, (None, double)) == 14


def test_variables_of_a_call_are_its_own() -> None:
    @jit
    def callee(x):
        y = x + 1
        x = y * 2
        return x

    @jit
    def kernel(out, x):
        y = 100
        tl.store(out, callee(x) + x + y)

    assert results(kernel, 3) == 8 + 3 + 100


def test_call_sites_form_a_chain() -> None:
    @jit
    def inner(x):
        return x + 1

    @jit
    def middle(x):
        return inner(x) * 2

    @jit
    def kernel(out, n):
        tl.store(out, middle(n))

    function = ir(kernel, PTR, I32)
    (add,) = ops(function, Add)
    chain = add.loc.chain()
    assert [loc.function for loc in chain] == ["inner", "middle", "kernel"]
    assert [underlined(loc) for loc in chain] == ["x + 1", "inner(x)", "middle(n)"]
    (mul,) = ops(function, Mul)
    assert [underlined(loc) for loc in mul.loc.chain()] == ["inner(x) * 2", "middle(n)"]


# ---- arguments that don't fit ------------------------------------------------------------------


def test_arguments_of_operations() -> None:
    @jit
    def unknown(out, n):
        x = tl.load(out, mask=n > 3, othr=0)
        tl.store(out, x)

    problem = refused(unknown, "E0112", PTR, I32, at="othr=0")
    assert "load()" in problem.message
    assert "other" in problem.help

    @jit
    def missing(out):
        tl.store(out)

    problem = refused(missing, "E0113", PTR, at="tl.store(out)")
    assert "'value'" in problem.message
    assert problem.help.startswith("store(pointer, value, mask=None")

    @jit
    def many(out):
        tl.program_id(0, 1, 2)

    problem = refused(many, "E0114", PTR, at="1")
    assert problem.message == "program_id() takes 1 positional arguments, got 3"

    @jit
    def twice(out):
        tl.store(out, 1, value=2)

    refused(twice, "E0115", PTR, at="value=2")

    @jit
    def method(out, n):
        tl.store(out, n.to(tl.int64, bitcast=False, foo=1))

    refused(method, "E0112", PTR, I32, at="foo=1")

    @jit
    def starred(out, n, t):
        tl.store(out, tl.where(n > 1, *t, n))

    refused(starred, "E0114", PTR, I32, (1, 2), at="n")

    @jit
    def keywords(out):
        tl.store(out, **{"value": 1})

    refused(keywords, "E0110", PTR, at='{"value": 1}')


def test_arguments_of_kernel_functions() -> None:
    @jit
    def unknown(out, n):
        tl.store(out, scaled(n, factr=2))

    problem = refused(unknown, "E0112", PTR, I32, at="factr=2")
    assert problem.help == "parameters: x, factor, offset"

    @jit
    def missing(out, n):
        tl.store(out, scaled(factor=n))

    problem = refused(missing, "E0113", PTR, I32, at="scaled(factor=n)")
    assert problem.help == "scaled(x, factor=3, *, offset=0)"

    @jit
    def many(out, n):
        tl.store(out, scaled(n, 1, 2))

    refused(many, "E0114", PTR, I32, at="2")


def test_the_argument_at_fault_is_underlined() -> None:
    @jit
    def kernel(out, n, f):
        x = tl.load(out + tl.arange(0, 4), tl.arange(0, 4) < n, other=f.to(tl.float32)[None, None])
        tl.store(out + tl.arange(0, 4), x)

    refused(kernel, "E0603", PTR, I32, F32, at="other=f.to(tl.float32)[None, None]")

    @jit
    def mask(out, n):
        tl.store(out, n, mask=n + 1)

    refused(mask, "E0602", PTR, I32, at="mask=n + 1")

    @jit
    def pointer(out, n):
        tl.store(n + 1, 3)

    refused(pointer, "E0601", PTR, I32, at="n + 1")

    @jit
    def axis(out):
        tl.store(out, tl.arange(0, 4).sum(axis=3))

    refused(axis, "E0207", PTR, at="axis=3")


# ---- recursion ---------------------------------------------------------------------------------


@jit
def halved(x, N: tl.constexpr):
    if N > 1:
        return halved(x + N, N // 2)
    return x


@jit
def endless(x):
    if x > 3:
        return endless(x - 1)
    return x


@jit
def growing(x, N: tl.constexpr):
    return growing(x, N + 1)


@jit
def even(n):
    if n == 0:
        return 1
    return odd(n - 1)


@jit
def odd(n):
    if n == 0:
        return 0
    return even(n - 1)


@jit
def deep(x, N: tl.constexpr):
    if N == 0:
        return x
    else:
        if x < 100000:
            x = (x + 1) * 1
        return 0 + (deep(x, N - 1) if True else 0)


def test_recursion_over_constants() -> None:
    @jit
    def kernel(out, n):
        tl.store(out, halved(n, 16))

    assert len(ops(ir(kernel, PTR, I32), Add)) == 4
    assert results(kernel, 1) == 1 + 16 + 8 + 4 + 2


def test_deep_recursion_over_constants() -> None:
    @jit
    def kernel(out, n):
        tl.store(out, deep(n, 95))

    assert len(ops(ir(kernel, PTR, I32), Mul)) == 95


def test_recursion_at_run_time_is_refused() -> None:
    @jit
    def kernel(out, n):
        tl.store(out, endless(n))

    problem = refused(kernel, "E0116", PTR, I32, at="endless(x - 1)")
    assert problem.message.startswith("endless calls itself")
    assert problem.loc is not None
    assert [loc.function for loc in problem.loc.chain()] == ["endless", "kernel"]

    @jit
    def mutual(out, n):
        tl.store(out, even(n))

    refused(mutual, "E0116", PTR, I32, at="even(n - 1)")

    @jit
    def without_end(out, n):
        tl.store(out, growing(n, 0))

    refused(without_end, "E0116", PTR, I32, at="growing(x, N + 1)")


# ---- combine functions -------------------------------------------------------------------------


@jit
def welford(mean_l, m2_l, n_l, mean_r, m2_r, n_r):
    delta = mean_r - mean_l
    n = n_l + n_r
    ratio = n_r / n
    return mean_l + delta * ratio, m2_l + m2_r + delta * delta * n_l * ratio, n


def test_combine_functions() -> None:
    @jit
    def kernel(out, p, N: tl.constexpr):
        x = tl.load(p + tl.arange(0, N))
        ones = tl.zeros((N,), tl.float32) + 1.0
        mean, m2, n = tl.reduce((x, tl.zeros((N,), tl.float32), ones), 0, welford)
        tl.store(out, (mean * 100).to(tl.int32))
        tl.store(out + 1, (m2 / n * 100).to(tl.int32))

    data = np.array([1, 2, 3, 6, 4, 4, 4, 8], np.float32)
    (reduce,) = ops(ir(kernel, PTR, data, 8), Reduce)
    assert len(reduce.combine.args) == 6
    assert isinstance(reduce.combine.block.terminator, Yield)
    assert all(op.loc is not None for op in reduce.combine.walk())
    got = results(kernel, data, 8, size=2)
    assert got == [int(data.mean() * 100), int(data.var() * 100)]


def test_combine_functions_at_fault() -> None:
    @jit
    def branches(a, b):
        if a > b:
            return a
        return b

    @jit
    def kernel(out):
        tl.store(out, tl.reduce(tl.arange(0, 4), 0, branches))

    refused(kernel, "E0206", PTR, at="branches")

    @jit
    def types(a, b):
        return (a + b).to(tl.float32)

    @jit
    def other(out):
        tl.store(out, tl.reduce(tl.arange(0, 4), axis=0, combine_fn=types))

    refused(other, "E0206", PTR, at="combine_fn=types")


# ---- compile-time functions --------------------------------------------------------------------


@constexpr_function
def rounded_up(n, to=8):
    assert isinstance(n, int)
    return -(-n // to) * to


@constexpr
def log2_of(n):
    return int(math.log2(n.value))


@constexpr_function
def fails():
    raise OSError("no such thing")


def test_constexpr_functions() -> None:
    @jit
    def kernel(out, N: tl.constexpr):
        tl.store(out + tl.arange(0, rounded_up(N, to=4)), rounded_up(N))

    assert results(kernel, 3, size=4) == [8] * 4

    @jit
    def idiom(out, N: tl.constexpr):
        tl.store(out + tl.arange(0, log2_of(N)), 7)

    function = ir(idiom, PTR, 16)
    assert "end = 4" in str(function)

    @jit
    def broken(out):
        tl.store(out, fails())

    problem = refused(broken, "E0117", PTR, at="fails()")
    assert problem.message == "OSError: no such thing"
    assert isinstance(problem.__cause__, OSError)


def test_assertions_that_fail_in_tritium_itself() -> None:
    made: dict[str, Any] = {}
    text = "def own(n):\n    assert n > 3, 'too few'\n    return n"
    exec(compile(text, frames.PACKAGE + "own.py", "exec"), made)
    own = constexpr_function(made["own"])

    @constexpr_function
    def of_the_user(n):
        assert n > 3, "too few"
        return n

    @jit
    def fault(out, N: tl.constexpr):
        tl.store(out, own(N))

    @jit
    def mistake(out, N: tl.constexpr):
        tl.store(out, of_the_user(N))

    with pytest.raises(InternalError, match="too few"):
        ir(fault, PTR, 3)
    assert refused(mistake, "E0117", PTR, 3, at="of_the_user(N)").message.startswith("Assertion")
    ir(fault, PTR, 4)


def test_named_tuples() -> None:
    @jit
    def kernel(out, n, p):
        a = Pair(n, 2)
        b = Pair(second=n, first=p.first)
        c = Point(3)
        tl.store(out, a.first * 1000 + a.second * 100 + b.first * 10 + b[1] + c.x + c.y)

    assert results(kernel, 4, Pair(7, 8)) == 4000 + 200 + 70 + 4 + 8

    @jit
    def fields(out, n):
        tl.store(out, Pair(n).first)

    refused(fields, "E0113", PTR, I32, at="Pair(n)")

    @jit
    def kept(out, n, p):
        if n > 3:
            p = Pair(p.second, p.first)
        for _ in range(2):
            p = Pair(p.first + 1, p.second)
        tl.store(out, p.first * 10 + p.second)

    assert results(kept, 4, Pair(7, 8)) == 107
    assert results(kept, 3, Pair(7, 8)) == 98


def test_builtins() -> None:
    @jit
    def kernel(out, n, m, t, A: tl.constexpr):
        tl.static_assert(len(t) == 2 and len("abc") == 3)
        tl.static_assert(float("inf") > 1e300 and int(3.7) == 3 and float(A) == 4.0)
        tl.static_assert(min(3, 1, 2) == 1 and max(A, 7) == 7)
        tl.static_assert(isinstance(n, tl.tensor) and not isinstance(A, tl.tensor))
        tl.static_assert(isinstance(A, int) and isinstance(A, tl.constexpr))
        tl.static_assert(isinstance(t, tl.tuple))
        tl.static_assert(hasattr(n, "dtype") and not hasattr(n, "foo"))
        tl.static_assert(getattr(tl, "float32") == tl.float32)
        tl.static_assert(getattr(n, "foo", 5) == 5)
        tl.store(out, min(n, m) * 1000 + max(n, m, 5) * 10 + max(n, A))

    assert results(kernel, 2, 3, (1, 2), 4) == 2000 + 50 + 4


def test_builtins_refused() -> None:
    @jit
    def stopped(out):
        breakpoint()

    assert "kernel.interpret[grid]" in refused(stopped, "E0101", PTR, at="breakpoint").help

    @jit
    def number(out, n):
        tl.store(out, float(n))

    assert "x.to(tl.float32)" in refused(number, "E0204", PTR, I32, at="n").help

    @jit
    def length(out, n):
        tl.store(out, len(n))

    refused(length, "E0204", PTR, I32, at="n")

    @jit
    def arguments(out):
        tl.store(out, len())

    refused(arguments, "E0113", PTR, at="len()")


def test_plain_functions_of_the_library() -> None:
    @jit
    def kernel(out, n):
        t: tl.constexpr = tl.core.get_int_dtype(n.dtype.primitive_bitwidth * 2, signed=False)
        tl.static_assert(t == tl.uint64)
        tl.store(out, n.to(t).to(tl.int32))

    assert results(kernel, 5) == 5

    @jit
    def run_time(out, n):
        tl.store(out, tl.zeros((), tl.core.get_int_dtype(n, True)))

    refused(run_time, "E0204", PTR, I32, at="n")


def test_math_functions_take_constants_only() -> None:
    @jit
    def kernel(out, f):
        tl.store(out, math.sqrt(f))

    problem = refused(kernel, "E0204", PTR, F32, at="f")
    assert problem.message.startswith("math.sqrt needs compile-time values")
    assert problem.help == "on tiles, use tl.sqrt"


def plain_function(x):
    return x + 1


def test_what_can_not_be_called() -> None:
    @jit
    def plain(out, n):
        tl.store(out, plain_function(n))

    problem = refused(plain, "E0111", PTR, I32, at="plain_function")
    assert "tritium.jit" in problem.help

    @jit
    def dtype(out, n):
        tl.store(out, tl.int64(n))

    assert "x.to(tl.int64)" in refused(dtype, "E0111", PTR, I32, at="tl.int64").help

    @jit
    def tile(out, n):
        tl.store(out, n(1))

    refused(tile, "E0111", PTR, I32, at="n")

    @jit
    def nothing(out, n: tl.constexpr):
        tl.store(out, n())

    refused(nothing, "E0111", PTR, None, at="n")

    @jit
    def cls(out, n):
        tl.store(out, TestClass(n))

    refused(cls, "E0111", PTR, I32, at="TestClass")

    @jit
    def module(out, n):
        tl.store(out, np.exp(n))

    assert refused(module, "E0111", PTR, I32, at="np.exp").help == "on tiles, use tl.exp"

    @jit
    def unknown(out, n):
        tl.store(out, np.dtype(n))

    assert not refused(unknown, "E0111", PTR, I32, at="np.dtype").help

    kernel = define("def f(**kw):\n    pass\n@jit\ndef kernel(out):\n    jit_f()\n", jit_f=None)
    refused(kernel, "E0111", PTR, at="jit_f")


class TestClass:
    __test__ = False

    def __init__(self, x: object) -> None: ...


def test_keyword_parameters_are_refused() -> None:
    kernel = define("@jit\ndef f(**kw):\n    pass\n@jit\ndef kernel(out):\n    f(a=1)\n")
    assert "**kw" in refused(kernel, "E0110", PTR, at="f(a=1)").message


def test_types_and_containers_are_made() -> None:
    @jit
    def kernel(out, n):
        p = out.to(tl.pointer_type(tl.uint32))
        tl.store(p, n.to(tl.uint32))
        t = tl.tuple((n, 1))
        c: tl.constexpr = tl.constexpr(4)
        tl.store(out + 1 + tl.arange(0, c), t[0] + list(t)[1])

    assert results(kernel, 3, size=5) == [3, 4, 4, 4, 4]

    @jit
    def known(out, n):
        c: tl.constexpr = tl.constexpr(n)
        tl.store(out, c)

    refused(known, "E0205", PTR, I32, at="n")


# ---- places where things can go wrong ----------------------------------------------------------


def test_errors_in_the_compiler_stay_what_they_are() -> None:
    @surface(name="")
    def faulty():
        raise InternalError("a fault of ours")

    kernel = define("def kernel(out):\n    faulty()\n", faulty=faulty)
    with pytest.raises(InternalError, match="a fault of ours"):
        ir(kernel, PTR)


def test_exceptions_can_be_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    @jit
    def kernel(out):
        tl.store(out, fails())

    monkeypatch.setenv("TRITON_FRONT_END_DEBUGGING", "1")
    with pytest.raises(OSError):
        ir(kernel, PTR)


def test_operations_that_come_later() -> None:
    @jit
    def kernel(out, n):
        tl.dot_scaled(out, n)

    refused(kernel, "E0121", PTR, I32, at="tl.dot_scaled(out, n)")


def test_method_and_function_forms_are_one() -> None:
    @jit
    def methods(out, p, N: tl.constexpr):
        x = tl.load(p + tl.arange(0, N))
        tl.store(out, x.sum(0).cdiv(3) + x.reshape(2, N // 2).max(axis=1).sum(0))

    @jit
    def functions(out, p, N: tl.constexpr):
        x = tl.load(p + tl.arange(0, N))
        tl.store(out, tl.cdiv(tl.sum(x, 0), 3) + tl.sum(tl.max(tl.reshape(x, (2, N // 2)), 1), 0))

    data = np.arange(8, dtype=np.int32)
    assert results(methods, data, 8) == results(functions, data, 8) == 10 + 3 + 7
    assert len(ops(ir(methods, PTR, data, 8), Load)) == 1


def test_errors_can_be_told_apart() -> None:
    @jit
    def kernel(out, n):
        tl.store(out, scaled(n, 1, 2, 3))

    with pytest.raises(TypeError) as caught:
        ir(kernel, PTR, I32)
    assert isinstance(caught.value, TritiumError)
    assert not ops(ir(jit(test_kernel), PTR), Constant)


def test_kernel(out):
    pass


test_kernel.__test__ = False
