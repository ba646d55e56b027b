"""Branches that are decided, and loops that never run."""

from __future__ import annotations

from collections.abc import Sequence

from tritium.ir import Value
from tritium.ops.control import For, If, While, iterations
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
    lower, upper, step = map(constant_int, (op.lower, op.upper, op.step))
    if lower is None or upper is None:
        return None
    never = lower == upper or (step is not None and not iterations(lower, upper, step))
    return list(op.init) if never else None


@rule("never-true", While)
def _never_true(op: While, new: Rewrite) -> Sequence[Value] | None:
    """A loop whose condition is the constant false, found without effects: what it starts with."""
    (condition,) = yielded(op.condition)
    if constant_int(condition) != 0 or not all(is_pure(each) for each in op.condition.ops):
        return None
    return list(op.init)
