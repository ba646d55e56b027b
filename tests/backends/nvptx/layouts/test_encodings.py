"""Encodings: each element is held exactly where division and remainder say."""

from __future__ import annotations

import itertools
import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from tests.backends.nvptx.layouts import machine, random_layouts

from tritium.backends.nvptx.layouts import (
    Blocked,
    Encoding,
    SharedAtoms,
    SharedRows,
    Sliced,
    axes,
)


def digits(number: int, extents: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    """The position in a box after counting along ``order[0]`` first."""
    position = [0] * len(extents)
    for axis in order:
        position[axis] = number % extents[axis]
        number //= extents[axis]
    return position


def blocked_by_division(encoding: Blocked, shape: tuple[int, ...]) -> dict[tuple[int, ...], set]:
    """The elements of each thread (block, warp, lane), by integer arithmetic on coordinates."""
    order = encoding.order
    blocks = encoding.blocks_per_cluster or (1,) * len(order)
    boxes = (encoding.size_per_thread, encoding.threads_per_warp, encoding.warps_per_block)
    held: dict[tuple[int, ...], set] = {}
    threads = itertools.product(range(math.prod(blocks)), range(math.prod(boxes[2])), range(32))
    for block, warp, lane in threads:
        elements = set()
        per_axis = []
        for axis, extent in enumerate(shape):
            size, lanes, warps = (box[axis] for box in boxes)
            share = max(1, extent // blocks[axis])
            at = digits(block, blocks, order)[axis] * share
            start = (digits(warp, boxes[2], order)[axis] * lanes) * size
            start += digits(lane, boxes[1], order)[axis] * size
            whole = size * lanes * warps
            inside = {
                (start + step + again) % share
                for step in range(size)
                for again in range(0, max(share, 1), whole)
            }
            per_axis.append({(at + c) % extent for c in inside})
        elements |= set(itertools.product(*per_axis))
        held[block, warp, lane] = elements
    return held


@settings(max_examples=60)
@given(random_layouts.randoms)
def test_blocked_is_division_and_remainder(random: Random) -> None:
    rank = random.randint(1, 3)
    encoding = random_layouts.blocked(random, rank, random.randrange(3))
    if random.random() < 0.3:
        counts = random_layouts.shape(random, rank, random.randrange(3))
        encoding = Blocked(
            encoding.size_per_thread,
            encoding.threads_per_warp,
            encoding.warps_per_block,
            encoding.order,
            counts,
        )
    shape = random_layouts.shape(random, rank, random.randrange(10))
    layout = encoding.layout(shape)
    assert layout.outputs == axes(shape)
    values = machine.held(layout)
    for thread, elements in blocked_by_division(encoding, shape).items():
        mine = [tuple(map(int, np.unravel_index(v, shape))) for v in values[thread]]
        assert len(set(mine)) == len(mine), "a register holds a copy"
        assert set(mine) == elements


def test_registers_count_along_the_order_then_through_repeats() -> None:
    layout = Blocked((2, 2), (4, 8), (1, 1), (1, 0)).layout((16, 32))
    elements = [divmod(int(v), 32) for v in machine.held(layout)[0, 0, 0]]
    assert elements[:4] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert elements[4:8] == [(0, 16), (0, 17), (1, 16), (1, 17)]
    assert elements[8:10] == [(8, 0), (8, 1)]


@given(random_layouts.randoms)
def test_every_element_is_held_equally_often(random: Random) -> None:
    shape = random_layouts.shape(random, random.randint(1, 3), random.randrange(11))
    layout = random_layouts.of_encoding(random, shape, random.randrange(4))
    counts = np.bincount(machine.held(layout).reshape(-1), minlength=math.prod(shape))
    assert len(counts) == math.prod(shape)
    assert set(counts) == {1 << (layout.total_input_bits - layout.total_output_bits)}


@pytest.mark.parametrize("per_thread", [1, 4, 8])
@pytest.mark.parametrize("warps", [1, 4, 32])
@pytest.mark.parametrize("shape", [(1,), (4096,), (2, 8), (128, 64), (64, 1024), (8, 4, 64)])
def test_covering_follows_memory(shape: tuple[int, ...], warps: int, per_thread: int) -> None:
    """The first registers of warp 0 cover one piece of memory, lane by lane."""
    for order in itertools.permutations(range(len(shape))):
        encoding = Blocked.covering(shape, order, per_thread, warps)
        assert math.prod(encoding.warps_per_block) == warps
        layout = encoding.layout(shape)
        size = min(per_thread, shape[order[0]])
        first = machine.held(layout)[0, 0, :, :size]
        turned = np.arange(math.prod(shape)).reshape(shape).transpose(order[::-1]).reshape(-1)
        in_memory = np.argsort(turned)[first].reshape(-1)
        covered = min(32 * size, math.prod(shape))
        assert sorted(set(in_memory)) == list(range(covered))
        assert (in_memory[:covered] == np.arange(covered)).all()


@settings(max_examples=50)
@given(random_layouts.randoms)
def test_a_slice_holds_the_projection(random: Random) -> None:
    rank = random.randint(1, 2)
    parent = random_layouts.blocked(random, rank + 1, random.randrange(3))
    axis = random.randrange(rank + 1)
    shape = random_layouts.shape(random, rank, random.randrange(8))
    whole = list(shape)
    whole.insert(axis, 1 << random.randrange(5))
    sliced = machine.held(Sliced(parent, axis).layout(shape))
    full = machine.held(parent.layout(whole))
    for thread in np.ndindex(full.shape[:3]):
        positions = (np.unravel_index(int(v), whole) for v in full[thread])
        projected = {tuple(map(int, np.delete(position, axis))) for position in positions}
        mine = [tuple(map(int, np.unravel_index(int(v), shape))) for v in sliced[thread]]
        assert set(mine) == projected
        assert len(mine) == len(projected)


@settings(max_examples=50)
@given(random_layouts.randoms)
def test_swizzled_rows_change_places_by_the_formula(random: Random) -> None:
    rank = random.randint(2, 3)
    order = list(range(rank))
    random.shuffle(order)
    vector, per_phase, max_phase = (1 << random.randrange(4) for _ in range(3))
    shape = random_layouts.shape(random, rank, random.randrange(9))
    encoding = SharedRows(tuple(order), vector, per_phase, max_phase)
    layout = encoding.layout(shape)
    offsets = {int(v): at for at, v in enumerate(machine.evaluate(layout, ("offset",)))}
    assert len(offsets) == math.prod(shape)
    columns = shape[order[0]]
    for position in np.ndindex(shape):
        column, row = position[order[0]], position[order[1]]
        moved = list(position)
        phase = row // per_phase % max_phase
        moved[order[0]] = (column // vector ^ phase) * vector % columns + column % vector % columns
        wanted = 0
        for axis in reversed(order):
            wanted = wanted * shape[axis] + moved[axis]
        assert offsets[int(np.ravel_multi_index(position, shape))] == wanted


@pytest.mark.parametrize("element_bits", [8, 16, 32])
@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_atoms_follow_the_byte_formula(
    element_bits: int, swizzle: int, order: tuple[int, int]
) -> None:
    size = element_bits // 8
    rows, columns = 16, 2 * swizzle // size
    shape = [0, 0]
    shape[order[0]], shape[order[1]] = columns, rows
    layout = SharedAtoms(order, element_bits, swizzle).layout(shape)
    images = machine.evaluate(layout, ("offset",))
    assert len(set(images)) == rows * columns
    for offset, image in enumerate(images):
        position = np.unravel_index(int(image), shape)
        row, column = int(position[order[1]]), int(position[order[0]])
        panel, byte = divmod(column * size, swizzle)
        plain = (panel * rows + row) * swizzle + byte
        assert offset * size == plain ^ (plain >> 7 & (swizzle // 16 - 1)) << 4


def test_atoms_have_these_bases() -> None:
    """Written out by hand from the formula: rows of 128, 64 and 32 bytes."""

    def bases(swizzle: int, element_bits: int, columns: int) -> list[tuple[int, ...]]:
        layout = SharedAtoms((1, 0), element_bits, swizzle).layout((16, columns))
        return [layout.unpack(basis) for basis in layout.bases("offset")]

    columns = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (0, 32)]
    assert bases(128, 16, 128) == [*columns, (1, 8), (2, 16), (4, 32), (8, 0), (0, 64)]
    assert bases(64, 16, 32) == [*columns[:5], (1, 0), (2, 8), (4, 16), (8, 0)]
    assert bases(32, 16, 16) == [*columns[:4], (1, 0), (2, 0), (4, 8), (8, 0)]
    assert bases(128, 8, 128) == [*columns, (0, 64), (1, 16), (2, 32), (4, 64), (8, 0)]


BLOCKED = Blocked((1, 4), (8, 4), (4, 1), (1, 0))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Blocked((1,), (32,), (3,), (0,)), "3 is not a power of two"),
        (lambda: Blocked((0,), (32,), (1,), (0,)), "0 is not a power of two"),
        (lambda: Blocked((1,), (16,), (1,), (0,)), "a warp has 32 threads"),
        (lambda: Blocked((1, 1), (32,), (1,), (0,)), r"\(1, 1\) should have 1 numbers"),
        (lambda: Blocked((1,), (32,), (1,), (1,)), "doesn't name each axis once"),
        (lambda: BLOCKED.layout((64,)), r"has 2 axes, the shape \(64,\) has not"),
        (lambda: BLOCKED.layout((48, 64)), "48 is not a power of two"),
        (lambda: Sliced(BLOCKED, 2), "has no axis 2"),
        (lambda: SharedRows((0, 0)), "doesn't name each axis once"),
        (lambda: SharedRows((0,), vector=3), "3 is not a power of two"),
        (lambda: SharedAtoms((1, 0), 16, 256), "not 256"),
        (lambda: SharedAtoms((1, 0), 12, 128), "12 bits"),
        (lambda: SharedAtoms((1, 0), 16, 128).layout((8, 32)), "a row of 32 elements is shorter"),
    ],
)
def test_misuse_is_refused(make: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        (BLOCKED, "blocked([1, 4], [8, 4], [4, 1], order [1, 0])"),
        (
            Blocked((1,), (32,), (4,), (0,), (2,)),
            "blocked([1], [32], [4], order [0], blocks [2])",
        ),
        (Sliced(BLOCKED, 1), "slice(blocked([1, 4], [8, 4], [4, 1], order [1, 0]), axis 1)"),
        (SharedRows((1, 0), 8, 1, 8), "shared(order [1, 0], vector 8, per phase 1, phases 8)"),
        (SharedAtoms((1, 0), 16, 128), "shared atoms(128 bytes, order [1, 0])"),
    ],
)
def test_encodings_print_in_a_line(encoding: Encoding, text: str) -> None:
    assert str(encoding) == text
