"""Reading DLPack: the C structures behind the capsules that array libraries exchange."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from tritium.ir.dtypes import DType, from_name

_DEVICES = {
    1: "cpu",
    2: "cuda",
    # Pinned memory is the CPU's too.
    3: "cpu",
    7: "vulkan",
    8: "metal",
    10: "rocm",
    11: "cpu",
    13: "cpu",
    14: "oneapi",
}

# DLDataTypeCode and bits: the spelling of the type.
_FAMILIES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_NAMED = {
    (6, 8): "bool",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
}
_READ_ONLY = 1


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class View(NamedTuple):
    """An array behind a capsule; strides are in elements.

    ``element`` is None for a dtype that kernels don't have. The memory lives as long as
    ``capsule``.
    """

    element: DType | None
    dtype_name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool
    capsule: Any


def device_of(value: Any) -> str:
    """Where an object's memory is: "cpu", "cuda:1", ..."""
    kind, index = value.__dlpack_device__()
    name = _DEVICES.get(int(kind), f"DLPack device {int(kind)}")
    return name if name == "cpu" else f"{name}:{index}"


def read(value: Any, stream: int | None = None) -> View:
    """What an object says of itself through DLPack.

    ``stream`` is that of the CUDA device on which the elements will be used, as DLPack has it.
    """
    keywords = {} if stream is None else {"stream": stream}
    try:
        capsule = value.__dlpack__(max_version=(1, 0), **keywords)
    except TypeError:
        # A producer from before version 1 knows no such keyword.
        capsule = value.__dlpack__(**keywords)
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        return _view(managed.tensor, not managed.flags & _READ_ONLY, capsule)
    return _view(_Tensor.from_address(_pointer(capsule, b"dltensor")), True, capsule)


def _view(tensor: _Tensor, writable: bool, capsule: Any) -> View:
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim))
    else:
        row_major = [1]
        for extent in shape[:0:-1]:
            row_major.append(row_major[-1] * extent)
        strides = tuple(row_major[::-1][: tensor.ndim])
    code, bits, lanes = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
    name = _NAMED.get((code, bits)) or f"{_FAMILIES.get(code, f'type code {code}, ')}{bits}"
    if lanes != 1:
        name = f"{name} in groups of {lanes}"
    try:
        element = from_name(name)
    except KeyError:
        element = None
    address = (tensor.data or 0) + tensor.byte_offset
    return View(element, name, address, shape, strides, writable, capsule)
