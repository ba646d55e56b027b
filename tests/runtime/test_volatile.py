"""Volatile loads see what other threads write while the kernel runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import tritium
import tritium.language as tl

TRIES = 2_000_000_000
"""A loop that never sees the change ends after seconds."""


@tritium.jit
def one(flag, out, tries, n):
    seen = 0
    while (seen == 0) & (tries > 0):
        seen = tl.load(flag + n, volatile=True)
        tries -= 1
    tl.store(out, seen)


@tritium.jit
def one_masked(flag, out, tries, n):
    seen = 0
    while (seen == 0) & (tries > 0):
        seen = tl.load(flag + n, mask=n > 2, other=0, volatile=True)
        tries -= 1
    tl.store(out, seen)


@tritium.jit
def tile(flag, out, tries, n):
    place = tl.arange(0, 16)
    seen = 0
    while (seen == 0) & (tries > 0):
        seen = tl.sum(tl.load(flag + place, volatile=True))
        tries -= 1
    tl.store(out, seen)


@tritium.jit
def tile_masked(flag, out, tries, n):
    place = tl.arange(0, 16)
    seen = 0
    while (seen == 0) & (tries > 0):
        seen = tl.sum(tl.load(flag + place, mask=place <= n, other=0, volatile=True))
        tries -= 1
    tl.store(out, seen)


@tritium.jit
def gathered(flag, out, tries, n):
    place = (tl.arange(0, 16) * 7) & 15
    seen = 0
    while (seen == 0) & (tries > 0):
        seen = tl.sum(tl.load(flag + place, volatile=True))
        tries -= 1
    tl.store(out, seen)


@tritium.jit
def strided(flag, out, tries, n):
    place = tl.arange(0, 8) * 3
    seen = 0
    while (seen == 0) & (tries > 0):
        seen = tl.sum(tl.load(flag + place, mask=place <= n, other=0, volatile=True))
        tries -= 1
    tl.store(out, seen)


@pytest.mark.parametrize(
    "kernel",
    [one, one_masked, tile, tile_masked, gathered, strided],
    ids=lambda kernel: kernel.__name__,
)
def test_a_change_is_seen(kernel: Callable[..., None]) -> None:
    flag, out = np.zeros(32, np.int32), np.zeros(1, np.int32)
    kernel.warmup(flag, out, TRIES, 3, grid=(1,))
    timer = threading.Timer(0.02, lambda: flag.__setitem__(3, 7))
    timer.start()
    kernel[(1,)](flag, out, TRIES, 3)
    timer.join()
    assert out[0] == 7


def test_other_threads_go_on_however_short_earlier_launches_were() -> None:
    flag, out = np.zeros(32, np.int32), np.zeros(1, np.int32)
    flag[3] = 7
    for _ in range(5):
        one[(1,)](flag, out, TRIES, 3)
    flag[3] = out[0] = 0
    timer = threading.Timer(0.02, lambda: flag.__setitem__(3, 7))
    timer.start()
    one[(1,)](flag, out, TRIES, 3)
    timer.join()
    assert out[0] == 7
