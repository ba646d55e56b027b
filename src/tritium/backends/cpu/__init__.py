"""The CPU backend: tile IR to machine code that runs programs of a grid."""

from __future__ import annotations

from tritium.backends.compiled import CpuKernel

from .compile import compile_kernel

__all__ = ["CpuKernel", "compile_kernel"]
