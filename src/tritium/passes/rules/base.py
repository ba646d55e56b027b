"""Rewrite rules: named, each for some classes of operations.

A rule looks at an operation and returns what its results become, or None where it doesn't apply.
It keeps the types and makes the IR simpler in one direction only, so that rules end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritium.diagnostics import Loc
from tritium.ir import Op, Type, Value
from tritium.passes.structure import constant_ops, create


@dataclass
class Rewrite:
    """What a rule makes: operations that take the place of the one it looks at, with its loc."""

    loc: Loc | None
    made: list[Op] = field(default_factory=list)

    def emit(self, cls: type[Op], **fields: Any) -> Value:
        """A new operation with one result."""
        self.made.append(create(cls, loc=self.loc, **fields))
        return self.made[-1].result

    def integer(self, number: int, type: Type) -> Value:
        """A scalar or tile that equals an integer."""
        self.made += constant_ops(number, type, self.loc)
        return self.made[-1].result


Run = Callable[[Any, Rewrite], "Sequence[Value] | None"]


@dataclass(frozen=True)
class Rule:
    """A named rule for operations of some classes; for all where it names none."""

    name: str
    classes: tuple[type[Op], ...]
    run: Run


RULES: dict[str, Rule] = {}
"""Every rule by its name, in the order in which they are tried."""


def rule(name: str, *classes: type[Op]) -> Callable[[Run], Run]:
    """Decorator: make a function the rule ``name`` for operations of these classes."""

    def register(run: Run) -> Run:
        if name in RULES:
            raise ValueError(f"rule {name} is defined twice")
        RULES[name] = Rule(name, classes, run)
        return run

    return register
