"""Runs cubins on the GPU in a process of its own, which is started anew after a fault.

A kernel that reads or writes where it must not ends every later use of its process' context: only
its own batch fails that way. The process also ends a kernel that hangs.
"""

from __future__ import annotations

import ctypes
import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
from tests.backends.nvptx.gpu.compiling import Code
from tests.backends.nvptx.gpu.image import GUARD, LaunchImage

LONGEST = 60.0
"""Seconds after which a kernel counts as hung."""
MOST_UNASKED = 48 << 10
"""Bytes of shared memory that a kernel gets without asking for it."""
DYNAMIC_SHARED = 8
"""Number of CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


class Fault(Exception):
    """A launch failed, or never ended."""


class Context:
    """The device in this process."""

    def __init__(self) -> None:
        from tritium.runtime.cuda import devices, library

        self.cuda = library.load()
        self.device = devices.get(0)
        self.cuda.cuCtxPushCurrent_v2(self.device.context)

    def run(self, code: Code, image: LaunchImage) -> None:
        """Launches a kernel on an image's memory, and reads it back. Raises CudaFailure."""
        cuda = self.cuda
        module = cuda.handle("cuModuleLoadData", code.cubin)
        memory = cuda.handle("cuMemAlloc_v2", image.size + GUARD)
        try:
            base = -(-memory // GUARD) * GUARD
            held = image.place(base)
            cuda.cuMemcpyHtoD_v2(base, held.ctypes.data, held.nbytes)
            kernel = cuda.handle("cuModuleGetFunction", module, code.entry.encode())
            self._launch(kernel, code, image.slots(base), image.grid)
            cuda.cuCtxSynchronize()
            cuda.cuMemcpyDtoH_v2(held.ctypes.data, base, held.nbytes)
        finally:
            cuda.cuMemFree_v2(memory)
            cuda.cuModuleUnload(module)

    def _launch(
        self, kernel: int, code: Code, slots: Sequence[int], grid: tuple[int, int, int]
    ) -> None:
        if code.shared_bytes > MOST_UNASKED:
            self.cuda.cuFuncSetAttribute(kernel, DYNAMIC_SHARED, code.shared_bytes)
        count = len(slots)
        values = (ctypes.c_uint64 * count)(*slots)
        places = [ctypes.addressof(values) + 8 * number for number in range(count)]
        parameters = (ctypes.c_void_p * count)(*places)
        threads, shared = 32 * code.num_warps, code.shared_bytes
        self.cuda.cuLaunchKernel(
            kernel, *grid, threads, 1, 1, shared, None, ctypes.addressof(parameters), None
        )


def serve(connection: Connection) -> None:
    """Answers each (code, image) with the memory after the launch, or with what went wrong."""
    context = Context()
    connection.send(context.device.capability)
    while (asked := connection.recv()) is not None:
        code, image = asked
        try:
            context.run(code, image)
        except Exception as problem:  # noqa: BLE001 - the other process raises it
            connection.send(f"{type(problem).__name__}: {problem}")
            return
        connection.send(image.bytes)


class Device:
    """The device behind a process."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._connection: Any = None
        self.capability: tuple[int, int] = self._start()

    def _start(self) -> tuple[int, int]:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        capability: tuple[int, int] = self._answer()
        return capability

    def _answer(self) -> Any:
        try:
            if self._connection.poll(LONGEST):
                return self._connection.recv()
            problem = f"the kernel had not ended after {LONGEST:.0f} s"
        except (EOFError, ConnectionError):
            problem = "the process that launched the kernel ended"
        self.close()
        raise Fault(problem)

    def run(self, code: Code, image: LaunchImage) -> None:
        """Launches a kernel; the image then holds what it left. Raises Fault."""
        if self._process is None:
            self._start()
        self._connection.send((code, image))
        found = self._answer()
        if isinstance(found, str):
            self.close()
            raise Fault(found)
        assert isinstance(found, np.ndarray)
        image.bytes = found

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
        self._process = None
