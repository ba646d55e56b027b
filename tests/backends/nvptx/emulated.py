"""What NVIDIA's instructions do, in LLVM IR for the host: definitions of ``llvm.nvvm`` intrinsics.

Approximate instructions are computed in double and rounded once; where the PTX ISA leaves a result
open, or makes it unlike what a careless lowering hopes for, it is the unlike one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from tritium.backends import llvm
from tritium.backends.common import arith as _arith
from tritium.backends.common import vector_casts
from tritium.backends.common.rules import Lowering, rule_of
from tritium.backends.emit import (
    Builder,
    LType,
    Module,
    V,
    bfloat,
    const,
    double,
    float_,
    half,
    i1,
    i8,
    i16,
    i32,
    i64,
    i128,
    int_,
    ptr,
    vec,
    void,
    zero,
)
from tritium.ir.core import Value
from tritium.ir.dtypes import DType, bfloat16, float8e4nv, float8e5, float16, float32
from tritium.ops import arith

Body = Callable[[Builder, Sequence[V]], "V | None"]

assert _arith  # fills the table of rules

# Kinds of events, the first number that a thread hands over when it waits.
BARRIER, WARP_BARRIER, SHUFFLE, REDUCE, VOTE, DONE = range(6)
SHUFFLES = ("bfly", "idx", "up", "down")
REDUCTIONS = ("add", "min", "max", "umin", "umax", "and", "or", "xor")
VOTES = ("ballot", "any", "all")

SPECIAL = ("tid.x", "ntid.x", *(f"{name}.{axis}" for name in ("ctaid", "nctaid") for axis in "xyz"))
"""Special registers, in the order in which they stand in ``@emu.special``, an i32 each."""


def event(b: Builder, kind: int, numbers: Sequence[V]) -> V:
    """The thread waits: it hands over up to four i64, and goes on with the i64 it is given."""
    handed = [const(i64, kind), *numbers]
    handed += [zero(i64)] * (5 - len(handed))
    return b.call("emu.yield", i64, handed)


def _wide(b: Builder, value: V) -> V:
    if value.type.is_float:
        value = b.as_int(value)
    return b.zext(value, i64)


def _shuffle(mode: int) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        mask, value, lane, clamp = args
        packed = b.or_(b.shl(_wide(b, lane), const(i64, 32)), _wide(b, clamp))
        packed = b.or_(packed, b.shl(const(i64, mode), const(i64, 60)))
        got = b.trunc(event(b, SHUFFLE, [_wide(b, mask), _wide(b, value), packed]), i32)
        return b.as_float(got, float_) if value.type is float_ else got

    return body


def _reduction(number: int) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        value, mask = args
        numbers = [_wide(b, mask), _wide(b, value), const(i64, number)]
        return b.trunc(event(b, REDUCE, numbers), i32)

    return body


def _vote(number: int, result: LType) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        mask, value = args
        numbers = [_wide(b, mask), _wide(b, value), const(i64, number)]
        return b.trunc(event(b, VOTE, numbers), result)

    return body


def _barrier(b: Builder, args: Sequence[V]) -> None:
    event(b, BARRIER, [_wide(b, args[0])] if args else [])


def _warp_barrier(b: Builder, args: Sequence[V]) -> None:
    event(b, WARP_BARRIER, [_wide(b, args[0])])


def _nothing(b: Builder, args: Sequence[V]) -> None:
    return None


def _special(number: int) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        return b.load(i32, b.gep(V("@emu.special", ptr), 4 * number), align=4)

    return body


# ---- arithmetic ----------------------------------------------------------------------------------


def _by_double(name: str, flush: bool = False) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        wide = b.fpext(args[0], double)
        if name == "rsqrt":
            made = b.fdiv(const(double, 1.0), b.intrinsic("sqrt", (wide,)))
        else:
            made = b.call(name, double, (wide,), attributes="nobuiltin")
        result = b.fptrunc(made, float_)
        if not flush:
            return result
        small = b.fcmp("olt", b.intrinsic("fabs", (result,)), const(float_, 2.0**-126))
        return b.select(small, const(float_, 0.0), result)

    return body


def _div(b: Builder, args: Sequence[V]) -> V:
    return b.fdiv(*args)


def _rcp(b: Builder, args: Sequence[V]) -> V:
    return b.fdiv(const(float_, 1.0), args[0])


def _sqrt(b: Builder, args: Sequence[V]) -> V:
    return b.intrinsic("sqrt", (args[0],))


def _saturated_fma(b: Builder, args: Sequence[V]) -> V:
    x, one = b.fma(*args), const(float_, 1.0)
    inside = b.select(b.fcmp("ogt", x, zero(float_)), x, zero(float_))
    return b.select(b.fcmp("olt", inside, one), inside, one)


def _mulhi(bits: int) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        wide = b.mul(*(b.zext(arg, i128) for arg in args))
        return b.trunc(b.lshr(wide, const(i128, bits)), int_(bits))

    return body


def _to_int(signed: bool, bits: int) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        (x,) = args
        result = int_(bits)
        name = "fptosi.sat" if signed else "fptoui.sat"
        made = b.intrinsic(name, (x,), result, (result, x.type))
        if x.type is float_ and bits == 32:
            return made
        return b.select(b.fcmp("uno", x, x), const(result, 1 << (bits - 1)), made)

    return body


def _cast(b: Builder, x: V, source: DType, target: DType, rounding: str = "rtne") -> V:
    return vector_casts.convert(b, x, source, target, rounding, llvm.host_target())  # type: ignore[arg-type]


def _to_bfloat(rounding: str) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        return b.bitcast(_cast(b, args[0], float32, bfloat16, rounding), bfloat)

    return body


def _half_pair(b: Builder, args: Sequence[V]) -> V:
    high, low = (b.bitcast(_cast(b, x, float32, float16, "rtz"), half) for x in args)
    return b.concat([low, high])


def _to_fp8(target: DType) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        high, low = (b.zext(_cast(b, x, float32, target), i16) for x in args)
        return b.or_(b.shl(high, const(i16, 8)), low)

    return body


def _from_fp8(source: DType) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        parts = (b.trunc(args[0], i8), b.trunc(b.lshr(args[0], const(i16, 8)), i8))
        return b.concat([b.bitcast(_cast(b, x, source, float16), half) for x in parts])

    return body


def _fma(dtype: DType) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        op = arith.Fma(x=Value(dtype), y=Value(dtype), z=Value(dtype))
        stored = [b.bitcast(x, i16) if dtype is bfloat16 else x for x in args]
        made = rule_of(op)(Lowering(b, llvm.host_target(), 1), op, *stored)
        return b.bitcast(made, bfloat) if dtype is bfloat16 else made

    return body


def _extremum(name: str, dtype: DType) -> Body:
    def body(b: Builder, args: Sequence[V]) -> V:
        wide = [_cast(b, b.bitcast(x, i16), dtype, float32) for x in args]
        made = _cast(b, b.intrinsic(name, wide), float32, dtype)
        return b.bitcast(made, args[0].type)

    return body


def _number(larger: bool) -> Body:
    """A number rather than NaN. With AVX-512, LLVM 22 gives NaN where it sees that one is none."""

    def body(b: Builder, args: Sequence[V]) -> V:
        x, y = args
        bits = [b.as_int(each) for each in args]
        # Of equal values the signs decide: they are zeros, or the same.
        equal = b.as_float(b.and_(*bits) if larger else b.or_(*bits), x.type)
        first = b.fcmp("ogt" if larger else "olt", x, y)
        second = b.fcmp("olt" if larger else "ogt", x, y)
        picked = b.select(first, x, b.select(second, y, equal))
        picked = b.select(b.fcmp("uno", y, y), x, picked)
        return b.select(b.fcmp("uno", x, x), y, picked)

    return body


def _shift_pair(b: Builder, args: Sequence[V]) -> V:
    selector, result = args[2], zero(i32)
    source = b.or_(b.shl(b.zext(args[1], i64), const(i64, 32)), b.zext(args[0], i64))
    for byte in range(4):
        choice = b.and_(b.lshr(selector, const(i32, 4 * byte)), const(i32, 7))
        moved = b.lshr(source, b.zext(b.shl(choice, const(i32, 3)), i64))
        part = b.and_(b.trunc(moved, i32), const(i32, 255))
        result = b.or_(result, b.shl(part, const(i32, 8 * byte)))
    return result


F, D, H, B = float_, double, half, bfloat


@cache
def definitions() -> dict[str, tuple[LType, tuple[LType, ...], Body]]:
    """For each intrinsic, without ``llvm.``: result, parameters, what it does."""
    table: dict[str, tuple[LType, tuple[LType, ...], Body]] = {
        "nvvm.barrier.cta.sync.aligned.all": (void, (i32,), _barrier),
        "nvvm.barrier0": (void, (), _barrier),
        "nvvm.bar.warp.sync": (void, (i32,), _warp_barrier),
        "nvvm.membar.cta": (void, (), _nothing),
        "nvvm.ex2.approx.ftz.f": (F, (F,), _by_double("exp2", flush=True)),
        "nvvm.ex2.approx.f": (F, (F,), _by_double("exp2")),
        "nvvm.lg2.approx.f": (F, (F,), _by_double("log2")),
        "nvvm.rsqrt.approx.f": (F, (F,), _by_double("rsqrt")),
        "nvvm.sqrt.approx.f": (F, (F,), _sqrt),
        "nvvm.div.full": (F, (F, F), _div),
        "nvvm.rcp.approx.ftz.f": (F, (F,), _rcp),
        "nvvm.fma.rn.sat.f": (F, (F, F, F), _saturated_fma),
        "nvvm.mulhi.ui": (i32, (i32, i32), _mulhi(32)),
        "nvvm.mulhi.ull": (i64, (i64, i64), _mulhi(64)),
        "nvvm.f2bf16.rn": (B, (F,), _to_bfloat("rtne")),
        "nvvm.f2bf16.rz": (B, (F,), _to_bfloat("rtz")),
        "nvvm.ff2f16x2.rz": (vec(H, 2), (F, F), _half_pair),
        "nvvm.ff.to.e4m3x2.rn": (i16, (F, F), _to_fp8(float8e4nv)),
        "nvvm.ff.to.e5m2x2.rn": (i16, (F, F), _to_fp8(float8e5)),
        "nvvm.e4m3x2.to.f16x2.rn": (vec(H, 2), (i16,), _from_fp8(float8e4nv)),
        "nvvm.e5m2x2.to.f16x2.rn": (vec(H, 2), (i16,), _from_fp8(float8e5)),
        "nvvm.prmt": (i32, (i32, i32, i32), _shift_pair),
        "fma.f16": (H, (H, H, H), _fma(float16)),
        "fma.bf16": (B, (B, B, B), _fma(bfloat16)),
    }
    for number, name in enumerate(SPECIAL):
        table[f"nvvm.read.ptx.sreg.{name}"] = (i32, (), _special(number))
    for mode, name in enumerate(SHUFFLES):
        for type_, suffix in ((i32, "i32"), (F, "f32")):
            table[f"nvvm.shfl.sync.{name}.{suffix}"] = (
                type_,
                (i32, type_, i32, i32),
                _shuffle(mode),
            )
    for number, name in enumerate(REDUCTIONS):
        table[f"nvvm.redux.sync.{name}"] = (i32, (i32, i32), _reduction(number))
    for number, name in enumerate(VOTES):
        result = i32 if name == "ballot" else i1
        table[f"nvvm.vote.{name}.sync"] = (result, (i32, i1), _vote(number, result))
    for source, prefix in ((F, "f"), (D, "d")):
        for kind in ("i", "ui", "ll", "ull"):
            body = _to_int("u" not in kind, 64 if "ll" in kind else 32)
            result = i64 if "ll" in kind else i32
            table[f"nvvm.{prefix}2{kind}.rz"] = (result, (source,), body)
    for larger, name in ((True, "maximumnum"), (False, "minimumnum")):
        for type_, suffix in ((F, "f32"), (D, "f64")):
            table[f"{name}.{suffix}"] = (type_, (type_, type_), _number(larger))
    for name in ("maximum", "minimum", "maximumnum", "minimumnum", "maxnum", "minnum"):
        # The host leaves the order of zeros open for the last two; PTX doesn't.
        exact = name.replace("maxnum", "maximumnum").replace("minnum", "minimumnum")
        for type_, dtype, suffix in ((H, float16, "f16"), (B, bfloat16, "bf16")):
            table[f"{name}.{suffix}"] = (type_, (type_, type_), _extremum(exact, dtype))
    return table


def write(module: Module, names: Sequence[str]) -> None:
    """Define ``@gpu.<name>`` for those intrinsics."""
    for name in names:
        result, params, body = definitions()[name]
        listed = [(type_, f"x{i}") for i, type_ in enumerate(params)]
        # Some CPUs flush a subnormal bfloat where it is passed to a function or returned.
        inline = ("nounwind", *(["alwaysinline"] if B in (result, *params) else []))
        function = module.function(
            f"gpu.{name}", result, listed, linkage="internal", attributes=inline
        )
        b = Builder(function.entry)
        b.ret(body(b, function.params))
