"""Operations that an executor has no code for are refused, with the line."""

from __future__ import annotations

import inspect

import pytest
from tests.backends.nvptx import kernels
from tests.backends.nvptx.test_structure import add

from tritium.backends.cpu.compile import compile_kernel as compile_cpu
from tritium.backends.llvm import host_target
from tritium.backends.nvptx.compile import compile_kernel as compile_nvptx
from tritium.backends.nvptx.target import gpu_target
from tritium.diagnostics import TritiumError
from tritium.ops.memory import Store


def test_the_line_and_the_reason_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    function = add()
    monkeypatch.setattr(Store, "unsupported", {"nvptx": "not built", "cpu": "not here"})
    with pytest.raises(
        TritiumError, match=r"memory\.store has no code for nvptx: not built"
    ) as info:
        compile_nvptx(function, gpu_target("sm_90a"), num_warps=4, disjoint=True)
    assert info.value.code == "E0211"
    lines, first = inspect.getsourcelines(kernels.add.fn)
    (line,) = [at for at, text in enumerate(lines, first) if "tl.store" in text]
    assert info.value.loc is not None
    assert info.value.loc.line == line
    with pytest.raises(TritiumError, match=r"memory\.store has no code for cpu: not here"):
        compile_cpu(function, host_target(), disjoint=True)


def test_other_executors_have_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "unsupported", {"nvptx": "not built"})
    assert compile_cpu(add(), host_target(), disjoint=True).object
