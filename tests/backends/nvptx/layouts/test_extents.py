"""Logical extents: who holds padding, and when a reshape keeps every index."""

from __future__ import annotations

import itertools
import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from tests.backends.nvptx.layouts import machine, random_layouts

from tritium.backends.nvptx.layouts import Blocked, Extents, Holding, reshape_keeps_index

ODD = (1, 3, 5, 48, 80, 96, 160)


def test_physical_extents_are_the_next_powers_of_two() -> None:
    assert Extents(ODD).physical == (1, 4, 8, 64, 128, 128, 256)
    assert Extents((1, 64)).is_padded is False
    assert Extents((1, 65)).is_padded is True
    assert [Extents((3, 5)).contains(p) for p in ((2, 4), (3, 0), (0, 5))] == [True, False, False]
    with pytest.raises(ValueError, match="at least 1"):
        Extents((0,))


def counted(extents: Extents, values: np.ndarray) -> list[set[bool]]:
    """For each register, whether threads hold elements there (True), padding (False) or both."""
    positions = np.unravel_index(values, extents.physical)
    inside = np.ones(values.shape, dtype=bool)
    for position, extent in zip(positions, extents.logical):
        inside &= position < extent
    return [set(map(bool, np.unique(inside[..., r]))) for r in range(values.shape[-1])]


@settings(max_examples=80)
@given(random_layouts.randoms)
def test_holdings_are_what_threads_hold(random: Random) -> None:
    rank = random.randint(1, 2)
    extents = Extents(tuple(random.choice(ODD) for _ in range(rank)))
    encoded = random.random() < 0.7
    make = random_layouts.of_encoding if encoded else random_layouts.surjective
    layout = make(random, extents.physical, random.randrange(3))
    found = extents.holdings(layout)
    held = counted(extents, machine.held(layout))
    for holding, inside in zip(found, held, strict=True):
        assert (holding is Holding.ELEMENTS) == (inside == {True})
        if holding is Holding.PADDING:
            assert inside == {False}
        if encoded:
            assert (holding is Holding.EITHER) == (inside == {True, False})


def test_160_needs_five_of_eight_registers() -> None:
    extents = Extents((160,))
    layout = Blocked((1,), (32,), (1,), (0,)).layout((256,))
    wanted = [Holding.ELEMENTS] * 5 + [Holding.PADDING] * 3
    assert list(extents.holdings(layout)) == wanted
    with pytest.raises(ValueError, match="a layout of"):
        extents.holdings(Blocked((1,), (32,), (1,), (0,)).layout((128,)))


@pytest.mark.parametrize("extent", ODD)
@pytest.mark.parametrize("other", [1, 5, 48])
def test_every_element_of_odd_tiles_is_held(extent: int, other: int) -> None:
    extents = Extents((extent, other))
    layout = Blocked.covering(extents.physical, (1, 0), 4, 4).layout(extents.physical)
    positions = {
        tuple(map(int, np.unravel_index(int(v), extents.physical)))
        for v in machine.held(layout).reshape(-1)
    }
    elements = {position for position in positions if extents.contains(position)}
    assert elements == set(itertools.product(range(extent), range(other)))


def factorings(number: int, most: int = 3) -> list[tuple[int, ...]]:
    if most == 1:
        return [(number,)]
    return [
        (first, *rest)
        for first in range(1, number + 1)
        if number % first == 0
        for rest in [(), *factorings(number // first, most - 1)]
        if rest or first == number
    ]


@pytest.mark.parametrize("number", [1, 3, 12, 15, 16, 30, 48, 80])
def test_a_reshape_keeps_indices_where_every_element_does(number: int) -> None:
    def physical(shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
        padded = Extents(shape).physical
        indices = np.unravel_index(np.arange(number), shape)
        return np.ravel_multi_index(indices, padded), math.prod(padded)

    known = {shape: physical(shape) for shape in set(factorings(number))}
    answers = set()
    for old, new in itertools.product(sorted(known), repeat=2):
        (before, size), (after, other) = known[old], known[new]
        keeps = size == other and bool((before == after).all())
        assert reshape_keeps_index(old, new) == keeps, (old, new)
        answers.add(keeps)
    assert answers == ({True} if number in (1, 3, 16) else {True, False})


def test_a_reshape_has_as_many_elements() -> None:
    with pytest.raises(ValueError, match="not as many elements"):
        reshape_keeps_index((3, 5), (16,))
