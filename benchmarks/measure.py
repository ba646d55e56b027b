"""Timing: rounds in which every side runs once, and ratios with a bootstrap interval."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

RESAMPLES = 2000
LONGEST_WAIT = 0.5
STEP = 0.002
BUSY_SHARE = 0.1


class WrongResult(Exception):
    """A side's result is further from the float64 result than its tolerance."""


@dataclass(frozen=True)
class Side:
    """One implementation: its name and a call that does the case's work once.

    ``warm``: an untimed call precedes each timed one.
    """

    name: str
    call: Callable[[], object]
    warm: bool = True


@dataclass(frozen=True)
class Ratio:
    """A peer's time over ours: of the medians, with its 95 % interval, and of the minima."""

    median: float
    low: float
    high: float
    minima: float

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def wait_until_idle() -> float:
    """Sleeps until no thread of this process computes any longer; the seconds that took.

    Thread pools spin for a while after a call: libgomp's for milliseconds, OpenBLAS' longer. Gives
    up after ``LONGEST_WAIT`` seconds.
    """
    start = time.perf_counter()
    while time.perf_counter() - start < LONGEST_WAIT:
        wall, cpu = time.perf_counter(), time.process_time()
        time.sleep(STEP)
        if time.process_time() - cpu < BUSY_SHARE * (time.perf_counter() - wall):
            break
    return time.perf_counter() - start


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def time_rounds(sides: Sequence[Side], rounds: int, seed: int = 0) -> dict[str, list[float]]:
    """Seconds of each side in each round; in a round, every side runs once, in random order.

    Before a side is timed, all pools of the process have gone to sleep and the side has run once
    untimed: its own pool is awake and its data where its last run left them, the others' idle.
    """
    order = np.random.default_rng(seed)
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for place in order.permutation(len(sides)):
                side = sides[place]
                wait_until_idle()
                if side.warm:
                    side.call()
                times[side.name].append(seconds(side.call))
    finally:
        if collecting:
            gc.enable()
    return times


def compare(peer: Sequence[float], ours: Sequence[float], seed: int = 0) -> Ratio:
    """How many times longer the peer takes; the rounds are resampled as pairs.

    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13: percentile interval.
    """
    theirs, mine = np.asarray(peer), np.asarray(ours)
    if len(theirs) != len(mine) or not len(mine):
        raise ValueError(f"pairs are needed: {len(theirs)} and {len(mine)} times were given")
    picks = np.random.default_rng(seed).integers(0, len(mine), (RESAMPLES, len(mine)))
    resampled = np.median(theirs[picks], axis=1) / np.median(mine[picks], axis=1)
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Ratio(
        float(np.median(theirs) / np.median(mine)),
        float(low),
        float(high),
        float(theirs.min() / mine.min()),
    )


def summary(times: Mapping[str, Sequence[float]], ours: str) -> dict[str, Any]:
    """Median and minimum of each side, in seconds, all times, and each peer's ratio to ``ours``."""
    return {
        "sides": {
            name: {
                "median": float(np.median(t)),
                "minimum": min(t),
                "times": [round(s, 9) for s in t],
            }
            for name, t in times.items()
        },
        "ratios": {
            name: compare(t, times[ours]).as_dict() for name, t in times.items() if name != ours
        },
    }
