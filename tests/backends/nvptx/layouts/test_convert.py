"""Conversions: run on a block in software, every element arrives; what they cost is counted."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.nvptx.layouts import machine, random_layouts
from tritium.backends.nvptx.layouts import (
    BLOCK,
    LANE,
    OFFSET,
    REGISTER,
    WARP,
    Blocked,
    LinearLayout,
    Rename,
    Scope,
    SharedAccess,
    Shuffle,
    Sliced,
    ThroughShared,
    cost,
    crossing,
    optimal_shared,
    plan_conversion,
    plan_shuffle,
)

EXTENTS = (1, 3, 5, 48, 80, 96, 160)


def draw_pair(random: Random) -> tuple[LinearLayout, LinearLayout, int]:
    warp_bits = random.randrange(4)
    shape = random_layouts.shape(random, random.randint(1, 3), random.randint(0, 11))
    source = random_layouts.layout(random, shape, warp_bits)
    if random.random() < 0.4:
        target = random_layouts.mixed_in_warps(random, source)
    else:
        target = random_layouts.layout(random, shape, warp_bits)
    return source, target, random.choice(random_layouts.ELEMENT_BITS)


def check(source: LinearLayout, target: LinearLayout, bits: int) -> None:
    plan = plan_conversion(source, target, bits)
    values = machine.held(source)
    wanted = machine.held(target)
    assert (machine.run(plan, values) == wanted).all()
    if isinstance(plan, ThroughShared):
        assert machine.total_wavefronts(plan.store) == plan.store.wavefronts
        assert machine.total_wavefronts(plan.load) == plan.load.wavefronts
        passes = 1 << plan.repeatable
        assert (machine.run(plan, values, passes) == wanted).all()


@settings(max_examples=250)
@given(random_layouts.randoms)
def test_every_element_arrives(random: Random) -> None:
    check(*draw_pair(random))
