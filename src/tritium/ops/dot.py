"""Matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritium.diagnostics import TritiumError, error
from tritium.ir.core import Op, Value, attribute, op, operand, optional
from tritium.ir.dtypes import (
    DType,
    Type,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int32,
)
from tritium.ir.types import TileType

from .codecs import decode, encode
from .constants import describe, to_tile
from .constexpr import unwrap
from .create import static_int
from .emit import emit_tile, surface
from .shape import Reshape
from .tile import Tile

INPUT_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
DEFAULT_PRECISION = "tf32"
MULTIPLIED = (int8, float16, bfloat16, float32, float64)
"""Types whose operands must be equal; 8-bit floats may be mixed."""


@op("dot.dot")
class Dot(Op):
    """``a @ b``, or ``acc + a @ b``.

    ``a`` is [M, K] and ``b`` [K, N], or both have an equal batch axis before these.
    int8 gives int32 and wraps. Float products are exact; ``evaluate`` adds them in float64 and
    rounds once into ``out_dtype``, an executor may add them in another order and in fp32 (fp64 for
    fp64): an error of K + 1 roundings. ``input_precision`` says how far a GPU may shorten fp32
    operands; interpreter and CPU never do. ``max_num_imprecise_acc`` bounds a GPU's run of
    shortened additions of fp8 products.
    """

    a: Value = operand()
    b: Value = operand()
    acc: Value | None = optional()
    out_dtype: DType = attribute()
    input_precision: str = attribute(DEFAULT_PRECISION)
    max_num_imprecise_acc: int | None = attribute(None)

    def infer(self) -> Type:
        made = _product_type(self.a.type, self.b.type, self.out_dtype)
        if self.acc is not None and self.acc.type is not made:
            raise error(
                "E0204",
                op="dot",
                expected=f"acc of {made}",
                got=self.acc.type,
                hint="it must have the type and shape of the result",
                argument="acc",
            )
        if self.input_precision not in INPUT_PRECISIONS:
            raise _unknown_precision(self.input_precision)
        return made

    def evaluate(self, machine: Any, a: Any, b: Any, acc: Any) -> Any:
        if self.out_dtype is int32:
            # Every partial sum is far below 2**53: float64 holds it exactly.
            product = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
            return (product if acc is None else product + acc).astype(np.int32)
        with np.errstate(all="ignore"):
            total = np.matmul(decode(a, _float(self.a)), decode(b, _float(self.b)))
            if acc is not None:
                total = total + decode(acc, self.out_dtype)
            return encode(total, self.out_dtype)


def _float(value: Value) -> DType:
    assert isinstance(value.scalar, DType)
    return value.scalar


def result_dtype(a: Type, b: Type, wanted: DType | None) -> DType:
    """The element type of a product; ``wanted`` chooses for fp16 and fp8 operands only.

    int8 gives int32, fp64 fp64, bf16 and fp32 fp32; fp16 and fp8 give fp32 or fp16. Raises E0201
    for operands that can't be multiplied, E0210 for another ``wanted``.
    """
    both_fp8 = a.is_fp8() and b.is_fp8()
    if not both_fp8 and (a is not b or a not in MULTIPLIED):
        hint = "cast one operand to the other's type" if a is not b else "int8 and floats multiply"
        raise error("E0201", op="dot", left=a, right=b, hint=hint, argument="other")
    if a is int8:
        return int32
    if wanted is bfloat16:
        raise _wrong_out_dtype(wanted)
    if a in (bfloat16, float32):
        return float32
    if a is float64:
        return float64
    chosen = wanted or float32
    if chosen not in (float16, float32):
        raise _wrong_out_dtype(chosen)
    return chosen


def _wrong_out_dtype(wanted: DType) -> TritiumError:
    return error(
        "E0210",
        op="dot",
        got=f"out_dtype {wanted}",
        hint="use tl.float32 or tl.float16, and cast the result",
        argument="out_dtype",
    )


def _unknown_precision(value: object) -> TritiumError:
    return error(
        "E0606",
        op="dot",
        name="input_precision",
        value=value,
        allowed=", ".join(map(repr, INPUT_PRECISIONS)),
        argument="input_precision",
    )


def _product_type(a: Type, b: Type, out_dtype: DType) -> Type:
    """The type of the product. Raises E0204 for a wrong rank, E0206 where extents don't meet."""
    left, right = a.shape, b.shape
    for argument, type in (("input", a), ("other", b)):
        if len(type.shape) not in (2, 3):
            raise error(
                "E0204",
                op="dot",
                expected="matrices, or batches of them",
                got=type,
                hint="add axes with x[:, None]",
                argument=argument,
            )
    if len(left) != len(right) or left[-1] != right[-2] or left[:-2] != right[:-2]:
        raise error(
            "E0206",
            op="dot",
            text=f"the shapes {left} and {right} don't multiply",
            hint="[M, K] and [K, N] do, with equal batch axes before them",
            argument="other",
        )
    if result_dtype(a.scalar, b.scalar, out_dtype) is not out_dtype:
        raise error("E0301", text=f"dot.dot: {a} and {b} don't give {out_dtype}")
    return TileType(out_dtype, (*left[:-1], right[-1]))


def _precision(input_precision: Any, allow_tf32: Any) -> str:
    """The name of a precision, in small letters. Raises E0606, E0206 where both are given."""
    chosen, allowed = unwrap(input_precision), unwrap(allow_tf32)
    if chosen is not None and allowed is not None:
        raise error(
            "E0206",
            op="dot",
            text="input_precision and allow_tf32 are both given",
            hint="leave allow_tf32 out",
            argument="allow_tf32",
        )
    if allowed is not None:
        return "tf32" if allowed else "ieee"
    if chosen is None:
        return DEFAULT_PRECISION
    name = chosen.lower() if isinstance(chosen, str) else chosen
    if name not in INPUT_PRECISIONS:
        raise _unknown_precision(chosen)
    return str(name)


def _matrix(argument: str, x: Any) -> Tile:
    tile = to_tile(x, "dot", argument)
    if len(tile.type.shape) < 2:
        raise error(
            "E0204",
            op="dot",
            expected="matrices, or batches of them",
            got=tile.type,
            hint="add axes with x[:, None]",
            argument=argument,
        )
    return tile


def _one_batch_axis(x: Tile) -> Tile:
    """``x`` with all its batch axes as one."""
    shape = x.type.shape
    if len(shape) <= 3:
        return x
    return emit_tile(Reshape, x=x, shape=(math.prod(shape[:-2]), *shape[-2:]))


def _out_dtype(given: Any, acc: Tile | None) -> DType | None:
    known = unwrap(given)
    if known is None:
        accumulated = acc.dtype if acc is not None else None
        return accumulated if isinstance(accumulated, DType) else None
    if not isinstance(known, DType):
        raise error(
            "E0204",
            op="dot",
            expected="a dtype",
            got=describe(known),
            hint="such as tl.float32",
            argument="out_dtype",
        )
    return known


@surface
def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
) -> Tile:
    """The matrix product of ``input`` [..., M, K] and ``other`` [..., K, N], plus ``acc``.

    Any extents; leading axes are batches and must be equal. Both operands have one type: int8
    (gives int32), fp16 (fp32, or fp16 by ``out_dtype``), bf16, fp32 (fp32), fp64 (fp64), or each is
    one of the 8-bit floats (as fp16). ``acc`` has the type and shape of the result; ``out_dtype``
    is its type where it isn't given. ``input_precision``, for fp32 operands on a GPU: tf32 (the
    default), tf32x3, ieee, bf16x3, bf16x6; ``allow_tf32`` is its older form. int32 wraps; floats
    have the rounding errors of K + 1 additions in fp32 (fp64 for fp64), in no particular order.

    Raises E0201 for types that don't multiply, E0204 for a rank under 2 or an unfit ``acc``, E0206
    where extents don't meet, E0210 for another ``out_dtype``, E0606 for an unknown precision.
    """
    left, right = _matrix("input", input), _matrix("other", other)
    total = None if unwrap(acc) is None else to_tile(acc, "dot", "acc")
    shapes = left.type.shape, right.type.shape
    if len(shapes[0]) != len(shapes[1]) or shapes[0][:-2] != shapes[1][:-2]:
        raise error(
            "E0206",
            op="dot",
            text=f"the shapes {shapes[0]} and {shapes[1]} don't multiply",
            hint="[M, K] and [K, N] do, with equal batch axes before them",
            argument="other",
        )
    dtype = result_dtype(left.dtype, right.dtype, _out_dtype(out_dtype, total))
    imprecise = unwrap(max_num_imprecise_acc)
    result = emit_tile(
        Dot,
        a=_one_batch_axis(left),
        b=_one_batch_axis(right),
        acc=None if total is None else _one_batch_axis(total),
        out_dtype=dtype,
        input_precision=_precision(input_precision, allow_tf32),
        max_num_imprecise_acc=None
        if imprecise is None
        else static_int("dot", imprecise, "max_num_imprecise_acc"),
    )
    shape = (*shapes[0][:-1], shapes[1][-1])
    return emit_tile(Reshape, x=result, shape=shape) if len(shape) > 3 else result
