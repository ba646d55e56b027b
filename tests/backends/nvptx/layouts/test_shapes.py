"""Shape operations: a place holds the same element under its new index."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from tests.backends.nvptx.layouts import machine, random_layouts

from tritium.backends.nvptx.layouts import REGISTER, Blocked, LinearLayout, shapes

few = settings(max_examples=40)


def draw(random: Random, rank: int) -> tuple[LinearLayout, tuple[int, ...]]:
    shape = random_layouts.shape(random, rank, random.randrange(10))
    return random_layouts.layout(random, shape, random.randrange(3)), shape


def same_elements(before: LinearLayout, after: LinearLayout, moved: np.ndarray) -> None:
    """``moved`` is the tile of the element numbers before, as the operation leaves it."""
    assert after.shape == moved.shape
    assert (moved.reshape(-1)[machine.held(after)] == machine.held(before)).all()


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(math.prod(shape)).reshape(shape)


@few
@given(random_layouts.randoms)
def test_transpose(random: Random) -> None:
    layout, shape = draw(random, random.randint(1, 3))
    order = list(range(len(shape)))
    random.shuffle(order)
    same_elements(layout, shapes.transpose(layout, order), numbered(shape).transpose(order))


@few
@given(random_layouts.randoms)
def test_reshape(random: Random) -> None:
    layout, shape = draw(random, random.randint(1, 3))
    bits = math.prod(shape).bit_length() - 1
    other = random_layouts.shape(random, random.randint(1, 3), bits)
    same_elements(layout, shapes.reshape(layout, other), numbered(shape).reshape(other))
    with pytest.raises(ValueError, match="are not as many positions"):
        shapes.reshape(layout, (*other, 2))


@few
@given(random_layouts.randoms)
def test_expand_dims(random: Random) -> None:
    layout, shape = draw(random, 2)
    for axis in range(3):
        moved = np.expand_dims(numbered(shape), axis)
        same_elements(layout, shapes.expand_dims(layout, axis), moved)


@few
@given(random_layouts.randoms)
def test_broadcast_repeats_along_new_registers(random: Random) -> None:
    layout, shape = draw(random, 2)
    wide = shapes.broadcast(shapes.expand_dims(layout, 1), 1, 4)
    assert wide.shape == (shape[0], 4, shape[1])
    before, after = machine.held(layout), machine.held(wide)
    count = before.shape[-1]
    for register in range(4 * count):
        row, rest = np.divmod(after[..., register], 4 * shape[1])
        assert (rest // shape[1] == register // count).all()
        assert (row * shape[1] + rest % shape[1] == before[..., register % count]).all()
    with pytest.raises(ValueError, match="dim1 has the extent 4, not 1"):
        shapes.broadcast(wide, 1, 2)


@few
@given(random_layouts.randoms)
def test_slice_axis_keeps_who_holds_what(random: Random) -> None:
    layout, shape = draw(random, 2)
    for axis in range(2):
        before, after = machine.held(layout), machine.held(shapes.slice_axis(layout, axis))
        kept = before // shape[1] if axis == 1 else before % shape[1]
        for thread in np.ndindex(before.shape[:3]):
            assert set(after[thread]) == set(kept[thread])
        whole = shapes.slice_axis(layout, axis).bases(REGISTER)
        assert all(whole)


@few
@given(random_layouts.randoms)
def test_join_and_split(random: Random) -> None:
    layout, _ = draw(random, 2)
    joined = shapes.join(layout)
    before, after = machine.held(layout), machine.held(joined)
    for half in range(2):
        assert (after[..., half::2] == 2 * before + half).all()
    assert shapes.split(joined) == (layout, 0)


def test_split_finds_the_register_that_tells_halves_apart() -> None:
    encoding = Blocked((2, 2), (4, 8), (1, 1), (0, 1))
    layout = encoding.layout((8, 2))
    found = shapes.split(layout)
    assert found is not None
    half, bit = found
    assert bit == 1
    values = machine.held(layout)
    registers = np.arange(values.shape[-1])
    for number in range(2):
        mine = values[..., (registers >> bit & 1) == number]
        assert (mine == 2 * machine.held(half) + number).all()


def test_split_refuses_halves_in_other_threads() -> None:
    apart = Blocked((1, 1), (16, 2), (1, 1), (1, 0)).layout((16, 2))
    assert shapes.split(apart) is None
    for bases in ([(1, 1), (0, 1)], [(0, 1), (1, 1)]):
        mixed = LinearLayout.from_bases({REGISTER: bases}, {"dim0": 2, "dim1": 2})
        assert shapes.split(mixed) is None
    with pytest.raises(ValueError, match="the last axis has the extent 4, not 2"):
        shapes.split(Blocked((1, 1), (16, 2), (1, 1), (1, 0)).layout((16, 4)))
