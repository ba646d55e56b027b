"""Measure the CPU's float functions on every float: the worst error in ulp.

    python scripts/sweep_math.py            # all functions, minutes each
    python scripts/sweep_math.py exp sin    # some

The reference is the C library in double, whose own error is below 2**-28 ulp of a float. `erf` is
swept over [2**-14, 4) only: it is odd, linear below and 1 above.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tritium.backends import llvm
from tritium.backends.common import vector_math
from tritium.backends.emit import Builder, Module, V, const, float_, i64, ptr, vec, void

Array = np.ndarray[Any, Any]

CHUNK = 1 << 20
LANES = 16
REFERENCES: dict[str, Callable[[Array], Array]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh")},
    "erf": lambda x: np.fromiter(map(math.erf, x.tolist()), np.float64, len(x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


def compiled(name: str) -> tuple[llvm.Library, Callable[[int, int, int], None]]:
    """A loop over an array of floats: count, source address, destination address."""
    target = llvm.host_target()
    module = Module()
    params = [(i64, "count"), (ptr, "source"), (ptr, "destination")]
    function = module.function("sweep", void, params, attributes=target.attributes)
    b = Builder(function.entry)
    count, source, destination = function.params
    with b.loop(const(i64, 0), count, LANES) as loop:
        offset = b.mul(loop.index, const(i64, 4))
        x = b.load(vec(float_, LANES), b.gep(source, offset), align=4)
        result: V = getattr(vector_math, name)(b, x, target)
        b.store(result, b.gep(destination, offset), align=4)
    b.ret()
    library = llvm.compile_and_link(module.text(), target, ["sweep"])
    types = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    return library, ctypes.CFUNCTYPE(None, *types)(library.address("sweep"))


def chunks(name: str) -> Iterator[Array]:
    """Every float of the function's range, a chunk at a time."""
    first, last = 0, 1 << 32
    if name == "erf":
        first, last = (int(np.float32(x).view(np.uint32)) for x in (2.0**-14, 4.0))
    for start in range(first, last, CHUNK):
        yield np.arange(start, start + CHUNK, dtype=np.uint64).astype(np.uint32).view(np.float32)


def errors(got: Array, exact: Array) -> Array:
    """|got - exact| in ulp of the float result; 0 for the same infinity or NaN."""
    rounded = exact.astype(np.float32)
    _, exponent = np.frexp(np.where(np.isfinite(exact), exact, 1.0))
    exponent = np.where(exact == 0, -149, np.maximum(exponent - 24, -149))
    error = np.abs(got.astype(np.float64) - exact) / np.exp2(exponent.astype(np.float64))
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def sweep(name: str) -> str:
    """The worst error of one function and where it is."""
    _library, function = compiled(name)
    got = np.empty(CHUNK, np.float32)
    worst, place, wrong, total, start = 0.0, 0.0, 0, 0, time.perf_counter()
    for x in chunks(name):
        function(CHUNK, x.ctypes.data, got.ctypes.data)
        with np.errstate(all="ignore"):
            found = errors(got, REFERENCES[name](x.astype(np.float64)))
        index = int(found.argmax())
        wrong, total = wrong + int(np.count_nonzero(found)), total + CHUNK
        if found[index] > worst:
            worst, place = float(found[index]), float(x[index])
    exactly = 100 * (1 - wrong / total)
    seconds = time.perf_counter() - start
    return (
        f"{name:6s} worst {worst:.4f} ulp at {place!r}; "
        f"{exactly:.2f} % of {total} correctly rounded ({seconds:.0f} s)"
    )


def main() -> None:
    """Sweep the named functions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *REFERENCES], metavar="function")
    for name in parser.parse_args().names or REFERENCES:
        print(sweep(name), flush=True)


if __name__ == "__main__":
    main()
