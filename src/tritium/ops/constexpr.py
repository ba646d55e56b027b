"""``tl.constexpr``: a value known when the kernel is compiled, with Python's semantics."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from tritium.diagnostics import error


def unwrap(value: Any) -> Any:
    """The Python value inside a ``constexpr``; anything else as it is."""
    while isinstance(value, constexpr):
        value = value.value
    return value


def _known(tile: Any) -> Any:
    # That module builds on this one.
    from .create import folded

    value = folded(tile)
    if getattr(value, "is_tile", False):
        op, name = "tl.constexpr", "value"
        raise error("E0205", op=op, name=name, got=tile.type, argument=name)
    return unwrap(value)


class constexpr:
    """A compile-time constant. Operators compute at once, as Python would.

    ``-7 // 2`` is therefore -4 here and -3 on run-time tiles, which divide as C does. Raises E0205
    for a tile that isn't known.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        held = unwrap(value)
        if getattr(held, "is_tile", False):
            held = _known(held)
        self.value = held

    @property
    def type(self) -> Any:
        return type(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, key: Any) -> Any:
        return self.value[unwrap(key)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def logical_and(self, other: Any) -> constexpr:
        return constexpr(self.value and unwrap(other))

    def logical_or(self, other: Any) -> constexpr:
        return constexpr(self.value or unwrap(other))


def _forward(fn: Callable[[Any, Any], Any]) -> Callable[[constexpr, Any], Any]:
    def method(self: constexpr, other: Any) -> Any:
        other = unwrap(other)
        if getattr(other, "is_tile", False):
            return NotImplemented
        return constexpr(fn(self.value, other))

    return method


def _reflected(fn: Callable[[Any, Any], Any]) -> Callable[[constexpr, Any], Any]:
    def method(self: constexpr, other: Any) -> Any:
        return constexpr(fn(unwrap(other), self.value))

    return method


def _unary(fn: Callable[[Any], Any]) -> Callable[[constexpr], constexpr]:
    return lambda self: constexpr(fn(self.value))


MOST_BITS = 1 << 16
"""Bits of the largest integer that is computed, and elements of the longest sequence."""


def _power(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int) and x.bit_length() > 1:
        _check_size(x.bit_length() * y)
    return x**y


def _shifted(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        _check_size(x.bit_length() + y)
    return x << y


def times(x: Any, y: Any) -> Any:
    """``x * y``. Raises OverflowError for a sequence that would be too long."""
    for sequence, count in ((x, y), (y, x)):
        if isinstance(sequence, (str, bytes, tuple)) and isinstance(count, int):
            _check_size(len(sequence) * count)
    return x * y


def _check_size(size: int) -> None:
    if size > MOST_BITS:
        raise OverflowError(f"the result would have more than {MOST_BITS} bits or elements")


_BOUNDED = {"pow": _power, "lshift": _shifted, "mul": times}
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift")
for _name in (*_ARITHMETIC, "and", "or", "xor"):
    _fn = _BOUNDED.get(_name) or getattr(operator, f"__{_name}__")
    setattr(constexpr, f"__{_name}__", _forward(_fn))
    setattr(constexpr, f"__r{_name}__", _reflected(_fn))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(constexpr, f"__{_name}__", _forward(getattr(operator, f"__{_name}__")))
for _name in ("neg", "pos", "invert"):
    setattr(constexpr, f"__{_name}__", _unary(getattr(operator, f"__{_name}__")))
# Assigning __eq__ after the class body leaves __hash__ as defined there.
