"""Times Triton kernels on this machine's CPU beside NumPy's own functions: ./dev bench [--quick].

Every result is checked against NumPy's before it is timed. Times are medians of warm calls, in one
process; "first" is the first call, compilation or a load from the cache included.
"""

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


@tritium.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    x = tl.load(x_ptr + row * columns + offs, mask=mask, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offs, e / tl.sum(e, axis=0), mask=mask)


@tritium.jit
def transpose_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (rows[:, None] < n) & (columns[None, :] < n)
    x = tl.load(x_ptr + rows[:, None] * n + columns[None, :], mask=inside)
    inside = (columns[:, None] < n) & (rows[None, :] < n)
    tl.store(out_ptr + columns[:, None] * n + rows[None, :], tl.trans(x), mask=inside)


@tritium.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, n, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * n + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * n + columns[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, tl.cdiv(n, BLOCK_K)):
        left = n - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(rows[:, None] < n) & (inner[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < left) & (columns[None, :] < n), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * n
    inside = (rows[:, None] < n) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc, mask=inside)


@dataclass
class Case:
    """One kernel at one size, and NumPy's function for the same job.

    work: bytes moved or operations done by one call, in the given unit (B or FLOP).
    """

    name: str
    kernel: Callable[[], object]
    reference: Callable[[], object]
    out: np.ndarray
    expected: np.ndarray
    work: float
    unit: str


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape, dtype=np.float32)


def add(n: int) -> Case:
    x, y, out, expected = random(n), random(n), np.zeros(n, np.float32), np.zeros(n, np.float32)
    launch = add_kernel[(tritium.cdiv(n, 4096),)]
    return Case(
        f"add {n:,}",
        lambda: launch(x, y, out, n, BLOCK=4096),
        lambda: np.add(x, y, out=expected),
        out,
        expected,
        12.0 * n,
        "B",
    )


def softmax(rows: int, columns: int) -> Case:
    x, out, expected = random(rows, columns), random(rows, columns), random(rows, columns)
    launch = softmax_kernel[(rows,)]

    def reference() -> None:
        np.subtract(x, x.max(axis=1, keepdims=True), out=expected)
        np.exp(expected, out=expected)
        np.divide(expected, expected.sum(axis=1, keepdims=True), out=expected)

    block = tritium.next_power_of_2(columns)
    return Case(
        f"softmax {rows:,} x {columns:,}",
        lambda: launch(x, out, columns, BLOCK=block),
        reference,
        out,
        expected,
        8.0 * rows * columns,
        "B",
    )


def transpose(n: int) -> Case:
    x, out, expected = random(n, n), np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    launch = transpose_kernel[(tritium.cdiv(n, 64), tritium.cdiv(n, 64))]
    return Case(
        f"transpose {n:,} x {n:,}",
        lambda: launch(x, out, n, BLOCK=64),
        lambda: np.copyto(expected, x.T),
        out,
        expected,
        8.0 * n * n,
        "B",
    )


def matmul(n: int) -> Case:
    a, b = random(n, n), random(n, n).T.copy()
    out, expected = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    launch = matmul_kernel[(tritium.cdiv(n, 64), tritium.cdiv(n, 64))]
    return Case(
        f"matmul {n:,}",
        lambda: launch(a, b, out, n, BLOCK=64, BLOCK_K=32),
        lambda: np.matmul(a, b, out=expected),
        out,
        expected,
        2.0 * n**3,
        "FLOP",
    )


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median(call: Callable[[], object], budget: float) -> float:
    """The median of at least 3 calls, and of as many more as fit into the budget of seconds."""
    times = [seconds(call) for _ in range(3)]
    while len(times) < 200 and sum(times) < budget:
        times.append(seconds(call))
    return statistics.median(times)


def report(case: Case, budget: float) -> bool:
    """Prints one line; whether the kernel's result was NumPy's to 1e-5, relatively."""
    first = seconds(case.kernel)
    case.reference()
    right = np.allclose(case.out, case.expected, rtol=1e-5, atol=1e-7)
    ours, theirs = median(case.kernel, budget), median(case.reference, budget)
    print(
        f"{case.name:24} {'ok' if right else 'WRONG':5} {first * 1e3:9.1f} {ours * 1e3:10.3f}"
        f" {theirs * 1e3:10.3f} {theirs / ours:7.2f} {case.work / ours / 1e9:9.1f} G{case.unit}/s",
        flush=True,
    )
    return right


def cases(quick: bool) -> list[Callable[[], Case]]:
    if quick:
        return [lambda: add(5_000), lambda: softmax(8, 100), lambda: transpose(100),
                lambda: matmul(100)]  # fmt: skip
    return [
        *(lambda n=n: add(n) for n in (1_000, 100_000, 10_000_000)),
        *(lambda n=n: softmax(4_096, n) for n in (256, 1_000, 4_096)),
        *(lambda n=n: transpose(n) for n in (512, 4_096)),
        *(lambda n=n: matmul(n) for n in (256, 1_024)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for a check")
    quick = parser.parse_args().quick

    print(
        f"tritium {tritium.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {platform.machine()}"
    )
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
                 "TRITIUM_NUM_THREADS", "TRITON_INTERPRET"):  # fmt: skip
        if name in os.environ:
            print(f"note: {name}={os.environ[name]} is set")
    print(f"{'':24} {'':5} {'first ms':>9} {'ms':>10} {'NumPy ms':>10} {'ratio':>7}      rate")
    right = [report(case(), 0.01 if quick else 0.5) for case in cases(quick)]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
