"""A block's shared memory: who uses which bytes when, and where threads wait because of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritium.backends.emit import V, array, const, i8, i32, pointer, void

from .layouts import Scope
from .waits import Access, Waits

if TYPE_CHECKING:
    from .kernel import Writer

SHARED = pointer(3)
NAME = "smem"
ALIGN = 1024
"""Tensor cores and bulk copies ask for it, and code may take low bits of addresses to be zero."""

ROOMY = 16 * 1024
"""Scratch goes where nothing is pending, to save a wait, as long as the total stays within this."""

_MOST: dict[tuple[int, int], int] = {
    (7, 5): 64,
    (8, 0): 163,
    (8, 6): 99,
    (8, 7): 163,
    (8, 9): 99,
    (9, 0): 227,
    (10, 0): 227,
    (10, 3): 227,
    (12, 0): 99,
    (12, 1): 99,
}
"""KiB a block may have, by compute capability (CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability")."""


def most_bytes(capability: tuple[int, int]) -> int:
    """The shared memory that one block can have."""
    return 1024 * _MOST[capability]


@dataclass(frozen=True)
class Scratch:
    """Bytes of shared memory that belong to one piece of code until it is done with them."""

    memory: SharedMemory
    offset: int
    bytes: int
    number: int

    @property
    def address(self) -> V:
        """Where it begins, in shared memory; an instruction where the writer stands."""
        return self.memory.writer.b.gep(self.memory.base, self.offset, inbounds=True)

    def stores(self, start: int = 0, end: int | None = None, *, own: bool = False) -> None:
        """Threads are going to store to bytes ``start`` to ``end``; waits first where they must.

        ``own``: each warp keeps to bytes that no other warp touches in this scratch by an access
        that is ``own`` too.
        """
        self._access(start, end, own, stores=True)

    def loads(self, start: int = 0, end: int | None = None, *, own: bool = False) -> None:
        """Threads are going to load; as ``stores``."""
        self._access(start, end, own, stores=False)

    def _access(self, start: int, end: int | None, own: bool, *, stores: bool) -> None:
        stop = self.bytes if end is None else end
        owner = self.number if own else None
        access = Access(self.offset + start, self.offset + stop, stores, owner)
        self.memory.waits.access(access)


class SharedMemory:
    """Hands out scratch by liveness and writes the waits that it needs.

    Control flow is told by ``loop_begins`` and its like; ``barrier`` is for whoever else has to
    wait for the block.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.waits = Waits(self._write)
        self.total = 0
        """The bytes that a block needs."""
        self.limit = most_bytes(writer.target.capability)
        self._live: list[Scratch] = []
        self._count = 0
        self.loop_begins = self.waits.loop_begins
        self.loop_leaves = self.waits.loop_leaves
        self.loop_ends = self.waits.loop_ends
        self.branch_begins = self.waits.branch_begins
        self.side_begins = self.waits.side_begins
        self.branch_ends = self.waits.branch_ends

    @property
    def base(self) -> V:
        """The address of all of it."""
        module = self.writer.module
        return module.global_(NAME, array(i8, 0), None, address=SHARED, align=ALIGN)

    def barrier(self) -> None:
        """All threads of the block wait for each other, for their accesses of all memory too."""
        self.waits.block()

    def _write(self, scope: Scope) -> None:
        b = self.writer.b
        if scope is Scope.WARP or self.writer.num_warps == 1:
            b.intrinsic("nvvm.bar.warp.sync", (const(i32, -1),), void, ())
        else:
            b.intrinsic("nvvm.barrier.cta.sync.aligned.all", (const(i32, 0),), void, ())
        if scope is Scope.BLOCK:
            self.writer.order.waited()

    @contextmanager
    def scratch(self, size: int, align: int = 16) -> Iterator[Scratch]:
        """Bytes for the extent of a ``with``.

        They lie below 16 KiB where nothing pending is, if there is room, else as low as they can.
        """
        offset = self._place(size, align)
        made = Scratch(self, offset, size, self._count)
        self._count += 1
        self.total = max(self.total, offset + size)
        self._live.append(made)
        try:
            yield made
        finally:
            self._live.remove(made)

    def _place(self, size: int, align: int) -> int:
        taken = [(scratch.offset, scratch.offset + scratch.bytes) for scratch in self._live]
        pending = [(access.start, access.end) for access in self.waits.pending]
        quiet = _lowest(size, align, taken + pending)
        if quiet + size <= max(ROOMY, self.total):
            return quiet
        return _lowest(size, align, taken)

    def broadcast(self, value: V) -> V:
        """What the block's first thread has, for all threads."""
        b = self.writer.b
        size = 8 if value.type.is_pointer else max(8, value.type.bits) // 8
        with self.scratch(16) as scratch:
            scratch.stores()
            first = b.icmp("eq", self.writer.threads.thread, const(i32, 0))
            with b.when(first, "first"):
                b.store(value, scratch.address, align=size)
            scratch.loads()
            return b.load(value.type, scratch.address, align=size)


def _lowest(size: int, align: int, taken: list[tuple[int, int]]) -> int:
    """The lowest aligned offset of so many bytes that meet none of the intervals."""
    offset = 0
    for start, end in sorted(taken):
        if end > offset and start < offset + size:
            offset = (end + align - 1) // align * align
    return offset
