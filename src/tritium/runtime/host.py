"""Arithmetic for the host side of kernels; also usable on constants inside of them."""

from __future__ import annotations

from typing import Any

from tritium.ops.callable import constexpr_function


@constexpr_function
def cdiv(x: Any, y: Any) -> Any:
    """``x / y`` rounded up, for integers."""
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least ``n`` (up to 2**63); 0 for 0."""
    n -= 1
    for shift in (1, 2, 4, 8, 16, 32):
        n |= n >> shift
    return n + 1
