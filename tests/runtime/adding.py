"""A kernel whose launches are native from the third on."""

from __future__ import annotations

from typing import Any

import numpy as np

import tritium
import tritium.language as tl
from tritium.runtime.compiled import CompiledKernel

try:
    import torch
except ImportError:
    torch = None


def add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask) + tl.load(y + offs, mask), mask)


class Adding:
    """A kernel that has been launched natively, and its arguments."""

    def __init__(self, kernel: Any = None, wrap: Any = np.asarray) -> None:
        self.kernel = tritium.jit(add) if kernel is None else kernel
        self.host = [np.arange(64, dtype=np.float32), np.full(64, 2, np.float32)]
        self.x, self.y, self.out = (wrap(each) for each in (*self.host, np.zeros(64, np.float32)))
        self.launch()
        self.launch()
        assert self.natively()

    def launch(self) -> Any:
        self.out[:] = -1
        made = self.kernel[(4,)](self.x, self.y, self.out, 60, BLOCK=16)
        expected = np.where(np.arange(64) < 60, self.host[0] + self.host[1], -1)
        assert (np.asarray(self.out) == expected).all()
        return made

    def natively(self) -> bool:
        """Launch; whether Python had no part in it."""
        before = self.kernel._fast.launches_by_python
        made = self.launch()
        return isinstance(made, CompiledKernel) and self.kernel._fast.launches_by_python == before

    def by_python(self) -> bool:
        """Launch; whether that took Python, and the next launch doesn't."""
        return not self.natively() and self.natively()
