"""The arrangement of a tile in shared memory that two layouts can best be converted through.

Offsets are built from the low bits up: V, what one access moves; B, the rest of one row of banks;
S, the rows. Two lanes of a phase meet in a bank when their difference lies in the span of V and S
but not of V; so S should meet the span of neither side's lanes. Where a lane of one side and a lane
of the other are both needed elsewhere, their XOR serves both: that is the swizzle.

Between layouts whose bases are one bit of one axis each, as every encoding's are, no linear
arrangement takes fewer wavefronts. Others get a valid one, which may not be the best.

Source: the optimal swizzling of the paper named in ``linear``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import f2
from .banks import ROW_BYTES, SharedAccess, phase_bits
from .dims import BLOCK, LANE, OFFSET, REGISTER, WARP, log2
from .linear import LinearLayout
from .vectors import MAXIMAL_VECTOR_BYTES


@dataclass(frozen=True)
class Arrangement:
    """A tile in shared memory, how one layout stores it and how another loads it.

    ``shared`` maps offsets, in elements, to axes, one to one. Each block of threads has memory of
    its own, in which the low ``offset_bits`` bits of an offset count; those above only tell blocks
    apart. The top ``repeatable`` of the bits that count are told apart by registers alone, on both
    sides: the accesses whose ``vectors.offsets`` agree there can be done together and then the next
    ones, in the same memory, with waits in between. That is a *pass*.
    """

    shared: LinearLayout
    element_bits: int
    store: SharedAccess
    load: SharedAccess
    offset_bits: int
    repeatable: int

    @classmethod
    def of(
        cls, source: LinearLayout, target: LinearLayout, shared: LinearLayout, element_bits: int
    ) -> Arrangement:
        """What conversions through any invertible layout from offsets to axes are like."""
        store = SharedAccess.of(source, shared, element_bits)
        load = SharedAccess.of(target, shared, element_bits)
        used = _reached(store, load, (REGISTER, LANE, WARP)).bit_length()
        by_threads = _reached(store, load, (LANE, WARP, BLOCK)) & ((1 << used) - 1)
        within_access = max(store.width, load.width) - 1
        repeatable = used - (by_threads | within_access).bit_length()
        return cls(shared, element_bits, store, load, used, repeatable)

    @property
    def wavefronts(self) -> int:
        """The wavefronts of one warp, storing and loading."""
        return self.store.wavefronts + self.load.wavefronts

    @property
    def instructions(self) -> int:
        """The accesses of one thread, storing and loading."""
        return self.store.instructions + self.load.instructions

    def bytes(self, passes: int = 1) -> int:
        """The shared memory of a block when done in that many passes.

        Raises ``ValueError`` unless that is a power of two of at most ``2**repeatable``.
        """
        if passes < 1 or passes & (passes - 1) or passes > 1 << self.repeatable:
            raise ValueError(f"{passes} passes can't be made, at most {1 << self.repeatable} can")
        return (1 << self.offset_bits) * self.element_bits // 8 // passes

    def passes_within(self, limit: int) -> int | None:
        """The fewest passes that need no more than ``limit`` bytes, None if none do."""
        counts = (1 << bit for bit in range(self.repeatable + 1))
        return next((passes for passes in counts if self.bytes(passes) <= limit), None)


def _reached(store: SharedAccess, load: SharedAccess, inputs: Sequence[str]) -> int:
    """The offset bits that those inputs have a part in, on either side."""
    reached = 0
    for side in (store, load):
        for name in inputs:
            for basis in side.offsets.bases(name):
                reached |= basis
    return reached


def optimal_shared(
    source: LinearLayout, target: LinearLayout, element_bits: int, limit: int | None = None
) -> Arrangement:
    """The best arrangement found, by wavefronts, then instructions.

    With a ``limit`` the best of those that need no more bytes, in as many passes as they can, and
    the smallest if none does: bits that both sides hold in registers then go to the top rather than
    into an access.

    Raises ``ValueError`` unless both layouts hold the same tile and no register holds a copy.
    """
    if source.outputs != target.outputs:
        raise ValueError(f"layouts of {source.outputs} and {target.outputs}")
    blocks = _common(source, target, BLOCK)
    most = log2(MAXIMAL_VECTOR_BYTES * 8 // element_bits)
    common = f2.Span(blocks).extend(_common(source, target, REGISTER), most)
    smallest: Arrangement | None = None
    for count in range(len(common), -1, -1):
        found = [
            Arrangement.of(source, target, _arrange(source, target, element_bits, v), element_bits)
            for v in _vectors(source, target, common[:count], most)
        ]
        fitting = [a for a in found if limit is None or a.passes_within(limit) is not None]
        if fitting:
            return min(fitting, key=lambda a: (a.wavefronts, a.instructions))
        candidates = found if smallest is None else [smallest, *found]
        smallest = min(candidates, key=lambda a: a.bytes(1 << a.repeatable))
    assert smallest is not None
    return smallest


def _common(source: LinearLayout, target: LinearLayout, input: str) -> list[int]:
    """A basis of what both reach by that input."""
    return f2.intersection(source.bases(input), target.bases(input))


def _vectors(
    source: LinearLayout, target: LinearLayout, common: list[int], most: int
) -> Iterator[list[int]]:
    """Candidates for V: ``common``, held in registers by both, then also registers of one side.

    A register of one side that is a lane of the other comes first, a low lane before a high one:
    the lanes of a phase then share words, which costs the other side nothing.
    """
    yield common
    apart = f2.Span([*_common(source, target, BLOCK), *_common(source, target, REGISTER)])
    for mine, theirs in ((source, target), (target, source)):
        registers = [basis for basis in mine.bases(REGISTER) if basis not in apart]
        lanes = [basis for basis in theirs.bases(LANE) if basis in registers]
        others = [basis for basis in registers if basis not in lanes]
        fixed = f2.Span([*_common(source, target, BLOCK), *common])
        added = fixed.extend([*lanes, *others], most - len(common))
        yield from ([*common, *added[: i + 1]] for i in range(len(added)))


def _tile(layout: LinearLayout, vector: list[int], element_bits: int) -> tuple[int, ...]:
    """The bases of the lanes of one phase."""
    registers = f2.Span(layout.bases(REGISTER))
    width = 1
    for basis in vector:
        if basis not in registers:
            break
        width *= 2
    return layout.bases(LANE)[: phase_bits(width * element_bits // 8)]


def _arrange(
    source: LinearLayout, target: LinearLayout, element_bits: int, vector: list[int]
) -> LinearLayout:
    """The best shared layout whose low offset bits are ``vector``."""
    blocks = _common(source, target, BLOCK)
    fixed = [*vector, *blocks]
    row = max(len(vector), log2(ROW_BYTES * 8 // element_bits))
    wanted = max(0, source.total_output_bits - len(blocks) - row)
    every = [*source.columns, *target.columns]
    every += [1 << position for position in range(source.total_output_bits)]
    left = f2.Span(fixed).extend(_tile(source, vector, element_bits))
    right = f2.Span(fixed).extend(_tile(target, vector, element_bits))
    both = f2.Span(fixed).extend(f2.intersection([*left, *fixed], [*right, *fixed]))
    only_left = f2.Span([*fixed, *both]).extend(left)
    only_right = f2.Span([*fixed, *both]).extend(right)
    neither = f2.Span([*fixed, *left, *right]).extend(every)
    pairs = [a ^ b for a, b in zip(only_left, only_right)]
    # Enough if a phase of each side fits into one row of banks; else lanes end up in rows as well.
    rows = f2.Span(fixed).extend([*neither, *pairs], wanted)
    banks = f2.Span([*fixed, *rows]).extend([*left, *right, *every])
    in_registers = f2.Span(_common(source, target, REGISTER))
    rows.sort(key=in_registers.__contains__)
    return LinearLayout(((OFFSET, (*vector, *banks, *rows, *blocks)),), source.outputs)
