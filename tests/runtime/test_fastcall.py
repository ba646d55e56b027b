"""What the short way of a launch depends on: each change of it shows at the next launch."""

from __future__ import annotations

import os
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.runtime.adding import Adding, add

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.backends.host import layout
from tritium.diagnostics import TritiumError
from tritium.runtime import hostcode
from tritium.runtime.compiled import CompiledKernel
from tritium.runtime.fastcall.process import process
from tritium.runtime.jit import JITFunction

pytestmark = pytest.mark.skipif(not hostcode.SUPPORTED, reason="there is no native launch here")


@tritium.jit
def of_composites(x_ptr, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, 2 * BLOCK, BLOCK):
        total += start
    tl.store(x_ptr + tl.arange(0, BLOCK), total)


def test_functions_of_the_language_may_be_written_in_python() -> None:
    """What is traced here, not read from the cache, is launched natively as well."""
    x = np.zeros(32, np.float32)
    with knobs.compilation.scope():
        knobs.compilation.always_compile = True
        for _ in range(3):
            of_composites[(1,)](x, BLOCK=32)
    assert of_composites._fast.launches_by_python == 2
    assert (x == 32).all()


def test_the_second_launch_is_written_down() -> None:
    kernel = tritium.jit(add)
    x = np.zeros(16, np.float32)
    first = kernel[(1,)](x, x, x, 16, BLOCK=16)
    assert kernel[(1,)](x, x, x, 16, BLOCK=16) is first
    assert kernel._fast.launches_by_python == 2
    for _ in range(5):
        assert kernel[(1,)](x, x, x, 16, BLOCK=16) is first
    assert kernel._fast.launches_by_python == 2
    assert type(kernel[(1,)]) is types.BuiltinFunctionType


def test_a_launch_that_was_made_before_there_was_native_code() -> None:
    adding = Adding(tritium.jit(add))
    kernel = tritium.jit(add)
    launch = kernel[(4,)]
    given = (adding.x, adding.y, adding.out, 60)
    made = [launch(*given, BLOCK=16) for _ in range(10)]
    assert kernel._fast.launches_by_python == 2
    assert len(set(map(id, made))) == 1
    kernel.forget_launches()
    launch(*given, BLOCK=16)
    assert kernel._fast.launches_by_python == 3


def test_launches_by_python_are_not_written_down_for_ever(adding: Adding) -> None:
    kernel = tritium.jit(add)
    written: list[Any] = []
    publish = kernel._fast._publish
    kernel._fast._publish = lambda: (written.append(1), publish())
    for _ in range(40):
        kernel.run(adding.x, adding.y, adding.out, 60, grid=(4,), BLOCK=16)
    assert 1 <= len(written) <= 8
    for _ in range(40):
        kernel.run(adding.x, adding.y, adding.out, 60, grid=(4,), BLOCK=32)
    assert 2 <= len(written) <= 16
    assert kernel._fast.launches_by_python == 80


# ---- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["TRITON_INTERPRET", "TRITIUM_INTERPRET"])
def test_a_variable_turns_the_interpreter_on(
    adding: Adding, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    assert adding.launch() is None
    monkeypatch.setenv(name, "0")
    assert adding.natively()
    monkeypatch.setitem(os.environ, name, "yes")
    assert adding.launch() is None
    monkeypatch.delenv(name)
    assert adding.natively()


def test_variables_where_dictionaries_have_no_version(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = process()
    version = shared.get(layout.Process.VERSION)
    assert version or sys.version_info >= (3, 14)
    shared.put(layout.Process.VERSION, 0)
    try:
        assert adding.natively()
        monkeypatch.setenv("SOMETHING_ELSE", "1")
        assert adding.natively()
        monkeypatch.setenv("TRITIUM_INTERPRET", "1")
        assert adding.launch() is None
        monkeypatch.delenv("TRITIUM_INTERPRET")
        assert adding.natively()
    finally:
        shared.put(layout.Process.VERSION, version)


def test_another_environment(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "TRITIUM_INTERPRET": "1"})
    assert adding.launch() is None
    os.environ["TRITIUM_INTERPRET"] = "0"
    assert isinstance(adding.launch(), CompiledKernel)
    monkeypatch.undo()
    assert adding.natively()


def test_the_interpreter_by_knob_and_by_context(adding: Adding) -> None:
    knobs.runtime.interpret = True
    assert adding.launch() is None
    knobs.runtime.interpret = False
    assert adding.natively()
    with tritium.interpret():
        assert adding.launch() is None
        with tritium.interpret(False):
            assert adding.natively()
        assert adding.launch() is None
    assert adding.natively()
    assert adding.kernel.interpret[(4,)](adding.x, adding.y, adding.out, 60, BLOCK=16) is None


def test_the_interpreter_of_another_thread(adding: Adding) -> None:
    inside, outside = threading.Event(), threading.Event()
    seen: list[Any] = []

    def interpreting() -> None:
        with tritium.interpret():
            inside.set()
            outside.wait(60)
            seen.append(adding.launch())

    thread = threading.Thread(target=interpreting)
    thread.start()
    inside.wait(60)
    assert adding.natively()
    outside.set()
    thread.join()
    assert seen == [None]
    assert adding.natively()


def test_a_variable_that_makes_no_sense(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITIUM_DEBUG", "perhaps")
    for _ in range(2):
        with pytest.raises(knobs.KnobError, match="TRITIUM_DEBUG"):
            adding.launch()
    monkeypatch.delenv("TRITIUM_DEBUG")
    assert adding.natively()


def test_knobs_that_are_compiled_in(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = adding.launch()
    monkeypatch.setenv("TRITON_DEBUG", "1")
    debugging = adding.launch()
    assert debugging.options.debug
    assert not plain.options.debug
    adding.launch()
    assert adding.natively()
    assert adding.launch() is debugging
    monkeypatch.delenv("TRITON_DEBUG")
    # What was written down before is right again.
    assert adding.natively()
    assert adding.launch() is plain
    knobs.language.default_fp_fusion = True
    assert adding.launch().options.enable_fp_fusion is True
    del knobs.language.default_fp_fusion
    assert adding.natively()
    assert adding.launch() is plain


def test_the_number_of_threads(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> int:
        assert adding.natively()
        return process().get(layout.Process.THREADS)

    knobs.cpu.num_threads = 3
    assert threads() == 3
    del knobs.cpu.num_threads
    monkeypatch.setenv("TRITIUM_NUM_THREADS", "5")
    assert threads() == 5
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 1
        assert threads() == 1
        knobs.cpu.num_threads = 2
        assert threads() == 2
    assert threads() == 5


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_affinity_is_noticed_soon(adding: Adding) -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        time.sleep(0.15)
        assert adding.natively()
        assert process().get(layout.Process.THREADS) == 1
    finally:
        os.sched_setaffinity(0, before)
    time.sleep(0.15)
    assert adding.natively()
    assert process().get(layout.Process.THREADS) == knobs.cpu.num_threads


# ---- hooks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["launch_enter_hook", "launch_exit_hook"])
@pytest.mark.parametrize("how", ["add", "assign", "append", "replace"])
def test_launch_hooks(adding: Adding, name: str, how: str) -> None:
    called: list[Any] = []
    chain = getattr(knobs.runtime, name)
    if how == "add":
        chain.add(called.append)
    elif how == "append":
        chain.calls.append(called.append)
    elif how == "replace":
        chain.calls = [called.append]
    else:
        setattr(knobs.runtime, name, called.append)
    for count in (1, 2):
        assert not adding.natively()
        assert len(called) == count
    if how == "assign":
        setattr(knobs.runtime, name, None)
    else:
        chain.remove(called.append)
    assert adding.natively()
    assert len(called) == 2


def test_hooks_of_a_scope(adding: Adding) -> None:
    called: list[Any] = []
    with knobs.runtime.scope():
        assert adding.natively()
        knobs.runtime.launch_enter_hook.add(called.append)
        adding.launch()
        assert len(called) == 1
    assert adding.natively()
    assert len(called) == 1


@pytest.mark.parametrize("how", ["append", "add_pre_run_hook", "assign"])
def test_pre_run_hooks(adding: Adding, how: str) -> None:
    called: list[Any] = []

    def hook(*args: Any, **keywords: Any) -> None:
        called.append((len(args), [*keywords]))

    if how == "append":
        adding.kernel.pre_run_hooks.append(hook)
    elif how == "assign":
        adding.kernel.pre_run_hooks = [hook]
    else:
        adding.kernel.add_pre_run_hook(hook)
    for count in (1, 2, 3):
        adding.launch()
        assert called == [(4, ["BLOCK"])] * count
    adding.kernel.pre_run_hooks.clear()
    adding.launch()
    assert adding.natively()
    assert len(called) == 3


# ---- what was compiled in ------------------------------------------------------------------------

STEP = tl.constexpr(1)
OTHER = types.ModuleType("other")
OTHER.STEP = tl.constexpr(10)


@tritium.jit
def helper(x):
    return x + STEP


def uses_globals(out, n):
    tl.store(out, helper(n) + OTHER.STEP)


def result(kernel: Any) -> int:
    out = np.zeros(1, np.int32)
    kernel[(1,)](out, 100)
    return int(out[0])


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    kernel = tritium.jit(uses_globals)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "other", OTHER)
        for _ in range(3):
            assert result(kernel) == 111
        assert kernel._fast.launches_by_python == 2
        yield kernel


@pytest.mark.parametrize("frozen", [False, True])
def test_globals_that_change(reading: Any, frozen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    reading.frozen_globals = frozen
    for _ in range(3):
        result(reading)
    for owner, value, expected in (
        (sys.modules[__name__], 3, 113),
        (OTHER, 20, 123),
        (sys.modules[__name__], 1, 121),
    ):
        monkeypatch.setattr(owner, "STEP", tl.constexpr(value))
        if frozen:
            with pytest.raises(TritiumError, match="STEP") as caught:
                result(reading)
            assert caught.value.code == "E0518"
        else:
            for _ in range(3):
                assert result(reading) == expected


def test_a_global_that_is_replaced_by_its_like(
    reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = reading._fast.launches_by_python
    monkeypatch.setattr(sys.modules[__name__], "STEP", tl.constexpr(1))
    for _ in range(3):
        assert result(reading) == 111
    assert reading._fast.launches_by_python == before + 1


def test_a_helper_that_changes(reading: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @tritium.jit
    def twice(x):
        return x * 2

    monkeypatch.setattr(sys.modules[__name__], "helper", twice)
    assert result(reading) == 210


def test_a_closure_that_changes() -> None:
    step = tl.constexpr(1)

    @tritium.jit
    def kernel(out, n):
        tl.store(out, n + step)

    for _ in range(3):
        assert result(kernel) == 101
    assert kernel._fast.launches_by_python == 2
    step = tl.constexpr(2)
    assert result(kernel) == 102


def test_python_functions_of_the_compilation_are_looked_at_each_time() -> None:
    values = {"step": 1}

    @tritium.constexpr_function
    def step():
        return values["step"]

    @tritium.jit
    def kernel(out, n):
        tl.store(out, n + step())

    for number in (1, 2, 1):
        values["step"] = number
        for _ in range(3):
            assert result(kernel) == 100 + number


def test_code_that_is_taken_out_of_the_kernel(adding: Adding) -> None:
    made = adding.launch()
    adding.kernel.kernels.clear()
    other = adding.launch()
    assert other is not made
    adding.launch()
    assert adding.natively()
    key, value = next(iter(adding.kernel.kernels.items()))
    del adding.kernel.kernels[key]
    assert adding.launch() is not value
    adding.kernel.kernels[key] = other
    assert adding.launch() is other
    adding.kernel.device_caches[0][0].clear()
    assert adding.launch() is not other


# ---- functions in other functions' places --------------------------------------------------------


def test_a_class_whose_run_is_replaced(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    run = JITFunction.run

    def noting(self: Any, *args: Any, **keywords: Any) -> Any:
        seen.append(keywords["grid"])
        return run(self, *args, **keywords)

    monkeypatch.setattr(JITFunction, "run", noting)
    adding.launch()
    adding.launch()
    assert seen == [(4,)] * 2
    monkeypatch.undo()
    assert adding.natively()
    assert len(seen) == 2


def test_a_kernel_whose_run_is_replaced(adding: Adding) -> None:
    seen: list[Any] = []
    run = adding.kernel.run

    def noting(*args: Any, **keywords: Any) -> Any:
        seen.append(keywords["grid"])
        return run(*args, **keywords)

    adding.kernel.run = noting
    for count in (1, 2, 3):
        adding.launch()
        assert seen == [(4,)] * count
    del adding.kernel.run
    adding.launch()
    assert adding.natively()


def test_a_derived_class() -> None:
    class Noting(JITFunction):
        seen: list[Any] = []

        def run(self, *args: Any, **keywords: Any) -> Any:
            self.seen.append(keywords["grid"])
            return super().run(*args, **keywords)

    kernel = Noting(add)
    x = np.zeros(16, np.float32)
    for count in (1, 2, 3):
        kernel[(1,)](x, x, x, 16, BLOCK=16)
        assert Noting.seen == [(1,)] * count
