"""The driver's functions, devices, what host code asks of them, and `tritium doctor`."""

from __future__ import annotations

import ctypes
import pathlib
import sys
import types
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.runtime.cuda.fake_driver import ATTRIBUTES, Fake

import tritium
from tritium import compat, knobs
from tritium.cli import main, probe
from tritium.diagnostics import TritiumError
from tritium.runtime import driver as host_driver
from tritium.runtime import placement
from tritium.runtime.cuda import devices, library, memory
from tritium.runtime.cuda.library import CudaFailure, Library, Unavailable
from tritium.runtime.driver import driver

torch = pytest.importorskip("torch", reason="torch's tensors stand for those of a GPU")


def test_failures_have_name_and_text(fake: Fake) -> None:
    fake.driver.status["cuDeviceGetName"] = 99
    with pytest.raises(CudaFailure) as caught:
        _ = devices.get(1).name
    problem = caught.value
    assert (problem.function, problem.status) == ("cuDeviceGetName", 99)
    assert (problem.name, problem.text) == ("CUDA_ERROR_99", "the text of 99")
    fake.driver.status |= {"cuGetErrorName": 1, "cuGetErrorString": 1}
    assert str(library.load().failure("f", 5)) == "f: CUDA error 5: no text"


def test_functions_that_a_driver_lacks() -> None:
    symbols = types.SimpleNamespace(cuInit=ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(abs))
    found = Library(symbols)
    found.cuInit(0)
    with pytest.raises(Unavailable, match="has no cuLaunchKernelEx: it is too old"):
        found.cuLaunchKernelEx(None, None, None, None)
    with pytest.raises(AttributeError):
        found.cuSomething()


def test_facts_of_a_device(fake: Fake) -> None:
    assert devices.count() == 2
    device = devices.get(1)
    assert device is devices.get(1)
    assert (str(device), device.name, device.capability) == ("cuda:1", "Fake GPU", (9, 0))
    assert device.most_shared == 227 << 10
    assert device.properties() == {
        "max_shared_mem": 227 << 10,
        "max_num_regs": ATTRIBUTES[12],
        "multiprocessor_count": 132,
        "warpSize": 32,
        "sm_clock_rate": ATTRIBUTES[13],
        "mem_clock_rate": ATTRIBUTES[36],
        "mem_bus_width": ATTRIBUTES[37],
    }
    for absent in (2, -1):
        with pytest.raises(Unavailable, match=f"2 GPUs, and none of the number {absent}"):
            devices.get(absent)
    assert devices.driver_version() == (13, 0)


def test_a_thread_keeps_the_context_that_it_had(fake: Fake) -> None:
    stack = fake.driver._stack()
    with devices.get(1).current():
        assert stack == [101]
        with devices.get(0).current():
            assert stack == [101, 100]
        with devices.get(1).current():
            assert stack == [101]
    assert stack == []
    # A thread without any gets that of the first device, as by the CUDA runtime.
    with devices.get(0).current():
        assert stack == [100]
    assert stack == [100]
    with pytest.raises(ZeroDivisionError), devices.get(1).current():
        _ = 1 // 0
    assert stack == [100]


@pytest.mark.parametrize(
    ("status", "words"), [(3, "forked"), (100, "no GPU"), (803, "doesn't start: CUDA_ERROR_803")]
)
def test_a_driver_that_does_not_start(fake: Fake, status: int, words: str) -> None:
    fake.driver.status["cuInit"] = status
    with pytest.raises(Unavailable, match=words) as caught:
        library.start(library.load())
    assert caught.value.hint


def test_no_driver_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = library.use(None)
    try:
        monkeypatch.setenv("TRITIUM_LIBCUDA_PATH", "/nowhere/libcuda.so")
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"no NVIDIA driver \(/nowhere/libcuda.so\)"):
                library.load()
        assert isinstance(driver.default, host_driver.CpuDriver)
        assert not host_driver.CudaDriver().is_active()
    finally:
        library.use(before)


def test_arrays_of_numpy_on_a_device(fake: Fake) -> None:
    host = np.arange(12, dtype=np.int16).reshape(3, 4).T
    there = memory.DeviceArray(devices.get(1), host)
    assert (there.numpy() == host).all()
    assert there.__cuda_array_interface__["shape"] == (4, 3)
    assert there.__cuda_array_interface__["data"][0] != host.ctypes.data
    there.free()
    assert "cuMemFree_v2" in fake.driver.log


# ---- what Triton's driver answers ----------------------------------------------------------------


class Cuda:
    """Of torch.cuda what is asked for."""

    def __init__(self, available: bool = True) -> None:
        self.current = 1
        self._available = available

    def is_available(self) -> bool:
        return self._available

    def set_device(self, ordinal: int) -> None:
        self.current = ordinal


def test_the_driver_of_gpus(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda()
    monkeypatch.setattr(torch, "cuda", cuda)
    stand_in = types.SimpleNamespace(
        cuda=types.SimpleNamespace(current_device=lambda: cuda.current),
        _C=types.SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: 40 + ordinal),
    )
    monkeypatch.setattr(devices, "torch_with_cuda", lambda: stand_in)
    active = driver.active
    assert active is driver.active
    assert active.is_active()
    assert active.get_current_target() == ("cuda", 90, 32)
    assert active.get_current_device() == 1
    assert active.get_current_stream(1) == 41
    assert active.get_device_capability(0) == (9, 0)
    assert active.get_active_torch_device() == torch.device("cuda:1")
    assert active.get_device_interface() is cuda
    active.set_current_device(0)
    assert active.get_current_device() == 0
    assert active.utils.get_device_properties(0)["warpSize"] == 32
    assert placement.default_device() == "cuda:0"


def test_what_only_torch_can_do(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = host_driver.CudaDriver()
    asked = []
    stand_in = types.SimpleNamespace(
        int="int", empty=lambda *given, **named: asked.append((given, named)) or torch.ones(3)
    )
    monkeypatch.setattr(gpus, "get_active_torch_device", lambda: "cuda:0")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", stand_in)
        held = gpus.get_empty_cache_for_benchmark()
    assert asked == [((1 << 26,), {"dtype": "int", "device": "cuda:0"})]
    gpus.clear_cache(held)
    assert held.tolist() == [0, 0, 0]
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "torch")
        for call in (lambda: gpus.set_current_device(1), gpus.get_empty_cache_for_benchmark):
            with pytest.raises(TritiumError) as caught:
                call()
            assert (caught.value.code, "set_default_device" in caught.value.help) == ("E0802", True)


def test_which_driver_is_active(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "cuda", Cuda(available=False))
    assert driver.active.get_current_target().backend == "cpu"
    tritium.set_default_device("cuda:1")
    assert driver.active.get_current_target().backend == "cuda"
    tritium.set_default_device("cpu")
    monkeypatch.setattr(torch, "cuda", Cuda())
    assert driver.active.get_current_target().backend == "cpu"
    tritium.set_default_device(None)
    assert driver.active.get_current_target().backend == "cuda"
    mine = object()
    driver.set_active(mine)
    assert driver.active is mine
    driver.reset_active()
    assert driver.active.get_current_target().backend == "cuda"


# ---- doctor --------------------------------------------------------------------------------------


def doctor() -> Any:
    # What it compiled before was for another fake.
    probe.double.kernels.clear()
    return CliRunner().invoke(main, ["doctor"])


def test_doctor_tells_of_gpus(fake: Fake) -> None:
    done = doctor()
    assert done.exit_code == 0, done.output
    for words in (
        "NVIDIA driver for CUDA 13.0: libcuda.so.1",
        "cuda:1: Fake GPU, compute capability 9.0 (code for sm_90a), 132 multiprocessors, 1 GiB",
        "no ptxas runs at /no/ptxas, which TRITIUM_PTXAS_PATH names",
        "no nvdisasm",
        "a kernel on cuda:0: right",
        "a kernel on cuda:1: right",
    ):
        assert words in done.output


def test_doctor_tells_of_gpus_that_do_not_work(fake: Fake) -> None:
    fake.driver.status["cuLaunchKernel"] = 719
    done = doctor()
    assert done.exit_code == 1
    for device in ("cuda:0", "cuda:1"):
        assert f"a kernel on {device}: {device} has stopped with CUDA_ERROR_719" in done.output
    fake.driver.status["cuDeviceGetCount"] = 804
    done = doctor()
    assert done.exit_code == 0
    assert "the NVIDIA driver fails: cuDeviceGetCount: CUDA_ERROR_804" in done.output
    del fake.driver.status["cuDeviceGetCount"]
    fake.driver.status["cuMemAlloc_v2"] = 2
    done = doctor()
    assert done.exit_code == 1
    assert "a kernel on cuda:1: cuMemAlloc_v2: CUDA_ERROR_2" in done.output


def test_doctor_without_a_gpu(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    library.use(None)
    with knobs.nvidia.scope():
        knobs.nvidia.libcuda = "/nowhere/libcuda.so"
        monkeypatch.setenv("TRITIUM_PTXAS_PATH", "")
        monkeypatch.setenv("PATH", "/nowhere")
        done = doctor()
    assert done.exit_code == 0
    assert "no GPU: there is no NVIDIA driver (/nowhere/libcuda.so)" in done.output


# ---- explain -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "double for sm_90a: 4 warps of 32 threads"),
        (["--layout"], "double for sm_90a: 4 warps of 32 threads"),
        (["--stage", "asm"], ".entry double"),
        (["--stage", "ptx"], ".entry double"),
        (["--stage", "ttir"], "func @double"),
        (["--stage", "sass"], "there is no nvdisasm to show machine code: install"),
    ],
)
def test_explain_a_kernel_of_a_gpu(
    fake: Fake, tmp_path: pathlib.Path, options: list[str], words: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, triton, triton.language as tl\n"
        "@triton.jit\ndef double(x_ptr):\n    tl.store(x_ptr, tl.load(x_ptr) * 2)\n"
        "x = torch.ones(4)\ndouble[(1,)](x)\nassert x[0] == 2\n"
    )
    done = CliRunner().invoke(main, ["explain", *options, str(script)])
    compat.uninstall()
    assert done.exit_code == 0, done.output
    assert "==== double(x_ptr: *fp32)" in done.output
    assert words in done.output
