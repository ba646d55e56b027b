"""``heuristics``: parameters whose values follow from the other arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritium.runtime.jit import KernelInterface, parameter_names

Rule = Callable[[dict[str, Any]], Any]


class Heuristics(KernelInterface[Any]):
    """A kernel whose parameters named in ``values`` are computed at each launch."""

    def __init__(
        self, fn: KernelInterface[Any], arg_names: Sequence[str], values: Mapping[str, Rule]
    ) -> None:
        self.fn = fn
        self.arg_names = list(arg_names)
        self.values = values

    def run(self, /, *args: Any, **keywords: Any) -> Any:
        """Launch with the computed arguments, which replace those of the caller.

        A rule gets the positional arguments by name, the keywords (``grid``, ``warmup`` and options
        among them) and the results of the rules before it.
        """
        named = dict(zip(self.arg_names, args))
        for name, rule in self.values.items():
            keywords[name] = rule({**named, **keywords})
        return self.fn.run(*args, **keywords)

    @property
    def interpret(self) -> KernelInterface[Any]:
        """``kernel.interpret[grid](...)`` runs in the interpreter."""
        inner: Any = self.fn
        return Heuristics(inner.interpret, self.arg_names, self.values)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call from another kernel: the rules are about launches and have no part in it."""
        inner: Any = self.fn
        return inner(*args, **keywords)


def heuristics(values: Mapping[str, Rule]) -> Callable[[Any], Heuristics]:
    """Decorator: compute parameters from the others at each launch.

    ``values`` maps names to functions of one dictionary, run in its order::

        @tritium.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
        @tritium.jit
        def kernel(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr): ...
    """
    return lambda fn: Heuristics(fn, parameter_names(fn, "heuristics"), values)
