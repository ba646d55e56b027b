"""The GPUs of this machine: their contexts, their limits, the stream that is current.

Contexts are the devices' primary ones, which torch and the CUDA runtime use too.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Iterator
from typing import Any

from . import library
from .library import Library, Unavailable

# Numbers of CUdevice_attribute.
_THREADS_PER_BLOCK = 1
_SHARED_PER_BLOCK = 8
_WARP_SIZE = 10
_REGISTERS_PER_BLOCK = 12
_CLOCK = 13
_MULTIPROCESSORS = 16
_MEMORY_CLOCK = 36
_BUS_WIDTH = 37
_MAJOR, _MINOR = 75, 76
_COOPERATIVE = 95
_SHARED_OPTIN = 97

_EVENT_WITHOUT_TIMING = 2
_NOT_CAPTURING = 0
LEGACY = 1
"""The handle of the default stream, as is 0."""


class Device:
    """A GPU, by its number among those that the driver shows."""

    def __init__(self, cuda: Library, ordinal: int) -> None:
        self.cuda = cuda
        self.ordinal = ordinal
        self._handle = cuda.integer("cuDeviceGet", ordinal)

    def __str__(self) -> str:
        return f"cuda:{self.ordinal}"

    def _attribute(self, number: int) -> int:
        return self.cuda.integer("cuDeviceGetAttribute", number, self._handle)

    # ---- what it is ------------------------------------------------------------------------------

    @functools.cached_property
    def name(self) -> str:
        """As its maker calls it."""
        held = ctypes.create_string_buffer(256)
        self.cuda.cuDeviceGetName(held, len(held), self._handle)
        return held.value.decode(errors="replace")

    @functools.cached_property
    def capability(self) -> tuple[int, int]:
        """The compute capability."""
        return self._attribute(_MAJOR), self._attribute(_MINOR)

    @functools.cached_property
    def memory(self) -> int:
        """Bytes of its memory."""
        return self.cuda.handle("cuDeviceTotalMem_v2", self._handle)

    @functools.cached_property
    def multiprocessors(self) -> int:
        """How many multiprocessors it has."""
        return self._attribute(_MULTIPROCESSORS)

    @functools.cached_property
    def most_shared(self) -> int:
        """Bytes of shared memory that a block can ask for."""
        return max(self._attribute(_SHARED_OPTIN), self._attribute(_SHARED_PER_BLOCK))

    @functools.cached_property
    def most_threads(self) -> int:
        """Threads of a block."""
        return self._attribute(_THREADS_PER_BLOCK)

    @functools.cached_property
    def cooperative(self) -> bool:
        """Whether all programs of a grid can be made to run at once."""
        return bool(self._attribute(_COOPERATIVE))

    def properties(self) -> dict[str, int]:
        """What Triton's ``get_device_properties`` tells; clocks in kHz, the bus in bits."""
        return {
            "max_shared_mem": self.most_shared,
            "max_num_regs": self._attribute(_REGISTERS_PER_BLOCK),
            "multiprocessor_count": self.multiprocessors,
            "warpSize": self._attribute(_WARP_SIZE),
            "sm_clock_rate": self._attribute(_CLOCK),
            "mem_clock_rate": self._attribute(_MEMORY_CLOCK),
            "mem_bus_width": self._attribute(_BUS_WIDTH),
        }

    # ---- contexts and streams --------------------------------------------------------------------

    @functools.cached_property
    def context(self) -> int:
        """The primary context, which is kept from here on."""
        return self.cuda.handle("cuDevicePrimaryCtxRetain", self._handle)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """A ``with`` block in which the device's context is the thread's current one."""
        before = self.cuda.handle("cuCtxGetCurrent")
        if before == self.context:
            yield
            return
        self.cuda.cuCtxPushCurrent_v2(self.context)
        try:
            yield
        finally:
            if before or self.ordinal:
                self.cuda.handle("cuCtxPopCurrent_v2")
            # Else the thread had none, and the CUDA runtime too would take this one.

    def capturing(self, stream: int) -> bool:
        """Whether what is launched on a stream goes into a CUDA graph."""
        return self.cuda.integer_last("cuStreamIsCapturing", stream) != _NOT_CAPTURING

    def wait(self, stream: int, producer: int) -> None:
        """Have a stream wait for all that another one was given so far."""
        event = self.cuda.handle("cuEventCreate", _EVENT_WITHOUT_TIMING)
        try:
            self.cuda.cuEventRecord(event, producer)
            self.cuda.cuStreamWaitEvent(stream, event, 0)
        finally:
            self.cuda.cuEventDestroy_v2(event)


@functools.cache
def _device(cuda: Library, ordinal: int) -> Device:
    return Device(cuda, ordinal)


def count() -> int:
    """How many there are. Raises ``Unavailable`` where no device can be used at all."""
    return library.load().integer("cuDeviceGetCount")


def get(ordinal: int) -> Device:
    """A device. Raises ``Unavailable``."""
    cuda = library.load()
    number = cuda.integer("cuDeviceGetCount")
    if not 0 <= ordinal < number:
        found = "no GPU" if number == 0 else f"{number} GPU{'s' if number > 1 else ''}"
        raise Unavailable(
            f"the NVIDIA driver finds {found}, and none of the number {ordinal}",
            "see nvidia-smi, CUDA_VISIBLE_DEVICES",
        )
    return _device(cuda, ordinal)


def driver_version() -> tuple[int, int]:
    """The version of CUDA that the driver is for. Raises ``Unavailable``."""
    number = library.load().integer("cuDriverGetVersion")
    return number // 1000, number % 1000 // 10


# ---- what torch knows ----------------------------------------------------------------------------


def torch_with_cuda() -> Any:
    """torch where it is loaded and uses CUDA in this process; else None."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    ready = getattr(cuda, "is_initialized", None)
    if ready is None or getattr(cuda, "is_tritium", False) or not ready():
        return None
    return torch


def current_ordinal() -> int:
    """The number of the device that is current: torch's, else 0."""
    torch = torch_with_cuda()
    return 0 if torch is None else int(torch.cuda.current_device())


def current_stream(ordinal: int) -> int:
    """The handle of the stream that is current on a device: torch's, else the default stream."""
    torch = torch_with_cuda()
    if torch is None:
        return 0
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return int(torch.cuda.current_stream(ordinal).cuda_stream if raw is None else raw(ordinal))
