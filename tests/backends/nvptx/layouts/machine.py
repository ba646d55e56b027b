"""A thread block in software: registers of lanes of warps, shuffles, shared memory with banks.

It runs conversion plans on element numbers. Nothing here uses the library's algebra: a layout is
evaluated bit by bit from its bases, and banks are counted byte by byte.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from tritium.backends.nvptx.layouts import (
    Conversion,
    LinearLayout,
    Rename,
    Scope,
    SharedAccess,
    Shuffle,
    ThroughShared,
)

LANES = 32
BANKS = 32
WORD = 4
NOTHING = -1

Values = np.ndarray
"""Element numbers by (block, warp, lane, register)."""


def evaluate(layout: LinearLayout, inputs: Sequence[str]) -> np.ndarray:
    """The row-major image of every place, as an array with an axis for each of ``inputs``."""
    table = np.zeros([1 << layout.input_bits(name) for name in inputs], dtype=np.int64)
    for axis, name in enumerate(inputs):
        numbers = np.arange(table.shape[axis]).reshape([-1] + [1] * (table.ndim - 1 - axis))
        for bit, basis in enumerate(layout.bases(name)):
            table ^= np.where(numbers >> bit & 1, basis, 0)
    return table


def held(layout: LinearLayout) -> Values:
    """Which element each place holds."""
    return evaluate(layout, ("block", "warp", "lane", "register"))


def run(conversion: Conversion, values: Values, passes: int = 1) -> Values:
    """What each place holds afterwards."""
    if isinstance(conversion, Rename):
        return values[..., list(conversion.sources)]
    if isinstance(conversion, Shuffle):
        return run_shuffle(conversion, values)
    return run_shared(conversion, values, passes)


def parity(numbers: np.ndarray, mask: int) -> np.ndarray:
    return np.array([bin(int(n) & mask).count("1") & 1 for n in numbers], dtype=bool)


def run_shuffle(plan: Shuffle, values: Values) -> Values:
    _, warps, lanes, _ = values.shape
    warp, lane = np.arange(warps), np.arange(lanes)
    # Words by number, each (block, warp, lane, element of the word).
    words = {number: values[..., list(registers)] for number, registers in enumerate(plan.sources)}

    def exchanged(words: dict[int, Values], exchanges: Iterable) -> dict[int, Values]:
        for exchange in exchanges:
            swaps = parity(warp, exchange.warps)[:, None] ^ parity(lane, exchange.lanes)[None]
            words = {
                w: np.where(swaps[None, :, :, None], words[w ^ exchange.words], words[w])
                for w in exchange.kept
            }
        return words

    def xor_of(columns: Sequence[int], numbers: np.ndarray) -> np.ndarray:
        total = np.zeros_like(numbers)
        for bit, column in enumerate(columns):
            total ^= np.where(numbers >> bit & 1, column, 0)
        return total

    words = exchanged(words, plan.before)
    reads = xor_of(plan.warps, warp)[:, None] ^ xor_of(plan.lanes, lane)[None]
    received = {}
    for number, step in enumerate(plan.rounds):
        there = reads ^ step.lanes
        published = words[step.published]
        taken = published[:, warp[:, None], there]
        if not plan.moves(step):
            assert (there == lane[None]).all(), "a round that moves nothing reads another lane"
        received[number] = taken
    received = exchanged(received, plan.after)
    made = np.full((*values.shape[:3], sum(map(len, plan.targets))), NOTHING)
    for number, registers in enumerate(plan.targets):
        made[..., list(registers)] = received[number]
    return made


def offsets_of(side: SharedAccess) -> np.ndarray:
    """The offset of register 0 of each (block, warp, lane)."""
    return evaluate(side.offsets.keep_outputs(["offset"]), ("block", "warp", "lane"))


def run_shared(plan: ThroughShared, values: Values, passes: int) -> Values:
    size = plan.arrangement.bytes(passes) * 8 // plan.arrangement.element_bits
    target = np.full(
        (*values.shape[:3], plan.arrangement.load.offsets.input_extent("register")),
        NOTHING,
        dtype=np.int64,
    )
    lanes = [lane for lane in range(LANES) if not lane & plan.idle_lanes]
    for block in range(values.shape[0]):
        for part in range(passes):
            memory = np.full(size, NOTHING, dtype=np.int64)
            writer = np.full(size, NOTHING, dtype=np.int64)
            stored = offsets_of(plan.arrangement.store)[block]
            for warp, (registers, at) in itertools.product(
                range(values.shape[1]), accesses(plan, plan.arrangement.store, part, passes)
            ):
                if warp & plan.idle_warps:
                    continue
                where = addresses(plan, stored[warp], at, plan.arrangement.store.width, size)[lanes]
                assert (memory[where] == NOTHING).all(), "an element is stored twice"
                assert len(np.unique(where)) == where.size
                memory[where] = values[block, warp][lanes][:, list(registers)]
                writer[where] = warp
            loaded = offsets_of(plan.arrangement.load)[block]
            for warp, (registers, at) in itertools.product(
                range(values.shape[1]), accesses(plan, plan.arrangement.load, part, passes)
            ):
                where = addresses(plan, loaded[warp], at, plan.arrangement.load.width, size)
                if plan.scope is Scope.WARP:
                    assert (writer[where] == warp).all(), "a warp reads what another stored"
                target[block, warp][:, list(registers)] = memory[where]
    return target


def accesses(
    plan: ThroughShared, side: SharedAccess, part: int, passes: int
) -> Iterable[tuple[tuple[int, ...], int]]:
    """Registers and offset of the accesses of one pass."""
    low = plan.arrangement.offset_bits - (passes.bit_length() - 1)
    for registers, at in zip(side.vectors.groups, side.vectors.offsets, strict=True):
        if (at & ((1 << plan.arrangement.offset_bits) - 1)) >> low == part:
            yield registers, at


def addresses(
    plan: ThroughShared, starts: np.ndarray, at: int, width: int, size: int
) -> np.ndarray:
    """Positions in the memory of one pass, by lane and element of the access."""
    first = ((starts ^ at) & ((1 << plan.arrangement.offset_bits) - 1)) % size
    assert not (first % width).any(), "an access isn't aligned"
    return first[:, None] + np.arange(width)[None]


def wavefronts(offsets: LinearLayout, element_bits: int, width: int, at: int, warp: int) -> int:
    """The passes over the banks that one access of one warp takes, counted byte by byte."""
    starts = evaluate(offsets.keep_outputs(["offset"]), ("warp", "lane"))[warp] ^ at
    size = element_bits // 8
    access = width * size
    lanes_at_once = min(LANES, BANKS * WORD // access)
    total = 0
    for first in range(0, LANES, lanes_at_once):
        wanted: dict[int, set[int]] = {}
        for start in starts[first : first + lanes_at_once]:
            for byte in range(int(start) * size, int(start) * size + access):
                wanted.setdefault(byte // WORD % BANKS, set()).add(byte // WORD)
        total += max(map(len, wanted.values()))
    return total


def total_wavefronts(side: SharedAccess, warp: int = 0) -> int:
    """The passes over the banks that all accesses of one warp take."""
    return sum(
        wavefronts(side.offsets, side.element_bits, side.width, at, warp)
        for at in side.vectors.offsets
    )
