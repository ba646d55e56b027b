"""What is known of values before a kernel runs: runs of neighbours, divisors, ranges.

``Facts(function).of(value)`` gives a ``Fact``. Every claim holds for every argument that the
kernel's specialisation admits, with integers that wrap: a claim of 8 neighbours in memory is a
proof that they may be read at once.
"""

from __future__ import annotations

from .analysis import Facts
from .fact import Axis, Fact, Range

__all__ = ["Axis", "Fact", "Facts", "Range"]
