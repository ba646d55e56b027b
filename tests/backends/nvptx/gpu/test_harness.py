"""What runs the cases on a GPU, tried without one: memory, faults, compilers that die."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from tests.backends.cpu import one_op
from tests.backends.nvptx.emulator import unsupported
from tests.backends.nvptx.gpu import batches, compiling, device, gridded
from tests.backends.nvptx.gpu.batches import BATCH, Batch
from tests.backends.nvptx.gpu.compiling import Code, Failed, Farm, Part
from tests.backends.nvptx.gpu.device import Fault
from tests.backends.nvptx.gpu.host import Host as EmulatorHost
from tests.backends.nvptx.gpu.host import written
from tests.backends.nvptx.gpu.image import GUARD, GUARDED, CaseImage, Image, LaunchImage
from tests.backends.nvptx.gpu.running import differences, run_batch, run_part
from tests.backends.three_way import compiled, execute
from tests.ops.harness import all_cases, evaluate_case

from tritium.ops.spec import Case

NO_CODE = Code(b"", "cases", 4, 0)


class Host:
    """Runs the cases of an image as machine code of the CPU; ``spoil`` changes the memory then."""

    def __init__(self, spoil: Callable[[CaseImage], None] = lambda image: None) -> None:
        self.cases: Sequence[Case] = ()
        self.spoil = spoil

    def run(self, code: Code, image: CaseImage) -> None:
        function = one_op.build(self.cases)
        kernel, library = compiled(function, None, False, False)
        memory = np.zeros(image.size + GUARD, np.uint8)
        start = -memory.ctypes.data % GUARD
        held = memory[start : start + image.size]
        held[:] = image.place(held.ctypes.data)
        views = [
            np.ndarray(each.shape, each.dtype, held, start)
            for each, start in zip(image.arrays, image.starts)
        ]
        mine = {f"p{n}": views[number] for n, (number, _) in enumerate(image.parameters)}
        execute(kernel, library, function, mine, (1,))
        image.bytes = held
        self.spoil(image)


@pytest.fixture
def host() -> Host:
    return Host()


BATCHES = [Batch(name, False, 0) for name in ("memory.load", "memory.store", "reduce.max")]


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: batch.group)
def test_an_image_is_the_memory_of_a_kernel(batch: Batch, aligned: bool, host: Host) -> None:
    host.cases = batch.cases
    assert run_part(host, Part(batch.cases, NO_CODE), aligned) == []


def test_a_wrong_result_is_told() -> None:
    def spoil(image: CaseImage) -> None:
        image.bytes[image.starts[image.outcomes[1][0]]] ^= 0x40

    batch = Batch("reduce.max", False, 0)
    host = Host(spoil)
    host.cases = batch.cases
    (text,) = run_part(host, Part(batch.cases, NO_CODE), True)
    assert text.startswith(f"{batch.cases[1].label}: 1 of ")


def test_a_write_outside_of_arrays_is_told() -> None:
    image = Image()
    first, second = image.add(np.arange(3, dtype=np.int16)), image.add(np.zeros(5, np.float64))
    held = image.place(GUARD * 7)
    assert image.damage() is None
    assert held[:GUARD].tolist() == [GUARDED] * GUARD
    held[image.starts[first] + 6] = 0
    assert image.damage() == "1 bytes outside of arrays were written, the first behind array 1"
    held[image.starts[second] - 1] = 0
    assert image.damage() == "2 bytes outside of arrays were written, the first behind array 1"


def test_pointers_are_addresses_of_their_buffer() -> None:
    image = Image(aligned=False)
    buffer = image.add(np.arange(4, dtype=np.int32))
    pointers = image.add(np.array([0, 12], np.uint64), into=buffer)
    image.place(1 << 40)
    start = (1 << 40) + image.starts[buffer]
    assert image.read(pointers).tolist() == [start, start + 12]
    assert start % 8 == 4


def test_every_case_is_planned_and_integers_with_every_number_of_warps() -> None:
    planned = list(batches.plan())
    usual = [b for b in planned if b.num_warps == 4 and b.divisibility == 16]
    own = [case for b in usual if not b.group.startswith("extents") for case in b.cases]
    wanted = [
        case
        for case in all_cases()
        if case.op.family != "control" and "nvptx" not in case.op.unsupported
    ]
    assert len(own) == len(wanted)
    assert len({b.name for b in planned}) == len(planned)
    for group in ("arith.add", "reduce.reduce", "extents of shape.trans"):
        integers = [b for b in planned if b.group == group and b.integers]
        assert {b.num_warps for b in integers} == {1, 2, 8}
        assert all(batches.is_integral(case) for b in integers for case in b.cases)


def test_large_cases_are_grids_of_programs() -> None:
    batch = Batch("arith.add", False, 0, large=True)
    extents = {gridded.extent(case) for case in batch.cases}
    assert batch.grid == (-(-max(extents) // gridded.BLOCK), 1, 1)
    assert min(extents) > gridded.MANY
    assert not any(gridded.is_large(case) for case in Batch("arith.add", False, 0).cases)


def test_further_extents_have_meanings() -> None:
    with np.errstate(all="ignore"):
        for cases in batches.extents.cases().values():
            for case in cases:
                assert evaluate_case(case)


class HostContext:
    """Stands for the device in the process that launches."""

    device = SimpleNamespace(capability=(9, 0))

    def run(self, code: Code, image: LaunchImage) -> None:
        if not code.llvm_ir:
            raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
        EmulatorHost().run(code, image)


@pytest.mark.skipif(bool(unsupported()), reason=str(unsupported()))
def test_code_and_memory_travel_to_the_process_that_launches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "Context", HostContext)
    ours, theirs = multiprocessing.Pipe()
    server = threading.Thread(target=device.serve, args=(theirs,))
    server.start()
    assert ours.recv() == (9, 0)
    for batch in BATCHES:
        image = CaseImage(batch.cases, grid=batch.grid)
        ours.send((written(batch.build(), 2), image))
        image.bytes = ours.recv()
        assert differences(batch.cases, image) == []
    ours.send((NO_CODE, image))
    assert ours.recv() == "RuntimeError: CUDA_ERROR_ILLEGAL_ADDRESS"
    server.join(10.0)
    assert not server.is_alive()


# ---- faults --------------------------------------------------------------------------------------


def test_a_kernel_that_faults_is_run_case_by_case() -> None:
    batch = Batch("memory.load", False, 0)
    asked: list[int] = []

    class Faulty:
        def run(self, code: Code, image: CaseImage) -> None:
            asked.append(len(image.outcomes))
            raise Fault("CUDA_ERROR_ILLEGAL_ADDRESS")

    singly = [Part([case], NO_CODE) for case in batch.cases]
    wrong = run_batch(Faulty(), batch, [Part(batch.cases, NO_CODE)], lambda: singly)
    assert asked == [BATCH] + [1] * BATCH
    assert wrong == [f"{case.label}: CUDA_ERROR_ILLEGAL_ADDRESS" for case in batch.cases]


def test_a_case_that_does_not_compile_is_named_and_the_others_run() -> None:
    batch = Batch("memory.load", False, 0)
    bad = batch.cases[3]

    def compile_one(one: Batch) -> Code:
        if bad in one.cases:
            raise Failed("Cannot select")
        return NO_CODE

    farm = Farm([batch], 2, compile_one)
    parts = farm.parts(batch)
    farm.close()
    assert [part.problem for part in parts] == [""] * 3 + ["Cannot select"] + [""] * 8
    assert [part.cases for part in parts] == [[case] for case in batch.cases]


def test_a_process_that_dies_is_told() -> None:
    with compiling.importable():
        assert compiling.in_process(os.getppid) > 0
        with pytest.raises(Failed, match="the compiler ended with status -6"):
            compiling.in_process(os.abort)
        with pytest.raises(Failed, match="ValueError: invalid literal"):
            compiling.in_process(int, "x")


def test_what_llvm_says_is_kept(tmp_path: os.PathLike[str]) -> None:
    log = os.path.join(tmp_path, "log")
    with open(log, "w") as stream:
        stream.write("LLVM ERROR: Cannot select: f64 = fexp\n#0 stack\n#1 stack\n#2 stack\n")
    text = "the compiler ended with status -6: LLVM ERROR: Cannot select: f64 = fexp"
    assert compiling.told(log, -6) == text
