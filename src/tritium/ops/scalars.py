"""Functions of scalars: what the regions of reductions, scans and maps may hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritium.diagnostics import TritiumError, error
from tritium.ir.core import PURE, READS, WRITES, Op

from .constants import describe
from .constexpr import unwrap


class ScalarRule(NamedTuple):
    """What one such function may do besides computing.

    ``op`` and ``argument`` are the operation and its parameter in messages, ``function`` what they
    call the function; it may branch and loop where it ``branches``.
    """

    op: str
    argument: str
    function: str
    branches: bool = False

    def check_function(self, function: Any) -> None:
        """Raises E0204 for what can't be called."""
        if not callable(unwrap(function)):
            raise error(
                "E0204",
                op=self.op,
                expected="a kernel function",
                got=describe(function),
                hint="define one and decorate it with @tritium.jit",
                argument=self.argument,
            )

    def check(self, op: Op) -> None:
        """Raises E0206 for an operation that accesses memory, prints, asserts or branches."""
        if op.effects & (READS | WRITES):
            raise self._refused("access memory", "load before it and store after it")
        if op.effects is not PURE:
            raise self.tells(op.verb)
        if op.regions:
            self.decides()

    def decides(self) -> None:
        """Raises E0206 unless it may do what the value of an element decides."""
        if not self.branches:
            raise self._refused("branch or loop", "use tl.where")

    def tells(self, verb: str) -> TritiumError:
        """E0206 for a function that prints, asserts or assumes."""
        return self._refused(verb, f"{verb} outside of it")

    def _refused(self, what: str, hint: str) -> TritiumError:
        text = f"{self.function} must not {what}"
        return error("E0206", op=self.op, text=text, hint=hint, argument=self.argument)
