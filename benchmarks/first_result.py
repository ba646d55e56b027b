"""A fresh process that imports NumPy and Tritium and times one kernel's way to its first result.

Prints JSON: seconds of importing Tritium (``import``), and from there through the kernel's
definition and launch to its result (``first``). llvmlite is no part of what was imported before.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from . import kernels

ROWS = 16
LENGTH = 16 * 1024


def arguments(
    name: str, columns: int
) -> tuple[tuple[int, ...], tuple[object, ...], dict[str, int], np.ndarray, np.ndarray]:
    """Grid, arguments, constants, what is written, and its float64 result."""
    random = np.random.default_rng(0)
    if name in ("add", "chain"):
        length = LENGTH + columns
        x, y, z = random.standard_normal((3, length), np.float32)
        out = np.full(length, np.nan, np.float32)
        grid, constants = (-(-length // 1024),), {"BLOCK": 1024}
        if name == "add":
            return grid, (x, y, out, length), constants, out, x.astype(np.float64) + y
        exact = (np.exp(x.astype(np.float64)) + y) * z
        return grid, (x, y, z, out, length), constants, out, exact
    x = random.standard_normal((ROWS, columns), np.float32)
    wide, weight = x.astype(np.float64), random.standard_normal(columns, np.float32)
    out, grid = np.full_like(x, np.nan), (ROWS,)
    constants = {"BLOCK": kernels.next_power_of_2(columns)}
    if name == "softmax":
        exact = np.exp(wide) / np.exp(wide).sum(axis=1, keepdims=True)
        return grid, (x, out, columns, columns), constants, out, exact
    if name == "layernorm":
        # Rows of one array would count as overlapping, and have another version compiled.
        mean, rstd = np.empty(ROWS, np.float32), np.empty(ROWS, np.float32)
        exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
        given = (x, weight, weight, out, mean, rstd, columns, columns, 1e-5)
        return grid, given, constants, out, exact * weight + weight
    if name == "rmsnorm":
        exact = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * weight
        return grid, (x, weight, out, columns, columns, 1e-5), constants, out, exact
    target, loss = random.integers(0, columns, ROWS), np.full(ROWS, np.nan, np.float32)
    exact = np.log(np.exp(wide).sum(axis=1)) - wide[np.arange(ROWS), target]
    return grid, (x, target, loss, columns, columns), constants, loss, exact


def main() -> None:
    name, columns = sys.argv[1], int(sys.argv[2])
    grid, given, constants, out, exact = arguments(name, columns)
    start = time.perf_counter()
    import tritium
    import tritium.language as tl

    imported = time.perf_counter()
    if "llvmlite" in sys.modules:
        raise RuntimeError("importing tritium has imported llvmlite")
    begin = time.perf_counter()
    kernels.build(name, tritium, tl)[grid](*given, **constants)
    first = time.perf_counter() - begin
    np.testing.assert_allclose(out, exact, rtol=2e-5, atol=2e-5)
    print(json.dumps({"import": imported - start, "first": first}))


if __name__ == "__main__":
    main()
