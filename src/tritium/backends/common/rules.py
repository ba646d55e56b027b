"""The table of elementwise lowerings: one rule an operation, the same for a scalar and for lanes.

A rule takes the lowering context, the operation and its operands as LLVM values (all scalars, or
all vectors of ``lowering.lanes`` lanes) and returns the result's LLVM value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tritium.backends.emit import Builder, LType, V, double, float_, half, int_, ptr, vec
from tritium.diagnostics import InternalError
from tritium.ir.core import Op
from tritium.ir.dtypes import DType, Type, bfloat16, float16, float32, float64

Rule = Callable[..., V]
"""Called with the lowering, the operation and its operands."""

COMMON: dict[type[Op], Rule] = {}
"""Rules that hold on every backend."""

R = TypeVar("R", bound=Rule)


@dataclass
class Lowering:
    """What a rule needs: where to write, for which machine, and how many lanes (1: a scalar).

    ``native`` converts between scalar types by the machine's own instructions: called with the
    lowering, the value in registers, both types and the rounding, it returns None where there are
    none.
    """

    b: Builder
    target: Any
    lanes: int
    native: Callable[..., V | None] | None = None


def register_type(type_: Type, lanes: int = 1) -> LType:
    """The LLVM type that holds a value of a scalar type in registers.

    int1 is ``i1``, bf16 ``i16`` and the 8-bit floats ``i8`` (their bits), a pointer ``ptr``.
    """
    if not isinstance(type_, DType):
        return vec(ptr, lanes)
    if type_ is float32:
        return vec(float_, lanes)
    if type_ is float64:
        return vec(double, lanes)
    if type_ is float16:
        return vec(half, lanes)
    if type_ is bfloat16 or type_.is_floating():
        return vec(int_(type_.bits), lanes)
    return vec(int_(type_.bits), lanes)


def lower(*classes: type[Op], table: dict[type[Op], Rule] = COMMON) -> Callable[[R], R]:
    """Decorator: the rule of these operations in a table; a second rule for one is refused."""

    def register(rule: R) -> R:
        for cls in classes:
            if cls in table:
                raise ValueError(f"{cls.mnemonic} has two lowering rules")
            table[cls] = rule
        return rule

    return register


def rule_of(op: Op, *tables: dict[type[Op], Rule]) -> Rule:
    """The first rule for an operation in the given tables, then in the common one."""
    for table in (*tables, COMMON):
        found = table.get(type(op))
        if found is not None:
            return found
    raise InternalError(f"{op.mnemonic} has no lowering")
