"""What a launch hands to the interpreter: arguments that are bound, typed, and need no copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tritium.ir.core import ConcreteValue
from tritium.ir.dtypes import Array, DType, Type, from_numpy
from tritium.ir.types import PointerType
from tritium.ops.blocks import described
from tritium.ops.create import Constant
from tritium.ops.tile import Tile

from .memory import Range, byte_range


@dataclass(frozen=True)
class Pointer:
    """An array argument: the byte address of its first element, and the elements' type.

    ``const`` forbids the kernel to write through it.
    """

    element: DType | PointerType
    address: int
    const: bool = False

    @property
    def type(self) -> PointerType:
        return PointerType(self.element, const=self.const)

    def data(self) -> Array:
        """The address in storage form, shape ``()``."""
        return np.array(self.address, np.uint64)


@dataclass(frozen=True)
class Scalar:
    """A number passed at run time, as ``dtype``: integers wrap into it, floats are rounded."""

    dtype: DType
    value: bool | int | float

    @property
    def type(self) -> DType:
        return self.dtype

    def data(self) -> Array:
        """The number in storage form, shape ``()``."""
        number = float(self.value) if self.dtype.is_floating() else int(self.value)
        return np.asarray(Constant(value=number, dtype=self.dtype).evaluate(None))


@dataclass(frozen=True)
class Known:
    """A compile-time argument: a plain Python value, which the kernel gets as it is."""

    value: Any


Argument: TypeAlias = "Pointer | Scalar | Known | tuple[Any, ...] | None"
"""An argument of an eager launch. A tuple, named or not, holds arguments again."""


def surface_value(argument: Argument) -> Any:
    """The argument as a kernel's variable holds it."""
    if isinstance(argument, Known):
        return argument.value
    if isinstance(argument, tuple):
        fields = getattr(argument, "_fields", None)
        return described(map(surface_value, argument), fields)
    if argument is None:
        return None
    return Tile(ConcreteValue(argument.type, argument.data()))


def array_argument(array: NDArray[Any], element: DType | None = None) -> Pointer:
    """The ``Pointer`` to an array's first element, ``element`` by its dtype unless it is given.

    Raises KeyError for a dtype that no type of the language has.
    """
    address: int = array.__array_interface__["data"][0]
    return Pointer(from_numpy(array.dtype) if element is None else element, address)


def parameter_data(type: Type, argument: Any) -> tuple[Array, Range | None]:
    """A parameter of an ``ir.Function`` in storage form, and the memory it owns.

    Pointers are given as a ``Pointer``, an array or a byte address, scalars as a ``Scalar`` or a
    number.
    """
    owned: Range | None = None
    if isinstance(argument, np.ndarray) and isinstance(type, PointerType):
        owned = byte_range(argument)
        argument = argument.__array_interface__["data"][0]
    if isinstance(argument, (Pointer, Scalar)):
        if argument.type is not type and not type.is_ptr():
            raise TypeError(f"the parameter is {type}, the argument {argument.type}")
        return argument.data(), owned
    if isinstance(type, PointerType):
        return np.array(int(argument), type.numpy), owned
    assert isinstance(type, DType)
    return Scalar(type, argument).data(), owned
