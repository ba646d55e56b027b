"""Broken data structures, which no text can say; ``verifier/verifier.tir`` has the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tritium.diagnostics import CompilationError, Loc
from tritium.ir import (
    Block,
    ConcreteValue,
    Function,
    Op,
    Region,
    Value,
    attribute,
    operand,
    parse_function,
    verify,
)
from tritium.ir.dtypes import int32

TEXT = """
func @f(%p: *i32, %n: i32, %c: i1) ({
  %x = arith.add %n, %n : i32
  control.if %c ({
    memory.store %p, %x, _
    control.yield []
  }, {
    control.yield []
  })
  control.return
})
"""


def unknown_user(function: Function) -> None:
    stray = type(function.body.ops[0])(x=function.body.args[1], y=function.body.args[1])
    assert stray.operands


def stale_use(function: Function) -> None:
    function.body.args[0].add_use(function.body.ops[0], 0)


def missing_use(function: Function) -> None:
    function.body.args[1].remove_use(function.body.ops[0], 1)


def foreign_parent(function: Function) -> None:
    function.body.ops[0].parent = Block()


def op_twice(function: Function) -> None:
    function.body.block.insert(0, function.body.ops[0])


def foreign_result(function: Function) -> None:
    function.body.ops[0].results[0].owner = function.body.block


def foreign_region(function: Function) -> None:
    function.body.ops[1].regions[0].parent = function.body.ops[0]


def foreign_block(function: Function) -> None:
    function.body.ops[1].regions[1].block.region = None


def no_region(function: Function) -> None:
    function.body.ops[1].then = None  # type: ignore[attr-defined]


def foreign_argument(function: Function) -> None:
    function.body.args[2].owner = None


def other_parameters(function: Function) -> None:
    function.params.pop()


def owned_body(function: Function) -> None:
    function.body.parent = function.body.ops[0]


def wrong_bounds(function: Function) -> None:
    function.body.ops[0].bounds = (0, 2, 2)


def short_bounds(function: Function) -> None:
    function.body.ops[0].bounds = (0, 1)


def list_attribute(function: Function) -> None:
    function.body.ops[1].regions[0].ops[0].cache = ["cg"]  # type: ignore[attr-defined]


def eager_operand(function: Function) -> None:
    function.body.ops[0].set_operand(0, ConcreteValue(int32, np.int32(1)))


def no_operand(function: Function) -> None:
    function.body.ops[0].operands[0] = None  # type: ignore[call-overload]


def value_of_nowhere(function: Function) -> None:
    function.body.ops[0].set_operand(0, Value(int32, name="lost"))


def unregistered(function: Function) -> None:
    class Strange(Op):
        """Not registered."""

        mnemonic = "arith.add"
        x: Value = operand()
        extra: int = attribute(0)

        def infer(self) -> None:
            return None

    function.body.block.insert(0, Strange(x=function.body.args[1]))


BREAKS: dict[Callable[[Function], None], str] = {
    unknown_user: "among the uses of %n is one by arith.add",
    stale_use: "among the uses of %p is one by arith.add",
    missing_use: "arith.add is missing among the uses of %n",
    foreign_parent: "arith.add does not know its block",
    op_twice: "arith.add stands in two places",
    foreign_result: "its result %x does not know it",
    foreign_region: "its region then does not know it",
    foreign_block: "a block does not know its region",
    no_region: "then is no region",
    foreign_argument: "the argument %c does not know its block",
    other_parameters: "the parameters are not the arguments of the body",
    owned_body: "the body of a function belongs to no operation",
    wrong_bounds: "arith.add has 2 operands x",
    short_bounds: "arith.add has 2 operands, divided at (0, 1)",
    list_attribute: "cache can't be ['cg']",
    eager_operand: "operand 0 is a value of eager mode",
    no_operand: "operand 0 is no value",
    value_of_nowhere: "arith.add reads %lost, which is not defined before it",
    unregistered: "Strange is not the operation arith.add",
}


def test_valid() -> None:
    verify(parse_function(TEXT))


@pytest.mark.parametrize("harm", BREAKS, ids=lambda harm: harm.__name__)
def test_broken(harm: Callable[[Function], None]) -> None:
    function = parse_function(TEXT)
    harm(function)
    with pytest.raises(CompilationError) as caught:
        verify(function)
    assert caught.value.code == "E0301"
    assert BREAKS[harm] in caught.value.message


def test_the_place_is_that_of_the_innermost_operation() -> None:
    function = parse_function(TEXT, file="k.tir")
    function.body.ops[0].results[0].type = function.body.args[0].type
    with pytest.raises(CompilationError) as caught:
        verify(function)
    assert caught.value.loc == Loc("k.tir", 3, 2, 3, 4)


def test_detached_region_is_found() -> None:
    function = parse_function(TEXT)
    function.body.ops[1].otherwise = Region()  # type: ignore[attr-defined]
    with pytest.raises(CompilationError, match="its region otherwise does not know it"):
        verify(function)
