"""The half of the interpreter's case that runs in Triton's environment, under TRITON_INTERPRET=1.

Reads one line of JSON, ``[kernel, shape]``, checks its result against float64, prints ``ready`` and
Triton's version, and then runs the kernel once for each further line and prints ``done``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks import kernels

BLOCK = 1024


def add(n: int) -> tuple[Callable[[], Any], Any, Any]:
    x, y, out = torch.randn(n), torch.randn(n), torch.full((n,), float("nan"))
    launch = kernels.build("add", triton, tl)[(triton.cdiv(n, BLOCK),)]
    return lambda: launch(x, y, out, n, BLOCK=BLOCK), out, x.double() + y.double()


def softmax(rows: int, columns: int) -> tuple[Callable[[], Any], Any, Any]:
    x, out = 2.0 * torch.randn(rows, columns), torch.full((rows, columns), float("nan"))
    launch = kernels.build("softmax", triton, tl)[(rows,)]
    block = kernels.next_power_of_2(columns)
    call = lambda: launch(x, out, columns, columns, BLOCK=block)  # noqa: E731
    return call, out, torch.softmax(x.double(), 1)


def main() -> None:
    torch.set_num_threads(1)
    kernel, shape = json.loads(sys.stdin.readline())
    call, out, exact = {"add": add, "softmax": softmax}[kernel](*shape)
    call()
    torch.testing.assert_close(out.double(), exact, rtol=1e-5, atol=1e-7)
    print(f"ready {triton.__version__}", flush=True)
    for _ in sys.stdin:
        call()
        print("done", flush=True)


if __name__ == "__main__":
    main()
