"""Arithmetic of the builder: integers, floats, comparisons, select, casts.

Integer operations on constants are folded, with the identities that keep address arithmetic short.
Float operations never are: their rounding is LLVM's business.
"""

from __future__ import annotations

from collections.abc import Callable

from .emit_core import BuilderCore
from .emit_types import (
    EmitError,
    LType,
    V,
    const,
    elem,
    i1,
    int_,
    lanes,
    like,
    wrap,
)

_INT_FOLDS: dict[str, Callable[[int, int, int], int | None]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "shl": lambda a, b, bits: a << b if 0 <= b < bits else None,
    "lshr": lambda a, b, bits: (a & ((1 << bits) - 1)) >> b if 0 <= b < bits else None,
    "ashr": lambda a, b, bits: a >> b if 0 <= b < bits else None,
}

_INT_FLAGS = {"nsw", "nuw", "exact", "disjoint"}
_FLOAT_FLAGS = {"reassoc", "nsz", "arcp", "contract", "afn"}

_PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
}
_UNSIGNED = {"ugt": "sgt", "uge": "sge", "ult": "slt", "ule": "sle"}
_FLOAT_PREDICATES = {
    *("oeq", "one", "ogt", "oge", "olt", "ole", "ord", "ueq", "une", "ugt", "uge", "ult", "ule"),
    "uno",
}


def _flags(given: str, allowed: set[str]) -> str:
    for flag in given.split():
        if flag not in allowed:
            raise EmitError(f"flag {flag} is not allowed here")
    return f" {given}" if given else ""


class ArithmeticOps(BuilderCore):
    """Integer and float instructions."""

    # Integers.

    def _binary_int(self, op: str, a: V, b: V, flags: str, name: str) -> V:
        if a.type is not b.type or not a.type.is_int:
            raise EmitError(f"{op} of {a} and {b}")
        left, right = a.integer, b.integer
        if left is not None and right is not None and op in _INT_FOLDS:
            folded = _INT_FOLDS[op](left, right, a.type.bits)
            if folded is not None:
                return const(a.type, folded)
        simple = _simplified(op, a, b, left, right)
        if simple is not None:
            return simple
        marks = _flags(flags, _INT_FLAGS)
        return self.pure(a.type, f"{op}{marks} {a}, {b.text}", name)

    def add(self, a: V, b: V, flags: str = "", name: str = "") -> V:
        """a + b, wrapping."""
        return self._binary_int("add", a, b, flags, name)

    def sub(self, a: V, b: V, flags: str = "", name: str = "") -> V:
        """a - b, wrapping."""
        return self._binary_int("sub", a, b, flags, name)

    def mul(self, a: V, b: V, flags: str = "", name: str = "") -> V:
        """a * b, wrapping."""
        return self._binary_int("mul", a, b, flags, name)

    def sdiv(self, a: V, b: V, flags: str = "") -> V:
        """Signed division; a zero divisor or overflow in any lane kills the process: guard it."""
        return self._binary_int("sdiv", a, b, flags, "")

    def udiv(self, a: V, b: V, flags: str = "") -> V:
        """Unsigned division; a zero divisor in any lane kills the process: guard it."""
        return self._binary_int("udiv", a, b, flags, "")

    def srem(self, a: V, b: V) -> V:
        """Signed remainder; guarded as `sdiv`."""
        return self._binary_int("srem", a, b, "", "")

    def urem(self, a: V, b: V) -> V:
        """Unsigned remainder; guarded as `udiv`."""
        return self._binary_int("urem", a, b, "", "")

    def and_(self, a: V, b: V) -> V:
        """Bitwise and."""
        return self._binary_int("and", a, b, "", "")

    def or_(self, a: V, b: V, flags: str = "") -> V:
        """Bitwise or."""
        return self._binary_int("or", a, b, flags, "")

    def xor(self, a: V, b: V) -> V:
        """Bitwise exclusive or."""
        return self._binary_int("xor", a, b, "", "")

    def not_(self, a: V) -> V:
        """Bitwise complement."""
        return self.xor(a, const(a.type, -1))

    def shl(self, a: V, b: V, flags: str = "") -> V:
        """Shift left; poison for counts of the width and more."""
        return self._binary_int("shl", a, b, flags, "")

    def lshr(self, a: V, b: V, flags: str = "") -> V:
        """Shift right filling with zeros; poison for counts of the width and more."""
        return self._binary_int("lshr", a, b, flags, "")

    def ashr(self, a: V, b: V, flags: str = "") -> V:
        """Shift right filling with the sign; poison for counts of the width and more."""
        return self._binary_int("ashr", a, b, flags, "")

    def icmp(self, predicate: str, a: V, b: V, name: str = "") -> V:
        """Compare integers or pointers: eq, ne, and s/u with gt, ge, lt, le."""
        if a.type is not b.type or not (a.type.is_int or a.type.is_pointer):
            raise EmitError(f"icmp {predicate} of {a} and {b}")
        if predicate not in _PREDICATES and predicate not in _UNSIGNED:
            raise EmitError(f"icmp {predicate}")
        result = like(a.type, i1)
        left, right = a.integer, b.integer
        if left is not None and right is not None:
            if predicate in _UNSIGNED:
                mask = (1 << a.type.bits) - 1
                return const(result, _PREDICATES[_UNSIGNED[predicate]](left & mask, right & mask))
            return const(result, _PREDICATES[predicate](left, right))
        return self.pure(result, f"icmp {predicate} {a}, {b.text}", name)

    def smin(self, a: V, b: V) -> V:
        """The smaller, as signed integers."""
        return self.intrinsic("smin", (a, b), pure=True)

    def smax(self, a: V, b: V) -> V:
        """The larger, as signed integers."""
        return self.intrinsic("smax", (a, b), pure=True)

    def umin(self, a: V, b: V) -> V:
        """The smaller, as unsigned integers."""
        return self.intrinsic("umin", (a, b), pure=True)

    def umax(self, a: V, b: V) -> V:
        """The larger, as unsigned integers."""
        return self.intrinsic("umax", (a, b), pure=True)

    # Floats.

    def _binary_float(self, op: str, a: V, b: V, flags: str, name: str) -> V:
        if a.type is not b.type or not a.type.is_float:
            raise EmitError(f"{op} of {a} and {b}")
        return self.pure(a.type, f"{op}{_flags(flags, _FLOAT_FLAGS)} {a}, {b.text}", name)

    def fadd(self, a: V, b: V, flags: str = "", name: str = "") -> V:
        """a + b, rounded to nearest even."""
        return self._binary_float("fadd", a, b, flags, name)

    def fsub(self, a: V, b: V, flags: str = "", name: str = "") -> V:
        """a - b."""
        return self._binary_float("fsub", a, b, flags, name)

    def fmul(self, a: V, b: V, flags: str = "", name: str = "") -> V:
        """a * b."""
        return self._binary_float("fmul", a, b, flags, name)

    def fdiv(self, a: V, b: V, flags: str = "", name: str = "") -> V:
        """a / b."""
        return self._binary_float("fdiv", a, b, flags, name)

    def frem(self, a: V, b: V) -> V:
        """C's fmod: a call of libm per lane."""
        return self._binary_float("frem", a, b, "", "")

    def fneg(self, a: V) -> V:
        """-a: the sign bit flipped, also of NaN and zero."""
        return self.pure(a.type, f"fneg {a}")

    def fma(self, a: V, b: V, c: V, name: str = "") -> V:
        """a * b + c rounded once, always: a call of libm per lane where the target lacks FMA."""
        if not (a.type is b.type is c.type and a.type.is_float):
            raise EmitError(f"fma of {a}, {b} and {c}")
        return self.intrinsic("fma", (a, b, c), name_hint=name, pure=True)

    def fcmp(self, predicate: str, a: V, b: V, name: str = "") -> V:
        """Compare floats: o(rdered) and u(nordered) with eq, ne, gt, ge, lt, le; ord, uno."""
        if a.type is not b.type or not a.type.is_float:
            raise EmitError(f"fcmp {predicate} of {a} and {b}")
        if predicate not in _FLOAT_PREDICATES:
            raise EmitError(f"fcmp {predicate}")
        return self.pure(like(a.type, i1), f"fcmp {predicate} {a}, {b.text}", name)

    def select(self, condition: V, a: V, b: V, name: str = "") -> V:
        """a where the condition holds, else b; a scalar condition picks whole vectors."""
        if a.type is not b.type or elem(condition.type) is not i1:
            raise EmitError(f"select {condition}, {a}, {b}")
        if condition.type is not i1 and lanes(condition.type) != lanes(a.type):
            raise EmitError(f"select {condition}, {a}, {b}")
        if condition.integer is not None:
            return a if condition.integer else b
        if a.text == b.text:
            return a
        return self.pure(a.type, f"select {condition}, {a}, {b}", name)

    # Casts. `target` is an element or full type; the lanes are those of the operand.

    def _cast(self, op: str, a: V, target: LType, flags: str = "") -> V:
        result = target if target.is_vector else like(a.type, target)
        if lanes(result) != lanes(a.type):
            raise EmitError(f"{op} of {a} to {target.text}")
        if result is a.type:
            return a
        return self.pure(
            result, f"{op}{_flags(flags, {'nneg', 'nsw', 'nuw'})} {a} to {result.text}"
        )

    def _resize(self, op: str, a: V, target: LType, flags: str) -> V:
        number = a.integer
        if number is not None:
            result = target if target.is_vector else like(a.type, target)
            if op == "zext" or (op == "sext" and a.type.bits == 1):
                sign = -1 if op == "sext" else 1
                number = sign * (number & ((1 << a.type.bits) - 1))
            return const(result, wrap(number, result.bits))
        return self._cast(op, a, target, flags)

    def sext(self, a: V, target: LType) -> V:
        """Widen an integer by its sign (i1: 0 or -1)."""
        return self._resize("sext", a, target, "")

    def zext(self, a: V, target: LType, flags: str = "") -> V:
        """Widen an integer by zeros."""
        return self._resize("zext", a, target, flags)

    def trunc(self, a: V, target: LType, flags: str = "") -> V:
        """Keep an integer's low bits."""
        return self._resize("trunc", a, target, flags)

    def int_cast(self, a: V, target: LType, *, signed: bool) -> V:
        """Widen (by sign or zeros) or truncate, as the widths say."""
        if elem(target).bits < a.type.bits:
            return self.trunc(a, target)
        return self.sext(a, target) if signed else self.zext(a, target)

    def bitcast(self, a: V, target: LType) -> V:
        """The same bits as another type; a scalar target is taken as written, so that vectors of
        other lane widths can be asked for.
        """
        if target is a.type:
            return a
        if a.type.bits * lanes(a.type) != target.bits * lanes(target):
            raise EmitError(f"bitcast of {a} to {target.text}")
        return self.pure(target, f"bitcast {a} to {target.text}")

    def as_int(self, a: V) -> V:
        """A float's bits as an integer of its width, lane by lane."""
        return self.bitcast(a, like(a.type, int_(a.type.bits)))

    def as_float(self, a: V, element: LType) -> V:
        """An integer's bits as a float of its width, lane by lane."""
        return self.bitcast(a, like(a.type, element))

    def fpext(self, a: V, target: LType) -> V:
        """Widen a float, exactly."""
        return self._cast("fpext", a, target)

    def fptrunc(self, a: V, target: LType) -> V:
        """Round a float once to a narrower type.

        Not to bfloat, and not from double to half: x86 has no such instruction and calls helpers
        that nothing provides (`common.vector_casts` does it by integers).
        """
        pair = (elem(a.type).text, elem(target).text)
        if pair not in (("double", "float"), ("float", "half")):
            raise EmitError(f"fptrunc of {a} to {target.text}")
        return self._cast("fptrunc", a, target)

    def sitofp(self, a: V, target: LType) -> V:
        """A signed integer as a float, rounded to nearest even."""
        return self._cast("sitofp", a, target)

    def uitofp(self, a: V, target: LType) -> V:
        """An unsigned integer as a float, rounded to nearest even."""
        return self._cast("uitofp", a, target)

    def fptosi(self, a: V, target: LType) -> V:
        """A float truncated to a signed integer; poison for NaN and what doesn't fit: clamp
        first."""
        return self._cast("fptosi", a, target)

    def fptoui(self, a: V, target: LType) -> V:
        """A float truncated to an unsigned integer; poison for NaN and what doesn't fit: clamp
        first."""
        return self._cast("fptoui", a, target)

    def ptrtoint(self, a: V, target: LType) -> V:
        """A pointer's address."""
        return self._cast("ptrtoint", a, target)

    def inttoptr(self, a: V, target: LType) -> V:
        """The pointer of an address."""
        return self._cast("inttoptr", a, target)

    def addrspacecast(self, a: V, target: LType) -> V:
        """The pointer in another address space."""
        return self._cast("addrspacecast", a, target)


def _simplified(op: str, a: V, b: V, left: int | None, right: int | None) -> V | None:
    """What `a op b` is if one side is a constant that decides it."""
    if left == 0 and op in ("add", "or", "xor"):
        return b
    if right == 0 and op in ("add", "sub", "or", "xor", "shl", "lshr", "ashr"):
        return a
    if op in ("mul", "and") and 0 in (left, right):
        return const(a.type, 0)
    every = wrap(-1, a.type.bits)
    unit = {"mul": 1, "and": every}.get(op)
    if unit is not None and left == unit:
        return b
    if unit is not None and right == unit:
        return a
    if op == "or" and every in (left, right):
        return const(a.type, every)
    if right == 1 and op in ("sdiv", "udiv") and a.type.bits > 1:
        return a
    return None
