"""Where kernels run whose arguments don't say it: the default device."""

from __future__ import annotations

import sys
from typing import Any

from tritium import knobs
from tritium.diagnostics import error

from .arrays import CPU, CUDA

_chosen: str | None = None


def set_default_device(device: Any) -> None:
    """Say where kernels without array arguments run: "cpu", "cuda", "cuda:1", or torch's device.

    None takes that back: they then run on torch's current GPU where torch uses one, else on the
    CPU. Raises E0802 for any other device, and for one that this machine doesn't have.
    """
    global _chosen
    _chosen = None if device is None else _checked(str(device))
    # Native launches look at it.
    knobs.advance()


def _checked(device: str) -> str:
    kind, _, ordinal = device.partition(":")
    if kind == CPU:
        return CPU
    hint = 'name "cpu", or "cuda" with the number of a GPU'
    if kind != CUDA or not (ordinal or "0").isdecimal():
        raise error("E0802", text=f"there is no backend for the device {device}", hint=hint)
    from .cuda import devices
    from .cuda.library import CudaFailure, Unavailable

    try:
        return str(devices.get(int(ordinal or 0)))
    except (Unavailable, CudaFailure) as problem:
        hint = getattr(problem, "hint", hint)
        raise error("E0802", text=f"there is no device {device}: {problem}", hint=hint) from None


def default_device() -> str:
    """Where kernels without array arguments run now."""
    if _chosen is not None:
        return _chosen
    if "torch" not in sys.modules:
        # A warm start has no time for more.
        return CPU
    from .cuda import devices

    if devices.torch_with_cuda() is None:
        return CPU
    return f"{CUDA}:{devices.current_ordinal()}"


def chosen() -> str | None:
    """What was said by ``set_default_device``."""
    return _chosen


def is_lasting() -> bool:
    """Whether the default device changes by ``set_default_device`` only: torch uses no GPU."""
    built = getattr(sys.modules.get("torch"), "version", None)
    return _chosen is not None or getattr(built, "cuda", None) is None
