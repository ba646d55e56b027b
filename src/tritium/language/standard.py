"""Library functions written in the kernel language itself.

They are built from operations and are inlined like a user's own functions, so every executor has
them at once. Names with a leading underscore are those that other libraries import from Triton.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritium.ir.dtypes import int32
from tritium.ops.arith import fdiv, maximum, minimum
from tritium.ops.atomic import atomic_load
from tritium.ops.callable import DeviceFunction, composite, constexpr_function
from tritium.ops.constexpr import constexpr
from tritium.ops.create import full
from tritium.ops.emit import METHODS, SURFACE
from tritium.ops.hints import static_assert
from tritium.ops.math import exp
from tritium.ops.reduce import (
    argmax_combine_any,
    argmax_combine_left,
    argmin_combine_any,
    argmin_combine_left,
    max,
    reduce,
    sum,
)


def publish(*, method: bool = False) -> Callable[[Callable[..., Any]], DeviceFunction]:
    """Decorator: a composite that is ``tl.<its name>``, and a method of tiles if ``method``."""

    def register(fn: Callable[..., Any]) -> DeviceFunction:
        made = composite(fn)
        for table in (SURFACE, METHODS) if method else (SURFACE,):
            if made.__name__ in table:
                raise ValueError(f"{made.__name__} is defined twice")
            table[made.__name__] = made
        return made

    return register


@publish(method=True)
def cdiv(x, div):
    """``x / div`` rounded up, for positive integers: ``(x + div - 1) // div``.

    The sum wraps like any other.
    """
    return (x + div - 1) // div


@publish()
def zeros(shape, dtype):
    """A tile of that shape whose elements are 0; ``()`` gives a scalar."""
    return full(shape, 0, dtype)


@publish()
def zeros_like(input):
    """A tile of zeros with the shape and element type of ``input``."""
    return full(input.shape, 0, input.dtype)


@publish(method=True)
def sigmoid(x):
    """``1 / (1 + exp(-x))`` of each element, fp32 or fp64."""
    return 1 / (1 + exp(-x))


@publish(method=True)
def softmax(
    x,
    dim: constexpr | None = None,
    keep_dims: constexpr | None = None,
    ieee_rounding: constexpr | bool = False,
):
    """The elements' exponentials over their sum along ``dim``, axis 0 where that is None.

    The largest element is subtracted first, so nothing overflows; fp16 and bf16 give fp32.
    ``ieee_rounding`` asks for a correctly rounded division on every target. ``keep_dims`` has no
    meaning any more: the result has the shape of ``x``.
    """
    shifted = x - max(x, 0 if dim is None else dim, keep_dims=True)
    powers = exp(shifted)
    total = sum(powers, 0 if dim is None else dim, keep_dims=True)
    return fdiv(powers, total, ieee_rounding)


@publish(method=True)
def xor_sum(input, axis: constexpr | None = None, keep_dims: constexpr | bool = False):
    """The exclusive or of the integers along ``axis``, of all elements where it is None."""
    static_assert(input.dtype.is_int(), "xor_sum takes integers")
    return reduce(input, axis, _xor_combine, keep_dims=keep_dims)


@publish(method=True)
def reduce_or(input, axis: constexpr, keep_dims: constexpr | bool = False):
    """The bitwise or of the integers along ``axis``, of all elements where it is None."""
    static_assert(input.dtype.is_int(), "reduce_or takes integers")
    return reduce(input, axis, _or_combine, keep_dims=keep_dims)


@publish(method=True)
def any(input, axis: constexpr | None = None, keep_dims: constexpr | bool = False):
    """Whether an element along ``axis`` isn't 0, of all elements where it is None: int1."""
    return reduce(input != 0, axis, _or_combine, keep_dims=keep_dims)


@publish(method=True)
def all(input, axis: constexpr | None = None, keep_dims: constexpr | bool = False):
    """Whether no element along ``axis`` is 0, of all elements where it is None: int1."""
    return reduce(input != 0, axis, _and_combine, keep_dims=keep_dims)


@publish(method=True)
def count(input, axis: constexpr | None = None, keep_dims: constexpr | bool = False):
    """How many elements along ``axis`` aren't 0, of all elements where it is None: int32."""
    return sum((input != 0).to(int32), axis, keep_dims)


@publish()
def swizzle2d(i, j, size_i, size_j, size_g):
    """The row and column of step ``i * size_j + j`` when groups of rows are walked by columns.

    The ``size_i`` by ``size_j`` grid is cut into groups of ``size_g`` rows; within a group the
    steps go down each column before the next. The last group may have fewer rows. Row-major (i, j)
    steps so reuse a group's data. Returns the pair (row, column).
    """
    step = i * size_j + j
    first_row = step // (size_g * size_j) * size_g
    rows = minimum(size_i - first_row, size_g)
    within = step % (size_g * size_j)
    return first_row + within % rows, within // rows


@composite
def _sum_combine(a, b):
    """``a + b``."""
    return a + b


@composite
def _xor_combine(a, b):
    """``a ^ b``."""
    return a ^ b


@composite
def _or_combine(a, b):
    """``a | b``."""
    return a | b


@composite
def _and_combine(a, b):
    """``a & b``."""
    return a & b


@composite
def _elementwise_max(a, b):
    """``maximum(a, b)``."""
    return maximum(a, b)


@composite
def _elementwise_min(a, b):
    """``minimum(a, b)``."""
    return minimum(a, b)


@composite
def _argmax_combine(value1, index1, value2, index2, tie_break_left: constexpr):
    """The pair with the larger value; of equal values the smaller index if ``tie_break_left``."""
    if tie_break_left:
        return argmax_combine_left(value1, index1, value2, index2)
    else:
        return argmax_combine_any(value1, index1, value2, index2)


@composite
def _argmin_combine(value1, index1, value2, index2, tie_break_left: constexpr):
    """The pair with the smaller value; of equal values the smaller index if ``tie_break_left``."""
    if tie_break_left:
        return argmin_combine_left(value1, index1, value2, index2)
    else:
        return argmin_combine_any(value1, index1, value2, index2)


_argmax_combine_tie_break_left = argmax_combine_left
_argmax_combine_tie_break_fast = argmax_combine_any
_argmin_combine_tie_break_left = argmin_combine_left
_argmin_combine_tie_break_fast = argmin_combine_any


@constexpr_function
def _log2(i: int) -> int:
    """The exponent of the largest power of two that is at most ``i``."""
    return i.bit_length() - 1


@publish(method=True)
def atomic_poll(
    pointer,
    expected_value,
    sem=None,
    scope=None,
    timeout_ns: constexpr = None,  # type: ignore[assignment]
):
    """Read one element again and again until it is ``expected_value``; gives True.

    Meanwhile other programs run. ``sem`` and ``scope`` as of ``atomic_load``. Programs have no
    clock, so ``timeout_ns`` must be None. Where nothing can ever change, eager mode ends the launch
    (E0702), and compiled code waits until Ctrl-C.
    """
    static_assert(timeout_ns is None, "atomic_poll has no timeout: leave out timeout_ns")
    found = atomic_load(pointer, None, sem, scope)
    while found != expected_value:
        found = atomic_load(pointer, None, sem, scope)
    return found == expected_value
