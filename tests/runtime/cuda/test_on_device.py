"""The way to a real GPU: the steps of ``scripts/gpu_smoke.py``, and what only a device shows."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

import pytest

import tritium
import tritium.language as tl
from tritium.runtime import objects, placement
from tritium.runtime.cuda import devices
from tritium.runtime.driver import driver

torch = pytest.importorskip("torch", reason="torch's tensors stand for those of a GPU")

pytestmark = pytest.mark.gpu
SCRIPT = pathlib.Path(__file__).parents[3] / "scripts" / "gpu_smoke.py"
STEPS = (
    *("driver", "assemblers", "ptx", "kernel", "native"),
    *("streams", "graph", "threads", "copies", "errors"),
)


@pytest.fixture(scope="module")
def smoke() -> Any:
    spec = importlib.util.spec_from_file_location("gpu_smoke", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.cuda.init()
    return module


@pytest.mark.parametrize("step", STEPS)
def test_a_step(smoke: Any, step: str) -> None:
    assert getattr(smoke, step)()


def test_torch_tells_its_current_stream_natively(smoke: Any) -> None:
    function = objects.work_stream()
    assert function
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            assert objects.current_stream(function, 0) == stream.cuda_stream
            assert devices.current_stream(0) == stream.cuda_stream


def test_the_default_device_is_the_gpu_that_torch_uses(smoke: Any) -> None:
    assert placement.default_device() == "cuda:0"
    assert driver.active.get_current_target().backend == "cuda"
    assert driver.active.get_active_torch_device() == torch.device("cuda:0")
    properties = driver.active.utils.get_device_properties(0)
    torchs = torch.cuda.get_device_properties(0)
    assert properties["multiprocessor_count"] == torchs.multi_processor_count
    assert devices.get(0).name == torchs.name
    assert devices.get(0).memory == torchs.total_memory


@tritium.jit
def shifted(x, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        mask = start + offs < n
        tl.store(out + start + offs, tl.load(x + start + offs, mask) + 1, mask)


def test_arrays_that_overlap(smoke: Any) -> None:
    expected = torch.zeros(1025)
    for start in range(0, 1024, 128):
        expected[start + 1 : start + 129] = expected[start : start + 128].clone() + 1
    for _ in range(40):
        x = torch.zeros(1025, device="cuda")
        shifted[(1,)](x[:-1], x[1:], 1024, BLOCK=128)
        assert torch.equal(x.cpu(), expected)


def test_other_libraries_arrays(smoke: Any) -> None:
    class Interface:
        def __init__(self, tensor: torch.Tensor) -> None:
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

    class Capsule:
        def __init__(self, tensor: torch.Tensor) -> None:
            self.__dlpack__ = tensor.__dlpack__
            self.__dlpack_device__ = tensor.__dlpack_device__

    for wrap in (Interface, Capsule):
        x, y, out = smoke.operands(1000)
        smoke.add[(1,)](*map(wrap, (x, y, out)), 1000, BLOCK=1024)
        smoke.check(x, y, out)


def test_pinned_memory_is_the_gpus_too(smoke: Any) -> None:
    x, y = (torch.rand(1000).pin_memory() for _ in range(2))
    out = torch.empty(1000, device="cuda")
    smoke.add[(1,)](x, y, out, 1000, BLOCK=1024)
    assert torch.equal(out.cpu(), x + y)


def test_facts_of_loaded_code(smoke: Any) -> None:
    tensors = smoke.operands(1000)
    made = smoke.add[(1,)](*tensors, 1000, BLOCK=1024, num_warps=8)
    assert 8 <= made.n_regs <= 64
    assert made.n_spills == 0
    assert made.n_max_threads >= 256
    assert made.metadata.shared == 0
    assert made.asm["cubin"][:4] == b"\x7fELF"
    assert ".target sm_" in made.asm["ptx"]
