"""Logical extents beside physical ones: layouts are of powers of two, tiles need not be.

The physical extent is the next power of two; what lies between the two is *padding*, which is held
by registers like any element but never read from or written to the user's memory.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from . import f2
from .dims import REGISTER
from .linear import LinearLayout


class Holding(enum.Enum):
    """What one register holds, over all threads."""

    ELEMENTS = "elements"
    PADDING = "padding"
    EITHER = "either"


@dataclass(frozen=True)
class Extents:
    """The logical extents of a tile, each at least 1."""

    logical: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(extent < 1 for extent in self.logical):
            raise ValueError(f"extents are at least 1, got {self.logical}")

    @property
    def physical(self) -> tuple[int, ...]:
        """The next power of two of each extent."""
        return tuple(1 << (extent - 1).bit_length() for extent in self.logical)

    @property
    def is_padded(self) -> bool:
        return self.physical != self.logical

    def contains(self, coordinates: Sequence[int]) -> bool:
        """Whether a physical position is an element."""
        return all(c < extent for c, extent in zip(coordinates, self.logical, strict=True))

    def holdings(self, layout: LinearLayout) -> tuple[Holding, ...]:
        """For each register of a layout of the physical shape, what the threads hold in it.

        ``EITHER`` where it depends on the thread, or can't be told axis by axis. Raises
        ``ValueError`` if the layout has another shape.
        """
        if layout.shape != self.physical:
            raise ValueError(f"a layout of {self.physical} is needed, got one of {layout.shape}")
        threads = [
            f2.Span(
                layout.unpack(b)[number]
                for name, bases in layout.inputs
                if name != REGISTER
                for b in bases
            )
            for number in range(len(self.logical))
        ]
        return tuple(
            self._holding(threads, layout.unpack(image)) for image in layout.images(REGISTER)
        )

    def _holding(self, threads: Sequence[f2.Span], coordinates: Sequence[int]) -> Holding:
        always = True
        for span, coordinate, extent in zip(threads, coordinates, self.logical):
            lowest, highest = span.bounds(coordinate)
            if lowest >= extent:
                return Holding.PADDING
            always = always and highest < extent
        return Holding.ELEMENTS if always else Holding.EITHER


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The finest cuts of two shapes into runs with equal products, extents of 1 left out."""
    left, right = ([extent for extent in shape if extent > 1] for shape in (old, new))
    groups = []
    while left or right:
        a, b = [left.pop(0)], [right.pop(0)]
        while math.prod(a) != math.prod(b):
            if math.prod(a) < math.prod(b):
                a.append(left.pop(0))
            else:
                b.append(right.pop(0))
        groups.append((a, b))
    return groups


def reshape_keeps_index(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether every element keeps its physical row-major index under another logical shape.

    Then ``shapes.reshape`` between the physical shapes is the reshape; else padding lies at other
    places, and elements have to be moved by their logical row-major index. Raises ``ValueError``
    unless both shapes have as many elements.
    """
    if math.prod(old) != math.prod(new):
        raise ValueError(f"{tuple(old)} and {tuple(new)} have not as many elements")
    return all(
        extent & (extent - 1) == 0
        for left, right in _groups(old, new)
        for extent in (*left[1:], *right[1:])
    )
