"""Memory operations of the builder: loads and stores plain, masked and indexed; atomics; allocas.

Every access names its alignment in bytes: LLVM would assume the type's own. Lanes of bfloat, half
and i1 move as i16, i16 and i8: masked moves of the first two explode on targets without a native
form, and a vector of i1 is packed bits in memory while a tile of i1 is bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from .emit_arith import ArithmeticOps
from .emit_types import (
    EmitError,
    LType,
    V,
    bfloat,
    const,
    elem,
    half,
    i1,
    i8,
    i16,
    i32,
    i64,
    like,
    pointer,
    ptr,
    struct_type,
    undef,
    void,
    zero,
)

_ORDERINGS = {"monotonic", "acquire", "release", "acq_rel", "seq_cst", "unordered"}
_ATOMIC_OPS = {
    *("xchg", "add", "sub", "and", "or", "xor", "max", "min", "umax", "umin", "fadd", "fmax"),
    "fmin",
}


def memory_type(type_: LType) -> LType:
    """The type a value is moved as: i8 for i1, i16 for bfloat and half vectors."""
    element = elem(type_)
    if element is i1:
        return like(type_, i8)
    if element in (bfloat, half) and type_.is_vector:
        return like(type_, i16)
    return type_


class MemoryOps(ArithmeticOps):
    """Instructions that touch memory."""

    def _from_memory(self, moved: V, type_: LType) -> V:
        if moved.type is type_:
            return moved
        if elem(type_) is i1:
            return self.icmp("ne", moved, zero(moved.type))
        return self.bitcast(moved, type_)

    def _to_memory(self, value: V) -> V:
        wanted = memory_type(value.type)
        if wanted is value.type:
            return value
        if elem(value.type) is i1:
            return self.zext(value, i8)
        return self.bitcast(value, wanted)

    def _access_tail(
        self, align: int, nontemporal: bool, invariant: bool, metadata: Sequence[tuple[str, str]]
    ) -> str:
        if align < 1 or align & (align - 1):
            raise EmitError(f"alignment of {align} bytes")
        tail = f", align {align}"
        if nontemporal:
            tail += f", !nontemporal {self.module.metadata('!{i32 1}')}"
        if invariant:
            tail += f", !invariant.load {self.module.metadata('!{}')}"
        return tail + "".join(f", !{kind} {reference}" for kind, reference in metadata)

    def gep(self, base: V, offset: V | int, name: str = "", *, inbounds: bool = False) -> V:
        """`base` plus `offset` bytes. A vector of offsets gives a vector of pointers."""
        if isinstance(offset, int):
            offset = const(i64, offset)
        if not base.type.is_pointer or not offset.type.is_int:
            raise EmitError(f"gep of {base} by {offset}")
        if offset.integer == 0 and not offset.type.is_vector:
            return base
        result = base.type if base.type.is_vector else like(offset.type, base.type)
        mark = "inbounds " if inbounds else ""
        return self.pure(result, f"getelementptr {mark}i8, {base}, {offset}", name)

    def load(
        self,
        type_: LType,
        address: V,
        *,
        align: int,
        volatile: bool = False,
        ordering: str = "",
        scope: str = "",
        nontemporal: bool = False,
        invariant: bool = False,
        metadata: Sequence[tuple[str, str]] = (),
        name: str = "",
    ) -> V:
        """Load a scalar or vector; `ordering` makes it atomic, in a sync scope.

        `metadata` are pairs (kind, reference), such as ("alias.scope", "!3").
        """
        moved = memory_type(type_)
        mark, order = self._atomic_marks(volatile, ordering, scope)
        tail = self._access_tail(align, nontemporal, invariant, metadata)
        text = f"load {mark}{moved.text}, {address}{order}{tail}"
        return self._from_memory(self.value(moved, text, name if moved is type_ else ""), type_)

    def store(
        self,
        value: V,
        address: V,
        *,
        align: int,
        volatile: bool = False,
        ordering: str = "",
        scope: str = "",
        nontemporal: bool = False,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Store a scalar or vector; options as of `load`."""
        moved = self._to_memory(value)
        mark, order = self._atomic_marks(volatile, ordering, scope)
        tail = self._access_tail(align, nontemporal, False, metadata)
        self.line(f"store {mark}{moved}, {address}{order}{tail}")

    @staticmethod
    def _scope(scope: str) -> str:
        return f' syncscope("{scope}")' if scope else ""

    def _atomic_marks(self, volatile: bool, ordering: str, scope: str) -> tuple[str, str]:
        if ordering and ordering not in _ORDERINGS:
            raise EmitError(f"memory ordering {ordering}")
        mark = ("atomic " if ordering else "") + ("volatile " if volatile else "")
        return mark, f"{self._scope(scope)} {ordering}" if ordering else ""

    def masked_load(
        self, type_: LType, address: V, mask: V, other: V | None = None, *, align: int
    ) -> V:
        """Contiguous lanes where the mask holds, `other` (default: a value nobody reads) elsewhere.

        Lanes that the mask excludes are not touched. `type_` is a vector, `mask` a vector of i1.
        """
        if mask.integer == 1:
            return self.load(type_, address, align=align)
        moved = memory_type(type_)
        passed = undef(moved) if other is None else self._to_memory(other)
        if mask.integer == 0:
            return other if other is not None else undef(type_)
        result = self.intrinsic(
            "masked.load",
            (address, mask, passed),
            moved,
            (moved, address.type),
            arg_attributes=(f"align {align}",),
        )
        return self._from_memory(result, type_)

    def masked_store(self, value: V, address: V, mask: V, *, align: int) -> None:
        """Store the lanes where the mask holds; the others' memory is not touched."""
        if mask.integer == 1:
            self.store(value, address, align=align)
            return
        if mask.integer == 0:
            return
        moved = self._to_memory(value)
        self.intrinsic(
            "masked.store",
            (moved, address, mask),
            void,
            (moved.type, address.type),
            arg_attributes=("", f"align {align}"),
        )

    def gather(
        self, type_: LType, addresses: V, mask: V, other: V | None = None, *, align: int
    ) -> V:
        """One load a lane from a vector of pointers; masked as `masked_load`."""
        moved = memory_type(type_)
        passed = undef(moved) if other is None else self._to_memory(other)
        result = self.intrinsic(
            "masked.gather",
            (addresses, mask, passed),
            moved,
            (moved, addresses.type),
            arg_attributes=(f"align {align}",),
        )
        return self._from_memory(result, type_)

    def scatter(self, value: V, addresses: V, mask: V, *, align: int) -> None:
        """One store a lane, in ascending lane order where addresses coincide."""
        moved = self._to_memory(value)
        self.intrinsic(
            "masked.scatter",
            (moved, addresses, mask),
            void,
            (moved.type, addresses.type),
            arg_attributes=("", f"align {align}"),
        )

    def alloca(self, type_: LType, *, align: int, name: str = "", address_space: int = 0) -> V:
        """Stack memory, in the entry block whatever block is being written. For small things.

        It holds what ``store`` writes of a value of that type: a byte for each lane of i1.
        """
        result = self.function.fresh(name)
        space = f", addrspace({address_space})" if address_space else ""
        held = memory_type(type_).text
        self.function.allocas.append(f"  {result} = alloca {held}, align {align}{space}")
        return V(result, pointer(address_space) if address_space else ptr)

    def atomic_rmw(
        self,
        op: str,
        address: V,
        value: V,
        *,
        align: int,
        ordering: str = "monotonic",
        scope: str = "",
        volatile: bool = False,
    ) -> V:
        """Read, combine, write as one step; returns what was there."""
        if op not in _ATOMIC_OPS or ordering not in _ORDERINGS:
            raise EmitError(f"atomicrmw {op} {ordering}")
        mark = "volatile " if volatile else ""
        text = (
            f"atomicrmw {mark}{op} {address}, {value}{self._scope(scope)} {ordering}, align {align}"
        )
        return self.value(value.type, text)

    def cmpxchg(
        self,
        address: V,
        expected: V,
        replacement: V,
        *,
        align: int,
        success: str = "acq_rel",
        failure: str = "acquire",
        scope: str = "",
    ) -> tuple[V, V]:
        """Compare and exchange; returns what was there and whether it was replaced (i1)."""
        if expected.type is not replacement.type:
            raise EmitError(f"cmpxchg of {expected} and {replacement}")
        text = f"cmpxchg {address}, {expected}, {replacement}{self._scope(scope)}"
        pair = self.value(
            struct_type(expected.type, i1), f"{text} {success} {failure}, align {align}"
        )
        return self.extract_value(pair, 0), self.extract_value(pair, 1)

    def fence(self, ordering: str, scope: str = "") -> None:
        """Order the memory operations before it with those after it."""
        self.line(f"fence{self._scope(scope)} {ordering}")

    def prefetch(self, address: V, *, write: bool = False, locality: int = 3) -> None:
        """Ask for the cache line of an address."""
        numbers = [const(i32, number) for number in (int(write), locality, 1)]
        self.intrinsic("prefetch", (address, *numbers), void, (address.type,))

    def memcpy(self, target: V, source: V, count: V, *, align: int) -> None:
        """Copy `count` (i64) bytes between ranges that don't overlap."""
        self.intrinsic(
            "memcpy",
            (target, source, count, const(i1, 0)),
            void,
            (target.type, source.type, count.type),
            arg_attributes=(f"align {align}", f"align {align}"),
        )

    def memset(self, target: V, byte: V, count: V, *, align: int) -> None:
        """Fill `count` (i64) bytes with `byte` (i8)."""
        self.intrinsic(
            "memset",
            (target, byte, count, const(i1, 0)),
            void,
            (target.type, count.type),
            arg_attributes=(f"align {align}",),
        )

    def active_mask(self, start: V, end: V, count: int) -> V:
        """The lanes i of `count` with start + i < end; `end - start` must fit the type."""
        room = self.splat(self.sub(end, start), count)
        first = self.iota(start.type, count) if count > 1 else zero(start.type)
        return self.icmp("slt", first, room)
