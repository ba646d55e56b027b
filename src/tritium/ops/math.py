"""Elementary functions of fp32 and fp64.

``evaluate`` computes fp32 in float64 and rounds once; fp64 lane by lane with the platform's
functions. What each executor may differ by is argued in ``docs/numerics.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from tritium.ir.core import op
from tritium.ir.dtypes import Array, DType, float16, float32, float64, int32
from tritium.ir.types import PointerType

from . import samples
from .codecs import encode
from .constants import to_tile
from .elementwise import Unary
from .emit import SURFACE, emit_tile, surface
from .spec import AgreementTable, Reject, Ulp, given
from .tile import Tile

ELEMENTARY: AgreementTable = {
    # A relative error far under 2**-40, then one rounding.
    "reference": {float32: Ulp(0.5001), float64: Ulp(2)},
    "cpu": {float32: Ulp(1), float64: Ulp(2)},
    "nvptx": {float32: Ulp(1), float64: Ulp(2)},
}
"""Ceilings of the functions that can't be computed exactly."""

APPROXIMATE: AgreementTable = {**ELEMENTARY, "nvptx": {float32: Ulp(2.1), float64: Ulp(2)}}
"""Of those that a GPU has an approximate instruction for."""


class Elementary(Unary):
    """Base of functions that only exist for fp32 and fp64."""

    accepts: ClassVar[tuple[DType, ...]] = (float32, float64)
    expected = "fp32 or fp64"
    hint = "cast it: x.to(tl.float32)"
    spans: ClassVar[tuple[tuple[float, float], ...]] = ((-10.0, 10.0),)
    """Intervals that the generated cases sample densely."""

    @classmethod
    def operand_arrays(cls, dtype: DType) -> tuple[Array, ...]:
        rng = np.random.default_rng(len(cls.mnemonic))
        dense = [rng.uniform(low, high, 1024) for low, high in cls.spans]
        return (np.concatenate([samples.vector(dtype), encode(np.concatenate(dense), dtype)]),)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Other types than fp32 and fp64, and what is no number."""
        call: Any = SURFACE[cls.verb]
        yield Reject("fp16", "E0204", lambda: call(given(float16, 4)), "x")
        yield Reject("int32", "E0204", lambda: call(given(int32)), "x")
        yield Reject("an integer constant", "E0204", lambda: call(2), "x")
        yield Reject("a pointer", "E0204", lambda: call(given(PointerType(float32))), "x")
        yield Reject("None", "E0210", lambda: call(None), "x")


class Transcendental(Elementary):
    """Base of functions whose exact results are irrational."""

    agreement: ClassVar[AgreementTable] = ELEMENTARY
    double: ClassVar[Any]
    """The function on float64 arrays, with an error far under half an fp32 ulp."""
    platform: ClassVar[Any]
    """The function on one number; may raise as those of ``math`` do."""

    @staticmethod
    def outside(value: float) -> float:
        """What a ``ValueError`` of ``platform`` stands for."""
        return math.nan

    def compute(self, *arrays: Array) -> Any:
        (x,) = arrays
        if x.dtype == np.float32:
            return encode(np.asarray(type(self).double(x.astype(np.float64))), float32)
        return lanes(self._lane, x)

    def _lane(self, value: float) -> float:
        try:
            return float(self.platform(value))
        except OverflowError:
            return math.inf
        except ValueError:
            return self.outside(value)


def lanes(function: Callable[[float], float], x: Array) -> Array:
    """A function of one number on each element of a float64 array."""
    return np.array([function(value) for value in x.ravel().tolist()]).reshape(x.shape)


@op("math.exp")
class Exp(Transcendental):
    """e to the power of each element."""

    agreement: ClassVar[AgreementTable] = APPROXIMATE
    spans = ((-110.0, 90.0), (-750.0, 710.0), (-1e-3, 1e-3))
    double = np.exp
    platform = math.exp


@op("math.exp2")
class Exp2(Transcendental):
    """2 to the power of each element; exact at integers."""

    agreement: ClassVar[AgreementTable] = APPROXIMATE
    spans = ((-152.0, 130.0), (-1080.0, 1030.0), (-1e-3, 1e-3))
    double = np.exp2

    @staticmethod
    def platform(value: float) -> float:
        # math.exp2 came with Python 3.11.
        return math.pow(2.0, value)

    @classmethod
    def operand_arrays(cls, dtype: DType) -> tuple[Array, ...]:
        (usual,) = super().operand_arrays(dtype)
        integers = encode(np.arange(-1100.0, 1100.0), dtype)
        return (np.concatenate([integers, usual]),)


class Logarithm(Transcendental):
    """Base of logarithms: -infinity at both zeros, NaN below."""

    spans = ((0.0, 4.0), (0.9, 1.1), (0.999, 1.001))

    @staticmethod
    def outside(value: float) -> float:
        return -math.inf if value == 0 else math.nan


@op("math.log")
class Log(Logarithm):
    """The natural logarithm; -infinity at zero, NaN below."""

    double = np.log
    platform = math.log


@op("math.log2")
class Log2(Logarithm):
    """The logarithm to base 2, exact at powers of 2; -infinity at zero, NaN below."""

    double = np.log2
    platform = math.log2


class Trigonometric(Transcendental):
    """Base of sine and cosine: the argument is reduced exactly, infinities give NaN."""

    spans = ((-3.2, 3.2), (-100.0, 100.0), (-1e5, 1e5), (-1e-3, 1e-3))

    @classmethod
    def operand_arrays(cls, dtype: DType) -> tuple[Array, ...]:
        (usual,) = super().operand_arrays(dtype)
        multiples = np.concatenate([np.arange(-256.0, 256.0), 2.0 ** np.arange(8, 60)])
        return (np.concatenate([encode(multiples * (math.pi / 2), dtype), usual]),)


@op("math.sin")
class Sin(Trigonometric):
    """The sine of each element, in radians; NaN at infinities."""

    double = np.sin
    platform = math.sin


@op("math.cos")
class Cos(Trigonometric):
    """The cosine of each element, in radians; NaN at infinities."""

    double = np.cos
    platform = math.cos


@op("math.erf")
class Erf(Transcendental):
    """The error function 2 / sqrt(pi) * integral of exp(-t**2) from 0 to x."""

    spans = ((-1.0, 1.0), (-4.5, 4.5), (-6.5, 6.5), (-1e-3, 1e-3))
    platform = math.erf

    @staticmethod
    def double(x: Array) -> Array:
        """NumPy has no erf."""
        return lanes(math.erf, x)


@op("math.tanh")
class Tanh(Transcendental):
    """The hyperbolic tangent of each element; 1 and -1 at infinities."""

    spans = ((-1.0, 1.0), (-10.0, 10.0), (-20.0, 20.0), (-1e-3, 1e-3))
    double = np.tanh
    platform = math.tanh


@op("math.sqrt")
class Sqrt(Elementary):
    """The square root, correctly rounded but on GPUs; NaN below zero, -0 at -0."""

    agreement: ClassVar[AgreementTable] = {"nvptx": {float32: Ulp(2)}}
    spans = ((0.0, 4.0), (0.0, 1e6))

    def compute(self, *arrays: Array) -> Any:
        (x,) = arrays
        return np.sqrt(x)


@op("math.sqrt_rn")
class SqrtRn(Elementary):
    """The square root of fp32, correctly rounded on every target; NaN below zero, -0 at -0."""

    accepts: ClassVar[tuple[DType, ...]] = (float32,)
    expected = "fp32"
    spans = ((0.0, 4.0), (0.0, 1e6))

    def compute(self, *arrays: Array) -> Any:
        (x,) = arrays
        return np.sqrt(x)


@op("math.rsqrt")
class Rsqrt(Elementary):
    """1 / sqrt(x); infinities at zeros with their sign, NaN below zero."""

    agreement: ClassVar[AgreementTable] = APPROXIMATE
    spans = ((0.0, 4.0), (0.0, 1e6))

    def compute(self, *arrays: Array) -> Any:
        (x,) = arrays
        result = 1.0 / np.sqrt(x.astype(np.float64))
        return encode(np.asarray(result), float32) if x.dtype == np.float32 else result


@op("math.floor")
class Floor(Elementary):
    """The largest integer that is not above each element, as a float."""

    spans = ((-10.0, 10.0), (-1e9, 1e9))

    def compute(self, *arrays: Array) -> Any:
        (x,) = arrays
        return np.floor(x)


@op("math.ceil")
class Ceil(Elementary):
    """The smallest integer that is not below each element, as a float; -0 above -1."""

    spans = ((-10.0, 10.0), (-1e9, 1e9))

    def compute(self, *arrays: Array) -> Any:
        (x,) = arrays
        return np.ceil(x)


def _apply(cls: type[Elementary], name: str, x: Any) -> Tile:
    return emit_tile(cls, x=to_tile(x, name, "x"))


@surface(method=True)
def exp(x: Any) -> Tile:
    """e to the power of each element of fp32 or fp64. Raises E0204 for other types."""
    return _apply(Exp, "exp", x)


@surface(method=True)
def exp2(x: Any) -> Tile:
    """2 to the power of each element of fp32 or fp64. Raises E0204 for other types."""
    return _apply(Exp2, "exp2", x)


@surface(method=True)
def log(x: Any) -> Tile:
    """The natural logarithm of fp32 or fp64. Raises E0204 for other types."""
    return _apply(Log, "log", x)


@surface(method=True)
def log2(x: Any) -> Tile:
    """The logarithm to base 2 of fp32 or fp64. Raises E0204 for other types."""
    return _apply(Log2, "log2", x)


@surface(method=True)
def sin(x: Any) -> Tile:
    """The sine of fp32 or fp64, in radians. Raises E0204 for other types."""
    return _apply(Sin, "sin", x)


@surface(method=True)
def cos(x: Any) -> Tile:
    """The cosine of fp32 or fp64, in radians. Raises E0204 for other types."""
    return _apply(Cos, "cos", x)


@surface(method=True)
def erf(x: Any) -> Tile:
    """The error function of fp32 or fp64. Raises E0204 for other types."""
    return _apply(Erf, "erf", x)


@surface(method=True)
def tanh(x: Any) -> Tile:
    """The hyperbolic tangent of fp32 or fp64. Raises E0204 for other types."""
    return _apply(Tanh, "tanh", x)


@surface(method=True)
def sqrt(x: Any) -> Tile:
    """The square root of fp32 (within 2 ulp on GPUs) or fp64. Raises E0204 for other types."""
    return _apply(Sqrt, "sqrt", x)


@surface(method=True)
def sqrt_rn(x: Any) -> Tile:
    """The square root of fp32, correctly rounded. Raises E0204 for other types."""
    return _apply(SqrtRn, "sqrt_rn", x)


@surface(method=True)
def rsqrt(x: Any) -> Tile:
    """1 / sqrt(x) of fp32 or fp64. Raises E0204 for other types."""
    return _apply(Rsqrt, "rsqrt", x)


@surface(method=True)
def floor(x: Any) -> Tile:
    """The largest integer not above each element of fp32 or fp64, as a float.

    Raises E0204 for other types.
    """
    return _apply(Floor, "floor", x)


@surface(method=True)
def ceil(x: Any) -> Tile:
    """The smallest integer not below each element of fp32 or fp64, as a float.

    Raises E0204 for other types.
    """
    return _apply(Ceil, "ceil", x)
