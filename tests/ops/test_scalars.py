"""Functions of scalars, which reductions, scans and maps run: what they must not do, and how often
they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.frontend.kernels import compile, jit, spec_of, underlined
from tests.interp.launching import launch

import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.ops.callable import DeviceFunction


@jit
def loads(a, b=0):
    return a + tl.load(a.to(tl.int64).to(tl.pointer_type(tl.int32)))


@jit
def stores(a, b=0):
    tl.store(a.to(tl.int64).to(tl.pointer_type(tl.int32)), 1)
    return a


@jit
def changes(a, b=0):
    return a + tl.atomic_add(a.to(tl.int64).to(tl.pointer_type(tl.int32)), 1)


@jit
def prints(a, b=0):
    tl.device_print("a", a)
    return a


@jit
def prints_by_python(a, b=0):
    print("a", a)
    return a


@jit
def checks(a, b=0):
    tl.device_assert(a >= 0)
    return a


@jit
def asserts(a, b=0):
    assert a >= 0
    return a


@jit
def through_another(a, b=0):
    return stores(a)


@jit
def branches(a, b=0):
    if a > b:
        return a
    return b


@jit
def chooses(a, b=0):
    return a if a > b else b


@jit
def counts(a, b=0):
    for _ in range(3):
        a += 1
    return a


@jit
def repeats(a, b=0):
    while a < b:
        a += b
    return a


@jit
def reduces(x_ptr, N: tl.constexpr, function: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(x_ptr, tl.reduce(x, 0, function))


@jit
def scans(x_ptr, N: tl.constexpr, function: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(x_ptr + tl.arange(0, N), tl.associative_scan(x, 0, function))


@jit
def maps(x_ptr, N: tl.constexpr, function: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(x_ptr + tl.arange(0, N), tl.map_elementwise(function, x))


EFFECTS = {
    loads: "access memory",
    stores: "access memory",
    changes: "access memory",
    prints: "print",
    prints_by_python: "print",
    checks: "assert",
    asserts: "assert",
    through_another: "access memory",
}
CONTROL = dict.fromkeys((branches, chooses, counts, repeats), "branch or loop")


def name_of(value: Any) -> str | None:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize("extent", [1, 2, 5])
@pytest.mark.parametrize("function", [*EFFECTS, *CONTROL], ids=name_of)
@pytest.mark.parametrize("kernel", [reduces, scans, maps], ids=name_of)
def test_compiled_and_eager_mode_refuse_alike(
    kernel: DeviceFunction, function: DeviceFunction, extent: int
) -> None:
    x = np.arange(7, 7 + extent, dtype=np.int32)
    if kernel is maps and function in CONTROL:
        launch(kernel, (1,), x_ptr=x, N=extent, function=function)
        return
    with pytest.raises(TritiumError) as compiled:
        compile(kernel, spec_of(x), extent, function, debug=True)
    with pytest.raises(TritiumError) as eager:
        launch(kernel, (1,), x_ptr=x, N=extent, function=function)
    assert x.tolist() == [*range(7, 7 + extent)]
    parameter, subject = "combine_fn", "the combine function"
    if kernel is maps:
        parameter, subject = "scalar_fn", "the function"
    wanted = {**EFFECTS, **CONTROL}[function]
    for problem in (compiled.value, eager.value):
        assert (problem.code, problem.argument) == ("E0206", parameter), problem
        assert problem.message.endswith(f"{subject} must not {wanted}")
        assert problem.loc is not None
        assert "function" in underlined(problem.loc)
    assert (compiled.value.message, compiled.value.help) == (eager.value.message, eager.value.help)
    assert compiled.value.loc.line == eager.value.loc.line


@pytest.mark.parametrize("kernel", [reduces, scans], ids=name_of)
def test_a_line_of_one_element_shows_what_a_function_returns(kernel: DeviceFunction) -> None:
    @jit
    def compares(a, b):
        return a > b

    x = np.ones(1, np.int32)
    for attempt in (
        lambda: compile(kernel, spec_of(x), 1, compares),
        lambda: launch(kernel, (1,), x_ptr=x, N=1, function=compares),
    ):
        with pytest.raises(TritiumError, match="the combine function returns int1"):
            attempt()


CALLS: list[int] = []


@jit
def counted(a, b=0):
    CALLS.append(1)
    return a + 1


@jit
def counted_pairs(a, b):
    CALLS.append(1)
    return a + 1, b + 1


@pytest.mark.parametrize("extent", [1, 5, 16])
def test_a_mapped_function_is_called_once_for_each_element(extent: int) -> None:
    CALLS.clear()
    x = np.arange(extent, dtype=np.int32)
    launch(maps, (1,), x_ptr=x, N=extent, function=counted)
    assert x.tolist() == [*range(1, extent + 1)]
    assert len(CALLS) == extent


def test_a_mapped_function_is_called_once_for_each_pack() -> None:
    @jit
    def kernel(x_ptr, function: tl.constexpr):
        at = tl.arange(0, 6)
        tl.store(x_ptr + at, tl.map_elementwise(function, tl.load(x_ptr + at), pack=2))

    CALLS.clear()
    x = np.arange(6, dtype=np.int32)
    launch(kernel, (1,), x_ptr=x, function=counted_pairs)
    assert x.tolist() == [*range(1, 7)]
    assert len(CALLS) == 3
