"""What a value is over the lanes of one vector: uniform, a ramp, or a vector.

Integers and pointers keep the form base + lane * stride as long as they can: it is exact modulo
their width in every case, so only widening and comparing need a proof that nothing wraps.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from tritium.backends.emit import Builder, LType, V, const, const_lanes, elem, i64, ptr, vec
from tritium.diagnostics import InternalError


class Form(enum.Enum):
    """How a value varies over lanes."""

    UNIFORM = "uniform"
    RAMP = "ramp"
    VECTOR = "vector"


@dataclass(frozen=True, eq=False)
class Lanes:
    """A value over lanes. ``v`` is a scalar (uniform, the base of a ramp) or a vector.

    ``level`` is the loop level at which ``v`` is known. A ramp of pointers has its ``stride`` in
    bytes (i64), one of integers in its own type; strides are known at ``stride_level``.
    """

    form: Form
    v: V
    level: int
    stride: V | None = None
    stride_level: int = 0

    @property
    def is_uniform(self) -> bool:
        return self.form is Form.UNIFORM

    @property
    def is_ramp(self) -> bool:
        return self.form is Form.RAMP

    @property
    def step(self) -> V:
        if self.stride is None:
            raise InternalError("only a ramp has a stride")
        return self.stride


def uniform(v: V, level: int) -> Lanes:
    """The same scalar in every lane."""
    return Lanes(Form.UNIFORM, v, level)


def vector(v: V, level: int) -> Lanes:
    """One value a lane."""
    return Lanes(Form.VECTOR, v, level)


def ramp(base: V, stride: V, level: int, stride_level: int) -> Lanes:
    """base + lane * stride; a stride known to be 0 makes it uniform."""
    if stride.integer == 0:
        return uniform(base, level)
    return Lanes(Form.RAMP, base, level, stride, stride_level)


class LaneMath:
    """Arithmetic on lanes. ``builders[level]`` writes at that loop level; ``n`` lanes."""

    def __init__(self, builders: Sequence[Builder], n: int) -> None:
        self.builders = builders
        self.n = n

    def widen(self, x: Lanes) -> V:
        """The value as one vector of ``n`` lanes (a scalar when n is 1)."""
        if self.n == 1 or x.form is Form.VECTOR:
            return x.v
        splat = self.builders[x.level].splat(x.v, self.n)
        if x.is_uniform:
            return splat
        b = self.builders[x.level]
        if x.v.type.is_pointer:
            return b.gep(x.v, self._multiples(x, i64))
        return b.add(splat, self._multiples(x, x.v.type))

    def _multiples(self, x: Lanes, element: LType) -> V:
        """The vector 0, stride, 2 * stride, ..."""
        b = self.builders[x.stride_level]
        if x.step.integer is not None:
            return const_lanes(element, [x.step.integer * lane for lane in range(self.n)])
        return b.mul(b.splat(x.step, self.n), b.iota(element, self.n))

    def linear(self, x: Lanes) -> bool:
        """Whether the value is uniform or a ramp."""
        return x.form is not Form.VECTOR

    def parts(self, x: Lanes) -> tuple[V, V, int, int]:
        """Base, stride and their levels; the stride of a uniform value is 0."""
        if x.is_ramp:
            return x.v, x.step, x.level, x.stride_level
        kind = i64 if x.v.type is ptr else x.v.type
        return x.v, const(kind, 0), x.level, 0

    def add(self, x: Lanes, y: Lanes, *, subtract: bool = False) -> Lanes:
        """x + y or x - y of linear integers."""
        a, s, la, ls = self.parts(x)
        c, t, lc, lt = self.parts(y)
        level, stride_level = max(la, lc), max(ls, lt)
        b, sb = self.builders[level], self.builders[stride_level]
        if subtract:
            return ramp(b.sub(a, c), sb.sub(s, t), level, stride_level)
        return ramp(b.add(a, c), sb.add(s, t), level, stride_level)

    def scale(self, x: Lanes, factor: Lanes) -> Lanes:
        """A linear integer times a uniform one."""
        a, s, level, stride_level = self.parts(x)
        level = max(level, factor.level)
        stride_level = max(stride_level, factor.level)
        base = self.builders[level].mul(a, factor.v)
        stride = self.builders[stride_level].mul(s, factor.v)
        return ramp(base, stride, level, stride_level)

    def resize(self, x: Lanes, target: LType, *, signed: bool) -> Lanes:
        """Widen or narrow a linear integer. Widening must be known not to wrap over the lanes.

        A stride is a difference, so it is widened by its sign whatever the integer's signedness.
        """
        a, s, level, stride_level = self.parts(x)
        base = self.builders[level].int_cast(a, target, signed=signed)
        stride = self.builders[stride_level].int_cast(s, target, signed=True)
        return ramp(base, stride, level, stride_level)

    def offset(self, pointer: Lanes, offset: Lanes, size: int) -> Lanes:
        """pointer + offset * size, the offset an i64 (linear, or a vector)."""
        if self.linear(pointer) and self.linear(offset):
            p, s, lp, ls = self.parts(pointer)
            o, t, lo, lt = self.parts(offset)
            level, stride_level = max(lp, lo), max(ls, lt)
            b, sb = self.builders[level], self.builders[stride_level]
            base = b.gep(p, b.mul(o, const(i64, size)))
            stride = sb.add(s, sb.mul(t, const(i64, size)))
            return ramp(base, stride, level, stride_level)
        level = max(pointer.level, offset.level)
        b = self.builders[level]
        scaled = b.mul(self.widen(offset), const(vec(i64, self.n), size))
        base = pointer.v if pointer.is_uniform else self.widen(pointer)
        return vector(b.gep(base, scaled), level)

    def lane(self, x: Lanes, number: int) -> V:
        """The value in one lane."""
        if x.is_uniform or self.n == 1:
            return x.v
        b = self.builders[x.level]
        if x.is_ramp:
            distance = self.builders[x.stride_level].mul(x.step, const(elem(x.step.type), number))
            return b.gep(x.v, distance) if x.v.type is ptr else b.add(x.v, distance)
        return b.extract(x.v, number)
