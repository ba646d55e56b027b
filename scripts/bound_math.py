"""Bound the errors of the CPU's float functions before they are measured.

    python scripts/bound_math.py

The functions of `vector_math` are run on numbers that remember where they were rounded, instead of
a builder that writes LLVM IR: each number is its float, what it would be without any rounding, and
a linear form with one term for every rounding so far, half a unit in the last place of the number
rounded. A rounding that is undone later (a compensated sum) cancels in the form. What is left at
the end, plus the distance of the unrounded result from mpmath's value, is the bound, in ulp of the
result. An operation that is exact at a sample and at those around it counts as exact there.

First order: products of two roundings, 2**-24 of the bound, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

from tritium.backends.common import vector_math
from tritium.backends.emit import LType, V, const, float_, i1, i32
from tritium.backends.llvm import Target

Array = np.ndarray[Any, Any]
Terms = dict[int, Array]

SAMPLES = 6000
TARGET = Target("x86_64-unknown-linux-gnu", "x86-64-v3", "", frozenset(), jit=False)


class Number(V):
    """A float on every sample: as computed, as it would be without rounding, and the roundings."""

    __slots__ = ("exact", "rounded", "terms")

    def __init__(self, rounded: Array, exact: Array, terms: Terms) -> None:
        super().__init__("", float_)
        self.rounded, self.exact, self.terms = rounded, exact, terms


class Bits(V):
    """An integer or a truth value on every sample; `origin`: the number whose bits they were."""

    __slots__ = ("origin", "value")

    def __init__(self, value: Array, type_: LType, origin: Number | None = None) -> None:
        super().__init__("", type_)
        self.value, self.origin = value, origin


def number(x: V) -> Number:
    """x as a Number; constants have no roundings."""
    if isinstance(x, Number):
        return x
    value = np.array([x.number], np.float64)
    return Number(value.astype(np.float32), value, {})


def bits(x: V) -> Array:
    """x as integers of 32 bits."""
    return x.value if isinstance(x, Bits) else np.array([x.integer], np.int64).astype(np.int32)


def combined(*parts: tuple[Array, Number]) -> Terms:
    """The terms of a sum of numbers times factors."""
    total: Terms = {}
    for factor, part in parts:
        for symbol, bound in part.terms.items():
            total[symbol] = total.get(symbol, 0.0) + factor * bound
    return total


def half_ulp(x: Array) -> Array:
    """Half a unit in the last place of floats about x."""
    _, exponent = np.frexp(np.where(x == 0, 1e-45, x))
    return np.exp2(np.maximum(exponent - 25, -150).astype(np.float64))


def near(found: Array) -> Array:
    """Where an ascending sample or one of the 25 on each side of it has been found."""
    return np.convolve(found, np.ones(51), "same") > 0 if len(found) > 1 else found


class Recorder:
    """The methods of a builder that `vector_math` uses, on Numbers and Bits."""

    def __init__(self) -> None:
        self.symbols = 0

    def result(self, value: Array, exact: Array, terms: Terms) -> Number:
        """A number rounded to float from its value in double."""
        rounded = value.astype(np.float32)
        inexact = near(rounded != value)
        if inexact.any():
            self.symbols += 1
            terms = {**terms, self.symbols: half_ulp(value) * inexact}
        return Number(rounded, exact, terms)

    def linear(self, a: V, b: V, sign: float) -> Number:
        """a + sign * b."""
        x, y = number(a), number(b)
        value = x.rounded.astype(np.float64) + sign * y.rounded
        one = np.ones(1)
        return self.result(value, x.exact + sign * y.exact, combined((one, x), (sign * one, y)))

    def fadd(self, a: V, b: V) -> Number:
        return self.linear(a, b, 1.0)

    def fsub(self, a: V, b: V) -> Number:
        return self.linear(a, b, -1.0)

    def fneg(self, a: V) -> Number:
        return self.linear(const(float_, 0.0), a, -1.0)

    def fmul(self, a: V, b: V) -> Number:
        x, y = number(a), number(b)
        value = x.rounded.astype(np.float64) * y.rounded
        return self.result(value, x.exact * y.exact, combined((y.exact, x), (x.exact, y)))

    def fma(self, a: V, b: V, c: V) -> Number:
        x, y, z = number(a), number(b), number(c)
        # In longdouble the sum is exact enough to see whether it is a float.
        value = x.rounded.astype(np.longdouble) * y.rounded + z.rounded
        if c.number == vector_math._MAGIC:
            # Rounded to an integer on purpose: what follows is right for whichever it is.
            rounded = value.astype(np.float32)
            return Number(rounded, rounded.astype(np.float64), {})
        terms = combined((y.exact, x), (x.exact, y), (np.ones(1), z))
        return self.result(value, x.exact * y.exact + z.exact, terms)

    def fdiv(self, a: V, b: V) -> Number:
        x, y = number(a), number(b)
        value = x.rounded.astype(np.float64) / y.rounded
        terms = combined((1 / y.exact, x), (-x.exact / y.exact**2, y))
        return self.result(value, x.exact / y.exact, terms)

    def intrinsic(self, name: str, args: tuple[V, ...], **_: object) -> Number:
        x = number(args[0])
        if name == "sqrt":
            root = np.sqrt(x.exact)
            value = np.sqrt(x.rounded.astype(np.float64))
            return self.result(value, root, combined((1 / (2 * root), x)))
        if name == "fabs":
            sign = np.sign(x.rounded).astype(np.float64)
        elif name == "copysign":
            sign = np.sign(x.rounded).astype(np.float64) * np.sign(number(args[1]).rounded)
        else:
            raise ValueError(f"no model of {name}")
        return self.linear(const(float_, 0.0), self.signed(x, sign), 1.0)

    @staticmethod
    def signed(x: Number, sign: Array) -> Number:
        """x times +1 or -1."""
        terms = {symbol: sign * bound for symbol, bound in x.terms.items()}
        return Number((x.rounded * sign).astype(np.float32), x.exact * sign, terms)

    def select(self, condition: Bits, a: V, b: V) -> V:
        chosen = condition.value
        if a.type is i32:
            return Bits(np.where(chosen, bits(a), bits(b)), i32)
        x, y = number(a), number(b)
        empty = np.zeros(1)
        terms = {
            symbol: np.where(chosen, x.terms.get(symbol, empty), y.terms.get(symbol, empty))
            for symbol in {*x.terms, *y.terms}
        }
        rounded = np.where(chosen, x.rounded, y.rounded)
        return Number(rounded, np.where(chosen, x.exact, y.exact), terms)

    def fcmp(self, predicate: str, a: V, b: V) -> Bits:
        compare = {"olt": np.less, "ogt": np.greater, "oeq": np.equal}
        x, y = number(a).rounded, number(b).rounded
        if predicate == "ord":
            return Bits(~np.isnan(x) & ~np.isnan(y), i1)
        return Bits(compare[predicate](x, y), i1)

    def icmp(self, predicate: str, a: V, b: V) -> Bits:
        return Bits({"ne": np.not_equal}[predicate](bits(a), bits(b)), i1)

    def integer(self, operation: Callable[[Array, Array], Array], a: V, b: V) -> Bits:
        with np.errstate(over="ignore"):
            return Bits(operation(bits(a), bits(b)).astype(np.int32), i32)

    def add(self, a: V, b: V) -> Bits:
        return self.integer(np.add, a, b)

    def sub(self, a: V, b: V) -> Bits:
        return self.integer(np.subtract, a, b)

    def shl(self, a: V, b: V) -> Bits:
        return self.integer(np.left_shift, a, b)

    def ashr(self, a: V, b: V) -> Bits:
        return self.integer(np.right_shift, a, b)

    def and_(self, a: V, b: V) -> Bits:
        return self.integer(np.bitwise_and, a, b)

    def xor(self, a: V, b: V) -> Bits:
        origin = a.origin if isinstance(a, Bits) else None
        return Bits(self.integer(np.bitwise_xor, a, b).value, i32, origin)

    def as_int(self, a: V) -> Bits:
        return Bits(number(a).rounded.view(np.int32), i32, number(a))

    def as_float(self, a: V, _: LType) -> Number:
        assert isinstance(a, Bits)
        value = np.ascontiguousarray(a.value, np.int32).view(np.float32)
        if a.origin is not None:
            return self.signed(a.origin, np.where(value == a.origin.rounded, 1.0, -1.0))
        return Number(value, value.astype(np.float64), {})

    def sitofp(self, a: V, _: LType) -> Number:
        return Number(bits(a).astype(np.float32), bits(a).astype(np.float64), {})


def sine(shift: int) -> Callable[[Recorder, V, Target], V]:
    """sin or cos below 2**17, without the rare branch, which ends in the same steps."""

    def function(b: Any, x: V, _: Target) -> V:
        r, low, quadrant = vector_math._reduced(b, x)
        return vector_math._sine_of_reduced(b, r, low, b.add(quadrant, const(i32, shift)))

    return function


# Where each function is neither trivial nor a repetition of another stretch.
CASES: dict[str, tuple[Any, Callable[[Any], Any], tuple[float, float]]] = {
    "exp": (vector_math.exp, mpmath.exp, (-80.0, 80.0)),
    "exp2": (vector_math.exp2, lambda x: mpmath.mpf(2) ** x, (-3.0, 3.0)),
    "log": (vector_math.log, mpmath.log, (0.2, 5.0)),
    "log2": (vector_math.log2, lambda x: mpmath.log(x) / mpmath.log(2), (0.2, 5.0)),
    "sin": (sine(0), mpmath.sin, (1e-3, 30.0)),
    "cos": (sine(1), mpmath.cos, (1e-3, 30.0)),
    "tanh": (vector_math.tanh, mpmath.tanh, (1e-3, 9.0)),
    # Above, the result is 1 or the float before it.
    "erf": (vector_math.erf, mpmath.erf, (1e-3, 3.83)),
    "rsqrt": (vector_math.rsqrt, lambda x: 1 / mpmath.sqrt(x), (1.0, 4.0)),
}


def bound(name: str) -> tuple[float, float, float, float]:
    """The largest bound in ulp, where, and there the parts of rounding and of approximation."""
    function, reference, (low, high) = CASES[name]
    generator = np.random.default_rng(1)
    # Odd significands: no step is exact by chance.
    x = generator.uniform(low, high, SAMPLES)
    if name in ("sin", "cos"):
        # The quadrants' ends, where the reduced argument is largest.
        ends = (generator.integers(0, 83000, SAMPLES) + 0.5) * (np.pi / 2)
        x = np.concatenate([x, ends + generator.uniform(-0.006, 0.006, SAMPLES)])
    x = np.sort(x).astype(np.float32)
    x = (x.view(np.int32) | 1).view(np.float32)
    result = function(Recorder(), Number(x, x.astype(np.float64), {}), TARGET)
    true = np.array([float(reference(mpmath.mpf(float(value)))) for value in x])
    unit = 2 * half_ulp(true)
    roundings = sum(np.abs(term) for term in result.terms.values()) / unit
    # What a double of the unrounded run can't tell apart is no approximation error.
    approximation = np.abs(result.exact - true) / unit
    total = roundings + approximation
    worst = int(np.argmax(total))
    return (
        float(total[worst]),
        float(x[worst]),
        float(roundings[worst]),
        float(approximation[worst]),
    )


def main() -> None:
    """Print the bound of every function."""
    for name in CASES:
        total, place, rounding, approximation = bound(name)
        print(f"{name:6s} {total:.3f} ulp near {place:.5g}: {rounding:.3f} + {approximation:.3f}")


if __name__ == "__main__":
    main()
