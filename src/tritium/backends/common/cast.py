"""Conversions and bitcasts, and what other families need of them: the type they compute in."""

from __future__ import annotations

from collections.abc import Callable

from tritium.backends.emit import V, half, i16, i64, int_, like
from tritium.ir.dtypes import DType, Type, float16
from tritium.ops import cast
from tritium.ops.codecs import Rounding

from . import vector_casts
from .rules import Lowering, lower, register_type


def convert(
    lowering: Lowering, x: V, source: DType, target: DType, rounding: Rounding = "rtne"
) -> V:
    """A value of one scalar type as another; see ``ops.codecs.convert``."""
    if source is target:
        return x
    if lowering.native is not None:
        native = lowering.native(lowering, x, source, target, rounding)
        if native is not None:
            return native
    b = lowering.b
    if source is float16:
        x = b.bitcast(x, like(x.type, i16))
    made = vector_casts.convert(b, x, source, target, rounding, lowering.target)
    return b.bitcast(made, like(made.type, half)) if target is float16 else made


def computed(lowering: Lowering, dtype: DType, apply: Callable[..., V], *operands: V) -> V:
    """``apply`` on operands widened to the type ``dtype`` is computed in, its result rounded back.

    The rules of ``ops.elementwise``: one rounding of the whole of ``apply``.
    """
    wide = [convert(lowering, x, dtype, dtype.compute) for x in operands]
    return convert(lowering, apply(*wide), dtype.compute, dtype)


@lower(cast.Convert)
def _(lowering: Lowering, op: cast.Convert, x: V) -> V:
    source = op.x.scalar
    assert isinstance(source, DType)
    return convert(lowering, x, source, op.dtype, op.rounding)


@lower(cast.Bitcast)
def _(lowering: Lowering, op: cast.Bitcast, x: V) -> V:
    return bitcast(lowering, x, op.dtype)


def bitcast(lowering: Lowering, x: V, target: Type) -> V:
    """The bits of a value as another scalar type of its width; pointers have 64."""
    b = lowering.b
    wanted = register_type(target, lowering.lanes)
    if wanted is x.type:
        return x
    bits = (
        b.ptrtoint(x, i64) if x.type.is_pointer else b.bitcast(x, like(x.type, int_(x.type.bits)))
    )
    return b.inttoptr(bits, wanted) if wanted.is_pointer else b.bitcast(bits, wanted)
