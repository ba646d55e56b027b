"""Widths of accesses, against the addresses of every thread."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from tests.backends.nvptx.layouts import machine, random_layouts

from tritium.backends.nvptx.layouts import (
    BLOCK,
    LANE,
    OFFSET,
    REGISTER,
    WARP,
    Blocked,
    Extents,
    LinearLayout,
    Vectors,
    global_vectors,
    split_offsets,
    vector_width,
    vectorise,
)


def memory_map(random: Random) -> LinearLayout:
    """Places to offsets: half of them as real accesses are, half any map."""
    bits = random.randint(1, 9)
    if random.random() < 0.5:
        shape = random_layouts.shape(random, 2, bits)
        layout = random_layouts.of_encoding(random, shape, random.randrange(3))
        if random.random() < 0.5:
            layout = layout.order_outputs(["dim1", "dim0"])
    else:
        layout = random_layouts.surjective(random, (1 << bits,), random.randrange(3))
    return layout.reshape_outputs({OFFSET: 1 << bits})


def is_possible(offsets: np.ndarray, width: int) -> bool:
    """Whether registers can be grouped so that in every thread a group is one aligned access."""
    threads = offsets.reshape(-1, offsets.shape[-1])
    blocks, slots = np.divmod(threads, width)
    if (slots != slots[0]).any():
        return False
    groups = [np.flatnonzero(blocks[0] == block) for block in np.unique(blocks[0])]
    return all(
        len(group) == width and (blocks[:, group] == blocks[:, group[:1]]).all() for group in groups
    )


def check(vectors: Vectors, offsets: np.ndarray) -> None:
    """Each group is one aligned access of every thread, and begins where ``offsets`` say."""
    assert sorted(r for group in vectors.groups for r in group) == list(range(offsets.shape[-1]))
    for group, start in zip(vectors.groups, vectors.offsets, strict=True):
        assert len(group) == vectors.width
        first = offsets[..., group[0]]
        assert not (first % vectors.width).any()
        assert (offsets[..., list(group)] == first[..., None] + np.arange(vectors.width)).all()
        assert (first == offsets[..., 0] ^ offsets[0, 0, 0, 0] ^ start).all()


@settings(max_examples=80)
@given(random_layouts.randoms)
def test_the_width_is_the_largest_possible(random: Random) -> None:
    layout = memory_map(random)
    limit = 1 << random.randrange(5)
    offsets = machine.held(layout)
    width = vector_width(layout, limit)
    check(vectorise(layout, width), offsets)
    wider = [1 << bit for bit in range(5) if width < 1 << bit <= limit]
    assert not any(is_possible(offsets, other) for other in wider)


@settings(max_examples=50)
@given(random_layouts.randoms)
def test_split_offsets_fold_into_immediates(random: Random) -> None:
    layout = memory_map(random)
    vectors = vectorise(layout, vector_width(layout, 4))
    threads = machine.held(layout)[..., 0]
    for start, (flip, plus) in zip(vectors.offsets, split_offsets(layout, vectors), strict=True):
        assert ((threads ^ start) == (threads ^ flip) + plus).all()


def test_plain_rows_need_one_address() -> None:
    layout = Blocked((1, 4), (4, 8), (1, 1), (1, 0)).layout((16, 32))
    offsets = layout.reshape_outputs({OFFSET: 512})
    vectors = vectorise(offsets, 4)
    assert split_offsets(offsets, vectors) == ((0, 0), (0, 128), (0, 256), (0, 384))


def test_two_registers_at_one_offset_are_refused() -> None:
    twice = LinearLayout.from_bases({REGISTER: [(1,), (1,)]}, {OFFSET: 2})
    with pytest.raises(ValueError, match="two registers of a thread are at one offset"):
        vector_width(twice, 4)


ROW = Blocked((8,), (32,), (4,), (0,))


@pytest.mark.parametrize(
    ("extent", "bits", "contiguity", "alignment", "constancy", "width"),
    [
        (1024, 32, 1024, 16, None, 4),  # 16 bytes at a time
        (1024, 16, 1024, 16, None, 8),
        (1024, 8, 1024, 16, None, 8),  # a thread has 8
        (1024, 64, 1024, 16, None, 2),
        (1024, 32, 1024, 8, None, 2),  # the pointer isn't aligned
        (1024, 32, 1024, 2, None, 1),
        (1024, 32, 1, 16, None, 1),  # elements aren't neighbours
        (1024, 32, 2, 16, None, 2),
        (1024, 32, 1024, 16, 1, 1),  # the mask changes anywhere
        (1024, 32, 1024, 16, 2, 2),
        (1024, 16, 1024, 48, 12, 4),  # powers of two in 48 and 12
        (1000, 32, 1000, 16, None, 4),
        (1002, 32, 1002, 16, None, 2),  # the last vector would reach into padding
        (1001, 32, 1001, 16, None, 1),
        (1002, 32, 4096, 16, None, 2),  # however far memory goes on
    ],
)
def test_global_accesses_need_proof(
    extent: int, bits: int, contiguity: int, alignment: int, constancy: int | None, width: int
) -> None:
    extents = Extents((extent,))
    vectors = global_vectors(
        ROW.layout(extents.physical),
        extents,
        fastest=0,
        element_bits=bits,
        contiguity=contiguity,
        alignment=alignment,
        constancy=constancy,
    )
    assert vectors.width == width
    check(vectors, machine.held(ROW.layout(extents.physical)))


@settings(max_examples=60)
@given(random_layouts.randoms)
def test_global_accesses_are_whole_in_memory(random: Random) -> None:
    """A tile of rows ``stride`` bytes apart: every access is aligned and inside or padding."""
    logical = tuple(random.choice((1, 3, 5, 12, 16, 24, 48, 80)) for _ in range(2))
    extents = Extents(logical)
    layout = random_layouts.of_encoding(random, extents.physical, random.randrange(3))
    fastest = random.randrange(2)
    size = random.choice((1, 2, 4, 8))
    alignment = random.choice((4, 8, 16, 48))
    base, stride = alignment * random.randrange(9), alignment * random.randrange(1, 90)
    vectors = global_vectors(
        layout,
        extents,
        fastest=fastest,
        element_bits=8 * size,
        contiguity=logical[fastest],
        alignment=alignment,
    )
    positions = np.unravel_index(machine.held(layout), extents.physical)
    addresses = base + positions[1 - fastest] * stride + positions[fastest] * size
    inside = np.all([p < n for p, n in zip(positions, logical)], axis=0)
    for group in vectors.groups:
        step = np.arange(vectors.width) * size
        at = addresses[..., list(group)]
        assert (at == at[..., :1] + step).all()
        if alignment % size == 0:
            assert not (at[..., 0] % (vectors.width * size)).any()
        assert (inside[..., list(group)] == inside[..., [group[0]]]).all()
    assert vectors.width * size <= 16


def test_the_layout_has_to_be_of_the_physical_shape() -> None:
    with pytest.raises(ValueError, match=r"a layout of \(64,\) is needed"):
        global_vectors(
            ROW.layout((128,)),
            Extents((48,)),
            fastest=0,
            element_bits=32,
            contiguity=1,
            alignment=4,
        )


def test_places_of_other_inputs_count_as_threads() -> None:
    """A block that begins in the middle of a vector forbids it, as a lane or a warp does."""
    for name in (LANE, WARP, BLOCK):
        layout = LinearLayout.from_bases({REGISTER: [(1,), (2,)], name: [(5,)]}, {OFFSET: 8})
        assert vector_width(layout, 4) == 1
