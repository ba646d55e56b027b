"""``triton.runtime.driver``: what host code asks about the device."""

from __future__ import annotations

import sys
from typing import Any

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


class Driver:
    """The active driver."""

    def __init__(self) -> None:
        self._active: Any = None

    @property
    def default(self) -> CpuDriver:
        """The CPU's."""
        return CpuDriver()

    @property
    def active(self) -> Any:
        """The one that was set, or the CPU's."""
        if self._active is None:
            self._active = self.default
        return self._active

    def set_active(self, driver: Any) -> None:
        """Answer with another driver."""
        self._active = driver

    def reset_active(self) -> None:
        """Answer with the default again."""
        self._active = None


driver = Driver()


def __getattr__(name: str) -> Any:
    # Triton's ``runtime.driver`` is the object; an import of the module puts that in its place.
    return getattr(driver, name)
