"""The names of the inputs and outputs of layouts."""

from __future__ import annotations

from collections.abc import Sequence

REGISTER = "register"
LANE = "lane"
WARP = "warp"
BLOCK = "block"
OFFSET = "offset"
"""Position in shared memory, counted in elements."""

TRIP = "trip"
"""Which part of a thread's elements, where they are worked on one part after the other."""

PLACES = (REGISTER, LANE, WARP, BLOCK)
"""Where a value is held, from the inside out: the register numbers one of a thread's elements, the
block one of a cluster's thread blocks."""

THREADS_PER_WARP = 32


def axis(number: int) -> str:
    """The output that stands for a tile's axis."""
    return f"dim{number}"


def log2(extent: int) -> int:
    """The number of bits that count to ``extent``. Raises ``ValueError`` unless a power of two."""
    if extent < 1 or extent & (extent - 1):
        raise ValueError(f"{extent} is not a power of two")
    return extent.bit_length() - 1


def axes(shape: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """The outputs of a layout of a tile: each axis with its number of bits.

    Raises ``ValueError`` unless every extent is a power of two.
    """
    return tuple((axis(number), log2(extent)) for number, extent in enumerate(shape))
