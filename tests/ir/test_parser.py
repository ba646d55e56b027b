from __future__ import annotations

import math
from typing import Any

import pytest

from tritium.diagnostics import ArgumentValueError, CompilationError, Loc
from tritium.ir import Function, parse_fields, parse_function, verify
from tritium.ir.dtypes import float32, int32
from tritium.ir.types import PointerType, TileType


def read(body: str, params: str = "%n: i32") -> Function:
    return parse_function(f"func @f({params}) ({{\n{body}\n  control.return\n}})\n")


def attribute(text: str) -> Any:
    return read(f"  %x = create.constant {{value = {text}, dtype = fp32}} : fp32").body.ops[0].value  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-17", -17),
        ("340282366920938463463374607431768211456", 1 << 128),
        ("1.0", 1.0),
        ("-0.0", -0.0),
        ("1e-05", 1e-5),
        ("2.5E+3", 2500.0),
        ("0x1.8p+1", 3.0),
        ("-0x1p-1074", -5e-324),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("true", True),
        ("false", False),
        ("none", None),
        ('"a \\"b\\" \\u00e9"', 'a "b" é'),
        ("()", ()),
        ("(1,)", (1,)),
        ("(1, (2.0, none), fp32)", (1, (2.0, None), float32)),
        ("**kfp32", PointerType(PointerType(float32, const=True))),
        ("*<shared>i32", PointerType(int32, "shared")),
        ("tile<2x3x*i32>", TileType(PointerType(int32), (2, 3))),
    ],
)
def test_attributes(text: str, value: object) -> None:
    found = attribute(text)
    assert (type(found), repr(found)) == (type(value), repr(value))


def test_nan() -> None:
    assert math.isnan(attribute("nan"))


def test_values_keep_their_names_and_numbers_are_no_names() -> None:
    function = read("  %sum_1 = arith.add %n, %n : i32\n  %7 = arith.add %sum_1, %n : i32")
    assert [op.results[0].name for op in function.body.ops[:-1]] == ["sum_1", ""]


def test_a_value_may_be_read_before_it_is_made() -> None:
    function = read("  %x = arith.neg %y : i32\n  %y = arith.neg %n : i32")
    first, second, _ = function.body.ops
    assert first.operands == [second.results[0]]
    assert list(second.results[0].uses) == [(first, 0)]


def test_operations_take_their_places_from_the_text() -> None:
    text = "func @f(%n: i32) ({\n  %x = arith.neg %n : i32\n  control.return\n})"
    function = parse_function(text, file="a.tir")
    assert [op.loc for op in function.body.ops] == [
        Loc("a.tir", 2, 2, 2, 4),
        Loc("a.tir", 3, 2, 3, 16),
    ]
    assert [op.loc for op in parse_function(text).body.ops] == [None, None]


def test_a_given_place_wins() -> None:
    text = 'func @f() ({\n  control.return loc("k.py":3:5 to 3:9 in "g" at loc("m.py":8:1))\n})'
    (op,) = parse_function(text, file="a.tir").body.ops
    assert op.loc == Loc("k.py", 3, 4, 3, 8, "g", Loc("m.py", 8))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 0),
        ("function @f() ({})", 1, 4),
        ("func @f(%n) ({})", 1, 10),
        ("func @f() ({\n  control.return\n", 3, 0),
        ("func @f() ({\n  // nothing\n  5\n})", 3, 2),
        ("func @f(%n: i32, %n: i32) ({})", 1, 17),
        ("func @f() ({\n  %x = create.constant {value = 1, dtype = *} : i32\n})", 2, 44),
        ('func @f() ({\n  control.return loc("a.py":x)\n})', 2, 28),
        ('func @f() ({\n  control.return loc(")\n})', 2, 21),
    ],
)
def test_errors_name_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(CompilationError) as caught:
        parse_function(text, file="a.tir")
    loc = caught.value.loc
    assert caught.value.code == "E0302"
    assert loc is not None
    assert (loc.file, loc.line, loc.col) == ("a.tir", line, column)


def test_parameters() -> None:
    text = 'func @"<lambda>"(%a: *fp32 {divisibility = 16}, %b: i32) ({ control.return })'
    function = parse_function(text)
    verify(function)
    assert function.name == "<lambda>"
    assert [(p.name, p.type, p.divisibility) for p in function.params] == [
        ("a", PointerType(float32), 16),
        ("b", int32, 1),
    ]
    assert [p.value for p in function.params] == function.body.args


def test_fields_of_pipelines() -> None:
    assert parse_fields("") == []
    assert parse_fields("a-b{x = 1, y = (2,)}, c,") == [("a-b", {"x": 1, "y": (2,)}), ("c", {})]


@pytest.mark.parametrize("text", ["a b", "a{x}", "a{x = 1", ",", "a{x = 1, x = 2}"])
def test_bad_pipelines(text: str) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        parse_fields(text)
    assert caught.value.code == "E0303"
