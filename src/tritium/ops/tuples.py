"""Kernel values that consist of others; ``tl.tuple``, the heterogeneous sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .constexpr import constexpr, times, unwrap


class Structure:
    """A kernel value that consists of others, its parts, in a fixed order.

    Branches, loops, calls and returns hand its parts on and put it together again.
    """

    __slots__ = ()

    def _parts(self) -> tuple[Any, ...]:
        """The parts, structures themselves among them."""
        raise TypeError(f"{type(self).__name__} has no parts")

    def _rebuilt(self, parts: Iterable[Any]) -> Structure:
        """The same with other parts."""
        raise TypeError(f"{type(self).__name__} has no parts")

    def _kind(self) -> Any:
        """Equal for two that differ in their parts alone; hashable."""
        return type(self), len(self._parts())

    def _shown(self, parts: Iterable[str]) -> str:
        """What messages call it, given what they call its parts."""
        return f"{type(self).__name__}({', '.join(parts)})"


def elements(value: Any) -> tuple[Any, ...] | None:
    """The elements of a tuple or list; None for anything else."""
    known = unwrap(value)
    return tuple(known) if isinstance(known, SEQUENCES) else None


def several(value: Any) -> tuple[Any, ...]:
    """The elements of a tuple or list; anything else is the only one."""
    found = elements(value)
    return (value,) if found is None else found


class TileTuple(Structure):
    """An immutable sequence; lists and tuples in kernels become this.

    A named tuple keeps its field names: its values are then attributes too.
    """

    __slots__ = ("fields", "values")

    def __init__(self, values: Iterable[Any] = (), fields: tuple[str, ...] | None = None) -> None:
        self.values = tuple(values)
        self.fields = fields

    def _parts(self) -> tuple[Any, ...]:
        return self.values

    def _rebuilt(self, parts: Iterable[Any]) -> TileTuple:
        return TileTuple(parts, self.fields)

    def _kind(self) -> Any:
        """The names of its fields belong to what it is."""
        return type(self), len(self.values), self.fields

    def _shown(self, parts: Iterable[str]) -> str:
        if self.fields:
            parts = (f"{name}={part}" for name, part in zip(self.fields, parts))
        return f"({', '.join(parts)})"

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, key: Any) -> Any:
        key = unwrap(key)
        if isinstance(key, slice):
            part = slice(unwrap(key.start), unwrap(key.stop), unwrap(key.step))
            return TileTuple(self.values[part])
        return self.values[key]

    def __getattr__(self, name: str) -> Any:
        fields = object.__getattribute__(self, "fields")
        if fields and name in fields:
            return self.values[fields.index(name)]
        raise AttributeError(name)

    def __add__(self, other: Any) -> TileTuple:
        return TileTuple((*self.values, *other))

    def __mul__(self, count: Any) -> TileTuple:
        return TileTuple(times(self.values, int(unwrap(count))))

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, SEQUENCES):
            return NotImplemented
        mine = tuple(map(unwrap, self.values))
        return constexpr(mine == tuple(map(unwrap, other)))

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.values))}{',' if len(self.values) == 1 else ''})"

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.values))}{',' if len(self.values) == 1 else ''})"


SEQUENCES = (tuple, list, TileTuple)
"""The classes of sequences that operations take."""
