"""The text of layouts: every cell names who holds its elements."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from tests.backends.nvptx.layouts import random_layouts

from tritium.backends.nvptx.layouts import (
    BLOCK,
    LANE,
    REGISTER,
    WARP,
    Blocked,
    LinearLayout,
    SharedRows,
    Sliced,
    draw,
)

BLOCKED = Blocked((1, 4), (4, 8), (2, 1), (1, 0))


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def test_a_blocked_layout() -> None:
    assert draw(BLOCKED.layout((8, 16)), (8, 16)).splitlines() == lines(
        """
8 x 16 elements; 4 registers x 32 lanes x 2 warps, each element in 2 places
cells: warp.lane:register
          0         4         8        12
0   0.0:0-3   0.1:0-3   0.2:0-3   0.3:0-3
1   0.8:0-3   0.9:0-3  0.10:0-3  0.11:0-3
2  0.16:0-3  0.17:0-3  0.18:0-3  0.19:0-3
3  0.24:0-3  0.25:0-3  0.26:0-3  0.27:0-3
4   1.0:0-3   1.1:0-3   1.2:0-3   1.3:0-3
5   1.8:0-3   1.9:0-3  1.10:0-3  1.11:0-3
6  1.16:0-3  1.17:0-3  1.18:0-3  1.19:0-3
7  1.24:0-3  1.25:0-3  1.26:0-3  1.27:0-3
"""
    )


def test_padding_stands_in_parentheses() -> None:
    layout = Blocked((1, 2), (8, 4), (1, 1), (1, 0)).layout((4, 8))
    assert draw(layout, (3, 6)).splitlines() == lines(
        """
3 x 6 elements in 4 x 8; 2 registers x 32 lanes, each element in 2 places
cells: lane:register
          0         2         4         6
0     0:0-1     1:0-1     2:0-1   (3:0-1)
1     4:0-1     5:0-1     6:0-1   (7:0-1)
2     8:0-1     9:0-1    10:0-1  (11:0-1)
3  (12:0-1)  (13:0-1)  (14:0-1)  (15:0-1)
"""
    )


def test_elements_and_padding_share_no_cell() -> None:
    layout = Blocked((4,), (32,), (1,), (0,)).layout((8,))
    assert draw(layout, (6,)).splitlines()[2:] == ["0  0:0-1  0:2-3  1:0-1  (1:2-3)"]


def test_one_axis_fills_lines_and_long_ones_are_cut() -> None:
    layout = Blocked((2,), (32,), (2,), (0,)).layout((256,))
    assert draw(layout, (250,), rows=2, columns=8).splitlines() == lines(
        """
250 elements in 256; 4 registers x 32 lanes x 2 warps
cells: warp.lane:register
0  0.0:0-1  0.1:0-1  0.2:0-1  0.3:0-1
8  0.4:0-1  0.5:0-1  0.6:0-1  0.7:0-1
...
"""
    )
    wide = draw(BLOCKED.layout((8, 64)), (8, 64), rows=1, columns=2).splitlines()
    assert wide[2:] == ["         0        4  ...", "0  0.0:0-3  0.1:0-3  ...", "..."]


def test_three_axes_are_a_table_each() -> None:
    layout = Blocked((1, 1, 2), (2, 4, 4), (1, 1, 1), (2, 1, 0)).layout((8, 4, 8))
    text = draw(layout, (5, 4, 8)).splitlines()
    assert [line for line in text if ":, :" in line] == [f"[{i}, :, :]" for i in range(4)]
    assert text[-1] == "..."
    assert text[2:5] == [
        "[0, :, :]",
        "        0       2       4       6",
        "0   0:0-1   1:0-1   2:0-1   3:0-1",
    ]


def test_shared_memory_shows_offsets() -> None:
    layout = SharedRows((1, 0), 2, 1, 2).layout((2, 8))
    assert draw(layout, (2, 8)).splitlines() == lines(
        """
2 x 8 elements; 16 offsets
cells: offset
       0    2      4      6
0    0-1  2-3    4-5    6-7
1  10-11  8-9  14-15  12-13
"""
    )


def test_scalars_and_slices() -> None:
    assert draw(Sliced(BLOCKED, 1).layout((1,)), (1,)).splitlines() == [
        "1 elements; 32 lanes x 2 warps, each element in 64 places",
        "cells: warp.lane:register",
        "0  0.0:0",
    ]


@settings(max_examples=30)
@given(random_layouts.randoms)
def test_every_cell_names_a_holder(random: Random) -> None:
    shape = random_layouts.shape(random, 2, random.randint(0, 8))
    layout = random_layouts.layout(random, shape, random.randrange(3))
    if random.random() < 0.3:
        layout = Blocked((1, 2), (8, 4), (1, 2), (1, 0), (2, 1)).layout(shape)
    text = draw(layout, shape, rows=256, columns=256).splitlines()
    names = re.sub("cells: ", "", text[1]).replace(":", ".").split(".")
    assert names == [*(n for n in (BLOCK, WARP) if layout.bases(n)), LANE, REGISTER]
    starts = [int(number) for number in text[2].split()]
    seen = set()
    for row, line in enumerate(text[3:]):
        label, *cells = line.split()
        assert int(label) == row
        for start, cell in zip(starts, cells, strict=True):
            *threads, held = re.split("[.:]", cell)
            first, _, last = held.partition("-")
            for step, register in enumerate(range(int(first), int(last or first) + 1)):
                place = dict(zip(names, [*map(int, threads), register]))
                assert layout(**place) == (row, start + step)
                seen.add((row, start + step))
    assert len(seen) == shape[0] * shape[1]


def test_the_shape_has_to_fit() -> None:
    with pytest.raises(ValueError, match=r"a layout of \(8, 32\) is needed, got one of \(8, 16\)"):
        draw(BLOCKED.layout((8, 16)), (8, 17))
    hole = LinearLayout.from_bases({LANE: []}, {"dim0": 2})
    with pytest.raises(ValueError, match="held nowhere"):
        draw(hole, (2,))
