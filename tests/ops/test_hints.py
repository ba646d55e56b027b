"""Hints, compile-time assertions and prints, and the iterators of loops."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from tests.backends.three_way import run_cpu, run_eager, run_ir
from tests.frontend.kernels import PTR, compile, ir, jit, ops, refused, results
from tests.ops.harness import eager
from tests.ops.test_shape import tile

import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.ops.callable import DeviceFunction
from tritium.ops.control import For
from tritium.ops.spec import given

BOUNDS = st.integers(-50, 50)
STEPS = st.integers(-7, 7).filter(bool)


def scalar(value: int, dtype: Any = np.int32) -> Any:
    return tile(np.asarray(value, dtype))


def walked(*bounds: Any) -> list[int]:
    return [int(value) for value in tl.range(*bounds)]


@for_all(BOUNDS, BOUNDS, STEPS)
def test_a_range_of_constants_is_python_s(start: int, end: int, step: int) -> None:
    with eager():
        assert walked(start, end, step) == list(range(start, end, step))
        assert walked(start, end) == list(range(start, end))
        assert walked(end) == list(range(end))
        assert [i.value for i in tl.static_range(start, end, step)] == list(range(start, end, step))
        assert len(tl.static_range(start, end, step)) == len(range(start, end, step))


@for_all(BOUNDS, BOUNDS, STEPS)
def test_run_time_bounds(start: int, end: int, step: int) -> None:
    with eager():
        assert walked(scalar(start), scalar(end), step) == list(range(start, end, step))
        if step > 0:
            got = walked(scalar(start), scalar(end), scalar(step))
            assert got == list(range(start, end, step))


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        ((3,), tl.int32),
        ((scalar(3, np.int64),), tl.int64),
        ((0, scalar(3, np.int8)), tl.int32),
        ((scalar(0, np.int8), scalar(3, np.int8), scalar(1, np.int8)), tl.int8),
        ((scalar(0, np.uint32), 3), tl.uint32),
        ((2**31, 2**31 + 1), tl.uint32),
        ((-1, 2**40), tl.int64),
        ((scalar(1, np.bool_),), tl.int32),
    ],
    ids=str,
)
def test_the_type_of_the_values(bounds: tuple[Any, ...], dtype: tl.dtype) -> None:
    with eager():
        assert next(iter(tl.range(*bounds))).type is dtype


def test_the_values_reach_the_limits_of_their_type() -> None:
    with eager():
        assert walked(scalar(120, np.int8), scalar(127, np.int8), scalar(5, np.int8)) == [120, 125]
        assert walked(2**31 - 3, 2**31 - 1) == [2**31 - 3, 2**31 - 2]
        assert walked(scalar(3, np.uint8), scalar(0, np.uint8), -1) == [3, 2, 1]


@pytest.mark.parametrize(
    ("attempt", "code", "argument"),
    [
        (lambda: walked(1.5), "E0405", "arg2"),
        (lambda: walked(given(tl.float32), 3), "E0405", "arg1"),
        (lambda: walked(given(tl.int32, 4)), "E0405", "arg2"),
        (lambda: walked(0, 3, 0), "E0206", "step"),
        (lambda: walked("3"), "E0210", "arg2"),
        (lambda: list(tl.static_range(given(tl.int32))), "E0205", "arg1"),
        (lambda: list(tl.static_range(0, 3, 0)), "E0206", "step"),
        (lambda: list(tl.static_range(1.0)), "E0204", "arg1"),
    ],
)
def test_bounds_that_are_refused(attempt: Any, code: str, argument: str) -> None:
    with eager(), pytest.raises(TritiumError) as caught:
        attempt()
    assert (caught.value.code, caught.value.argument) == (code, argument)


def test_hints_of_a_loop_are_kept() -> None:
    @jit
    def kernel(out, n):
        total = 0
        for i in tl.range(
            0, n, num_stages=3, loop_unroll_factor=2, flatten=True, disable_licm=True
        ):
            total += i
        tl.store(out, total)

    (loop,) = ops(ir(kernel, PTR, 5), For)
    assert (loop.num_stages, loop.unroll) == (3, 2)
    assert loop.hints == ("flatten", "disable_licm")
    assert results(kernel, 5) == 10


def test_a_descending_loop_compiles() -> None:
    @jit
    def kernel(out, start, end):
        code = 0
        for i in range(start, end, -3):
            code = code * 16 + i
        tl.store(out, code)

    assert results(kernel, 12, 2) == 0xC963
    assert results(kernel, 2, 12) == 0


def test_condition() -> None:
    @jit
    def kernel(out, n):
        i = 0
        while tl.condition(i < n, disable_licm=True):
            i += 2
        tl.store(out, i)

    assert results(kernel, 5) == 6


# ---- hints ---------------------------------------------------------------------------------------


@DeviceFunction
def misled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.assume(n % 16 == 0)
    tl.assume(n < 3)
    offs = tl.multiple_of(tl.arange(0, BLOCK) * 5 % 16, 16)
    offs = tl.max_contiguous(tl.max_constancy(offs, 4), BLOCK)
    x = tl.load(tl.multiple_of(x_ptr + 1, 64) + offs, offs < tl.multiple_of(n, 4))
    tl.store(out_ptr + tl.arange(0, BLOCK), x)


def test_hints_that_do_not_hold_change_nothing() -> None:
    """Of the interpreter's results and the CPU's."""
    given = {"x_ptr": np.arange(17, dtype=np.float32), "out_ptr": np.zeros(16, np.float32)}
    given |= {"n": 13, "BLOCK": 16}
    offsets = np.arange(16) * 5 % 16
    want = np.where(offsets < 13, offsets + 1, 0)
    for got in (
        run_eager(misled, given, (1,)),
        run_ir(misled, given, (1,)),
        run_cpu(misled, given, (1,))[0],
    ):
        assert np.array_equal(got["out_ptr"], want)


def assert_same(left: Any, right: Any) -> None:
    assert left.type is right.type
    assert np.array_equal(left.value.data, right.value.data)


def test_hints_return_their_operand() -> None:
    with eager():
        line, block = given(tl.int32, 4), given(tl.int32, 3, 5)
        for hint in (tl.multiple_of, tl.max_contiguous, tl.max_constancy):
            assert_same(hint(line, 4), line)
            assert_same(hint(line, [4]), line)
            assert_same(hint(block, (1, tl.constexpr(4))), block)
        single = given(tl.int32)
        assert_same(tl.multiple_of(single, 16), single)
        assert tl.max_contiguous(single, []) is single
        assert tl.multiple_of(4, 16) == 4
        assert tl.assume(given(tl.int1)) is None
        assert tl.debug_barrier() is None


@pytest.mark.parametrize(
    ("attempt", "code", "argument"),
    [
        (lambda: tl.multiple_of(given(tl.int32, 3, 5), 4), "E0206", "values"),
        (lambda: tl.max_contiguous(given(tl.int32), 4), "E0206", "values"),
        (lambda: tl.max_constancy(given(tl.int32, 3), (1, 1)), "E0206", "values"),
        (lambda: tl.multiple_of(given(tl.int32, 3), given(tl.int32)), "E0205", "values"),
        (lambda: tl.multiple_of("x", 3), "E0210", "input"),
        (lambda: tl.assume(given(tl.int32)), "E0204", "cond"),
        (lambda: tl.assume(given(tl.int1, 4)), "E0204", "cond"),
        (lambda: tl.multiple_of(given(tl.int32), 0), "E0206", "values"),
        (lambda: tl.static_assert(given(tl.int1)), "E0205", "cond"),
        (lambda: tl.static_assert(1), "E0204", "cond"),
        (lambda: tl.static_assert(False), "E0119", "cond"),
    ],
)
def test_hints_that_are_refused(attempt: Any, code: str, argument: str) -> None:
    with eager(), pytest.raises(TritiumError) as caught:
        attempt()
    assert (caught.value.code, caught.value.argument) == (code, argument)


def test_static_assert_stops_the_compilation_at_its_line() -> None:
    @jit
    def kernel(out, N: tl.constexpr):
        tl.static_assert(N % 16 == 0, f"N is {N}, not a multiple of 16")
        tl.store(out, N)

    assert results(kernel, 32) == 32
    problem = refused(kernel, "E0119", PTR, 20, at="N % 16 == 0")
    assert problem.message == "static assertion failed: N is 20, not a multiple of 16"


def test_static_print_prints_while_compiling() -> None:
    @jit
    def kernel(out, N: tl.constexpr):
        tl.static_print("N", N, tl.float32, sep="|", end="!\n")
        tl.store(out, N)

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        compile(kernel, PTR, 7)
    assert printed.getvalue() == "N|7|fp32!\n"
