"""Launches from several Python threads at once: every one must count, and no memory may stay.

    python scripts/launch_stress.py [--launches 1000000] [--threads 4]

Each launch adds 1 to every element of its thread's array, through one kernel that all threads
share, in turns with torch tensors, where torch is installed, and NumPy arrays, grids that run on
the caller's thread and grids that the pool splits.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import tritium
import tritium.language as tl

SMALL, LARGE, BLOCK = 100, 1 << 16, 256
EACH_LARGE = 64
"""Every so many launches one is large enough for the pool."""


@tritium.jit
def count(x_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add 1 to the first elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


def arrays() -> list[Any]:
    """One thread's arrays, of each kind, all zero."""
    made: list[Any] = [np.zeros(LARGE, np.int32)]
    if importlib.util.find_spec("torch"):
        import torch

        made.append(torch.zeros(LARGE, dtype=torch.int32))
    return made


def run(launches: int, given: list[Any]) -> None:
    """Launch so often, on one array after the other."""
    for number in range(launches):
        n = SMALL if number % EACH_LARGE else LARGE
        x = given[number % len(given)]
        count[(-(-n // BLOCK),)](x, n, BLOCK=BLOCK)


def expected(launches: int, place: int, kinds: int) -> np.ndarray[Any, Any]:
    """What ``run`` leaves in the array of that place, by counting."""
    mine = range(place, launches, kinds)
    large = sum(1 for number in mine if number % EACH_LARGE == 0)
    whole = np.full(LARGE, large, np.int32)
    whole[:SMALL] += len(mine) - large
    return whole


def resident() -> int:
    """Bytes of memory that the process has now; its largest number so far where that is unknown."""
    status = Path("/proc/self/statm")
    if status.is_file():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> int:
    """Launch from all threads; the exit status is 1 where an array is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    each = options.launches // options.threads
    given = [arrays() for _ in range(options.threads)]
    warm = arrays()
    run(4 * EACH_LARGE, warm)
    gc.collect()
    before, start = resident(), time.perf_counter()
    threads = [threading.Thread(target=run, args=(each, mine)) for mine in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    gc.collect()
    after = resident()
    wrong = sum(
        not np.array_equal(np.asarray(x), expected(each, place, len(mine)))
        for mine in given
        for place, x in enumerate(mine)
    )
    print(
        f"{each * options.threads:,} launches from {options.threads} threads in {seconds:.1f} s: "
        f"{wrong} of {sum(map(len, given))} arrays wrong; resident memory "
        f"{before / 1e6:.1f} MB before, {after / 1e6:.1f} MB after"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
