"""Predicted wavefronts of shared memory, against counting words in banks."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from tests.backends.nvptx.layouts import machine, random_layouts

from tritium.backends.nvptx.layouts import (
    LANE,
    OFFSET,
    REGISTER,
    WARP,
    Blocked,
    LinearLayout,
    SharedAccess,
    SharedAtoms,
    SharedRows,
)
from tritium.backends.nvptx.layouts.banks import phases, wavefronts_per_phase


@pytest.mark.parametrize("element_bits", [8, 16, 32, 64])
@pytest.mark.parametrize("access_bytes", [1, 2, 4, 8, 16])
def test_prediction_is_what_the_banks_do(element_bits: int, access_bytes: int) -> None:
    """Any map from lanes and warps to offsets that are multiples of the width."""
    if access_bytes * 8 < element_bits:
        return
    width = access_bytes * 8 // element_bits
    low = width.bit_length() - 1
    for seed in range(40):
        random = Random(seed)
        bits = random.randint(low, 11)
        columns = [
            random.choice((0, 1 << random.randrange(low, bits + 1), random.randrange(1 << bits)))
            >> low
            << low
            for _ in range(7)
        ]
        offsets = LinearLayout(
            ((LANE, tuple(columns[:5])), (WARP, tuple(columns[5:]))), ((OFFSET, bits + 1),)
        )
        predicted = phases(access_bytes) * wavefronts_per_phase(offsets, element_bits, width)
        for warp, at in ((0, 0), (3, 0), (random.randrange(4), random.randrange(64) << low)):
            assert machine.wavefronts(offsets, element_bits, width, at, warp) == predicted


@settings(max_examples=40)
@given(random_layouts.randoms)
def test_prediction_for_tiles_in_shared_memory(random: Random) -> None:
    shape = random_layouts.shape(random, 2, random.randint(5, 11))
    layout = random_layouts.layout(random, shape, random.randrange(3))
    order = random.choice(((0, 1), (1, 0)))
    vector, phase, most = (1 << random.randrange(4) for _ in range(3))
    shared = SharedRows(order, vector, phase, most).layout(shape)
    side = SharedAccess.of(layout, shared, random.choice(random_layouts.ELEMENT_BITS))
    for warp in {0, layout.input_extent(WARP) - 1}:
        assert machine.total_wavefronts(side, warp) == side.wavefronts
    assert side.instructions * side.width == layout.input_extent(REGISTER)


ROWS = Blocked((1, 1), (1, 32), (1, 1), (1, 0))
COLUMNS = Blocked((1, 1), (32, 1), (1, 1), (0, 1))
WIDE = Blocked((1, 4), (4, 8), (1, 1), (1, 0))


@pytest.mark.parametrize(
    ("layout", "shared", "bits", "instructions", "wavefronts", "conflicts"),
    [
        (ROWS, SharedRows((1, 0)), 32, 32, 32, 0),
        (COLUMNS, SharedRows((1, 0)), 32, 8, 8 * 32, 7 * 32),  # whole rows, 8 lanes in one bank
        (COLUMNS, SharedRows((1, 0), 1, 1, 32), 32, 32, 32, 0),
        (COLUMNS, SharedRows((1, 0), 1, 1, 8), 32, 32, 4 * 32, 3 * 32),
        (WIDE, SharedRows((1, 0)), 32, 8, 32, 0),  # 16 bytes a lane, four phases
        (WIDE, SharedRows((0, 1)), 32, 32, 8 * 32, 7 * 32),
        (ROWS, SharedRows((1, 0)), 64, 32, 64, 0),  # 8 bytes a lane, two phases
        (ROWS, SharedRows((1, 0)), 8, 32, 32, 0),  # four lanes share a word
        (COLUMNS, SharedRows((1, 0)), 8, 2, 16, 8),  # rows of 32 bytes: 8 lanes want 256
    ],
)
def test_known_accesses_of_a_32_by_32_tile(
    layout: Blocked,
    shared: SharedRows,
    bits: int,
    instructions: int,
    wavefronts: int,
    conflicts: int,
) -> None:
    side = SharedAccess.of(layout.layout((32, 32)), shared.layout((32, 32)), bits)
    assert (side.instructions, side.wavefronts, side.conflicts) == (
        instructions,
        wavefronts,
        conflicts,
    )


def test_atoms_of_128_bytes_serve_rows_and_columns_of_groups() -> None:
    """16 bytes of 8 successive rows, as ldmatrix wants them, lie in different banks."""
    shape = (64, 64)
    down = Blocked((1, 8), (32, 1), (1, 1), (0, 1)).layout(shape)
    side = SharedAccess.of(down, SharedAtoms((1, 0), 16, 128).layout(shape), 16)
    assert (side.bytes, side.conflicts) == (16, 0)
    plain = SharedAccess.of(down, SharedRows((1, 0)).layout(shape), 16)
    assert (plain.bytes, plain.wavefronts_per_phase) == (16, 8)
