"""What a launch went through, written down for native code: see ``layout.Entry``."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritium.backends.host import layout
from tritium.backends.host.layout import WORD
from tritium.frontend.fingerprint import is_missing
from tritium.frontend.specialize import ConstantSpec, Parameter, ScalarSpec
from tritium.runtime import placement
from tritium.runtime.arrays import CPU
from tritium.runtime.binder import Bound

from . import arguments
from .arguments import Described, Unusual
from .guards import Watched, watched
from .process import process

if TYPE_CHECKING:
    from tritium.runtime.compiled import CompiledKernel

_MASK = (1 << 64) - 1


class Entry:
    """A launch that went well, as native code reads it.

    ``key`` is equal for launches that native code doesn't tell apart: the newest of them counts.
    ``memory`` are the bytes, ``address`` is where they are.
    """

    def __init__(
        self,
        serial: int,
        bound: Bound,
        compiled: CompiledKernel,
        rules: Mapping[str, Parameter],
        given: Sequence[tuple[str, Any]],
        positional: int,
    ) -> None:
        """``given`` are the arguments in order by name, of which so many have come by position.

        ``serial`` numbers the settings, ``rules`` are the kernel's. Raises ``Unusual`` for what
        native code doesn't know.
        """
        leaves = list(bound.leaves())
        slots = {name: place for place, (name, _, _) in enumerate(leaves)}
        places = {name: place for place, (name, _) in enumerate(given)}
        _refuse(bound, slots, places)
        version = compiled.code.linked(True)
        assert version is not None
        self._place = _place(bound, compiled)
        written = frozenset(leaves[index][0] for index in version.kernel.written)
        described = [
            arguments.describe(bound, rules, written, name, value) for name, value in given
        ]
        names = [name for name, _ in given[positional:]]
        self.key = (serial, positional, tuple(names), tuple(each[:5] for each in described))
        by_slot = {slot: places[name] for name, slot in slots.items() if name in places}
        guards = watched(compiled.dependencies)
        defaults = {name: value for name, value in bound.values.items() if name not in places}
        # What the bytes point to.
        self._kept = (compiled, names, [*bound.values], described, guards, defaults)
        offsets = [slots.get(name) for name, _ in given]
        sections: dict[int, Iterable[Sequence[int]]] = {
            layout.Entry.NAMES: ([id(name)] for name in names),
            layout.Entry.ARGUMENTS: map(_argument, described, offsets),
            layout.Entry.TEMPLATE: [compiled.code.words([value for _, _, value in leaves])],
            layout.Entry.PAIRS: (
                [by_slot[one], by_slot[two]] for one, two in version.kernel.alias_pairs
            ),
            layout.Entry.GUARDS: map(_guard, guards),
            layout.Entry.PARAMETERS: (
                [id(name), places.get(name, -1), id(value) if name in defaults else 0]
                for name, value in bound.values.items()
            ),
        }
        numbers = {
            layout.Entry.SERIAL: serial,
            layout.Entry.POSITIONAL: positional,
            layout.Entry.KEYWORDS: len(names),
            layout.Entry.SLOTS: len(leaves),
            layout.Entry.PAIR_COUNT: len(version.kernel.alias_pairs),
            layout.Entry.GUARD_COUNT: len(guards),
            layout.Entry.PARAMETER_COUNT: len(bound.values),
        }
        self._write({**numbers, **self._code(compiled)}, sections)

    def _code(self, compiled: CompiledKernel) -> dict[int, int]:
        """The fields that say what is run."""
        versions = [compiled.code.linked(disjoint) for disjoint in (True, False)]
        # The other version may come to be while this entry exists.
        self._versions = versions
        disjoint, other = (0 if each is None else each.address for each in versions)
        return {
            layout.Entry.COMPILED: id(compiled),
            layout.Entry.PLACE: self._place,
            layout.Entry.DISJOINT: disjoint,
            layout.Entry.OVERLAPPING: other,
        }

    def _write(
        self, numbers: Mapping[int, int], sections: Mapping[int, Iterable[Sequence[int]]]
    ) -> None:
        flat = {field: [w for row in rows for w in row] for field, rows in sections.items()}
        size = layout.Entry.SIZE + WORD * sum(map(len, flat.values()))
        self.memory = bytearray(size)
        # An export keeps the bytes where they are.
        self._words = (ctypes.c_uint64 * (size // WORD)).from_buffer(self.memory)
        self.address = ctypes.addressof(self._words)
        for field, number in {**numbers, layout.Entry.OBJECT: id(self.memory)}.items():
            self._words[field // WORD] = number
        at = layout.Entry.SIZE
        for field, words in flat.items():
            self._words[field // WORD] = self.address + at
            for word in words:
                self._words[at // WORD] = word & _MASK
                at += WORD


def _refuse(bound: Bound, slots: Mapping[str, int], places: Mapping[str, int]) -> None:
    """Raise ``Unusual`` for a launch of a form that native code doesn't know."""
    if len(places) > layout.Entry.MOST_ARGUMENTS or len(slots) > layout.Entry.MOST_SLOTS:
        raise Unusual("too many arguments")
    for name, spec in bound.specs.items():
        if name not in places and not isinstance(spec, (ConstantSpec, ScalarSpec)):
            raise Unusual("a default that is an array or a tuple")


def _place(bound: Bound, compiled: CompiledKernel) -> int:
    """Where the code runs, as in ``layout.Fact``."""
    if not any(True for _ in bound.arrays()) and not placement.is_lasting():
        raise Unusual("no arrays, so that the device may be another one the next time")
    if not compiled.code.plain or (bound.device != CPU and not process().look_for_gpus()):
        raise Unusual("a launch that needs more than arguments and a stream")
    if bound.device == CPU:
        return 0
    return int(bound.device.partition(":")[2]) + 1


def _argument(each: Described, slot: int | None) -> tuple[int, ...]:
    """The words of ``layout.Argument``; a constant needs no slot, the template has it."""
    offset = -1 if slot is None else WORD * slot
    return (each.mode, offset, *each[1:5])


def _guard(each: Watched) -> tuple[int, ...]:
    """The words of ``layout.Guard``."""
    value = 0 if is_missing(each.value) else id(each.value)
    return (each.kind, id(each.owner), id(each.name), value)
