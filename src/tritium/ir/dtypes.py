"""Scalar types: every fact about a dtype, once.

There is exactly one ``DType`` instance per scalar type, so identity is equality. Pointers and tiles
are other subclasses of ``Type``, which also declares the predicates kernels ask of any type.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

NumpyDType: TypeAlias = "np.dtype[Any]"
Array: TypeAlias = NDArray[Any]


class Category(enum.Enum):
    """What the bits of a scalar stand for."""

    VOID = "void"
    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"


class Kind(enum.IntEnum):
    """Promotion order of values: bool < integer < float."""

    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2


class Signedness(enum.Enum):
    """How an integer's top bit counts."""

    SIGNED = 0
    UNSIGNED = 1


class NanEncoding(enum.Enum):
    """Which bit patterns of a float format are NaN; only the IEEE encoding also has infinities."""

    IEEE = "exponent all ones, mantissa not zero"
    ALL_ONES = "exponent and mantissa all ones"
    NEGATIVE_ZERO = "the pattern of -0"
    ABSENT = "no NaN"


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """Layout of a binary float: sign, ``exponent_bits``, ``mantissa_bits`` from the top bit down.

    A stored exponent e > 0 means (1 + mantissa / 2**mantissa_bits) * 2**(e - bias); e = 0 means
    mantissa / 2**mantissa_bits * 2**(1 - bias). ``saturates``: a conversion into the format clamps
    what is too large, infinities included, to the largest finite value.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    nan: NanEncoding = NanEncoding.IEEE
    saturates: bool = False

    @property
    def bits(self) -> int:
        """Width of the format, sign included."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def has_inf(self) -> bool:
        """Whether the format has infinities."""
        return self.nan is NanEncoding.IEEE

    @property
    def has_nan(self) -> bool:
        """Whether the format has a NaN."""
        return self.nan is not NanEncoding.ABSENT

    @property
    def has_negative_zero(self) -> bool:
        """Whether -0 is a value of its own: false for the FNUZ formats, whose -0 pattern is NaN."""
        return self.nan is not NanEncoding.NEGATIVE_ZERO

    @property
    def sign_pattern(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1)

    @property
    def infinity_pattern(self) -> int | None:
        """Bit pattern of +infinity, None where the format has none."""
        if not self.has_inf:
            return None
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def nan_pattern(self) -> int | None:
        """Bit pattern of the canonical (positive, quiet) NaN, None where the format has none."""
        match self.nan:
            case NanEncoding.IEEE:
                return ((2 << self.exponent_bits) - 1) << (self.mantissa_bits - 1)
            case NanEncoding.ALL_ONES:
                return self.sign_pattern - 1
            case NanEncoding.NEGATIVE_ZERO:
                return self.sign_pattern
            case NanEncoding.ABSENT:
                return None

    @property
    def largest_pattern(self) -> int:
        """Bit pattern of the largest finite value."""
        if (infinity := self.infinity_pattern) is not None:
            return infinity - 1
        return self.sign_pattern - (2 if self.nan is NanEncoding.ALL_ONES else 1)

    @property
    def largest(self) -> float:
        """The largest finite value."""
        exponent, mantissa = divmod(self.largest_pattern, 1 << self.mantissa_bits)
        significand = 1.0 + mantissa * self.epsilon
        return significand * 2.0 ** (exponent - self.bias)

    @property
    def smallest_normal(self) -> float:
        """The smallest positive normal value."""
        return 2.0 ** (1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive value."""
        return 2.0 ** (1 - self.bias - self.mantissa_bits)

    @property
    def epsilon(self) -> float:
        """Distance from 1 to the next larger value."""
        return 2.0**-self.mantissa_bits


class Type:
    """Base class of all IR types: frozen, and interned, so that ``is`` compares them.

    The predicates below answer for scalars; a pointer or a tile answers False to those about
    numbers, as in Triton, and overrides the one that names what it is.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of a tile, ``()`` for everything else."""
        return ()

    @property
    def scalar(self) -> Type:
        """Element type of a tile, the type itself for everything else."""
        return self

    @property
    def mnemonic(self) -> str:
        """Spelling in signatures and in the IR's text form: ``i32``, ``*kfp32``, ``tile<4x8xi1>``.

        Raises AttributeError for what has none.
        """
        raise AttributeError(f"{type(self).__name__} has no mnemonic")

    @property
    def primitive_bitwidth(self) -> int:
        """Width of a value in bits, 64 for pointers; AttributeError for tiles."""
        raise AttributeError(f"{self} is no element type")

    @property
    def itemsize(self) -> int:
        """Bytes that an element takes in memory; AttributeError for tiles."""
        raise AttributeError(f"{self} is no element type")

    @property
    def numpy(self) -> NumpyDType:
        """The dtype of NumPy arrays that store elements, uint64 for addresses.

        AttributeError for tiles.
        """
        raise AttributeError(f"{self} is no element type")

    def is_block(self) -> bool:
        """Whether this is a tile type."""
        return False

    def is_ptr(self) -> bool:
        """Whether this is a pointer type."""
        return False

    def is_const(self) -> bool:
        """Whether this is a pointer to read-only memory."""
        return False

    def is_void(self) -> bool:
        """Whether this is ``void``."""
        return self is void

    def is_bool(self) -> bool:
        """Whether this is ``int1``."""
        return self is int1

    def is_int(self) -> bool:
        """Whether this is an integer, ``int1`` included."""
        return self.is_int_signed() or self.is_int_unsigned()

    def is_int_signed(self) -> bool:
        """Whether this is a signed integer."""
        return isinstance(self, DType) and self.category is Category.INT

    def is_int_unsigned(self) -> bool:
        """Whether this is an unsigned integer; ``int1`` is one."""
        return isinstance(self, DType) and self.category in (Category.UINT, Category.BOOL)

    def is_floating(self) -> bool:
        """Whether this is a float of any format."""
        return isinstance(self, DType) and self.category is Category.FLOAT

    def is_standard_floating(self) -> bool:
        """Whether this is ``float16``, ``bfloat16``, ``float32`` or ``float64``."""
        return self.is_floating() and not self.is_fp8()

    def is_fp8(self) -> bool:
        """Whether this is an 8-bit float."""
        return isinstance(self, DType) and self.is_floating() and self.bits == 8

    def is_int1(self) -> bool:
        """Whether this is ``int1``."""
        return self is int1

    def is_int8(self) -> bool:
        """Whether this is ``int8``."""
        return self is int8

    def is_int16(self) -> bool:
        """Whether this is ``int16``."""
        return self is int16

    def is_int32(self) -> bool:
        """Whether this is ``int32``."""
        return self is int32

    def is_int64(self) -> bool:
        """Whether this is ``int64``."""
        return self is int64

    def is_uint8(self) -> bool:
        """Whether this is ``uint8``."""
        return self is uint8

    def is_uint16(self) -> bool:
        """Whether this is ``uint16``."""
        return self is uint16

    def is_uint32(self) -> bool:
        """Whether this is ``uint32``."""
        return self is uint32

    def is_uint64(self) -> bool:
        """Whether this is ``uint64``."""
        return self is uint64

    def is_fp8e4nv(self) -> bool:
        """Whether this is ``float8e4nv``."""
        return self is float8e4nv

    def is_fp8e4b8(self) -> bool:
        """Whether this is ``float8e4b8``."""
        return self is float8e4b8

    def is_fp8e4b15(self) -> bool:
        """Whether this is ``float8e4b15``."""
        return self is float8e4b15

    def is_fp8e5(self) -> bool:
        """Whether this is ``float8e5``."""
        return self is float8e5

    def is_fp8e5b16(self) -> bool:
        """Whether this is ``float8e5b16``."""
        return self is float8e5b16

    def is_fp16(self) -> bool:
        """Whether this is ``float16``."""
        return self is float16

    def is_bf16(self) -> bool:
        """Whether this is ``bfloat16``."""
        return self is bfloat16

    def is_fp32(self) -> bool:
        """Whether this is ``float32``."""
        return self is float32

    def is_fp64(self) -> bool:
        """Whether this is ``float64``."""
        return self is float64


class DType(Type):
    """A scalar type. ``DType(spelling)`` returns the one instance, as ``from_name`` does.

    ``name`` is Triton's ``str()`` of the type, ``mnemonic`` its spelling in signatures and in the
    IR's text form. ``bits`` is the width of a value (1 for ``int1``, 0 for ``void``). ``numpy`` is
    the dtype of NumPy arrays that store it: ``bool`` for ``int1``, ml_dtypes' types for
    ``bfloat16`` and the 8-bit floats, and ``uint8`` (raw patterns) for ``float8e4b15``, which
    ml_dtypes lacks.
    """

    __slots__ = ("__weakref__", "_format", "bits", "category", "mnemonic", "name", "numpy")

    KIND = Kind
    SIGNEDNESS = Signedness

    name: str
    mnemonic: str
    category: Category
    bits: int
    numpy: NumpyDType
    _format: FloatFormat | None

    def __new__(cls, name: str) -> DType:
        """Return the interned type of that spelling; KeyError for an unknown one."""
        return from_name(name)

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} is frozen")

    def __delattr__(self, attribute: str) -> NoReturn:
        raise AttributeError(f"{self!r} is frozen")

    def __reduce__(self) -> tuple[type[DType], tuple[str]]:
        return DType, (self.name,)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"tritium.language.{self.codegen_name()}"

    @property
    def scalar(self) -> DType:
        """The type itself."""
        return self

    @property
    def format(self) -> FloatFormat:
        """Layout of a float type; AttributeError for other types."""
        if self._format is None:
            raise AttributeError(f"{self} is not a float type")
        return self._format

    @property
    def compute(self) -> DType:
        """The type arithmetic is carried out in: ``float32`` for narrower floats, else itself."""
        return float32 if self.is_floating() and self.bits < 32 else self

    @property
    def primitive_bitwidth(self) -> int:
        """Width of a value in bits."""
        return self.bits

    @property
    def itemsize(self) -> int:
        """Bytes a value takes in memory: 1 for ``int1``, 0 for ``void``."""
        return (self.bits + 7) // 8

    @property
    def int_bitwidth(self) -> int:
        """Width of an integer type in bits; AttributeError for other types."""
        if not self.is_int():
            raise AttributeError(f"{self} is not an integer type")
        return self.bits

    @property
    def int_signedness(self) -> Signedness:
        """Signedness of an integer type; AttributeError for other types."""
        if not self.is_int():
            raise AttributeError(f"{self} is not an integer type")
        return Signedness.SIGNED if self.is_int_signed() else Signedness.UNSIGNED

    @property
    def fp_mantissa_width(self) -> int:
        """Stored mantissa bits of a float type; AttributeError for other types."""
        return self.format.mantissa_bits

    @property
    def exponent_bias(self) -> int:
        """Exponent bias of a float type; AttributeError for other types."""
        return self.format.bias

    @property
    def cache_key_part(self) -> str:
        """The type's part of a compilation cache key."""
        return self.name

    def kind(self) -> Kind:
        """Place in the promotion order; TypeError for ``void``."""
        if self.is_bool():
            return Kind.BOOLEAN
        if self.is_int():
            return Kind.INTEGRAL
        if self.is_floating():
            return Kind.FLOATING
        raise TypeError(f"{self} has no place in the promotion order")

    def get_int_min_value(self) -> int:
        """Smallest value of an integer type; AttributeError for other types."""
        bits = self.int_bitwidth
        return -(1 << (bits - 1)) if self.is_int_signed() else 0

    def get_int_max_value(self) -> int:
        """Largest value of an integer type; AttributeError for other types."""
        bits = self.int_bitwidth
        return (1 << (bits - 1 if self.is_int_signed() else bits)) - 1

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """Whether ``type_str`` is the ``name`` of a scalar type."""
        return any(dtype.name == type_str for dtype in ALL)

    def codegen_name(self) -> str:
        """Name of the type in ``tritium.language``: ``float32`` for the type named ``fp32``."""
        if self.is_floating():
            return self.name.replace("fp", "float").replace("bf", "bfloat")
        return self.name

    def with_element_ty(self, element_ty: Type) -> Type:
        """The type of this one's shape with elements of ``element_ty``: ``element_ty`` itself."""
        return element_ty


def _intern(
    name: str,
    mnemonic: str,
    category: Category,
    bits: int,
    storage: Any,
    float_format: FloatFormat | None = None,
) -> DType:
    """Create the one instance of a scalar type, past ``DType``'s lookup and freeze."""
    dtype = object.__new__(DType)
    for attribute, value in {
        "name": name,
        "mnemonic": mnemonic,
        "category": category,
        "bits": bits,
        "numpy": np.dtype(storage),
        "_format": float_format,
    }.items():
        object.__setattr__(dtype, attribute, value)
    return dtype


def _int(bits: int) -> DType:
    return _intern(f"int{bits}", f"i{bits}", Category.INT, bits, f"int{bits}")


def _uint(bits: int) -> DType:
    return _intern(f"uint{bits}", f"u{bits}", Category.UINT, bits, f"uint{bits}")


def _float(name: str, storage: Any, float_format: FloatFormat) -> DType:
    return _intern(name, name, Category.FLOAT, float_format.bits, storage, float_format)


void = _intern("void", "void", Category.VOID, 0, "V")
int1 = _intern("int1", "i1", Category.BOOL, 1, "bool")
int8, int16, int32, int64 = (_int(bits) for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_uint(bits) for bits in (8, 16, 32, 64))
float8e4nv = _float(
    "fp8e4nv", ml_dtypes.float8_e4m3fn, FloatFormat(4, 3, 7, NanEncoding.ALL_ONES, saturates=True)
)
float8e4b8 = _float(
    "fp8e4b8",
    ml_dtypes.float8_e4m3fnuz,
    FloatFormat(4, 3, 8, NanEncoding.NEGATIVE_ZERO, saturates=True),
)
float8e4b15 = _float("fp8e4b15", "uint8", FloatFormat(4, 3, 15, NanEncoding.ABSENT, saturates=True))
float8e5 = _float("fp8e5", ml_dtypes.float8_e5m2, FloatFormat(5, 2, 15, saturates=True))
float8e5b16 = _float(
    "fp8e5b16",
    ml_dtypes.float8_e5m2fnuz,
    FloatFormat(5, 2, 16, NanEncoding.NEGATIVE_ZERO, saturates=True),
)
float16 = _float("fp16", "float16", FloatFormat(5, 10, 15))
bfloat16 = _float("bf16", ml_dtypes.bfloat16, FloatFormat(8, 7, 127))
float32 = _float("fp32", "float32", FloatFormat(8, 23, 127))
float64 = _float("fp64", "float64", FloatFormat(11, 52, 1023))

SIGNED_INTEGERS: tuple[DType, ...] = (int8, int16, int32, int64)
UNSIGNED_INTEGERS: tuple[DType, ...] = (int1, uint8, uint16, uint32, uint64)
FLOATS8: tuple[DType, ...] = (float8e4nv, float8e4b8, float8e4b15, float8e5, float8e5b16)
STANDARD_FLOATS: tuple[DType, ...] = (float16, bfloat16, float32, float64)
INTEGERS = SIGNED_INTEGERS + UNSIGNED_INTEGERS
FLOATS = FLOATS8 + STANDARD_FLOATS
VALUES = INTEGERS + FLOATS
ALL = (void, *VALUES)

# What other libraries and Triton's signatures call the types, beside ``name``, ``mnemonic`` and the
# name in ``tritium.language``.
_OTHER_SPELLINGS: dict[str, DType] = {
    "bool": int1,
    "uint1": int1,
    "u1": int1,
    "int": int32,
    "half": float16,
    "float": float32,
    "double": float64,
    "float8_e4m3fn": float8e4nv,
    "float8_e4m3fnuz": float8e4b8,
    "float8_e5m2": float8e5,
    "float8_e5m2fnuz": float8e5b16,
}

_BY_NAME: dict[str, DType] = {
    spelling: dtype
    for dtype in ALL
    for spelling in (dtype.name, dtype.mnemonic, dtype.codegen_name())
} | _OTHER_SPELLINGS

# float8e4b15 is left out: its storage is uint8's.
BY_NUMPY: dict[NumpyDType, DType] = {
    dtype.numpy: dtype for dtype in VALUES if dtype is not float8e4b15
}
"""What ``from_numpy`` gives."""


def from_name(name: str) -> DType:
    """The type of any accepted spelling: ``fp32``, ``float32``, ``float``, ``float8_e4m3fn``, ...

    Raises KeyError for a spelling that names no scalar type (``complex64``).
    """
    return _BY_NAME[name]


def from_numpy(dtype: NumpyDType) -> DType:
    """The type whose values arrays of that NumPy dtype hold; ``uint8`` is always ``uint8``.

    Raises KeyError for dtypes with no counterpart: complex, object, structured, byte-swapped, ...
    """
    return BY_NUMPY[dtype]


def get_int_dtype(bitwidth: int, signed: bool) -> DType:
    """The integer type of that width; width 1 is ``int1``, signed or not.

    Raises ValueError when there is none.
    """
    for dtype in INTEGERS:
        if dtype.bits == bitwidth and (bitwidth == 1 or dtype.is_int_signed() == signed):
            return dtype
    sign = "signed" if signed else "unsigned"
    raise ValueError(f"there is no {sign} integer type of {bitwidth} bits")
