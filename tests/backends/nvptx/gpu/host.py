"""Runs kernels on the host, through the emulator of a GPU."""

from __future__ import annotations

import numpy as np
from tests.backends.nvptx.emulator import Emulator, EmulatorError
from tests.backends.nvptx.gpu.compiling import Code
from tests.backends.nvptx.gpu.device import Fault
from tests.backends.nvptx.gpu.image import GUARD, LaunchImage

from tritium.backends.nvptx.compile import write_module
from tritium.backends.nvptx.target import gpu_target
from tritium.ir.core import Function

ARCH = "sm_90a"


def written(function: Function, num_warps: int, disjoint: bool = True) -> Code:
    """A kernel as LLVM IR, neither optimised nor assembled."""
    writer = write_module(function, gpu_target(ARCH), num_warps=num_warps, disjoint=disjoint)
    text = writer.module.text()
    return Code(b"", writer.function.name, num_warps, writer.shared.total, text)


class Host:
    """Runs a kernel's LLVM IR thread by thread; ``seed`` says in which order.

    ``global_races``: threads of a block that meet in global memory without waiting are a fault.
    """

    def __init__(self, seed: int = 0, global_races: bool = False) -> None:
        self.seed = seed
        self.global_races = global_races

    def run(self, code: Code, image: LaunchImage) -> None:
        """The image then holds what the kernel left. Raises Fault."""
        memory = np.zeros(image.size + GUARD, np.uint8)
        start = -memory.ctypes.data % GUARD
        held = memory[start : start + image.size]
        base = held.ctypes.data
        held[:] = image.place(base)
        emulator = Emulator(code.llvm_ir, code.entry, num_warps=code.num_warps)
        try:
            emulator.launch(
                image.arguments(base), image.grid, seed=self.seed, global_races=self.global_races
            )
        except EmulatorError as problem:
            raise Fault(f"{type(problem).__name__}: {problem}") from problem
        image.bytes = held
