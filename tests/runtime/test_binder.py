"""Binding and specialisation, row by row of Triton's rules."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.diagnostics import TritiumError
from tritium.frontend.specialize import ConstantSpec, PointerSpec, ScalarSpec, TupleSpec
from tritium.ir import dtypes
from tritium.runtime.binder import Bound, resolve_grid
from tritium.runtime.options import DEFAULTS


def bind(
    function: Callable[..., Any], *args: Any, jit: Any = tritium.jit, **keywords: Any
) -> Bound:
    return jit(function).binder.bind(args, keywords)


def one(x):
    pass


def three(a, b=2, *, c=None):
    pass


def variadic(a, *rest):
    pass


def with_constants(x, BLOCK: tl.constexpr, FLAG: tl.constexpr = False):
    pass


def spec(value: Any, **options: Any) -> Any:
    return bind(one, value, jit=tritium.jit(**options)).specs["x"]


def refusal(*args: Any, **keywords: Any) -> TritiumError:
    with pytest.raises(TritiumError) as caught:
        bind(*args, **keywords)
    return caught.value


# ---- values --------------------------------------------------------------------------------------


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


SPECS = {
    "None": (None, ConstantSpec(None)),
    "True": (True, ScalarSpec(dtypes.int1)),
    "False": (False, ScalarSpec(dtypes.int1)),
    "1": (1, ConstantSpec(1)),
    "0": (0, ScalarSpec(dtypes.int32, True)),
    "3": (3, ScalarSpec(dtypes.int32)),
    "16": (16, ScalarSpec(dtypes.int32, True)),
    "-32": (-32, ScalarSpec(dtypes.int32, True)),
    "2**31-1": (2**31 - 1, ScalarSpec(dtypes.int32)),
    "-2**31": (-(2**31), ScalarSpec(dtypes.int32, True)),
    "2**31": (2**31, ScalarSpec(dtypes.int64, True)),
    "-2**31-1": (-(2**31) - 1, ScalarSpec(dtypes.int64)),
    "2**63-1": (2**63 - 1, ScalarSpec(dtypes.int64)),
    "2**63": (2**63, ScalarSpec(dtypes.uint64, True)),
    "2**64-1": (2**64 - 1, ScalarSpec(dtypes.uint64)),
    "1.0": (1.0, ScalarSpec(dtypes.float32)),
    "nan": (float("nan"), ScalarSpec(dtypes.float32)),
    "np.float64": (np.float64(2), ScalarSpec(dtypes.float32)),
    "IntEnum 1": (Number.ONE, ConstantSpec(1)),
    "IntEnum 2": (Number.TWO, ScalarSpec(dtypes.int32)),
    "constexpr": (tl.constexpr("word"), ConstantSpec("word")),
    "tuple": (
        (1, 2.0, None),
        TupleSpec((ConstantSpec(1), ScalarSpec(dtypes.float32), ConstantSpec(None))),
    ),
    "nested": (
        (3, (16,)),
        TupleSpec((ScalarSpec(dtypes.int32), TupleSpec((ScalarSpec(dtypes.int32, True),)))),
    ),
    "empty": ((), TupleSpec(())),
}


@pytest.mark.parametrize("value, expected", SPECS.values(), ids=SPECS.keys())
def test_what_is_compiled_for_a_value(value: Any, expected: Any) -> None:
    assert spec(value) == expected


def test_jit_functions_and_constexpr_functions_are_constants() -> None:
    helper = tritium.jit(one)
    assert spec(helper) == ConstantSpec(helper)
    assert spec(tritium.cdiv) == ConstantSpec(tritium.cdiv)


def test_named_tuples_keep_their_names() -> None:
    Pair = collections.namedtuple("Pair", "left right")
    bound = bind(one, Pair(np.zeros(4), 2))
    assert bound.specs["x"].fields == ("left", "right")
    assert bound.described["x"].left.element is dtypes.float64
    assert [name for name, _, _ in bound.leaves()] == ["x.0", "x.1"]


def test_options_of_the_decorator() -> None:
    assert spec(1, do_not_specialize=["x"]) == ScalarSpec(dtypes.int32)
    assert spec(16, do_not_specialize=[0]) == ScalarSpec(dtypes.int32)
    assert spec(2**40, do_not_specialize=["x"]) == ScalarSpec(dtypes.int64)
    assert spec(16, do_not_specialize_on_alignment=["x"]) == ScalarSpec(dtypes.int32)
    assert spec(1, do_not_specialize_on_alignment=["x"]) == ConstantSpec(1)


def test_arrays() -> None:
    raw = np.zeros(64 + 4, np.float32)
    start = -raw.ctypes.data % 16 // 4
    aligned = raw[start:]
    assert spec(aligned) == PointerSpec(dtypes.float32, True)
    assert spec(aligned[1:]) == PointerSpec(dtypes.float32, False)
    assert spec(aligned, do_not_specialize=["x"]) == PointerSpec(dtypes.float32)
    assert spec(aligned[:0]) == spec(aligned[::-1][-1:]) == PointerSpec(dtypes.float32, True)
    assert spec(aligned.astype(ml_dtypes.bfloat16)).dtype is dtypes.bfloat16


class Annotated:
    """Annotations that fix the type of a parameter."""

    ROWS = {
        "tl.int64": (tl.int64, 1, ScalarSpec(dtypes.int64)),
        "tl.uint8": (tl.uint8, 16, ScalarSpec(dtypes.uint8, True)),
        "'i32'": ("i32", 5, ScalarSpec(dtypes.int32)),
        "tl.float16": (tl.float16, 2.0, ScalarSpec(dtypes.float16)),
        "'fp32'": ("fp32", 3, ScalarSpec(dtypes.float32)),
        "int": (int, 1, ScalarSpec(dtypes.int32)),
        "bool": (bool, True, ScalarSpec(dtypes.int1)),
    }


@pytest.mark.parametrize("annotation, value, expected", Annotated.ROWS.values(), ids=Annotated.ROWS)
def test_annotations(annotation: Any, value: Any, expected: Any) -> None:
    def annotated(x):
        pass

    annotated.__annotations__["x"] = annotation
    assert bind(annotated, value).specs["x"] == expected


def test_const_pointers() -> None:
    def reads(x: tl.const):
        pass

    assert bind(reads, np.zeros(4)).specs["x"].const


# ---- what kernels don't take ---------------------------------------------------------------------


REFUSED = {
    "str": "x",
    "list": [1],
    "dict": {},
    "complex": 1j,
    "np.int32": np.int32(3),
    "np.bool_": np.bool_(True),
    "np.float32": np.float32(1),
    "2**64": 2**64,
    "-2**63-1": -(2**63) - 1,
    "object": object(),
    "class": np.ndarray,
    "dtype": np.dtype("f4"),
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_other_values_are_refused(value: Any) -> None:
    problem = refusal(one, value)
    assert problem.code == "E0501"
    assert problem.argument == "x"
    assert isinstance(problem, TypeError)


def test_numpy_scalars_are_told_how_to_be_passed() -> None:
    assert "int(x)" in refusal(one, np.int32(3)).help
    assert "float(x)" in refusal(one, np.float32(3)).help


def test_any_hashable_constant_is_fine_and_others_are_not() -> None:
    bound = bind(with_constants, None, BLOCK="abc", FLAG=(1, "x"))
    assert bound.specs["BLOCK"] == ConstantSpec("abc")
    assert refusal(with_constants, None, BLOCK={}).code == "E0501"


# ---- binding -------------------------------------------------------------------------------------


def test_positional_keyword_and_default_arguments() -> None:
    assert bind(three, 3).values == {"a": 3, "b": 2, "c": None}
    assert bind(three, 3, 4, c=5).values == {"a": 3, "b": 4, "c": 5}
    assert bind(three, b=4, a=3).values == {"a": 3, "b": 4, "c": None}
    assert list(bind(three, b=4, a=3).values) == ["a", "b", "c"]
    assert bind(variadic, 1, 2, 3).values == {"a": 1, "rest": (2, 3)}
    assert bind(variadic, 1).values == {"a": 1, "rest": ()}


def test_wrong_calls() -> None:
    missing = refusal(with_constants, None)
    assert (missing.code, missing.argument) == ("E0502", "BLOCK")
    assert isinstance(missing, TypeError)
    assert "BLOCK=" in missing.help
    unknown = refusal(three, 1, d=2)
    assert (unknown.code, unknown.argument) == ("E0503", "d")
    assert isinstance(unknown, KeyError)
    assert "a, b, c" in unknown.help
    assert refusal(three, 1, 2, 3).code == "E0504"
    assert refusal(three, 1, a=2).code == "E0505"


# ---- options -------------------------------------------------------------------------------------


def test_every_option_is_accepted_and_kept() -> None:
    given = {**DEFAULTS, "num_warps": 8, "extern_libs": {"m": "path"}, "debug": True}
    options = bind(one, 3, **given).options
    assert dict(options) == given
    assert hash(options) == hash(bind(one, 3, **given).options)
    assert options == bind(one, 3, **given).options
    assert options != bind(one, 3).options
    assert options.num_warps == 8
    assert bind(one, 3, **DEFAULTS).options == bind(one, 3).options
    assert repr(bind(one, 3, num_warps=8).options) == "Options(num_warps=8)"
    with pytest.raises(AttributeError):
        _ = options.waves


@pytest.mark.parametrize(
    "given", [{"num_warps": 3}, {"num_warps": 0}, {"num_warps": 4.0}, {"num_stages": -1}], ids=str
)
def test_options_that_make_no_sense(given: dict[str, Any]) -> None:
    assert refusal(one, 3, **given).code == "E0515"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (set(), "set"),
        ({"a": [{1, 2}]}, "set"),
        (bytearray(), "bytearray"),
        (np.zeros(2), "ndarray"),
    ],
    ids=["set", "inside", "bytes", "array"],
)
def test_options_that_nothing_stands_for(value: Any, shown: str) -> None:
    problem = refusal(one, 3, extern_libs=value)
    assert problem.code == "E0515"
    assert problem.argument == "extern_libs"
    assert f"a {shown}, which is not hashable" in problem.message


def test_a_parameter_with_the_name_of_an_option_gets_both() -> None:
    def kernel(x, num_warps: tl.constexpr):
        pass

    bound = bind(kernel, 3, num_warps=8)
    assert bound.values["num_warps"] == 8
    assert bound.options.num_warps == 8


def test_debug_comes_from_the_launch_the_decorator_or_the_knob() -> None:
    assert not bind(one, 3).options.debug
    assert bind(one, 3, debug=True).options.debug
    assert bind(one, 3, jit=tritium.jit(debug=True)).options.debug
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        assert bind(one, 3).options.debug


def test_the_key_tells_apart_what_is_compiled_differently() -> None:
    values = [
        0,
        1,
        2,
        3,
        16,
        True,
        1.0,
        None,
        2**31,
        2**63,
        (1,),
        (2,),
        tl.constexpr(2),
        np.zeros(4),
    ]
    groups: dict[Any, list[Any]] = {}
    for value in values:
        groups.setdefault(bind(one, value).key, []).append(value)
    assert [group for group in groups.values() if len(group) > 1] == [[0, 16], [2, 3]]
    assert bind(one, 3, num_warps=8).key != bind(one, 3).key
    constants = [bind(with_constants, None, BLOCK=value).key for value in (1, 1.0, True, 0.0, -0.0)]
    assert len(set(constants)) == 5


@pytest.mark.parametrize(
    "group, name, value",
    [
        (knobs.cpu, "target", "x86-64-v2"),
        (knobs.cpu, "features", "-avx2"),
        (knobs.language, "fp32_default", "ieee"),
        (knobs.language, "default_fp_fusion", True),
        (knobs.runtime, "debug", True),
    ],
)
def test_keys_tell_the_options_apart_that_code_depends_on(
    group: Any, name: str, value: Any
) -> None:
    before = bind(one, 3).key
    with group.scope():
        setattr(group, name, value)
        assert bind(one, 3).key != before
    assert bind(one, 3).key == before


# ---- devices -------------------------------------------------------------------------------------


class Tensor:
    dtype = "torch.float32"

    is_pinned: Any = None

    def __init__(self, device: str, address: int = 4096) -> None:
        self.device = device
        self.address = address

    def data_ptr(self) -> int:
        return self.address


class OnADevice:
    __cuda_array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (4096, False)}


def test_devices() -> None:
    near = bind(three, Tensor("cpu"), Tensor("cpu"))
    assert near.described["a"].address == 4096
    assert near.device == "cpu"
    mixed = refusal(three, Tensor("cpu"), Tensor("cuda:1"))
    assert (mixed.code, mixed.argument) == ("E0512", "b")
    assert "a on cpu, b on cuda:1" in mixed.message
    assert refusal(three, Tensor("cuda:0"), Tensor("cuda:1")).code == "E0512"
    assert refusal(three, np.zeros(3), OnADevice()).code == "E0512"
    inside = refusal(three, (np.zeros(3), OnADevice()))
    assert (inside.code, inside.argument) == ("E0512", "a")
    assert "a.0 on cpu, a.1 on cuda:0" in inside.message


def test_arrays_of_gpus_make_code_for_their_device() -> None:
    for array, device in ((Tensor("cuda:1"), "cuda:1"), (OnADevice(), "cuda:0")):
        for bound in (bind(three, array, 3), bind(three, array, array), bind(three, (array, 2))):
            assert bound.device == device
            assert bound.settings is bind(three, 3).settings
    one, other = (bind(three, Tensor(each), 3) for each in ("cuda:0", "cuda:1"))
    assert one.specs == other.specs == bind(three, Tensor("cpu"), 3).specs
    assert len({one.key, other.key, bind(three, Tensor("cpu"), 3).key}) == 3
    assert one.key == bind(three, OnADevice(), 3).key


def test_devices_without_a_backend() -> None:
    alone = refusal(three, Tensor("mps"), 3)
    assert (alone.code, alone.argument) == ("E0513", "a")
    assert "x.cpu()" in alone.help
    assert refusal(three, Tensor("mps"), Tensor("cpu")).code == "E0512"
    assert refusal(three, Tensor("mps"), Tensor("mps")).code == "E0513"


def test_pinned_memory_goes_with_the_arrays_of_a_gpu() -> None:
    pinned = Tensor("cpu")
    pinned.is_pinned = lambda: True
    assert bind(three, pinned, Tensor("cuda:1")).device == "cuda:1"
    assert bind(three, Tensor("cuda:1"), pinned).device == "cuda:1"
    assert bind(three, pinned, Tensor("cpu")).device == "cpu"
    assert refusal(three, (pinned, Tensor("cpu")), Tensor("cuda:1")).code == "E0512"


# ---- grids ---------------------------------------------------------------------------------------


GRIDS = {
    "tuple": ((2,), (2, 1, 1)),
    "two": ((2, 3), (2, 3, 1)),
    "list": ([2, 3, 4], (2, 3, 4)),
    "int": (5, (5, 1, 1)),
    "numpy": ((np.int64(3), np.uint8(2)), (3, 2, 1)),
    "array": (np.array([3, 2]), (3, 2, 1)),
    "array without axes": (np.array(3), (3, 1, 1)),
    "constexpr": ((tl.constexpr(3),), (3, 1, 1)),
    "function": (lambda meta: (meta["n"] // 2,), (4, 1, 1)),
    "function of an int": (lambda meta: meta["n"], (8, 1, 1)),
    "zero": ((3, 0), (3, 0, 1)),
    "ones beyond the third": ((2, 2, 2, 1), (2, 2, 2)),
    "large": ((2**31 - 1, 65535), (2**31 - 1, 65535, 1)),
}


@pytest.mark.parametrize("grid, expected", GRIDS.values(), ids=GRIDS.keys())
def test_grids(grid: Any, expected: Any) -> None:
    assert resolve_grid(grid, {"n": 8}, "kernel") == expected


BAD_GRIDS = {
    "negative": ((4, -1), "E0510"),
    "too large": ((2**31,), "E0510"),
    "too many": ((2**31 - 1, 2**31 - 1, 2**31 - 1), "E0510"),
    "float": ((4.0,), "E0511"),
    "text": ("4", "E0511"),
    "None": (None, "E0511"),
    "empty": ((), "E0511"),
    "four": ((1, 1, 1, 2), "E0511"),
    "function of a float": (lambda meta: (meta["n"] / 2,), "E0511"),
}


@pytest.mark.parametrize("grid, code", BAD_GRIDS.values(), ids=BAD_GRIDS.keys())
def test_grids_that_are_refused(grid: Any, code: str) -> None:
    with pytest.raises(TritiumError) as caught:
        resolve_grid(grid, {"n": 9}, "kernel")
    assert caught.value.code == code
    assert caught.value.argument == "grid"


def test_the_function_of_a_grid_gets_every_argument_and_no_option() -> None:
    seen: dict[str, Any] = {}

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.update(meta)
        return (1,)

    bound = bind(with_constants, 7, BLOCK=32, num_warps=8)
    resolve_grid(grid, bound.values, "kernel")
    assert seen == {"x": 7, "BLOCK": 32, "FLAG": False}


def test_a_survey_needs_no_more_than_the_arrays() -> None:
    floats, ints = np.zeros(3, np.float32), np.zeros(3, np.int8)
    binder = tritium.jit(variadic).binder
    assert binder.survey((floats, 1, (ints, None)), {"num_warps": 4}) == (
        "cpu",
        [dtypes.float32, dtypes.int8],
    )
    assert binder.survey((), {}) == ("cpu", [])
    with pytest.raises(TritiumError) as caught:
        binder.survey((np.zeros(3, np.complex64),), {})
    assert caught.value.code == "E0501"
