"""Values as they travel between threads: 32-bit words for shuffles, vectors for shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from tritium.backends.emit import (
    Builder,
    LType,
    V,
    const,
    i8,
    i16,
    i32,
    i64,
    int_,
    undef,
    vec,
    zero,
)

WORD_BITS = 32


def memory_form(type_: LType) -> LType:
    """The type that a register is in memory: int1 a byte, 16-bit floats and pointers as bits."""
    if type_.is_pointer:
        return i64
    if type_.bits == 1:
        return i8
    return i16 if type_.is_float and type_.bits == 16 else type_


def to_memory(b: Builder, value: V) -> V:
    """A register in its memory form."""
    if value.type.is_pointer:
        return b.ptrtoint(value, i64)
    if value.type.bits == 1:
        return b.zext(value, i8)
    return b.bitcast(value, memory_form(value.type))


def from_memory(b: Builder, value: V, type_: LType) -> V:
    """The register of a memory form."""
    if type_.is_pointer:
        return b.inttoptr(value, type_)
    if type_.bits == 1:
        return b.icmp("ne", value, zero(value.type))
    return b.bitcast(value, type_)


def bits_of(b: Builder, value: V) -> V:
    """A register as an integer of its width in memory."""
    moved = to_memory(b, value)
    return b.as_int(moved) if moved.type.is_float else moved


def pack(b: Builder, values: Sequence[V | None], type_: LType) -> list[V]:
    """Registers, the first in the low bits, as 32-bit words; None may be anything."""
    size = memory_form(type_).bits
    numbers = [None if value is None else bits_of(b, value) for value in values]
    if size > WORD_BITS:
        (wide,) = numbers
        if wide is None:
            return [undef(i32), undef(i32)]
        return [b.trunc(wide, i32), b.trunc(b.lshr(wide, const(i64, WORD_BITS)), i32)]
    word: V | None = None
    for position, number in enumerate(numbers):
        if number is None:
            continue
        moved = b.shl(b.zext(number, i32), const(i32, position * size))
        word = moved if word is None else b.or_(word, moved, "disjoint")
    return [undef(i32) if word is None else word]


def unpack(b: Builder, words: Sequence[V], count: int, type_: LType) -> list[V]:
    """``count`` registers out of 32-bit words, as ``pack`` puts them there."""
    size = memory_form(type_).bits
    if size > WORD_BITS:
        low, high = (b.zext(word, i64) for word in words)
        bits = [b.or_(b.shl(high, const(i64, WORD_BITS)), low, "disjoint")]
    else:
        moved = (b.lshr(words[0], const(i32, position * size)) for position in range(count))
        bits = [b.trunc(each, int_(size)) for each in moved]
    form = memory_form(type_)
    return [from_memory(b, b.bitcast(each, form), type_) for each in bits]


def store(b: Builder, values: Sequence[V | None], type_: LType, address: V) -> None:
    """Neighbours in shared memory in one access, aligned to its size; None may be anything."""
    form = memory_form(type_)
    moved = [undef(form) if value is None else to_memory(b, value) for value in values]
    b.store(_vector(b, moved), address, align=form.bits // 8 * len(values))


def load(b: Builder, count: int, type_: LType, address: V) -> list[V]:
    """Neighbours in shared memory, in one access as ``store`` does it."""
    form = memory_form(type_)
    loaded = b.load(vec(form, count), address, align=form.bits // 8 * count)
    lanes = [loaded] if count == 1 else [b.extract(loaded, lane) for lane in range(count)]
    return [from_memory(b, lane, type_) for lane in lanes]


def _vector(b: Builder, values: Sequence[V]) -> V:
    if len(values) == 1:
        return values[0]
    whole = undef(vec(values[0].type, len(values)))
    for lane, value in enumerate(values):
        whole = b.insert(whole, value, lane)
    return whole
