"""What the short way of a launch depends on: each change of it shows at the next launch."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.backends.host import layout
from tritium.diagnostics import TritiumError
from tritium.runtime import hostcode, objects
from tritium.runtime.compiled import CompiledKernel
from tritium.runtime.fastcall.process import process
from tritium.runtime.jit import JITFunction

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(not hostcode.SUPPORTED, reason="there is no native launch here")
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


def add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask) + tl.load(y + offs, mask), mask)


class Adding:
    """A kernel that has been launched natively, and its arguments."""

    def __init__(self, kernel: Any = None, wrap: Any = np.asarray) -> None:
        self.kernel = tritium.jit(add) if kernel is None else kernel
        self.host = [np.arange(64, dtype=np.float32), np.full(64, 2, np.float32)]
        self.x, self.y, self.out = (wrap(each) for each in (*self.host, np.zeros(64, np.float32)))
        self.launch()
        self.launch()
        assert self.natively()

    def launch(self) -> Any:
        self.out[:] = -1
        made = self.kernel[(4,)](self.x, self.y, self.out, 60, BLOCK=16)
        expected = np.where(np.arange(64) < 60, self.host[0] + self.host[1], -1)
        assert (np.asarray(self.out) == expected).all()
        return made

    def natively(self) -> bool:
        """Launch; whether Python had no part in it."""
        before = self.kernel._fast.launches_by_python
        made = self.launch()
        return isinstance(made, CompiledKernel) and self.kernel._fast.launches_by_python == before

    def by_python(self) -> bool:
        """Launch; whether that took Python, and the next launch doesn't."""
        return not self.natively() and self.natively()


@pytest.fixture
def adding() -> Adding:
    return Adding()


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


# ---- arguments -----------------------------------------------------------------------------------


@needs_torch
def test_tensors() -> None:
    adding = Adding(wrap=torch.from_numpy)
    adding.x = torch.nn.Parameter(adding.x)
    assert adding.natively()
    adding.y = adding.y.clone().requires_grad_()
    assert adding.natively()
    # Arrays of another library are other arguments.
    adding.y = adding.y.detach().numpy()
    assert adding.by_python()


def test_arguments_of_other_kinds(adding: Adding) -> None:
    aligned, shifted = np.zeros(80, np.float32), np.zeros(80, np.float32)[1:]
    aligned[:64] = shifted[:64] = adding.host[0]
    adding.x = aligned
    assert adding.natively() == (aligned.ctypes.data % 16 == 0)
    adding.x = shifted
    assert adding.by_python() != (aligned.ctypes.data % 16 != 0)
    adding.x = aligned.astype(np.float64)
    assert adding.by_python()


def test_keywords_by_other_names_of_the_same_text(adding: Adding) -> None:
    before = adding.kernel._fast.launches_by_python
    name = str(b"BLOCK", "ascii")
    assert name is not sys.intern(name)
    adding.kernel[(4,)](adding.x, adding.y, adding.out, 60, **{name: 16})
    assert adding.kernel._fast.launches_by_python == before


def test_text_by_another_object() -> None:
    @tritium.jit
    def kernel(out, MODE: tl.constexpr):
        tl.store(out, 1 if MODE == "one" else 2)

    out = np.zeros(1, np.int32)
    for mode in ("one", "two"):
        for _ in range(3):
            kernel[(1,)](out, mode)
    before = kernel._fast.launches_by_python
    for mode, expected in (("one", 1), ("two", 2)):
        kernel[(1,)](out, str(mode.encode(), "ascii"))
        assert out[0] == expected
    assert kernel._fast.launches_by_python == before


def test_a_read_only_array(adding: Adding) -> None:
    adding.out.flags.writeable = False
    with pytest.raises(TritiumError) as caught:
        adding.kernel[(4,)](adding.x, adding.y, adding.out, 60, BLOCK=16)
    assert caught.value.code == "E0514"
    adding.out.flags.writeable = True
    adding.x.flags.writeable = False
    assert adding.natively()


def test_more_arguments_than_native_code_counts() -> None:
    names = [f"a{i}" for i in range(layout.Entry.MOST_ARGUMENTS + 1)]
    for count in (len(names) - 1, len(names)):
        text = f"def kernel(out, {', '.join(names[: count - 1])}):\n    tl.store(out, {names[0]})\n"
        namespace: dict[str, Any] = {"tl": tl}
        with temporary_module(text, namespace) as function:
            kernel = tritium.jit(function)
            out = np.zeros(1, np.int32)
            for _ in range(3):
                kernel[(1,)](out, *range(5, 5 + count - 1))
                assert out[0] == 5
            native = count <= layout.Entry.MOST_ARGUMENTS
            assert kernel._fast.launches_by_python == (2 if native else 3)


@contextlib.contextmanager
def temporary_module(text: str, namespace: dict[str, Any]) -> Iterator[Any]:
    """The function ``kernel`` of a text, which its source can be found of."""
    import linecache

    name = "<fastcall test>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), namespace)
    try:
        yield namespace["kernel"]
    finally:
        del linecache.cache[name]


def test_many_specialisations() -> None:
    @tritium.jit
    def kernel(out, N: tl.constexpr):
        tl.store(out, N)

    out = np.zeros(1, np.int32)
    count = layout.Kernel.MOST + 10
    for _ in range(3):
        for number in range(count):
            kernel[(1,)](out, number)
            assert out[0] == number
    before = kernel._fast.launches_by_python
    for _ in range(3):
        kernel[(1,)](out, count - 1)
    assert kernel._fast.launches_by_python == before


# ---- overlapping arrays --------------------------------------------------------------------------


@tritium.jit
def shift(x, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    a = tl.load(x + offs, offs < n)
    b = tl.load(x + offs + 1, offs < n)
    tl.store(out + offs, a + b, offs < n)


def views(kind: str) -> Iterator[tuple[Any, Any, bool]]:
    """Pairs of an input and an output, and whether native code can tell their memory."""
    base = np.zeros(4096, np.float32)
    if kind == "torch":
        base = torch.zeros(4096)
    yield base[:2048], base[2048:], True
    yield base[16:2048], base[:2048], True
    yield base[:2048], base[16:2064], True
    yield base, base, True
    yield base[:2048], (base.clone() if kind == "torch" else base.copy()), True
    if kind == "numpy":
        held = np.zeros(8192, np.uint8)
        yield held.view(np.float32)[:1024], held[4096:].view(np.float32)[16:], True
        buffer = bytearray(8192)
        yield np.frombuffer(buffer, np.float32, 1024), np.frombuffer(buffer, np.float32)[64:], False
        # Kernels go upwards from the first element.
        yield base[100::-1], base[200::-2], True
    else:
        yield base.numpy()[:2048], base[16:2064], True
        yield base[:2048], np.asarray(base)[2048:], True


def shifted(kernel: Any, x: Any, out: Any) -> tuple[list[float], list[float]]:
    """What the arrays hold after a launch."""
    x[:] = out[:] = 0
    for place in range(len(x)):
        x[place] = place
    kernel[(1,)](x, out, min(len(x), len(out), 50) - 1, BLOCK=64)
    return [float(each) for each in x], [float(each) for each in out]


@pytest.mark.parametrize("kind", ["numpy", pytest.param("torch", marks=needs_torch)])
def test_overlapping_arrays(kind: str) -> None:
    kernel = tritium.jit(shift.fn)
    other = tritium.jit(shift.fn)
    other._fast.worth_writing = lambda device: False
    for x, out, known in views(kind):
        expected = shifted(other, x, out)
        for _ in range(3):
            assert shifted(kernel, x, out) == expected
        before = kernel._fast.launches_by_python
        assert shifted(kernel, x, out) == expected
        assert (kernel._fast.launches_by_python == before) == known


@needs_torch
def test_the_way_to_a_tensors_storage_is_known() -> None:
    found = objects.torch_fields()
    assert found is not None
    assert found.implementation
    assert found.storage
    negated = objects.word(torch._neg_view(torch.zeros(3))._cdata + found.keys)
    assert negated & found.negated


@needs_torch
def test_each_dtype_of_torch_is_told_apart() -> None:
    found = objects.torch_fields()
    by_code: dict[int, Any] = {}
    for name in dir(torch):
        dtype = getattr(torch, name)
        if not isinstance(dtype, torch.dtype):
            continue
        with contextlib.suppress(RuntimeError, TypeError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensor = torch.empty(2, dtype=dtype)
            _, code = objects.describe(found.exchange, tensor)
            if not objects.is_ambiguous(code):
                assert by_code.setdefault(code, dtype) is dtype
    assert len(by_code) > 15


def test_a_way_that_is_not_there() -> None:
    class Storage:
        _cdata = 0

        def data_ptr(self) -> int:
            return 1

        def nbytes(self) -> int:
            return 3

    class Tensor:
        _cdata = 12345

        def untyped_storage(self) -> Storage:
            return Storage()

    assert objects._way([Tensor(), Tensor()]) is None
    assert objects._way([object()]) is None
    assert objects._negation(object(), [Tensor()]) is None


@needs_torch
def test_tensors_without_memory_of_their_own_are_refused_at_each_launch() -> None:
    adding = Adding(wrap=torch.from_numpy)
    freed = torch.zeros(64)
    freed.untyped_storage().resize_(0)
    imaginary = torch.zeros(64, dtype=torch.complex64).conj().imag
    for tensor, code in (
        (torch._neg_view(torch.zeros(64)), "E0501"),
        (imaginary, "E0501"),
        (freed, "E0515"),
        (torch.empty(64, device="meta"), "E0512"),
        (torch.eye(64).to_sparse(), "E0501"),
    ):
        for _ in range(3):
            with pytest.raises(TritiumError) as caught:
                adding.kernel[(4,)](tensor, adding.y, adding.out, 60, BLOCK=16)
            assert caught.value.code == code
    assert adding.natively()


# ---- objects and memory --------------------------------------------------------------------------


def test_a_launch_that_outlives_its_kernel() -> None:
    adding = Adding()
    launch = adding.kernel[(4,)]
    x, y, out = adding.x, adding.y, adding.out
    dead = weakref.ref(adding.kernel)
    del adding
    gc.collect()
    out[:] = 0
    launch(x, y, out, 64, BLOCK=16)
    assert (out == x + y).all()
    del launch
    gc.collect()
    assert dead() is None


def test_a_grid_function_that_does_away_with_everything(adding: Adding) -> None:
    other = Adding()

    def grid(values: dict[str, Any]) -> tuple[int]:
        adding.kernel.kernels.clear()
        gc.collect()
        assert other.natively()
        return (4,)

    def launch() -> Any:
        return adding.kernel[grid](adding.x, adding.y, adding.out, 60, BLOCK=16)

    for _ in range(5):
        adding.out[:] = 0
        assert isinstance(launch(), CompiledKernel)
        assert (adding.out[:60] == adding.host[0][:60] + 2).all()


def resident() -> int:
    """The bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def references(adding: Adding) -> list[int]:
    gc.collect()
    objects_ = [None, True, adding.x, adding.out, adding.launch(), adding.kernel, (4,), 60]
    total = getattr(sys, "gettotalrefcount", lambda: 0)()
    return [*map(sys.getrefcount, objects_), total]


@pytest.mark.parametrize("wrap", [np.asarray, pytest.param("torch", marks=needs_torch)])
def test_a_million_launches_leave_nothing_behind(wrap: Any) -> None:
    adding = Adding(wrap=torch.from_numpy if wrap == "torch" else wrap)
    kernel, x, y, out = adding.kernel, adding.x, adding.y, adding.out
    by_function = kernel[lambda values: (values["n"] // 16,)]

    def launch(count: int) -> None:
        for number in range(count):
            kernel[(number & 3,)](x, y, out, 64, BLOCK=16)
            if number % 16 == 0:
                by_function(x, y, out, 64, BLOCK=16)

    launch(1000)
    before, memory = references(adding), resident()
    calls = kernel._fast.launches_by_python
    launch(1_000_000)
    assert kernel._fast.launches_by_python == calls
    after = references(adding)
    assert all(abs(one - other) <= 50 for one, other in zip(before, after)), (before, after)
    assert resident() - memory < 2 << 20


def test_errors_leave_nothing_behind(adding: Adding) -> None:
    def fail() -> None:
        for grid, args in (
            ((1,), (adding.x, adding.y, adding.out)),
            ((1,), (adding.x, adding.y, [], 3)),
            ((-1,), (adding.x, adding.y, adding.out, 3)),
            (lambda values: values["none"], (adding.x, adding.y, adding.out, 3)),
            (lambda values: (1.5,), (adding.x, adding.y, adding.out, 3)),
        ):
            with pytest.raises((TritiumError, KeyError)):
                adding.kernel[grid](*args, BLOCK=16)

    for _ in range(20):
        fail()
    before = references(adding)
    for _ in range(200):
        fail()
    after = references(adding)
    assert all(abs(one - other) <= 20 for one, other in zip(before[:-1], after[:-1]))


# ---- threads, signals, processes -----------------------------------------------------------------


def test_a_million_launches_from_four_threads() -> None:
    adding = Adding()
    kernel = adding.kernel
    wrong: list[str] = []
    start = threading.Barrier(4)

    def launch(seed: int) -> None:
        x = np.full(64, seed, np.float32)
        y, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        start.wait()
        for number in range(250_000):
            place = number % 60
            out[place] = -1
            kernel[(4,)](x, y, out, 60, BLOCK=16)
            if out[place] != seed + place:
                wrong.append(f"{seed}: {number}")

    memory = resident()
    threads = [threading.Thread(target=launch, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert kernel._fast.launches_by_python == 2
    assert resident() - memory < 8 << 20


def test_settings_change_while_other_threads_launch() -> None:
    adding = Adding()
    kernel = adding.kernel
    stop = threading.Event()
    problems: list[BaseException] = []

    def launch(seed: int) -> None:
        try:
            x = np.full(64, seed, np.float32)
            y, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
            while not stop.is_set():
                out[:] = -1
                kernel[(4,)](x, y, out, 64, BLOCK=16)
                assert (out == x + y).all()
        except BaseException as problem:  # noqa: BLE001 - looked at below
            problems.append(problem)

    threads = [threading.Thread(target=launch, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(100):
        os.environ["TRITIUM_DEBUG"] = str(turn & 1)
        knobs.cpu.num_threads = 1 + turn % 3
        assert adding.launch().options.debug == bool(turn & 1)
        if turn % 10 == 0:
            kernel.kernels.clear()
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []


@tritium.jit
def slow(out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        total += tl.exp(total * 0.5 + i)
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total)


def test_ctrl_c() -> None:
    kernel = tritium.jit(slow.fn)
    out = np.zeros(64, np.float32)
    for _ in range(3):
        kernel[(4,)](out, 16, BLOCK=16)
    before = kernel._fast.launches_by_python
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    large = np.zeros(16 * 4096, np.float32)
    references = sys.getrefcount(large)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernel[(4096,)](large, 1_600_000, BLOCK=16)
    timer.join()
    assert kernel._fast.launches_by_python == before
    assert sys.getrefcount(large) == references
    kernel[(4,)](out, 16, BLOCK=16)


PRELUDE = """
import atexit, os, sys
import numpy as np
import tritium
import tritium.language as tl

@tritium.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs, offs < n) + tl.load(y + offs, offs < n), offs < n)

def launch(wrap=np.asarray, count=3):
    x, y, out = (wrap(np.full(64, i, np.float32)) for i in range(3))
    for _ in range(count):
        add[(4,)](x, y, out, 64, BLOCK=16)
    return int(out[0]), add._fast.launches_by_python
"""


def run(script: str, tmp_path: Any) -> str:
    file = tmp_path / "script.py"
    file.write_text(PRELUDE + textwrap.dedent(script))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_process_launches(tmp_path: Any) -> None:
    script = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    print(launch(), flush=True)
    child = os.fork()
    if child == 0:
        os.environ["TRITIUM_DEBUG"] = "1"
        print("child", launch(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(launch())
    """
    assert run(script, tmp_path) == "(1, 2)\nchild (1, 3)\n(1, 2)\n"


def test_launches_while_the_process_ends(tmp_path: Any) -> None:
    script = """
    class Last:
        def __init__(self):
            self.launch = add[(4,)]
            self.arrays = [np.full(64, i, np.float32) for i in range(3)]
        def __del__(self):
            self.launch(*self.arrays, 64, BLOCK=16)
            os.write(1, b"%d\\n" % self.arrays[2][0])
    launch()
    last = Last()
    atexit.register(lambda: print(launch(count=1), flush=True))
    """
    assert run(script, tmp_path) == "(1, 2)\n1\n"


@needs_torch
def test_torch_that_is_loaded_late(tmp_path: Any) -> None:
    script = """
    print(launch())
    assert "torch" not in sys.modules
    import torch
    print(launch(torch.from_numpy))
    """
    assert run(script, tmp_path) == "(1, 2)\n(1, 3)\n"
