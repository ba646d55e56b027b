"""The arguments of native launches: those that it takes, and those that it leaves to Python."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.runtime.adding import Adding

import tritium
import tritium.language as tl
from tritium.backends.host import layout
from tritium.diagnostics import TritiumError
from tritium.runtime import hostcode, objects

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(not hostcode.SUPPORTED, reason="there is no native launch here")
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


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
