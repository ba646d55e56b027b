"""The arrangement of a tile in shared memory that two layouts can best be converted through.

Offsets are built from the low bits up: V, what one access moves; B, the rest of one row of banks;
S, the rows. Two lanes of a phase meet in a bank when their difference lies in the span of V and S
but not of V; so S should meet the span of neither side's lanes. Where a lane of one side and a lane
of the other are both needed elsewhere, their XOR serves both: that is the swizzle.

Source: section 5.4 of the paper named in ``linear``.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import f2
from .banks import ROW_BYTES, SharedAccess, phase_bits
from .dims import BLOCK, LANE, OFFSET, REGISTER, log2
from .linear import LinearLayout
from .vectors import MAXIMAL_VECTOR_BYTES


def optimal_shared(
    source: LinearLayout, target: LinearLayout, element_bits: int
) -> tuple[LinearLayout, SharedAccess, SharedAccess]:
    """A shared layout with the fewest wavefronts, then instructions; how it is stored and loaded.

    The layout maps ``offset`` to the axes of the tile and is invertible. At its top are bits that
    only the blocks of a cluster differ in; below them, as far as that costs nothing, bits that both
    sides hold in registers, so that the conversion can be done in parts in the same memory.

    Raises ``ValueError`` unless both layouts hold the same tile and no register holds a copy.
    """
    if source.outputs != target.outputs:
        raise ValueError(f"layouts of {source.outputs} and {target.outputs}")
    best: tuple[tuple[int, int], LinearLayout, SharedAccess, SharedAccess] | None = None
    for vector in _vectors(source, target, element_bits):
        shared = _arrange(source, target, element_bits, vector)
        store = SharedAccess.of(source, shared, element_bits)
        load = SharedAccess.of(target, shared, element_bits)
        cost = (store.wavefronts + load.wavefronts, store.instructions + load.instructions)
        if best is None or cost < best[0]:
            best = (cost, shared, store, load)
    assert best is not None
    return best[1:]


def _common(source: LinearLayout, target: LinearLayout, input: str) -> list[int]:
    """A basis of what both reach by that input."""
    return f2.intersection(source.bases(input), target.bases(input))


def _vectors(source: LinearLayout, target: LinearLayout, element_bits: int) -> Iterator[list[int]]:
    """Candidates for V: what both hold in registers, then also registers of one side.

    A register of one side that is a lane of the other comes first, a low lane before a high one:
    the lanes of a phase then share words, which costs the other side nothing.
    """
    most = max(0, log2(MAXIMAL_VECTOR_BYTES * 8 // element_bits))
    blocks = _common(source, target, BLOCK)
    common = f2.Span(blocks).extend(_common(source, target, REGISTER), most)
    yield common
    for mine, theirs in ((source, target), (target, source)):
        registers = [basis for basis in mine.bases(REGISTER) if basis not in common]
        lanes = [basis for basis in theirs.bases(LANE) if basis in registers]
        others = [basis for basis in registers if basis not in lanes]
        added = f2.Span([*blocks, *common]).extend([*lanes, *others], most - len(common))
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
    repeated = _common(source, target, REGISTER)
    neither = f2.Span([*fixed, *left, *right]).extend([*repeated, *every])
    pairs = [a ^ b for a, b in zip(only_left, only_right)]
    longer = only_left if len(only_left) > len(only_right) else only_right
    candidates = [*neither, *pairs, *longer[len(pairs) :], *both, *only_left]
    rows = f2.Span(fixed).extend(candidates, wanted)
    banks = f2.Span([*fixed, *rows]).extend([*left, *right, *every])
    in_registers = f2.Span(repeated)
    rows.sort(key=in_registers.__contains__)
    return LinearLayout(((OFFSET, (*vector, *banks, *rows, *blocks)),), source.outputs)
