"""The facts of an operation's result from those of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritium.ir.core import Op
from tritium.ir.dtypes import DType, Type, int1
from tritium.ir.types import element
from tritium.ops import arith, cast, compare, create, hints, logic, memory, program, select, shape
from tritium.ops.elementwise import Elementwise

from .fact import (
    ANY,
    Axis,
    Fact,
    Range,
    ceil_power_of_two,
    common,
    constant,
    exact,
    join,
    power_of_two,
    same_everywhere,
    type_range,
    unknown,
    wrapped,
)

Rule = Callable[[Any, Sequence[Fact]], Fact]

RULES: dict[type[Op], Rule] = {}
"""Rules by class of operation; without one an elementwise result is equal where all operands are,
and of another nothing is known."""

MOST_PROGRAMS = 2**31 - 1
"""The largest extent of a grid (CUDA C++ Programming Guide, "Technical Specifications")."""


def _rule(*classes: type[Op]) -> Callable[[Rule], Rule]:
    def register(made: Rule) -> Rule:
        for cls in classes:
            RULES[cls] = made
        return made

    return register


def fact_of(op: Op, operands: Sequence[Fact]) -> Fact:
    """The fact of the only result of an operation without regions."""
    type_ = op.results[0].type
    made = RULES.get(type(op))
    if made is not None:
        return made(op, operands)
    if not isinstance(op, Elementwise):
        return unknown(type_)
    return same_everywhere(type_, operands, 1, type_range(type_))


# ---- made from nothing ---------------------------------------------------------------------------


@_rule(create.Constant)
def _(op: create.Constant, operands: Sequence[Fact]) -> Fact:
    if not op.dtype.is_int():
        return unknown(op.dtype)
    number = int(op.evaluate(None))
    return Fact((), power_of_two(number), (number, number))


@_rule(create.Splat)
def _(op: create.Splat, operands: Sequence[Fact]) -> Fact:
    (x,) = operands
    return constant(op.result.type, x.divisor, x.range)


@_rule(create.Arange)
def _(op: create.Arange, operands: Sequence[Fact]) -> Fact:
    count = op.end - op.start
    divisor = power_of_two(op.start) if count == 1 else 1
    group = ceil_power_of_two(count)
    axis = Axis(group, 1 if group > 1 else 0, power_of_two(op.start))
    return Fact((axis,), divisor, (op.start, op.end - 1))


@_rule(program.ProgramId)
def _(op: program.ProgramId, operands: Sequence[Fact]) -> Fact:
    return Fact((), 1, (0, MOST_PROGRAMS - 1))


@_rule(program.ProgramCount)
def _(op: program.ProgramCount, operands: Sequence[Fact]) -> Fact:
    return Fact((), 1, (1, MOST_PROGRAMS))


# ---- shapes --------------------------------------------------------------------------------------


@_rule(shape.Broadcast)
def _(op: shape.Broadcast, operands: Sequence[Fact]) -> Fact:
    (x,) = operands
    axes = tuple(
        axis if old == new else Axis(ceil_power_of_two(new), 0, axis.start)
        for axis, old, new in zip(x.axes, op.x.shape, op.shape)
    )
    return Fact(axes, x.divisor, x.range)


@_rule(shape.ExpandDims)
def _(op: shape.ExpandDims, operands: Sequence[Fact]) -> Fact:
    (x,) = operands
    axes = (*x.axes[: op.axis], Axis(1, 0, x.divisor), *x.axes[op.axis :])
    return Fact(axes, x.divisor, x.range)


@_rule(shape.Trans)
def _(op: shape.Trans, operands: Sequence[Fact]) -> Fact:
    (x,) = operands
    return Fact(tuple(x.axes[axis] for axis in op.order), x.divisor, x.range)


@_rule(shape.Reshape)
def _(op: shape.Reshape, operands: Sequence[Fact]) -> Fact:
    (x,) = operands
    old, new = op.x.shape, op.result.shape
    long = [axis for axis, extent in enumerate(old) if extent > 1]
    wide = [axis for axis, extent in enumerate(new) if extent > 1]
    axes = [Axis(1, 0, x.divisor)] * len(new)
    if [old[axis] for axis in long] == [new[axis] for axis in wide]:
        for source, target in zip(long, wide):
            axes[target] = x.axes[source]
    elif long and wide:
        # An aligned group of the new last axis lies in one of the old, if both extents allow it.
        group = min(power_of_two(old[long[-1]]), power_of_two(new[wide[-1]]))
        axes[wide[-1]] = x.axes[long[-1]].within(group)
    return Fact(tuple(axes), x.divisor, x.range)


# ---- sums and products ---------------------------------------------------------------------------


def _is_integer(type: Type) -> bool:
    return isinstance(type.scalar, DType) and type.scalar.is_int() and type.scalar is not int1


def _signed_wrap(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _sum(type: Type, x: Fact, y: Fact, sign: int, bits: int) -> Fact:
    axes = []
    for number in range(len(x.axes)):
        a, b = common((x, y), number)
        stride = _signed_wrap(a.stride + sign * b.stride, bits)
        axes.append(Axis(a.group, stride, min(a.start, b.start)))
    span: Range | None = None
    if x.range is not None and y.range is not None:
        ends = y.range if sign > 0 else (-y.range[1], -y.range[0])
        span = wrapped(type, x.range[0] + ends[0], x.range[1] + ends[1])
    return Fact(tuple(axes), min(x.divisor, y.divisor), span)


@_rule(arith.Add, arith.Sub)
def _(op: arith.Add | arith.Sub, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    if not _is_integer(type_):
        return same_everywhere(type_, operands, 1, type_range(type_))
    sign = -1 if isinstance(op, arith.Sub) else 1
    return _sum(type_, operands[0], operands[1], sign, type_.scalar.primitive_bitwidth)


@_rule(arith.Mul)
def _(op: arith.Mul, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    if not _is_integer(type_):
        return same_everywhere(type_, operands, 1, type_range(type_))
    x, y = operands
    if x.number is not None:
        x, y = y, x
    assert x.range is not None
    assert y.range is not None
    corners = [a * b for a in x.range for b in y.range]
    span = wrapped(type_, min(corners), max(corners))
    divisor = min(x.divisor * y.divisor, ANY)
    bits = type_.scalar.primitive_bitwidth
    axes = tuple(_product(x, y, number, bits) for number in range(len(x.axes)))
    return Fact(axes, divisor, span)


def _product(x: Fact, y: Fact, number: int, bits: int) -> Axis:
    a, b = common((x, y), number)
    if y.number is not None:
        stride = _signed_wrap(a.stride * y.number, bits)
        start = min(a.start * power_of_two(y.number), ANY)
        return Axis(a.group, stride, start)
    if a.stride or b.stride:
        a, b = a.within(1), b.within(1)
    return Axis(a.group, 0, min(a.start * b.start, ANY))


@_rule(memory.Offset)
def _(op: memory.Offset, operands: Sequence[Fact]) -> Fact:
    pointer, offset = operands
    size = element(op.pointer.type).itemsize
    wide = tuple(exact(offset, axis, op.offset.scalar.primitive_bitwidth) for axis in offset.axes)
    scaled = tuple(
        Axis(axis.group, axis.stride * size, min(axis.start * power_of_two(size), ANY))
        for axis in wide
    )
    moved = Fact(scaled, min(offset.divisor * power_of_two(size), ANY), None)
    return _sum(op.result.type, pointer, moved, 1, 64)


# ---- quotients, bits -----------------------------------------------------------------------------


@_rule(arith.Idiv, arith.Rem)
def _(op: arith.Idiv | arith.Rem, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    x, y = operands
    if not _is_integer(type_) or not (x.is_in(0, 1 << 64)):
        return same_everywhere(type_, operands, 1, type_range(type_))
    divides = isinstance(op, arith.Idiv)
    assert x.range is not None
    assert y.range is not None
    span, divisor = type_range(type_), 1
    if y.range[0] >= 1:
        span = (x.range[0] // y.range[1], x.range[1] // y.range[0]) if divides else None
        span = (0, min(x.range[1], y.range[1] - 1)) if span is None else span
    if not divides:
        divisor = min(x.divisor, y.divisor)
    elif y.number is not None and y.number > 0 and power_of_two(y.number) == y.number:
        divisor = max(1, x.divisor // y.number)
    axes = []
    for number in range(len(x.axes)):
        # Along an axis where the divisor varies nothing but equal operands say anything.
        limit = y.axes[number].start if y.axes[number].constancy > 1 else 1
        a = x.axes[number].within(y.axes[number].constancy).inside_blocks(limit)
        if divides:
            start = max(1, a.start // y.number) if divisor > 1 and y.number else divisor
            axes.append(Axis(a.group, 0, start))
        else:
            axes.append(Axis(a.group, a.stride, min(a.start, y.divisor)))
    return Fact(tuple(axes), divisor, span)


def _low_mask(number: int | None) -> int | None:
    """2**k of the number 2**k - 1."""
    return number + 1 if number is not None and number >= 0 and not number & (number + 1) else None


@_rule(logic.And)
def _(op: logic.And, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    x, y = operands if operands[0].number is None else (operands[1], operands[0])
    if not _is_integer(type_) or y.number is None:
        return same_everywhere(type_, operands, 1, type_range(type_))
    keeps, drops = _low_mask(y.number), _low_mask(-y.number - 1)
    if keeps is not None:
        axes = tuple(axis.inside_blocks(keeps) for axis in x.axes)
        return Fact(axes, x.divisor, (0, y.number))
    if drops is not None and type_.scalar.is_int_signed():
        axes = tuple(
            Axis(inner.group, 0, max(inner.start, drops))
            for inner in (axis.inside_blocks(drops) for axis in x.axes)
        )
        assert x.range is not None
        span = (x.range[0] & y.number, x.range[1])
        return Fact(axes, max(x.divisor, drops), span)
    return same_everywhere(type_, operands, power_of_two(y.number), type_range(type_))


@_rule(logic.Shl)
def _(op: logic.Shl, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    x, y = operands
    bits = type_.scalar.primitive_bitwidth
    if y.number is None or not 0 <= y.number < bits:
        return same_everywhere(type_, operands, 1, type_range(type_))
    factor = 1 << y.number
    assert x.range is not None
    axes = tuple(
        Axis(a.group, _signed_wrap(a.stride * factor, bits), min(a.start * factor, ANY))
        for a in x.axes
    )
    span = wrapped(type_, x.range[0] * factor, x.range[1] * factor)
    return Fact(axes, min(x.divisor * factor, ANY), span)


@_rule(logic.Shr)
def _(op: logic.Shr, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    x, y = operands
    if y.number is None or not 0 <= y.number < type_.scalar.primitive_bitwidth:
        return same_everywhere(type_, operands, 1, type_range(type_))
    factor = 1 << y.number
    assert x.range is not None
    axes = tuple(
        Axis(inner.group, 0, max(1, inner.start // factor))
        for inner in (axis.inside_blocks(factor) for axis in x.axes)
    )
    span = (x.range[0] >> y.number, x.range[1] >> y.number)
    return Fact(axes, max(1, x.divisor // factor), span)


# ---- choices, casts, comparisons, memory ---------------------------------------------------------


@_rule(select.Where)
def _(op: select.Where, operands: Sequence[Fact]) -> Fact:
    condition, x, y = operands
    either = join(x, y)
    axes = tuple(
        axis.within(condition.axes[number].constancy) for number, axis in enumerate(either.axes)
    )
    return Fact(axes, either.divisor, either.range)


@_rule(arith.Maximum, arith.Minimum)
def _(op: arith.Extremum, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    x, y = operands
    if x.range is None or y.range is None:
        return same_everywhere(type_, operands, 1, None)
    pick = max if op.larger else min
    span = (pick(x.range[0], y.range[0]), pick(x.range[1], y.range[1]))
    return same_everywhere(type_, operands, min(x.divisor, y.divisor), span)


@_rule(cast.Convert)
def _(op: cast.Convert, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    (x,) = operands
    if not _is_integer(type_) or x.range is None:
        return same_everywhere(type_, operands, 1, type_range(type_))
    old, new = op.x.scalar.primitive_bitwidth, type_.scalar.primitive_bitwidth
    axes = x.axes
    if new > old:
        axes = tuple(exact(x, axis, old) for axis in axes)
    else:
        axes = tuple(Axis(a.group, _signed_wrap(a.stride, new), a.start) for a in axes)
    return Fact(axes, x.divisor, wrapped(type_, *x.range))


@_rule(cast.Bitcast)
def _(op: cast.Bitcast, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    if type_.scalar.is_ptr() and op.x.scalar.is_ptr():
        return operands[0]
    return same_everywhere(type_, operands, 1, type_range(type_))


@_rule(compare.Eq, compare.Ne, compare.Le, compare.Gt, compare.Lt, compare.Ge)
def _(op: compare.Comparison, operands: Sequence[Fact]) -> Fact:
    x, y = operands
    if x.range is None or y.range is None:
        return same_everywhere(op.result.type, operands, 1, (0, 1))
    axes = []
    # Longer groups may wrap, from the largest number to the smallest.
    longest = 1 << (op.x.scalar.primitive_bitwidth - 1)
    for number in range(len(x.axes)):
        a, b = x.axes[number], y.axes[number]
        group = min(a.constancy, b.constancy)
        # v < n and v >= n don't change between multiples of what divides n.
        if isinstance(op, (compare.Lt, compare.Ge)):
            limit = min(_block(b), longest)
            group = max(group, a.within(b.constancy).inside_blocks(limit).group)
        if isinstance(op, (compare.Gt, compare.Le)):
            limit = min(_block(a), longest)
            group = max(group, b.within(a.constancy).inside_blocks(limit).group)
        axes.append(Axis(group, 0, 1))
    return Fact(tuple(axes), 1, (0, 1))


def _block(axis: Axis) -> int:
    """A number that divides every element of the groups that are constant."""
    return axis.within(axis.constancy).start


# ---- promises ------------------------------------------------------------------------------------


@_rule(hints.Promise)
def _(op: hints.Promise, operands: Sequence[Fact]) -> Fact:
    (x,) = operands
    scalar = op.x.scalar
    step = element(op.x.type).itemsize if scalar.is_ptr() else 1
    if not op.x.shape:
        return x._replace(divisor=max(x.divisor, _promised(op.multiple, 0)))
    axes = []
    for number, (axis, extent) in enumerate(zip(x.axes, op.x.shape)):
        axis = _run(axis, _promised(op.constant, number, extent), 0)
        axis = _run(axis, _promised(op.contiguous, number, extent), step)
        start = min(_promised(op.multiple, number), _most_of_start(op, axis, number))
        axes.append(axis._replace(start=max(axis.start, start)))
    return x._replace(axes=tuple(axes))


def _promised(numbers: Sequence[int], number: int, extent: int = 0) -> int:
    """The power of two of a promise for an axis; all of the axis where it reaches that far."""
    promised = max(1, numbers[number]) if numbers else 1
    return ceil_power_of_two(extent) if 0 < extent <= promised else power_of_two(promised)


def _run(axis: Axis, group: int, stride: int) -> Axis:
    """An axis with runs that were promised, if that is more than what is known."""
    if group <= axis.group and (axis.stride == stride or group == 1):
        return axis
    return Axis(group, stride, axis.start)


def _most_of_start(op: hints.Promise, axis: Axis, number: int) -> int:
    """What may divide the first of each group where several make up a run that was promised."""
    promised = op.contiguous[number] if op.contiguous else 1
    one_group = power_of_two(max(1, promised)) == promised or promised >= op.x.shape[number]
    return ANY if one_group or not axis.stride else power_of_two(axis.stride * axis.group)


@_rule(memory.Load)
def _(op: memory.Load, operands: Sequence[Fact]) -> Fact:
    type_ = op.result.type
    if op.is_fresh:
        return unknown(type_)
    return same_everywhere(type_, operands, 1, type_range(type_))
