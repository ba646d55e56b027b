"""How a tile gets from one layout to another: renamed, shuffled, or through shared memory."""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from . import f2
from .banks import SharedAccess
from .dims import BLOCK, LANE, PLACES, REGISTER, WARP
from .linear import LinearLayout
from .shuffle import Shuffle, plan_shuffle
from .swizzle import optimal_shared


class Scope(enum.Enum):
    """The threads that wait for each other between storing and loading."""

    WARP = "warp"
    BLOCK = "block"


@dataclass(frozen=True)
class Rename:
    """Every thread has what it needs: its register r takes what was in ``sources[r]``."""

    sources: tuple[int, ...]

    @property
    def is_nothing(self) -> bool:
        """Whether not even a name changes."""
        return self.sources == tuple(range(len(self.sources)))

    def __str__(self) -> str:
        return "nothing moves" if self.is_nothing else f"{len(self.sources)} registers renamed"


@dataclass(frozen=True)
class ThroughShared:
    """Stored by one layout and loaded by the other.

    ``shared`` maps offsets, in elements, to axes. Each block of threads has memory of its own, in
    which the low ``offset_bits`` bits of an offset count; those above only tell blocks apart.

    The top ``repeatable`` of the bits that count are told apart by registers alone, on both sides:
    the accesses whose ``vectors.offsets`` agree there can be done together and then the next ones,
    in the same memory, with waits in between.

    Threads that have a bit of ``idle_lanes`` or ``idle_warps`` set hold copies of what others hold,
    and needn't store.
    """

    shared: LinearLayout
    element_bits: int
    store: SharedAccess
    load: SharedAccess
    scope: Scope
    offset_bits: int
    repeatable: int
    idle_lanes: int
    idle_warps: int

    def bytes(self, passes: int = 1) -> int:
        """The shared memory needed when done in that many passes.

        Raises ``ValueError`` unless that is a power of two of at most ``2**repeatable``.
        """
        if passes < 1 or passes & (passes - 1) or passes > 1 << self.repeatable:
            raise ValueError(
                f"{passes} passes are not possible, at most {1 << self.repeatable} are"
            )
        return (1 << self.offset_bits) * self.element_bits // 8 // passes

    def passes_within(self, limit: int) -> int | None:
        """The fewest passes that need no more than ``limit`` bytes, None if there are none."""
        for bit in range(self.repeatable + 1):
            if self.bytes(1 << bit) <= limit:
                return 1 << bit
        return None

    def __str__(self) -> str:
        sides = ", ".join(
            f"{done} {side.bytes} bytes at a time in {side.wavefronts} wavefronts"
            for done, side in (("stored", self.store), ("loaded", self.load))
        )
        conflicts = self.store.conflicts + self.load.conflicts
        waits = f"{conflicts} of them conflicts, {self.scope.value}s wait"
        return f"through {self.bytes()} bytes of shared memory: {sides}, {waits}"


Conversion = Rename | Shuffle | ThroughShared


# Instructions per cycle and multiprocessor, for a warp: shuffle 1, wavefront of shared memory 1,
# select 2 (CUDA C++ Programming Guide, "Arithmetic Instructions", compute capability 8.0 and 9.0).
# The last stands for a wait, a round trip to shared memory and address arithmetic: an estimate.
_SHUFFLE_COST = 2
_SELECT_COST = 1
_WAVEFRONT_COST = 2
_SHARED_COST = 48


def cost(conversion: Conversion) -> int:
    """What a warp's conversion costs, in half cycles of a multiprocessor: an estimate."""
    if isinstance(conversion, Rename):
        return 0
    if isinstance(conversion, Shuffle):
        return conversion.shuffles * _SHUFFLE_COST + conversion.selects * _SELECT_COST
    wavefronts = conversion.store.wavefronts + conversion.load.wavefronts
    return wavefronts * _WAVEFRONT_COST + _SHARED_COST


def crossing(places: LinearLayout) -> str:
    """The outermost kind of place that elements change: block, warp, lane or register.

    ``places`` maps places of a target to those of a source. ``lane`` also where nothing leaves its
    thread but each picks its registers by its own number.
    """
    for name in (BLOCK, WARP, LANE):
        kept = places.keep_outputs([name])
        for input, bases in kept.inputs:
            stay = tuple(1 << i for i in range(len(bases)))
            if bases != (stay if input == name else (0,) * len(bases)):
                return name
    registers = places.keep_outputs([REGISTER])
    threads = (registers.bases(name) for name in (LANE, WARP, BLOCK))
    return LANE if any(map(any, threads)) else REGISTER


@functools.lru_cache(maxsize=1024)
def plan_conversion(source: LinearLayout, target: LinearLayout, element_bits: int) -> Conversion:
    """The cheapest way found from one distributed layout of a tile to another.

    ``element_bits`` is the size of an element in memory: 8, 16, 32 or 64. Raises ``ValueError`` if
    the layouts hold different tiles, a register holds a copy, or elements would change blocks.
    """
    _check(source, target, element_bits)
    places = target.invert_and_compose(source)
    crossed = crossing(places)
    if crossed == BLOCK:
        raise ValueError("elements would move between the blocks of a cluster")
    if crossed == REGISTER:
        return Rename(places.keep_outputs([REGISTER]).images(REGISTER))
    shared = _through_shared(source, target, element_bits, crossed)
    shuffled = plan_shuffle(places, element_bits) if crossed == LANE else None
    if shuffled is not None and cost(shuffled) <= cost(shared):
        return shuffled
    return shared


def _check(source: LinearLayout, target: LinearLayout, element_bits: int) -> None:
    if element_bits not in (8, 16, 32, 64):
        raise ValueError(f"elements have 8, 16, 32 or 64 bits, not {element_bits}")
    if source.outputs != target.outputs:
        raise ValueError(f"a tile of {source.shape} can't become one of {target.shape}")
    for name in (LANE, WARP, BLOCK):
        if source.input_bits(name) != target.input_bits(name):
            raise ValueError(f"the layouts have different numbers of each {name}")
    for layout in (source, target):
        if not set(layout.input_names) <= set(PLACES):
            raise ValueError(f"{layout.input_names} are not places")
        registers = layout.bases(REGISTER)
        if f2.rank(registers) < len(registers):
            raise ValueError(f"a register of a thread holds a copy of another:\n{layout}")


def _through_shared(
    source: LinearLayout, target: LinearLayout, element_bits: int, crossed: str
) -> ThroughShared:
    shared, store, load = optimal_shared(source, target, element_bits)
    # A warp that stores and loads nothing of another's needs to wait for nobody else.
    inside = [b for name in (REGISTER, LANE) for b in source.bases(name)]
    apart = f2.rank([*inside, *source.bases(WARP)]) == f2.rank(inside) + source.input_bits(WARP)
    used = _reached(store, load, (REGISTER, LANE, WARP)).bit_length()
    shared_by_threads = _reached(store, load, (LANE, WARP, BLOCK)) & ((1 << used) - 1)
    in_access = max(store.width, load.width) - 1
    return ThroughShared(
        shared=shared,
        element_bits=element_bits,
        store=store,
        load=load,
        scope=Scope.WARP if apart and crossed == LANE else Scope.BLOCK,
        offset_bits=used,
        repeatable=used - (shared_by_threads | in_access).bit_length(),
        idle_lanes=source.copies(LANE),
        idle_warps=source.copies(WARP),
    )


def _reached(store: SharedAccess, load: SharedAccess, inputs: Sequence[str]) -> int:
    """The offset bits that those inputs have a part in, on either side."""
    reached = 0
    for side in (store, load):
        for name in inputs:
            for basis in side.offsets.bases(name):
                reached |= basis
    return reached
