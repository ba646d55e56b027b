"""Machine code for GPUs in the cache: what it is found by, what damage does, a second process."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.runtime.cuda.fake_driver import ATTRIBUTES, Fake

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.backends.nvptx import ptxas, tools
from tritium.diagnostics import InternalError
from tritium.runtime import cache
from tritium.runtime.cuda import assembly, devices

torch = pytest.importorskip("torch", reason="torch's tensors stand for those of a GPU")

ROOT = pathlib.Path(__file__).parents[3]


def double(x, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs, offs < n) * 2, offs < n)


def launch(**options: Any) -> Any:
    """In a process that knows nothing of the kernel: compile it, or find it in the cache."""
    x, out = torch.arange(100, dtype=torch.float32), torch.zeros(100)
    made = tritium.jit(double)[(4,)](x, out, 100, BLOCK=32, **options)
    assert torch.equal(out, 2 * x)
    return made


def is_cached(**options: Any) -> bool:
    return bool(launch(**options).code.version(True).cached)


def entries() -> list[pathlib.Path]:
    return sorted(pathlib.Path(cache.folder()).glob(f"*{cache.SUFFIX}"))


def test_code_is_found_again(fake: Fake) -> None:
    first = launch()
    assert not first.code.version(True).cached
    again = launch()
    assert again.code.version(True).cached
    assert len(fake.backend.compiled) == len(entries()) == 1
    for stage in ("ttir", "ptx", "cubin", "llir", "homes"):
        assert again.asm[stage] == first.asm[stage]
    where = double.__code__.co_firstlineno + 2
    assert f"line {where} " in again.asm["homes"]
    assert "loc(" not in again.asm["ttir"]
    assert (again.n_regs, again.metadata.shared) == (first.n_regs, first.metadata.shared)
    assert again.hash == first.hash


@pytest.mark.parametrize(
    "options", [{"num_warps": 8}, {"maxnreg": 32}, {"ptx_options": "-O1"}, {"enable_fp_fusion": 0}]
)
def test_options_make_other_code(fake: Fake, options: dict[str, Any]) -> None:
    launch()
    assert not is_cached(**options)
    assert is_cached(**options)
    assert is_cached()


def test_another_device_takes_no_code_of_this_one(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch()
    monkeypatch.setitem(ATTRIBUTES, 75, 8)
    devices._device.cache_clear()
    assert not is_cached()
    assert is_cached()
    monkeypatch.undo()
    devices._device.cache_clear()
    assert is_cached()


def test_another_driver_assembles_anew(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    launch()
    monkeypatch.setattr(devices, "driver_version", lambda: (13, 1))
    assert not is_cached()
    assert is_cached()


class Tool:
    """A ptxas that a test stands for."""

    def __init__(self, patch: pytest.MonkeyPatch, fake: Fake) -> None:
        self.release = "13.0.88"
        self.arches = frozenset({"sm_90a"})
        self.calls: list[tuple[str, list[str]]] = []
        patch.setattr(assembly, "assembler", self.tool)
        patch.setattr(ptxas, "Assembling", self.start)
        self.fake = fake

    def tool(self) -> tools.Assembler:
        return tools.Assembler("/some/ptxas", self.release, 90, self.arches)

    @contextlib.contextmanager
    def start(self, path: str, arch: str, options: list[str]) -> Iterator[SimpleNamespace]:
        self.calls.append((arch, options))

        def finish(text: str, meanwhile: Callable[[], None]) -> Any:
            meanwhile()
            return assembly.link(devices.get(0), text)

        yield SimpleNamespace(finish=finish)


def test_another_ptxas_assembles_anew(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Tool(monkeypatch, fake)
    launch(ptx_options="-O2 --def-load-cache ca")
    assert tool.calls == [("sm_90a", ["-O2", "--def-load-cache", "ca"])]
    launch()
    assert is_cached()
    tool.release = "13.1.5"
    assert not is_cached()
    # With ptxas the driver's version doesn't matter.
    monkeypatch.setattr(devices, "driver_version", lambda: (12, 0))
    assert is_cached()


def test_the_driver_assembles_what_ptxas_can_not(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Tool(monkeypatch, fake)
    tool.arches = frozenset({"sm_80"})
    launch()
    assert tool.calls == []
    assert "cuLinkComplete" in fake.driver.log


def test_a_driver_that_is_too_old_for_the_ptx(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "driver_version", lambda: (11, 8))
    with pytest.raises(tritium.TritiumError) as caught:
        launch()
    assert caught.value.code == "E0519"
    assert "the driver (CUDA 11.8) is too old to assemble PTX 8." in caught.value.message


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "swap", "format", "facts"])
def test_damaged_entries_are_compiled_again(fake: Fake, damage: str) -> None:
    launch()
    (file,) = entries()
    data = file.read_bytes()
    if damage == "swap":
        launch(num_warps=8)
        other = next(each for each in entries() if each != file)
        data = other.read_bytes()
    changed = {
        "cut": data[:-7],
        "flip": data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
        "empty": b"",
        "swap": data,
        "format": b"another format" + data,
    }
    if damage == "facts":
        entry = cache.decode(data, file.name)
        assert entry is not None
        entry.facts["alias_pairs"] = 3
        changed["facts"] = cache.encode(entry, file.name)
    file.write_bytes(changed[damage])
    assert not is_cached()
    assert is_cached()


def test_what_led_to_code_is_kept_whether_or_not_there_is_any(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def manifests() -> int:
        return len(list(pathlib.Path(cache.folder()).glob(f"*{cache.MANIFEST_SUFFIX}")))

    with monkeypatch.context() as patch:
        patch.setattr(assembly, "link", lambda *_: 1 / 0)
        with pytest.raises(InternalError):
            launch()
    assert (manifests(), entries()) == (1, [])
    launch()
    assert (manifests(), len(entries())) == (1, 1)
    # Other options, the same code: only what leads to it is new.
    launch(num_stages=7)
    assert (manifests(), len(entries())) == (2, 1)


def test_code_is_compiled_anew_where_that_is_said(fake: Fake) -> None:
    launch()
    with knobs.compilation.scope():
        knobs.compilation.always_compile = True
        assert not is_cached()
    assert is_cached()


def test_code_that_nobody_could_assemble_is_not_kept(fake: Fake) -> None:
    kernel = tritium.jit(double)
    made = kernel.warmup(*(torch.float32,) * 2, 100, BLOCK=32, grid=(1,), target="sm_90a")
    assert made.asm["ptx"]
    assert entries() == []


# ---- other processes -----------------------------------------------------------------------------

PROGRAM = """
import json, sys, time
import numpy as np
import tritium, tritium.language as tl
from tests.runtime.cuda.fake_driver import installed

@tritium.jit
def double(x, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs, offs < n) * 2, offs < n)

class Array:
    dtype, device = "float32", "cuda:0"
    def __init__(self):
        self.held = np.ones(64, np.float32)
    def data_ptr(self):
        return self.held.ctypes.data

with installed() as fake:
    fake.driver.run_unknown = True
    x, out = Array(), Array()
    for _ in range(4):
        made = double[(2,)](x, out, 64, BLOCK=32)
    lazy = ["backends.nvptx.ptxas", "backends.nvptx.sass", "runtime.cuda.problems"]
    names = ["llvmlite", "torch", "cuda", *(f"tritium.{name}" for name in lazy)]
    loaded = [name for name in names if name in sys.modules]
    print(json.dumps([made.code.version(True).cached, loaded, len(fake.driver.launches)]))
"""


def test_a_second_process_needs_no_llvm(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
        "TRITIUM_CACHE_DIR": str(tmp_path / "cache"),
    }
    told = [
        json.loads(
            subprocess.run(
                [sys.executable, script],
                capture_output=True,
                text=True,
                env=environment,
                check=True,
            ).stdout
        )
        for _ in range(2)
    ]
    compiling = ["llvmlite", "tritium.backends.nvptx.ptxas"]
    assert told == [[False, compiling, 4], [True, [], 4]]
