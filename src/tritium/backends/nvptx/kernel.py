"""Writes a whole kernel: its entry, its blocks, and what every part of the writer needs."""

from __future__ import annotations

from collections.abc import Sequence

from tritium.backends.common.rules import Lowering, Rule, register_type, rule_of
from tritium.backends.emit import Builder, Module, V, const, i32, i64, int_, pointer, void
from tritium.diagnostics import InternalError
from tritium.ir.core import Block, Function, Op, Region, Value
from tritium.ir.dtypes import Type
from tritium.ir.types import element
from tritium.ops import control, create, dot, hints, memory, program
from tritium.passes.origins import root, stores_by_address, written_parameters

from .converts import by_index, convert
from .dots import dot as write_dot
from .flow import Flow
from .hazards import Order
from .homes import Homes, Reduction
from .large import Trips
from .layouts import THREADS_PER_WARP, LinearLayout, in_trips
from .lines import Lines
from .memory import load_scalar, load_tile, store_scalar, store_tile
from .occupancy import least_blocks
from .pointwise import Elements
from .positions import Positions
from .rearrange import REARRANGE, rearrange
from .reductions import reduce
from .repeats import Repeated
from .rules import NVPTX, lowering_at
from .shared import SharedMemory
from .sources import MOVES, is_free
from .target import GpuTarget
from .values import GLOBAL, Held, Threads
from .versions import Versions


class Writer:
    """The state of writing one kernel. ``b`` stands where the next code goes."""

    def __init__(
        self, source: Function, target: GpuTarget, *, num_warps: int, disjoint: bool, name: str
    ) -> None:
        self.source = source
        self.target = target
        self.num_warps = num_warps
        self.disjoint = disjoint
        self.versions = Versions(source, num_warps)
        self.homes = self.versions.plain
        self.module = Module(source.name)
        blocks = least_blocks(source, self.versions.all, num_warps)
        self.function = self.module.function(
            name,
            void,
            [
                (GLOBAL if param.type.is_ptr() else register_type(param.type), f"p{number}")
                for number, param in enumerate(source.params)
            ],
            convention="ptx_kernel",
            attributes=(
                *target.attributes,
                f'"nvvm.reqntid"="{num_warps * THREADS_PER_WARP}"',
                *(() if blocks is None else [f'"nvvm.minctasm"="{blocks}"']),
            ),
        )
        first = next((op.loc for op in source.walk() if op.loc is not None), None)
        self.lines = Lines(self.module, self.function, first)
        self.b = Builder(self.function.entry)
        self.entry = Builder(self.function.entry)
        """Writes what depends on nothing but the thread and the parameters, once."""
        self.threads = self._which_thread()
        self.positions = Positions(self.entry, self.threads, num_warps)
        self.elements = Elements(self)
        self.shared = SharedMemory(self)
        self.order = Order(self)
        self.flow = Flow(self)
        self.trips = Trips(self)
        self.scalars: dict[Value, V] = {}
        self._repeated: dict[Op, Repeated] = {}
        written = {source.params[number].value for number in written_parameters(source)}
        self._written = written if disjoint and not stores_by_address(source) else None
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

    # The whole function.

    def write(self) -> None:
        """Write everything."""
        if self.versions.wide is None:
            self._version(self.versions.plain)
            return
        blocks = [self.function.block(name) for name in ("multiples", "plain")]
        self.b.cbr(self._are_multiples(), *blocks)
        with self.order.branch() as sides:
            for block, homes in zip(blocks, self.versions.all, strict=True):
                sides.begin()
                self.b.goto(block)
                self._version(homes)

    def _are_multiples(self) -> V:
        """Whether the numbers that the versions differ in are multiples, all of them."""
        b, versions = self.b, self.versions
        bits = const(i32, 0)
        for value in versions.tested:
            bits = b.or_(bits, b.int_cast(self.scalars[value], i32, signed=False))
        return b.icmp("eq", b.and_(bits, const(i32, versions.divisor - 1)), const(i32, 0))

    def _version(self, homes: Homes) -> None:
        """The whole body, in one set of layouts."""
        self.homes = homes
        self.elements = Elements(self)
        self.trips = Trips(self)
        self.scalars = {param.value: self.scalars[param.value] for param in self.source.params}
        body = self.source.body.block
        self.elements.open(body, self.b)
        self.block(body)
        self.b.ret()

    def block(self, block: Block) -> tuple[Value, ...]:
        """Write a block's operations. Returns the values it yields."""
        around, self.trips = self.trips, self.trips.inside()
        values: tuple[Value, ...] = ()
        for op in block.ops:
            if isinstance(op, control.Yield):
                values = op.values
            elif not self.trips.takes(op):
                self.op(op)
        self.trips.close()
        self.trips = around
        return values

    def op(self, op: Op) -> None:
        """Write one operation; of one that is worked on in trips what one trip does."""
        self.function.mark = self.lines.mark(op.loc)
        if isinstance(op, control.If):
            self.flow.branch(op)
        elif isinstance(op, control.For):
            self.flow.count_loop(op)
        elif isinstance(op, control.While):
            self.flow.while_loop(op)
        elif isinstance(op, (memory.Load, memory.Store)):
            self._memory(op)
        elif isinstance(op, Reduction):
            self._reduce(op)
        elif isinstance(op, dot.Dot):
            self._dot(op)
        elif isinstance(op, MOVES):
            self._move(op)
        elif isinstance(op, REARRANGE):
            self.made(op.result, rearrange(self, op, self.homes.home[op.result]))
        elif not isinstance(op, (control.Return, hints.Assume)):
            self._pointwise(op)

    def made(self, value: Value, held: Held) -> None:
        """A tile is in registers: it is converted to where else it is wanted at once."""
        if in_trips(self.homes.home[value]):
            self.trips.keep(value, held)
            return
        self.elements.hold(held, value)
        for layout in self.homes.wanted.get(value, ()):
            self.elements.hold(convert(self, held, layout), value)
        for layout in self.homes.indexed.get(value, ()):
            self.trips.keep(value, self.elements.held[value, layout])

    # Operations.

    def _memory(self, op: memory.Load | memory.Store) -> None:
        self.order.access(op)
        if isinstance(op, memory.Store):
            (store_tile if op.pointer.shape else store_scalar)(self, op)
        elif op.pointer.shape:
            self.made(op.result, load_tile(self, op))
        else:
            self.scalars[op.result] = load_scalar(self, op)

    def _reduce(self, op: Op) -> None:
        layout = self.homes.operands[op]
        results = reduce(self, op, [self.elements.tile(x, layout) for x in op.operands])
        for result, made in zip(op.results, results, strict=True):
            self.result(result, made)

    def result(self, value: Value, made: Held | V) -> None:
        """One of a reduction's results: a tile or a scalar."""
        if isinstance(made, Held):
            self.made(value, made)
        else:
            self.scalars[value] = made

    def _dot(self, op: dot.Dot) -> None:
        a, b = (self.somewhere(operand) for operand in (op.a, op.b))
        acc = None
        if op.acc is not None:
            acc = self.elements.tile(op.acc, self.homes.home[op.result])
        self.made(op.result, write_dot(self, op, a, b, acc))

    def somewhere(self, value: Value) -> Held:
        """A tile where it is, or in the usual layout."""
        return self.elements.tile(
            value, self.homes.home.get(value) or self.homes.usual(value.shape)
        )

    def _move(self, op: Op) -> None:
        (operand,), (result,) = op.operands, op.results
        if not result.shape:
            made = self.scalars[operand] if not operand.shape else None
            if made is None:
                made = self.somewhere(operand).registers[0]
                assert made is not None
            self.scalars[result] = made
        elif result in self.homes.home:
            layout = self.homes.home[result]
            if is_free(op):
                self.made(result, self.elements.make(op, layout))
            else:
                held = self.elements.tile(operand, self.homes.operands[op])
                self.made(result, by_index(self, held, result.type, layout))

    def _pointwise(self, op: Op) -> None:
        if isinstance(op, (program.ProgramId, program.ProgramCount)):
            self.scalars[op.result] = self._program(op)
        elif not op.result.shape:
            operands = [self.scalars[operand] for operand in op.operands]
            self.scalars[op.result] = self.apply(op, operands)
        elif op.result in self.homes.home:
            self.made(op.result, self.elements.make(op, self.homes.home[op.result]))

    def _program(self, op: program.ProgramId | program.ProgramCount) -> V:
        limits = (2**31 - 1, 2**16 - 1, 2**16 - 1)
        counts = isinstance(op, program.ProgramCount)
        kind = "nctaid" if counts else "ctaid"
        bound = limits[op.axis] + 1 if counts else limits[op.axis]
        return self.special(f"{kind}.{'xyz'[op.axis]}", bound)

    def is_constant(self, op: memory.Load) -> bool:
        """Whether nothing writes what a load reads while the grid runs."""
        origin = root(op.pointer)
        return (
            self._written is not None
            and not op.is_fresh
            and origin is not None
            and origin not in self._written
        )

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
        if isinstance(op, hints.Promise):
            return operands[0]
        around, self.function.mark = self.function.mark, self.lines.mark(op.loc)
        if isinstance(op, memory.Offset):
            made = self.offset(op, operands[0], operands[1], self.b if b is None else b)
        else:
            made = self.rule(op)(self.lowering(b), op, *operands)
        self.function.mark = around
        return made

    def again(self, op: Op, operands: Sequence[V]) -> V:
        """``apply``, for one register after another."""
        repeated = self._repeated.get(op)
        if repeated is None:
            repeated = self._repeated[op] = Repeated(self, op)
        return repeated(operands)

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
            known[op.result] = self.again(op, operands)
        raise InternalError("a combine region without control.yield")


def constant(op: create.Constant) -> V:
    """A constant in register form."""
    type_ = register_type(op.dtype)
    if type_.is_float or not op.dtype.is_floating():
        value = op.value if type_.is_float else int(op.value)
        return const(type_, value)
    bits = op.evaluate(None).view(f"u{op.dtype.itemsize}")
    return const(int_(op.dtype.bits), int(bits))
