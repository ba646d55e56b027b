"""How the arguments of a launch are laid out for compiled code: one slot of 8 bytes each."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tritium.frontend.specialize import PointerSpec, ScalarSpec, Spec
from tritium.ir.dtypes import DType, float32, float64

from .arrays import ArrayArgument


def packer(types: Sequence[Any]) -> Callable[[Sequence[Any], tuple[int, int, int]], bytes]:
    """A function that lays values out as compiled code expects them: one 8-byte slot each."""
    slots = struct.Struct("<" + "".join(map(_format, types)) + "3Q")
    pointers = [place for place, type in enumerate(types) if not isinstance(type, DType)]
    converters = {place: found for place, type in enumerate(types) if (found := _converter(type))}

    def pack(values: Sequence[Any], grid: tuple[int, int, int]) -> bytes:
        fields = [*values, *grid]
        for place in pointers:
            fields[place] = fields[place].address
        for place, convert in converters.items():
            fields[place] = convert(fields[place])
        return slots.pack(*fields)

    return pack


def _format(type: Any) -> str:
    """How ``struct`` writes what ``_converter`` makes of a value of that type."""
    if not isinstance(type, DType):
        return "Q"
    if type is float64:
        return "d"
    return "q" if type.is_int() and type.get_int_max_value() < 1 << 63 else "Q"


def _converter(type: Any) -> Callable[[Any], int | float] | None:
    """How a value of that type becomes what is written; None where it is, or an address."""
    if not isinstance(type, DType) or type.is_int():
        return None
    if type is float32:
        # Too large a number becomes an infinity; struct alone would refuse it.
        return lambda value: _word("<I", "<f", ctypes.c_float(value).value)
    if type is float64:
        return float
    if type.is_floating():
        from tritium.interp import Scalar

        return lambda value: int.from_bytes(Scalar(type, value).data().tobytes(), "little")
    raise AssertionError(f"no parameter has the type {type}")


def _word(integer: str, number: str, value: float) -> int:
    word: int = struct.unpack(integer, struct.pack(number, value))[0]
    return word


def fits(spec: Spec, value: Any) -> bool:
    """Whether code that was compiled for ``spec`` may be given ``value``."""
    if isinstance(spec, PointerSpec):
        if not isinstance(value, ArrayArgument):
            return False
        aligned = not spec.divisible or value.address % 16 == 0
        return aligned and value.element.itemsize == getattr(spec.dtype, "itemsize", 0)
    if isinstance(spec, ScalarSpec):
        if not isinstance(value, (int, float)) or isinstance(value, float) == spec.dtype.is_int():
            return False
        if not spec.dtype.is_int():
            return True
        low, high = spec.dtype.get_int_min_value(), spec.dtype.get_int_max_value()
        return low <= value <= high and not (spec.divisible and value % 16)
    return True
