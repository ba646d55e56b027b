"""What the driver is told of a launch all of whose blocks must run at once."""

from __future__ import annotations

import ctypes


class LaunchConfig(ctypes.Structure):
    """The driver's CUlaunchConfig."""

    _fields_ = [
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    ]


class LaunchAttribute(ctypes.Structure):
    """The driver's CUlaunchAttribute: a number, padding and a union of 64 bytes."""

    _fields_ = [
        ("id", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("value", ctypes.c_int * 16),
    ]


COOPERATIVE = 2
"""The attribute of a launch all of whose blocks must run at once."""
