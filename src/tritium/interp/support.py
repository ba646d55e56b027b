"""What the rewritten copy of a kernel calls in place of Python's own syntax.

The rules are those of ``ops.python`` and ``ops.builtins``, which the front end follows too. Here
values are known, and Python that the kernel language doesn't have (strings in variables, lists,
dictionaries, ...) keeps Python's meaning.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

from tritium.diagnostics import error
from tritium.ir.tracer import active
from tritium.ops import builtins as kernel_builtins
from tritium.ops import python
from tritium.ops.constants import number, to_tile
from tritium.ops.constexpr import constexpr, unwrap
from tritium.ops.create import folded
from tritium.ops.hints import Range
from tritium.ops.tile import Tile
from tritium.ops.tuples import TileTuple, several

__all__ = [
    "again",
    "assigned",
    "begins",
    "builtin",
    "chain",
    "choice",
    "combination",
    "declared",
    "holds",
    "negate",
    "receiver",
    "result",
    "truth",
    "unwrap",
]


def assigned(value: Any) -> Any:
    """What ``name = value`` stores: numbers become scalar tiles, in tuples too."""
    if isinstance(value, Tile):
        return value
    if number(value) is not None:
        return to_tile(value)
    if isinstance(value, TileTuple):
        return TileTuple(map(assigned, value), value.fields)
    if isinstance(value, tuple):
        parts = [assigned(part) for part in value]
        if all(new is old for new, old in zip(parts, value)):
            return value
        make = getattr(type(value), "_make", tuple)
        return make(parts)
    return value


def declared(value: Any) -> Any:
    """What ``name: tl.constexpr = value`` stores. Raises E0205 for a run-time value."""
    value = folded(value)
    if isinstance(value, Tile):
        raise error("E0205", op="tl.constexpr", name="the value", got=value.type)
    return value


def truth(value: Any) -> Any:
    """What ``if`` decides by: of a tile its only element, else Python's own."""
    return python.condition(value, "if") if isinstance(value, Tile) else value


def begins() -> object:
    """Tells the execution of a ``while`` that is about to begin from every other one."""
    return object()


def again(value: Any, execution: object) -> bool:
    """What ``while`` decides by; where that is another pass, other programs may run first."""
    holds = bool(truth(value))
    if holds:
        tracer = active()
        if tracer is not None:
            tracer.again(sys._getframe(1), execution)
    return holds


def negate(value: Any) -> Any:
    """``not value``."""
    return unwrap(python.negate(value))


def holds(value: Any) -> bool:
    """What ``assert value`` decides by: every element of a tile."""
    _tells("assert")
    if isinstance(value, Tile):
        return bool(value.data.all())
    return bool(value)


def _tells(verb: str) -> None:
    """Python is about to print or to assert. Raises E0206 in functions of scalars."""
    tracer = active()
    if tracer is not None:
        tracer.tells(verb)


def receiver(value: Any, name: str) -> Any:
    """What ``value.name`` is looked up on: a number may stand for a scalar tile."""
    if isinstance(value, (bool, int, float)):
        value = constexpr(value)
    return python.receiver(value, name)


# ---- expressions that may leave operands uncomputed ----------------------------------------------
#
# ``0 < step == operand`` evaluates the operand only while the step is open: Python stops a chained
# comparison where it is false. No variable, lambda or frame is needed, which a debugger would show.


class _Step:
    """A construct on its way, open while it wants the next operand."""

    __slots__ = ("open", "value")
    open: bool
    value: Any

    def take(self, operand: Any) -> None:
        """Go on with the next operand's value."""
        raise TypeError(f"{type(self).__name__} takes no operand")

    def __gt__(self, zero: object) -> _Step:
        return self

    def __bool__(self) -> bool:
        return self.open

    def __eq__(self, operand: object) -> Any:
        self.take(operand)
        return self

    __hash__ = object.__hash__


def result(step: _Step) -> Any:
    """The value of a construct whose operands were all given, or not needed."""
    return step.value


class combination(_Step):
    """``and`` or ``or``, by its word, from the first operand on."""

    __slots__ = ("parts",)

    def __init__(self, word: str, first: Any) -> None:
        self.parts = python.Combination(word)
        self.take(first)

    def take(self, operand: Any) -> None:
        self.open = not self.parts.add(operand)
        self.value = self.parts.value


class chain(_Step):
    """A chained comparison, by its operators, from the first two operands on."""

    __slots__ = ("parts", "right", "symbols")

    def __init__(self, symbols: tuple[str, ...], left: Any, right: Any) -> None:
        self.symbols = iter(symbols)
        self.parts = python.Combination("and")
        self.right = left
        self.take(right)

    def take(self, operand: Any) -> None:
        left, self.right = self.right, operand
        self.open = not self.parts.add(COMPARISONS[next(self.symbols)](left, operand))
        self.value = self.parts.value


class choice(_Step):
    """``x if condition else y``; of a run-time condition both arms are tiles."""

    __slots__ = ("at_run_time", "condition")

    def __init__(self, condition: Any) -> None:
        self.at_run_time = isinstance(condition, Tile)
        self.condition = self.open = bool(truth(condition))

    def take(self, operand: Any) -> None:
        self.value = assigned(operand) if self.at_run_time else operand

    @property
    def otherwise(self) -> choice:
        """The same choice, open for the other arm."""
        self.open = not self.condition
        return self


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    **python.BINARY,
    "is": lambda left, right: unwrap(left) is unwrap(right),
    "is not": lambda left, right: unwrap(left) is not unwrap(right),
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}


# ---- builtins ------------------------------------------------------------------------------------


def _extreme(fold: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        values = several(args[0]) if len(args) == 1 else args
        if any(isinstance(value, Tile) for value in values) or "propagate_nan" in kwargs:
            return unwrap(rule(*values, **kwargs))
        return values[0] if len(values) == 1 and not kwargs else fold(*args, **kwargs)

    return extreme


def _absolute(x: Any) -> Any:
    return unwrap(kernel_builtins.absolute(x)) if isinstance(x, Tile) else abs(x)


def _is_instance(obj: Any, class_or_tuple: Any) -> bool:
    return bool(kernel_builtins.is_instance(obj, class_or_tuple))


def _get_attribute(obj: Any, name: str, *default: Any) -> Any:
    return getattr(receiver(obj, name), name, *default)


def _has_attribute(obj: Any, name: str) -> bool:
    return python.has_attribute(obj, name)


def _print(*values: Any, **options: Any) -> None:
    _tells("print")
    print(*values, **options)


_BUILTINS: dict[Any, Any] = {
    print: _print,
    range: Range,
    min: _extreme(builtins.min, kernel_builtins.minimum),
    max: _extreme(builtins.max, kernel_builtins.maximum),
    abs: _absolute,
    isinstance: _is_instance,
    getattr: _get_attribute,
    hasattr: _has_attribute,
}

REPLACED = frozenset(function.__name__ for function in _BUILTINS)
"""Names of the builtins whose calls on tiles follow a rule of the kernel language."""


def builtin(function: Any) -> Any:
    """What a call of ``function``, found under one of the ``REPLACED`` names, runs."""
    try:
        return _BUILTINS.get(function, function)
    except TypeError:
        # Unhashable callables of the user are no builtins.
        return function
