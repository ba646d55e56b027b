"""Tritium: a Triton-compatible tile language with its own compiler, for CPUs and NVIDIA GPUs.

Everything is loaded when it is first used: importing the package needs no compiler, no driver and
no torch, and takes next to no time.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

# Where each name comes from. Type checkers read __init__.pyi, which says the same.
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
    "aggregate": "ops.aggregates",
    "autotune": "tune",
    "cdiv": "runtime.host",
    "constexpr_function": "ops.callable",
    "heuristics": "tune",
    "interpret": "runtime.launch",
    "jit": "runtime.jit",
    "next_power_of_2": "runtime.host",
    "reinterpret": "runtime.arrays",
    "set_default_device": "runtime.placement",
}
_MODULES = {"errors": "runtime.errors", "knobs": "knobs", "language": "language"}

__all__ = [
    "CompilationError",
    "Config",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "TritiumError",
    "__version__",
    "aggregate",
    "autotune",
    "cdiv",
    "constexpr_function",
    "errors",
    "heuristics",
    "interpret",
    "jit",
    "knobs",
    "language",
    "next_power_of_2",
    "reinterpret",
    "set_default_device",
]


def __getattr__(name: str) -> object:
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
