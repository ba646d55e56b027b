"""Operations whose operands are all known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritium.ir import PURE, DType, Op, Value
from tritium.ops.cast import Convert
from tritium.ops.codecs import decode
from tritium.ops.create import Constant

from .base import Rewrite, rule


def _known(op: Op) -> list[Any] | None:
    """The operands as arrays where all are constants and there is at least one."""
    makers = [value.defining_op for value in op.operands]
    if not makers or op.effects is not PURE or op.terminator or op.regions:
        return None
    arrays = [maker.evaluate(None) for maker in makers if isinstance(maker, Constant)]
    return arrays if len(arrays) == len(makers) else None


@rule("fold")
def _fold(op: Op, new: Rewrite) -> Sequence[Value] | None:
    """A scalar integer of constants, by the operation's own rule; a conversion also to a float."""
    if len(op.results) != 1:
        return None
    type = op.results[0].type
    if not isinstance(type, DType) or not (type.is_int() or isinstance(op, Convert)):
        return None
    arrays = _known(op)
    if arrays is None:
        return None
    groups = iter(arrays)
    given = [
        tuple(next(groups) for _ in group)
        if isinstance(group, tuple)
        else None
        if group is None
        else next(groups)
        for group in op.operand_groups()
    ]
    result = np.asarray(op.evaluate(None, *given)).reshape(())
    if type.is_int():
        return [new.integer(int(result), type)]
    return [new.emit(Constant, value=float(decode(result, type)), dtype=type)]


@rule("constant-form", Constant)
def _constant_form(op: Constant, new: Rewrite) -> Sequence[Value] | None:
    """A float as a Python float, int1 as a bool, an integer in its type's range: one form each."""
    form: bool | int | float
    if op.dtype.is_floating():
        form = float(op.value)
    else:
        number = int(op.evaluate(None))
        form = bool(number) if op.dtype.is_bool() else number
    if type(form) is type(op.value) and (form == op.value or op.dtype.is_floating()):
        return None
    return [new.emit(Constant, value=form, dtype=op.dtype)]
