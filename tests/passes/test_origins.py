from __future__ import annotations

import pytest

from tritium.ir import parse_function
from tritium.passes.origins import stores_by_address, written_parameters

HEAD = "func @f(%a: *i32, %b: *i32, %c: *i32, %n: i32, %big: i64) ({\n"
CONSTANTS = """
  %zero = create.constant {value = 0, dtype = i32} : i32
  %one = create.constant {value = 1, dtype = i32} : i32
"""
PROGRAMS = {
    "nothing": ("%x = memory.load %a, _, _ : i32", set()),
    "straight": ("%p = memory.offset %b, %n : *i32\nmemory.store %p, %n, _", {1}),
    "a value that was read": ("%x = memory.load %a, _, _ : i32\nmemory.store %b, %x, _", {1}),
    "an offset that was read": (
        "%x = memory.load %a, _, _ : i32\n%p = memory.offset %b, %x : *i32\nmemory.store %p, %n, _",
        {1},
    ),
    "a tile": (
        (
            "%t = create.splat %c {shape = (4,)} : tile<4x*i32>\n"
            "%v = create.splat %n {shape = (4,)} : tile<4xi32>\nmemory.store %t, %v, _"
        ),
        {2},
    ),
    "through an integer": (
        (
            "%i = cast.bitcast %a {dtype = i64} : i64\n%j = arith.add %i, %big : i64\n"
            "%p = cast.bitcast %j {dtype = *i32} : *i32\nmemory.store %p, %n, _"
        ),
        {0},
    ),
    "chosen": (
        (
            "%y = compare.lt %n, %one : i1\n%p = control.if %y "
            "({ control.yield [%a] }, { control.yield [%b] }) : *i32\nmemory.store %p, %n, _"
        ),
        {0, 1},
    ),
    "carried and swapped": (
        (
            "%r:2 = control.for %zero, %n, %one, [%a, %b] ({ ^(%iv: i32, %p: *i32, %q: *i32):\n"
            "memory.store %p, %iv, _\ncontrol.yield [%q, %p]\n}) : (*i32, *i32)"
        ),
        {0, 1},
    ),
    "a loop's result": (
        (
            "%r = control.for %zero, %n, %one, [%c] ({ ^(%iv: i32, %p: *i32):\n"
            "%q = memory.offset %p, %iv : *i32\ncontrol.yield [%q]\n}) : *i32\n"
            "memory.store %r, %n, _"
        ),
        {2},
    ),
    "a waiting loop": (
        (
            "%r = control.while [%b] ({ ^(%p: *i32):\n%x = memory.load %p, _, _ : i32\n"
            "%y = compare.lt %x, %n : i1\ncontrol.yield [%y]\n}, { ^(%s: *i32):\n"
            "memory.store %s, %n, _\n%q = memory.offset %s, %one : *i32\ncontrol.yield [%q]\n"
            "}) : *i32"
        ),
        {1},
    ),
}


@pytest.mark.parametrize("body, expected", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_written_parameters(body: str, expected: set[int]) -> None:
    function = parse_function(f"{HEAD}{CONSTANTS}{body}\n  control.return\n}})")
    assert written_parameters(function) == expected


LOADED = "%t = cast.bitcast %a {dtype = **i32} : **i32\n%q = memory.load %t, _, _ : *i32\n"


def test_stores_by_address() -> None:
    def answer(body: str) -> bool:
        return stores_by_address(parse_function(f"{HEAD}{CONSTANTS}{body}\n  control.return\n}})"))

    found = {name for name, (body, _) in PROGRAMS.items() if answer(body)}
    assert found == {"through an integer"}
    assert answer(f"{LOADED}%p = memory.offset %q, %n : *i32\nmemory.store %p, %n, _")
    assert not answer(f"{LOADED}%x = memory.load %q, _, _ : i32\nmemory.store %b, %x, _")
