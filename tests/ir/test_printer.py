from __future__ import annotations

import numpy as np
import pytest

from tritium.diagnostics import InternalError, Loc
from tritium.ir import (
    Block,
    ConcreteValue,
    Function,
    Op,
    Region,
    Value,
    attribute_text,
    function_text,
    loc_text,
    op_text,
    type_text,
)
from tritium.ir.dtypes import float32, int1, int32
from tritium.ir.types import PointerType, TileType
from tritium.ops.arith import Add, Neg
from tritium.ops.control import For, If, Return, Yield
from tritium.ops.create import Arange, Constant
from tritium.ops.memory import Load, Store
from tritium.ops.reduce import Reduce


def put(block: Block, op: Op, name: str = "") -> Op:
    op.make_results(name)
    block.append(op)
    return op


def test_the_whole_form() -> None:
    function = Function("kernel", [("p", PointerType(int32), 16), ("n", int32, 1)])
    block = function.body.block
    p, n = function.body.args
    body = Block([int32, int32, PointerType(int32)], ["i", "sum", ""])
    loaded = put(body, Load(pointer=body.args[2], cache="cg"), "x").result
    total = put(body, Add(x=body.args[1], y=loaded), "sum").result
    put(body, Yield(values=(total, body.args[2])))
    loop = For(lower=n, upper=n, step=n, init=(n, p), num_stages=3, body=Region(body))
    first, second = put(block, loop).results
    put(block, Store(pointer=second, value=first))
    put(block, Return())
    assert function_text(function) == (
        "func @kernel(%p: *i32 {divisibility = 16}, %n: i32) ({\n"
        "  %0:2 = control.for %n, %n, %n, [%n, %p] {num_stages = 3}"
        " ({ ^(%i: i32, %sum: i32, %1: *i32):\n"
        '    %x = memory.load %1, _, _ {cache = "cg"} : i32\n'
        "    %sum_1 = arith.add %sum, %x : i32\n"
        "    control.yield [%sum_1, %1]\n"
        "  }) : (i32, *i32)\n"
        "  memory.store %0#1, %0#0, _\n"
        "  control.return\n"
        "})\n"
    )
    assert repr(function) == function_text(function)


def test_several_regions() -> None:
    regions = []
    for _ in range(2):
        regions.append(Region())
        put(regions[-1].block, Yield(values=()))
    branch = If(condition=Value(int1, name="c"), then=regions[0], otherwise=regions[1])
    branch.make_results()
    assert op_text(branch) == ("control.if %c ({\n  control.yield []\n}, {\n  control.yield []\n})")


@pytest.mark.parametrize(
    ("hints", "names"),
    [
        (("x", "x", "x"), ("x", "x_1", "x_2")),
        (("x_1", "x", "x"), ("x_1", "x", "x_2")),
        (("", "x", ""), ("0", "x", "1")),
        (("9", "a b", "größe"), ("0", "a_b", "größe")),
    ],
)
def test_names_are_unique(hints: tuple[str, ...], names: tuple[str, ...]) -> None:
    function = Function("f", [])
    for hint in hints:
        put(function.body.block, Arange(start=0, end=1), hint)
    lines = function_text(function).splitlines()[1:-1]
    assert tuple(line.split()[0] for line in lines) == tuple(f"%{name}" for name in names)


def test_an_operation_of_eager_mode() -> None:
    given = ConcreteValue(int32, np.int32(3), "x")
    made = Neg(x=given)
    assert repr(made) == "arith.neg %x"
    tile = ConcreteValue(TileType(int32, (4,)), np.zeros(4, np.int32))

    def add(*_: object) -> None: ...

    assert repr(Reduce(inputs=(tile,), axis=0, combine=add)) == (
        "reduce.reduce [%0] {axis = 0} ({add})"
    )


def test_an_operation_alone_names_what_it_reads() -> None:
    first = Arange(start=0, end=4)
    first.make_results("x")
    total = Add(x=first.result, y=first.result)
    total.make_results("x")
    assert repr(total) == "%x_1 = arith.add %x, %x : tile<4xi32>"


def test_locations() -> None:
    inner = Loc("a.py", 3, 4, 3, 9, "f", Loc('b "c".py', 7))
    assert loc_text(inner) == ('loc("a.py":3:5 to 3:10 in "f" at loc("b \\"c\\".py":7:1))')
    function = Function("f", [], loc=Loc("a.py", 1))
    put(function.body.block, Constant(value=1, dtype=int32, loc=inner))
    put(function.body.block, Return())
    assert "loc" not in function_text(function)
    shown = function_text(function, locations=True).splitlines()
    assert shown[1].endswith(f": i32 {loc_text(inner)}")
    assert shown[2:] == ["  control.return", '}) loc("a.py":1:1)']


def test_types() -> None:
    pointer = PointerType(PointerType(float32, const=True), "shared")
    assert type_text(pointer) == "*<shared>*kfp32"
    assert type_text(PointerType(float32, 3, const=True)) == "*k<3>fp32"
    assert type_text(TileType(pointer, (4, 8))) == "tile<4x8x*<shared>*kfp32>"


@pytest.mark.parametrize("value", [[1], {1}, 1j, object(), np.int64(3), (1, [2])])
def test_other_values_are_no_attributes(value: object) -> None:
    with pytest.raises(InternalError, match="can't be an attribute"):
        attribute_text(value)
