"""The facts of one value, and how they combine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tritium.ir.dtypes import DType, Type, int1

ANY = 1 << 62
"""The divisor of 0: every power of two that matters."""

Range = tuple[int, int]
"""The smallest and the largest value an integer may have, as its type has it."""


def power_of_two(number: int) -> int:
    """The largest power of two that divides a number; ``ANY`` for 0."""
    return min(number & -number, ANY) if number else ANY


def ceil_power_of_two(number: int) -> int:
    """The smallest power of two that is at least a positive number."""
    return 1 << (number - 1).bit_length()


class Axis(NamedTuple):
    """What is known along one axis of a tile, whatever the positions on the other axes are.

    The elements from a multiple of ``group`` on, ``group`` of them or up to the end of the axis,
    count up by ``stride`` from the first, modulo the type's width. ``start`` divides that first
    element. ``group`` and ``start`` are powers of two. Strides are in units of an integer, in bytes
    of a pointer; of other types only 0 occurs. With a group of 1 the stride is 0.
    """

    group: int
    stride: int
    start: int

    def within(self, group: int) -> Axis:
        """The same of groups of at most ``group`` elements."""
        if group >= self.group:
            return self
        start = min(self.start, power_of_two(self.stride * group)) if self.stride else self.start
        return Axis(group, self.stride if group > 1 else 0, start)

    @property
    def constancy(self) -> int:
        """From a multiple of this number on, as many elements are equal."""
        return 1 if self.stride else self.group

    def contiguity(self, step: int) -> int:
        """From a multiple of this number on, as many elements count up by ``step``."""
        return self.group if self.stride == step else 1

    def inside_blocks(self, limit: int) -> Axis:
        """The largest groups that lie within ``limit`` consecutive integers from a multiple of it.

        Then dividing by ``limit``, comparing with a multiple of it, or wrapping at one tells no
        two elements of a group apart.
        """
        here = self
        while here.group > 1 and here.stride and not _fits(here, limit):
            here = here.within(here.group // 2)
        return here


def _fits(axis: Axis, limit: int) -> bool:
    reach = axis.stride * (axis.group - 1) + 1
    return axis.stride > 0 and reach <= min(axis.start, limit)


class Fact(NamedTuple):
    """``axes`` of a tile (none of a scalar); ``divisor``, a power of two, divides every element.

    ``range`` is the span of an integer's values, None for other types.
    """

    axes: tuple[Axis, ...]
    divisor: int
    range: Range | None

    @property
    def number(self) -> int | None:
        """The integer that every element is, where that is known."""
        return self.range[0] if self.range is not None and self.range[0] == self.range[1] else None

    def is_in(self, low: int, high: int) -> bool:
        """Whether every element is an integer from ``low`` to ``high``."""
        return self.range is not None and low <= self.range[0] and self.range[1] <= high

    def is_apart(self, extents: Sequence[int], size: int) -> bool:
        """Whether no two elements of ``size`` bytes overlap to which a tile of pointers leads."""
        long = [(axis, extent) for axis, extent in zip(self.axes, extents) if extent > 1]
        if any(axis.group < extent for axis, extent in long):
            return False
        reach = size
        for stride, extent in sorted((abs(axis.stride), extent) for axis, extent in long):
            if stride < reach:
                return False
            reach += stride * (extent - 1)
        return reach < ANY

    def span(self, extents: Sequence[int], size: int) -> int | None:
        """The bytes from the lowest to the highest to which a tile of pointers to ``size`` bytes
        leads; None where that isn't known."""
        long = [(axis, extent) for axis, extent in zip(self.axes, extents) if extent > 1]
        if any(axis.group < extent for axis, extent in long):
            return None
        return size + sum(abs(axis.stride) * (extent - 1) for axis, extent in long)


def type_range(type: Type) -> Range | None:
    """The integers of a scalar type; None for pointers and floats."""
    scalar = type.scalar
    if not isinstance(scalar, DType) or not scalar.is_int():
        return None
    if scalar is int1:
        return (0, 1)
    return (scalar.get_int_min_value(), scalar.get_int_max_value())


def wrapped(type: Type, low: int, high: int) -> Range | None:
    """The range from ``low`` to ``high`` if the type holds it, else the whole type's."""
    whole = type_range(type)
    if whole is None or not (whole[0] <= low and high <= whole[1]):
        return whole
    return (low, high)


def unknown(type: Type, divisor: int = 1) -> Fact:
    """What holds of any value of a type whose elements ``divisor`` divides."""
    return Fact((Axis(1, 0, divisor),) * len(type.shape), divisor, type_range(type))


def constant(type: Type, divisor: int, range: Range | None) -> Fact:
    """A value that is the same everywhere in a tile, or a scalar."""
    axes = tuple(Axis(ceil_power_of_two(extent), 0, divisor) for extent in type.shape)
    return Fact(axes, divisor, range)


def common(facts: Sequence[Fact], number: int) -> list[Axis]:
    """Axis ``number`` of several facts, cut to the same groups."""
    group = min(fact.axes[number].group for fact in facts)
    return [fact.axes[number].within(group) for fact in facts]


def join(left: Fact, right: Fact) -> Fact:
    """What holds of a value that is one of two."""
    axes = []
    for number in range(len(left.axes)):
        a, b = common((left, right), number)
        if a.stride != b.stride:
            a, b = a.within(1), b.within(1)
        axes.append(Axis(a.group, a.stride, min(a.start, b.start)))
    spans = left.range, right.range
    both: Range | None = None
    if spans[0] is not None and spans[1] is not None:
        both = (min(spans[0][0], spans[1][0]), max(spans[0][1], spans[1][1]))
    return Fact(tuple(axes), min(left.divisor, right.divisor), both)


def same_everywhere(
    type: Type, operands: Sequence[Fact], divisor: int, range: Range | None
) -> Fact:
    """A result that is equal wherever all operands are."""
    axes = []
    for number in _numbers(type):
        group = min((fact.axes[number].constancy for fact in operands), default=1)
        axes.append(Axis(group, 0, divisor))
    return Fact(tuple(axes), divisor, range)


def _numbers(type: Type) -> Sequence[int]:
    return tuple(number for number, _ in enumerate(type.shape))


def exact(fact: Fact, axis: Axis, bits: int) -> Axis:
    """Groups of an integer of that many bits that also hold in a wider type, nothing wrapping."""
    if not axis.stride or axis.group == 1:
        return axis
    assert fact.range is not None
    low, high = fact.range
    if high - low + abs(axis.stride) * (axis.group - 1) < 1 << bits:
        return axis
    return axis.inside_blocks(1 << (bits - 1))
