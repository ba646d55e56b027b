"""The remainder of floats."""

from __future__ import annotations

import math
from collections.abc import Callable

from tritium.backends.emit import Builder, V, const, i1, zero
from tritium.backends.llvm import Target

from . import vector_math

Far = Callable[[Builder, V, V], V]
"""The remainder of positive finite numbers of any quotient."""


def fmod(b: Builder, x: V, y: V, target: Target, far_remainder: Far | None = None) -> V:
    """x - y * (x / y truncated) of float or double: exact, with the sign of x.

    NaN where x is infinite or y zero, x where y is infinite. Adds blocks: the builder stands in
    another one after it.

    Where the rounded quotient q is below 2**p, p the bits of a significand, its integer part is the
    true one or, where it was rounded up to an integer, one more. Both remainders are multiples of
    the operands' last places and no larger than y, so they are representable and the fused step is
    exact; a negative one says that q was too large. The other lanes take ``far_remainder``, or else
    the C library's function.
    """
    limit = 2.0 ** (24 if x.type.bits == 32 else 53)
    infinity = const(x.type, math.inf)
    dividend, divisor = vector_math.fabs(b, x), vector_math.fabs(b, y)
    quotient = b.fdiv(dividend, divisor)
    rest = b.fma(b.fneg(vector_math.trunc(b, quotient)), divisor, dividend)
    rest = b.select(b.fcmp("olt", rest, zero(rest.type)), b.fadd(rest, divisor), rest)
    # Zero times infinity made this one NaN.
    rest = b.select(b.fcmp("oeq", divisor, infinity), dividend, rest)
    near = b.fcmp("olt", quotient, const(x.type, limit))
    rest = b.select(near, rest, const(x.type, math.nan))

    far = b.fcmp("oge", quotient, const(x.type, limit))
    finite = b.and_(b.fcmp("olt", dividend, infinity), b.fcmp("ogt", divisor, zero(x.type)))
    far = b.and_(far, finite)
    anywhere = b.intrinsic("vector.reduce.or", (far,), i1) if far.type.is_vector else far
    with b.when(anywhere, weights=(1, 1000)) as before:
        if far_remainder is not None:
            other = far_remainder(b, dividend, divisor)
        else:
            other = vector_math.library_call(b, "fmod", (dividend, divisor), target)
        chosen = b.select(far, other, rest)
        after = b.block
    magnitude = b.phi(x.type, "", [(rest, before), (chosen, after)])
    return b.intrinsic("copysign", (magnitude, x), pure=True)
