"""Wrong programs: the interpreter gives the compiler's error at the compiler's place."""

from __future__ import annotations

import contextlib
import io
import math
import sys
import traceback
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium.diagnostics import InterpreterError, TritiumError


def undefined_name(x, n, B: tl.constexpr):
    tl.store(x, missing)  # noqa: F821


def unknown_name_of_the_language(x, n, B: tl.constexpr):
    tl.stroe(x, 1)


def run_time_bound(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, n), 1)


def no_pointer(x, n, B: tl.constexpr):
    tl.store(n + 1, 2)


def float_mask(x, n, B: tl.constexpr):
    tl.store(x, 1, mask=1.0)


def mask_of_another_shape(x, n, B: tl.constexpr):
    tl.store(
        x + tl.arange(0, B),
        1,
        mask=tl.arange(0, 8) < 3,
    )


def unknown_keyword(x, n, B: tl.constexpr):
    tl.store(x, 1, foo=3)


def missing_argument(x, n, B: tl.constexpr):
    tl.store(x)


def too_many_arguments(x, n, B: tl.constexpr):
    tl.store(x, 1, None, 2, 3, 4, 5)


def two_values(x, n, B: tl.constexpr):
    tl.store(x, 1, pointer=x)


def wrong_operand(x, n, B: tl.constexpr):
    y = tl.load(x) + (x + 1.5)
    tl.store(x, y)


def in_the_library(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), tl.zeros((n,), tl.float32))


def python_builtin(x, n, B: tl.constexpr):
    tl.store(x, pow(n, 2))


def no_tuple(x, n, B: tl.constexpr):
    a, b = tl.arange(0, B)
    tl.store(x, a + b)


def lengths(x, n, B: tl.constexpr):
    a, b = (1, 2, 3)
    tl.store(x, a + b)


def run_time_constant(x, n, B: tl.constexpr):
    a: tl.constexpr = n
    tl.store(x, a)


@tritium.jit
def helper(value, axis):
    return tl.sum(value, axis)


def inside_a_helper(x, n, B: tl.constexpr):
    tl.store(x, helper(tl.arange(0, B), 1))


def changed_type(x, n, B: tl.constexpr):
    value = tl.zeros((B,), tl.float32)
    for _ in range(n):
        value = tl.sum(value, 0)
    tl.store(x, value)


# Python 3.10's frames know only the line where a call begins.
SEVERAL_LINES = (mask_of_another_shape,) if sys.version_info >= (3, 11) else ()
PROGRAMS = (
    *SEVERAL_LINES,
    undefined_name,
    unknown_name_of_the_language,
    run_time_bound,
    no_pointer,
    float_mask,
    unknown_keyword,
    missing_argument,
    too_many_arguments,
    two_values,
    wrong_operand,
    in_the_library,
    python_builtin,
    no_tuple,
    lengths,
    run_time_constant,
    inside_a_helper,
    changed_type,
)


def refused(launch: Any, *args: Any) -> TritiumError:
    """The error of a launch, which must leave the array as it is."""
    x = np.zeros(8, np.float32)
    with pytest.raises(TritiumError) as caught:
        launch[(1,)](x, *args)
    assert not x.any()
    return caught.value


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_one_error(function: Any) -> None:
    kernel = tritium.jit(function)
    native, interpreted = refused(kernel, 3, 4), refused(kernel.interpret, 3, 4)
    assert interpreted.code not in ("E0117", "E0701")
    assert str(interpreted) == str(native)
    assert type(interpreted) is type(native)
    assert native.loc is not None
    assert native.loc.file == __file__
    frames = traceback.extract_tb(interpreted.__traceback__)
    assert any(frame.name == function.__name__ for frame in frames), "for a debugger afterwards"


@tritium.jit
def beyond_the_language(x, n, message: tl.constexpr):
    print(message)
    y = math.sqrt(n[0])
    raise ValueError(f"{message} {y}")


def test_what_only_the_interpreter_allows_keeps_its_error() -> None:
    """Python's own exceptions in code that the compiler refuses for another reason."""
    with contextlib.redirect_stdout(io.StringIO()):
        problem = refused(beyond_the_language.interpret, 4, "no")
    assert isinstance(problem, InterpreterError)
    assert "ValueError: no 2.0" in str(problem)


@tritium.jit
def announced(x, n):
    tl.static_print("compiling", n)
    tl.store(x, n + x)


def test_nothing_is_printed_twice() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        refused(announced.interpret, 3)
    assert printed.getvalue().count("compiling") == 1


@tritium.jit
def both(x, y, n):
    at = tl.program_id(0)
    tl.store(x + at, n)
    tl.store(y + at, n)


@pytest.mark.parametrize("grid", [(0,), (3,)])
def test_read_only_arrays_are_refused_before_anything_is_written(grid: Any) -> None:
    x, y = np.zeros(8, np.float32), np.zeros(8, np.float32)
    y.flags.writeable = False
    told = []
    for launch in (both, both.interpret):
        with pytest.raises(TritiumError) as caught:
            launch[grid](x, y, 3)
        told.append(str(caught.value).replace("both.interpret[grid]", "both[grid]"))
        assert caught.value.code == "E0514"
        assert not x.any()
    assert told[0] == told[1]


@tritium.jit
def copy(x, y):
    at = tl.arange(0, 8)
    tl.store(y + at, tl.load(x + at))


def test_read_only_arrays_may_be_read() -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    x.flags.writeable = False
    for launch in (copy, copy.interpret):
        y[:] = 0
        launch[(1,)](x, y)
        np.testing.assert_array_equal(y, x)
