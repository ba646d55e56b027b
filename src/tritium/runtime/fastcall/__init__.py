"""The short way of a launch: native code that does again what Python did for the same arguments.

A kernel's first launches go through the binder. From the second on, what it found out is written
down as an ``Entry`` (``entry``), and ``kernel[grid]`` becomes a builtin function
(``backends.host.launcher``) that compares a launch's arguments with the entries of the kernel. It
does what the binder would do, or calls it. ``process`` holds what all kernels share.
"""

from __future__ import annotations

from .kernel import CONDITIONS, Fast

__all__ = ["CONDITIONS", "Fast"]
