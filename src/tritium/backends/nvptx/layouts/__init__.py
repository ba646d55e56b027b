"""Linear layouts: which register of which thread holds which element of a tile.

``Blocked(...).layout(shape)`` and its like make layouts, ``shapes`` has what operations do to them,
``plan_conversion`` says how a tile gets from one to another, ``draw`` shows who holds what. Shapes
of layouts are powers of two; ``Extents`` keeps the logical ones beside them. Everything is Python
ints, and nothing here needs a compiler or a driver. ``design/0004-layouts.md`` has the reasons.
"""

from __future__ import annotations

from . import f2, shapes
from .banks import SharedAccess
from .convert import Conversion, Rename, Scope, ThroughShared, cost, plan_conversion
from .dims import BLOCK, LANE, OFFSET, PLACES, REGISTER, THREADS_PER_WARP, TRIP, WARP, axes, axis
from .draw import draw
from .encodings import Blocked, Encoding, SharedAtoms, SharedRows, Sliced, fit
from .extents import Extents, Holding, reshape_keeps_index
from .linear import LinearLayout
from .shuffle import Exchange, Round, Shuffle, crossing, plan_shuffle
from .swizzle import Arrangement, optimal_shared
from .trips import in_trips
from .vectors import Vectors, global_vectors, split_offsets, vector_width, vectorise

__all__ = [
    "BLOCK",
    "LANE",
    "OFFSET",
    "PLACES",
    "REGISTER",
    "THREADS_PER_WARP",
    "TRIP",
    "WARP",
    "Arrangement",
    "Blocked",
    "Conversion",
    "Encoding",
    "Exchange",
    "Extents",
    "Holding",
    "LinearLayout",
    "Rename",
    "Round",
    "Scope",
    "SharedAccess",
    "SharedAtoms",
    "SharedRows",
    "Shuffle",
    "Sliced",
    "ThroughShared",
    "Vectors",
    "axes",
    "axis",
    "cost",
    "crossing",
    "draw",
    "f2",
    "fit",
    "global_vectors",
    "in_trips",
    "optimal_shared",
    "plan_conversion",
    "plan_shuffle",
    "reshape_keeps_index",
    "shapes",
    "split_offsets",
    "vector_width",
    "vectorise",
]
