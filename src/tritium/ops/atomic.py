"""Atomic operations: reads, changes and writes of memory that no other program can divide.

Each keeps its place in the program, whatever its ``sem``: code has the loads and stores that stand
before it before, those after it behind, and these see what it did. When other programs see this is
for ``sem`` to say: who reads by "acquire" what another one has written by "release" sees all that
stood before that write; "acq_rel" is both; "relaxed" says nothing of other places in memory. A
tile's lanes are carried out one after the other, in row-major order: lanes that share an address
see each other's results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import ORDERED, READS, WRITES, Op, Value, attribute, op, operand, optional
from tritium.ir.dtypes import (
    INTEGERS,
    STANDARD_FLOATS,
    Array,
    DType,
    Type,
    float8e5,
    float32,
    int1,
    int32,
)
from tritium.ir.types import PointerType, element, like, shaped

from . import samples
from .arith import Add, Maximum, Minimum
from .create import static_choice
from .elementwise import Binary
from .emit import emit, emit_tile, surface
from .logic import And, Or, Xor
from .memory import _as_element, _fit, _mask_tile, _pointer_tile, _require_mask, _require_pointer
from .spec import Case, Reject, Sample, given
from .tile import Tile

ELEMENTS: tuple[DType, ...] = (
    *(dtype for dtype in INTEGERS if dtype is not int1),
    *STANDARD_FLOATS,
)
"""The element types of atomic operations."""

COMBINES: dict[str, type[Binary]] = {
    "add": Add,
    "max": Maximum,
    "min": Minimum,
    "and": And,
    "or": Or,
    "xor": Xor,
}
"""The operation by which each kind combines what is in memory with the value; ``xchg`` has none."""

BITWISE = ("and", "or", "xor")
KINDS = (*COMBINES, "xchg")
SEMANTICS = ("acq_rel", "acquire", "release", "relaxed")
SCOPES = ("gpu", "cta", "sys")
_LATER: Mapping[str, str] = {"nvptx": "atomic operations run on the CPU and in the interpreter"}


def combined_type(kind: str, dtype: DType) -> DType:
    """The type that a kind combines in: for bitwise ones on floats their bits."""
    if kind in BITWISE and dtype.is_floating():
        return next(each for each in INTEGERS if each.bits == dtype.bits and not each.is_bool())
    return dtype


def combine_op(kind: str, dtype: DType) -> Binary | None:
    """The operation on scalars by which a kind combines; None where the value replaces."""
    cls = COMBINES.get(kind)
    if cls is None:
        return None
    computed = combined_type(kind, dtype)
    return cls(x=Value(computed), y=Value(computed))


class Atomic(Op):
    """Base: what all atomic operations refuse."""

    unsupported: ClassVar[Mapping[str, str]] = _LATER
    pointer: Value = operand()

    @property
    def dtype(self) -> DType:
        """The element type."""
        scalar = element(self.pointer.type)
        assert isinstance(scalar, DType)
        return scalar


def _element_type(name: str, pointer: Type, *, written: bool = True) -> Type:
    """The type of one value a lane. Raises E0601, E0605 and E0204."""
    _require_pointer(name, pointer)
    scalar = element(pointer)
    if scalar not in ELEMENTS:
        raise error(
            "E0204",
            op=name,
            expected="a pointer to integers of 8 to 64 bits, fp16, bf16, fp32 or fp64",
            got=pointer,
            hint="keep such elements in int32",
            argument="pointer",
        )
    if written and pointer.scalar.is_const():
        raise error("E0605", op=name, got=pointer, argument="pointer")
    return like(pointer, scalar)


def _require_value(name: str, argument: str, value: Value, wanted: Type) -> None:
    if value.type is not wanted:
        raise error(
            "E0204",
            op=name,
            expected=f"{argument} of {wanted}",
            got=value.type,
            hint="",
            argument=argument,
        )


@op("atomic.update", effects=READS | WRITES)
class Update(Atomic):
    """Combines the element at ``pointer`` with ``value`` in one step; gives what was there before.

    ``kind`` is one of add, max, min, and, or, xor and xchg, which replaces. Sums wrap or round as
    ``arith.add`` does, extrema are those of ``arith.maximum`` and ``arith.minimum`` (one NaN is
    dropped); on floats, and, or and xor work on the bits. Lanes whose ``mask`` is false touch no
    memory and give 0. ``sem`` and ``scope`` change no result of one program.
    """

    value: Value = operand()
    mask: Value | None = optional()
    kind: str = attribute("add")
    sem: str = attribute("acq_rel")
    scope: str = attribute("gpu")

    def infer(self) -> Type:
        name = f"atomic_{self.kind}"
        made = _element_type(name, self.pointer.type)
        _require_value(name, "val", self.value, made)
        _require_mask(name, self.mask, self.pointer)
        return made

    def evaluate(self, machine: Any, pointer: Any, value: Any, mask: Any) -> Any:
        combine = combine_op(self.kind, self.dtype)
        bits = None if combine is None else combine.operands[0].scalar.numpy

        def change(old: Array, given: Array) -> Array:
            if combine is None or bits is None:
                return given
            made = combine.evaluate(machine, old.view(bits), given.view(bits))
            return np.asarray(made).view(old.dtype)

        return machine.update(self, np.asarray(pointer), mask, change, np.asarray(value))

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every kind and type; lanes that collide, masks, several shapes."""
        for kind in KINDS:
            for dtype in ELEMENTS:
                yield _case(cls, dtype, (48,), ("value",), {"kind": kind})
                yield _case(cls, dtype, (48,), ("value", "mask"), {"kind": kind})
        for shape in ((3, 5), (1,), ()):
            for parts in (("value",), ("value", "mask")):
                yield _case(cls, int32, shape, parts, {"kind": "add", "sem": "relaxed"})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers that are none or const, element types, values, masks, options."""
        p = _pointers
        yield Reject("no pointer", "E0601", lambda: atomic_add(given(int32, 4), 1), "pointer")
        const = lambda: atomic_add(p(4, const=True), 1)  # noqa: E731
        yield Reject("a const pointer", "E0605", const, "pointer")
        yield Reject("bits", "E0204", lambda: atomic_or(p(4, scalar=int1), True), "pointer")
        yield Reject("fp8", "E0204", lambda: atomic_add(p(4, scalar=float8e5), 1.0), "pointer")
        pointers = lambda: atomic_xchg(p(scalar=PointerType(int32)), 0)  # noqa: E731
        yield Reject("pointers", "E0204", pointers, "pointer")
        yield Reject("a tile for one", "E0603", lambda: atomic_add(p(), given(int32, 4)), "val")
        yield Reject("another extent", "E0603", lambda: atomic_max(p(4), given(int32, 3)), "val")
        yield Reject("no value", "E0210", lambda: atomic_add(p(4), None), "val")
        mask = lambda: atomic_add(p(4), 1, given(int32, 4))  # noqa: E731
        yield Reject("an int32 mask", "E0602", mask, "mask")
        mask = lambda: atomic_add(p(), 1, given(int1, 4))  # noqa: E731
        yield Reject("a mask of one", "E0603", mask, "mask")
        yield Reject("sem", "E0606", lambda: atomic_add(p(4), 1, sem="seq_cst"), "sem")
        yield Reject("scope", "E0606", lambda: atomic_min(p(4), 1, scope="all"), "scope")
        for name in ("sem", "scope"):
            option = {name: given(int32)}
            runtime = functools.partial(atomic_add, p(4), 1, **option)
            yield Reject(f"a runtime {name}", "E0205", runtime, name)


@op("atomic.cas", effects=READS | WRITES)
class Cas(Atomic):
    """Where the element at ``pointer`` has the bits of ``compare``, writes ``value``, in one step.

    Gives what was there before.
    """

    compare: Value = operand()
    value: Value = operand()
    sem: str = attribute("acq_rel")
    scope: str = attribute("gpu")

    def infer(self) -> Type:
        made = _element_type("atomic_cas", self.pointer.type)
        _require_value("atomic_cas", "cmp", self.compare, made)
        _require_value("atomic_cas", "val", self.value, made)
        return made

    def evaluate(self, machine: Any, pointer: Any, compare: Any, value: Any) -> Any:
        bits = np.dtype(f"u{self.dtype.itemsize}")

        def change(old: Array, compare: Array, given: Array) -> Array:
            return np.where(old.view(bits) == compare.view(bits), given, old)

        given = (np.asarray(compare), np.asarray(value))
        return machine.update(self, np.asarray(pointer), None, change, *given)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every type; about half of the lanes find what they compare with."""
        for dtype in ELEMENTS:
            yield _case(cls, dtype, (48,), ("compare", "value"), {})
        for shape in ((3, 5), (1,), ()):
            yield _case(cls, float32, shape, ("compare", "value"), {"sem": "acquire"})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers that are none or const, values that don't fit, options."""
        p = _pointers
        yield Reject("no pointer", "E0601", lambda: atomic_cas(given(int32, 4), 0, 1), "pointer")
        const = lambda: atomic_cas(p(const=True), 0, 1)  # noqa: E731
        yield Reject("a const pointer", "E0605", const, "pointer")
        yield Reject("bits", "E0204", lambda: atomic_cas(p(scalar=int1), 0, 1), "pointer")
        yield Reject("cmp", "E0603", lambda: atomic_cas(p(), given(int32, 4), 1), "cmp")
        yield Reject("val", "E0603", lambda: atomic_cas(p(4), 0, given(int32, 3)), "val")
        yield Reject("sem", "E0606", lambda: atomic_cas(p(), 0, 1, sem="weak"), "sem")
        runtime = lambda: atomic_cas(p(), 0, 1, scope=given(int32))  # noqa: E731
        yield Reject("a runtime scope", "E0205", runtime, "scope")


@op("atomic.load", effects=READS | ORDERED)
class AtomicLoad(Atomic):
    """The elements at ``pointer``, each read in one step, exactly once.

    Lanes whose ``mask`` is false read no memory and give 0.
    """

    mask: Value | None = optional()
    sem: str = attribute("acquire")
    scope: str = attribute("gpu")
    is_fresh: ClassVar[bool] = True

    def infer(self) -> Type:
        made = _element_type("atomic_load", self.pointer.type, written=False)
        _require_mask("atomic_load", self.mask, self.pointer)
        return made

    def evaluate(self, machine: Any, pointer: Any, mask: Any) -> Any:
        pointer = np.asarray(pointer)
        return machine.load(self, pointer, mask, np.zeros(pointer.shape, self.dtype.numpy))

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every type, with and without a mask."""
        for dtype in ELEMENTS:
            yield _case(cls, dtype, (48,), ("mask",), {})
        yield _case(cls, int32, (3, 5), (), {"sem": "relaxed"})
        yield _case(cls, int32, (), (), {})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers that are none, element types, masks, what only other operations take."""
        p = _pointers
        yield Reject("no pointer", "E0601", lambda: atomic_load(given(int32, 4)), "pointer")
        yield Reject("bits", "E0204", lambda: atomic_load(p(4, scalar=int1)), "pointer")
        yield Reject("a mask", "E0603", lambda: atomic_load(p(4), given(int1, 3)), "mask")
        yield Reject("sem", "E0606", lambda: atomic_load(p(4), sem="release"), "sem")
        runtime = lambda: atomic_load(p(4), sem=given(int32))  # noqa: E731
        yield Reject("a runtime sem", "E0205", runtime, "sem")


@op("atomic.store", effects=WRITES)
class AtomicStore(Atomic):
    """Writes ``value`` to ``pointer``, each element in one step, where ``mask`` is true.

    Where lanes share an address, the last one stands.
    """

    value: Value = operand()
    mask: Value | None = optional()
    sem: str = attribute("release")
    scope: str = attribute("gpu")

    def infer(self) -> None:
        made = _element_type("atomic_store", self.pointer.type)
        _require_value("atomic_store", "val", self.value, made)
        _require_mask("atomic_store", self.mask, self.pointer)

    def evaluate(self, machine: Any, pointer: Any, value: Any, mask: Any) -> None:
        machine.store(self, np.asarray(pointer), np.asarray(value), mask)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every type, with and without a mask."""
        for dtype in ELEMENTS:
            yield _case(cls, dtype, (48,), ("value", "mask"), {})
        yield _case(cls, int32, (3, 5), ("value",), {"sem": "relaxed"})
        yield _case(cls, int32, (), ("value",), {})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers that are none or const, values, masks, what only other operations take."""
        p = _pointers
        yield Reject("no pointer", "E0601", lambda: atomic_store(given(int32, 4), 1), "pointer")
        const = lambda: atomic_store(p(4, const=True), 1)  # noqa: E731
        yield Reject("a const pointer", "E0605", const, "pointer")
        yield Reject("a value", "E0603", lambda: atomic_store(p(4), given(int32, 3)), "val")
        mask = lambda: atomic_store(p(4), 1, given(int1, 3))  # noqa: E731
        yield Reject("a mask", "E0603", mask, "mask")
        yield Reject("sem", "E0606", lambda: atomic_store(p(4), 1, sem="acquire"), "sem")
        runtime = lambda: atomic_store(p(4), 1, scope=given(int32))  # noqa: E731
        yield Reject("a runtime scope", "E0205", runtime, "scope")


def _pointers(*shape: int, scalar: Type = int32, const: bool = False) -> Tile:
    return given(PointerType(scalar, const=const), *shape)


def _case(
    cls: type[Op],
    dtype: DType,
    shape: tuple[int, ...],
    parts: tuple[str, ...],
    attributes: dict[str, Any],
) -> Case:
    """Addresses that repeat; half of what is compared with is in memory at the start."""
    rng = np.random.default_rng(9)
    offsets = np.asarray(rng.integers(0, 40, shape))
    memory = samples.ordinary(dtype, (100,), 1).data
    operands: dict[str, Sample] = {}
    if "compare" in parts:
        there = np.asarray(rng.integers(0, 2, shape)) > 0
        other = samples.ordinary(dtype, shape, 4).data
        operands["compare"] = Sample(shaped(dtype, shape), np.where(there, memory[offsets], other))
    if "value" in parts:
        operands["value"] = samples.ordinary(dtype, shape, 3)
    if "mask" in parts:
        mask = np.asarray(rng.integers(0, 3, shape) > 0)
        operands["mask"] = Sample(shaped(int1, shape), mask)
        offsets = np.where(mask, offsets, offsets + (1 << 40))
    operands["pointer"] = Sample(shaped(PointerType(dtype), shape), offsets, "memory")
    chosen = " ".join(map(str, attributes.values()))
    label = " ".join([str(dtype), str(list(shape)), *parts, chosen]).strip()
    return Case(cls, label, operands, attributes, buffers={"memory": memory}, row=dtype)


def _options(
    name: str, sem: Any, scope: Any, semantics: tuple[str, ...] = SEMANTICS
) -> dict[str, str]:
    return {
        "sem": static_choice(name, sem, "sem", semantics),
        "scope": static_choice(name, scope, "scope", SCOPES),
    }


def _target(name: str, pointer: Any) -> Tile:
    """The pointer of an atomic operation. Raises E0601, and E0204 for elements it can't have."""
    tile = _pointer_tile(name, pointer)
    _element_type(name, tile.type, written=False)
    return tile


def _operand(name: str, argument: str, value: Any, pointer: Tile) -> Tile:
    """A value in the pointer's element type and shape."""
    made = _as_element(name, argument, value, element(pointer.type))
    return _fit(name, argument, made, pointer.type.shape)


def _lanes(name: str, mask: Any, pointer: Tile) -> Tile | None:
    lanes = _mask_tile(name, mask)
    return None if lanes is None else _fit(name, "mask", lanes, pointer.type.shape)


def _update(kind: str, pointer: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Tile:
    name = f"atomic_{kind}"
    at = _target(name, pointer)
    options = _options(name, sem, scope)
    value = _operand(name, "val", val, at)
    lanes = _lanes(name, mask, at)
    return emit_tile(Update, pointer=at, value=value, mask=lanes, kind=kind, **options)


_UPDATE = """
    ``val`` is cast to the element type; it and the mask (int1) are broadcast to the pointer's
    shape. Gives what was in memory before, and 0 in lanes whose mask is false. Lanes that share an
    address are carried out one after the other, in row-major order. Elements are integers of 8 to
    64 bits, fp16, bf16, fp32 and fp64. ``sem`` is "acquire", "release", "acq_rel" (the default) or
    "relaxed", ``scope`` "gpu" (the default), "cta" or "sys".

    Raises E0601 without a pointer, E0204 for other elements, E0602 for a mask that isn't int1,
    E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an unknown option.
    """


def _publish(kind: str, summary: str) -> Callable[..., Tile]:
    def function(
        pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None
    ) -> Tile:
        return _update(kind, pointer, val, mask, sem, scope)

    function.__name__ = function.__qualname__ = f"atomic_{kind}"
    function.__doc__ = f"{summary}\n{_UPDATE}"
    made: Callable[..., Tile] = surface(method=True)(function)
    return made


atomic_add = _publish("add", "Add ``val`` to memory in one step.")
atomic_max = _publish("max", "Leave the larger of memory and ``val``, in one step.")
atomic_min = _publish("min", "Leave the smaller of memory and ``val``, in one step.")
atomic_and = _publish("and", "Leave the bits set in both memory and ``val``, in one step.")
atomic_or = _publish("or", "Leave the bits set in memory or ``val``, in one step.")
atomic_xor = _publish("xor", "Leave the bits set in one of memory and ``val``, in one step.")
atomic_xchg = _publish("xchg", "Replace memory by ``val`` in one step.")


@surface(method=True)
def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> Tile:
    """Write ``val`` where memory has the bits of ``cmp``, in one step; gives what was there.

    ``cmp`` and ``val`` are cast to the element type and broadcast to the pointer's shape; types,
    order of lanes, ``sem`` and ``scope`` as of ``atomic_add``.

    Raises E0601 without a pointer, E0204 for other elements, E0603 where shapes don't fit, E0605
    for a pointer to const, E0606 for an unknown option.
    """
    name = "atomic_cas"
    at = _target(name, pointer)
    options = _options(name, sem, scope)
    compare, value = _operand(name, "cmp", cmp, at), _operand(name, "val", val, at)
    return emit_tile(Cas, pointer=at, compare=compare, value=value, **options)


@surface(method=True)
def atomic_load(pointer: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Tile:
    """The elements at ``pointer``, each read in one step and exactly once.

    Lanes whose ``mask`` (int1) is false give 0. ``sem`` is "acquire" (the default) or "relaxed".

    Raises E0601 without a pointer, E0204 for elements that ``atomic_add`` doesn't take, E0602 for a
    mask that isn't int1, E0603 where it doesn't fit, E0606 for an unknown option.
    """
    name = "atomic_load"
    at = _target(name, pointer)
    options = _options(name, sem, scope, ("acquire", "relaxed"))
    return emit_tile(AtomicLoad, pointer=at, mask=_lanes(name, mask, at), **options)


@surface(method=True)
def atomic_store(
    pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None
) -> None:
    """Write ``val`` to ``pointer``, each element in one step, where ``mask`` (int1) is true.

    ``val`` is cast to the element type; it and the mask are broadcast to the pointer's shape. Where
    lanes share an address the last one stands. ``sem`` is "release" (the default) or "relaxed".

    Raises E0601 without a pointer, E0204 for elements that ``atomic_add`` doesn't take, E0602 for a
    mask that isn't int1, E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an
    unknown option.
    """
    name = "atomic_store"
    at = _target(name, pointer)
    options = _options(name, sem, scope, ("release", "relaxed"))
    value, lanes = _operand(name, "val", val, at), _lanes(name, mask, at)
    emit(AtomicStore, pointer=at, value=value, mask=lanes, **options)
