"""The rewritten copy: its lines are the user's, its constants are the compiler's."""

from __future__ import annotations

import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.interp import lines

from tritium.diagnostics import TritiumError
from tritium.interp.eager import EagerTracer
from tritium.interp.frames import EXECUTION, current_loc, is_kernel_code
from tritium.interp.grid import Fiber
from tritium.interp.machine import Machine
from tritium.interp.memory import Memory
from tritium.interp.rewrite import rewritten
from tritium.ir.dtypes import float32, int1, int32
from tritium.ir.tracer import tracing
from tritium.ops import families  # noqa: F401 - the operators of tiles
from tritium.ops.constants import to_tile
from tritium.ops.constexpr import constexpr
from tritium.ops.create import arange
from tritium.ops.tile import Tile
from tritium.ops.tuples import TileTuple


@pytest.fixture(autouse=True)
def eager() -> Iterator[EagerTracer]:
    machine = Machine((0, 0, 0), (1, 1, 1), Memory(), Fiber(lambda: None))
    tracer = EagerTracer(machine)
    with tracing(tracer):
        yield tracer


def unwrapped(function: Any) -> Any:
    return inspect.unwrap(function)


def events(function: Callable[..., Any], *args: Any) -> list[tuple[str, int, str]]:
    """What a tracing tool sees of the frames of ``function``'s file."""
    seen: list[tuple[str, int, str]] = []

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != lines.__file__:
            return None
        if frame.f_code.co_name.startswith(("__", "outer")):
            return None
        seen.append((event, frame.f_lineno, frame.f_code.co_name))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*args)
    finally:
        sys.settrace(before)
    return seen


ARGS = [(1, 2), (0, 9), (2, 0), (3, 3)]


def name_of(value: Any) -> str | None:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize("function", lines.EXACT, ids=name_of)
@pytest.mark.parametrize("args", ARGS)
def test_a_tracing_tool_sees_the_users_lines(
    function: Callable[..., Any], args: tuple[int, int]
) -> None:
    original = unwrapped(function)
    assert events(rewritten(original), *args) == events(original, *args)


@pytest.mark.parametrize("args", [(1, 2), (3, 3)])
def test_nested_functions_too(args: tuple[int, int]) -> None:
    assert events(rewritten(lines.python), *args) == events(lines.python, *args)


@pytest.mark.parametrize("args", ARGS)
def test_conditions_over_several_lines_stop_on_their_own_lines(args: tuple[int, int]) -> None:
    """Python jumps about in them, differently in every version; the lines are the same."""
    assert set(events(rewritten(lines.long_conditions), *args)) == set(
        events(lines.long_conditions, *args)
    )


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list, TileTuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in value.items()}
    return value.data.item() if isinstance(value, Tile) else value


@pytest.mark.parametrize("function", lines.ALL, ids=name_of)
@pytest.mark.parametrize("args", [(1, 2), (3, 3)])
def test_plain_python_keeps_its_values(function: Callable[..., Any], args: tuple[int, int]) -> None:
    original = unwrapped(function)
    if original is lines.closed:
        # Both count one closure cell up.
        want = original(*args)
        assert plain(rewritten(original)(*args)) == (want + 1 if args == (1, 2) else want)
    else:
        assert plain(rewritten(original)(*args)) == plain(original(*args))


def walk(code: Any) -> Iterator[Any]:
    yield code
    for each in code.co_consts:
        if inspect.iscode(each):
            yield from walk(each)


@pytest.mark.parametrize("function", lines.ALL, ids=name_of)
def test_the_copy_is_named_and_placed_as_the_original(function: Callable[..., Any]) -> None:
    original = unwrapped(function)
    copy = rewritten(original)
    for field in ("co_name", "co_filename", "co_firstlineno", "co_freevars", "co_argcount"):
        assert getattr(copy.__code__, field) == getattr(original.__code__, field)
    names = copy.__code__.co_varnames
    assert tuple(x for x in names if x[: len(EXECUTION)] != EXECUTION) == (
        original.__code__.co_varnames
    )
    assert copy.__globals__ is original.__globals__
    assert copy.__closure__ == original.__closure__
    assert copy.__qualname__ == original.__qualname__
    assert copy.__defaults__ == original.__defaults__
    assert copy.__kwdefaults__ == original.__kwdefaults__
    inner = {code.co_name: code for code in walk(copy.__code__)}
    for code in walk(original.__code__):
        assert inner[code.co_name].co_firstlineno == code.co_firstlineno
        if sys.version_info >= (3, 11):
            assert inner[code.co_name].co_qualname == code.co_qualname
    assert all(map(is_kernel_code, walk(copy.__code__)))
    assert not is_kernel_code(original.__code__)


def test_the_copy_is_made_once() -> None:
    assert rewritten(lines.loops) is rewritten(lines.loops)


def test_without_source_there_is_no_copy() -> None:
    scope: dict[str, Any] = {}
    exec("def lost():\n    return 1\n", scope)
    for function in (scope["lost"], len, lambda: 1):
        with pytest.raises(TritiumError) as caught:
            rewritten(function)
        assert caught.value.code == "E0118"


def from_source(text: str, name: str = "kernel", **names: Any) -> Callable[..., Any]:
    """A rewritten function from text that is registered as a notebook's cell would be."""
    text = textwrap.dedent(text)
    file = f"<cell {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict[str, Any] = dict(names)
    exec(compile(text, file, "exec"), scope)
    return rewritten(scope[name])


def value(tile: Any) -> Any:
    assert isinstance(tile, Tile)
    return tile.data.item()


# ---- numbers -------------------------------------------------------------------------------------


def test_assigned_numbers_are_tiles_and_divide_as_c_does() -> None:
    kernel = from_source("""
        def kernel():
            x = 7
            return x // -2, x % -4, 7 // -2
    """)
    quotient, remainder, python = kernel()
    assert (value(quotient), value(remainder), python) == (-3, 3, -4)
    assert quotient.dtype is int32


def test_literals_as_arguments_stay_numbers() -> None:
    seen: list[Any] = []
    kernel = from_source(
        """
        def kernel(n, m=4):
            note(3)
            note(n)
            note(m)
            k = n
            note(k)
        """,
        note=seen.append,
    )
    kernel(2)
    assert seen[:3] == [3, 2, 4]
    assert all(type(each) is int for each in seen[:3])
    assert isinstance(seen[3], Tile)


@pytest.mark.parametrize(
    "line, dtypes",
    [
        ("x = 1", "int32"),
        ("x = True", "int1"),
        ("x = 1.5", "fp32"),
        ("x = 1e-300", "fp64"),
        ("x = 2**31", "uint32"),
        ("x = 2**32", "int64"),
        ("x = -(2**40)", "int64"),
        ("x = 2**63", "uint64"),
        ("x = G", "int32"),
        ("x = y = 1", "int32"),
        ("(x := 1)", "int32"),
        ("x: int = 1", "int32"),
        ("x = 1; x += 1", "int32"),
        ("x = 1; x += 1.5", "fp32"),
        ("x = (1, (2.0, True))", "int32 fp32 int1"),
        ("x = [1, 2.0]", "int32 fp32"),
        ("x = T", "int32 fp32"),
        ("x, y = 1, 2.0", "int32"),
        ("x, *y = T", "int32"),
        ("for x in range(3): pass", "int32"),
        ("for x in range(2**40, 2**40 + 1): pass", "int64"),
    ],
)
def test_types_of_assigned_constants(line: str, dtypes: str) -> None:
    text = f"def kernel():\n    {line}\n    return x\n"
    kernel = from_source(text, G=constexpr(5), T=(1, 2.5))

    def flat(found: Any) -> list[Any]:
        if isinstance(found, (tuple, list, TileTuple)):
            return [each for part in found for each in flat(part)]
        return [found]

    assert " ".join(str(each.dtype) for each in flat(kernel())) == dtypes


@pytest.mark.parametrize(
    "line",
    ["x = None", "x = 'a'", "x = (None, 'b')", "x = {}", "x = len", "x = float32", "x = b''"],
)
def test_other_constants_stay(line: str) -> None:
    scope = {"float32": float32}
    kernel = from_source(f"def kernel():\n    {line}\n    return x\n", **scope)
    plain: dict[str, Any] = dict(scope)
    exec(line, plain)
    assert kernel() == plain["x"]


def test_the_annotation_constexpr_keeps_a_number() -> None:
    kernel = from_source(
        """
        def kernel():
            n: "tl.constexpr" = G * 2
            m: tl.constexpr = 3
            k: tl.constexpr
            if n > 7:
                k = 1
            else:
                k = 2
            return n, m, k
        """,
        G=constexpr(4),
    )
    assert kernel() == (8, 3, 1)
    assert all(type(each) is int for each in kernel())


def test_named_tuples_keep_their_kind() -> None:
    kernel = from_source("""
        from collections import namedtuple
        Pair = namedtuple("Pair", "left right")

        def kernel():
            pair = Pair(1, None)
            return pair
    """)
    pair = kernel()
    assert type(pair).__name__ == "Pair"
    assert value(pair.left) == 1
    assert pair.right is None


# ---- and, or, not, comparisons, choices ----------------------------------------------------------


def test_and_or_not_of_tiles_are_elementwise() -> None:
    kernel = from_source("""
        def kernel(a, b):
            return a and b, a or b, not a, a and not b or False
    """)
    a, b = arange(0, 4) < 2, (arange(0, 4) & 1) == 0
    both, either, inverse, mixed = (tile.data.tolist() for tile in kernel(a, b))
    assert both == [True, False, False, False]
    assert either == [True, True, True, False]
    assert inverse == [False, False, True, True]
    assert mixed == [False, True, False, False]


@pytest.mark.parametrize("expression", ["n and m", "n or m", "not n"])
def test_they_refuse_integers(expression: str) -> None:
    kernel = from_source(f"def kernel(n, m):\n    return {expression}\n")
    with pytest.raises(TritiumError):
        kernel(to_tile(1), to_tile(2))


def test_constants_decide_at_once() -> None:
    kernel = from_source("""
        def kernel(p):
            return (
                p is not None and p.missing,
                p is None or p.missing,
                None and 1 / 0,
                0 or () or "last",
                1 and "last",
            )
    """)
    assert kernel(None) == (False, True, None, "last", "last")


def test_run_time_operands_are_all_computed() -> None:
    seen: list[str] = []

    def note(text: str, made: Any) -> Any:
        seen.append(text)
        return made

    kernel = from_source(
        "def kernel(a, b):\n    return note('a', a) and note('b', b) or note('c', a)\n", note=note
    )
    no, yes = to_tile(False), to_tile(True)
    assert value(kernel(no, yes)) is False
    assert seen == ["a", "b", "c"]


def test_chained_comparisons_compute_each_operand_once() -> None:
    seen: list[int] = []

    def note(made: Any) -> Any:
        seen.append(1)
        return made

    kernel = from_source("def kernel(x):\n    return 0 <= note(x) < 3 != x\n", note=note)
    got = kernel(arange(0, 5))
    assert got.dtype is int1
    assert got.data.tolist() == [0 <= x < 3 != x for x in range(5)]
    assert seen == [1]


def test_chained_comparisons_of_numbers_are_pythons() -> None:
    kernel = from_source("""
        def kernel(a, b):
            return a < b < 1 / 0, a is b is None, a in (1, 2) in ([True],), 1 < a < b
    """)
    assert kernel(2, 1) == (False, False, False, False)
    with pytest.raises(ZeroDivisionError):
        kernel(1, 2)


def test_a_choice_at_run_time_makes_tiles() -> None:
    kernel = from_source("def kernel(c, x):\n    return 1 if c else x\n")
    assert value(kernel(to_tile(True), None)) == 1
    assert kernel(to_tile(False), "other") == "other"
    assert kernel(True, 2) == 1
    assert kernel(False, 2) == 2


def test_only_the_taken_arm_is_computed() -> None:
    kernel = from_source("def kernel(c):\n    return 1 / 0 if c else (2 if not c else 1 / 0)\n")
    assert value(kernel(to_tile(False))) == 2
    with pytest.raises(ZeroDivisionError):
        kernel(to_tile(True))


def test_a_condition_needs_one_element() -> None:
    kernel = from_source("def kernel(c):\n    if c:\n        return 1\n    return 2\n")
    assert kernel(to_tile(3)) == 1
    assert kernel(arange(0, 1)) == 2
    with pytest.raises(TritiumError) as caught:
        kernel(arange(0, 2))
    assert caught.value.code == "E0403"


def test_assert_looks_at_every_element() -> None:
    kernel = from_source("def kernel(c):\n    assert c, 'no'\n    return 1\n")
    assert kernel(arange(1, 3)) == 1
    with pytest.raises(AssertionError, match="no"):
        kernel(arange(0, 2))


# ---- builtins and attributes ---------------------------------------------------------------------


def test_min_and_max() -> None:
    kernel = from_source("""
        def kernel(x, y):
            return min(x, 2), max(x, y, 1), min((x, y)), max(3, 4), min([5, 4], key=lambda v: -v)
    """)
    x, y = to_tile(3), to_tile(-1)
    got = kernel(x, y)
    assert [value(tile) for tile in got[:3]] == [2, 3, -1]
    assert got[3:] == (4, 5)


def test_shadowed_builtins_are_the_users() -> None:
    kernel = from_source("""
        def kernel():
            return range(5), min(1)
        def range(n):
            return "mine"
        min = lambda n: n
    """)
    assert kernel() == ("mine", 1)


def test_range_counts_as_the_compiler_does() -> None:
    kernel = from_source("def kernel(a, b, s):\n    return [i for i in range(a, b, s)]\n")
    assert [value(i) for i in kernel(5, -2, -3)] == [5, 2, -1]
    byte = to_tile(250).to(int32)
    assert [value(i) for i in kernel(byte, 255, 2)] == [250, 252, 254]
    with pytest.raises(TritiumError) as caught:
        kernel(0, to_tile(2.0), 1)
    assert caught.value.code == "E0405"


def test_isinstance_sees_through_constants() -> None:
    kernel = from_source(
        """
        def kernel(x):
            return (isinstance(G, int), isinstance(x, int), isinstance(x, Tile),
                    isinstance(G, constexpr), isinstance([], list))
        """,
        G=constexpr(1),
        Tile=Tile,
        constexpr=constexpr,
    )
    assert kernel(to_tile(1)) == (True, False, True, True, True)


def test_a_known_number_has_a_tiles_methods() -> None:
    kernel = from_source(
        "def kernel(n):\n    return n.to(float32), n.dtype, G.value, n.real, G.bit_length()\n",
        float32=float32,
        G=constexpr(6),
    )
    tile, dtype, held, real, bits = kernel(1)
    assert tile.dtype is float32
    assert value(tile) == 1.0
    assert dtype is int32
    assert (held, real, bits) == (6, 1, 3)


def test_indexing_and_formatting_a_scalar() -> None:
    kernel = from_source("def kernel(p):\n    return p[0], f'{p} {p:03d}', int(p), float(p)\n")
    same, text, number, real = kernel(to_tile(5))
    assert value(same) == 5
    assert text == "5 005"
    assert (number, real) == (5, 5.0)
    assert type(number) is int


# ---- where code is -------------------------------------------------------------------------------


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows lines only")
@pytest.mark.parametrize(
    "line, underlined",
    [
        ("x = here()", "here()"),
        ("é = 'ü', here() and 1", "here()"),
        ("x = a < here() < 3", "here()"),
        ("x = 1 if here() else 2", "here()"),
        ("x = not [here() for _ in range(1)]", "here()"),
        ("x = min(here(), 1)", "here()"),
        ("a += here()", "here()"),
    ],
)
def test_the_place_is_the_call(line: str, underlined: str) -> None:
    places: list[Any] = []

    def here() -> int:
        places.append(current_loc())
        return 1

    from_source(f"def kernel(a):\n    {line}\n", here=here)(1)
    loc = places[0]
    text = "    " + line
    assert text[loc.col : loc.end_col] == underlined
    assert (loc.line, loc.end_line, loc.function) == (2, 2, loc.function)


def test_python_310_underlines_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[Any] = []
    kernel = from_source(
        "def kernel():\n    x = here()\n", here=lambda: places.append(current_loc())
    )
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    kernel()
    (loc,) = places
    assert (loc.line, loc.col, loc.end_col) == (2, 4, 14)


def test_outside_of_kernels_there_is_no_place() -> None:
    assert current_loc() is None


def test_values_survive_numpy_scalars() -> None:
    kernel = from_source("def kernel(x):\n    y = x\n    return y\n")
    got = kernel(np.float64(0.1))
    assert got.dtype is float32
