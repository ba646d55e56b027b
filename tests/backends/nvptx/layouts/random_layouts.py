"""Random layouts: of the encodings, and of any surjective linear map."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from tritium.backends.nvptx.layouts import (
    BLOCK,
    LANE,
    REGISTER,
    WARP,
    Blocked,
    LinearLayout,
    Sliced,
    axes,
)

ELEMENT_BITS = (8, 16, 32, 64)
randoms = st.integers(0, 2**32 - 1).map(Random)
"""Few choices for hypothesis to make: most of a layout is drawn from a seed."""


def split(random: Random, bits: int, parts: int) -> list[int]:
    """``bits`` as a sum of that many numbers."""
    numbers = [0] * parts
    for _ in range(bits):
        numbers[random.randrange(parts)] += 1
    return numbers


def shape(random: Random, rank: int, bits: int) -> tuple[int, ...]:
    return tuple(1 << n for n in split(random, bits, rank))


def blocked(random: Random, rank: int, warp_bits: int) -> Blocked:
    """Any boxes, in any order, of that many warps."""
    order = list(range(rank))
    random.shuffle(order)
    boxes = [
        tuple(1 << n for n in split(random, bits, rank))
        for bits in (random.randrange(4), 5, warp_bits)
    ]
    return Blocked(boxes[0], boxes[1], boxes[2], tuple(order))


def of_encoding(random: Random, shape: tuple[int, ...], warp_bits: int) -> LinearLayout:
    """A blocked layout, or a slice of one."""
    rank = len(shape)
    if random.random() < 0.3:
        whole = blocked(random, rank + 1, warp_bits)
        return Sliced(whole, random.randrange(rank + 1)).layout(shape)
    return blocked(random, rank, warp_bits).layout(shape)


def independent(random: Random, bits: int) -> list[int]:
    """A basis of F2**bits: unit vectors in any order, or any basis at all."""
    vectors = [1 << bit for bit in range(bits)]
    random.shuffle(vectors)
    if random.random() < 0.4:
        for _ in range(3 * bits):
            a, b = (random.randrange(bits) for _ in range(2)) if bits > 1 else (0, 0)
            if a != b:
                vectors[a] ^= vectors[b]
    return vectors


def surjective(random: Random, shape: tuple[int, ...], warp_bits: int) -> LinearLayout:
    """Any map onto the tile in which no register holds a copy, with copies in lanes and warps."""
    outputs = axes(shape)
    bits = sum(width for _, width in outputs)
    vectors = independent(random, bits)
    threads = [(LANE, bit) for bit in range(5)] + [(WARP, bit) for bit in range(warp_bits)]
    random.shuffle(threads)
    holders = threads[: random.randint(0, min(bits, len(threads)))]
    lanes, warps = [0] * 5, [0] * warp_bits
    for name, bit in holders:
        (lanes if name == LANE else warps)[bit] = vectors.pop()
    inputs = ((REGISTER, tuple(vectors)), (LANE, tuple(lanes)), (WARP, tuple(warps)), (BLOCK, ()))
    return LinearLayout(inputs, outputs)


def layout(random: Random, shape: tuple[int, ...], warp_bits: int) -> LinearLayout:
    kind = of_encoding if random.random() < 0.5 else surjective
    return kind(random, shape, warp_bits)


def mixed_in_warps(random: Random, source: LinearLayout) -> LinearLayout:
    """Another layout of the tile that moves elements within warps at most."""
    registers, lanes = source.bases(REGISTER), source.bases(LANE)
    places = [*registers, *(lane for lane in lanes if lane)]
    random.shuffle(places)
    if random.random() < 0.4:
        for _ in range(2 * len(places)):
            a, b = random.randrange(len(places)), random.randrange(len(places))
            if a != b:
                places[a] ^= places[b]
    holders = [bit for bit in range(len(lanes)) if random.random() < 0.8][: len(places)]
    made = [0] * len(lanes)
    for bit in holders:
        made[bit] = places.pop()
    return source.with_bases(REGISTER, places).with_bases(LANE, made)
