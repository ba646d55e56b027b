"""Combine regions for the generated cases of ``reduce.reduce``, written operation by operation.

Each function makes a new region, as the front end would from the kernel function in its docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritium.ir.core import Block, Region, Value
from tritium.ir.dtypes import DType, Type, float32, int32

from .arith import Add, Div, Maximum, Mul, Sub
from .compare import Eq, Lt
from .control import If, Yield
from .create import Constant
from .logic import And, Or
from .select import Where

Emit = Callable[..., Value]


def _region(types: Sequence[Type], build: Callable[..., Sequence[Value]]) -> Region:
    """A region whose block takes ``types`` twice; ``build(emit, *arguments)`` gives its results."""
    block = Block([*types, *types])

    def emit(cls: Any, **fields: Any) -> Value:
        made = cls(**fields)
        made.make_results()
        block.append(made)
        result: Value = made.result
        return result

    block.append(Yield(values=tuple(build(emit, *block.args))))
    return Region(block)


def first_region(scalar: Type) -> Region:
    """``return a``"""
    return _region([scalar], lambda emit, a, b: [a])


def add_region(dtype: DType) -> Region:
    """``return a + b``"""
    return _region([dtype], lambda emit, a, b: [emit(Add, x=a, y=b)])


def maximum_region(dtype: DType) -> Region:
    """``return maximum(a, b)``"""
    return _region([dtype], lambda emit, a, b: [emit(Maximum, x=a, y=b)])


def argmin_region(dtype: DType) -> Region:
    """``first = (x < y) | ((x == y) & (i < j)); return where(first, x, y), where(first, i, j)``"""

    def build(emit: Emit, x: Value, i: Value, y: Value, j: Value) -> list[Value]:
        tie = emit(And, x=emit(Eq, x=x, y=y), y=emit(Lt, x=i, y=j))
        first = emit(Or, x=emit(Lt, x=x, y=y), y=tie)
        return [emit(Where, condition=first, x=a, y=b) for a, b in ((x, y), (i, j))]

    return _region([dtype, int32], build)


def welford_region() -> Region:
    """Chan's update of (mean, sum of squared deviations, weight), all fp32.

    ``w = w1 + w2; share = where(w == 0, 0, w2 / w); d = mean2 - mean1``;
    ``return mean1 + d * share, m1 + m2 + d * d * w1 * share, w``
    """

    def build(
        emit: Emit, mean1: Value, m1: Value, w1: Value, mean2: Value, m2: Value, w2: Value
    ) -> list[Value]:
        zero = emit(Constant, value=0.0, dtype=float32)
        weight = emit(Add, x=w1, y=w2)
        empty = emit(Eq, x=weight, y=zero)
        share = emit(Where, condition=empty, x=zero, y=emit(Div, x=w2, y=weight))
        delta = emit(Sub, x=mean2, y=mean1)
        mean = emit(Add, x=mean1, y=emit(Mul, x=delta, y=share))
        square = emit(Mul, x=emit(Mul, x=emit(Mul, x=delta, y=delta), y=w1), y=share)
        return [mean, emit(Add, x=emit(Add, x=m1, y=m2), y=square), weight]

    return _region([float32, float32, float32], build)


def swap_region(dtype: DType) -> Region:
    """``return b, a``"""
    block = Block([dtype, dtype])
    block.append(Yield(values=(block.args[1], block.args[0])))
    return Region(block)


def branch_region(dtype: DType) -> Region:
    """``if a < b: return b`` and ``a`` otherwise, by a branch."""

    def build(emit: Emit, a: Value, b: Value) -> list[Value]:
        ways = [Region(Block([])) for _ in range(2)]
        for way, value in zip(ways, (b, a)):
            way.block.append(Yield(values=(value,)))
        below = emit(Lt, x=a, y=b)
        return [emit(If, condition=below, then=ways[0], otherwise=ways[1])]

    return _region([dtype], build)
