"""Tritium: a Triton-compatible tile language with its own compiler, for CPUs and NVIDIA GPUs."""

from __future__ import annotations

__version__ = "0.1.0"
