"""Conversions between element types, and reinterpretation of bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tritium.diagnostics import TritiumError, error
from tritium.ir.core import Op, Value, attribute, op, operand
from tritium.ir.dtypes import VALUES, Array, DType, Type, float32, int1, int8, int32, int64, uint64
from tritium.ir.types import PointerType, like, shaped

from . import codecs, samples
from .codecs import ROUNDINGS
from .constants import describe, to_tile
from .constexpr import unwrap
from .create import static_flag, static_value
from .emit import emit, surface
from .spec import Case, Reject, Sample, given
from .tile import Tile


@op("cast.convert")
class Convert(Op):
    """Each element's value in another type; ``codecs`` states the rules.

    ``rounding`` is ``"rtne"``, or ``"rtz"`` for a float narrowing only.
    """

    x: Value = operand()
    dtype: DType = attribute()
    rounding: codecs.Rounding = attribute("rtne")

    def infer(self) -> Type:
        source = self.x.scalar
        if not isinstance(source, DType) or not codecs.is_convertible(source, self.dtype):
            raise _no_conversion(self.x.type, self.dtype)
        if self.rounding not in ROUNDINGS or (
            self.rounding == "rtz" and not is_narrowing(source, self.dtype)
        ):
            raise _wrong_rounding(self.rounding, source, self.dtype)
        return like(self.x.type, self.dtype)

    def evaluate(self, machine: Any, x: Any) -> Any:
        source = self.x.scalar
        assert isinstance(source, DType)
        return codecs.convert(np.asarray(x), source, self.dtype, self.rounding)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every pair of types, exhaustive from 8- and 16-bit types; both roundings."""
        for source in VALUES:
            for target in VALUES:
                if not codecs.is_convertible(source, target):
                    continue
                data = _operands(source, target)
                for rounding in ROUNDINGS[: 1 + is_narrowing(source, target)]:
                    label = f"{source} to {target} {rounding}"
                    operands = {"x": Sample(shaped(source, data.shape), data)}
                    yield Case(cls, label, operands, {"dtype": target, "rounding": rounding})
        data = samples.edges(float32)[:6]
        for shape in ((), (2, 3)):
            small = data[: int(np.prod(shape))].reshape(shape)
            operands = {"x": Sample(shaped(float32, shape), small)}
            yield Case(cls, f"fp32 {list(shape)} to int8", operands, {"dtype": int8})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pairs without a conversion, and misplaced roundings."""
        fp8 = next(dtype for dtype in VALUES if dtype.is_fp8())
        pointer = PointerType(float32)

        def attempt(source: Type, target: Any, *args: Any) -> Any:
            return lambda: cast(given(source, 4), target, *args)

        yield Reject("int32 to fp8", "E0210", attempt(int32, fp8), "input")
        yield Reject("fp8 to int32", "E0210", attempt(fp8, int32), "input")
        yield Reject("pointer to fp32", "E0210", attempt(pointer, float32), "input")
        yield Reject("fp32 to pointer", "E0210", attempt(float32, pointer), "input")
        yield Reject("int32 to pointer", "E0210", attempt(int32, pointer), "input")
        yield Reject("a string for the dtype", "E0204", attempt(float32, "int32"), "dtype")
        widening = attempt(float32, int32, "rtz")
        yield Reject("rounding of a conversion to int", "E0206", widening, "fp_downcast_rounding")
        unknown = attempt(float32, fp8, "up")
        yield Reject("an unknown rounding", "E0206", unknown, "fp_downcast_rounding")
        runtime = attempt(float32, fp8, given(int32))
        yield Reject("a run-time rounding", "E0205", runtime, "fp_downcast_rounding")


@op("cast.bitcast")
class Bitcast(Op):
    """The bits of each element taken as another type of the same width.

    Pointers count as 64 bits wide.
    """

    x: Value = operand()
    dtype: DType | PointerType = attribute()

    def infer(self) -> Type:
        have, want = self.x.scalar.primitive_bitwidth, self.dtype.primitive_bitwidth
        if have != want or not have:
            raise error(
                "E0206",
                op="bitcast",
                text=f"{self.x.scalar} has {have} bits and {self.dtype} has {want}",
                hint="a bitcast keeps the width; leave bitcast out to convert values",
                argument="dtype",
            )
        return like(self.x.type, self.dtype)

    def evaluate(self, machine: Any, x: Any) -> Any:
        # A constant is folded without a machine.
        if machine is not None and self.dtype.is_ptr() and not self.x.scalar.is_ptr():
            machine.made_pointers()
        return np.ascontiguousarray(x).reshape(np.shape(x)).view(self.dtype.numpy)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every pair of types of one width, pointers among them."""
        scalars = (*VALUES, samples.POINTER, PointerType(int8))
        for source in scalars:
            operand = samples.tile(source, (48,))
            if isinstance(source, DType):
                data = samples.vector(source, 256)
                operand = Sample(shaped(source, data.shape), data)
            for target in scalars:
                if target.primitive_bitwidth == source.primitive_bitwidth:
                    yield Case(cls, f"{source} to {target}", {"x": operand}, {"dtype": target})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Types of different widths."""

        def attempt(source: Type, target: Type) -> Any:
            return lambda: cast(given(source, 4), target, bitcast=True)

        yield Reject("fp32 as int64", "E0206", attempt(float32, int64), "dtype")
        yield Reject("int32 as int1", "E0206", attempt(int32, int1), "dtype")
        yield Reject("pointer as int32", "E0206", attempt(PointerType(int8), int32), "dtype")
        runtime = lambda: cast(given(int32), float32, bitcast=given(int1))  # noqa: E731
        yield Reject("a run-time choice", "E0205", runtime, "bitcast")


def _operands(source: DType, target: DType) -> Array:
    """Values of ``source`` that include those where a conversion to ``target`` turns."""
    if source.bits <= 16:
        return samples.every(source)
    data = samples.vector(source, 1024)
    if not source.is_floating():
        return data
    if target.is_floating():
        if target.bits > 16:
            return data
        values = np.unique(codecs.decode(samples.every(target)[::37], target))
        values = values[np.isfinite(values)]
        ties = np.concatenate([values, (values[1:] + values[:-1]) / 2])
    else:
        powers = 2.0 ** np.array([7, 8, 15, 16, 31, 32, 63, 64])
        ties = np.concatenate([powers - 1, powers - 0.5, powers, powers + 1, -powers, -powers - 1])
    near = codecs.encode(ties, source)
    steps = [near, np.nextafter(near, near.dtype.type(9)), np.nextafter(near, near.dtype.type(-9))]
    return np.concatenate([data, *steps])


def is_narrowing(source: Type, target: Type) -> bool:
    """Whether a conversion goes from a float type to a narrower one."""
    return (
        isinstance(source, DType)
        and isinstance(target, DType)
        and source.is_floating()
        and target.is_floating()
        and target.bits < source.bits
    )


def _no_conversion(source: Type, target: Type) -> TritiumError:
    if source.scalar.is_ptr() or target.is_ptr():
        hint = "pointers convert to pointers, to int64 or uint64 and back, and to int1 (not null)"
    else:
        hint = "integers and fp8 don't convert into each other: cast to float32 first"
    return error("E0210", op=f"the conversion to {target}", got=source, hint=hint, argument="input")


def _wrong_rounding(rounding: object, source: Type, target: Type) -> TritiumError:
    if rounding in ROUNDINGS:
        text = f"a rounding is given for {source} to {target}, which does not narrow a float"
        hint = "leave fp_downcast_rounding out"
    else:
        text, hint = f"unknown rounding {rounding!r}", "use 'rtne' or 'rtz'"
    return error("E0206", op="cast", text=text, hint=hint, argument="fp_downcast_rounding")


def convert_tile(x: Tile, dtype: DType, rounding: codecs.Rounding = "rtne") -> Tile:
    """``x`` with elements of ``dtype``; ``x`` itself when it has them already."""
    if x.dtype is dtype:
        return x
    made: Tile = emit(Convert, x=x, dtype=dtype, rounding=rounding)
    return made


def bitcast_tile(x: Tile, dtype: Type) -> Tile:
    """The bits of ``x`` as ``dtype``; ``x`` itself when it has that type already."""
    if x.dtype is dtype:
        return x
    made: Tile = emit(Bitcast, x=x, dtype=dtype)
    return made


def dtype_argument(op: str, dtype: Any, argument: str = "dtype") -> DType | PointerType:
    """The scalar type that an argument names. Raises E0204 for what is no type."""
    known = unwrap(dtype)
    scalar = known.scalar if isinstance(known, Type) else None
    if isinstance(scalar, (DType, PointerType)) and not scalar.is_void():
        return scalar
    got = repr(known) if isinstance(known, str) else describe(known)
    raise error(
        "E0204",
        op=op,
        expected="a dtype",
        got=got,
        hint="pass one of tl's types, such as tl.float32",
        argument=argument,
    )


def _cast_pointer(x: Tile, target: DType | PointerType) -> Tile:
    """Conversions from or to a pointer type."""
    source = x.dtype
    wide = (int64, uint64)
    if source.is_ptr() and target is int1:
        return convert_tile(bitcast_tile(x, int64), int1)
    if source.is_ptr() and (target.is_ptr() or target in wide):
        return bitcast_tile(x, target)
    if target.is_ptr() and source in wide:
        return bitcast_tile(x, target)
    raise _no_conversion(x.type, target)


@surface(method=("cast", "to"))
def cast(input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> Tile:
    """``input`` converted to ``dtype``.

    Floats round once, to nearest with ties to even, or toward zero under
    ``fp_downcast_rounding="rtz"``, which only a float narrowing takes. Floats to integers truncate
    and saturate, integers to narrower ones wrap, anything to int1 is ``x != 0``. With ``bitcast``
    the bits are kept instead, and the widths must be equal. Raises E0210 for a pair without a
    conversion, E0206 for a misplaced rounding or different widths.
    """
    x = to_tile(input, "cast", "input")
    target = dtype_argument("cast", dtype)
    rounding = static_value("cast", fp_downcast_rounding, "fp_downcast_rounding")
    if rounding is not None and (rounding not in ROUNDINGS or not is_narrowing(x.dtype, target)):
        raise _wrong_rounding(rounding, x.dtype, target)
    if static_flag("cast", bitcast, "bitcast"):
        return bitcast_tile(x, target)
    if x.dtype.is_ptr() or not isinstance(target, DType):
        return _cast_pointer(x, target)
    return convert_tile(x, target, rounding or "rtne")
