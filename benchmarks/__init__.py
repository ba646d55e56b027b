"""Tritium's benchmark: its kernels beside other libraries' functions, in one run.

``python -m benchmarks`` in the project's folder, or ``./dev bench``, runs all of it. What is
measured, and how, is written at the top of ``RESULTS.md``.
"""

from __future__ import annotations
