"""Launches by native code and by Python: the same values arrive, the same errors are raised."""

from __future__ import annotations

import collections
import enum
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.recorder import Recorder

import tritium
import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.runtime import hostcode
from tritium.runtime.arrays import _from_numpy, _from_torch
from tritium.runtime.fastcall.process import process

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(not hostcode.SUPPORTED, reason="there is no native launch here")

MULTIPLIER = tl.constexpr(3)


def plain(x, y, n, scale, flag, BLOCK: tl.constexpr, MODE: tl.constexpr = "a", *, extra=None):
    pass


def annotated(
    a: tl.int32,
    b: tl.uint64,
    c: "fp32",  # noqa: F821, UP037
    d: tl.float64,
    e: "*fp32",  # noqa: F722
    f: tl.int1 = True,
):
    pass


def untyped(a, b: tl.constexpr = None, c=5, d=2.5, e=False, num_warps: tl.constexpr = 4):
    pass


def unspecialised(a, b, c, d):
    pass


KERNELS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (plain, {}),
    (annotated, {}),
    (untyped, {}),
    (unspecialised, {"do_not_specialize": ["a"], "do_not_specialize_on_alignment": ["b", 2]}),
]


class Color(enum.IntEnum):
    RED = 1
    GREEN = 16


Pair = collections.namedtuple("Pair", "left right")


class Strange(np.ndarray):
    """A type derived from NumPy's."""


@functools.cache
def arrays() -> list[Any]:
    """Arrays that live as long as the tests: what arrives is their addresses."""
    base = np.zeros(256, np.float32)
    fixed = np.zeros(8)
    fixed.flags.writeable = False
    raw = np.zeros(65, np.uint8)
    made: list[Any] = [
        base,
        base[1:],
        base[4:9],
        base[::-2],
        base.reshape(16, 16).T,
        base[:0],
        np.zeros((), np.int64),
        np.zeros(4, np.float64),
        np.zeros(4, np.bool_),
        np.zeros(4, np.uint8),
        np.zeros(4, np.int8),
        np.zeros(4, np.float16),
        np.zeros(4, ml_dtypes.bfloat16),
        np.zeros(4, np.complex64),
        np.zeros(4, ">f4"),
        np.zeros(4, np.longlong),
        np.zeros(4, np.dtype("f4", metadata={"unit": "m"})),
        np.zeros(4, object),
        np.zeros(4, [("a", "f4")]),
        np.frombuffer(bytearray(64), np.float32),
        raw[1:].view(np.float64) if raw.ctypes.data % 8 else raw[1:65].view(np.float64),
        fixed,
        base.view(Strange),
        np.broadcast_to(base[:1], (8,)),
    ]
    return made + (tensors() if torch is not None else [])


def tensors() -> list[Any]:
    base = torch.zeros(256)
    freed = torch.zeros(8)
    freed.untyped_storage().resize_(0)
    return [
        base,
        base[1:],
        base[4:],
        base[:0],
        base.reshape(16, 16).T,
        torch.zeros(()),
        torch.zeros(8, dtype=torch.bfloat16),
        torch.zeros(8, dtype=torch.int64),
        torch.zeros(8, dtype=torch.int8),
        torch.empty(8, dtype=torch.int4),
        torch.zeros(8, dtype=torch.uint8),
        torch.zeros(8, dtype=torch.bool),
        torch.zeros(8, dtype=torch.complex64),
        torch.zeros(8, requires_grad=True),
        torch.nn.Parameter(torch.zeros(8)),
        torch.empty(8, device="meta"),
        torch._neg_view(base),
        torch.zeros(8, dtype=torch.complex64).conj().imag,
        freed,
        torch.eye(3).to_sparse(),
        torch.zeros(8, dtype=torch.float32).numpy(),
        torch.zeros(8).as_subclass(type("Derived", (torch.Tensor,), {})),
        np.asarray(base)[5:],
    ]


INTEGERS = [
    *(0, 1, -1, 2, 15, 16, 17, 32, -16),
    *(2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**31 + 16),
    *(2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 16, 2**64 - 1, 2**64),
]
FLOATS = [0.0, -0.0, 1.0, 2.5, 1e300, -1e-300, float("inf"), float("nan")]
OBJECTS = [
    *(None, True, False, "a", "b", "ba"[1:], b"a", tl.float32, tl.int8, 1j),
    *(tl.constexpr(16), tl.constexpr(True), Color.RED, Color.GREEN, np.int32(16), np.float64(2)),
    *((), (1,), (16, 2.5), Pair(1, 2), [1], {}, tl.cdiv, MULTIPLIER, object, len),
]
VALUES = st.one_of(
    st.sampled_from(INTEGERS),
    st.integers(-(2**65), 2**65),
    st.sampled_from(FLOATS),
    st.floats(),
    st.sampled_from(OBJECTS),
    st.deferred(lambda: st.sampled_from(arrays())),
    st.deferred(lambda: st.sampled_from(arrays())),
)
OPTIONS = {
    "num_warps": [1, 4, 8, 3, 4.0, True, tl.constexpr(8)],
    "num_stages": [2, 3],
    "debug": [True, False],
    "enable_fp_fusion": [True, False, None],
    "extern_libs": [{"a": "b"}, None],
    "unknown": [1],
}
GRIDS: list[Any] = [
    *((1,), (3,), (2, 3), (2, 3, 4), (0,), (5, 0, 2), 7, True, (True, 2)),
    *((-1,), (2**31,), (2**31 - 1, 2, 1), (1.0,), 2.0, (1, 1, 1, 1), (1, 1, 1, 2), (), [2], None),
    *(np.int64(3), (np.int32(2),), tl.constexpr(2), (tl.constexpr(2), 1), Pair(2, 3), "a"),
    *(2**70, (2**31 - 1, 2**31 - 1, 2**31 - 1)),
]


def by_function(grid: Any) -> Callable[[dict[str, Any]], Any]:
    """A grid's function, which notes what it is given."""

    def function(values: dict[str, Any]) -> Any:
        function.given.append({name: id(value) for name, value in values.items()})
        if isinstance(grid, Exception):
            raise grid
        return grid

    function.given = []
    return function


SMALL = st.sampled_from([0, 3, 16, 32, -16, 2**31 - 1])
ARRAYS = st.deferred(lambda: st.sampled_from(arrays()))
NUMBERS = st.one_of(st.sampled_from(INTEGERS[:12]), st.sampled_from(FLOATS), st.booleans())
LIKELY: dict[str, Any] = {
    **dict.fromkeys("xye", ARRAYS),
    **dict.fromkeys(["n", "a", "b"], SMALL),
    **dict.fromkeys(["scale", "c", "d"], NUMBERS),
    **dict.fromkeys(["flag", "f"], st.booleans()),
    **dict.fromkeys(["BLOCK", "num_warps"], st.sampled_from([4, 16, 64])),
    "MODE": st.sampled_from(["a", "b", None, 1.5]),
    "extra": st.one_of(st.none(), SMALL, ARRAYS),
}


@st.composite
def calls(draw: Any) -> list[tuple[int, Any, bool, list[Any], dict[str, Any]]]:
    """A launch that may well be right and others like it.

    Each is a kernel's number, a grid and whether a function gives it, arguments, keywords.
    """
    number = draw(st.integers(0, len(KERNELS) - 1))
    parameters = inspect.signature(KERNELS[number][0]).parameters
    values = {name: draw(LIKELY[name]) for name in parameters}
    by_position = [n for n, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    count = draw(st.integers(0, len(by_position)))
    keywords = draw(st.permutations([n for n in values if n not in by_position[:count]]))
    optional = {n for n, p in parameters.items() if p.default is not p.empty}
    given_ = [n for n in keywords if n not in optional or draw(st.booleans())]
    grid = draw(st.sampled_from(GRIDS[:8]))
    called = draw(st.booleans())
    first = [values[n] for n in by_position[:count]], {n: values[n] for n in given_}
    made = [(number, grid, called, *first)]
    for _ in range(draw(st.integers(0, 4))):
        args, named = list(first[0]), dict(first[1])
        change = draw(st.sampled_from(["value", "value", "value", "shape", "option", "grid"]))
        if change == "value":
            place = draw(st.integers(0, max(0, len(args) + len(named) - 1)))
            if place < len(args):
                args[place] = draw(VALUES)
            elif named:
                named[[*named][place - len(args)]] = draw(VALUES)
        elif change == "shape" and args:
            args = args[:-1] if draw(st.booleans()) else [*args, draw(VALUES)]
        elif change == "option":
            name = draw(st.sampled_from([*OPTIONS]))
            named[name] = draw(st.sampled_from(OPTIONS[name]))
        elif change == "grid":
            grid = draw(st.sampled_from([*GRIDS, LookupError("grid")]))
            called = draw(st.booleans()) or isinstance(grid, Exception)
        made.append((number, grid, called, args, named))
    return made


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        made.install(patch)
        yield made


def outcome(
    recorder: Recorder, kernel: Any, grid: Any, args: list[Any], keywords: dict[str, Any]
) -> Any:
    """What arrived and what came back, or which error was raised."""
    recorder.take()
    try:
        compiled = kernel[grid](*args, **keywords)
    except TritiumError as problem:
        assert recorder.take() is None
        return type(problem).__name__, problem.code, str(problem)
    except Exception as problem:  # noqa: BLE001 - both must raise it
        assert recorder.take() is None
        return type(problem).__name__, str(problem)
    return recorder.take(), compiled.specs, compiled.options, compiled.name


@pytest.mark.parametrize("examples", [150])
def test_native_launches_agree_with_python(recorder: Recorder, examples: int) -> None:
    natively = [tritium.jit(**options)(function) for function, options in KERNELS]
    by_python = [tritium.jit(**options)(function) for function, options in KERNELS]
    for other in by_python:
        other._fast.worth_writing = lambda device: False
    hits = collections.Counter()

    @settings(max_examples=examples)
    @given(calls())
    def check(launches: list[Any]) -> None:
        # A kernel that was launched by Python hundreds of times is rarely written down.
        natively[launches[0][0]]._fast.launches_by_python = 2
        for number, grid, called, args, keywords in launches * 3:
            kernel, other = natively[number], by_python[number]
            one = by_function(grid) if called else grid
            two = by_function(grid) if called else grid
            before = kernel._fast.launches_by_python
            got = outcome(recorder, kernel, one, args, keywords)
            hits[kernel._fast.launches_by_python == before and len(got) == 4] += 1
            assert got == outcome(recorder, other, two, args, keywords)
            if called:
                assert one.given == two.given

    check()
    assert hits[True] > 2 * examples, hits


def test_arrays_are_read_natively_as_by_python() -> None:
    shared = process()
    shared.look_for_torch()
    known, kept = [], [sys.getrefcount(each) for each in arrays()]
    for each in arrays():
        found = shared.read(each)
        if found is not None:
            by_python = _from_numpy if isinstance(each, np.ndarray) else _from_torch
            assert found == tuple(by_python(each))
            known.append(found)
    assert {np.ndarray, *([torch.Tensor] if torch else [])} <= {type(each[6]) for each in known}
    assert len(known) > (12 if torch is None else 25)
    known.clear()
    del found, each
    assert kept == [sys.getrefcount(each) for each in arrays()]
    assert [shared.read(other) for other in (None, 3, "a", np.int32(3), [])] == [None] * 5


def test_arguments_are_scanned_natively_as_by_python() -> None:
    """Of what has been seen before, or differs from it in nothing that counts."""
    shared = process()
    shared.look_for_torch()
    hits = 0

    @settings(max_examples=300)
    @given(calls())
    def check(launches: list[Any]) -> None:
        nonlocal hits
        for number, _, _, args, keywords in launches:
            binder = kernels[number].binder
            given_ = (*args, *keywords.values())
            if len(given_) != len(binder.rules):
                continue
            expected = binder._scan(given_)
            found = shared.scan(given_, binder._ways)
            assert found is None or found == expected
            if found is not None:
                hits += 1
                assert all(one is two for one, two in zip(found[0], expected[0]))

    kernels = [tritium.jit(**options)(function) for function, options in KERNELS]
    check()
    assert hits > 100


def test_the_recorder_records(recorder: Recorder) -> None:
    kernel = tritium.jit(plain)
    x = np.zeros(4, np.float32)
    kernel[(2, 3)](x, None, 40, 0.5, True, BLOCK=16)
    address = x.ctypes.data
    assert recorder.take() == (6, [address, 40, 0x3F000000, 1, 2, 3, 1])
    assert recorder.take() is None
