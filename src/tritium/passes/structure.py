"""What passes share: facts of operations, and changes of blocks and loops.

Passes rebuild the list of a block's operations rather than take single ones out of it, so that
their time is linear in the size of the IR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritium.diagnostics import Loc
from tritium.ir import PURE, Block, DType, Op, Region, Type, Value, shaped
from tritium.ops.control import For, If, While
from tritium.ops.create import Constant, Splat

Loop = For | While


def is_pure(op: Op) -> bool:
    """Whether an operation and all those inside it do nothing but compute their results."""
    return op.effects is PURE and all(
        is_pure(inner) for region in op.regions for inner in region.ops
    )


def detach(op: Op) -> None:
    """Let an operation that left its block's list read nothing any more."""
    op.drop_operands()
    op.parent = None


def create(cls: type[Op], *, loc: Loc | None, name: str = "", **fields: Any) -> Op:
    """An operation with its results, in no block yet."""
    build: Any = cls  # its fields are only known to the class
    made: Op = build(loc=loc, **fields)
    made.make_results(name)
    return made


def constant_int(value: Value) -> int | None:
    """The integer that a scalar, or each element of a splat, is known to be.

    It lies in the range of its type; a true int1 is 1.
    """
    maker = value.defining_op
    if isinstance(maker, Splat):
        maker = maker.x.defining_op
    if not isinstance(maker, Constant) or not maker.dtype.is_int():
        return None
    return int(maker.evaluate(None))


def splatted(value: Value) -> Value | None:
    """The scalar that each element of a tile equals; a scalar itself; None where not known."""
    if not value.shape:
        return value
    maker = value.defining_op
    return maker.x if isinstance(maker, Splat) else None


def constant_ops(number: int, type: Type, loc: Loc | None) -> list[Op]:
    """The operations that make a scalar or tile of one integer; the last one has the value."""
    scalar = type.scalar
    assert isinstance(scalar, DType)
    known = bool(number) if scalar.is_bool() else number
    made = [create(Constant, loc=loc, value=known, dtype=scalar)]
    if type.shape:
        made.append(create(Splat, loc=loc, x=made[0].result, shape=type.shape))
    assert made[-1].result.type is shaped(scalar, type.shape)
    return made


def regions_of(loop: Loop) -> tuple[Region, ...]:
    """The regions that a loop runs again and again."""
    return loop.regions


def carried_args(loop: Loop, region: Region) -> list[Value]:
    """The arguments of a loop's region that stand for the carried values."""
    return region.args[1:] if isinstance(loop, For) else list(region.args)


def next_values(loop: Loop) -> tuple[Value, ...]:
    """What the body yields as the next carried values."""
    return yielded(loop.body)


def yielded(region: Region) -> tuple[Value, ...]:
    """What a region hands on."""
    end = region.block.terminator
    assert end is not None
    return tuple(end.operands)


def keep_results(op: Loop | If, keep: Sequence[bool]) -> None:
    """Drop the results, and a loop's carried values, that ``keep`` doesn't name.

    The dropped results and arguments must have no readers left, except that a body may yield one.
    """
    if all(keep):
        return

    def kept(values: Sequence[Value]) -> list[Value]:
        return [value for value, stays in zip(values, keep) if stays]

    ends = [op.then, op.otherwise] if isinstance(op, If) else [op.body]
    for region in ends:
        end = region.block.terminator
        assert end is not None
        end.set_group("values", kept(end.operands))
    if not isinstance(op, If):
        op.set_group("init", kept(op.init))
        for region in regions_of(op):
            first = len(region.args) - len(keep)
            region.block.args[first:] = kept(region.args[first:])
    op.results = kept(op.results)


def set_ops(block: Block, ops: list[Op]) -> None:
    """Let ``ops`` be the operations of a block."""
    for op in ops:
        op.parent = block
    block.ops = ops
