"""What a launch on the GPU costs the host: Tritium, Triton, torch, and the driver alone.

    python -m benchmarks.gpu_launch             # the table alone; --quick: few launches
    python -m benchmarks.gpu_launch --json FILE

The floor is a loop, compiled by LLVM in this process, that does nothing but call the driver's
``cuLaunchKernel`` with arguments packed before. Launches are timed in trains that fit the driver's
queue; between trains the device finishes. In a round every side runs one train, in random order.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import time
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import gpu_kernels
from .compile_times import print_lines, row
from .gpu_worker import PACKAGES, Package, in_short, packages
from .launch import ELEMENTS, LAUNCH, MANY
from .specs import OURS

TRAIN = 200
ROUNDS = 41
OVER_FLOOR = {4: 1.5e-6, 19: 2.5e-6}
"""What a launch may cost beyond the driver's own time, by the number of its arguments."""

TORCH = "torch.add(x, y, out=out)"

POINTER, INTEGER, SMALL, FLOAT = "u64", "u32", "u8", "f32"
PARAMETERS = {
    4: (POINTER,) * 3 + (INTEGER,),
    19: (POINTER,) * 6 + (INTEGER,) * 9 + (FLOAT,) * 2 + (SMALL,),
}
"""Of the floor's kernels, as those of ``add`` and ``many`` at run time (BLOCK is a constant)."""

LOOP = """
define i32 @loop(i64 %count, ptr %launch, ptr %kernel, ptr %stream, ptr %parameters) {
entry:
  br label %again
again:
  %done = phi i64 [ 0, %entry ], [ %next, %again ]
  %before = phi i32 [ 0, %entry ], [ %failed, %again ]
  %status = call i32 %launch(ptr %kernel, i32 1, i32 1, i32 1, i32 128, i32 1, i32 1, i32 0,
                             ptr %stream, ptr %parameters, ptr null)
  %failed = or i32 %before, %status
  %next = add i64 %done, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %again, label %end
end:
  ret i32 %failed
}
"""


@dataclass(frozen=True)
class Train:
    """A side: its name, and a call that launches so many times in a row and gives the seconds."""

    name: str
    run: Callable[[int], float]


def empty_kernel(parameters: Sequence[str]) -> str:
    """PTX of a kernel that takes these parameters and does nothing."""
    declared = ", ".join(f".param .{kind} p{n}" for n, kind in enumerate(parameters))
    lines = [".version 7.0", ".target sm_80", ".address_size 64"]
    return "\n".join([*lines, f".visible .entry empty({declared}) {{", "  ret;", "}", ""])


def compiled_loop() -> tuple[Any, Any]:
    """``LOOP`` as machine code, and what keeps it alive."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(LOOP)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, *[ctypes.c_void_p] * 4)
    return kind(engine.get_function_address("loop")), engine


def floor(arguments: int, stream: int) -> Train:
    """The driver alone, for a kernel with as many arguments. Raises RuntimeError."""
    driver = ctypes.CDLL("libcuda.so.1")
    kinds = PARAMETERS[arguments]
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    text = empty_kernel(kinds).encode()
    if status := driver.cuModuleLoadData(ctypes.byref(module), text):
        raise RuntimeError(f"cuModuleLoadData returned {status}")
    if status := driver.cuModuleGetFunction(ctypes.byref(kernel), module, b"empty"):
        raise RuntimeError(f"cuModuleGetFunction returned {status}")
    values = (ctypes.c_uint64 * len(kinds))()
    step = ctypes.sizeof(ctypes.c_uint64)
    places = [ctypes.addressof(values) + step * n for n in range(len(kinds))]
    parameters = (ctypes.c_void_p * len(kinds))(*places)
    loop, engine = compiled_loop()
    launch = ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p)

    def run(count: int) -> float:
        start = time.perf_counter()
        status = loop(count, launch, kernel, stream, ctypes.addressof(parameters))
        seconds = time.perf_counter() - start
        if status:
            raise RuntimeError(f"cuLaunchKernel returned {status}")
        return seconds

    # The closure owns what the driver reads.
    run.kept = (values, parameters, engine)  # type: ignore[attr-defined]
    return Train(f"floor: cuLaunchKernel, {arguments} arguments", run)


def spelled(name: str, statement: str, names: dict[str, Any]) -> Train:
    """A statement as users write it."""
    return Train(name, timeit.Timer(statement, globals=names).timeit)


def rounds_of(
    trains: Sequence[Train], synchronize: Callable[[], object], rounds: int, launches: int
) -> dict[str, list[float]]:
    """Seconds of one launch of each side in each round, after a round that isn't counted."""
    order = np.random.default_rng(0)
    times: dict[str, list[float]] = {train.name: [] for train in trains}
    for number in range(rounds + 1):
        for place in order.permutation(len(trains)):
            synchronize()
            seconds = trains[place].run(launches)
            if number:
                times[trains[place].name].append(seconds / launches)
    synchronize()
    return times


def sides(
    torch: Any, given: Sequence[Package], device: str
) -> tuple[list[Train], list[dict[str, str]]]:
    """Each package's launches, those that fail left out and told, and torch's addition."""
    x, y, a, b, c, out = (torch.randn(ELEMENTS, device=device) for _ in range(6))
    tensors = {"x": x, "y": y, "a": a, "b": b, "c": c, "out": out, "torch": torch}
    trains, errors = [spelled("torch.add", TORCH, tensors)], []
    for package in given:
        names = {**tensors, "n": ELEMENTS, "grid": (1,)}
        for argument_count, kernel, text in ((4, "add", LAUNCH), (19, "many", MANY)):
            train_name = f"{package.name}, {argument_count} arguments"
            made = gpu_kernels.build(kernel, package.module, package.language)
            train = spelled(train_name, text, {**names, "kernel": made, "many": made})
            try:
                out.fill_(float("nan"))
                train.run(3)
                torch.testing.assert_close(out, x + y)
            except Exception as failure:  # noqa: BLE001 - told; the others are timed
                errors.append({"name": train_name, "reason": in_short(failure)})
                continue
            trains.append(train)
    return trains, errors


def judged(times: dict[str, list[float]]) -> list[dict[str, Any]]:
    """The lines of the report; Tritium's with their limits where the floor was measured."""
    lines = []
    for name, found in times.items():
        most = None
        for arguments, over in OVER_FLOOR.items():
            base = times.get(f"floor: cuLaunchKernel, {arguments} arguments")
            if name == f"{OURS}, {arguments} arguments" and base:
                most = float(np.median(base)) + over
        lines.append(row(name, found, most))
    return lines


def run(quick: bool, names: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """``lines`` as ``compile_times.row`` makes them, and ``errors``."""
    torch = importlib.import_module("torch")
    trains, errors = sides(torch, packages(names), "cuda")
    stream = torch.cuda.current_stream().cuda_stream
    trains = [floor(4, stream), floor(19, stream), *trains]
    rounds, launches = (3, 20) if quick else (ROUNDS, TRAIN)
    times = rounds_of(trains, torch.cuda.synchronize, rounds, launches)
    return {"lines": judged(times), "errors": errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--packages", default=",".join(PACKAGES))
    parser.add_argument("--json", type=Path, help="gets the lines and the errors")
    options = parser.parse_args()
    found = run(options.quick, options.packages.split(","))
    if options.json is not None:
        options.json.write_text(json.dumps(found))
    print_lines(found["lines"])
    for error in found["errors"]:
        print(f"failed: {error['name']}: {error['reason']}")


if __name__ == "__main__":
    main()
