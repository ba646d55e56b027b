"""Brings operations into their simplest form, by the rules of ``passes.rules``.

Scalar integer operations of constants are evaluated, identities dropped, shape operations merged,
integer and pointer operations of splats done on scalars, decided branches replaced by the region
that runs, loops that never run by what they start with. What became unused stays, for ``dce``.

Before::

    func @f(%p: *i32, %n: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %four = create.constant {value = 4, dtype = i32} : i32
      %eight = arith.add %four, %four : i32
      %a = create.splat %eight {shape = (8,)} : tile<8xi32>
      %b = create.splat %n {shape = (8,)} : tile<8xi32>
      %sum = arith.add %a, %b : tile<8xi32>
      %same = arith.add %n, %zero : i32
      %q = memory.offset %p, %same : *i32
      %ps = create.splat %q {shape = (8,)} : tile<8x*i32>
      memory.store %ps, %sum, _
      control.return
    })

After::

    func @f(%p: *i32, %n: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %four = create.constant {value = 4, dtype = i32} : i32
      %eight = create.constant {value = 8, dtype = i32} : i32
      %a = create.splat %eight {shape = (8,)} : tile<8xi32>
      %b = create.splat %n {shape = (8,)} : tile<8xi32>
      %0 = arith.add %eight, %n : i32
      %sum = create.splat %0 {shape = (8,)} : tile<8xi32>
      %q = memory.offset %p, %n : *i32
      %ps = create.splat %q {shape = (8,)} : tile<8x*i32>
      memory.store %ps, %sum, _
      control.return
    })
"""

from __future__ import annotations

from dataclasses import dataclass

from tritium.diagnostics import InternalError
from tritium.ir import Block, Function, Op

from .pipeline import register_pass
from .rules import RULES, Rewrite, Rule
from .structure import detach, set_ops


@dataclass(frozen=True)
class CanonicalizeOptions:
    """``disable`` names rules that are left out."""

    disable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.disable:
            if name not in RULES:
                raise ValueError(f"no rule is called {name}")


class _Rules:
    """The rules for each class of operations, found once."""

    def __init__(self, disable: tuple[str, ...]) -> None:
        self._rules = [rule for name, rule in RULES.items() if name not in disable]
        self._by_class: dict[type[Op], list[Rule]] = {}

    def of(self, op: Op) -> list[Rule]:
        cls = type(op)
        found = self._by_class.get(cls)
        if found is None:
            found = self._by_class[cls] = [
                rule for rule in self._rules if not rule.classes or issubclass(cls, rule.classes)
            ]
        return found


@register_pass("canonicalize", CanonicalizeOptions)
def canonicalize(function: Function, options: CanonicalizeOptions) -> bool:
    """Apply the rules until none fits; returns whether any did."""
    return _simplify(function.body.block, _Rules(options.disable))


def _simplify(block: Block, rules: _Rules) -> bool:
    changed = False
    kept: list[Op] = []
    pending = block.ops[::-1]
    while pending:
        op = pending.pop()
        for region in op.regions:
            changed |= _simplify(region.block, rules)
        made = _apply(op, rules)
        if made is None:
            kept.append(op)
        else:
            changed = True
            pending += made[::-1]
    set_ops(block, kept)
    return changed


def _apply(op: Op, rules: _Rules) -> list[Op] | None:
    """The operations that take an operation's place by the first rule that fits; None: it stays."""
    for rule in rules.of(op):
        new = Rewrite(op.loc)
        values = rule.run(op, new)
        if values is None:
            continue
        for old, value in zip(op.results, values, strict=True):
            if old.type is not value.type:
                raise InternalError(f"rule {rule.name} turns {old.type} into {value.type}")
            value.name = value.name or old.name
            old.replace_all_uses_with(value)
        detach(op)
        return new.made
    return None
