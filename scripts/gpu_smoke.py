"""Does the way to the GPU work? One step after the other, each said to be right or wrong.

    python scripts/gpu_smoke.py [STEP ...]

Steps: driver, assemblers, ptx (hand-written code through the driver layer), kernel (the guide's
first one), native (launches without Python), streams, graph, threads, copies (step by step on the
host), errors (in processes of their own), cost. Needs torch with CUDA. A step that fails shows its
traceback, and the others go on; the exit status is 1 then.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
from collections.abc import Callable

import numpy as np
import torch

import tritium
import tritium.language as tl
from tritium.backends.nvptx import ptxas
from tritium.runtime import objects
from tritium.runtime.cuda import assembly, devices, library, modules

PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 out, .param .u32 n)
.reqntid 128, 1, 1
{
  .reg .b64 %rd<8>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r4, %r3, 128, %r2;
  setp.ge.u32 %p1, %r4, %r1;
  @%p1 bra END;
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.rn.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
END:
  ret;
}
"""
SIZE = 98432


@tritium.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """``x + y``."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@tritium.jit
def many(out_ptr, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, BLOCK: tl.constexpr):
    """The sum of seventeen numbers, and nothing else: a launch with 19 arguments."""
    total = a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q
    tl.store(out_ptr + tl.arange(0, BLOCK), total)


def operands(size: int = SIZE) -> list[torch.Tensor]:
    """Two random vectors and one for the result."""
    x, y = torch.rand(size, device="cuda"), torch.rand(size, device="cuda")
    return [x, y, torch.full_like(x, -1)]


def launch(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    """``out = x + y`` by the kernel."""
    add[(tritium.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)


def check(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    """Raises AssertionError for a wrong sum."""
    assert torch.equal(out, x + y), (out - x - y).abs().max().item()


# ---- steps ---------------------------------------------------------------------------------------


def driver() -> str:
    """The driver and the device."""
    device = devices.get(torch.cuda.current_device())
    version = ".".join(map(str, devices.driver_version()))
    return f"CUDA {version}, {device.name}, {device.capability}, {device.properties()}"


def assemblers() -> str:
    """ptxas, and the driver's own."""
    device = devices.get(torch.cuda.current_device())
    start = time.perf_counter()
    made = assembly.link(device, PTX)
    taken = (time.perf_counter() - start) * 1e3
    return f"{assembly.found()}; driver: {len(made.cubin)} bytes, {made.usage} in {taken:.1f} ms"


def ptx() -> str:
    """Hand-written PTX, assembled by both, loaded and launched."""
    device = devices.get(torch.cuda.current_device())
    arch = "sm_{}{}".format(*device.capability)
    cubins = [assembly.link(device, PTX).cubin]
    tool = assembly.assembler()
    if tool is not None:
        cubins.append(ptxas.assemble(tool.path, PTX, arch).cubin)
    for cubin in cubins:
        loaded = modules.load(device, cubin, "add", "add", 0)
        x, y, out = operands()
        values = (ctypes.c_uint64 * 4)(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        first = ctypes.addressof(values)
        parameters = (ctypes.c_uint64 * 4)(*range(first, first + 32, 8))
        stream = devices.current_stream(device.ordinal)
        grid = (tritium.cdiv(SIZE, 128), 1, 1)
        with device.current():
            device.cuda.cuLaunchKernel(
                loaded.function, *grid, 128, 1, 1, 0, stream, parameters, None
            )
        check(x, y, out)
    return f"{len(cubins)} cubins, {loaded.registers} registers, {loaded.most_threads} threads"


def kernel() -> str:
    """A kernel of the language, first launch and second."""
    times = []
    for size in (SIZE, SIZE, 0, 1, 1023, 1024, 1025):
        tensors = operands(size)
        torch.cuda.synchronize()
        start = time.perf_counter()
        launch(*tensors)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
        check(*tensors)
    made = add.warmup(*tensors, 1025, BLOCK=1024, grid=(1,))
    shown = ", ".join(f"{each:.2f}" for each in times)
    return f"{shown} ms; {made.n_regs} registers, {made.n_spills} spills, {[*made.asm]}"


def native() -> str:
    """From some launch on Python has no part in it."""
    tensors = operands()
    for _ in range(40):
        launch(*tensors)
    before = add._fast.launches_by_python
    for _ in range(100):
        launch(*tensors)
    check(*tensors)
    by_python = add._fast.launches_by_python - before
    known = f"tensors: {objects.torch_fields()}, streams: {objects.work_stream():#x}"
    assert by_python == 0, f"{by_python} of 100 launches by Python; {known}"
    return f"{before} launches by Python, then 100 natively"


def streams() -> str:
    """The current stream is the one that is used."""
    slow, tensors = torch.rand(4096, 4096, device="cuda"), operands(1 << 20)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(20):
            slow = (slow @ slow).clamp(0, 1)
        tensors[0].copy_(slow.flatten()[: 1 << 20])
        launch(*tensors)
        waiting = not stream.query()
        stream.synchronize()
    check(*tensors)
    assert waiting, "the launch waited for its stream"
    return "behind other work of its stream"


def graph() -> str:
    """Launches are captured and replayed; a first launch in a capture is refused."""
    tensors = operands()
    launch(*tensors)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        launch(*tensors)
    tensors[2].fill_(-1)
    tensors[0].fill_(3)
    captured.replay()
    check(*tensors)
    tensor, said = torch.zeros(8, device="cuda"), ""
    other = torch.cuda.CUDAGraph()
    with torch.cuda.graph(other):
        tensor.add_(1)
        try:
            many[(1,)](tensor, *range(2, 19), BLOCK=8)
        except tritium.TritiumError as problem:
            said = problem.code
    assert said == "E0522", said
    other.replay()
    many[(1,)](tensor, *range(2, 19), BLOCK=8)
    assert tensor.tolist() == [sum(range(2, 19))] * 8, tensor
    return "replayed; refused where it was not loaded"


def threads() -> str:
    """Many threads launch at once, each on its own stream."""
    problems: list[BaseException] = []

    def work() -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                tensors = operands()
                stream.synchronize()
                for _ in range(200):
                    launch(*tensors)
                stream.synchronize()
                check(*tensors)
        except BaseException as problem:  # noqa: BLE001 - raised below
            problems.append(problem)

    torch.cuda.synchronize()
    workers = [threading.Thread(target=work) for _ in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    if problems:
        raise problems[0]
    return "8 threads, 200 launches each"


def copies() -> str:
    """The interpreter works on copies in the host's memory."""
    base = torch.rand(3000, device="cuda")
    x, y, out = base[:1000], base[1000:2000], base[2000:]
    add.interpret[(2,)](x, y, out, 1000, BLOCK=512)
    check(x, y, out)
    # torch puts storages of whole pages side by side.
    tensors = operands(1024)
    add.interpret[(2,)](*tensors, 1024, BLOCK=512)
    check(*tensors)
    return "views of one storage, and three storages"


HEAD = """
import os, time, torch, tritium, tritium.language as tl
@tritium.jit
def put(out, value):
    tl.store(out, value)
class Far:
    dtype, device = "int32", "cuda:0"
    def data_ptr(self):
        return 1 << 44
x = torch.zeros(8, device="cuda", dtype=torch.int32)
put[(1,)](x, 7)
"""
ERRORS = {
    "an address of nobody": (
        "put[(1,)](Far(), 5)\ntime.sleep(1)\nput[(1,)](x, 7)",
        ("E0521", "put (", "ILLEGAL_ADDRESS"),
    ),
    "arrays on two devices": (
        "put[(1,)]((x, torch.zeros(8)), 7)",
        ("E0512", "cuda:0", "cpu"),
    ),
    "a fork": (
        "if os.fork() == 0:\n    put[(1,)](x, 8)\nos.wait()",
        ("E0519", "forked", "spawn"),
    ),
    "too many warps": ("put[(1,)](x, 7, num_warps=64)", ("E0515", "32 warps")),
    "a grid too large": ("put[(1, 70000)](x, 7)", ("E0510", "65535")),
}


def errors() -> str:
    """What goes wrong is said clearly."""
    wrong = []
    for name, (body, wanted) in ERRORS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(HEAD + body)
            done = subprocess.run(
                [sys.executable, path], capture_output=True, text=True, timeout=120, check=False
            )
        said = [each for each in done.stderr.splitlines() if re.search("rror|help", each)]
        print(f"    {name}: {' | '.join(each.strip() for each in said)}")
        if any(each not in done.stderr for each in wanted):
            wrong.append(name)
            print(textwrap.indent(done.stderr[-3000:], "        "))
    assert not wrong, wrong
    return f"{len(ERRORS)} programs"


def cost() -> str:
    """Microseconds of host time of a launch: by Python, natively, and of the driver alone."""
    tensors = operands(1024)
    nineteen = [tensors[2], *range(2, 19)]
    figures = {}
    for name, function in (
        ("4 arguments", lambda: add[(1,)](*tensors, 1024, BLOCK=1024)),
        ("19 arguments", lambda: many[(1,)](*nineteen, BLOCK=8)),
        ("4 by Python", lambda: add.run(*tensors, 1024, BLOCK=1024, grid=(1,))),
        ("torch.add", lambda: torch.add(tensors[0], tensors[1], out=tensors[2])),
    ):
        figures[name] = _microseconds(function)
    return ", ".join(f"{name} {figure:.2f}" for name, figure in figures.items())


def _microseconds(function: Callable[[], object], trains: int = 30, length: int = 100) -> float:
    for _ in range(50):
        function()
    found = []
    for _ in range(trains):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(length):
            function()
        found.append((time.perf_counter() - start) / length * 1e6)
    return statistics.median(found)


STEPS: tuple[Callable[[], str], ...] = (
    *(driver, assemblers, ptx, kernel, native, streams, graph, threads, copies, errors, cost),
)


def main() -> None:
    """Run the steps."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("steps", nargs="*", metavar="STEP")
    chosen = set(parser.parse_args().steps)
    failed = []
    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, torch {torch.__version__}")
    print(f"library {library.file_name()}")
    torch.cuda.init()
    for step in STEPS:
        if chosen and step.__name__ not in chosen:
            continue
        try:
            print(f"{step.__name__:<11}right  {step()}", flush=True)
        except Exception:  # noqa: BLE001 - shown, and counted
            failed.append(step.__name__)
            print(f"{step.__name__:<11}WRONG", flush=True)
            traceback.print_exc(file=sys.stdout)
    print(f"failed: {', '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
