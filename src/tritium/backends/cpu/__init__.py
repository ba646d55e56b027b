"""The CPU backend: tile IR to machine code that runs programs of a grid."""

from __future__ import annotations

from .compile import STRUCTURAL, CpuKernel, compile_kernel

__all__ = ["STRUCTURAL", "CpuKernel", "compile_kernel"]
