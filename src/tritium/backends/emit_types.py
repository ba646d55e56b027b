"""LLVM types and values as the text emitter sees them.

A type (`LType`) is interned: two requests for the same type give the same object, so types are
compared with `is`. A value (`V`) is the text LLVM reads (`%name`, `@name` or a constant) and its
type; a constant that is one number in every lane also carries that number, which is what the
emitter folds on.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache


class EmitError(RuntimeError):
    """The caller of the emitter broke one of its rules: always a fault of the code generator."""


class Kind(Enum):
    """What an LLVM type is."""

    VOID = "void"
    INT = "int"
    FLOAT = "float"
    POINTER = "pointer"
    VECTOR = "vector"
    ARRAY = "array"
    STRUCT = "struct"


@dataclass(frozen=True, eq=False)
class LType:
    """An LLVM type.

    `bits` is the width of an integer or float, or of one lane of a vector; 0 for other types.
    `count` is the number of lanes of a vector or elements of an array, 1 otherwise. `element` is
    the lane or element type; `fields` are those of a struct.
    """

    text: str
    kind: Kind
    bits: int = 0
    count: int = 1
    element: LType | None = None
    fields: tuple[LType, ...] = ()
    address_space: int = 0

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    @property
    def is_vector(self) -> bool:
        return self.kind is Kind.VECTOR

    @property
    def is_int(self) -> bool:
        """An integer, or a vector of integers."""
        return elem(self).kind is Kind.INT

    @property
    def is_float(self) -> bool:
        """A floating point type, or a vector of one."""
        return elem(self).kind is Kind.FLOAT

    @property
    def is_pointer(self) -> bool:
        """A pointer, or a vector of pointers."""
        return elem(self).kind is Kind.POINTER

    @cached_property
    def mangled(self) -> str:
        """The suffix that stands for this type in the name of an overloaded intrinsic."""
        if self.kind is Kind.VECTOR:
            return f"v{self.count}{elem(self).mangled}"
        if self.kind is Kind.INT:
            return f"i{self.bits}"
        if self.kind is Kind.FLOAT:
            return "bf16" if self is bfloat else f"f{self.bits}"
        if self.kind is Kind.POINTER:
            return f"p{self.address_space}"
        raise EmitError(f"no intrinsic is overloaded on {self.text}")


void = LType("void", Kind.VOID)
half = LType("half", Kind.FLOAT, 16)
bfloat = LType("bfloat", Kind.FLOAT, 16)
float_ = LType("float", Kind.FLOAT, 32)
double = LType("double", Kind.FLOAT, 64)


_interned: dict[str, LType] = {}


def _intern(type_: LType) -> LType:
    """The one object for this type, also when two threads ask at once."""
    return _interned.setdefault(type_.text, type_)


def int_(bits: int) -> LType:
    """The integer type of `bits` bits."""
    return _interned.get(f"i{bits}") or _intern(LType(f"i{bits}", Kind.INT, bits))


i1, i8, i16, i32, i64, i128 = (int_(_bits) for _bits in (1, 8, 16, 32, 64, 128))


def pointer(address_space: int = 0) -> LType:
    """The pointer type of an address space."""
    text = f"ptr addrspace({address_space})" if address_space else "ptr"
    return _intern(LType(text, Kind.POINTER, address_space=address_space))


ptr = pointer()


def vec(element: LType, count: int) -> LType:
    """The vector of `count` lanes of `element`; `element` itself where `count` is 1."""
    text = f"<{count} x {element.text}>"
    if text in _interned:
        return _interned[text]
    if element.kind not in (Kind.INT, Kind.FLOAT, Kind.POINTER):
        raise EmitError(f"no vector of {element.text}")
    if count < 1:
        raise EmitError(f"a vector of {count} lanes")
    if count == 1:
        return element
    return _intern(LType(text, Kind.VECTOR, element.bits, count, element))


def array(element: LType, count: int) -> LType:
    """The array of `count` elements: for globals and allocas."""
    return _intern(LType(f"[{count} x {element.text}]", Kind.ARRAY, 0, count, element))


def struct_type(*fields: LType) -> LType:
    """The literal struct with these fields."""
    inner = ", ".join(field.text for field in fields)
    return _intern(LType(f"{{ {inner} }}", Kind.STRUCT, fields=fields))


def elem(type_: LType) -> LType:
    """The lane type of a vector; any other type itself."""
    if type_.kind is Kind.VECTOR:
        assert type_.element is not None
        return type_.element
    return type_


def lanes(type_: LType) -> int:
    """The number of lanes: 1 for a scalar."""
    return type_.count if type_.kind is Kind.VECTOR else 1


def like(type_: LType, element: LType) -> LType:
    """The type with the lanes of `type_` and the given element."""
    return vec(element, lanes(type_))


class V:
    """An SSA value or constant: the text LLVM reads, its type, the number that fills it if one
    does.

    Integers are kept as their signed value (`i1`: 0 or 1), floats as the Python float that was
    asked for, already rounded to the type.
    """

    __slots__ = ("number", "text", "type")

    def __init__(self, text: str, type_: LType, number: int | float | None = None) -> None:
        self.text = text
        self.type = type_
        self.number = number

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"

    __repr__ = __str__

    @property
    def is_const(self) -> bool:
        """One known number in every lane."""
        return self.number is not None

    @property
    def integer(self) -> int | None:
        """The known integer in every lane, or None."""
        return self.number if isinstance(self.number, int) else None


def wrap(value: int, bits: int) -> int:
    """`value` modulo 2**bits as the signed integer the emitter keeps (0 or 1 for one bit)."""
    value &= (1 << bits) - 1
    if bits > 1 and value >> (bits - 1):
        value -= 1 << bits
    return value


def _double_text(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _round_to(element: LType, value: float) -> tuple[float, str]:
    """`value` rounded once to the element type, and LLVM's exact text of it."""
    if element is double:
        return value, _double_text(value)
    if element is float_:
        rounded = _to_float32(value)
        return rounded, _double_text(rounded)
    if element is half:
        bits = _half_bits(value)
        return struct.unpack("<e", struct.pack("<H", bits))[0], f"0xH{bits:04X}"
    raise EmitError(f"no float constant of type {element.text}: make it of the bits")


def _to_float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _half_bits(value: float) -> int:
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 | (0x8000 if value < 0 else 0)


@lru_cache(maxsize=4096)
def _int_const(type_: LType, value: int) -> V:
    number = wrap(value, type_.bits)
    text = ("false", "true")[number] if type_.bits == 1 else str(number)
    if type_.is_vector:
        text = "zeroinitializer" if number == 0 else f"splat ({elem(type_).text} {text})"
    return V(text, type_, number)


@lru_cache(maxsize=4096)
def _float_const(type_: LType, value: float, is_minus_zero: bool) -> V:
    element = elem(type_)
    number, text = _round_to(element, value)
    if type_.is_vector:
        text = f"splat ({element.text} {text})"
    return V(text, type_, number)


def const(type_: LType, value: int | float | bool) -> V:
    """The constant `value` in every lane. Integers wrap; floats are rounded once, exactly spelt.

    Raises EmitError for a float constant of type bfloat (use the bits) and for pointers other than
    null.
    """
    element = elem(type_)
    if element.kind is Kind.INT:
        if not isinstance(value, int):
            raise EmitError(f"{value!r} as a constant of type {type_.text}")
        return _int_const(type_, int(value))
    if element.kind is Kind.POINTER:
        if value != 0:
            raise EmitError("a pointer constant other than null: use inttoptr")
        return V("zeroinitializer" if type_.is_vector else "null", type_)
    if element.kind is not Kind.FLOAT:
        raise EmitError(f"no constant of type {type_.text}")
    number = float(value)
    # Zeros are equal, whatever their signs.
    return _float_const(type_, number, number == 0 and math.copysign(1.0, number) < 0)


def const_lanes(element: LType, values: Sequence[int | float]) -> V:
    """The constant vector with these lanes (`<0, 1, 2, ...>` for an index vector)."""
    if not values:
        raise EmitError("a constant vector without lanes")
    if len(set(values)) == 1 and element.kind is Kind.INT:
        return const(vec(element, len(values)), values[0])
    inner = ", ".join(str(const(element, value)) for value in values)
    type_ = vec(element, len(values))
    return V(f"<{inner}>", type_) if type_.is_vector else const(element, values[0])


def zero(type_: LType) -> V:
    """Zero (+0.0, null, false) of any type, aggregates included."""
    if type_.kind in (Kind.ARRAY, Kind.STRUCT):
        return V("zeroinitializer", type_)
    return const(type_, 0)


def undef(type_: LType) -> V:
    """A value nobody reads (LLVM's poison)."""
    return V("poison", type_)


true, false = const(i1, 1), const(i1, 0)
