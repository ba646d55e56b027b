"""Which element of a mask tells that all of a group of neighbours are inside.

A bound check is true up to some position along an axis and false from there on, so that of a group
of neighbours the last one decides. With that known an access may be as wide as its pointers allow,
whatever the bound is: at run time a group is moved at once, or element by element.
"""

from __future__ import annotations

import enum

from tritium.ir.core import Value
from tritium.ops import compare, logic
from tritium.ops.shape import Broadcast, ExpandDims, Trans
from tritium.passes.facts import Facts
from tritium.passes.facts.fact import exact

DEEPEST = 32
"""Operations between a mask and its comparisons; of a deeper one nothing is known."""


class Guard(enum.Enum):
    """What says that the mask is true for a whole group."""

    LAST = "the last element; where the first is false all are"
    ENDS = "the first and the last element"


class _Slope(enum.Flag):
    """How a tile changes within groups along an axis: ``UP`` from false to true or to larger
    numbers, ``DOWN`` the other way, or not at all."""

    LEVEL = 0
    UP = 1
    DOWN = 2
    BOTH = 3


def guard_of(mask: Value, facts: Facts, axis: int, width: int) -> Guard | None:
    """What decides over aligned groups of ``width`` elements along an axis of a mask; None where
    every element has to be asked."""
    slope = _Masks(facts, width).slope(mask, axis, DEEPEST)
    if slope is None:
        return None
    return Guard.ENDS if slope & _Slope.UP else Guard.LAST


class _Masks:
    def __init__(self, facts: Facts, width: int) -> None:
        self._facts = facts
        self._width = width

    def slope(self, value: Value, axis: int, depth: int) -> _Slope | None:
        """How a mask changes: true for a group if it is at both ends; None if that isn't known."""
        if self._is_level(value, axis):
            return _Slope.LEVEL
        op = value.defining_op
        if depth == 0 or op is None:
            return None
        if isinstance(op, (compare.Lt, compare.Le)):
            return self._compared(op.x, op.y, axis)
        if isinstance(op, (compare.Gt, compare.Ge)):
            return self._compared(op.y, op.x, axis)
        if isinstance(op, logic.And):
            left, right = (self.slope(each, axis, depth - 1) for each in (op.x, op.y))
            return None if left is None or right is None else left | right
        if isinstance(op, Broadcast):
            return self.slope(op.x, axis, depth - 1)
        if isinstance(op, ExpandDims):
            return self.slope(op.x, axis - (axis > op.axis), depth - 1)
        if isinstance(op, Trans):
            return self.slope(op.x, op.order[axis], depth - 1)
        return None

    def _compared(self, low: Value, high: Value, axis: int) -> _Slope | None:
        """Of ``low < high``, or ``low <= high``."""
        if self._rises(low, axis) and self._is_level(high, axis):
            return _Slope.DOWN
        if self._is_level(low, axis) and self._rises(high, axis):
            return _Slope.UP
        return None

    def _is_level(self, value: Value, axis: int) -> bool:
        return self._facts.of(value).axes[axis].constancy >= self._width

    def _rises(self, value: Value, axis: int) -> bool:
        """Whether integers count up within groups, wrapping nowhere."""
        fact = self._facts.of(value)
        if fact.range is None:
            return False
        here = fact.axes[axis].within(self._width)
        safe = exact(fact, here, value.scalar.primitive_bitwidth)
        return safe.group >= self._width and safe.stride > 0
