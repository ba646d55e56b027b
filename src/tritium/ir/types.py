"""Types that are built from the scalar types: pointers and tiles.

Both are interned: equal types are the same object, so ``is`` compares them.
"""

from __future__ import annotations

import math
from typing import Any

from .dtypes import DType, NumpyDType, Type, uint64

MAX_TILE_NUMEL = 1 << 20
"""Most elements a tile may have, as Triton's TRITON_MAX_TENSOR_NUMEL."""


class PointerType(Type):
    """An address of elements of ``element_ty``; ``const`` forbids writing through it."""

    __slots__ = ("address_space", "const", "element_ty")
    _interned: dict[tuple[Type, bool, str], PointerType] = {}

    element_ty: Type
    const: bool
    address_space: str

    def __new__(
        cls, element_ty: Type, address_space: str | int = "global", const: bool = False
    ) -> PointerType:
        key = (element_ty, bool(const), "global" if address_space == 1 else str(address_space))
        made = cls._interned.get(key)
        if made is None:
            made = super().__new__(cls)
            made.element_ty, made.const, made.address_space = key
            made = cls._interned.setdefault(key, made)
        return made

    @property
    def primitive_bitwidth(self) -> int:
        return 64

    @property
    def itemsize(self) -> int:
        return 8

    @property
    def numpy(self) -> NumpyDType:
        return uint64.numpy

    @property
    def name(self) -> str:
        return f"{'const_' if self.const else ''}pointer<{self.element_ty}>"

    @property
    def mnemonic(self) -> str:
        """Signature and text form: ``*fp32``, ``*kfp32`` when const, ``*<shared>fp32``."""
        space = "" if self.address_space == "global" else f"<{self.address_space}>"
        return f"*{'k' if self.const else ''}{space}{self.element_ty.mnemonic}"

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (PointerType, (self.element_ty, self.address_space, self.const))


class TileType(Type):
    """A tile: ``shape`` extents (each at least 1, any size) of one scalar or pointer type."""

    __slots__ = ("_shape", "element_ty", "numel")
    _interned: dict[tuple[Type, tuple[int, ...]], TileType] = {}

    element_ty: Type
    numel: int
    _shape: tuple[int, ...]

    def __new__(cls, element_ty: Type, shape: tuple[int, ...]) -> TileType:
        key = (element_ty, tuple(int(n) for n in shape))
        made = cls._interned.get(key)
        if made is None:
            if not key[1] or any(n < 1 for n in key[1]):
                raise ValueError(f"a tile needs at least one axis and extents over 0, got {shape}")
            made = super().__new__(cls)
            made.element_ty, made._shape = key
            made.numel = math.prod(key[1])
            made = cls._interned.setdefault(key, made)
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def scalar(self) -> Type:
        return self.element_ty

    @property
    def name(self) -> str:
        return f"<{self._shape}, {self.element_ty}>"

    @property
    def mnemonic(self) -> str:
        """Text form: ``tile<16x64xfp32>``."""
        return f"tile<{'x'.join(map(str, self._shape))}x{self.element_ty.mnemonic}>"

    @property
    def nbytes(self) -> int:
        return self.numel * self.element_ty.itemsize

    def get_block_shapes(self) -> tuple[int, ...]:
        return self._shape

    def is_block(self) -> bool:
        return True

    def __str__(self) -> str:
        return self.mnemonic

    def __repr__(self) -> str:
        return self.mnemonic

    def __reduce__(self) -> tuple[Any, ...]:
        return (TileType, (self.element_ty, self._shape))


def shaped(scalar: Type, shape: tuple[int, ...]) -> Type:
    """The tile of ``scalar`` elements with that shape, or ``scalar`` itself for ``()``."""
    return TileType(scalar, shape) if shape else scalar


def like(pattern: Type, scalar: Type) -> Type:
    """The type of ``pattern``'s shape with elements of ``scalar``."""
    return shaped(scalar, pattern.shape)


def element(pointer: Type) -> DType | PointerType:
    """What a pointer, or a tile of pointers, points to."""
    scalar = pointer.scalar
    if not isinstance(scalar, PointerType):
        raise TypeError(f"{pointer} is no pointer")
    pointee = scalar.element_ty
    assert isinstance(pointee, (DType, PointerType))
    return pointee
