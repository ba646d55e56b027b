"""Conversions: run on a block in software, every element arrives; what they cost is counted."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from tests.backends.nvptx.layouts import machine, random_layouts

from tritium.backends.nvptx.layouts import (
    LANE,
    OFFSET,
    REGISTER,
    WARP,
    Arrangement,
    Blocked,
    Conversion,
    Extents,
    LinearLayout,
    Rename,
    Scope,
    Shuffle,
    Sliced,
    ThroughShared,
    cost,
    f2,
    optimal_shared,
    plan_conversion,
    plan_shuffle,
)

EXTENTS = (1, 3, 5, 48, 80, 96, 160)


def check(source: LinearLayout, target: LinearLayout, bits: int) -> Conversion:
    """The plan, after it moved every element to every place of the target, in each way."""
    plan = plan_conversion(source, target, bits)
    values, wanted = machine.held(source), machine.held(target)
    assert (machine.run(plan, values) == wanted).all()
    if isinstance(plan, ThroughShared):
        for side in (plan.arrangement.store, plan.arrangement.load):
            assert machine.total_wavefronts(side) == side.wavefronts
            least = side.instructions * max(1, side.bytes // 4)
            assert side.wavefronts == least + side.conflicts
        if plan.arrangement.repeatable:
            assert (machine.run(plan, values, 1 << plan.arrangement.repeatable) == wanted).all()
    return plan


def pair(random: Random) -> tuple[LinearLayout, LinearLayout, int]:
    warp_bits = random.randrange(4)
    shape = random_layouts.shape(random, random.randint(1, 3), random.randint(0, 11))
    source = random_layouts.layout(random, shape, warp_bits)
    if random.random() < 0.3:
        target = random_layouts.mixed_in_warps(random, source)
    else:
        target = random_layouts.layout(random, shape, warp_bits)
    return source, target, random.choice(random_layouts.ELEMENT_BITS)


def test_every_element_arrives() -> None:
    """Any two layouts, every kind of plan among them."""
    kinds = set()
    for seed in range(150):
        plan = check(*pair(Random(seed)))
        kinds.add(type(plan))
        if isinstance(plan, ThroughShared):
            kinds |= {plan.scope, "repeats" if plan.arrangement.repeatable else "in one"}
            kinds |= {"idle"} if plan.idle_lanes or plan.idle_warps else set()
    assert kinds == {Rename, Shuffle, ThroughShared, *Scope, "repeats", "in one", "idle"}


@settings(max_examples=40)
@given(random_layouts.randoms)
def test_blocks_of_a_cluster_convert_for_themselves(random: Random) -> None:
    """Each block has memory for its own share only."""
    shape = random_layouts.shape(random, 2, random.randint(6, 10))
    blocks = (2, 2) if min(shape) > 1 else (1, 1)
    layouts = []
    for _ in range(2):
        drawn = random_layouts.blocked(random, 2, 2)
        boxes = (drawn.size_per_thread, drawn.threads_per_warp, drawn.warps_per_block)
        layouts.append(Blocked(*boxes, (1, 0), blocks).layout(shape))
    plan = check(layouts[0], layouts[1], 32)
    if isinstance(plan, ThroughShared):
        assert plan.arrangement.bytes() == 4 * shape[0] * shape[1] // (blocks[0] * blocks[1])


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("rows", EXTENTS)
@pytest.mark.parametrize("columns", EXTENTS)
def test_tiles_of_odd_extents_arrive(rows: int, columns: int, warps: int) -> None:
    """From memory order to the other order, and a reduction's result back to memory order."""
    extents = Extents((rows, columns))
    shape = extents.physical
    across = Blocked.covering(shape, (1, 0), 4, warps)
    down = Blocked.covering(shape, (0, 1), 2, warps)
    if shape[0] * shape[1] <= 1 << 13:
        check(across.layout(shape), down.layout(shape), 16)
    line = Blocked.covering(shape[:1], (0,), 4, warps)
    check(Sliced(across, 1).layout(shape[:1]), line.layout(shape[:1]), 32)


@pytest.mark.parametrize("bits", random_layouts.ELEMENT_BITS)
@pytest.mark.parametrize("shape", [(32, 32), (64, 64), (16, 256), (128, 16)])
def test_transposes_are_free_of_conflicts(shape: tuple[int, int], bits: int) -> None:
    per_thread = 128 // bits
    across = Blocked.covering(shape, (1, 0), per_thread, 4).layout(shape)
    down = Blocked.covering(shape, (0, 1), per_thread, 4).layout(shape)
    plan = check(across, down, bits)
    assert isinstance(plan, ThroughShared)
    assert (plan.arrangement.store.conflicts, plan.arrangement.load.conflicts) == (0, 0)
    assert plan.arrangement.store.bytes == 16 or plan.arrangement.load.bytes == 16


def arrangements(
    random: Random, source: LinearLayout, target: LinearLayout, count: int
) -> list[LinearLayout]:
    """Shared layouts made to be good: registers of a side first, then sums of bits of both."""
    units = [1 << bit for bit in range(source.total_output_bits)]
    made = []
    for _ in range(count):
        first = list(random.choice((source, target)).bases(REGISTER))
        common = f2.intersection(source.bases(REGISTER), target.bases(REGISTER))
        rest = [*source.columns, *target.columns, *units]
        for listed in (first, common, rest):
            random.shuffle(listed)
        mixed = [v ^ random.choice((0, random.choice(rest))) for v in rest]
        start = common if random.random() < 0.5 else []
        basis = f2.Span().extend([*start, *first[: random.randrange(5)], *mixed, *units])
        made.append(LinearLayout(((OFFSET, tuple(basis)),), source.outputs))
    return made


def test_no_arrangement_found_at_random_is_better() -> None:
    for seed in range(25):
        random = Random(seed)
        warp_bits = random.randrange(3)
        shape = random_layouts.shape(random, 2, random.randint(5, 10))
        source, target = (random_layouts.of_encoding(random, shape, warp_bits) for _ in range(2))
        bits = random.choice(random_layouts.ELEMENT_BITS)
        best = optimal_shared(source, target, bits)
        for other in arrangements(random, source, target, 40):
            found = Arrangement.of(source, target, other, bits)
            assert (best.wavefronts, best.instructions) <= (found.wavefronts, found.instructions)


def test_elements_of_one_access_are_in_one_pass() -> None:
    alone = LinearLayout.from_bases({REGISTER: [(1,), (2,), (4,)], LANE: [(0,)] * 5}, {"dim0": 8})
    shared = LinearLayout.identity(8, OFFSET, "dim0")
    found = Arrangement.of(alone, alone, shared, 32)
    assert (found.store.width, found.offset_bits, found.repeatable) == (4, 3, 1)


def test_the_same_layout_moves_nothing() -> None:
    layout = Blocked((1, 4), (4, 8), (4, 1), (1, 0)).layout((64, 64))
    plan = check(layout, layout, 32)
    assert isinstance(plan, Rename)
    assert plan.is_nothing
    assert (str(plan), cost(plan)) == ("nothing moves", 0)


def test_other_registers_of_the_same_thread_are_renamed() -> None:
    source = Blocked((2, 2), (4, 8), (1, 1), (1, 0)).layout((8, 16))
    target = Blocked((2, 2), (4, 8), (1, 1), (0, 1)).layout((8, 16))
    lanes = target.with_bases(LANE, source.bases(LANE))
    plan = check(source, lanes, 32)
    assert plan == Rename((0, 2, 1, 3))
    assert (str(plan), cost(plan)) == ("4 registers renamed", 0)


def test_a_row_sum_is_spread_over_copies_in_lanes() -> None:
    """Every lane along the reduced axis holds the sum: nothing crosses warps."""
    across = Blocked((1, 4), (1, 32), (4, 1), (1, 0))
    source = Sliced(across, 1).layout((32,))
    target = Blocked((1,), (32,), (4,), (0,)).layout((32,))
    plan = check(source, target, 32)
    assert isinstance(plan, ThroughShared)
    assert plan.idle_lanes == 31
    assert plan.scope is Scope.BLOCK
    inside = check(source, source.with_bases(LANE, (4, 8, 16, 0, 0)).with_bases(REGISTER, ()), 32)
    assert isinstance(inside, Shuffle)


def test_large_exchanges_inside_a_warp_go_through_its_own_memory() -> None:
    source = Blocked((1, 32), (32, 1), (4, 1), (1, 0)).layout((128, 32))
    target = Blocked((32, 1), (1, 32), (4, 1), (0, 1)).layout((128, 32))
    plan = check(source, target, 32)
    assert isinstance(plan, ThroughShared)
    assert plan.scope is Scope.WARP
    assert str(plan) == (
        "through 16384 bytes of shared memory: stored 16 bytes at a time in 32 wavefronts, "
        "loaded 4 bytes at a time in 32 wavefronts, 0 of them conflicts, warps wait"
    )


def test_less_memory_takes_more_passes() -> None:
    """A batch axis in registers on both sides: at first in accesses, then one after the other."""
    shape = (8, 32, 32)
    source = Blocked((1, 1, 4), (1, 4, 8), (1, 4, 1), (2, 1, 0)).layout(shape)
    target = Blocked((1, 4, 1), (1, 8, 4), (1, 1, 4), (1, 2, 0)).layout(shape)
    values, wanted = machine.held(source), machine.held(target)
    needed = {}
    for limit in (None, 32768, 32767, 16384, 16383, 4096, 4095):
        plan = plan_conversion(source, target, 32, limit)
        assert isinstance(plan, ThroughShared)
        passes = 1 if limit is None else plan.arrangement.passes_within(limit)
        needed[limit] = passes and plan.arrangement.bytes(passes)
        assert (machine.run(plan, values, passes or 8) == wanted).all()
        assert plan.arrangement.wavefronts == 128
    assert needed == {
        None: 32768,
        32768: 32768,
        32767: 16384,
        16384: 16384,
        16383: 8192,
        4096: 4096,
        4095: None,
    }
    for passes in (0, 3, 16):
        with pytest.raises(ValueError, match=f"{passes} passes can't be made, at most 8 can"):
            plan.arrangement.bytes(passes)


def test_shuffles_are_taken_where_they_are_cheaper() -> None:
    """Every pair of blocked layouts of a warp: never the dearer of the two ways."""
    seen = set()
    boxes = [((a, 1 << 2 - a.bit_length() + 1), o) for a in (1, 2, 4) for o in ((0, 1), (1, 0))]
    for (size, order), (other, turned) in itertools.product(boxes, repeat=2):
        source = Blocked(size, (4, 8), (1, 1), order).layout((16, 32))
        target = Blocked(other, (8, 4), (1, 1), turned).layout((16, 32))
        plan = check(source, target, 32)
        seen.add(type(plan))
        if isinstance(plan, ThroughShared):
            assert plan.scope is Scope.WARP
    assert Shuffle in seen


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: (a, a, 24), "elements have 8, 16, 32 or 64 bits, not 24"),
        (lambda a: (a, BLOCKED.layout((32, 64)), 32), r"a tile of \(64, 64\) can't become"),
        (lambda a: (a, a.with_bases(WARP, (0, 0, 0)), 32), "different numbers of each warp"),
        (lambda a: (a.with_bases("offset", ()), a, 32), "are not places"),
        (lambda a: (a, a.with_bases(REGISTER, (1, 1)), 32), "a register of a thread holds a copy"),
        (
            lambda a: (
                a.with_bases("block", (1,)).with_bases(REGISTER, a.bases(REGISTER)[1:]),
                a.with_bases("block", (2,)).with_bases(REGISTER, a.bases(REGISTER)[1:]),
                32,
            ),
            "elements would move between the blocks|is held nowhere",
        ),
    ],
)
def test_misuse_is_refused(change: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        plan_conversion(*change(BLOCKED.layout((64, 64))))  # type: ignore[operator]


BLOCKED = Blocked((1, 4), (4, 8), (4, 1), (1, 0))


def test_blocks_that_hold_copies_choose_their_part() -> None:
    """Both blocks hold all; then each keeps a half, which is in registers that depend on it."""
    lanes = (2, 4, 8, 16, 32)
    copies = LinearLayout(
        ((REGISTER, (1,)), (LANE, lanes), (WARP, ()), ("block", (0,))), (("dim0", 6),)
    )
    halves = copies.with_bases(REGISTER, ()).with_bases("block", (1,))
    assert isinstance(check(copies, halves, 32), ThroughShared)
    with pytest.raises(ValueError, match="choose by their block"):
        plan_shuffle(halves.invert_and_compose(copies), 32)


def test_shuffles_serve_where_no_memory_is_left() -> None:
    source = Blocked((1, 32), (32, 1), (4, 1), (1, 0)).layout((128, 32))
    target = Blocked((32, 1), (1, 32), (4, 1), (0, 1)).layout((128, 32))
    assert isinstance(plan_conversion(source, target, 32, 16384), ThroughShared)
    plan = plan_conversion(source, target, 32, 16383)
    assert isinstance(plan, Shuffle)
    assert (machine.run(plan, machine.held(source)) == machine.held(target)).all()


def test_elements_stay_in_their_block() -> None:
    source = Blocked((1,), (32,), (1,), (0,), (2,)).layout((64,))
    target = LinearLayout(
        ((REGISTER, ()), (LANE, (2, 4, 8, 16, 32)), (WARP, ()), ("block", (1,))), source.outputs
    )
    with pytest.raises(ValueError, match="would move between the blocks of a cluster"):
        plan_conversion(source, target, 32)
