"""Elementary functions of fp32 and fp64: those of ``vector_math``."""

from __future__ import annotations

from collections.abc import Callable

from tritium.backends.emit import Builder, V
from tritium.backends.llvm import Target
from tritium.ops import math

from . import vector_math
from .rules import Lowering, lower

Function = Callable[[Builder, V, Target], V]

_FUNCTIONS: dict[type[math.Elementary], Function] = {
    math.Exp: vector_math.exp,
    math.Exp2: vector_math.exp2,
    math.Log: vector_math.log,
    math.Log2: vector_math.log2,
    math.Sin: vector_math.sin,
    math.Cos: vector_math.cos,
    math.Erf: vector_math.erf,
    math.Tanh: vector_math.tanh,
    math.Sqrt: vector_math.sqrt,
    math.SqrtRn: vector_math.sqrt,
    math.Rsqrt: vector_math.rsqrt,
}


@lower(*_FUNCTIONS)
def _(lowering: Lowering, op: math.Elementary, x: V) -> V:
    return _FUNCTIONS[type(op)](lowering.b, x, lowering.target)


@lower(math.Floor)
def _(lowering: Lowering, op: math.Floor, x: V) -> V:
    return vector_math.floor(lowering.b, x)


@lower(math.Ceil)
def _(lowering: Lowering, op: math.Ceil, x: V) -> V:
    return vector_math.ceil(lowering.b, x)
