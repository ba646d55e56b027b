"""Timing of calls, of launches on GPUs too."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from tritium.runtime.arrays import CPU

SHORTEST = 2e-4
"""Seconds that a sample takes, about, at least: calls that are shorter are timed together."""
FIRST = 5
"""Calls that say how long one takes."""


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    quantiles: Sequence[float] = (0.5,),
    wait: Callable[[], object] | None = None,
) -> list[float]:
    """Quantiles of the milliseconds that ``fn()`` takes.

    Six calls tell how long one takes; then it is called for about ``warmup`` milliseconds untimed
    and for about ``rep`` timed, once at the least. ``wait()`` returns when what was started is done
    (``waiting_for``). Caches are as the calls leave them.
    """
    done: Callable[[], object] = wait if wait is not None else lambda: None
    fn()
    estimate = max(_seconds(fn, FIRST, done), 1e-9)
    for _ in range(round(warmup / 1e3 / estimate)):
        fn()
    together = max(1, round(SHORTEST / estimate))
    samples = max(1, round(rep / 1e3 / (estimate * together)))
    done()
    times = [_seconds(fn, together, done) for _ in range(samples)]
    found: list[float] = (np.quantile(times, quantiles) * 1e3).tolist()
    return found


def _seconds(fn: Callable[[], object], calls: int, done: Callable[[], object]) -> float:
    """What a call takes, the mean of several."""
    start = time.perf_counter()
    for _ in range(calls):
        fn()
    done()
    return (time.perf_counter() - start) / calls


def waiting_for(device: str) -> Callable[[], object] | None:
    """A function that waits for the launches on "cuda:0" and the like; None for the CPU."""
    if device == CPU:
        return None
    from tritium.runtime.cuda import devices

    gpu = devices.get(int(device.partition(":")[2] or 0))

    def wait() -> None:
        with gpu.current():
            gpu.cuda.cuCtxSynchronize()

    return wait
