"""``tl.tuple``: heterogeneous sequences of surface values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .constexpr import constexpr, unwrap


class TileTuple:
    """An immutable sequence; lists and tuples in kernels become this.

    A named tuple keeps its field names: its values are then attributes too.
    """

    __slots__ = ("fields", "values")

    def __init__(self, values: Iterable[Any] = (), fields: tuple[str, ...] | None = None) -> None:
        self.values = tuple(values)
        self.fields = fields

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
        return TileTuple(self.values * int(unwrap(count)))

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, (TileTuple, tuple, list)):
            return NotImplemented
        mine = tuple(map(unwrap, self.values))
        return constexpr(mine == tuple(map(unwrap, other)))

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.values))}{',' if len(self.values) == 1 else ''})"

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.values))}{',' if len(self.values) == 1 else ''})"
