"""Matrix products."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from tritium import knobs
from tritium.diagnostics import TritiumError, error
from tritium.ir.core import Op, Value, attribute, op, operand, optional
from tritium.ir.dtypes import (
    FLOATS8,
    Array,
    DType,
    Type,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int32,
    uint8,
)
from tritium.ir.types import TileType

from . import samples
from .cast import dtype_argument
from .codecs import decode, encode
from .constants import to_tile
from .constexpr import unwrap
from .create import static_flag, static_int, static_value
from .emit import emit_tile, surface
from .shape import Reshape
from .spec import AgreementTable, Case, Order, Reject, Sample, given
from .tile import Tile

_PRECISION_KNOB = knobs.Language.fp32_default
assert isinstance(_PRECISION_KNOB, knobs.Choice)
INPUT_PRECISIONS: tuple[str, ...] = _PRECISION_KNOB.choices
DEFAULT_PRECISION = "tf32"
MULTIPLIED = (int8, float16, bfloat16, float32, float64)
"""Types whose operands must be equal; 8-bit floats may be mixed."""


Shape = tuple[int, ...]

CASE_SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((5, 48), (48, 3)),
    ((3, 1), (1, 5)),
    ((1, 1), (1, 1)),
    ((1, 80), (80, 1)),
    ((16, 16), (16, 16)),
    ((48, 5), (5, 80)),
    ((33, 17), (17, 65)),
    ((2, 3, 5), (2, 5, 7)),
    ((3, 16, 32), (3, 32, 16)),
)
"""Shapes of the generated cases; the first is tried with every pair of types."""


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

    agreement: ClassVar[AgreementTable] = {
        executor: {dtype: Order(1.0) for dtype in (float16, float32, float64)}
        for executor in ("reference", "cpu", "nvptx")
    }

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

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every pair of types, odd extents, batches, with and without an accumulator."""
        pairs = [(dtype, dtype) for dtype in MULTIPLIED]
        pairs += [(left, right) for left in FLOATS8 for right in FLOATS8]
        for position, shapes in enumerate(CASE_SHAPES):
            for a, b in pairs if not position else pairs[: len(MULTIPLIED)]:
                for wanted in (None, float16) if a is float16 or a.is_fp8() else (None,):
                    for with_acc in (False, True):
                        yield cls._case(a, b, shapes, result_dtype(a, b, wanted), with_acc)

    @classmethod
    def _case(
        cls, a: DType, b: DType, shapes: tuple[Shape, Shape], out: DType, with_acc: bool
    ) -> Case:
        left, right = shapes
        operands: dict[str, Sample] = {
            "a": samples.ordinary(a, left, 1),
            "b": samples.ordinary(b, right, 2),
        }
        if with_acc:
            operands["acc"] = samples.ordinary(out, (*left[:-1], right[-1]), 3)
        label = f"{list(left)} {a} @ {list(right)} {b} to {out}{' + acc' * with_acc}"
        magnitude = None if out is int32 else functools.partial(_magnitude, a, b, out)
        return Case(cls, label, operands, {"out_dtype": out}, magnitude=magnitude)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Types that don't multiply, ranks and extents that don't meet, options."""
        x, y = samples.floats(3, 4), samples.floats(4, 5)
        half, half_y = given(float16, 3, 4), given(float16, 4, 5)
        brain, brain_y = given(bfloat16, 3, 4), given(bfloat16, 4, 5)

        def attempt(*args: Any, **options: Any) -> Any:
            return lambda: dot(*args, **options)

        yield Reject("uint8", "E0201", attempt(given(uint8, 3, 4), given(uint8, 4, 5)), "other")
        yield Reject("int32", "E0201", attempt(given(int32, 3, 4), given(int32, 4, 5)), "other")
        yield Reject("two types", "E0201", attempt(half, y), "other")
        yield Reject("a vector", "E0204", attempt(samples.floats(3), y), "input")
        yield Reject("a number", "E0204", attempt(x, 1.0), "other")
        yield Reject("K differs", "E0206", attempt(x, x), "other")
        batches = attempt(samples.floats(2, 3, 4), samples.floats(3, 4, 5))
        yield Reject("batches differ", "E0206", batches, "other")
        yield Reject("ranks differ", "E0206", attempt(samples.floats(2, 3, 4), y), "other")
        yield Reject("acc's shape", "E0204", attempt(x, y, samples.floats(3, 4)), "acc")
        yield Reject("acc's type", "E0204", attempt(x, y, given(float16, 3, 5)), "acc")
        wrong = attempt(half, half_y, out_dtype=bfloat16)
        yield Reject("a bf16 result", "E0210", wrong, "out_dtype")
        brains = attempt(brain, brain_y, given(bfloat16, 3, 5))
        yield Reject("a bf16 accumulator", "E0210", brains, "out_dtype")
        integer = attempt(half, half_y, out_dtype=int32)
        yield Reject("an integer result", "E0210", integer, "out_dtype")
        name = attempt(x, y, out_dtype="fp32")
        yield Reject("a dtype by name", "E0204", name, "out_dtype")
        precision = attempt(x, y, input_precision="fast")
        yield Reject("a precision", "E0606", precision, "input_precision")
        both = attempt(x, y, input_precision="ieee", allow_tf32=True)
        yield Reject("both precisions", "E0206", both, "allow_tf32")
        runtime = attempt(x, y, max_num_imprecise_acc=given(int32))
        yield Reject("a runtime bound", "E0205", runtime, "max_num_imprecise_acc")
        runtime = attempt(x, y, input_precision=given(int32))
        yield Reject("a runtime precision", "E0205", runtime, "input_precision")
        runtime = attempt(x, y, allow_tf32=given(int32))
        yield Reject("a runtime permission", "E0205", runtime, "allow_tf32")
        yield Reject("a permission", "E0204", attempt(x, y, allow_tf32="yes"), "allow_tf32")


def _magnitude(a: DType, b: DType, out: DType, x: Array, y: Array, acc: Any = None) -> Array:
    """The number of additions times the sum of the terms' absolute values, for an order's bound."""
    total = np.matmul(np.abs(decode(x, a)), np.abs(decode(y, b)))
    if acc is not None:
        total = total + np.abs(decode(acc, out))
    return np.asarray((x.shape[-1] + 1) * total)


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


def _wrong_out_dtype(wanted: Type) -> TritiumError:
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


def _no_matrix(argument: str, got: Type) -> TritiumError:
    return error(
        "E0204",
        op="dot",
        expected="matrices, or batches of them",
        got=got,
        hint="add axes with x[:, None]",
        argument=argument,
    )


def _check_shapes(left: Shape, right: Shape) -> None:
    """Raises E0206 where [..., M, K] and [..., K, N] don't meet."""
    if len(left) != len(right) or left[-1] != right[-2] or left[:-2] != right[:-2]:
        raise error(
            "E0206",
            op="dot",
            text=f"the shapes {left} and {right} don't multiply",
            hint="[M, K] and [K, N] do, with equal batch axes before them",
            argument="other",
        )


def _product_type(a: Type, b: Type, out_dtype: DType) -> Type:
    """The type of the product. Raises E0204 for a wrong rank, E0206 where extents don't meet."""
    left, right = a.shape, b.shape
    for argument, type in (("input", a), ("other", b)):
        if len(type.shape) not in (2, 3):
            raise _no_matrix(argument, type)
    _check_shapes(left, right)
    if result_dtype(a.scalar, b.scalar, out_dtype) is not out_dtype:
        raise error("E0301", text=f"dot.dot: {a} and {b} don't give {out_dtype}")
    return TileType(out_dtype, (*left[:-1], right[-1]))


def _precision(input_precision: Any, allow_tf32: Any) -> str:
    """The name of a precision, in small letters. Raises E0606, E0206 where both are given."""
    chosen = static_value("dot", input_precision, "input_precision")
    allowed = static_value("dot", allow_tf32, "allow_tf32")
    if chosen is not None and allowed is not None:
        raise error(
            "E0206",
            op="dot",
            text="input_precision and allow_tf32 are both given",
            hint="leave allow_tf32 out",
            argument="allow_tf32",
        )
    if allowed is not None:
        return "tf32" if static_flag("dot", allowed, "allow_tf32") else "ieee"
    if chosen is None:
        return knobs.language.fp32_default or DEFAULT_PRECISION
    name = chosen.lower() if isinstance(chosen, str) else chosen
    if name not in INPUT_PRECISIONS:
        raise _unknown_precision(chosen)
    return str(name)


def _matrix(argument: str, x: Any) -> Tile:
    tile = to_tile(x, "dot", argument)
    if len(tile.type.shape) < 2:
        raise _no_matrix(argument, tile.type)
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
    named = dtype_argument("dot", known, "out_dtype")
    if not isinstance(named, DType):
        raise _wrong_out_dtype(named)
    return named


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
    (gives int32), fp16 (fp32, or fp16 by ``out_dtype``), bf16, fp32 (fp32), fp64 (fp64), or
    each is one of the 8-bit floats (as fp16). ``acc`` has the type and shape of the result;
    ``out_dtype`` is its type where it isn't given. ``input_precision``, for fp32 operands on a
    GPU: tf32 (the default, unless ``knobs.language.fp32_default`` says otherwise), tf32x3,
    ieee, bf16x3, bf16x6; ``allow_tf32`` is its older form. int32 wraps; floats have the
    rounding errors of K + 1 additions in fp32 (fp64 for fp64), in no particular order.

    Raises E0201 for types that don't multiply, E0204 for a rank under 2 or an unfit ``acc``, E0206
    where extents don't meet, E0210 for another ``out_dtype``, E0606 for an unknown precision.
    """
    left, right = _matrix("input", input), _matrix("other", other)
    total = None if unwrap(acc) is None else to_tile(acc, "dot", "acc")
    shapes = left.type.shape, right.type.shape
    _check_shapes(*shapes)
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
