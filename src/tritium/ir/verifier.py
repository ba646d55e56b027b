"""Whether a function is valid tile IR: what every pass may rely on and must leave behind."""

from __future__ import annotations

from typing import Any

from tritium.diagnostics import InternalError, Loc, TritiumError, error

from .core import REGISTRY, Block, ConcreteValue, FieldKind, Function, Op, Region, Value
from .dtypes import Type
from .printer import attribute_text, type_text


def verify(function: Function) -> None:
    """Check a function. Raises E0301, which names the operation at fault and its place.

    Valid means: every operand is made before, in the same block or one around it, and knows its
    reader; blocks end with a terminator and have no other, the function's with ``control.return``,
    nested ones with another; an operation's fields are what its class declares; its result types
    are those that ``infer`` gives; operations, blocks, regions and values know what they are in.
    """
    _Verifier().function(function)


class _Verifier:
    def __init__(self) -> None:
        self.visible: set[Value] = set()
        self.seen: set[Op] = set()
        self.values: list[Value] = []

    def function(self, function: Function) -> None:
        if function.body.parent is not None:
            raise _wrong("the body of a function belongs to no operation", function.loc)
        if [param.value for param in function.params] != function.body.args:
            raise _wrong("the parameters are not the arguments of the body", function.loc)
        self.region(function.body, function.loc, "control.return")
        # Every operand was found among its value's uses; now no value may have any other.
        for value in self.values:
            for user, index in value.uses:
                reads = index < len(user.operands) and user.operands[index] is value
                if user not in self.seen or not reads:
                    maker = value.defining_op
                    where = function.loc if maker is None else maker.loc
                    text = f"among the uses of %{value.name} is one by {user.mnemonic} that is gone"
                    raise _wrong(text, where)

    def region(self, region: Region, loc: Loc | None, last: str = "") -> None:
        block = region.block
        if block.region is not region:
            raise _wrong("a block does not know its region", loc)
        for arg in block.args:
            if arg.owner is not block:
                raise _wrong(f"the argument %{arg.name} does not know its block", loc)
        self.block(block, loc, last)

    def block(self, block: Block, loc: Loc | None, last: str) -> None:
        """The operations of a block; what it defines is visible until its end."""
        defined = list(block.args)
        self.visible.update(defined)
        for place, op in enumerate(block.ops):
            if op.parent is not block:
                raise _wrong(f"{op.mnemonic} does not know its block", op.loc)
            if op in self.seen:
                raise _wrong(f"{op.mnemonic} stands in two places", op.loc)
            self.seen.add(op)
            if op.terminator and place < len(block.ops) - 1:
                raise _wrong(f"{op.mnemonic} is not the last operation of its block", op.loc)
            try:
                self.op(op)
            except TritiumError as problem:
                problem.at(op.loc)
                raise
            defined += op.results
            self.visible.update(op.results)
        end = block.terminator
        if end is None:
            where = block.ops[-1].loc if block.ops else loc
            raise _wrong("a block ends without a terminator", where)
        if (end.mnemonic == "control.return") is not (last == "control.return"):
            raise _wrong(f"a block ends with {end.mnemonic}", end.loc)
        self.values += defined
        self.visible.difference_update(defined)

    def op(self, op: Op) -> None:
        if REGISTRY.get(op.mnemonic) is not type(op):
            raise _wrong(f"{type(op).__name__} is not the operation {op.mnemonic}")
        _check_bounds(op)
        self.operands(op)
        _check_attributes(op)
        for result in op.results:
            if result.owner is not op:
                raise _wrong(f"{op.mnemonic}: its result %{result.name} does not know it")
        for key, declared in op.fields.items():
            if declared.kind is not FieldKind.REGION:
                continue
            region = getattr(op, key)
            if not isinstance(region, Region):
                raise _wrong(f"{op.mnemonic}: {key} is no region")
            if region.parent is not op:
                raise _wrong(f"{op.mnemonic}: its region {key} does not know it")
            self.region(region, op.loc)
        _check_types(op)

    def operands(self, op: Op) -> None:
        for index, value in enumerate(op.operands):
            if not isinstance(value, Value):
                raise _wrong(f"{op.mnemonic}: operand {index} is no value")
            if isinstance(value, ConcreteValue):
                raise _wrong(f"{op.mnemonic}: operand {index} is a value of eager mode")
            if value not in self.visible:
                raise _wrong(f"{op.mnemonic} reads %{value.name}, which is not defined before it")
            if (op, index) not in value.uses:
                raise _wrong(f"{op.mnemonic} is missing among the uses of %{value.name}")


def _wrong(text: str, loc: Loc | None = None) -> TritiumError:
    return error("E0301", text=text, loc=loc)


def _check_bounds(op: Op) -> None:
    """Whether the flat operands are divided into the fields that the class declares."""
    declared = [(key, each.kind) for key, each in op.fields.items() if each.is_operand]
    bounds = op.bounds
    if len(bounds) != len(declared) + 1 or bounds[0] != 0 or bounds[-1] != len(op.operands):
        raise _wrong(f"{op.mnemonic} has {len(op.operands)} operands, divided at {bounds}")
    for (key, kind), start, stop in zip(declared, bounds, bounds[1:]):
        count = stop - start
        least = 1 if kind is FieldKind.OPERAND else 0
        most = 1 if kind is not FieldKind.OPERANDS else max(count, 0)
        if not least <= count <= most:
            raise _wrong(f"{op.mnemonic} has {count} operands {key}")


def _check_attributes(op: Op) -> None:
    for key, value in op.attributes.items():
        try:
            attribute_text(value)
        except InternalError:
            raise _wrong(f"{op.mnemonic}: {key} can't be {value!r}") from None


def _check_types(op: Op) -> None:
    """Whether the results have the types that the operation's rule gives."""
    try:
        wanted = op.result_types()
    except TritiumError as problem:
        if problem.code == "E0301":
            raise
        raise _wrong(f"{op.mnemonic}: {problem.message}") from problem
    got = tuple(result.type for result in op.results)
    if got != wanted:
        raise _wrong(f"{op.mnemonic} has the type {_listed(got)}, its rule gives {_listed(wanted)}")


def _listed(types: tuple[Any, ...]) -> str:
    texts = [type_text(each) if isinstance(each, Type) else repr(each) for each in types]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
