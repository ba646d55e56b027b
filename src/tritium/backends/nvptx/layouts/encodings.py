"""Families of layouts, by a few numbers that don't depend on a tile's shape.

An encoding makes the layout of every shape of its rank. Shapes here are physical: powers of two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import mul
from typing import Protocol

from .dims import BLOCK, LANE, OFFSET, REGISTER, THREADS_PER_WARP, WARP, axes, axis, log2
from .linear import LinearLayout
from .shapes import slice_axis


class Encoding(Protocol):
    """What makes layouts: from places, or from offsets in shared memory, to axes of a tile."""

    @property
    def rank(self) -> int:
        """The number of axes."""

    def layout(self, shape: Sequence[int]) -> LinearLayout:
        """The layout of a tile of that shape, powers of two.

        Raises ``ValueError`` for a shape of another rank or with other extents.
        """


def _listed(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _check(encoding: Encoding, shape: Sequence[int]) -> None:
    if len(shape) != encoding.rank:
        raise ValueError(f"{encoding} has {encoding.rank} axes, the shape {tuple(shape)} has not")


def _check_order(order: Sequence[int]) -> None:
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"the order {tuple(order)} doesn't name each axis once")


def _counted(input: str, extents: Sequence[int], order: Sequence[int]) -> LinearLayout:
    """``input`` counts through a box of those extents, along ``order[0]`` first."""
    factors = (LinearLayout.identity(extents[number], input, axis(number)) for number in order)
    return reduce(mul, factors, LinearLayout.zeros(1, input))


def fit(layout: LinearLayout, shape: Sequence[int], order: Sequence[int]) -> LinearLayout:
    """A layout of one box repeated, or cut, to a tile of powers of two.

    An axis that is larger than the box gets registers, above those there are and along ``order[0]``
    first. Positions outside the tile fall on those inside: the bases become 0, and registers that
    would hold copies go.
    """
    larger = [
        max(1, shape[number] // layout.output_extent(axis(number))) for number in range(len(shape))
    ]
    whole = (layout * _counted(REGISTER, larger, order)).order_outputs(
        [axis(number) for number in range(len(shape))]
    )
    outputs = axes(shape)
    cut = LinearLayout((), outputs)
    inside = [(1 << width) - 1 for _, width in outputs]
    inputs = []
    for name, bases in whole.inputs:
        kept = ([c & mask for c, mask in zip(whole.unpack(basis), inside)] for basis in bases)
        inputs.append((name, tuple(map(cut.pack, kept))))
    return LinearLayout(tuple(inputs), outputs).without_copies(REGISTER)


@dataclass(frozen=True)
class Blocked:
    """Boxes of elements in a thread, of threads in a warp, of warps in a block of threads.

    Each field has a number for each axis; ``order`` lists the axes, the fastest first. A tile that
    is larger is covered by repeating the whole, in more registers; in a smaller one several threads
    hold the same element. ``blocks_per_cluster`` cuts the tile into one part for each block of a
    cluster; without it there is one block.
    """

    size_per_thread: tuple[int, ...]
    threads_per_warp: tuple[int, ...]
    warps_per_block: tuple[int, ...]
    order: tuple[int, ...]
    blocks_per_cluster: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_order(self.order)
        for numbers in (
            self.size_per_thread,
            self.threads_per_warp,
            self.warps_per_block,
            self.blocks_per_cluster or self.warps_per_block,
        ):
            if len(numbers) != self.rank:
                raise ValueError(f"{numbers} should have {self.rank} numbers, as the order has")
            for number in numbers:
                log2(number)
        if math.prod(self.threads_per_warp) != THREADS_PER_WARP:
            raise ValueError(f"a warp has {THREADS_PER_WARP} threads, not {self.threads_per_warp}")

    @property
    def rank(self) -> int:
        return len(self.order)

    @classmethod
    def covering(
        cls, shape: Sequence[int], order: Sequence[int], per_thread: int, warps: int
    ) -> Blocked:
        """Threads, then warps, along the fastest axis as far as it goes, then along the next.

        A thread holds ``per_thread`` neighbours along ``order[0]``, or as many as there are, so
        that a warp reads a piece of memory without gaps. What is left over when the tile ends goes
        to the last axis. Raises ``ValueError`` for numbers that are no powers of two.
        """
        sizes = [1] * len(shape)
        sizes[order[0]] = min(per_thread, shape[order[0]])
        left = [extent // size for extent, size in zip(shape, sizes)]
        boxes = []
        for count in (THREADS_PER_WARP, warps):
            box = [1] * len(shape)
            for number in order:
                box[number] = count if number == order[-1] else min(count, left[number])
                left[number] = max(1, left[number] // box[number])
                count //= box[number]
            boxes.append(tuple(box))
        return cls(tuple(sizes), boxes[0], boxes[1], tuple(order))

    def layout(self, shape: Sequence[int]) -> LinearLayout:
        return _blocked(self, tuple(shape))

    def __str__(self) -> str:
        boxes = (self.size_per_thread, self.threads_per_warp, self.warps_per_block)
        parts = [*map(_listed, boxes), f"order {_listed(self.order)}"]
        if self.blocks_per_cluster:
            parts.append(f"blocks {_listed(self.blocks_per_cluster)}")
        return f"blocked({', '.join(parts)})"


@lru_cache(maxsize=1024)
def _blocked(encoding: Blocked, shape: tuple[int, ...]) -> LinearLayout:
    _check(encoding, shape)
    order = encoding.order
    blocks = encoding.blocks_per_cluster or (1,) * encoding.rank
    share = [max(1, extent // count) for extent, count in zip(shape, blocks)]
    box = (
        _counted(REGISTER, encoding.size_per_thread, order)
        * _counted(LANE, encoding.threads_per_warp, order)
        * _counted(WARP, encoding.warps_per_block, order)
    )
    return fit(fit(box, share, order) * _counted(BLOCK, blocks, order), shape, order)


@dataclass(frozen=True)
class Sliced:
    """``parent`` without axis ``axis``: where a reduction along it leaves its result.

    Also what ``expand_dims`` of that axis turns into ``parent``.
    """

    parent: Encoding
    axis: int

    def __post_init__(self) -> None:
        if not 0 <= self.axis < self.parent.rank:
            raise ValueError(f"{self.parent} has no axis {self.axis}")

    @property
    def rank(self) -> int:
        return self.parent.rank - 1

    def layout(self, shape: Sequence[int]) -> LinearLayout:
        _check(self, shape)
        whole = (*shape[: self.axis], 1, *shape[self.axis :])
        return slice_axis(self.parent.layout(whole), self.axis)

    def __str__(self) -> str:
        return f"slice({self.parent}, axis {self.axis})"


@dataclass(frozen=True)
class SharedRows:
    """Shared memory in the order of the axes, ``order[0]`` the fastest, swizzled by rows.

    Groups of ``vector`` elements of a row change places: group g of row r lies where g XOR
    (r // per_phase) % max_phase would. With ``max_phase`` 1 nothing is swizzled.
    """

    order: tuple[int, ...]
    vector: int = 1
    per_phase: int = 1
    max_phase: int = 1

    def __post_init__(self) -> None:
        _check_order(self.order)
        for number in (self.vector, self.per_phase, self.max_phase):
            log2(number)

    @property
    def rank(self) -> int:
        return len(self.order)

    def layout(self, shape: Sequence[int]) -> LinearLayout:
        _check(self, shape)
        plain = _counted(OFFSET, shape, self.order)
        names = [axis(number) for number in range(self.rank)]
        if self.rank < 2 or self.max_phase == 1:
            return plain.order_outputs(names)
        columns, rows = shape[self.order[0]], shape[self.order[1]]
        phases = (
            self.vector * (row // self.per_phase % self.max_phase) % columns
            for row in (1 << bit for bit in range(log2(rows)))
        )
        return _swizzled(plain, names, self.order, log2(columns), list(phases))

    def __str__(self) -> str:
        numbers = f"vector {self.vector}, per phase {self.per_phase}, phases {self.max_phase}"
        return f"shared(order {_listed(self.order)}, {numbers})"


def _swizzled(
    plain: LinearLayout, names: Sequence[str], order: Sequence[int], first: int, phases: list[int]
) -> LinearLayout:
    """Add ``phases[j]`` to the column of the basis of row 2**j, at offset bit ``first + j``."""
    layout = plain.order_outputs(names)
    bases = list(layout.bases(OFFSET))
    for bit, phase in enumerate(phases):
        coordinates = [0] * len(names)
        coordinates[order[0]] = phase
        bases[first + bit] ^= layout.pack(coordinates)
    return layout.with_bases(OFFSET, bases)


@dataclass(frozen=True)
class SharedAtoms:
    """Shared memory in the atoms of the tensor cores and of bulk tensor copies.

    An atom is 8 rows of ``swizzle_bytes`` (32, 64 or 128), in which 16-byte groups change places:
    the byte offset is XORed with ``(offset >> 7) % (swizzle_bytes / 16) << 4``. A row that is
    longer is cut into panels, one after the other. Rows are along ``order[0]``.

    Source: the PTX ISA, "Shared Memory Matrix Layout" and "Tensor Swizzling Modes".
    """

    order: tuple[int, ...]
    element_bits: int
    swizzle_bytes: int

    def __post_init__(self) -> None:
        _check_order(self.order)
        if self.swizzle_bytes not in (32, 64, 128):
            raise ValueError(f"a swizzle is of 32, 64 or 128 bytes, not {self.swizzle_bytes}")
        if self.element_bits not in (8, 16, 32, 64) or self.rank < 2:
            raise ValueError(f"{self} is not for {self.rank} axes of {self.element_bits} bits")

    @property
    def rank(self) -> int:
        return len(self.order)

    def layout(self, shape: Sequence[int]) -> LinearLayout:
        _check(self, shape)
        panel = self.swizzle_bytes * 8 // self.element_bits
        fastest, second = self.order[:2]
        if shape[fastest] < panel:
            raise ValueError(f"a row of {shape[fastest]} elements is shorter than one of {self}")
        names = [axis(number) for number in range(self.rank)]
        inner = [1] * self.rank
        inner[fastest], inner[second] = panel, shape[second]
        outer = [extent // covered for extent, covered in zip(shape, inner)]
        plain = _counted(OFFSET, inner, self.order) * _counted(OFFSET, outer, self.order)
        group = 128 // self.element_bits
        groups = self.swizzle_bytes // 16
        phases = [
            (self.swizzle_bytes << bit >> 7) % groups * group for bit in range(log2(shape[second]))
        ]
        return _swizzled(plain, names, self.order, log2(panel), phases)

    def __str__(self) -> str:
        return f"shared atoms({self.swizzle_bytes} bytes, order {_listed(self.order)})"
