"""What a compilation knows of its arguments, and the parameters of what it makes."""

from __future__ import annotations

import enum
import math
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.frontend.kernels import I32, PTR, jit

import tritium.language as tl
from tritium.diagnostics import ArgumentTypeError, TritiumError
from tritium.frontend import (
    ArrayArgument,
    ConstantSpec,
    Parameter,
    PointerSpec,
    ScalarSpec,
    TupleSpec,
    parameters,
    specialize_arg,
    trace,
)
from tritium.ir import verify
from tritium.ops.callable import constexpr_function
from tritium.ops.control import Return

Pair = namedtuple("Pair", ["first", "second"])


class Level(enum.IntEnum):
    ONE = 1
    TWO = 2


@jit
def helper(x):
    return x


@constexpr_function
def known(x):
    return x


PLAIN = Parameter("x")


@pytest.mark.parametrize(
    "value, spec",
    [
        (None, ConstantSpec(None)),
        (True, ScalarSpec(tl.int1)),
        (False, ScalarSpec(tl.int1)),
        (1, ConstantSpec(1)),
        (0, ScalarSpec(tl.int32, True)),
        (3, ScalarSpec(tl.int32)),
        (16, ScalarSpec(tl.int32, True)),
        (-16, ScalarSpec(tl.int32, True)),
        (-1, ScalarSpec(tl.int32)),
        (2**31 - 1, ScalarSpec(tl.int32)),
        (-(2**31), ScalarSpec(tl.int32, True)),
        (2**31, ScalarSpec(tl.int64, True)),
        (2**63 - 1, ScalarSpec(tl.int64)),
        (-(2**63), ScalarSpec(tl.int64, True)),
        (2**63, ScalarSpec(tl.uint64, True)),
        (2**64 - 1, ScalarSpec(tl.uint64)),
        (1.0, ScalarSpec(tl.float32)),
        (math.inf, ScalarSpec(tl.float32)),
        (Level.ONE, ConstantSpec(1)),
        (Level.TWO, ScalarSpec(tl.int32)),
        (tl.constexpr(7), ConstantSpec(7)),
        (helper, ConstantSpec(helper)),
        (known, ConstantSpec(known)),
        (ArrayArgument(tl.float16, 32), PointerSpec(tl.float16, True)),
        (ArrayArgument(tl.float16, 40), PointerSpec(tl.float16)),
        ((), TupleSpec(())),
        (
            (1, 2.0, None),
            TupleSpec((ConstantSpec(1), ScalarSpec(tl.float32), ConstantSpec(None))),
        ),
        (Pair(3, (4,)), TupleSpec((I32, TupleSpec((I32,))), ("first", "second"))),
    ],
)
def test_arguments(value: Any, spec: Any) -> None:
    assert specialize_arg(value, PLAIN) == spec


@pytest.mark.parametrize(
    "value, signature, divisible",
    [
        (1, "constexpr", None),
        (16, "i32", True),
        (3, "i32", False),
        (2**40, "i64", True),
        (2**63, "u64", True),
        (True, "u1", False),
        (1.0, "fp32", False),
        (None, "constexpr", None),
        (ArrayArgument(tl.bfloat16, 0), "*bf16", True),
        (ArrayArgument(tl.int1, 1), "*i1", False),
    ],
)
def test_signatures(value: Any, signature: str, divisible: bool | None) -> None:
    spec = specialize_arg(value, PLAIN)
    assert spec.signature == signature
    assert getattr(spec, "divisible", None) is divisible


def test_signature_of_a_tuple() -> None:
    assert specialize_arg((1, 2.0, None), PLAIN).signature == ("constexpr", "fp32", "constexpr")


@pytest.mark.parametrize(
    "value",
    [
        "text", [1], {1: 2}, 1j, b"b", np.int32(3), np.bool_(True), np.float32(1), object(),
        tl.int32, 2**64, -(2**63) - 1, (1, "text"),
    ],
)  # fmt: skip
def test_arguments_refused(value: Any) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        specialize_arg(value, PLAIN, "my_kernel")
    assert caught.value.code == "E0501"
    assert caught.value.message.startswith("my_kernel: argument x")
    assert caught.value.argument == ("x.1" if isinstance(value, tuple) else "x")


def test_constants_are_compared_by_type() -> None:
    different = [1, True, 1.0, 0.0, -0.0, None, "1", (1,), (1.0,), tl.int32, tl.uint32]
    specs = [ConstantSpec(value) for value in different]
    assert len(set(specs)) == len(different)
    assert ConstantSpec((1, "a")) == ConstantSpec((1, "a"))
    assert ConstantSpec(math.nan) == ConstantSpec(math.nan)


def test_constexpr_parameters_take_anything_hashable() -> None:
    rule = Parameter("x", is_constexpr=True)
    for value in (1, 16, "relu", tl.float16, (1, "a"), helper, np.int32(3), True):
        spec = specialize_arg(value, rule)
        assert spec == ConstantSpec(value)
        assert spec.signature == "constexpr"
    with pytest.raises(ArgumentTypeError, match="hashable"):
        specialize_arg({}, rule)


def test_do_not_specialize() -> None:
    rule = Parameter("x", on_value=False, on_alignment=False)
    assert specialize_arg(1, rule) == ScalarSpec(tl.int32)
    assert specialize_arg(16, rule) == ScalarSpec(tl.int32)
    assert specialize_arg(2**40, rule) == ScalarSpec(tl.int64)
    assert specialize_arg(ArrayArgument(tl.int8, 16), rule) == PointerSpec(tl.int8)
    alignment = Parameter("x", on_alignment=False)
    assert specialize_arg(1, alignment) == ConstantSpec(1)
    assert specialize_arg(16, alignment) == ScalarSpec(tl.int32)


def test_rules_of_parameters() -> None:
    @jit
    def kernel(a, b, c: tl.constexpr, d: "tl.constexpr", e: tl.constexpr = 3): ...  # type: ignore[valid-type]

    rules = parameters(kernel, do_not_specialize=["a"], do_not_specialize_on_alignment=[1])
    assert rules["a"] == Parameter("a", on_value=False, on_alignment=False)
    assert rules["b"] == Parameter("b", on_alignment=False)
    assert all(rules[name].is_constexpr for name in "cde")
    with pytest.raises(TritiumError, match="do_not_specialize"):
        parameters(kernel, do_not_specialize=[2])


def plain_annotations(
    a: tl.int64,  # type: ignore[valid-type]
    b: tl.const,
    c: int,
    d: float,
    e: bool,
    f: tl.pointer_type(tl.float16),  # type: ignore[valid-type]
    g: tl.tensor,
    h: object,
    i: tl.uint8,  # type: ignore[valid-type]
): ...


def text_annotations(
    a: "i64", b: "*fp16", c: "*kfp16", d: "const *fp32", e: "tl.const", f: "tl.int64",
    g: "torch.Tensor", h: "u1", i: "bf16", j: "'*bf16'", k: "tl.float64",
): ...  # fmt: skip


def test_annotations() -> None:
    texts = {name: rule for name, rule in parameters(jit(text_annotations)).items()}
    f16, f32 = tl.pointer_type(tl.float16), tl.pointer_type(tl.float32, const=True)
    fixed = {name: (rule.fixed, rule.is_const) for name, rule in texts.items()}
    assert fixed == {
        "a": (tl.int64, False),
        "b": (f16, False),
        "c": (tl.pointer_type(tl.float16, const=True), True),
        "d": (f32, True),
        "e": (None, True),
        "f": (tl.int64, False),
        "g": (None, False),
        "h": (tl.int1, False),
        "i": (tl.bfloat16, False),
        "j": (tl.pointer_type(tl.bfloat16), False),
        "k": (tl.float64, False),
    }


@pytest.mark.parametrize("postponed", [True, False])
def test_annotation_objects_mean_what_their_text_means(postponed: bool) -> None:
    function = plain_annotations
    if not postponed:
        annotations = {name: eval(text) for name, text in function.__annotations__.items()}
        function = lambda a, b, c, d, e, f, g, h, i: None  # noqa: E731
        function.__annotations__ = annotations
    rules = parameters(jit(function))
    expected = {
        "a": tl.int64, "b": None, "c": tl.int32, "d": tl.float32, "e": tl.int1, "g": None,
        "h": None, "i": tl.uint8,
    }  # fmt: skip
    assert {name: rules[name].fixed for name in expected} == expected
    assert [name for name, rule in rules.items() if rule.is_const] == ["b"]
    if not postponed:
        assert rules["f"].fixed is tl.pointer_type(tl.float16)


def test_annotated_arguments() -> None:
    def spec(value: Any, fixed: Any, const: bool = False) -> Any:
        return specialize_arg(value, Parameter("x", fixed=fixed, is_const=const))

    assert spec(1, tl.int64) == ScalarSpec(tl.int64)
    assert spec(16, tl.int64) == ScalarSpec(tl.int64, True)
    assert spec(3, tl.float16) == ScalarSpec(tl.float16)
    assert spec(1.5, tl.float64) == ScalarSpec(tl.float64)
    assert spec(True, tl.int1) == ScalarSpec(tl.int1)
    assert spec(None, tl.int32) == ConstantSpec(None)
    array = ArrayArgument(tl.float32, 16)
    assert spec(array, tl.pointer_type(tl.int8)) == PointerSpec(tl.int8, True)
    assert spec(array, None, True) == PointerSpec(tl.float32, True, True)
    assert spec(array, None, True).signature == "*kfp32"
    for value, fixed in ((1.5, tl.int32), (300, tl.uint8), (-1, tl.uint64), (array, tl.int32)):
        with pytest.raises(ArgumentTypeError):
            spec(value, fixed)
    with pytest.raises(ArgumentTypeError):
        spec(3, tl.pointer_type(tl.int8))


# ---- the function that is made -----------------------------------------------------------------


def test_parameters_are_the_run_time_ones() -> None:
    @jit
    def kernel(p, n, one, nothing, flag, t, BLOCK: tl.constexpr, x=2.5, m=5, k=1):
        if nothing is None:
            tl.store(p + t[1][1] + one + k, n + BLOCK + m + t.a)

    specs = {
        "p": PointerSpec(tl.int32, True, False),
        "n": ScalarSpec(tl.int32, True),
        "one": ConstantSpec(1),
        "nothing": ConstantSpec(None),
        "flag": ScalarSpec(tl.int1),
        "t": TupleSpec(
            (I32, TupleSpec((ConstantSpec(None), I32)), ConstantSpec(1)), ("a", "b", "c")
        ),
        "BLOCK": ConstantSpec(8),
    }
    result = trace(kernel, specs)
    verify(result.function)
    assert [(p.name, str(p.type), p.divisibility) for p in result.function.params] == [
        ("p", "pointer<int32>", 16),
        ("n", "int32", 16),
        ("flag", "int1", 1),
        ("t.0", "int32", 1),
        ("t.1.1", "int32", 1),
        ("x", "fp32", 1),
        ("m", "int32", 1),
    ]
    assert result.constants == {
        "one": 1, "nothing": None, "t.1.0": None, "t.2": 1, "BLOCK": 8, "k": 1,
    }  # fmt: skip
    assert result.function.name == "kernel"
    assert result.function.loc is not None
    assert result.function.loc.line == kernel.fn.__code__.co_firstlineno + 1
    assert isinstance(result.function.body.ops[-1], Return)


def test_missing_specs() -> None:
    @jit
    def kernel(p, n): ...

    with pytest.raises(ArgumentTypeError) as caught:
        trace(kernel, {"p": PTR})
    assert caught.value.code == "E0502"


def test_pointers_to_const_are_not_written() -> None:
    @jit
    def kernel(p):
        tl.store(p, 1)

    with pytest.raises(TritiumError) as caught:
        trace(kernel, {"p": PointerSpec(tl.int32, const=True)})
    assert caught.value.code == "E0605"


def test_variable_arguments_of_a_kernel() -> None:
    @jit
    def kernel(p, *rest):
        tl.store(p, len(rest) + rest[0])

    result = trace(kernel, {"p": PTR, "rest": TupleSpec((I32, I32))})
    assert [p.name for p in result.function.params] == ["p", "rest.0", "rest.1"]
    assert trace(jit(empty), {"p": PTR}).function.params[0].name == "p"


def empty(p, *rest):
    tl.static_assert(len(rest) == 0)


def test_the_recursion_limit_is_restored() -> None:
    before = sys.getrecursionlimit()
    trace(jit(empty), {"p": PTR})
    assert sys.getrecursionlimit() == before


@jit
def counted(x, N: tl.constexpr):
    if N == 0:
        return x
    return counted(x + 1, N - 1)


def test_threads_compile_side_by_side() -> None:
    @jit
    def kernel(out, n, N: tl.constexpr):
        tl.store(out, counted(n, N))

    def work(depth: int) -> str:
        specs = {"out": PTR, "n": I32, "N": ConstantSpec(depth)}
        return str(trace(kernel, specs).function)

    depths = [90, 5] * 6
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(work, depths))
    assert texts == [work(depth) for depth in depths]
