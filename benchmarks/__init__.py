"""Tritium's benchmark: its kernels beside other libraries' functions, in one run.

``python -m benchmarks`` in the project's folder, or ``./dev bench``, runs all of it on the CPU.
What is measured, and how, is written at the top of ``RESULTS.md``. ``python -m benchmarks.gpu``
measures an NVIDIA GPU, beside Triton and torch, and writes ``RESULTS_GPU.md``.
"""

from __future__ import annotations
