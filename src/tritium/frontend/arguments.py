"""The arguments of a call in a kernel: bound to parameters before the call, with their places."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tritium.diagnostics import Loc, TritiumError, error

Parameter = inspect.Parameter


@dataclass(frozen=True)
class Argument:
    """One argument: its value and the syntax it came from, None where there is none."""

    value: Any
    node: ast.AST | None = None


@dataclass
class Arguments:
    """The arguments of one call; ``place`` gives the location of a node."""

    positional: list[Argument] = field(default_factory=list)
    keywords: dict[str, Argument] = field(default_factory=dict)
    place: Callable[[ast.AST], Loc] | None = None

    @property
    def values(self) -> list[Any]:
        """Values of the positional arguments."""
        return [each.value for each in self.positional]

    @property
    def keyword_values(self) -> dict[str, Any]:
        """Values of the keyword arguments."""
        return {name: each.value for name, each in self.keywords.items()}

    def bind(self, name: str, signature: inspect.Signature) -> dict[str, Any]:
        """Each parameter's ``Argument``; ``*args`` has a list of them, ``**kwargs`` a dict.

        Parameters that keep their default are absent. Raises E0112 for an unknown keyword, E0113
        for a missing argument, E0114 for too many, E0115 for two values, each at its place.
        """
        parameters = signature.parameters
        bound = self._bind_positional(name, signature)
        extra = next((p for p in parameters.values() if p.kind is Parameter.VAR_KEYWORD), None)
        for keyword, argument in self.keywords.items():
            parameter = parameters.get(keyword)
            if parameter is not None and parameter.kind in _BY_KEYWORD:
                if keyword in bound:
                    raise self._at(argument, error("E0115", name=name, keyword=keyword))
                bound[keyword] = argument
            elif extra is not None:
                bound.setdefault(extra.name, {})[keyword] = argument
            else:
                hint = f"parameters: {', '.join(parameters) or 'none'}"
                problem = error("E0112", name=name, keyword=keyword, hint=hint)
                raise self._at(argument, problem)
        for parameter in parameters.values():
            needed = parameter.default is Parameter.empty and parameter.kind not in _COLLECTING
            if needed and parameter.name not in bound:
                shown = signature_text(name, signature)
                raise error("E0113", name=name, missing=parameter.name, signature=shown)
        return bound

    def _bind_positional(self, name: str, signature: inspect.Signature) -> dict[str, Any]:
        bound: dict[str, Any] = {}
        rest = list(self.positional)
        most = 0
        for parameter in signature.parameters.values():
            if parameter.kind is Parameter.VAR_POSITIONAL:
                bound[parameter.name] = rest
                rest = []
            elif parameter.kind in _BY_POSITION:
                most += 1
                if rest:
                    bound[parameter.name] = rest.pop(0)
        if rest:
            shown = signature_text(name, signature)
            given = len(self.positional)
            problem = error("E0114", name=name, most=most, got=given, signature=shown)
            raise self._at(rest[0], problem)
        return bound

    def _at(self, argument: Argument, problem: TritiumError) -> TritiumError:
        if argument.node is not None and self.place is not None:
            problem.at(self.place(argument.node))
        return problem


_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_KEYWORD = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_COLLECTING = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@functools.lru_cache(maxsize=1024)
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a surface function or class."""
    return inspect.signature(function)


def signature_text(name: str, signature: inspect.Signature) -> str:
    """The call as a message shows it, without annotations."""
    bare = [each.replace(annotation=Parameter.empty) for each in signature.parameters.values()]
    shown = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    return f"{name}{shown}"


def nodes_of(bound: dict[str, Any]) -> dict[str, ast.AST]:
    """The syntax of each bound parameter's argument, the first one's for ``*args``."""
    nodes: dict[str, ast.AST] = {}
    for name, argument in bound.items():
        if isinstance(argument, list):
            argument = argument[0] if argument else None
        if isinstance(argument, Argument) and argument.node is not None:
            nodes[name] = argument.node
    return nodes
