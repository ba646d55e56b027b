"""Conversions inside warps by shuffles: run in software, and what they cost."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from tests.backends.nvptx.layouts import machine, random_layouts

from tritium.backends.nvptx.layouts import (
    LANE,
    REGISTER,
    WARP,
    LinearLayout,
    Shuffle,
    crossing,
    plan_shuffle,
)


def tile(**bases: list[int]) -> LinearLayout:
    """A layout of a tile with one axis; lanes and warps that aren't given hold copies."""
    listed = {
        "register": bases.get("register", []),
        "lane": (bases.get("lane", []) + [0] * 5)[:5],
        "warp": bases.get("warp", []),
    }
    extent = 1 << max(b.bit_length() for column in listed.values() for b in column)
    packed = {name: [(b,) for b in column] for name, column in listed.items()}
    return LinearLayout.from_bases(packed, {"dim0": extent})


def shuffled(source: LinearLayout, target: LinearLayout, bits: int = 32) -> Shuffle:
    plan = plan_shuffle(target.invert_and_compose(source), bits)
    assert (machine.run(plan, machine.held(source)) == machine.held(target)).all()
    return plan


@settings(max_examples=150)
@given(random_layouts.randoms)
def test_every_element_arrives(random: Random) -> None:
    shape = random_layouts.shape(random, random.randint(1, 2), random.randint(1, 9))
    source = random_layouts.layout(random, shape, random.randrange(3))
    target = random_layouts.mixed_in_warps(random, source)
    if random.random() < 0.3:
        target = random_layouts.layout(random, shape, source.input_bits(WARP))
        if crossing(target.invert_and_compose(source)) not in (LANE, REGISTER):
            return
    shuffled(source, target, random.choice(random_layouts.ELEMENT_BITS))


def test_a_swap_of_a_register_and_a_lane_bit_moves_half() -> None:
    source = tile(register=[1, 2], lane=[4, 8, 16, 32, 64])
    target = tile(register=[4, 2], lane=[1, 8, 16, 32, 64])
    plan = shuffled(source, target)
    assert plan.is_butterfly
    assert (plan.shuffles, plan.selects) == (2, 8)
    assert str(plan) == "2 butterfly shuffles, 8 selects"


def test_two_swaps_move_three_quarters() -> None:
    source = tile(register=[1, 2], lane=[4, 8, 16, 32, 64])
    target = tile(register=[4, 8], lane=[1, 2, 16, 32, 64])
    plan = shuffled(source, target)
    assert plan.is_butterfly
    assert (plan.shuffles, plan.selects) == (3, 16)


def test_a_permutation_of_lanes_needs_no_selects() -> None:
    source = tile(register=[1, 2], lane=[4, 8, 16, 32, 64])
    target = tile(register=[2, 1], lane=[64, 4, 8, 16, 32])
    plan = shuffled(source, target)
    assert not plan.is_butterfly
    assert (plan.shuffles, plan.selects) == (4, 0)
    assert str(plan) == "4 indexed shuffles, 0 selects"


def test_registers_chosen_by_the_lane_need_no_shuffle() -> None:
    source = tile(register=[1], lane=[2, 4, 8, 16, 32])
    target = tile(register=[1], lane=[3, 4, 8, 16, 32])
    plan = shuffled(source, target)
    assert (plan.shuffles, plan.selects) == (0, 2)


def test_lanes_that_want_the_same_read_the_same_lane() -> None:
    source = tile(register=[1], lane=[2, 4, 8, 16, 32])
    target = tile(register=[1, 2], lane=[0, 4, 8, 16, 32])
    plan = shuffled(source, target)
    assert (plan.shuffles, plan.selects) == (4, 0)


def test_warps_that_hold_copies_choose_their_part() -> None:
    source = tile(register=[1, 2], lane=[4, 8, 16, 32, 64], warp=[0])
    target = tile(register=[1], lane=[4, 8, 16, 32, 64], warp=[2])
    plan = shuffled(source, target)
    assert (plan.shuffles, plan.selects) == (0, 2)
    assert plan.before[0].warps == 1


def test_lanes_that_want_several_registers_of_one_lane_take_more_rounds() -> None:
    source = tile(register=[1, 2], lane=[4])
    target = tile(lane=[1, 2, 4])
    plan = shuffled(source, target)
    assert len(plan.rounds) > len(plan.targets) == 1


def test_narrow_elements_are_packed_into_words() -> None:
    source = tile(register=[1, 2, 4], lane=[8, 16, 32, 64, 128])
    target = tile(register=[2, 1, 8], lane=[4, 16, 32, 64, 128])
    counts = {bits: shuffled(source, target, bits).shuffles for bits in (8, 16, 32, 64)}
    assert counts == {8: 1, 16: 2, 32: 4, 64: 8}
    assert shuffled(source, target, 8).sources == ((0, 2, 1, 3), (4, 6, 5, 7))


def test_crossing_warps_is_refused() -> None:
    source = tile(register=[1], lane=[2, 4, 8, 16, 32], warp=[64])
    target = tile(register=[64], lane=[2, 4, 8, 16, 32], warp=[1])
    with pytest.raises(ValueError, match="elements would change warps"):
        plan_shuffle(target.invert_and_compose(source), 32)


def test_what_is_crossed() -> None:
    lanes = [2, 4, 8, 16, 32]
    source = tile(register=[1, 128], lane=lanes, warp=[64])
    crossed = {
        REGISTER: tile(register=[128, 129], lane=lanes, warp=[64]),
        LANE: tile(register=[1, 128], lane=[4, 2, 8, 16, 32], warp=[64]),
        WARP: tile(register=[1, 64], lane=lanes, warp=[128]),
    }
    for name, target in crossed.items():
        assert crossing(target.invert_and_compose(source)) == name
