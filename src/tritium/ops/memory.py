"""Pointer arithmetic, loads and stores."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tritium.diagnostics import TritiumError, error
from tritium.ir.core import READS, WRITES, Op, Value, attribute, op, operand, optional
from tritium.ir.dtypes import (
    INTEGERS,
    VALUES,
    Array,
    DType,
    Type,
    float8e5,
    float32,
    float64,
    int1,
    int8,
    int32,
    int64,
)
from tritium.ir.types import PointerType, element, like, shaped

from . import samples
from .blocks import BlockPointer, load_block, store_block
from .cast import bitcast_tile, cast, convert_tile
from .constants import constant, describe, number, to_tile
from .constexpr import unwrap
from .create import static_choice, static_flag
from .emit import METHODS, emit_tile, surface
from .shape import broadcast_tile, broadcast_tiles, common_shape
from .spec import Case, Reject, Sample, given
from .tile import Tile
from .tuples import SEQUENCES

CACHE_MODIFIERS = ("", "ca", "cg", "cs", "cv", "wb", "wt")
EVICTION_POLICIES = ("", "evict_first", "evict_last", "evict_normal")


@op("memory.offset")
class Offset(Op):
    """``pointer`` moved by ``offset`` elements of what it points to.

    The address is pointer + offset * itemsize modulo 2**64, where the offset is first extended to
    64 bits by its own signedness. An int1 element takes one byte.
    """

    pointer: Value = operand()
    offset: Value = operand()

    def infer(self) -> Type:
        _require_pointer("pointer arithmetic", self.pointer.type)
        if not self.offset.scalar.is_int() or self.offset.shape != self.pointer.shape:
            raise error(
                "E0201",
                op="pointer arithmetic",
                left=self.pointer.type,
                right=self.offset.type,
                hint="an offset is an integer",
            )
        return self.pointer.type

    def evaluate(self, machine: Any, pointer: Any, offset: Any) -> Any:
        extended = np.asarray(offset).astype(np.int64).view(np.uint64)
        size = np.uint64(element(self.pointer.type).itemsize)
        return np.asarray(pointer) + extended * size

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Offsets of every integer type, elements of every size, addresses that wrap."""
        pairs = [(float32, dtype) for dtype in INTEGERS] + [(dtype, int32) for dtype in VALUES]
        for pointee, dtype in pairs:
            offset = samples.tile(dtype, (48,))
            operands = {"pointer": samples.tile(PointerType(pointee), (48,)), "offset": offset}
            yield Case(cls, f"{PointerType(pointee)} + {dtype}", operands)
        one = Sample(PointerType(float64), np.asarray(4096, np.uint64))
        yield Case(cls, "scalars", {"pointer": one, "offset": samples.ordinary(int64, ())})


@op("memory.load", effects=READS)
class Load(Op):
    """The elements at ``pointer``; lanes whose ``mask`` is false read no memory.

    They give ``other``, or 0 without it. ``mask`` and ``other`` have the pointer's shape. An int1
    element is a byte in memory and true where that byte isn't 0. ``cache``, ``eviction`` and
    ``volatile`` change no result; a volatile load is carried out exactly once.
    """

    pointer: Value = operand()
    mask: Value | None = optional()
    other: Value | None = optional()
    cache: str = attribute("")
    eviction: str = attribute("")
    volatile: bool = attribute(False)

    @property
    def is_fresh(self) -> bool:
        """Whether it reads memory that may change meanwhile: each time something else."""
        return self.volatile or self.cache == "cv"

    def infer(self) -> Type:
        _require_pointer("load", self.pointer.type)
        made = like(self.pointer.type, element(self.pointer.type))
        _require_mask("load", self.mask, self.pointer)
        if self.other is not None:
            if self.mask is None:
                raise error("E0604", op="load", argument="other")
            if self.other.type is not made:
                raise error(
                    "E0204", op="load", expected=f"other of {made}", got=self.other.type, hint=""
                )
        return made

    def evaluate(self, machine: Any, pointer: Any, mask: Any, other: Any) -> Any:
        pointer = np.asarray(pointer)
        stored = _in_memory(element(self.pointer.type))
        fill = np.zeros(pointer.shape, stored) if other is None else np.asarray(other)
        loaded = machine.load(self, pointer, mask, fill.astype(stored, copy=False))
        return loaded != 0 if element(self.pointer.type) is int1 else loaded

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every element type; repeated, scattered and masked addresses; several shapes."""
        for dtype in (*VALUES, samples.POINTER):
            for shape in [(80,), (3, 5), ()] if dtype is float32 else [(48,)]:
                for parts in ("", "mask", "mask other"):
                    yield _load_case(cls, dtype, shape, parts.split())
        for volatile in (False, True):
            made = _load_case(cls, float32, (5,), ["mask"])
            options = {"cache": "cg", "eviction": "evict_last", "volatile": volatile}
            label = f"options {volatile}"
            yield Case(cls, label, made.operands, options, buffers=made.buffers, row=made.row)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers that are none, masks and other values that don't fit, options."""
        p, flags = _pointers, _flags
        yield Reject("no pointer", "E0601", lambda: load(given(float32, 4)), "pointer")
        yield Reject("a number", "E0601", lambda: load(0), "pointer")
        yield Reject("an int32 mask", "E0602", lambda: load(p(4), given(int32, 4)), "mask")
        yield Reject("a constant mask", "E0602", lambda: load(p(4), 1), "mask")
        yield Reject("a float mask", "E0602", lambda: load(p(4), given(float32, 4)), "mask")
        yield Reject("a mask of a scalar", "E0603", lambda: load(p(), flags(4)), "mask")
        yield Reject("a mask that doesn't fit", "E0603", lambda: load(p(4), flags(3)), "mask")
        other = lambda: load(p(4), flags(4), given(float32, 3))  # noqa: E731
        yield Reject("other that doesn't fit", "E0603", other, "other")
        yield Reject("other without a mask", "E0604", lambda: load(p(4), other=0.0), "other")
        yield Reject("a cache", "E0606", lambda: load(p(4), cache_modifier=".xy"), "cache_modifier")
        policy = lambda: load(p(4), eviction_policy="last")  # noqa: E731
        yield Reject("a policy", "E0606", policy, "eviction_policy")
        check = lambda: load(p(4), boundary_check=(0,))  # noqa: E731
        yield Reject("boundary_check", "E0607", check, "boundary_check")
        padding = lambda: load(p(4), padding_option="zero")  # noqa: E731
        yield Reject("padding_option", "E0607", padding, "padding_option")
        check = lambda: load(p(4), boundary_check=0)  # noqa: E731
        yield Reject("an axis to check", "E0607", check, "boundary_check")
        for name in ("cache_modifier", "eviction_policy", "volatile"):
            option = {name: given(int32)}
            runtime = functools.partial(load, p(4), **option)
            yield Reject(f"a runtime {name}", "E0205", runtime, name)


@op("memory.store", effects=WRITES)
class Store(Op):
    """Writes ``value`` to ``pointer`` in the lanes whose ``mask`` is true, all without one.

    All have one shape, ``value`` the element type. int1 is written as a byte 0 or 1. Where lanes
    share an address, one of their values is written, whole. ``cache`` and ``eviction`` change no
    result.
    """

    pointer: Value = operand()
    value: Value = operand()
    mask: Value | None = optional()
    cache: str = attribute("")
    eviction: str = attribute("")

    def infer(self) -> None:
        _require_pointer("store", self.pointer.type)
        if self.pointer.scalar.is_const():
            raise error("E0605", op="store", got=self.pointer.type, argument="pointer")
        _require_mask("store", self.mask, self.pointer)
        wanted = like(self.pointer.type, element(self.pointer.type))
        if self.value.type is not wanted:
            raise error(
                "E0204", op="store", expected=f"a value of {wanted}", got=self.value.type, hint=""
            )

    def evaluate(self, machine: Any, pointer: Any, value: Any, mask: Any) -> None:
        stored = _in_memory(element(self.pointer.type))
        values = np.asarray(value).astype(stored, copy=False)
        machine.store(self, np.asarray(pointer), values, mask)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every element type; scattered and masked addresses; several shapes."""
        for dtype in (*VALUES, samples.POINTER):
            for shape in [(80,), (3, 5), ()] if dtype is float32 else [(48,)]:
                for parts in ("", "mask"):
                    yield _store_case(cls, dtype, shape, parts.split())

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers that are none or const, values and masks that don't fit, options."""
        p, flags, x = _pointers, _flags, samples.floats
        yield Reject("no pointer", "E0601", lambda: store(x(4), 0.0), "pointer")
        yield Reject("a const pointer", "E0605", lambda: store(p(4, const=True), 0.0), "pointer")
        yield Reject("an int32 mask", "E0602", lambda: store(p(4), 0.0, given(int32, 4)), "mask")
        yield Reject("a value for a scalar", "E0603", lambda: store(p(), x(4)), "value")
        yield Reject("a larger value", "E0603", lambda: store(p(4), x(2, 4)), "value")
        yield Reject("another value", "E0603", lambda: store(p(4), x(3)), "value")
        yield Reject("a mask of a scalar", "E0603", lambda: store(p(), 0.0, flags(4)), "mask")
        yield Reject("a larger mask", "E0603", lambda: store(p(4), 0.0, flags(2, 4)), "mask")
        yield Reject("no value", "E0210", lambda: store(p(4), None), "value")
        yield Reject(
            "an integer as fp8",
            "E0210",
            lambda: store(_pointers(4, scalar=float8e5), given(int8, 4)),
            "value",
        )
        check = lambda: store(p(4), 0.0, boundary_check=(0,))  # noqa: E731
        yield Reject("boundary_check", "E0607", check, "boundary_check")
        for name in ("cache_modifier", "eviction_policy"):
            option = {name: given(int32)}
            runtime = functools.partial(store, p(4), 0.0, **option)
            yield Reject(f"a runtime {name}", "E0205", runtime, name)


def _pointers(*shape: int, scalar: Type = float32, const: bool = False) -> Tile:
    return given(PointerType(scalar, const=const), *shape)


def _flags(*shape: int) -> Tile:
    return given(int1, *shape)


def _addresses(scalar: Type, offsets: Array) -> Sample:
    return Sample(shaped(PointerType(scalar), offsets.shape), offsets, "memory")


def _load_case(cls: type[Op], scalar: Type, shape: tuple[int, ...], parts: list[str]) -> Case:
    """Random, repeated offsets; masked lanes point far outside."""
    rng = np.random.default_rng(7)
    offsets = np.asarray(rng.integers(0, 100, shape))
    operands: dict[str, Sample] = {}
    if "mask" in parts:
        mask = np.asarray(rng.integers(0, 3, shape) > 0)
        operands["mask"] = Sample(shaped(int1, shape), mask)
        offsets = np.where(mask, offsets, offsets + (1 << 40))
    if "other" in parts:
        operands["other"] = samples.tile(scalar, shape, 2)
    operands["pointer"] = _addresses(scalar, offsets)
    label = " ".join([str(scalar), str(list(shape)), *parts])
    buffers = {"memory": samples.tile(scalar, (100,), 1).data}
    return Case(cls, label, operands, buffers=buffers, row=scalar)


def _store_case(cls: type[Op], scalar: Type, shape: tuple[int, ...], parts: list[str]) -> Case:
    """Random offsets, each once: which of equal ones wins is open."""
    rng = np.random.default_rng(8)
    offsets = rng.permutation(100)[: math.prod(shape)].reshape(shape)
    operands = {"value": samples.tile(scalar, shape, 3)}
    if "mask" in parts:
        mask = np.asarray(rng.integers(0, 3, shape) > 0)
        operands["mask"] = Sample(shaped(int1, shape), mask)
        offsets = np.where(mask, offsets, offsets + (1 << 40))
    operands["pointer"] = _addresses(scalar, offsets)
    label = " ".join([str(scalar), str(list(shape)), *parts])
    buffers = {"memory": samples.tile(scalar, (100,), 1).data}
    return Case(cls, label, operands, buffers=buffers, row=scalar)


def _in_memory(scalar: Type) -> np.dtype[Any]:
    """The NumPy dtype that has an element's bytes; int1 as uint8, so that any byte is legal."""
    return np.dtype(np.uint8) if scalar is int1 else scalar.numpy


def _require_pointer(name: str, got: Type) -> None:
    if not isinstance(got.scalar, PointerType):
        raise error("E0601", op=name, got=got, argument="pointer")


def _require_mask(name: str, mask: Value | None, pointer: Value) -> None:
    if mask is None:
        return
    if mask.scalar is not int1:
        raise error("E0602", op=name, got=mask.type, argument="mask")
    if mask.shape != pointer.shape:
        raise _unfit(name, "mask", mask.shape, pointer.shape)


def _unfit(name: str, argument: str, got: tuple[int, ...], shape: tuple[int, ...]) -> Exception:
    return error("E0603", op=name, name=argument, got=got, shape=shape, argument=argument)


def offset_pointer(pointer: Tile, offset: Tile, *, negate: bool = False) -> Tile:
    """``pointer + offset``, or ``pointer - offset``: the operands are broadcast together.

    A signed offset is negated in its own type, where it wraps; a narrower unsigned one, which has
    no negative, in int64. Raises E0201 where ``offset`` is no integer.
    """
    if negate and offset.dtype.is_int():
        if offset.dtype.is_int_unsigned() and offset.dtype.primitive_bitwidth < 64:
            offset = convert_tile(offset, int64)
        offset = METHODS["__neg__"](offset)
    pointer, offset = broadcast_tiles("pointer arithmetic", pointer, offset)
    return emit_tile(Offset, pointer=pointer, offset=offset)


def _options(name: str, cache_modifier: Any, eviction_policy: Any) -> dict[str, Any]:
    """A cache modifier, whose leading dot is dropped, and an eviction policy. Raises E0606."""
    modifiers, policies = CACHE_MODIFIERS, EVICTION_POLICIES
    cache = static_choice(name, cache_modifier, "cache_modifier", modifiers, prefix=".")
    eviction = static_choice(name, eviction_policy, "eviction_policy", policies)
    return {"cache": cache, "eviction": eviction}


def _refuse_block_pointer_options(
    name: str, pointer: Tile, boundary_check: Any, padding_option: Any = ""
) -> None:
    for argument, value in (("boundary_check", boundary_check), ("padding_option", padding_option)):
        known = unwrap(value)
        nothing = known is None or (isinstance(known, (str, *SEQUENCES)) and not len(known))
        if not nothing:
            raise error("E0607", op=name, name=argument, got=pointer.type, argument=argument)


def _pointer_tile(name: str, pointer: Any) -> Tile:
    known = unwrap(pointer)
    if not isinstance(known, Tile):
        raise error("E0601", op=name, got=describe(known), argument="pointer")
    _require_pointer(name, known.type)
    return known


def _mask_tile(name: str, mask: Any) -> Tile | None:
    """The mask as an int1 tile; None where there is none or it is the constant True."""
    known = unwrap(mask)
    if known is None or known is True:
        return None
    made = to_tile(known, name, "mask")
    if made.type.scalar is not int1:
        raise error("E0602", op=name, got=made.type, argument="mask")
    return made


def _as_element(name: str, argument: str, value: Any, scalar: DType | PointerType) -> Tile:
    """A value cast to an element type. Numbers may also be addresses and 8-bit floats."""
    plain = number(value)
    if plain is not None and isinstance(scalar, PointerType):
        return bitcast_tile(constant(plain, int64, argument), scalar)
    if plain is not None and scalar.is_fp8():
        return cast(constant(plain, float32, argument), scalar)
    try:
        return cast(to_tile(value, name, argument), scalar)
    except TritiumError as problem:
        problem.argument = argument
        raise


def _fit(name: str, argument: str, tile: Tile, shape: tuple[int, ...]) -> Tile:
    """``tile`` broadcast to exactly ``shape``. Raises E0603 where it doesn't fit."""
    have = tile.type.shape
    padded = (1,) * (len(shape) - len(have)) + have
    if len(have) > len(shape) or any(m not in (1, n) for m, n in zip(padded, shape)):
        raise _unfit(name, argument, have, shape)
    return broadcast_tile(tile, shape)


@surface
def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: Any = "",
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
) -> Tile:
    """The elements at ``pointer``, in the pointer's shape and its element type.

    Lanes whose ``mask`` (int1) is false read no memory: they give ``other``, cast to the element
    type, or 0. Mask and other are broadcast to the pointer's shape; a larger mask broadcasts the
    pointer, unless that is a scalar.

    Of a block pointer the block: along the axes that ``boundary_check`` lists, elements outside of
    the array read no memory and give 0, or NaN with ``padding_option="nan"``. It takes no mask.

    No option changes a result. On NVIDIA GPUs ``cache_modifier`` (ca, cg, cs, cv; wb and wt are for
    stores and say nothing here) is the instruction's cache operator, ``eviction_policy``
    (evict_first, evict_last; evict_normal is the default) its priority in L2, and in L1 too where
    there is no cache operator. A ``volatile`` load ignores both. What is volatile or cv is read
    once, for all threads, also where several hold the element.

    Raises E0601 without a pointer, E0602 for a mask that isn't int1, E0603 where shapes don't fit,
    E0604 for ``other`` without a mask, E0606 for an unknown option, E0607 for options of block
    pointers.
    """
    block = unwrap(pointer)
    if isinstance(block, BlockPointer):
        return load_block(
            *(block, mask, other, boundary_check, padding_option),
            cache_modifier=cache_modifier,
            eviction_policy=eviction_policy,
            volatile=volatile,
        )
    address = _pointer_tile("load", pointer)
    _refuse_block_pointer_options("load", address, boundary_check, padding_option)
    if unwrap(other) is not None and unwrap(mask) is None:
        raise error("E0604", op="load", argument="other")
    options = _options("load", cache_modifier, eviction_policy)
    options["volatile"] = static_flag("load", volatile, "volatile")
    lanes = _mask_tile("load", mask)
    if lanes is not None:
        address, lanes = _fit_mask(address, lanes)
    fill = None
    if lanes is not None and unwrap(other) is not None:
        fill = _as_element("load", "other", other, element(address.type))
        fill = _fit("load", "other", fill, address.type.shape)
    return emit_tile(Load, pointer=address, mask=lanes, other=fill, **options)


def _fit_mask(pointer: Tile, mask: Tile) -> tuple[Tile, Tile]:
    """Pointer and mask of a load in one shape. Raises E0603."""
    have, wanted = mask.type.shape, pointer.type.shape
    if not wanted and have:
        raise _unfit("load", "mask", have, wanted)
    padded = max(len(have), len(wanted))
    left = (1,) * (padded - len(have)) + have
    right = (1,) * (padded - len(wanted)) + wanted
    if any(m != n and 1 not in (m, n) for m, n in zip(left, right)):
        raise _unfit("load", "mask", have, wanted)
    shape = common_shape("load", have, wanted)
    return broadcast_tile(pointer, shape), broadcast_tile(mask, shape)


@surface(method=True)
def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
) -> None:
    """Write ``value`` to ``pointer`` in the lanes whose ``mask`` (int1) is true.

    ``value`` is cast to the element type; it and the mask are broadcast to the pointer's shape.
    Where lanes share an address, any one of them wins. ``cache_modifier`` (wb, cg, cs, wt; ca and
    cv are for loads and say nothing here) and ``eviction_policy`` as in ``load``.

    Raises E0601 without a pointer, E0602 for a mask that isn't int1, E0603 where shapes don't fit,
    E0605 for a pointer to const, E0606 for an unknown option, E0607 for an option of block
    pointers.
    """
    block = unwrap(pointer)
    if isinstance(block, BlockPointer):
        store_block(
            *(block, value, mask, boundary_check),
            cache_modifier=cache_modifier,
            eviction_policy=eviction_policy,
        )
        return
    address = _pointer_tile("store", pointer)
    _refuse_block_pointer_options("store", address, boundary_check)
    options = _options("store", cache_modifier, eviction_policy)
    if address.type.scalar.is_const():
        raise error("E0605", op="store", got=address.type, argument="pointer")
    shape = address.type.shape
    values = _as_element("store", "value", value, element(address.type))
    values = _fit("store", "value", values, shape)
    lanes = _mask_tile("store", mask)
    if lanes is not None:
        lanes = _fit("store", "mask", lanes, shape)
    emit_tile(Store, pointer=address, value=values, mask=lanes, **options)
