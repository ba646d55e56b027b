"""Writes a whole kernel: its entry, and what every part of the writer needs."""

from __future__ import annotations

from collections.abc import Sequence

from tritium.backends.common.rules import Lowering, Rule, register_type, rule_of
from tritium.backends.emit import Builder, Module, V, const, i32, i64, int_, pointer, void
from tritium.diagnostics import InternalError
from tritium.ir.core import Function, Op, Region, Value
from tritium.ir.dtypes import Type
from tritium.ir.types import element
from tritium.ops import control, create, memory

from .layouts import THREADS_PER_WARP, LinearLayout
from .positions import Positions
from .rules import NVPTX, lowering_at
from .target import GpuTarget
from .values import Threads

GLOBAL = pointer(1)
"""Pointers to the user's memory, as instructions take them."""


class Writer:
    """The state of writing one kernel. ``b`` stands where the next code goes."""

    def __init__(
        self, source: Function, target: GpuTarget, *, num_warps: int, disjoint: bool, name: str
    ) -> None:
        self.source = source
        self.target = target
        self.num_warps = num_warps
        self.disjoint = disjoint
        self.module = Module(source.name)
        self.function = self.module.function(
            name,
            void,
            [
                (GLOBAL if param.type.is_ptr() else register_type(param.type), f"p{number}")
                for number, param in enumerate(source.params)
            ],
            convention="ptx_kernel",
            attributes=(*target.attributes, f'"nvvm.reqntid"="{num_warps * THREADS_PER_WARP}"'),
        )
        self.b = Builder(self.function.entry)
        self.entry = Builder(self.function.entry)
        """Writes what depends on nothing but the thread and the parameters, once."""
        self.threads = self._which_thread()
        self.positions = Positions(self.entry, self.threads)
        self.scalars: dict[Value, V] = {}
        for param, given in zip(source.params, self.function.params):
            made = self.b.addrspacecast(given, pointer()) if param.type.is_ptr() else given
            self.scalars[param.value] = made

    def _which_thread(self) -> Threads:
        b, count = self.entry, self.num_warps * THREADS_PER_WARP
        thread = self.special("tid.x", count)
        if self.num_warps == 1:
            return Threads(thread, thread, const(i32, 0))
        lane = b.and_(thread, const(i32, THREADS_PER_WARP - 1))
        return Threads(thread, lane, b.lshr(thread, const(i32, 5)))

    def special(self, name: str, bound: int) -> V:
        """A special register of PTX as i32, known to be below ``bound``; written in the entry."""
        full = f"llvm.nvvm.read.ptx.sreg.{name}"
        return self.entry.call(full, i32, (), convention=f"range(i32 0, {bound})", pure=True)

    # Positions.

    def coordinates(self, layout: LinearLayout, register: int) -> tuple[V, ...]:
        """The logical coordinates (i32) of what a register of this thread holds."""
        return self.positions.coordinates(self.b, layout, register)

    def inside(self, type: Type, layout: LinearLayout, register: int) -> V | None:
        """Whether a register of this thread holds an element (i1); None where every thread's does.

        Asked for a register that is padding in every thread it is the constant false.
        """
        return self.positions.inside(self.b, type.shape, layout, register)

    # Operations on scalars.

    def rule(self, op: Op) -> Rule:
        """How an elementwise operation is lowered."""
        return rule_of(op, NVPTX)

    def lowering(self, b: Builder | None = None) -> Lowering:
        """The context of rules that write where ``b`` (by default the writer) stands."""
        return lowering_at(self.b if b is None else b, self.target)

    def apply(self, op: Op, operands: Sequence[V], b: Builder | None = None) -> V:
        """One lane of an operation that computes each element of its result from scalars alone."""
        if isinstance(op, create.Constant):
            return constant(op)
        if isinstance(op, memory.Offset):
            return self.offset(op, operands[0], operands[1], self.b if b is None else b)
        return self.rule(op)(self.lowering(b), op, *operands)

    def offset(self, op: memory.Offset, base: V, offset: V, b: Builder) -> V:
        """A pointer moved by a number of elements."""
        wide = b.int_cast(offset, i64, signed=op.offset.scalar.is_int_signed())
        return b.gep(base, b.mul(wide, const(i64, element(op.pointer.type).itemsize)))

    def region(self, region: Region, args: Sequence[V]) -> list[V]:
        """A combine region of scalars, inline. Returns what it yields."""
        known = dict(zip(region.args, args, strict=True))
        for op in region.ops:
            operands = [known[x] if x in known else self.scalars[x] for x in op.operands]
            if isinstance(op, control.Yield):
                return operands
            known[op.result] = self.apply(op, operands)
        raise InternalError("a combine region without control.yield")


def constant(op: create.Constant) -> V:
    """A constant in register form."""
    type_ = register_type(op.dtype)
    if type_.is_float or not op.dtype.is_floating():
        value = op.value if type_.is_float else int(op.value)
        return const(type_, value)
    bits = op.evaluate(None).view(f"u{op.dtype.itemsize}")
    return const(int_(op.dtype.bits), int(bits))
