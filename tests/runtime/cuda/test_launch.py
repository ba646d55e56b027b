"""Launches through a fake driver: what it is given, by Python and natively, and what is refused."""

from __future__ import annotations

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import textwrap
import threading
import types
import warnings
from typing import Any

import numpy as np
import pytest
from tests.runtime.cuda.fake_driver import INVALID_VALUE, MOST_SHARED, STICKY, Fake

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.backends.nvptx.tools import Assembler
from tritium.diagnostics import LaunchError, TritiumError, TritiumWarning
from tritium.runtime import hostcode, objects
from tritium.runtime.cuda import assembly, devices, library, recent
from tritium.runtime.errors import OutOfResources, PTXASError

torch = pytest.importorskip("torch", reason="torch's tensors stand for those of a GPU")

natively = pytest.mark.skipif(
    not hostcode.SUPPORTED or objects.torch_fields() is None, reason="there is no native launch"
)


def add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask) + tl.load(y + offs, mask), mask)


def shifted(x, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        mask = start + offs < n
        tl.store(out + start + offs, tl.load(x + start + offs, mask) + 1, mask)


def scalars(out, a, b, c, d, e: tl.float64, f: tl.float16, g):
    value = a.to(tl.float64) + b + c.to(tl.float64) + d.to(tl.float64) + e + f
    tl.store(out, tl.where(g, value, -value))


def put(out, value):
    tl.store(out, value)


class Adding:
    """A kernel and its arguments."""

    def __init__(self, fake: Fake) -> None:
        self.fake = fake
        self.kernel = tritium.jit(add)
        self.x, self.y = torch.rand(100), torch.rand(100)
        self.out = torch.empty(100)

    def launch(self, **options: Any) -> Any:
        self.out.fill_(-1)
        made = self.kernel[(4,)](self.x, self.y, self.out, 99, BLOCK=32, **options)
        assert torch.equal(self.out[:99], (self.x + self.y)[:99])
        assert self.out[99] == -1
        return made

    def settle(self) -> None:
        """Launch until it is done natively."""
        for _ in range(3):
            self.launch()
        assert self.natively()

    def natively(self) -> bool:
        """Launch; whether Python had no part in it."""
        before = self.kernel._fast.launches_by_python
        self.launch()
        return self.kernel._fast.launches_by_python == before


@pytest.fixture
def adding(fake: Fake) -> Adding:
    return Adding(fake)


def refusal(call: Any, *args: Any, **keywords: Any) -> TritiumError:
    with pytest.raises(TritiumError) as caught:
        call(*args, **keywords)
    return caught.value


# ---- what the driver is given --------------------------------------------------------------------


def test_a_launch(adding: Adding) -> None:
    made = adding.launch(num_warps=8)
    (launch,) = adding.fake.driver.launches
    assert (launch.entry, launch.grid, launch.threads) == ("add", (4, 1, 1), 256)
    assert (launch.shared, launch.stream, launch.ordinal) == (0, 0, 0)
    pointers = [each.data_ptr() for each in (adding.x, adding.y, adding.out)]
    assert launch.words == [*pointers, 99]
    assert adding.fake.driver.log.count("cuModuleLoadData") == 1
    adding.launch(num_warps=8)
    assert adding.fake.driver.log.count("cuModuleLoadData") == 1
    assert made.target == ("cuda", 90, 32)


@natively
def test_native_launches_give_the_driver_the_same(adding: Adding) -> None:
    adding.settle()
    launches = adding.fake.driver.launches
    del launches[:]
    adding.fake.driver.stream = 77
    assert adding.natively()
    adding.kernel.run(adding.x, adding.y, adding.out, 99, BLOCK=32, grid=(4,))
    one, other = launches
    assert one == other
    assert one.stream == 77


@natively
@pytest.mark.parametrize("by_python", [False, True])
def test_every_type_of_number(fake: Fake, by_python: bool) -> None:
    kernel, out = tritium.jit(scalars), torch.zeros(1, dtype=torch.float64)
    args = (7, 2.5, -(1 << 40), (1 << 63) + (1 << 20), 0.1, 0.25, True)
    for _ in range(4):
        out.zero_()
        before = kernel._fast.launches_by_python
        if by_python:
            kernel.run(out, *args, grid=(1,))
        else:
            kernel[(1,)](out, *args)
        assert out.item() == 7 + 2.5 - (1 << 40) + float((1 << 63) + (1 << 20)) + 0.1 + 0.25
    # A number of half precision is Python's matter.
    assert kernel._fast.launches_by_python == before + 1
    words = [each.words for each in fake.driver.launches]
    assert words == [words[0]] * 4
    assert words[0][1] == 7
    assert np.array(words[0][3], np.uint64).view(np.int64) == -(1 << 40)
    assert words[0][4] == (1 << 63) + (1 << 20)
    assert np.array(words[0][5], np.uint64).view(np.float64) == 0.1


@natively
def test_three_axes_and_functions_of_the_arguments(adding: Adding) -> None:
    adding.settle()
    launches = adding.fake.driver.launches
    for grid, extents in (((4, 2, 3), (4, 2, 3)), ((1, 5), (1, 5, 1)), (6, (6, 1, 1))):
        for _ in range(2):
            adding.kernel[grid](adding.x, adding.y, adding.out, 99, BLOCK=32)
            assert launches[-1].grid == extents
    adding.kernel[lambda meta: (meta["BLOCK"] // 8,)](adding.x, adding.y, adding.out, 99, BLOCK=32)
    assert launches[-1].grid == (4, 1, 1)


def test_an_empty_grid_launches_nothing(adding: Adding) -> None:
    for _ in range(4):
        adding.kernel[(0,)](adding.x, adding.y, adding.out, 99, BLOCK=32)
    assert adding.fake.driver.launches == []


def test_arrays_that_overlap_take_the_other_version(fake: Fake) -> None:
    kernel = tritium.jit(shifted)
    for _ in range(4):
        x = torch.zeros(65)
        kernel[(1,)](x[:-1], x[1:], 64, BLOCK=16)
        # Each block of 16 is loaded before it is stored.
        expected = torch.zeros(65)
        for start in range(0, 64, 16):
            expected[start + 1 : start + 17] = expected[start : start + 16].clone() + 1
        assert torch.equal(x, expected)
        out = torch.zeros(65)[1:]
        kernel[(1,)](x[:-1].clone(), out, 64, BLOCK=16)
        assert torch.equal(out, x[:-1] + 1)
    assert [name.rpartition(" ")[2] for name in fake.backend.compiled] == ["True", "False"]


def test_streams(adding: Adding) -> None:
    adding.fake.driver.stream = 4242
    made = adding.launch()
    assert adding.fake.driver.launches[-1].stream == 4242
    args = (adding.x, adding.y, adding.out, 99, 32)
    made[(4, 1, 1)](*args, stream=7)
    assert adding.fake.driver.launches[-1].stream == 7
    made[(4, 1, 1)](*args, stream=types.SimpleNamespace(cuda_stream=9))
    assert adding.fake.driver.launches[-1].stream == 9
    made.run(4, 1, 1, 11, made.function, made.packed_metadata, None, None, None, *args)
    assert adding.fake.driver.launches[-1].stream == 11


def test_arrays_made_on_another_stream_are_waited_for(fake: Fake) -> None:
    class Made:
        def __init__(self, stream: int | None) -> None:
            self.tensor = torch.zeros(4)
            self.__cuda_array_interface__ = {
                "shape": (4,),
                "typestr": "<f4",
                "data": (self.tensor.data_ptr(), False),
                "stream": stream,
                "version": 3,
            }

    kernel = tritium.jit(put)
    for stream, current, waits in (
        (None, 0, []),
        (1, 0, []),
        (5, 5, []),
        (5, 0, [(0, 5)]),
        (5, 6, [(6, 5)]),
        (1, 6, [(6, 1)]),
    ):
        fake.driver.stream = current
        array = Made(stream)
        kernel[(1,)](array, 3.5)
        assert array.tensor[0] == 3.5
        assert fake.driver.waits == waits
        del fake.driver.waits[:]


def test_an_address_that_no_device_has_is_refused(fake: Fake) -> None:
    class Freed:
        __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (4096, False)}

    fake.driver.unknown.add(4096)
    with pytest.raises(tritium.TritiumError) as caught:
        tritium.jit(put)[(1,)](Freed(), 3.5)
    assert caught.value.code == "E0513"
    assert "is on no device: the NVIDIA driver says of its address: " in caught.value.message
    assert fake.driver.launches == []


def test_a_cooperative_grid(adding: Adding) -> None:
    adding.launch(launch_cooperative_grid=True)
    for _ in range(3):
        adding.launch(launch_cooperative_grid=True)
    assert adding.fake.driver.log.count("cuLaunchKernelEx") == 4
    assert adding.fake.driver.launches[-1].threads == 128


def test_without_torch_the_default_stream_is_used(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "torch_with_cuda", lambda: None)
    adding.fake.driver.stream = 9
    adding.launch()
    assert adding.fake.driver.launches[-1].stream == 0
    assert devices.current_ordinal() == 0


# ---- contexts ------------------------------------------------------------------------------------


def test_threads_have_no_context_at_first(adding: Adding) -> None:
    adding.settle()
    problems: list[BaseException] = []
    together = threading.Barrier(4)

    def work() -> None:
        together.wait(60)
        mine = Adding(adding.fake)
        mine.kernel = adding.kernel
        try:
            for _ in range(20):
                mine.launch()
            # The thread has one since the first launch.
            assert mine.natively() or not hostcode.SUPPORTED
        except BaseException as problem:  # noqa: BLE001 - raised below
            problems.append(problem)
        together.wait(60)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not problems, problems[0]
    assert len({each.thread for each in adding.fake.driver.launches}) == 5


def test_another_device_is_current(adding: Adding) -> None:
    adding.settle()
    stack = adding.fake.driver._stack()
    stack.append(101)
    assert not adding.natively()
    assert stack == [100, 101]
    assert adding.fake.driver.launches[-1].ordinal == 0
    stack.pop()
    assert adding.natively()


def test_two_devices(fake: Fake) -> None:
    class Tensor:
        dtype = "float32"

        def __init__(self, device: str) -> None:
            self.device, self.held = device, torch.zeros(4)

        def data_ptr(self) -> int:
            return self.held.data_ptr()

    kernel = tritium.jit(put)
    for device in (1, 0, 1):
        tensor = Tensor(f"cuda:{device}")
        kernel[(1,)](tensor, 2.5)
        assert tensor.held[0] == 2.5
        assert fake.driver.launches[-1].ordinal == device
    assert fake.driver.log.count("cuModuleLoadData") == 2
    problem = refusal(kernel[(1,)], Tensor("cuda:7"), 2.5)
    assert problem.code == "E0519"
    assert "2 GPUs" in problem.message


# ---- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("settled", [False, True])
def test_a_device_that_has_stopped(adding: Adding, settled: bool) -> None:
    if settled:
        adding.settle()
        assert adding.natively()
    else:
        adding.launch()
    other = tritium.jit(put)
    other[(1,)](adding.out, 1.5)
    adding.fake.driver.status["cuLaunchKernel"] = STICKY
    problem = refusal(adding.launch)
    assert isinstance(problem, LaunchError)
    assert (problem.code, problem.argument) == ("E0521", None)
    assert "cuda:0 has stopped with CUDA_ERROR_700: the text of 700" in problem.message
    # It is one of those that were launched before, most likely the last one.
    line = put.__code__.co_firstlineno
    assert f"put ({__file__}:{line})" in problem.message
    assert "add (" in problem.message
    assert "compute-sanitizer" in problem.help
    assert problem.loc is not None
    del adding.fake.driver.status["cuLaunchKernel"]
    adding.launch()


@pytest.mark.parametrize(
    ("status", "help"), [(2, "empty_cache"), (701, "num_warps"), (720, "smaller grid"), (999, "")]
)
def test_other_failures_of_the_driver(adding: Adding, status: int, help: str) -> None:
    adding.launch()
    adding.fake.driver.status["cuLaunchKernel"] = status
    problem = refusal(adding.launch)
    assert problem.code == "E0520"
    assert f"add: cuLaunchKernel failed with CUDA_ERROR_{status}" in problem.message
    assert help in problem.help


def test_failures_of_loading(adding: Adding) -> None:
    for function in ("cuModuleLoadData", "cuModuleGetFunction", "cuFuncGetAttribute"):
        adding.fake.driver.status[function] = 209
        problem = refusal(adding.launch)
        assert problem.code == "E0520"
        assert function in problem.message
        assert "TRITIUM_CUDA_ARCH" in problem.help
        del adding.fake.driver.status[function]
    adding.launch()


def test_too_much_shared_memory(adding: Adding) -> None:
    adding.fake.backend.shared = MOST_SHARED + 1
    problem = refusal(adding.launch)
    assert isinstance(problem, OutOfResources)
    assert (problem.required, problem.limit) == (MOST_SHARED + 1, MOST_SHARED)
    assert "shared memory" in problem.message
    assert "num_stages" in problem.help
    again = pickle.loads(pickle.dumps(problem))
    assert (again.required, again.help) == (problem.required, problem.help)


def test_shared_memory_beyond_what_any_block_has_is_asked_for(fake: Fake) -> None:
    for shared, asked in ((0, 0), (48 << 10, 0), ((48 << 10) + 16, 1), (MOST_SHARED, 1)):
        fake.backend.shared = shared
        mine = Adding(fake)
        with knobs.compilation.scope():
            knobs.compilation.always_compile = True
            made = mine.launch()
        assert fake.driver.log.count("cuFuncSetAttribute") == asked
        assert fake.driver.launches[-1].shared == shared
        assert made.metadata.shared == shared
        assert made.packed_metadata == (4, 1, shared)
        fake.driver.log.clear()


def test_too_many_threads(adding: Adding) -> None:
    adding.fake.driver.most_threads = 256
    problem = refusal(adding.launch, num_warps=16)
    assert isinstance(problem, OutOfResources)
    assert (problem.name, problem.required, problem.limit) == ("threads", 512, 256)
    assert "num_warps" in problem.help
    adding.launch(num_warps=8)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_warps", 64),
        ("num_ctas", 2),
        *(("maxnreg", value) for value in (0, -8, 2.5, "64", True)),
        *(("ptx_options", value) for value in (5, ["-O1"])),
    ],
)
def test_options_that_no_gpu_has(adding: Adding, name: str, value: Any) -> None:
    problem = refusal(adding.launch, **{name: value})
    assert (problem.code, problem.argument) == ("E0515", name)


def test_grids_that_no_gpu_takes(adding: Adding) -> None:
    for _ in range(4):
        args = (adding.x, adding.y, adding.out, 99)
        problem = refusal(adding.kernel[(1, 65536)], *args, BLOCK=32)
        assert (problem.code, problem.argument) == ("E0510", "grid")
        adding.launch()
    adding.kernel[(1, 65535, 1)](*args, BLOCK=32)


def test_a_stream_that_is_refused_is_tried_again_by_python(adding: Adding) -> None:
    adding.settle()
    calls = adding.fake.driver.log.count("cuLaunchKernel")
    adding.fake.driver.status["cuLaunchKernel"] = INVALID_VALUE
    assert refusal(adding.launch).code == "E0520"
    assert adding.fake.driver.log.count("cuLaunchKernel") >= calls + 1 + hostcode.SUPPORTED


def test_mixed_devices(fake: Fake) -> None:
    kernel = tritium.jit(add)
    near = np.zeros(100, np.float32)
    problem = refusal(kernel[(1,)], torch.zeros(100), near, torch.zeros(100), 1, BLOCK=16)
    assert (problem.code, problem.argument) == ("E0512", "y")
    assert "y on cpu" in problem.message
    assert fake.driver.launches == []


def test_code_is_not_loaded_while_a_graph_is_captured(adding: Adding) -> None:
    adding.fake.driver.capturing = 1
    problem = refusal(adding.kernel[(4,)], adding.x, adding.y, adding.out, 99, BLOCK=32)
    assert problem.code == "E0522"
    assert "warmup" in problem.help
    assert "cuModuleLoadData" not in adding.fake.driver.log
    adding.fake.driver.capturing = 0
    adding.kernel.warmup(*(torch.float32,) * 3, 99, BLOCK=32, grid=(1,))
    adding.fake.driver.capturing = 1
    log = adding.fake.driver.log
    for _ in range(5):
        log.clear()
        adding.kernel[(4,)](adding.x, adding.y, adding.out, 99, BLOCK=32)
        # Nothing but contexts and the launch.
        assert set(log) <= {"cuCtxGetCurrent", "cuLaunchKernel", "cuDeviceGetCount"}
    assert len(adding.fake.driver.launches) == 5


@natively
def test_native_launches_are_prepared_after_a_capture(adding: Adding) -> None:
    adding.launch()
    adding.fake.driver.capturing = 1
    args = (adding.x, adding.y, adding.out, 99)
    for _ in range(3):
        adding.kernel[(4,)](*args, BLOCK=32)
    assert adding.kernel._fast.launches_by_python == 4
    adding.fake.driver.capturing = 0
    adding.launch()
    assert adding.natively()
    adding.fake.driver.capturing = 1
    adding.kernel[(4,)](*args, BLOCK=32)
    assert adding.kernel._fast.launches_by_python == 5
    assert len(adding.fake.driver.launches) == 7


def test_a_capture_of_another_stream_counts_too(adding: Adding) -> None:
    adding.fake.driver.status["cuStreamIsCapturing"] = 906
    assert refusal(adding.launch).code == "E0522"
    adding.fake.driver.status["cuStreamIsCapturing"] = 1
    assert refusal(adding.launch).code == "E0520"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("settled", [False, True])
def test_a_fork(adding: Adding, settled: bool) -> None:
    adding.settle() if settled else adding.launch()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        adding.fake.driver.status["cuLaunchKernel"] = library.NOT_INITIALIZED
        try:
            adding.launch()
            said = "nothing"
        except TritiumError as problem:
            said = f"{problem.code} {problem.message} {problem.help}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    said = os.read(reader, 1 << 12).decode()
    os.close(reader)
    assert said.startswith("E0519")
    assert "forked" in said
    assert "spawn" in said


# ---- what is compiled ----------------------------------------------------------------------------


def test_what_a_compiled_kernel_tells(adding: Adding) -> None:
    made = adding.launch(num_warps=2)
    assert (made.n_regs, made.n_spills, made.n_max_threads) == (24, 0, 1024)
    assert made.metadata.num_warps == 2
    assert made.metadata.warp_size == 32
    assert made.metadata.backend_name == "cuda"
    assert made.metadata.target == ("cuda", 90, 32)
    assert isinstance(made.function, int)
    assert made.function == made.module
    assert [*made.asm] == ["source", "ttir", "optimised", "homes", "llir", "ptx", "cubin", "sass"]
    assert "tt" not in made.asm["cubin"].decode()[:4]
    assert made.kernel == made.asm["cubin"]
    assert ".entry add" in made.asm["ptx"]
    assert refusal(made.asm.__getitem__, "sass").code == "E0802"


def test_fusion_is_on_for_gpus_unless_it_is_said(fake: Fake) -> None:
    for given, fused in (({}, True), ({"enable_fp_fusion": False}, False)):
        made = Adding(fake).launch(**given)
        assert made.code.fuse is fused
    with knobs.language.scope():
        knobs.language.default_fp_fusion = False
        assert Adding(fake).launch().code.fuse is False


def test_hooks_are_told_of_launches(adding: Adding) -> None:
    told: list[Any] = []
    adding.settle()
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook = told.append
        adding.fake.driver.stream = 0
        made = adding.launch()
        (metadata,) = told
        assert metadata.get()["name"] == "add"
        assert metadata.get()["function"] == made.function
    assert adding.natively() or not hostcode.SUPPORTED


def test_registers_in_memory_are_warned_of_once(fake: Fake) -> None:
    mine = Adding(fake)
    fake.driver.spilled = 6
    with warnings.catch_warnings(record=True) as caught, knobs.compilation.scope():
        knobs.compilation.always_compile = True
        warnings.simplefilter("always", TritiumWarning)
        mine.launch()
        assert mine.launch().n_spills == 1
    (warning,) = caught
    assert isinstance(warning.message, TritiumWarning)
    assert warning.message.code == "W0903"
    assert "add: 2 registers" in warning.message.message
    assert (warning.filename, warning.lineno) == (__file__, add.__code__.co_firstlineno)


def test_ptx_that_is_refused(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    from tritium.backends.nvptx import compile as nvptx

    made = nvptx.compile_kernel

    def broken(*args: Any, **keywords: Any) -> Any:
        found = made(*args, **keywords)
        text = '.file 1 "here.py"\n.loc 1 12 0\nbad;\n'
        return nvptx.GpuKernel(**{**vars(found), "ptx": text})

    monkeypatch.setattr(nvptx, "compile_kernel", broken)
    problem = refusal(adding.launch)
    assert isinstance(problem, PTXASError)
    assert "add at here.py:12: Not a name: bad;" in problem.message


def test_an_assembler_that_can_not_be_run(
    adding: Adding, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """It has no folder to work in."""
    tool = Assembler(sys.executable, "13.0.88", 90, frozenset({"sm_90a"}))
    monkeypatch.setattr(assembly, "assembler", lambda: tool)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    problem = refusal(adding.launch)
    assert isinstance(problem, PTXASError)
    assert "add: ptxas could not be run: " in problem.message
    assert "absent" in problem.message


def test_options_of_the_assembler(fake: Fake) -> None:
    made = Adding(fake).launch(maxnreg=64)
    assert "\n.maxnreg 64\n{" in made.asm["ptx"]
    assert "maxnreg" not in Adding(fake).launch().asm["ptx"]


def test_warmup_loads_nothing_where_a_target_is_named(adding: Adding) -> None:
    for target, arch in (
        ("sm_80", 80),
        (tritium.runtime.compiled.GPUTarget("cuda", 89, 32), 89),
        (90, 90),
    ):
        made = adding.kernel.warmup(*(torch.float32,) * 3, 99, BLOCK=32, grid=(1,), target=target)
        assert made.target == ("cuda", arch, 32)
        assert ".entry add" in made.asm["ptx"]
        assert (made.function, made.module, made.n_max_threads) == (None, None, 0)
        # There is nobody to assemble it.
        assert refusal(made.asm.__getitem__, "cubin").code == "E0519"
        args = (adding.x, adding.y, adding.out, 99, 32)
        assert refusal(made[(1,)], *args).code == "E0519"
    assert {*adding.fake.driver.log} <= {"cuDriverGetVersion"}
    wrong = refusal(adding.kernel.warmup, torch.float32, grid=(1,), target="gfx942")
    assert (wrong.code, wrong.argument) == ("E0515", "target")
    unknown = refusal(
        adding.kernel.warmup, *(torch.float32,) * 3, 99, BLOCK=32, grid=(1,), target="sm_11"
    )
    assert unknown.code == "E0519"
    assert "TRITIUM_CUDA_ARCH" not in unknown.help


def test_a_parameter_of_that_name_is_no_target(fake: Fake) -> None:
    @tritium.jit
    def named(out, target):
        tl.store(out, tl.load(target))

    made = named.warmup(torch.float32, target=torch.float32, grid=(1,))
    assert made.target == ("cuda", 90, 32)


def test_another_architecture_by_knob(fake: Fake) -> None:
    adding = Adding(fake)
    made = [adding.launch() for _ in range(3)]
    for name in ("sm80", "sm_80"):
        with knobs.nvidia.scope():
            knobs.nvidia.arch = name
            made.append(adding.launch())
    with knobs.nvidia.scope():
        knobs.nvidia.arch = "sm_11"
        assert "unset TRITIUM_CUDA_ARCH" in refusal(adding.launch).help
    made.append(adding.launch())
    assert [each.target.arch for each in made] == [90] * 3 + [80] * 2 + [90]


# ---- without arrays ------------------------------------------------------------------------------


def test_the_default_device(fake: Fake) -> None:
    @tritium.jit
    def nothing(n):
        tl.static_assert(True)

    def ordinal() -> int | None:
        before = len(fake.driver.launches)
        nothing[(1,)](5)
        launches = fake.driver.launches
        return launches[-1].ordinal if len(launches) > before else None

    assert ordinal() == 0
    tritium.set_default_device("cpu")
    assert [ordinal() for _ in range(4)] == [None] * 4
    tritium.set_default_device("cuda:1")
    assert [ordinal() for _ in range(4)] == [1] * 4
    tritium.set_default_device("cpu")
    assert [ordinal() for _ in range(4)] == [None] * 4
    tritium.set_default_device(None)
    assert ordinal() == 0


# ---- step by step --------------------------------------------------------------------------------


def test_the_interpreter_works_on_copies(fake: Fake) -> None:
    base = torch.rand(300)
    x, y, out = base[:100], base[100:200], base[200:]
    expected = torch.cat([x, y, x + y])
    tritium.jit(add).interpret[(4,)](x, y, out, 100, BLOCK=32)
    assert torch.equal(base, expected)
    # The storage went there and back once.
    for function in ("cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2"):
        assert fake.driver.log.count(function) == 1
    assert fake.driver.launches == []


def test_storages_side_by_side_have_copies_of_their_own(fake: Fake) -> None:
    base = np.arange(200, dtype=np.float32)
    x, out = torch.from_numpy(base[:100]), torch.from_numpy(base[100:])
    tritium.jit(add).interpret[(4,)](x, x, out, 100, BLOCK=32)
    assert (base[100:] == 2 * np.arange(100)).all()
    assert fake.driver.log.count("cuMemcpyDtoH_v2") == 2


def test_copies_show_what_was_written_before_an_error(fake: Fake) -> None:
    @tritium.jit
    def failing(out):
        tl.store(out, 5.0)
        raise ValueError("no")

    out = torch.zeros(3)
    with pytest.raises(TritiumError):
        failing.interpret[(1,)](out)
    assert out.tolist() == [5, 0, 0]


# ---- what there is not ---------------------------------------------------------------------------

WITHOUT = """
import tritium, tritium.language as tl
@tritium.jit
def put(out, value):
    tl.store(out, value)
class Far:
    dtype, device = "float32", "cuda:0"
    def data_ptr(self):
        return 4096
try:
    put[(1,)](Far(), 1.5)
except tritium.TritiumError as problem:
    print(problem.code, problem.message, "|", problem.help)
"""


def test_without_a_driver(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(WITHOUT))
    environment = {**os.environ, "TRITIUM_LIBCUDA_PATH": str(tmp_path / "libcuda.so.1")}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, check=True
    )
    said = done.stdout
    assert said.startswith("E0519 put can't run on cuda:0: there is no NVIDIA driver")
    assert "on this machine" in said
    assert "put the arrays on the CPU" in said


def test_without_a_gpu(fake: Fake) -> None:
    fake.driver.count = 0
    with pytest.raises(library.Unavailable, match="finds no GPU"):
        library.start(library.load())
    problem = refusal(tritium.jit(put)[(1,)], torch.zeros(3), 1.5)
    assert problem.code == "E0519"
    assert "no GPU" in problem.message


def test_recent_launches_are_told_apart() -> None:
    numbers = [recent.number(recent.Launched(name, "file.py", 3)) for name in "abc"]
    for each in (*numbers, numbers[0], numbers[1]):
        recent.note(each)
    assert [each.name for each in recent.launched()[:3]] == ["b", "a", "c"]
    for _ in range(40):
        recent.note(numbers[2])
    assert [str(each) for each in recent.launched()] == ["c (file.py:3)"]
