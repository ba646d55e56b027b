"""Measure the CPU's float functions on every one of the 2**32 floats, and the worst by mpmath.

    python scripts/sweep_math.py                 # all functions, some minutes each
    python scripts/sweep_math.py exp sin         # some
    python scripts/sweep_math.py --write         # keep what was found in benchmarks/accuracy.json

In the sweep the exact value is the C library's in double, whose own error is below 2**-28 ulp of a
float; zeros must have its sign. The 1,000 inputs with the largest errors are computed once more
by mpmath, which has the last word. `scripts/generate_docs.py` makes a page of what is kept.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from tritium.backends import llvm
from tritium.backends.common import vector_math
from tritium.backends.emit import (
    Builder,
    Module,
    V,
    const,
    const_lanes,
    double,
    float_,
    i32,
    i64,
    int_,
    like,
    ptr,
)

Array = np.ndarray[Any, Any]

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "accuracy.json"
CHUNK = 1 << 20
LANES = 16
WORST = 1000
NAMES = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf")
# Enough for the sine of a number below 2**128 next to a multiple of pi.
PRECISION = 300
NEGATIVE = 1 << 31
BITS_OF_2_20 = 0x49800000
BITS_OF_INFINITY = 0x7F800000


@dataclass(frozen=True)
class Part:
    """Floats with patterns in the intervals [first, last), which are multiples of CHUNK."""

    label: str
    intervals: tuple[tuple[int, int], ...]


EVERY = Part("all floats", ((0, 1 << 32),))
NEAR = Part("below 2^20", ((0, BITS_OF_2_20), (NEGATIVE, NEGATIVE + BITS_OF_2_20)))
FAR = Part("from 2^20 on", ((BITS_OF_2_20, NEGATIVE), (NEGATIVE + BITS_OF_2_20, 1 << 32)))


@dataclass
class Found:
    """What the sweep of one function over a part of the floats found; errors in ulp."""

    function: str
    part: str
    inputs: int = 0
    rounded_otherwise: int = 0
    worst: float = 0.0
    at: float = 0.0
    mpmath_checked: int = 0
    mpmath_worst: float = 0.0
    libm_error: float = 0.0
    seconds: float = 0.0
    cpu: str = ""
    date: str = ""


def parts_of(name: str) -> tuple[Part, ...]:
    """What is swept apart: beyond 2^20 sine and cosine have a statement of their own."""
    return (NEAR, FAR) if name in ("sin", "cos") else (EVERY,)


# ---- the compiled sweep --------------------------------------------------------------------------


def exact_value(b: Builder, name: str, x: V, target: llvm.Target) -> V:
    """The function of doubles by the C library, or by one instruction that rounds correctly."""
    if name in ("sqrt", "rsqrt"):
        root = b.intrinsic("sqrt", (x,), pure=True)
        return root if name == "sqrt" else b.fdiv(const(x.type, 1.0), root)
    return vector_math.library_call(b, name, (x,), target)


def error_of(b: Builder, got: V, exact: V) -> tuple[V, V]:
    """|got - exact| in ulp of the float result, as floats; whether it isn't the rounded value.

    0 where both are the same infinity or NaN, infinity where only one of them is, and where a zero
    has the wrong sign.
    """
    rounded = b.fptrunc(exact, float_)
    wide, integer = exact.type, like(exact.type, i64)
    field = b.and_(b.lshr(b.as_int(exact), const(integer, 52)), const(integer, 0x7FF))
    unit = b.sub(field, const(integer, 23))
    unit = b.smax(unit, const(integer, 1023 - 149))
    size = b.as_float(b.shl(unit, const(integer, 52)), double)
    difference = b.intrinsic("fabs", (b.fsub(b.fpext(got, double), exact),), pure=True)
    error = b.fdiv(difference, size)
    infinite = b.fcmp("une", error, error)
    error = b.select(infinite, const(wide, float("inf")), error)
    same = b.icmp("eq", b.as_int(got), b.as_int(rounded))
    equal = b.fcmp("oeq", got, rounded)
    zero_sign = b.and_(equal, b.icmp("ne", b.as_int(got), b.as_int(rounded)))
    error = b.select(zero_sign, const(wide, float("inf")), error)
    large = b.fcmp("oeq", b.intrinsic("fabs", (got,), pure=True), const(got.type, float("inf")))
    nan = b.and_(b.fcmp("uno", got, got), b.fcmp("uno", exact, exact))
    error = b.select(b.or_(nan, b.and_(same, large)), const(wide, 0.0), error)
    other = b.icmp("eq", b.or_(same, nan), const(same.type, 0))
    return b.fptrunc(error, float_), other


def compiled(name: str, target: llvm.Target) -> tuple[llvm.Library, Callable[..., int]]:
    """A loop over floats: their number, the first pattern, where the results and errors go.

    It returns how many results aren't the correctly rounded ones.
    """
    module = Module()
    params = [(i64, "count"), (i64, "first"), (ptr, "results"), (ptr, "errors")]
    function = module.function("sweep", i64, params, attributes=target.attributes)
    b = Builder(function.entry)
    count, first, results, errors = function.params
    with b.loop(const(i64, 0), count, LANES, carried=[const(i64, 0)]) as loop:
        start = b.splat(b.trunc(b.add(first, loop.index), i32), LANES)
        x = b.as_float(b.add(start, const_lanes(i32, range(LANES))), float_)
        got: V = getattr(vector_math, name)(b, x, target)
        exact = exact_value(b, name, b.fpext(x, double), target)
        error, other = error_of(b, got, exact)
        offset = b.mul(loop.index, const(i64, 4))
        b.store(got, b.gep(results, offset), align=4)
        b.store(error, b.gep(errors, offset), align=4)
        mask = b.bitcast(other, int_(LANES))
        number = b.int_cast(b.intrinsic("ctpop", [mask]), i64, signed=False)
        loop.next([b.add(loop.carried[0], number)])
    b.ret(loop.results[0])
    library = llvm.compile_and_link(module.text(), target, ["sweep"])
    types = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    return library, ctypes.CFUNCTYPE(ctypes.c_int64, *types)(library.address("sweep"))


class Sweep:
    """One function's compiled loop, with room for a chunk of results."""

    def __init__(self, name: str, target: llvm.Target) -> None:
        self.name = name
        self.library, self.function = compiled(name, target)
        self.results = np.empty(CHUNK, np.float32)
        self.errors = np.empty(CHUNK, np.float32)

    def run(self, first: int, count: int = CHUNK) -> int:
        """Compute `count` floats from a pattern on; how many aren't correctly rounded."""
        return self.function(count, first, self.results.ctypes.data, self.errors.ctypes.data)


def wait(path: Path | None) -> None:
    """Sleep while the file exists."""
    while path is not None and path.exists():
        time.sleep(1)


def sweep(
    name: str, part: Part, target: llvm.Target, step: int = 1, pause: Path | None = None
) -> Found:
    """The errors of one function over every `step`-th chunk of a part, the worst by mpmath."""
    loop, found, start = Sweep(name, target), Found(name, part.label), time.process_time()
    found.cpu, found.date = target.cpu, datetime.date.today().isoformat()
    worst = np.empty((0, 3))
    for first in chunks(part, step):
        wait(pause)
        found.rounded_otherwise += loop.run(first)
        found.inputs += CHUNK
        limit = worst[-1, 0] if len(worst) == WORST else 0.0
        places = np.flatnonzero(loop.errors > limit)
        if len(places) > WORST:
            keep = np.argpartition(loop.errors[places], -WORST)[-WORST:]
            places = places[keep]
        rows = np.stack(
            [loop.errors[places], first + places.astype(np.float64), loop.results[places]], axis=1
        )
        worst = np.concatenate([worst, rows])
        worst = worst[np.argsort(-worst[:, 0], kind="stable")][:WORST]
    check_worst(found, worst)
    found.seconds = round(time.process_time() - start, 1)
    return found


def chunks(part: Part, step: int) -> Iterator[int]:
    """The first patterns of every `step`-th chunk."""
    for first, last in part.intervals:
        yield from range(first, last, CHUNK * step)


# ---- mpmath --------------------------------------------------------------------------------------

EXACT: dict[str, Callable[[Any], Any]] = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}


def ulps(name: str, x: float, got: float) -> float:
    """The error of a finite result in ulp, by mpmath."""
    with mpmath.workprec(PRECISION):
        function = EXACT.get(name) or getattr(mpmath, name)
        exact = function(mpmath.mpf(x))
        exponent = max(mpmath.frexp(exact)[1] - 24, -149) if exact else -149
        return float(abs(mpmath.mpf(got) - exact) * mpmath.mpf(2) ** -exponent)


def check_worst(found: Found, worst: Array) -> None:
    """What mpmath says of rows of error, pattern and result; infinite errors stay."""
    if not len(worst):
        return
    inputs = worst[:, 1].astype(np.uint64).astype(np.uint32).view(np.float32)
    finite = np.isfinite(worst[:, 0])
    found.worst, found.at = float(worst[0, 0]), float(inputs[0])
    if not finite.all():
        return
    exact = np.array([ulps(found.function, float(x), y) for x, y in zip(inputs, worst[:, 2])])
    place = int(exact.argmax())
    found.mpmath_checked = len(exact)
    found.mpmath_worst, found.at = float(exact[place]), float(inputs[place])
    # The sweep's errors are kept as floats, with an error of 2**-25 of their own.
    found.libm_error = float(np.abs(exact - worst[:, 0]).max())


# ---- what is kept --------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """What the figures depend on beside the CPU."""
    import llvmlite.binding

    return {
        "Python": platform.python_version(),
        "llvmlite": importlib.metadata.version("llvmlite"),
        "LLVM": ".".join(map(str, llvmlite.binding.llvm_version_info)),
        "mpmath": mpmath.__version__,
        "C library": " ".join(platform.libc_ver()) or platform.system(),
    }


def keep(found: Sequence[Found]) -> None:
    """Write what was found, in the place of what was known of the same parts."""
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.is_file() else {"found": []}
    rows = {(each["function"], each["part"]): each for each in kept["found"]}
    rows.update({(each.function, each.part): asdict(each) for each in found})
    order = sorted(rows, key=lambda key: NAMES.index(key[0]))
    kept = {"versions": versions(), "found": [rows[key] for key in order]}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def line(found: Found) -> str:
    """One row of what is printed."""
    rounded = 100 * (1 - found.rounded_otherwise / found.inputs)
    return (
        f"{found.function:5} {found.part:12} {found.inputs:10} inputs, worst {found.worst:.6f}, "
        f"by mpmath {found.mpmath_worst:.6f} ulp of {found.mpmath_checked} at {found.at!r}; "
        f"{rounded:.4f} % correctly rounded; {found.seconds:.0f} s"
    )


def main() -> int:
    """Sweep the named functions; the exit status is 1 if an error is above 1 ulp."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="function", help=", ".join(NAMES))
    parser.add_argument("--step", type=int, default=1, help="only every STEP-th 2**20 floats")
    parser.add_argument("--cpu", help="compile for this CPU instead of the host's own")
    parser.add_argument("--pause-while", type=Path, metavar="FILE", help="sleep while it exists")
    parser.add_argument("--write", action="store_true", help=f"keep it in {KEPT.name}")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(NAMES)):
        parser.error(f"no function {', '.join(unknown)}")
    target = llvm.host_target(given.cpu)
    wrong = False
    for name in given.names or NAMES:
        for part in parts_of(name):
            found = sweep(name, part, target, given.step, given.pause_while)
            print(line(found), flush=True)
            wrong |= not max(found.worst, found.mpmath_worst) <= 1.0
            if given.write:
                keep([found])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
