"""Shared memory as the hardware serves it: phases of lanes, banks, wavefronts.

Shared memory has 32 banks of 4 bytes. An access of up to 4 bytes a lane is served for the whole
warp at once; one of 8 bytes for the lanes 0 to 15 and then the others; one of 16 bytes for 8 lanes
at a time. In each such *phase* a bank serves one word, to as many lanes as want it; every further
word wanted from the same bank costs one more pass, a *wavefront*.

Source: the CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from . import f2
from .dims import LANE, OFFSET, REGISTER, THREADS_PER_WARP, log2
from .linear import LinearLayout
from .vectors import MAXIMAL_VECTOR_BYTES, Vectors, vector_width, vectorise

BANKS = 32
WORD_BYTES = 4
ROW_BYTES = BANKS * WORD_BYTES
"""The bytes that one wavefront can serve."""


def phases(access_bytes: int) -> int:
    """Into how many phases a warp's access of that many bytes a lane is split."""
    return max(1, access_bytes * THREADS_PER_WARP // ROW_BYTES)


def phase_bits(access_bytes: int) -> int:
    """The number of bits that count the lanes of one phase."""
    return log2(THREADS_PER_WARP // phases(access_bytes))


def wavefronts_per_phase(offsets: LinearLayout, element_bits: int, width: int) -> int:
    """The wavefronts of one phase of an access of ``width`` elements a lane; 1 is no conflict.

    ``offsets`` maps places to element offsets. The words of a phase are the span of its lanes'
    bases, and so are their banks, so every bank that is wanted is wanted for equally many words: 2
    to the difference of the ranks. Warp and register move all of it alike.
    """
    access_bytes = width * element_bits // 8
    lanes = offsets.keep_outputs([OFFSET]).bases(LANE)[: phase_bits(access_bytes)]
    words = [basis * element_bits // 8 // max(WORD_BYTES, access_bytes) for basis in lanes]
    groups = ROW_BYTES // max(WORD_BYTES, access_bytes)
    return 1 << (f2.rank(words) - f2.rank(word % groups for word in words))


@dataclass(frozen=True)
class SharedAccess:
    """All accesses of one side of a conversion: ``offsets`` maps its places to element offsets."""

    offsets: LinearLayout
    element_bits: int
    width: int
    """The elements of one access."""

    @classmethod
    def of(cls, layout: LinearLayout, shared: LinearLayout, element_bits: int) -> SharedAccess:
        """How places of ``layout`` access a tile that lies in ``shared``, as wide as they can."""
        offsets = layout.invert_and_compose(shared)
        limit = max(1, MAXIMAL_VECTOR_BYTES * 8 // element_bits)
        return cls(offsets, element_bits, vector_width(offsets, limit))

    @cached_property
    def vectors(self) -> Vectors:
        """The accesses of a thread."""
        return vectorise(self.offsets, self.width)

    @property
    def bytes(self) -> int:
        """The bytes that one access moves for each lane."""
        return self.width * self.element_bits // 8

    @property
    def instructions(self) -> int:
        """The accesses of one thread."""
        return self.offsets.input_extent(REGISTER) // self.width

    @property
    def wavefronts_per_phase(self) -> int:
        """1 if no two lanes of a phase want different words of one bank."""
        return wavefronts_per_phase(self.offsets, self.element_bits, self.width)

    @property
    def wavefronts(self) -> int:
        """The wavefronts of one warp for all its accesses."""
        return self.instructions * phases(self.bytes) * self.wavefronts_per_phase

    @property
    def conflicts(self) -> int:
        """The wavefronts of one warp that conflicts add."""
        return self.instructions * phases(self.bytes) * (self.wavefronts_per_phase - 1)
