"""Atomic operations: of a tile one lane after the other, its operands stored.

LLVM's ``atomicrmw`` does what machines do in one instruction, integers and bits; what is computed
otherwise, floats, is a loop that compares and exchanges. Whether it is one or the other, the result
is that of the operation's own rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tritium.backends.common.rules import Lowering, register_type, rule_of
from tritium.backends.emit import Builder, LType, V, const, i64, int_, zero
from tritium.ir.core import Value
from tritium.ir.dtypes import DType, int1
from tritium.ops import atomic

from .index import Index, Point
from .lanes import uniform
from .loops import OpenLoop
from .memory_map import Buffer
from .points import Points
from .whole import writes

if TYPE_CHECKING:
    from .kernel import KernelWriter

ORDERINGS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release"}
"""LLVM's names; what is not here is the same."""
_FAILURES = {"acq_rel": "acquire", "acquire": "acquire"}
"""The ordering of a comparison that fails, by that of one that doesn't."""

Read = Callable[[Value], V]


class AtomicWriter:
    """Writes one atomic operation where the kernel stands."""

    def __init__(self, kernel: KernelWriter, op: atomic.Atomic) -> None:
        self.kernel = kernel
        self.op = op
        self.dtype: DType = op.dtype
        self.word = int_(self.dtype.bits)
        self.size = self.dtype.itemsize
        sem: str = op.attributes["sem"]
        self.ordering = ORDERINGS.get(sem, sem)

    def write(self) -> None:
        """The operation; its result goes into a scalar or a buffer."""
        kernel, op = self.kernel, self.op
        if not op.pointer.shape:
            found = self._masked(kernel.b, lambda value: kernel.scalars[value])
            if found is not None:
                kernel.scalars[op.result] = found
            return
        result = kernel.buffer(op.result) if op.results else None
        loop = OpenLoop(kernel.function, "lane")
        points = Points(kernel, [kernel.b, loop.b], {}, 1)
        at: Point = (Index(1, loop.index),)
        count = math.prod(op.pointer.shape)
        found = self._masked(loop.b, lambda value: self._element(points, value, count, at))
        if result is not None and found is not None:
            flat = Buffer(result.base, result.scalar, (1,))
            points.access.write_buffer(flat, self.dtype, uniform(found, 1), at)
            kernel.buffers[op.result] = result
        loop.close(kernel.b, const(i64, 0), const(i64, count), 1)

    def _element(self, points: Points, value: Value, count: int, at: Point) -> V:
        """One element of a stored operand."""
        buffer = self.kernel.buffers[value]
        if count == 1:
            at = (Index(1, const(i64, 0)),)
        return points.access.read_linear(buffer, value.scalar, (count,), at).v

    def _masked(self, b: Builder, read: Read) -> V | None:
        """One lane: behind a branch where there is a mask, 0 where that is false."""
        mask: Value | None = getattr(self.op, "mask", None)
        if mask is None:
            return self._lane(b, read)
        holds = read(mask)
        assert mask.scalar is int1
        before = b.block
        with b.when(holds, "masked"):
            found = self._lane(b, read)
            taken = b.block
        if found is None:
            return None
        return b.phi(found.type, "", [(zero(found.type), before), (found, taken)])

    def _lane(self, b: Builder, read: Read) -> V | None:
        """One lane's access; what was in memory, None of a store."""
        op, address = self.op, read(self.op.pointer)
        if isinstance(op, atomic.AtomicLoad):
            word = b.load(self.word, address, align=self.size, ordering=self.ordering)
            return self._from_word(b, word)
        if isinstance(op, atomic.AtomicStore):
            word = self._to_word(b, read(op.value))
            b.store(word, address, align=self.size, ordering=self.ordering)
            return None
        if isinstance(op, atomic.Cas):
            compare, value = (self._to_word(b, read(each)) for each in (op.compare, op.value))
            return self._from_word(b, self._exchange(b, address, compare, value)[0])
        assert isinstance(op, atomic.Update)
        return self._update(b, op, address, read(op.value))

    def _update(self, b: Builder, op: atomic.Update, address: V, value: V) -> V:
        floating = self.dtype.is_floating()
        kind = op.kind
        if floating and kind in ("add", "max", "min"):
            return self._loop(b, op, address, value)
        if kind in ("max", "min") and not self.dtype.is_int_signed():
            kind = f"u{kind}"
        word = self._to_word(b, value)
        found = b.atomic_rmw(kind, address, word, align=self.size, ordering=self.ordering)
        return self._from_word(b, found)

    def _loop(self, b: Builder, op: atomic.Update, address: V, value: V) -> V:
        """Compute the new element until no other program has changed the old one meanwhile."""
        combine = atomic.combine_op(op.kind, self.dtype)
        assert combine is not None
        first = b.load(self.word, address, align=self.size, ordering="monotonic")
        again, done = (self.kernel.function.block(name) for name in ("again", "exchanged"))
        entered = b.block
        b.br(again)
        b.goto(again)
        old = b.phi(self.word, "old", [(first, entered)])
        held = self._from_word(b, old)
        rule = rule_of(combine, *self.kernel.rules)
        made = rule(Lowering(b, self.kernel.target, 1), combine, held, value)
        found, exchanged = self._exchange(b, address, old, self._to_word(b, made))
        old.add(found, b.block)
        b.cbr(exchanged, done, again)
        b.goto(done)
        return self._from_word(b, old)

    def _exchange(self, b: Builder, address: V, compare: V, value: V) -> tuple[V, V]:
        success = self.ordering
        failure = _FAILURES.get(success, "monotonic")
        return b.cmpxchg(address, compare, value, align=self.size, success=success, failure=failure)

    @property
    def _register(self) -> LType:
        return register_type(self.dtype)

    def _to_word(self, b: Builder, value: V) -> V:
        return value if value.type is self.word else b.bitcast(value, self.word)

    def _from_word(self, b: Builder, word: V) -> V:
        return word if self._register is self.word else b.bitcast(word, self._register)


@writes(atomic.Update, atomic.Cas, atomic.AtomicLoad, atomic.AtomicStore)
def write_atomic(kernel: KernelWriter, op: atomic.Atomic) -> None:
    """Write one atomic operation where the kernel stands."""
    AtomicWriter(kernel, op).write()
