"""Which variables a run-time loop carries along, and what they are before, inside and after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tritium.diagnostics import TritiumError, error
from tritium.ir.core import Value
from tritium.ir.dtypes import Type
from tritium.ops.constants import constant_dtype, number, to_tile
from tritium.ops.python import same, type_text
from tritium.ops.tile import Tile
from tritium.ops.tuples import Structure

from .names import Binding, Scope, Unset

Place: TypeAlias = tuple[str, tuple[int, ...]]
"""A variable, and the way to one part of a tuple or another structure that it holds."""


def leaves(value: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The parts of a value that have no parts themselves, with the way to each."""
    if isinstance(value, Structure):
        for index, part in enumerate(value._parts()):
            yield from leaves(part, (*path, index))
    else:
        yield path, value


def replaced(value: Any, path: tuple[int, ...], new: Any) -> Any:
    """``value`` with one part exchanged."""
    if not path:
        return new
    parts = list(value._parts())
    parts[path[0]] = replaced(parts[path[0]], path[1:], new)
    return value._rebuilt(parts)


def element(value: Any, path: tuple[int, ...]) -> Any:
    """The part at the end of a way."""
    for index in path:
        value = value._parts()[index]
    return value


def kinds(value: Any) -> Any:
    """What must stay the same of a value while its leaves change."""
    if isinstance(value, Structure):
        return (value._kind(), *map(kinds, value._parts()))
    return None


@dataclass
class Carried:
    """The places that a loop changes, in the order of the loop's values."""

    construct: str
    places: dict[Place, Type] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    """Variables that have no value after the loop: its own."""

    def enter(self, scope: Scope, values: Sequence[Value]) -> Scope:
        """The variables inside the loop, where the carried ones hold ``values``."""
        inside = dict(scope)
        for (name, path), value in zip(self.places, values):
            binding = inside[name]
            held = replaced(binding.value, path, Tile(value))
            inside[name] = Binding(held, binding.loc, binding.declared)
        return inside

    def initial(self, scope: Scope) -> list[Tile]:
        """What the carried places hold before the loop."""
        return [element(scope[name].value, path) for name, path in self.places]

    def next(self, after: Scope) -> list[Tile]:
        """What they hold at the end of the body."""
        return [to_tile(element(after[name].value, path)) for name, path in self.places]

    def leave(self, scope: Scope, after: Scope, results: Sequence[Value]) -> Scope:
        """The variables after the loop: those first assigned inside have no value there."""
        outside = self.enter(scope, results)
        for name in after:
            before = scope.get(name)
            if before is None or not before.is_set:
                outside[name] = Binding(Unset.by(self.construct))
        for name in self.hidden:
            hint = f"the variable of a {self.construct} ends with it: copy it inside to another one"
            outside[name] = Binding(Unset(hint))
        for name, _ in self.places:
            outside[name].loc = after[name].loc
        return outside

    def discover(self, scope: Scope, inside: Scope, after: Scope) -> bool:
        """Add the places that differ at the end of the body; returns whether there are new ones.

        ``scope`` holds the variables before the loop, where numbers that the loop changes become
        tiles. ``inside`` and ``after`` hold them at the start and the end of the body. Raises E0401
        for a value that changes its type or can't change.
        """
        found = False
        for name, before in scope.items():
            binding = after.get(name)
            entry = inside[name]
            if name in self.hidden or binding is entry or binding is None or not before.is_set:
                continue
            found |= self._compare(name, scope, entry, binding)
        return found

    def _compare(self, name: str, scope: Scope, entry: Binding, after: Binding) -> bool:
        old, new = list(leaves(entry.value)), list(leaves(after.value))
        if not after.is_set or kinds(entry.value) != kinds(after.value):
            raise self._unstable(name, entry.value, after)
        found = False
        for (path, left), (_, right) in zip(old, new):
            if _unchanged(left, right):
                continue
            known = self.places.get((name, path))
            type_before = known or self._start(name, path, scope, left, after)
            if type_before is not _type(right):
                raise self._unstable(name, left, after, right)
            if known is None:
                self.places[(name, path)] = type_before
                found = True
        return found

    def _start(
        self, name: str, path: tuple[int, ...], scope: Scope, left: Any, after: Binding
    ) -> Type:
        """The type of a place before the loop; a number there becomes a tile."""
        binding = scope[name]
        if not isinstance(left, Tile):
            if binding.declared or number(left) is None:
                raise self._unstable(name, left, after)
            left = to_tile(left)
            scope[name] = Binding(replaced(binding.value, path, left), binding.loc)
        made: Type = left.type
        return made

    def _unstable(self, name: str, before: Any, after: Binding, part: Any = None) -> TritiumError:
        now = after.value if part is None else part
        return error(
            "E0401",
            name=name,
            before=type_text(before),
            after="undefined" if isinstance(now, Unset) else type_text(now),
            construct=self.construct,
            loc=after.loc,
        )


def _unchanged(left: Any, right: Any) -> bool:
    if isinstance(left, Tile) and isinstance(right, Tile):
        return left.value is right.value
    return not isinstance(left, Tile) and not isinstance(right, Tile) and same(left, right)


def _type(value: Any) -> Type | None:
    """The type of a tile, or of the scalar that a number becomes; None for anything else."""
    if isinstance(value, Tile):
        return value.type
    plain = number(value)
    return None if plain is None else constant_dtype(plain)
