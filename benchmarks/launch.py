"""Times of single launches: the line as users write it, in trains and after a pause.

    python -m benchmarks.launch             # the table alone; --quick: few launches
    python -m benchmarks.launch --json FILE

Each time is one of many rounds; a round of a train is a loop of launches and counts the mean of
them. What a kernel computes on the arrays here takes some ten nanoseconds.
"""

from __future__ import annotations

import argparse
import json
import time
import timeit
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tritium
import tritium.language as tl

from . import kernels
from .compile_times import print_lines, row

ELEMENTS = 100
LAUNCH = "kernel[grid](x, y, out, n, BLOCK=1024)"
BY_PYTHON = "kernel.run(x, y, out, n, grid=grid, BLOCK=1024)"
MANY = "many[grid](x, y, a, b, c, out, n, 2, 3, 4, 5, 6, 7, 8, 9, 0.5, 1.5, True, BLOCK=1024)"
TWO = "kernel[grid](x, y, out, n, BLOCK=64)"
PAUSE = 1e-3
MOST, MOST_MANY, MOST_BY_PYTHON, MOST_TWO, MOST_AFTER_PAUSE = 1e-6, 2e-6, 10e-6, 2e-6, 40e-6
SPLIT = 1 << 18
"""Elements of a program that takes long enough for a second thread to be worth its waking."""


def train(statement: str, names: dict[str, Any], quick: bool) -> list[float]:
    """Seconds of one launch in each of the rounds, after a round that isn't counted."""
    rounds, launches = (3, 20) if quick else (41, 5000)
    times = timeit.Timer(statement, globals=names).repeat(rounds + 1, launches)
    return [seconds / launches for seconds in times[1:]]


def after_pause(statement: str, names: dict[str, Any], quick: bool) -> list[float]:
    """Seconds of a launch that follows a millisecond of sleep."""
    timer = timeit.Timer(statement, globals=names)
    times = []
    for _ in range(5 if quick else 1000):
        time.sleep(PAUSE)
        times.append(timer.timeit(1))
    return times


def arrays(elements: int) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    return [random.random(elements, np.float32) for _ in range(6)]


def check(out: Any, expected: Any) -> None:
    """Raises AssertionError if what a launch computed isn't right."""
    if not np.allclose(np.asarray(out), expected, rtol=1e-5):
        raise AssertionError("a launch that is timed computes a wrong result")


def small(label: str, given: Sequence[Any], peer: str, quick: bool) -> Iterator[dict[str, Any]]:
    """Launches on a library's arrays, and that library's own addition of them."""
    x, y, a, b, c, out = given
    names = {"x": x, "y": y, "a": a, "b": b, "c": c, "out": out, "n": ELEMENTS, "grid": (1,)}
    names["kernel"] = kernels.build("add", tritium, tl)
    names["many"] = kernels.build("many", tritium, tl)
    for name, statement, most in (
        (f"{label}, 4 arguments", LAUNCH, MOST),
        (f"{label}, 19 arguments", MANY, MOST_MANY),
        (f"{label}, by Python", BY_PYTHON, MOST_BY_PYTHON),
    ):
        out[:] = 0
        yield row(name, train(statement, names, quick), most)
        check(out, np.asarray(x) + np.asarray(y))
    yield row(f"{label}: {peer}", train(peer, {**names, "np": np, **modules()}, quick), None)


def modules() -> dict[str, Any]:
    """torch, where it is installed."""
    try:
        import torch
    except ImportError:
        return {}
    return {"torch": torch}


def two_programs(quick: bool) -> Iterator[dict[str, Any]]:
    """Grids of two programs: small ones, and such as two threads run."""
    x, y, *_, out = arrays(ELEMENTS)
    kernel = kernels.build("add", tritium, tl)
    names = {"kernel": kernel, "x": x, "y": y, "out": out, "n": ELEMENTS, "grid": (2,)}
    yield row("two programs, in a train", train(TWO, names, quick), MOST_TWO)
    yield row("two programs, after 1 ms", after_pause(TWO, names, quick), MOST_AFTER_PAUSE)
    check(out, x + y)
    x, y, *_, out = arrays(2 * SPLIT)
    names = {"kernel": kernel, "x": x, "y": y, "out": out, "n": 2 * SPLIT, "grid": (2,)}
    long = f"kernel[grid](x, y, out, n, BLOCK={SPLIT})"
    for name, grid in (("one program of 256 Ki elements", (1,)), ("two such programs", (2,))):
        names["grid"] = grid
        yield row(f"{name}, in a train", train(long, names, quick), None)
        yield row(f"{name}, after 1 ms", after_pause(long, names, quick), None)
    check(out, x + y)


def run(quick: bool) -> list[dict[str, Any]]:
    """All lines, as ``compile_times.row`` makes them; without limits where ``quick``."""
    given = arrays(ELEMENTS)
    lines = list(small("NumPy", given, "np.add(x, y, out=out)", quick))
    torch = modules().get("torch")
    if torch is not None:
        tensors = [torch.from_numpy(array.copy()) for array in given]
        lines += small("torch", tensors, "torch.add(x, y, out=out)", quick)
    lines += two_programs(quick)
    if quick:
        lines = [{k: v for k, v in line.items() if k not in ("most", "met")} for line in lines]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, help="gets the lines")
    options = parser.parse_args()
    lines = run(options.quick)
    if options.json is not None:
        options.json.write_text(json.dumps(lines))
    print_lines(lines)


if __name__ == "__main__":
    main()
