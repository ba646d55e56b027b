"""What the planner knows of a tile value: where its pointers point, its stride along each axis,
what it costs to compute an element again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tritium.ir.core import Function, Op, Value
from tritium.ir.dtypes import DType, int1
from tritium.ir.types import element
from tritium.ops import arith, cast, control, create, logic, memory
from tritium.ops.rearrange import Cat, Gather, Slice, Update
from tritium.ops.shape import Broadcast, ExpandDims, Reshape, Trans

from .index import SHAPE_OPS, operand_of, reshape_groups, splits_axis
from .whole import is_whole

UNKNOWN = "?"
"""A stride that is the same for all lanes but not known at compile time."""

Stride: TypeAlias = "int | str | None"
"""Bytes or units from one position to the next; UNKNOWN; None where there is no single stride."""


class Strides:
    """Strides of integer and pointer tiles along their axes, memoised."""

    def __init__(self) -> None:
        self._known: dict[Value, tuple[Stride, ...]] = {}

    def of(self, value: Value) -> tuple[Stride, ...]:
        """One stride an axis: bytes for pointers, units for integers. Extent 1 counts as 0."""
        found = self._known.get(value)
        if found is None:
            raw = self._compute(value)
            found = tuple(0 if n == 1 else s for n, s in zip(value.shape, raw, strict=True))
            self._known[value] = found
        return found

    def _compute(self, value: Value) -> tuple[Stride, ...]:
        op = value.defining_op
        rank = len(value.shape)
        if isinstance(op, create.Splat):
            return (0,) * rank
        if isinstance(op, create.Arange):
            return (1,)
        if isinstance(op, SHAPE_OPS):
            return self._shape(op, value)
        if isinstance(op, memory.Offset):
            size = element(op.pointer.type).itemsize
            scaled = (_times(s, size) for s in self.of(op.offset))
            return tuple(map(_plus, self.of(op.pointer), scaled))
        if isinstance(op, (arith.Add, arith.Sub)) and value.scalar.is_int():
            sign = -1 if isinstance(op, arith.Sub) else 1
            return tuple(
                _plus(a, _times(b, sign)) for a, b in zip(self.of(op.x), self.of(op.y), strict=True)
            )
        if isinstance(op, arith.Mul) and value.scalar.is_int():
            return _product(op, self.of(op.x), self.of(op.y))
        if isinstance(op, cast.Convert) and op.x.scalar.is_int() and value.scalar.is_int():
            return self.of(op.x)
        return self._default(op, rank)

    def _default(self, op: Op | None, rank: int) -> tuple[Stride, ...]:
        """Constant along the axes that no operand varies along."""
        moved = isinstance(op, (Gather, Cat, Update))
        if op is None or op.regions or op.effects or moved:
            return (None,) * rank
        varying = [self.of(o) for o in op.operands if len(o.shape) == rank]
        return tuple(
            0 if varying and all(v[axis] == 0 for v in varying) else None for axis in range(rank)
        )

    def _shape(self, op: Op, value: Value) -> tuple[Stride, ...]:
        inner = self.of(operand_of(op))
        if isinstance(op, Broadcast):
            return inner
        if isinstance(op, ExpandDims):
            return (*inner[: op.axis], 0, *inner[op.axis :])
        if isinstance(op, Trans):
            return tuple(inner[source] for source in op.order)
        if isinstance(op, Slice):
            return tuple(_times(a, step) for a, step in zip(inner, op.steps, strict=True))
        assert isinstance(op, Reshape)
        result: list[Stride] = [None] * len(value.shape)
        for left, right in reshape_groups(op.x.shape, value.shape):
            long = [axis for axis in left if op.x.shape[axis] > 1]
            if len(long) == 1:
                step = 1
                for axis in reversed(right):
                    result[axis] = _times(inner[long[0]], step)
                    step *= value.shape[axis]
            elif not long:
                for axis in right:
                    result[axis] = 0
        return tuple(result)


def _plus(a: Stride, b: Stride) -> Stride:
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return UNKNOWN


def _times(a: Stride, factor: int) -> Stride:
    return a * factor if isinstance(a, int) else a


def _constant(value: Value) -> int | None:
    """The number a scalar or splat is known to be."""
    op = value.defining_op
    while isinstance(op, (create.Splat, *SHAPE_OPS, cast.Convert)):
        op = op.x.defining_op
    return op.value if isinstance(op, create.Constant) and isinstance(op.value, int) else None


def _scaled(strides: Sequence[Stride], factor: int | None) -> tuple[Stride, ...]:
    """Strides of a tile times one number, which may not be known."""
    return tuple(
        stride if not stride else UNKNOWN if factor is None else _times(stride, factor)
        for stride in strides
    )


def _product(op: arith.Mul, left: Sequence[Stride], right: Sequence[Stride]) -> tuple[Stride, ...]:
    """Where both factors vary, the stride along one axis depends on the place along another."""
    if all(stride == 0 for stride in right):
        return _scaled(left, _constant(op.y))
    if all(stride == 0 for stride in left):
        return _scaled(right, _constant(op.x))
    return tuple(0 if a == 0 and b == 0 else None for a, b in zip(left, right, strict=True))


def injective(pointer: Value, strides: Strides, size: int) -> bool:
    """Whether no two elements of ``size`` bytes of an access overlap, as far as is known."""
    long = [(s, n) for s, n in zip(strides.of(pointer), pointer.shape, strict=True) if n > 1]
    if any(not isinstance(s, int) for s, _ in long):
        return False
    reach = size
    for stride, extent in sorted((abs(int(s)), n) for s, n in long if isinstance(s, int)):
        if stride < reach:
            return False
        reach = stride * (extent - 1) + reach
    # Where integers wrap on the way, addresses move by multiples of 2 ** bits at least.
    return reach < 1 << _narrowest(pointer)


def _narrowest(pointer: Value) -> int:
    """Bits of the narrowest integers among the tiles that a tile of pointers is made from."""
    bits = 64
    seen: set[Value] = set()
    todo = [pointer]
    while todo:
        value = todo.pop()
        op = value.defining_op
        if value in seen or not value.shape or op is None:
            continue
        seen.add(value)
        if isinstance(value.scalar, DType):
            bits = min(bits, value.scalar.bits)
        if not isinstance(op, create.Splat):
            todo.extend(op.operands)
    return bits


def is_affine(value: Value, strides: Strides) -> bool:
    """Whether an integer or pointer tile has a stride along each of its axes."""
    scalar = value.scalar
    if isinstance(scalar, DType) and (not scalar.is_int() or scalar is int1):
        return False
    return None not in strides.of(value)


_CHEAP = (
    *(arith.Add, arith.Sub, arith.Mul, arith.Neg, arith.Abs, arith.Maximum, arith.Minimum),
    *(logic.And, logic.Or, logic.Xor, logic.Not, logic.Shl, logic.Shr),
    memory.Offset,
)


def weight(op: Op) -> int:
    """Relative cost of one element of an operation's result."""
    if isinstance(op, (create.Splat, create.Arange, create.Constant, *SHAPE_OPS)):
        return 0
    family = op.family
    if isinstance(op, (*_CHEAP,)) or family in ("compare", "select"):
        narrow = isinstance(op.operands[0].scalar, DType) and _is_narrow_float(op.operands[0])
        return 3 if narrow else 1
    if isinstance(op, cast.Bitcast):
        return 0
    if isinstance(op, (cast.Convert, memory.Load)):
        return 2
    return 12


def _is_narrow_float(value: Value) -> bool:
    scalar = value.scalar
    return isinstance(scalar, DType) and scalar.is_floating() and scalar.bits < 32


def is_generator(value: Value, cache: dict[Value, bool]) -> bool:
    """Whether a tile is made of scalars and positions alone, without memory or stored tiles."""
    known = cache.get(value)
    if known is not None:
        return known
    op = value.defining_op
    if not value.shape:
        answer = True
    elif (
        op is None
        or op.regions
        or op.effects
        or op.family in ("reduce", "control")
        or is_whole(op)
        or isinstance(op, Gather)
        or (isinstance(op, Reshape) and splits_axis(op))
    ):
        answer = False
    else:
        answer = all(is_generator(each, cache) for each in op.operands)
    cache[value] = answer
    return answer


def is_steady(function: Function) -> bool:
    """Whether no loop's length depends on what a launch is given, and nothing is told of."""
    for op in function.walk():
        if isinstance(op, control.While) or op.family == "report":
            return False
        if isinstance(op, control.For):
            bounds = (op.lower, op.upper, op.step)
            if any(_constant(each) is None for each in bounds):
                return False
    return True
