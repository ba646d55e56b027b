"""Branches that are decided, and loops that never run."""

from __future__ import annotations

from collections.abc import Sequence

from tritium.ir import Value
from tritium.ops.control import For, If, While
from tritium.passes.structure import constant_int, is_pure, yielded

from .base import Rewrite, rule


@rule("decided-branch", If)
def _decided_branch(op: If, new: Rewrite) -> Sequence[Value] | None:
    """A branch on a constant: the operations of the region that runs."""
    known = constant_int(op.condition)
    if known is None:
        return None
    taken = op.then if known else op.otherwise
    results = yielded(taken)
    *kept, end = taken.ops
    end.drop_operands()
    new.made += kept
    taken.block.ops = []
    return results


@rule("no-iterations", For)
def _no_iterations(op: For, new: Rewrite) -> Sequence[Value] | None:
    """A loop whose constant bounds leave nothing to count: what it starts with."""
    lower, upper = constant_int(op.lower), constant_int(op.upper)
    if lower is None or upper is None or lower < upper:
        return None
    return list(op.init)


@rule("never-true", While)
def _never_true(op: While, new: Rewrite) -> Sequence[Value] | None:
    """A loop whose condition is the constant false, found without effects: what it starts with."""
    (condition,) = yielded(op.condition)
    if constant_int(condition) != 0 or not all(is_pure(each) for each in op.condition.ops):
        return None
    return list(op.init)
