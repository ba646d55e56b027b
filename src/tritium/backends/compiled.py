"""What the CPU's backend makes of a kernel; here, so that a cached one needs no backend."""

from __future__ import annotations


class CpuKernel:
    """A compiled kernel: ``void entry(ptr arguments, i64 first, i64 last, ptr scratch)``.

    ``arguments`` holds one 8-byte slot a parameter, then the grid's three extents, and the number
    of the launch for code that ``reports``: it prints or checks. ``scratch`` is ``scratch_bytes``
    of memory of each thread's own, aligned to 64 bytes. ``alias_pairs`` are the parameters whose
    memory must not overlap (none unless compiled as ``disjoint``), ``written`` those that are
    stored through. ``steady``: a program takes about as long in every launch. ``waits``: programs
    wait for memory to change; ``scratch`` starts with a ``host.layout.Waiter`` then. ``slow``
    counts the places that access memory lane by lane.
    """

    def __init__(
        self,
        *,
        object: bytes,
        entry: str,
        scratch_bytes: int,
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
        self.alias_pairs = alias_pairs
        self.written = written
        self.steady = steady
        self.waits = waits
        self.reports = reports
        self.llvm_ir = llvm_ir
        self.dump = dump
        self.slow = slow
