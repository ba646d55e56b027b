"""Cuts a block of tile IR into nests: what is stored, which sinks share loops, and why.

A block becomes a list of steps in program order: scalar operations, groups of sinks, dots, control
flow. A group is a set of outer loops with a sequence of inner loops (subnests), each computing one
or more sinks. See ``design/0003-nests.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tritium.diagnostics import InternalError
from tritium.ir.core import Block, Op, Value
from tritium.ops import control, dot, memory
from tritium.ops.rearrange import Cat, Gather, Update
from tritium.ops.shape import Reshape
from tritium.passes.origins import may_alias

from .facts import (
    Strides,
    injective,
    is_affine,
    is_generator,
    weight,
)
from .index import splits_axis
from .sinks import (
    LANE,
    ZERO_TOKEN,
    Sink,
    SinkKind,
    Walker,
    access_lane,
    default_lane,
    transposed_axis,
)
from .whole import is_whole
from .writers import Writers

CHEAP = 6
"""Weight up to which an element is computed again rather than stored."""
LONG = 64
"""Weight from which on an element is stored without asking how the loops lie."""


@dataclass(eq=False)
class Group:
    """Sinks under common outer loops; each inner list is one subnest."""

    outer: tuple[int, ...]
    block: int | None = None
    """The number of the outer loop that runs in blocks of rows, transposed in registers."""
    subnests: list[list[Sink]] = field(default_factory=list)
    stores: list[Sink] = field(default_factory=list)
    _makers: dict[Value, tuple[int, Sink]] = field(default_factory=dict)

    @property
    def sinks(self) -> list[Sink]:
        return [sink for subnest in self.subnests for sink in subnest]

    def add(self, sink: Sink, subnest: list[Sink] | None) -> None:
        """Put a sink into the last subnest, or (None) into a new one."""
        if subnest is None:
            self.subnests.append([sink])
        else:
            subnest.append(sink)
        if sink.store is not None:
            self.stores.append(sink)
        number = len(self.subnests) - 1
        for value in sink.results:
            self._makers.setdefault(value, (number, sink))

    def producer(self, value: Value) -> tuple[int, Sink] | None:
        """The sink of this group that makes ``value``, with the number of its subnest."""
        return self._makers.get(value)


@dataclass(eq=False)
class Step:
    """One step of a block: exactly one of the two is set."""

    op: Op | None = None
    group: Group | None = None


@dataclass(eq=False)
class BlockPlan:
    """The steps of one block, its stored values, and the reasons for what is not fused."""

    block: Block
    steps: list[Step]
    stored: set[Value]
    kept: set[Value]
    """Values that this block writes to scratch itself."""
    reasons: list[str]
    local: set[Value] = field(default_factory=set)
    """Stored values that only the group that makes them reads: one row at a time is enough."""
    multiplied: set[Value] = field(default_factory=set)
    """Stored operands of dots."""

    def maker(self, value: Value) -> tuple[int, int] | None:
        """The step and subnest that make a value."""
        for number, step in enumerate(self.steps):
            if step.group is not None:
                made = step.group.producer(value)
                if made is not None:
                    return number, made[0]
            elif isinstance(step.op, (dot.Dot, Cat, Update)) and value is step.op.result:
                return number, 0
        return None

    @staticmethod
    def reads(op: Op) -> set[Value]:
        """Every value that an operation reads, in its regions too."""
        found = set(op.operands)
        for inner in op.regions:
            for each in inner.walk():
                found.update(each.operands)
        return found

    def find_local(self, generators: dict[Value, bool]) -> None:
        """Fill in ``local`` and ``multiplied``."""
        readers: dict[Value, set[int]] = {}
        for number, step in enumerate(self.steps):
            values = self.reads(step.op) if step.op is not None else set()
            if step.group is not None:
                values = {value for sink in step.group.sinks for value, _ in sink.uses}
            if isinstance(step.op, dot.Dot):
                self.multiplied.update((step.op.a, step.op.b))
            for value in values:
                readers.setdefault(value, set()).add(number)
        for number, step in enumerate(self.steps):
            for sink in step.group.sinks if step.group is not None else ():
                for value in sink.results:
                    outside = readers.get(value, set()) - {number}
                    if value.shape and not outside and not is_generator(value, generators):
                        self.local.add(value)


def is_scalar(op: Op) -> bool:
    """Whether an operation neither makes nor takes tiles."""
    return all(not v.shape for v in (*op.operands, *op.results))


class Planner:
    """Plans one block.

    ``disjoint``: distinct parameters are known not to overlap. ``outer``: the values that
    enclosing blocks have stored. ``width``: lanes of a vector.
    """

    def __init__(self, block: Block, *, disjoint: bool, outer: set[Value], width: int) -> None:
        self.block = block
        self.width = width
        self.disjoint = disjoint
        self.position = {op: number for number, op in enumerate(block.ops)}
        self.strides = Strides()
        self.reasons: list[str] = []
        self.generators: dict[Value, bool] = {}
        self.kept: set[Value] = set()
        self.stored: set[Value] = set(outer)
        self.early: dict[Op, list[Value]] = {}

    def run(self) -> BlockPlan:
        self._inherent()
        self._keep_required()
        self._keep_long()
        self._keep_changed_loads()
        self._keep_shared()
        plan = BlockPlan(self.block, self._steps(), self.stored, self.kept, self.reasons)
        plan.find_local(self.generators)
        return plan

    # What is stored.

    def _inherent(self) -> None:
        """Values that exist in memory anyway: block arguments, results of loops, reductions, dots.

        Everything of enclosing blocks that is not made of positions was stored by their plans.
        """
        for op in self.block.ops:
            if op.regions or op.family == "reduce" or is_whole(op):
                self.stored.update(result for result in op.results if result.shape)
        defined: set[Value] = set()
        self._consider_outside(self.block, defined)

    def _consider_outside(self, block: Block, defined: set[Value]) -> None:
        """Values read here or in nested regions, but defined by enclosing blocks."""
        if block is not self.block:
            defined.update(block.args)
        for op in block.ops:
            for value in op.operands:
                outside = value.shape and value not in defined
                if outside and not is_generator(value, self.generators):
                    self.stored.add(value)
            for inner in op.regions:
                self._consider_outside(inner.block, defined)
            defined.update(op.results)

    def _keep(self, value: Value, reason: str) -> None:
        if value.shape and value not in self.stored and value not in self.kept:
            self.kept.add(value)
            self.stored.add(value)
            if value.defining_op not in self.position:
                self.early.setdefault(self._first_user(value), []).append(value)
            self.reasons.append(f"%{value.name or value.type}: stored, {reason}")

    def _first_user(self, value: Value) -> Op:
        """The first operation of this block that reads a value, itself or inside a region."""
        for op in self.block.ops:
            if value in op.operands:
                return op
            if any(value in inner.operands for each in op.regions for inner in each.walk()):
                return op
        raise InternalError("a stored value without a reader")

    def _keep_required(self) -> None:
        for op in self.block.ops:
            if isinstance(op, Reshape) and splits_axis(op):
                self._keep(op.x, "a reshape splits its axes")
            if isinstance(op, Reshape) and not op.shape:
                self._keep(op.x, "one element is read")
            if is_whole(op):
                copied = isinstance(op, (Cat, Update))
                reason = f"a {op.verb} reads it in blocks"
                for operand in op.operands:
                    self._keep(operand, "it is copied into another tile" if copied else reason)
            if isinstance(op, Gather):
                self._keep(op.x, "its elements are read at places that a tile gives")
            if isinstance(op, memory.Load) and op.is_fresh:
                self._keep(op.result, "a volatile load happens once, in its place")
            if isinstance(op, control.Yield):
                for operand in op.operands:
                    self._keep(operand, "it leaves the block")
            for inner in op.regions:
                if op.family == "control":
                    self._keep_used_inside(inner.block)
                for operand in op.operands:
                    if op.family == "control":
                        self._keep(operand, "a loop or branch starts with it")

    def _keep_used_inside(self, block: Block) -> None:
        for op in block.ops:
            for operand in op.operands:
                if operand.defining_op in self.position and operand.shape:
                    self._keep_live(operand)
            for inner in op.regions:
                self._keep_used_inside(inner.block)

    def _keep_live(self, value: Value) -> None:
        if not is_generator(value, self.generators):
            self._keep(value, "it is used inside a loop or branch")
        elif self._weight(value) > CHEAP:
            self._keep(value, "it is costly and used inside a loop or branch")

    def _weight(self, value: Value, most: int = CHEAP) -> int:
        """What an element costs: exactly up to ``most``, else some number above that."""
        seen: set[Value] = set()
        total = 0
        todo = [value]
        while todo and total <= most:
            each = todo.pop()
            op = each.defining_op
            if each in seen or not each.shape or op is None:
                continue
            if each in self.stored and each is not value:
                continue
            seen.add(each)
            # Positions that are affine in each axis are computed on scalars.
            if not is_affine(each, self.strides):
                total += weight(op)
                todo.extend(op.operands)
        return total

    def _conflict(self, left: Value, right: Value) -> bool:
        return not self.disjoint or may_alias(left, right)

    def _in_place(self, load: memory.Load, reader: Sink, writer: Sink) -> bool:
        """Whether a store writes each element just where a sink in the same loops reads it."""
        store = writer.store
        assert store is not None
        pointer = store.pointer
        if load.pointer is not pointer or reader.reads[load] != [writer.tokens()]:
            return False
        size = store.value.scalar.itemsize
        return injective(pointer, self.strides, size)

    def _keep_changed_loads(self) -> None:
        """Loads whose memory may be written between them and the place that uses them."""
        writers = Writers(self.block, self.disjoint)
        for _ in range(2):
            for sink in self._sinks():
                for load in list(sink.reads):
                    cause = self._changed(load, sink, writers)
                    if cause:
                        self._keep(load.result, cause)

    def _changed(self, load: memory.Load, sink: Sink, writers: Writers) -> str:
        start = self.position.get(load, -1)
        for writer in writers.between(load.pointer, start, sink.position):
            if not isinstance(writer, memory.Store):
                return "a loop or atomic operation that may write it stands before its use"
            if sink.store is writer and self._in_place(load, sink, sink):
                continue
            return "a store that may overlap it stands before its use"
        return ""

    def _keep_long(self) -> None:
        """Values far down a chain that loops before and after a reduction, or an effect, read.

        These can't share a loop. Without them each sink of a long chain would be followed back to
        its beginning.
        """
        spans: dict[Value, tuple[int, int]] = {}
        """The least and the greatest stage of the sinks that read a value."""
        for op, stage in reversed([*zip(self.block.ops, self._stages())]):
            found = [spans[result] for result in op.results if result in spans]
            if op.family == "reduce" or not op.results:
                found = [(stage, stage)]
            for operand in op.operands if found else ():
                both = [*found, spans.get(operand, found[0])]
                spans[operand] = min(each[0] for each in both), max(each[1] for each in both)
        for value, (least, most) in reversed(spans.items()):
            if least < most and self._weight(value, LONG) > LONG:
                self._keep(value, "it is costly and several loops read it")

    def _stages(self) -> Iterator[int]:
        """A number for each operation: sinks whose numbers differ can't share a loop.

        How many reductions stand one after the other before it, and how many effects.
        """
        depths: dict[Value, int] = {}
        effects = 0
        for op in self.block.ops:
            depth = max((depths.get(operand, 0) for operand in op.operands), default=0)
            depths.update(dict.fromkeys(op.results, depth + (op.family == "reduce")))
            yield depth + effects
            alone = self._is_plain(op) or is_whole(op)
            effects += bool(op.regions or (alone and op.effects))

    def _keep_shared(self) -> None:
        """Costly values that several subnests would compute again."""
        self._steps(quiet=True)
        readers: dict[Value, set[int]] = {}
        for number, subnest in enumerate(self._subnests):
            for sink in subnest:
                for value in sink.inlined:
                    readers.setdefault(value, set()).add(number)
        for op in self.block.ops:
            for value in op.results:
                mine = readers.get(value, set())
                frontier = len(mine) > 1 and self._is_frontier(value, mine, readers)
                if frontier and self._weight(value) > CHEAP:
                    self._keep(value, "it is costly and several loops read it")

    def _is_frontier(self, value: Value, mine: set[int], readers: dict[Value, set[int]]) -> bool:
        for user in value.users():
            theirs = [readers[r] for r in user.results if r in readers]
            if not theirs or any(each != mine for each in theirs):
                return True
        return False

    # Sinks in program order.

    def _sinks(self) -> list[Sink]:
        found: list[Sink] = []
        for op in self.block.ops:
            found.extend(self._keep_sink(value, op) for value in self.early.get(op, ()))
            sink = self._sink_of(op)
            if sink is not None:
                found.append(sink)
            found.extend(self._keep_sink(r, op) for r in op.results if r in self.kept)
        for sink in found:
            Walker(sink, self.stored).run()
            sink.block = transposed_axis(sink, self.strides, self.width)
        return found

    def _keep_sink(self, value: Value, op: Op) -> Sink:
        lane = default_lane(value.shape)
        return Sink(SinkKind.KEEP, op, self.position[op], value.shape, lane, value=value)

    def _sink_of(self, op: Op) -> Sink | None:
        at = self.position[op]
        if isinstance(op, memory.Store) and op.pointer.shape:
            size = op.value.scalar.itemsize
            lane = access_lane(op.pointer, size, self.strides)
            return Sink(SinkKind.STORE, op, at, op.pointer.shape, lane)
        if op.family == "reduce":
            space = op.operands[0].shape
            axis = op.attributes["axis"]
            last = len(space) - 1
            return Sink(SinkKind.REDUCE, op, at, space, last, None if axis == last else axis)
        return None

    # Steps.

    def _steps(self, *, quiet: bool = False) -> list[Step]:
        by_op: dict[Op, list[Sink]] = {}
        for sink in self._sinks():
            by_op.setdefault(sink.op, []).append(sink)
        self._current: Group | None = None
        self._pending: set[Value] = set()
        self._subnests: list[list[Sink]] = []
        steps: list[Step] = []
        before = len(self.reasons)
        for op in self.block.ops:
            for sink in by_op.get(op, ()):
                if sink.value in self.early.get(op, ()):
                    self._place(sink, steps)
            if (op.regions and op.family == "control") or is_whole(op):
                self._flush(steps)
                steps.append(Step(op=op))
            elif self._is_plain(op):
                if self._needs_group(op):
                    self._flush(steps)
                steps.append(Step(op=op))
            for sink in by_op.get(op, ()):
                if sink.value not in self.early.get(op, ()):
                    self._place(sink, steps)
        self._flush(steps)
        if quiet:
            del self.reasons[before:]
        return steps

    def _is_plain(self, op: Op) -> bool:
        """Scalar code, terminators, and reads of one element."""
        if op.terminator or is_scalar(op):
            return True
        return isinstance(op, Reshape) and not op.shape

    def _needs_group(self, op: Op) -> bool:
        if self._current is None:
            return False
        if op.terminator or op.effects or isinstance(op, Reshape):
            return True
        return any(operand in self._pending for operand in op.operands)

    def _flush(self, steps: list[Step]) -> None:
        if self._current is not None:
            steps.append(Step(group=self._current))
            self._current = None
            self._pending.clear()

    def _place(self, sink: Sink, steps: list[Step]) -> None:
        group = self._current
        if group is not None:
            refusal = self._refusal(group, sink)
            if refusal:
                if refusal != "other extents":
                    self.reasons.append(f"{sink.op.mnemonic}: a nest of its own, {refusal}")
                self._flush(steps)
                group = None
        if group is None:
            group = self._current = Group(sink.outer_extents, _blocked_loop(sink))
        target = self._same_loop(group, sink)
        group.add(sink, target)
        if target is None:
            self._subnests.append(group.subnests[-1])
        self._pending.update(sink.results)

    def _refusal(self, group: Group, sink: Sink) -> str:
        """Why a sink can't run inside the loops of a group; empty when it can."""
        if group.outer != sink.outer_extents or group.block != _blocked_loop(sink):
            return "other extents"
        for value, point in sink.uses:
            made = group.producer(value)
            if made is not None and not self._same_row(made[1], value, point):
                return "it reads other rows of a stored tile"
        for other in group.stores if sink.store is None else group.sinks:
            if self._memory_conflict(other, sink):
                return "memory accesses may overlap"
        return ""

    @staticmethod
    def _same_row(producer: Sink, value: Value, point: tuple[object, ...]) -> bool:
        if not value.shape:
            return True
        tokens = producer.result_tokens()
        if len(tokens) != len(point):
            return False
        return all(
            mine == theirs
            for mine, theirs in zip(tokens, point, strict=True)
            if mine not in (LANE, ZERO_TOKEN)
        )

    def _memory_conflict(self, first: Sink, second: Sink) -> bool:
        store, later = first.store, second.store
        if store is not None:
            touched = [load.pointer for load in second.reads]
            touched += [later.pointer] if later is not None else []
            if any(self._conflict(pointer, store.pointer) for pointer in touched):
                return True
        return later is not None and any(
            self._conflict(load.pointer, later.pointer) and not self._in_place(load, first, second)
            for load in first.reads
        )

    def _same_loop(self, group: Group, sink: Sink) -> list[Sink] | None:
        """The group's last subnest, if the sink can be computed in its inner loop."""
        if not group.subnests or sink.along is not None:
            return None
        subnest = group.subnests[-1]
        first = subnest[0]
        if first.along is not None or first.space != sink.space or first.lane != sink.lane:
            return None
        for value, point in sink.uses:
            made = group.producer(value)
            if made is None or made[0] != len(group.subnests) - 1:
                continue
            if made[1].kind is SinkKind.REDUCE or point != made[1].tokens():
                return None
        return subnest


def _blocked_loop(sink: Sink) -> int | None:
    return None if sink.block is None else sink.outer.index(sink.block)
