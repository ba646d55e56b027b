"""How a tile gets from one layout to another: renamed, shuffled, or through shared memory."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass

from . import f2
from .dims import BLOCK, LANE, PLACES, REGISTER, WARP
from .linear import LinearLayout
from .shuffle import Shuffle, crossing, plan_shuffle
from .swizzle import Arrangement, optimal_shared


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
    """Stored in shared memory by one layout and loaded by the other.

    Threads that have a bit of ``idle_lanes`` or ``idle_warps`` set hold copies of what others hold,
    and needn't store.
    """

    arrangement: Arrangement
    scope: Scope
    idle_lanes: int
    idle_warps: int

    def __str__(self) -> str:
        sides = ", ".join(
            f"{done} {side.bytes} bytes at a time in {side.wavefronts} wavefronts"
            for done, side in (
                ("stored", self.arrangement.store),
                ("loaded", self.arrangement.load),
            )
        )
        conflicts = self.arrangement.store.conflicts + self.arrangement.load.conflicts
        waits = f"{conflicts} of them conflicts, {self.scope.value}s wait"
        return f"through {self.arrangement.bytes()} bytes of shared memory: {sides}, {waits}"


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
    return conversion.arrangement.wavefronts * _WAVEFRONT_COST + _SHARED_COST


@functools.lru_cache(maxsize=1024)
def plan_conversion(
    source: LinearLayout, target: LinearLayout, element_bits: int, limit: int | None = None
) -> Conversion:
    """The cheapest way found from one distributed layout of a tile to another.

    ``element_bits`` is the size of an element in memory: 8, 16, 32 or 64. ``limit`` is the shared
    memory there is, in bytes, as for ``optimal_shared``. Raises ``ValueError`` if the layouts hold
    different tiles, a register holds a copy, or elements would change blocks.
    """
    _check(source, target, element_bits)
    places = target.invert_and_compose(source)
    crossed = crossing(places)
    if crossed == BLOCK:
        raise ValueError("elements would move between the blocks of a cluster")
    if crossed == REGISTER:
        return Rename(places.keep_outputs([REGISTER]).images(REGISTER))
    # A warp that stores and loads nothing of another's needs to wait for nobody else.
    inside = [b for name in (REGISTER, LANE) for b in source.bases(name)]
    apart = f2.rank([*inside, *source.bases(WARP)]) == f2.rank(inside) + source.input_bits(WARP)
    shared = ThroughShared(
        arrangement=optimal_shared(source, target, element_bits, limit),
        scope=Scope.WARP if apart and crossed == LANE else Scope.BLOCK,
        idle_lanes=source.copies(LANE),
        idle_warps=source.copies(WARP),
    )
    by_block = any(places.keep_outputs([REGISTER, LANE]).bases(BLOCK))
    if crossed == WARP or by_block:
        return shared
    shuffled = plan_shuffle(places, element_bits)
    fits = limit is None or shared.arrangement.passes_within(limit) is not None
    return shared if fits and cost(shared) < cost(shuffled) else shuffled


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
