"""Sums of steps that leave 32 bits: the docstring and random programs have the usual ones."""

from __future__ import annotations

import pytest
from tests.passes.meaning import check_meaning

from tritium.ir import parse_function

# Each iteration adds `step` to a carried pointer, and takes the sum of all steps off again where
# it stores: only an exact sum, each step extended by its own sign, ends inside of the buffer.
TEXT = """
func @f(%p: *i32, %n: i32) ({{
  %zero = create.constant {{value = 0, dtype = i64}} : i64
  %one = create.constant {{value = 1, dtype = i64}} : i64
  %five = create.constant {{value = 5, dtype = i64}} : i64
  %step = create.constant {{value = {value}, dtype = {dtype}}} : {dtype}
  %wide = create.constant {{value = {value}, dtype = i64}} : i64
  %ps = create.splat %p {{shape = (8,)}} : tile<8x*i32>
  %lanes = create.arange {{start = 0, end = 8}} : tile<8xi32>
  %start = memory.offset %ps, %lanes : tile<8x*i32>
  %r:2 = control.for %zero, %five, %one, [%start, %p]
      ({{ ^(%i: i64, %at: tile<8x*i32>, %one_at: *i32):
    %sum = arith.mul %i, %wide : i64
    %back = arith.sub %i, %sum : i64
    %backs = create.splat %back {{shape = (8,)}} : tile<8xi64>
    %here = memory.offset %at, %backs : tile<8x*i32>
    %old = memory.load %here, _, _ : tile<8xi32>
    %more = arith.add %old, %lanes : tile<8xi32>
    memory.store %here, %more, _
    %steps = create.splat %step {{shape = (8,)}} : tile<8x{dtype}>
    %next = memory.offset %at, %steps : tile<8x*i32>
    %there = memory.offset %one_at, %back : *i32
    memory.store %there, %n, _
    %one_next = memory.offset %one_at, %step : *i32
    control.yield [%next, %one_next]
  }}) : (tile<8x*i32>, *i32)
  %all = arith.mul %five, %wide : i64
  %last = arith.sub %one, %all : i64
  %lasts = create.splat %last {{shape = (8,)}} : tile<8xi64>
  %end = memory.offset %r#0, %lasts : tile<8x*i32>
  memory.store %end, %lanes, _
  control.return
}})
"""


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (3, "u8"),
        (255, "u8"),
        (-128, "i8"),
        ((1 << 32) - 1, "u32"),
        (-(1 << 31), "i32"),
        ((1 << 62) + 1, "i64"),
        (-(1 << 63), "i64"),
        (True, "i1"),
    ],
)
@pytest.mark.parametrize("pipeline", ["carried,dce", "canonicalize,cse,carried,hoist,dce"])
def test_steps_are_extended_by_their_own_sign(value: int | bool, dtype: str, pipeline: str) -> None:
    text = TEXT.format(value=str(value).lower(), dtype=dtype)
    text = text.replace("value = true, dtype = i64", "value = 1, dtype = i64")
    function = check_meaning(parse_function(text), pipeline)
    (loop,) = (op for op in function.walk() if op.mnemonic == "control.for")
    assert [str(value.type) for value in loop.results] == ["int64", "int64"][: len(loop.results)]
    assert len(loop.results) == 2
