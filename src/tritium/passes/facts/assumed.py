"""What follows of values from a condition that is assumed to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tritium.ir.core import Op, Value
from tritium.ops import arith, compare, logic

from .fact import Fact, power_of_two

Of = Callable[[Value], Fact]

_MIRRORED: dict[type[Op], type[Op]] = {
    compare.Lt: compare.Gt,
    compare.Gt: compare.Lt,
    compare.Le: compare.Ge,
    compare.Ge: compare.Le,
    compare.Eq: compare.Eq,
}


def assumed(condition: Value, of: Of) -> Iterator[tuple[Value, Fact]]:
    """Scalars of which a true condition says more than ``of``, each with its new fact.

    Understood are comparisons of an integer with a known one, remainders that are 0, and what
    ``logic.and`` joins.
    """
    op: Any = condition.defining_op
    if isinstance(op, logic.And):
        # The second may speak of the same value as the first.
        known: dict[Value, Fact] = {}
        for part in (op.x, op.y):
            for value, fact in assumed(part, lambda value: known.get(value) or of(value)):
                known[value] = fact
        yield from known.items()
    elif type(op) in _MIRRORED:
        for value, other, relation in (
            (op.x, op.y, type(op)),
            (op.y, op.x, _MIRRORED[type(op)]),
        ):
            number = of(other).number
            if number is not None and value.scalar.is_int():
                yield from _compared(value, relation, number, of)


def _compared(
    value: Value, relation: type[Op], number: int, of: Of
) -> Iterator[tuple[Value, Fact]]:
    fact = of(value)
    assert fact.range is not None
    low, high = fact.range
    if relation in (compare.Gt, compare.Ge, compare.Eq):
        low = max(low, number + (relation is compare.Gt))
    if relation in (compare.Lt, compare.Le, compare.Eq):
        high = min(high, number - (relation is compare.Lt))
    if low <= high and (low, high) != fact.range:
        yield value, fact._replace(range=(low, high))
    if relation is compare.Eq and number == 0:
        yield from _divided(value, of)


def _divided(value: Value, of: Of) -> Iterator[tuple[Value, Fact]]:
    """``value``, a remainder, is 0."""
    op: Any = value.defining_op
    divisor = None
    if isinstance(op, arith.Rem):
        divisor = of(op.y).number
    elif isinstance(op, logic.And):
        mask = of(op.y).number
        divisor = mask + 1 if mask is not None and mask >= 0 and not mask & (mask + 1) else None
    if divisor:
        whole = of(op.x)
        yield op.x, whole._replace(divisor=max(whole.divisor, power_of_two(divisor)))
