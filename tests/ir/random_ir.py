"""Random functions: of every registered operation for its form, and runnable ones for meaning."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tritium.diagnostics import Loc
from tritium.ir import (
    REGISTRY,
    Block,
    Function,
    Op,
    Param,
    PointerType,
    Region,
    Type,
    Value,
    shaped,
)
from tritium.ir.dtypes import (
    DType,
    float16,
    float32,
    int1,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)
from tritium.ops.arith import Add, Idiv, Mul, Neg, Rem, Sub
from tritium.ops.cast import Convert
from tritium.ops.compare import Eq, Gt, Lt
from tritium.ops.control import For, If, Return, While, Yield
from tritium.ops.create import Arange, Constant, Splat
from tritium.ops.logic import And, Not, Or, Shl, Xor
from tritium.ops.memory import Load, Offset, Store
from tritium.ops.program import ProgramId
from tritium.ops.select import Where
from tritium.ops.shape import Broadcast, ExpandDims, Reshape, Trans
from tritium.ops.spec import Case, cases_of

CASES_EACH = 30
HINTS = ("", "", "x", "x_1", "x_2", "acc", "größe", "a b", "9", "_", "i32", "none", "%", "x#0")


@functools.cache
def all_cases() -> dict[str, list[Case]]:
    """A few cases of every operation that has any, by mnemonic."""
    return {
        name: list(itertools.islice(cases_of(cls), CASES_EACH))
        for name, cls in sorted(REGISTRY.items())
        if hasattr(cls, "cases")
    }


class Builder:
    """Appends operations to the innermost of nested blocks, and knows the values visible there."""

    def __init__(self, random: Random, name: str, params: Sequence[tuple[str, Type, int]]) -> None:
        self.random = random
        self.function = Function(name, params, self.loc())
        self.blocks = [self.function.body.block]
        self.visible: dict[Type, list[Value]] = {}
        for param in self.function.params:
            self.see(param.value)

    def loc(self) -> Loc | None:
        return None

    def hint(self) -> str:
        return ""

    def see(self, value: Value) -> None:
        self.visible.setdefault(value.type, []).append(value)

    def append(self, op: Op) -> Op:
        op.loc = self.loc()
        op.make_results(self.hint())
        self.blocks[-1].append(op)
        for result in op.results:
            self.see(result)
        return op

    def emit(self, cls: type[Op], **fields: Any) -> Value:
        return self.append(cls(**fields)).results[0]

    def region(
        self, types: Sequence[Type], fill: Callable[[list[Value]], Sequence[Value]]
    ) -> Region:
        """A region with arguments of these types; ``fill`` emits its body, returns its yield."""
        block = Block(types, [self.hint() for _ in types])
        outer = {type: list(values) for type, values in self.visible.items()}
        self.blocks.append(block)
        for arg in block.args:
            self.see(arg)
        self.append(Yield(values=tuple(fill(block.args))))
        self.blocks.pop()
        self.visible = outer
        return Region(block)

    def finish(self) -> Function:
        self.append(Return())
        return self.function


class AnyProgram(Builder):
    """Operations of every kind on parameters and earlier results; it isn't meant to run."""

    def loc(self) -> Loc | None:
        pick = self.random
        if pick.random() < 0.5:
            return None
        site = self.loc() if pick.random() < 0.3 else None
        file = pick.choice(("kernel.py", 'a "b"\\.py', "<ipython-input-1>", "größe.py"))
        line = pick.randrange(1, 999)
        if pick.random() < 0.3:
            return Loc(file, line, 0, call_site=site)
        function = pick.choice(("", "kernel", "<lambda>"))
        return Loc(file, line, pick.randrange(80), line, pick.randrange(99), function, site)

    def hint(self) -> str:
        return self.random.choice(HINTS)

    def operand(self, type: Type) -> Value:
        """A visible value of that type, or a new parameter."""
        known = self.visible.get(type)
        if known and self.random.random() < 0.9:
            return self.random.choice(known)
        name = f"p{len(self.function.params)}"
        value = self.function.body.block.add_arg(type, name)
        divisibility = self.random.choice((1, 1, 16))
        self.function.params.append(Param(name, value, divisibility))
        self.see(value)
        return value

    def step(self, depth: int) -> None:
        control = (self.branch, self.count, self.repeat)
        if depth and self.random.random() < 0.3:
            self.random.choice(control)(depth - 1)
            return
        case = self.random.choice(all_cases()[self.random.choice(sorted(all_cases()))])
        self.append(case.build([self.operand(sample.type) for sample in case.samples()]))

    def types(self) -> list[Type]:
        known = sorted(self.visible, key=str)
        return [self.random.choice(known) for _ in range(self.random.randrange(4)) if known]

    def body(self, types: Sequence[Type], depth: int) -> Callable[[list[Value]], list[Value]]:
        def fill(args: list[Value]) -> list[Value]:
            for _ in range(self.random.randrange(4)):
                self.step(depth)
            return [self.operand(type) for type in types]

        return fill

    def branch(self, depth: int) -> None:
        types = self.types()
        condition = self.operand(int1)
        then, otherwise = (self.region((), self.body(types, depth)) for _ in range(2))
        self.append(If(condition=condition, then=then, otherwise=otherwise))

    def count(self, depth: int) -> None:
        pick = self.random
        bound = pick.choice((int32, int64, uint8))
        types = self.types()
        lower, upper, step = (self.operand(bound) for _ in range(3))
        init = tuple(map(self.operand, types))
        body = self.region((bound, *types), self.body(types, depth))
        self.append(
            For(
                lower=lower,
                upper=upper,
                step=step,
                init=init,
                num_stages=pick.choice((None, 3)),
                unroll=pick.choice((None, 2)),
                hints=pick.choice(((), ("flatten",), ("flatten", "disable_licm"))),
                body=body,
            )
        )

    def repeat(self, depth: int) -> None:
        types = self.types()
        init = tuple(map(self.operand, types))
        condition = self.region(types, self.body([int1], depth))
        body = self.region(types, self.body(types, depth))
        self.append(While(init=init, condition=condition, body=body))


def any_function(random: Random, steps: int = 12) -> Function:
    """A function whose form is valid, of operations from all families."""
    name = random.choice(("kernel", "f_1", "größe", "a.b", "<lambda>"))
    made = AnyProgram(random, name, [("n", int32, 1), ("x_ptr", PointerType(float32), 16)])
    for _ in range(random.randrange(steps)):
        made.step(depth=2)
    return made.finish()


BUFFER = 4096
"""Elements of each buffer of a runnable program; its pointer points at the middle."""
PARAMS: list[tuple[str, Type, int]] = [
    ("p", PointerType(int32), 16),
    ("q", PointerType(float16), 1),
    ("n", int32, 1),
    ("m", int64, 1),
    ("k", uint8, 1),
]
INTEGERS = (int32, int64, int8, int16, uint8, uint32, uint64)
SHAPES = ((), (8,), (2, 4), (4, 2))


class Runnable(Builder):
    """Integer tiles, pointers that stay inside of buffers, and loops of a few iterations."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, "kernel", PARAMS)
        self.p, self.q = (param.value for param in self.function.params[:2])

    def pick(self, type: Type) -> Value:
        """A visible value of that type, or a constant one."""
        known = self.visible.get(type)
        if known and self.random.random() < 0.85:
            return self.random.choice(known)
        scalar = type.scalar
        if isinstance(scalar, PointerType):
            return self.pointer(scalar, type.shape)
        assert isinstance(scalar, DType)
        small = self.random.choice((0, 0, 1, 1, 2, 3, 5, 7, scalar.get_int_max_value()))
        value = bool(small & 1) if scalar is int1 else small
        return self.splat(self.emit(Constant, value=value, dtype=scalar), type.shape)

    def splat(self, scalar: Value, shape: tuple[int, ...]) -> Value:
        return self.emit(Splat, x=scalar, shape=shape) if shape else scalar

    def number(self, value: int, dtype: DType) -> Value:
        return self.emit(Constant, value=value, dtype=dtype)

    def small(self, dtype: DType, shape: tuple[int, ...], mask: int) -> Value:
        """A value of 0 to ``mask``."""
        limit = self.splat(self.number(mask, dtype), shape)
        return self.emit(And, x=self.pick(shaped(dtype, shape)), y=limit)

    def pointer(self, scalar: PointerType, shape: tuple[int, ...]) -> Value:
        base = self.p if scalar is self.p.type else self.q
        offset = self.small(self.random.choice((int32, int64, uint32)), shape, 63)
        return self.emit(Offset, pointer=self.splat(base, shape), offset=offset)

    def integer_type(self) -> Type:
        return shaped(self.random.choice(INTEGERS[:3]), self.random.choice(SHAPES))

    def step(self, depth: int) -> None:
        choices = [self.binary] * 5 + [self.unary, self.compare, self.where, self.memory] * 2
        choices += [self.make, self.rearrange, self.convert]
        self.random.choice(choices)()
        if depth and self.random.random() < 0.25:
            self.random.choice((self.branch, self.count, self.count, self.repeat))(depth - 1)

    def binary(self) -> None:
        cls = self.random.choice((Add, Sub, Mul, Idiv, Rem, And, Or, Xor, Shl))
        type = self.integer_type()
        self.emit(cls, x=self.pick(type), y=self.pick(type))

    def unary(self) -> None:
        self.emit(self.random.choice((Neg, Not)), x=self.pick(self.integer_type()))

    def compare(self) -> None:
        type = self.integer_type()
        cls = self.random.choice((Eq, Lt, Gt))
        self.emit(cls, x=self.pick(type), y=self.pick(type))

    def where(self) -> None:
        type = self.integer_type()
        condition = self.pick(shaped(int1, type.shape))
        self.emit(Where, condition=condition, x=self.pick(type), y=self.pick(type))

    def make(self) -> None:
        pick = self.random
        if pick.random() < 0.3:
            self.emit(ProgramId, axis=pick.randrange(2))
        else:
            start = pick.randrange(-3, 3)
            self.emit(Arange, start=start, end=start + 8)

    def convert(self) -> None:
        dtype = self.random.choice(INTEGERS)
        self.emit(Convert, x=self.pick(self.integer_type()), dtype=dtype)

    def rearrange(self) -> None:
        dtype = self.random.choice(INTEGERS[:3])
        x = self.pick(shaped(dtype, (2, 4)))
        y = self.emit(Trans, x=x, order=self.random.choice(((1, 0), (0, 1))))
        z = self.emit(Reshape, x=y, shape=self.random.choice(((8,), (2, 4), (4, 2))))
        wide = self.emit(ExpandDims, x=self.emit(Reshape, x=z, shape=(8,)), axis=0)
        self.emit(Broadcast, x=wide, shape=(self.random.choice((1, 2)), 8))

    def memory(self) -> None:
        scalar = self.random.choice((self.p.type, self.q.type))
        shape = self.random.choice(SHAPES)
        known = self.visible.get(shaped(scalar, shape), [])
        at = self.random.choice(known) if known and shape else self.pointer(scalar, shape)
        mask = self.pick(shaped(int1, shape)) if self.random.random() < 0.4 else None
        loaded = self.emit(Load, pointer=at, mask=mask)
        if self.random.random() < 0.6:
            value = self.pick(loaded.type) if loaded.scalar is int32 else loaded
            self.append(Store(pointer=at, value=value, mask=mask))

    def branch(self, depth: int) -> None:
        types = [self.integer_type() for _ in range(self.random.randrange(3))]
        condition = self.pick(int1)

        def fill(args: list[Value]) -> list[Value]:
            self.steps(depth)
            return [self.pick(type) for type in types]

        then, otherwise = self.region((), fill), self.region((), fill)
        self.append(If(condition=condition, then=then, otherwise=otherwise))

    def steps(self, depth: int) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.step(depth)

    def carried_types(self) -> list[Type]:
        found = [self.integer_type() for _ in range(self.random.randrange(3))]
        for _ in range(self.random.randrange(3)):
            scalar = self.random.choice((self.p.type, self.q.type))
            found.append(shaped(scalar, self.random.choice(SHAPES)))
        return found

    def following(self, args: Sequence[Value]) -> list[Value]:
        """The next carried values: moved by scalars, unchanged, exchanged, or anything."""
        found = []
        for arg in args:
            choice = self.random.random()
            if arg.scalar.is_ptr():
                found.append(self.moved_pointer(arg) if choice < 0.8 else arg)
            elif choice < 0.6:
                found.append(self.moved_integer(arg))
            else:
                found.append(self.pick(arg.type))
        return found

    def moved_pointer(self, value: Value) -> Value:
        for _ in range(self.random.randrange(1, 3)):
            dtype = self.random.choice((int32, int64, uint8, int8, uint32))
            by = self.small(dtype, (), 3)
            if dtype.is_int_signed() and self.random.random() < 0.4:
                by = self.emit(Neg, x=by)
            value = self.emit(Offset, pointer=value, offset=self.splat(by, value.shape))
        return value

    def moved_integer(self, value: Value) -> Value:
        for _ in range(self.random.randrange(1, 3)):
            by = self.splat(self.pick(value.scalar), value.shape)
            order = (value, by) if self.random.random() < 0.7 else (by, value)
            if self.random.random() < 0.6:
                value = self.emit(Add, x=order[0], y=order[1])
            else:
                value = self.emit(Sub, x=value, y=by)
        return value

    def count(self, depth: int) -> None:
        dtype = self.random.choice((int32, int64, int8))
        types = self.carried_types()
        lower, upper = self.small(dtype, (), 3), self.small(dtype, (), 7)
        step = self.number(self.random.choice((1, 2, 3)), dtype)
        init = tuple(map(self.pick, types))

        def fill(args: list[Value]) -> list[Value]:
            self.steps(depth)
            return self.following(args[1:])

        body = self.region((dtype, *types), fill)
        self.append(For(lower=lower, upper=upper, step=step, init=init, body=body))

    def repeat(self, depth: int) -> None:
        """A loop that counts down from at most 7."""
        types = self.carried_types()
        init = (self.small(int32, (), 7), *map(self.pick, types))
        carried = (int32, *types)

        def ask(args: list[Value]) -> list[Value]:
            self.steps(0)
            return [self.emit(Gt, x=args[0], y=self.number(0, int32))]

        def fill(args: list[Value]) -> list[Value]:
            self.steps(depth)
            left = self.emit(Sub, x=args[0], y=self.number(1, int32))
            return [left, *self.following(args[1:])]

        condition, body = self.region(carried, ask), self.region(carried, fill)
        self.append(While(init=init, condition=condition, body=body))


def runnable_function(random: Random, steps: int = 8) -> Function:
    """A function that a launch with two buffers of BUFFER elements can run."""
    made = Runnable(random)
    for _ in range(random.randrange(1, steps)):
        made.step(depth=2)
    # What was computed is seen from outside, or else nothing of it would have to be right.
    for type, values in list(made.visible.items()):
        if type.scalar in INTEGERS[:3] and type.shape in SHAPES:
            at = made.pointer(made.p.type, type.shape)
            value = values[-1]
            if type.scalar is not int32:
                value = made.emit(Convert, x=value, dtype=int32)
            made.append(Store(pointer=at, value=value))
    for type, values in list(made.visible.items()):
        if type.scalar is made.p.type and type.shape:
            made.append(Load(pointer=values[-1]))
    return made.finish()
