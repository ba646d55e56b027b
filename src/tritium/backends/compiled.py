"""What the CPU's backend makes of a kernel; here, so that a cached one needs no backend."""

from __future__ import annotations

from typing import NamedTuple

from tritium.diagnostics import Loc


class Stored(NamedTuple):
    """A tile that a program keeps in scratch memory: its type in words, and the bytes it takes.

    ``loc`` is where it was made. Code from the cache, which holds wherever the source stands, has
    ``op`` instead: the number of the operation in the kernel as it was traced, from 1.
    """

    type: str
    size: int
    loc: Loc | None = None
    op: int | None = None


class CpuKernel:
    """A compiled kernel: ``void entry(ptr arguments, i64 first, i64 last, ptr scratch)``.

    ``arguments`` holds one 8-byte slot a parameter, then the grid's three extents, and the number
    of the launch for code that ``reports``: it prints or checks. ``scratch`` is ``scratch_bytes``
    of memory of each thread's own, aligned to 64 bytes; the tile ``largest`` takes most of it.
    ``alias_pairs`` are the parameters whose memory must not overlap (none unless compiled as
    ``disjoint``), ``written`` those that are stored through. ``steady``: a program takes about as
    long in every launch. ``waits``: programs wait for memory to change; ``scratch`` starts with a
    ``host.layout.Waiter`` then. ``slow`` counts the places that access memory lane by lane.
    """

    def __init__(
        self,
        *,
        object: bytes,
        entry: str,
        scratch_bytes: int,
        largest: Stored | None,
        alias_pairs: tuple[tuple[int, int], ...],
        written: frozenset[int],
        steady: bool,
        waits: bool,
        reports: bool,
        llvm_ir: str,
        dump: str,
        slow: dict[str, int],
    ) -> None:
        self.object = object
        self.entry = entry
        self.scratch_bytes = scratch_bytes
        self.largest = largest
        self.alias_pairs = alias_pairs
        self.written = written
        self.steady = steady
        self.waits = waits
        self.reports = reports
        self.llvm_ir = llvm_ir
        self.dump = dump
        self.slow = slow
