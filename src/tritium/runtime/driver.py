"""``triton.runtime.driver``: what host code asks about the device."""

from __future__ import annotations

import sys
from typing import Any

from tritium.diagnostics import error

from . import placement
from .arrays import CPU
from .compiled import GPUTarget


class CpuDriver:
    """The CPU as a device; there is one, with one stream."""

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for."""
        from .native import WARP_SIZE, host_target

        return GPUTarget("cpu", host_target().cpu, WARP_SIZE)

    def get_current_device(self) -> int:
        """0."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one device."""

    def get_current_stream(self, device: int = 0) -> int:
        """0: launches return when they are done."""
        return 0

    def get_active_torch_device(self) -> Any:
        """torch's device "cpu"; the text where torch isn't loaded."""
        torch = sys.modules.get("torch")
        return "cpu" if torch is None else torch.device("cpu")

    def is_active(self) -> bool:
        """Always."""
        return True


class CudaUtils:
    """What Triton's ``driver.active.utils`` tells of GPUs."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Limits, clocks in kHz, the width of the memory's bus in bits."""
        from .cuda import devices

        return devices.get(device).properties()


class CudaDriver:
    """NVIDIA's GPUs; the current one is torch's, or the first."""

    def __init__(self) -> None:
        self.utils = CudaUtils()

    def get_current_target(self) -> GPUTarget:
        """Ten times the compute capability of the current device, and the width of a warp."""
        from .cuda.code import WARP_SIZE

        major, minor = self.get_device_capability()
        return GPUTarget("cuda", 10 * major + minor, WARP_SIZE)

    def get_current_device(self) -> int:
        """Its number."""
        from .cuda import devices

        return devices.current_ordinal()

    def set_current_device(self, device: int) -> None:
        """Have torch use another device from here on. Raises E0802 without torch."""
        _torch().cuda.set_device(device)

    def get_current_stream(self, device: int = 0) -> int:
        """The handle of a device's current stream."""
        from .cuda import devices

        return devices.current_stream(device)

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """The compute capability of a device, by default the current one."""
        from .cuda import devices

        return devices.get(self.get_current_device() if device is None else device).capability

    def get_device_interface(self) -> Any:
        """``torch.cuda``; None where torch isn't loaded."""
        return getattr(sys.modules.get("torch"), "cuda", None)

    def get_active_torch_device(self) -> Any:
        """torch's device of the current GPU; the text where torch isn't loaded."""
        torch, name = sys.modules.get("torch"), f"cuda:{self.get_current_device()}"
        return name if torch is None else torch.device(name)

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor of 256 MB, larger than the cache of the device. Raises E0802 without torch."""
        torch = _torch()
        return torch.empty(1 << 26, dtype=torch.int, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        """Have the device's cache hold nothing but that tensor."""
        cache.zero_()

    def is_active(self) -> bool:
        """Whether there is a GPU."""
        from .cuda import devices
        from .cuda.library import CudaFailure, Unavailable

        try:
            return devices.count() > 0
        except (Unavailable, CudaFailure):
            return False


class Driver:
    """The active driver."""

    def __init__(self) -> None:
        self._active: Any = None
        self._cpu, self._cuda = CpuDriver(), CudaDriver()

    @property
    def default(self) -> Any:
        """Of what ``tritium.set_default_device`` said; else of GPUs where torch can use one.

        Scripts ask for torch's device before they have put anything there.
        """
        chosen = placement.chosen()
        on_cpu = not _torch_has_gpus() if chosen is None else chosen == CPU
        return self._cpu if on_cpu else self._cuda

    @property
    def active(self) -> Any:
        """The one that was set, or the default."""
        return self.default if self._active is None else self._active

    def set_active(self, driver: Any) -> None:
        """Answer with another driver."""
        self._active = driver

    def reset_active(self) -> None:
        """Answer with the default again."""
        self._active = None


def _torch() -> Any:
    torch = sys.modules.get("torch")
    if torch is None:
        hint = 'import torch, or name the device by tritium.set_default_device("cuda:1")'
        raise error("E0802", text="this is asked of torch, which isn't loaded", hint=hint)
    return torch


def _torch_has_gpus() -> bool:
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or getattr(cuda, "is_tritium", False):
        return False
    return bool(cuda.is_available())


driver = Driver()


def __getattr__(name: str) -> Any:
    # Triton's ``runtime.driver`` is the object; an import of the module puts that in its place.
    return getattr(driver, name)
