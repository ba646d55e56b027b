"""Timing on the device: events around each call, the cache flushed before it, sides interleaved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from .measure import Side

FLUSHED = 256 << 20
"""Bytes that are written before each timed call: several times the L2 cache."""

LEAD = 2_000_000
"""Cycles for which the device is kept busy while the first calls are queued: about 1 ms."""

BATCH = 25
"""Rounds that are queued before the host waits: the driver's queue holds about 1,000 entries."""


class Clock(Protocol):
    """Times calls: ``start`` before some are queued, ``time`` queues one, ``seconds`` waits."""

    def start(self) -> None: ...

    def time(self, call: Callable[[], object]) -> None: ...

    def seconds(self) -> list[float]: ...


class EventClock:
    """CUDA events on torch's current stream."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.flush = torch.empty(FLUSHED, dtype=torch.int8, device="cuda")
        self.events: list[tuple[Any, Any]] = []

    def start(self) -> None:
        """Gives the host a lead: the device never waits for it between two events."""
        self.torch.cuda._sleep(LEAD)

    def time(self, call: Callable[[], object]) -> None:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        begin.record()
        call()
        end.record()
        self.events.append((begin, end))

    def seconds(self) -> list[float]:
        self.torch.cuda.synchronize()
        times = [begin.elapsed_time(end) / 1e3 for begin, end in self.events]
        self.events.clear()
        return times


def time_rounds(
    clock: Clock, sides: Sequence[Side], rounds: int, seed: int = 0
) -> dict[str, list[float]]:
    """Seconds of each side in each round; in a round, every side runs once, in random order."""
    order = np.random.default_rng(seed)
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    for side in sides:
        side.call()
    done = 0
    while done < rounds:
        places = [order.permutation(len(sides)) for _ in range(min(BATCH, rounds - done))]
        clock.start()
        for place in np.concatenate(places):
            clock.time(sides[place].call)
        for place, seconds in zip(np.concatenate(places), clock.seconds(), strict=True):
            times[sides[place].name].append(seconds)
        done += len(places)
    return times


def fastest(clock: Clock, sides: Sequence[Side], rounds: int) -> str:
    """The side with the least median."""
    times = time_rounds(clock, sides, rounds)
    return min(times, key=lambda name: float(np.median(times[name])))
