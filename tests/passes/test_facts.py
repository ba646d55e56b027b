"""Facts against brute force: random programs of integers and pointers, every claim checked on every
element for arguments near the ends of their types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritium.ir import Block, Function, Op, Region, Value
from tritium.ir.dtypes import DType, float32, int1, int8, int32, int64, uint8, uint32
from tritium.ir.types import PointerType, TileType
from tritium.ops import arith, cast, compare, control, create, hints, logic, memory, select, shape
from tritium.passes.facts import Axis, Fact, Facts
from tritium.passes.structure import create as make

DTYPES = (int8, uint8, int32, uint32, int64)


def integers(dtype: DType) -> st.SearchStrategy[int]:
    """Numbers near 0 and near the ends of a type."""
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    near = st.integers(-40, 40)
    ends = st.one_of(near, near.map(lambda n: low + n), near.map(lambda n: high + n))
    return ends.map(lambda n: min(max(n, low), high))


class Program:
    """A block under construction with the value of everything in it."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        params = []
        self.numbers: list[np.ndarray[Any, Any]] = []
        for number in range(3):
            dtype = draw(st.sampled_from(DTYPES))
            divisor = draw(st.sampled_from((1, 1, 16)))
            value = draw(integers(dtype)) // divisor * divisor
            value = max(value, -(-dtype.get_int_min_value() // divisor) * divisor)
            params.append((f"n{number}", dtype, divisor))
            self.numbers.append(np.asarray(value, dtype.numpy))
        params.append(("p", PointerType(float32), 16))
        self.numbers.append(np.asarray(draw(st.integers(0, 1 << 20)) * 16, np.uint64))
        self.function = Function("f", params)
        self.known = dict(zip((p.value for p in self.function.params), self.numbers, strict=True))

    def add(self, cls: type[Op], **fields: Any) -> Value:
        op = make(cls, loc=None, **fields)
        self.function.body.block.append(op)
        operands = [self.known[x] for x in op.operands]
        with np.errstate(all="ignore"):
            self.known[op.results[0]] = np.asarray(op.evaluate(None, *operands))
        return op.results[0]

    def of_type(self, scalar: Any, extents: tuple[int, ...]) -> Value:
        """A value of a type: one there is, or one that is made for it."""
        found = [v for v in self.known if v.scalar is scalar and v.shape == extents]
        if found and self.draw(st.integers(0, 3)):
            return self.draw(st.sampled_from(found))
        if not extents:
            if isinstance(scalar, PointerType):
                return self.function.params[-1].value
            given = [v for v in self.known if not v.shape and isinstance(v.scalar, DType)]
            if self.draw(st.booleans()):
                return self.convert(self.draw(st.sampled_from(given)), scalar)
            return self.add(create.Constant, value=self.draw(integers(scalar)), dtype=scalar)
        if len(extents) == 1 and isinstance(scalar, DType) and self.draw(st.booleans()):
            start = self.draw(st.sampled_from((0, 0, 16, 5, -24, 2**31 - extents[0])))
            made = self.add(create.Arange, start=start, end=start + extents[0])
            return self.convert(made, scalar)
        if len(extents) == 2 and self.draw(st.booleans()):
            axis = self.draw(st.integers(0, 1))
            row = self.of_type(scalar, extents[:axis] + extents[axis + 1 :])
            wide = self.add(shape.ExpandDims, x=row, axis=axis)
            return self.add(shape.Broadcast, x=wide, shape=extents)
        return self.add(create.Splat, x=self.of_type(scalar, ()), shape=extents)

    def convert(self, value: Value, dtype: DType) -> Value:
        return value if value.scalar is dtype else self.add(cast.Convert, x=value, dtype=dtype)

    def step(self, extents: tuple[int, ...]) -> None:
        """One more operation on tiles of a shape."""
        draw = self.draw
        dtype = draw(st.sampled_from(DTYPES))
        x, y = self.of_type(dtype, extents), self.of_type(dtype, extents)
        kind = draw(st.integers(0, 8))
        if kind <= 2:
            classes = (arith.Add, arith.Sub, arith.Mul, arith.Idiv, arith.Rem, logic.And)
            more = (logic.Shl, logic.Shr, arith.Maximum, arith.Minimum, logic.Xor)
            self.add(draw(st.sampled_from((*classes, *more))), x=x, y=y)
        elif kind == 3:
            classes = (compare.Lt, compare.Le, compare.Gt, compare.Ge, compare.Eq)
            self.add(draw(st.sampled_from(classes)), x=x, y=y)
        elif kind == 4:
            self.convert(x, draw(st.sampled_from(DTYPES)))
        elif kind == 5:
            self.add(memory.Offset, pointer=self.of_type(PointerType(float32), extents), offset=x)
        elif kind == 6:
            flags = [v for v in self.known if v.scalar is int1 and v.shape == extents]
            if flags:
                self.add(select.Where, condition=draw(st.sampled_from(flags)), x=x, y=y)
        elif kind == 7:
            self.promise(x)
        elif len(extents) == 2:
            self.add(shape.Trans, x=x, order=(1, 0))
            self.add(shape.Reshape, x=x, shape=(math.prod(extents),))
        else:
            rows = draw(st.sampled_from([n for n in (2, 3, 4) if extents[0] % n == 0] or [1]))
            self.add(shape.Reshape, x=x, shape=(rows, extents[0] // rows))

    def promise(self, x: Value) -> None:
        """Something that is so, of a tile that is known."""
        data = np.vectorize(int, otypes=[object])(self.known[x])
        promised: dict[str, list[int]] = {"multiple": [], "contiguous": [], "constant": []}
        for place, extent in enumerate(x.shape):
            rows = np.moveaxis(data, place, -1).reshape(-1, extent)
            sizes = [size for size in (1, 2, 3, 4, 8, 16, extent) if size <= extent]
            counts = [n for n in sizes if all(_counts_up(row, n, 1) for row in rows)]
            equal = [n for n in sizes if all(_counts_up(row, n, 0) for row in rows)]
            run = self.draw(st.sampled_from(counts))
            same = self.draw(st.sampled_from(equal)) if run == 1 else 1
            firsts = rows[:, :: max(run, same)].ravel()
            divides = [n for n in (1, 2, 3, 4, 8, 48, 64) if not any(v % n for v in firsts)]
            promised["contiguous"].append(run)
            promised["constant"].append(same)
            promised["multiple"].append(self.draw(st.sampled_from(divides)))
        self.add(hints.Promise, x=x, **{name: tuple(each) for name, each in promised.items()})


def _counts_up(row: np.ndarray[Any, Any], size: int, step: int) -> bool:
    """Whether from each multiple of ``size`` on as many elements count up by ``step``."""
    return all(row[at] == row[at - 1] + step for at in range(1, len(row)) if at % size)


def check(fact: Fact, value: Value, data: np.ndarray[Any, Any]) -> None:
    """Every claim, on every element."""
    bits = 8 * data.dtype.itemsize
    numbers = np.vectorize(int, otypes=[object])(data)
    for number in numbers.ravel():
        assert number % fact.divisor == 0
        if fact.range is not None:
            assert fact.range[0] <= number <= fact.range[1]
    assert len(fact.axes) == data.ndim
    for place, axis in enumerate(fact.axes):
        rows = np.moveaxis(numbers, place, -1).reshape(-1, data.shape[place])
        for row in rows:
            for start in range(0, len(row), axis.group):
                assert row[start] % axis.start == 0, (value, place, axis)
                for step, number in enumerate(row[start : start + axis.group]):
                    wanted = row[start] + step * axis.stride
                    assert (number - wanted) % (1 << bits) == 0, (value, place, axis)


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_every_claim_holds(data: Any) -> None:
    program = Program(data.draw)
    for _ in range(data.draw(st.integers(4, 14))):
        program.step(data.draw(st.sampled_from(((16,), (12,), (48,), (4, 8), (3, 16)))))
    facts = Facts(program.function)
    for value, known in program.known.items():
        if value.scalar is not int1:
            check(facts.of(value), value, known)
        else:
            fact = facts.of(value)
            assert all(axis.stride == 0 for axis in fact.axes)
            check(fact, value, known.astype(np.uint8))


def _row(divisor: int, extent: int = 64) -> tuple[Facts, dict[str, Value]]:
    """``p + n * m + arange`` with what is known of n and m."""
    function = Function(
        "f", [("p", PointerType(float32), 16), ("n", int32, divisor), ("m", int32, 1)]
    )
    block = function.body.block
    p, n, m = (param.value for param in function.params)

    def add(cls: type[Op], **fields: Any) -> Value:
        block.append(make(cls, loc=None, **fields))
        return block.ops[-1].results[0]

    start = add(arith.Mul, x=n, y=m)
    base = add(memory.Offset, pointer=p, offset=start)
    lanes = add(create.Arange, start=0, end=extent)
    pointers = add(create.Splat, x=base, shape=(extent,))
    moved = add(memory.Offset, pointer=pointers, offset=lanes)
    limit = add(create.Splat, x=n, shape=(extent,))
    mask = add(compare.Lt, x=lanes, y=limit)
    return Facts(function), {"pointer": moved, "mask": mask}


def test_a_row_of_a_matrix_whose_stride_is_divisible_is_read_by_16_bytes() -> None:
    facts, values = _row(16)
    axis = facts.of(values["pointer"]).axes[0]
    assert axis.contiguity(4) == 64
    assert axis.start == 16
    assert facts.of(values["mask"]).axes[0].constancy == 16


def test_of_a_stride_that_may_be_odd_nothing_but_the_element_is_aligned() -> None:
    facts, values = _row(1)
    axis = facts.of(values["pointer"]).axes[0]
    assert axis.contiguity(4) == 64
    assert axis.start == 4
    assert facts.of(values["mask"]).axes[0].constancy == 1


def test_offsets_that_may_wrap_are_neighbours_only_up_to_where_they_are_aligned() -> None:
    function = Function("f", [("p", PointerType(float32), 16), ("n", int32, 16)])
    block = function.body.block
    p, n = (param.value for param in function.params)
    lanes = make(create.Arange, loc=None, start=0, end=64)
    splat = make(create.Splat, loc=None, x=n, shape=(64,))
    total = make(arith.Add, loc=None, x=splat.result, y=lanes.result)
    pointers = make(create.Splat, loc=None, x=p, shape=(64,))
    moved = make(memory.Offset, loc=None, pointer=pointers.result, offset=total.result)
    for op in (lanes, splat, total, pointers, moved):
        block.append(op)
    axis = Facts(function).of(moved.result).axes[0]
    assert (axis.contiguity(4), axis.start) == (16, 16)


@pytest.mark.parametrize(("step", "group"), [(16, 64), (1, 64), (0, 64)])
def test_what_a_loop_carries(step: int, group: int) -> None:
    function = Function("f", [("n", int32, 1)])
    block = function.body.block
    (n,) = (param.value for param in function.params)

    def add(target: Block, cls: type[Op], **fields: Any) -> Value:
        target.append(make(cls, loc=None, **fields))
        return target.ops[-1].results[0] if target.ops[-1].results else n

    lanes = add(block, create.Arange, start=0, end=64)
    zero = add(block, create.Constant, value=0, dtype=int32)
    one = add(block, create.Constant, value=1, dtype=int32)
    body = Block([int32, TileType(int32, (64,))])
    by = add(body, create.Constant, value=step, dtype=int32)
    steps = add(body, create.Splat, x=by, shape=(64,))
    following = add(body, arith.Add, x=body.args[1], y=steps)
    body.append(make(control.Yield, loc=None, values=(following,)))
    loop = make(
        control.For, loc=None, lower=zero, upper=n, step=one, init=(lanes,), body=Region(body)
    )
    block.append(loop)
    fact = Facts(function).of(loop.results[0])
    assert fact.axes[0].contiguity(1) == group
    assert fact.axes[0].start == {16: 16, 1: 1, 0: 1 << 62}[step]
    assert fact.range == ((0, 63) if step == 0 else (-(2**31), 2**31 - 1))


def test_comparisons_with_0_see_where_narrow_integers_wrap() -> None:
    function = Function("f", [])
    lanes = make(create.Arange, loc=None, start=0, end=512)
    narrow = make(cast.Convert, loc=None, x=lanes.result, dtype=int8)
    zero = make(create.Constant, loc=None, value=0, dtype=int8)
    splat = make(create.Splat, loc=None, x=zero.result, shape=(512,))
    mask = make(compare.Lt, loc=None, x=narrow.result, y=splat.result)
    for op in (lanes, narrow, zero, splat, mask):
        function.body.block.append(op)
    assert Facts(function).of(mask.result).axes[0].constancy == 128


def test_elements_that_are_apart() -> None:
    facts, values = _row(1)
    pointer = facts.of(values["pointer"])
    assert pointer.is_apart((64,), 4)
    assert not pointer.is_apart((64,), 8)
    rows = Fact((Axis(4, 256, 4), Axis(64, 4, 4)), 4, None)
    assert rows.is_apart((4, 64), 4)
    assert not rows.is_apart((4, 128), 4)
    assert not Fact((Axis(4, 128, 4), Axis(64, 4, 4)), 4, None).is_apart((4, 64), 4)
    assert not Fact((Axis(64, 0, 4),), 4, None).is_apart((64,), 4)
    assert Fact((Axis(1, 0, 4),), 4, None).is_apart((1,), 4)


def test_what_a_tile_of_pointers_spans() -> None:
    rows = Fact((Axis(4, -256, 4), Axis(64, 4, 4)), 4, None)
    assert rows.span((4, 64), 4) == 3 * 256 + 63 * 4 + 4
    assert rows.span((4, 128), 4) is None
    assert Fact((), 4, None).span((), 4) == 4


# ---- promises ------------------------------------------------------------------------------------


def _promised(count: int = 64, **promises: Any) -> Fact:
    """What is known of a tile of unknown integers of which something is promised."""
    function = Function("f", [("p", PointerType(int32), 16)])
    pointers = make(create.Splat, loc=None, x=function.params[0].value, shape=(count,))
    loaded = make(memory.Load, loc=None, pointer=pointers.result, volatile=True)
    op = make(hints.Promise, loc=None, x=loaded.result, **promises)
    for each in (pointers, loaded, op):
        function.body.block.append(each)
    return Facts(function).of(op.result)


def test_runs_and_where_they_start_are_as_promised() -> None:
    axis = _promised(multiple=(16,), contiguous=(16,)).axes[0]
    assert axis == (16, 1, 16)
    assert _promised(contiguous=(64,)).axes[0].contiguity(1) == 64
    assert _promised(constant=(8,)).axes[0].constancy == 8
    assert _promised(48, contiguous=(48,)).axes[0].group == 64


def test_runs_of_a_number_that_is_no_power_of_two_are_cut() -> None:
    assert _promised(96, multiple=(48,), contiguous=(48,)).axes[0] == (16, 1, 16)
    assert _promised(96, multiple=(64,), contiguous=(12,)).axes[0] == (4, 1, 4)


def _assumed(*make_condition: Any) -> tuple[Facts, Value, Value]:
    """Facts where a condition of the parameter n is assumed under a branch; what n is there."""
    function = Function("f", [("n", int32, 1), ("c", int1, 1)])
    block = function.body.block
    n, condition = (param.value for param in function.params)
    inner = Block([])
    values = [n]
    for cls, fields in make_condition:
        fields = {key: values[v] if isinstance(v, int) and key in "xy" else v for key, v in fields}
        op = make(cls, loc=None, **fields)
        inner.append(op)
        values += op.results
    inner.append(make(hints.Assume, loc=None, condition=values[-1]))
    for target in (inner, block):
        target.append(make(create.Splat, loc=None, x=n, shape=(4,)))
        if target is inner:
            inner.append(make(control.Yield, loc=None, values=()))
            other = Block([])
            other.append(make(control.Yield, loc=None, values=()))
            regions = {"then": Region(inner), "otherwise": Region(other)}
            block.append(make(control.If, loc=None, condition=condition, **regions))
    facts = Facts(function)
    return facts, inner.ops[-2].results[0], block.ops[-1].results[0]


def constant(value: int) -> Any:
    return create.Constant, [("value", value), ("dtype", int32)]


def binary(cls: type[Op], x: int, y: int) -> Any:
    return cls, [("x", x), ("y", y)]


def test_what_is_assumed_holds_in_its_block_only() -> None:
    wanted: list[tuple[list[Any], tuple[int, Any]]] = [
        ([constant(0), binary(compare.Gt, 0, 1)], (1, (1, 2**31 - 1))),
        ([constant(0), binary(compare.Lt, 1, 0)], (1, (1, 2**31 - 1))),
        ([constant(7), binary(compare.Le, 0, 1)], (1, (-(2**31), 7))),
        ([constant(24), binary(compare.Eq, 0, 1)], (1, (24, 24))),
        (
            [constant(16), constant(0), binary(arith.Rem, 0, 1), binary(compare.Eq, 3, 2)],
            (16, (-(2**31), 2**31 - 1)),
        ),
        (
            [
                *(constant(3), constant(9)),
                *(binary(compare.Ge, 0, 1), binary(compare.Lt, 0, 2)),
                binary(logic.And, 3, 4),
            ],
            (1, (3, 8)),
        ),
    ]
    for condition, (divisor, span) in wanted:
        facts, inside, after = _assumed(*condition)
        assert (facts.of(inside).divisor, facts.of(inside).range) == (divisor, span)
        assert facts.of(after).range == (-(2**31), 2**31 - 1)
        assert facts.of(after).divisor == 1
