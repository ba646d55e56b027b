"""The kernel that ``tritium doctor`` runs."""

from __future__ import annotations

import tritium
import tritium.language as tl


@tritium.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """``out = 2 * x``, n elements."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)
