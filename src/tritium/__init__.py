"""Tritium: a Triton-compatible tile language with its own compiler, for CPUs and NVIDIA GPUs.

Everything is loaded when it is first used: importing the package needs no compiler, no driver and
no torch, and takes next to no time.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

# Type checkers know this name; the module typing alone would take longer to load than this one.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import knobs as knobs
    from . import language as language
    from .ops.callable import constexpr_function as constexpr_function
    from .runtime import errors as errors
    from .runtime.arrays import MockTensor as MockTensor
    from .runtime.arrays import TensorWrapper as TensorWrapper
    from .runtime.arrays import reinterpret as reinterpret
    from .runtime.errors import CompilationError as CompilationError
    from .runtime.errors import InterpreterError as InterpreterError
    from .runtime.errors import OutOfResources as OutOfResources
    from .runtime.errors import TritiumError as TritiumError
    from .runtime.host import cdiv as cdiv
    from .runtime.host import next_power_of_2 as next_power_of_2
    from .runtime.jit import JITFunction as JITFunction
    from .runtime.jit import KernelInterface as KernelInterface
    from .runtime.jit import jit as jit
    from .runtime.launch import interpret as interpret
    from .runtime.launch import set_default_device as set_default_device
    from .tune import Config as Config
    from .tune import autotune as autotune
    from .tune import heuristics as heuristics

# Where each name comes from; a module for itself has no second part.
_PLACES = {
    "CompilationError": "runtime.errors",
    "Config": "tune",
    "InterpreterError": "runtime.errors",
    "JITFunction": "runtime.jit",
    "KernelInterface": "runtime.jit",
    "MockTensor": "runtime.arrays",
    "OutOfResources": "runtime.errors",
    "TensorWrapper": "runtime.arrays",
    "TritiumError": "runtime.errors",
    "autotune": "tune",
    "cdiv": "runtime.host",
    "constexpr_function": "ops.callable",
    "heuristics": "tune",
    "interpret": "runtime.launch",
    "jit": "runtime.jit",
    "next_power_of_2": "runtime.host",
    "reinterpret": "runtime.arrays",
    "set_default_device": "runtime.launch",
}
_MODULES = {"errors": "runtime.errors", "knobs": "knobs", "language": "language"}

__all__ = ["__version__", *sorted([*_PLACES, *_MODULES])]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is not None:
        value = getattr(importlib.import_module(f"{__name__}.{place}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
