"""The CPU backend: tile IR to machine code that runs programs of a grid."""

from __future__ import annotations

from .compile import CpuKernel, compile_kernel

__all__ = ["CpuKernel", "compile_kernel"]
