"""What all parts of the walk over a kernel's syntax tree share: frames, places, flow, errors."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from tritium import knobs
from tritium.diagnostics import CATALOGUE, InternalError, Loc, TritiumError, error, frames
from tritium.ops.callable import DeviceFunction
from tritium.ops.create import folded
from tritium.ops.python import assigned, describe, is_known, wrap
from tritium.ops.source import FunctionSource
from tritium.ops.tile import Tile
from tritium.ops.tuples import TileTuple

from .dependencies import Reads
from .names import Binding, Scope
from .refused import REFUSED

if TYPE_CHECKING:
    from .tracer import CompileTracer


@dataclass
class Frame:
    """One function that is being compiled into the kernel: its text, variables and place."""

    function: DeviceFunction
    source: FunctionSource
    reads: Reads
    scope: Scope
    call_site: Loc | None
    node: ast.AST
    is_kernel: bool = False
    loops: int = 0
    """Run-time loops around the current place, within this function."""
    hidden: bool = False
    """Whether its code is the library's: places in it are then those of the call."""
    locs: dict[int, Loc] = field(default_factory=dict)

    def loc(self, node: ast.AST | None = None) -> Loc:
        """The place of a node, by default of the current one."""
        if self.hidden and self.call_site is not None:
            return self.call_site
        node = self.node if node is None else node
        known = self.locs.get(id(node))
        if known is None:
            known = self.locs[id(node)] = self.source.loc(node, self.call_site)
        return known


@dataclass(frozen=True)
class Returned:
    """The function has returned on every path that led here."""

    value: Any = None
    implicit: bool = False
    """Whether the end of the function was reached without a ``return``."""
    loc: Loc | None = None


@dataclass(frozen=True)
class Maybe:
    """Where ``flag``, an int1 scalar, is true the function has returned ``value``."""

    flag: Any
    value: Returned


Flow: TypeAlias = "Returned | Maybe | None"
"""How a sequence of statements ends; None if it goes on to what follows."""

Work: TypeAlias = "deque[ast.stmt | Callable[[Work], Flow]]"
"""Statements and steps still to be carried out, to the end of the region or function."""


class Base:
    """The walk over one function: state, dispatch and the ways to report a problem."""

    def __init__(self, tracer: CompileTracer, frame: Frame) -> None:
        self.tracer = tracer
        self.frame = frame

    # ---- dispatch --------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Any:
        """The value of an expression."""
        with self.at(node):
            return self._handler(node)(node)

    def run(self, work: Work) -> Flow:
        """Carry out statements until they end, or until every path has left the region.

        A step may put others in front of the rest, or carry out the rest itself.
        """
        while work:
            step = work.popleft()
            flow: Flow
            if isinstance(step, ast.stmt):
                with self.at(step):
                    flow = self._handler(step)(step, work)
            else:
                flow = step(work)
            if flow is not None:
                return flow
        return None

    def _handler(self, node: ast.AST) -> Callable[..., Any]:
        handler = getattr(self, f"visit_{type(node).__name__}", None)
        if handler is None:
            name = type(node).__name__
            self.refuse(*REFUSED.get(name, (name, "")))
        return handler  # type: ignore[no-any-return]

    # ---- places and problems ---------------------------------------------------------------------

    @contextmanager
    def at(self, node: ast.AST) -> Iterator[None]:
        """Operations and problems inside belong to ``node``, unless to a part of it."""
        frame = self.frame
        before = frame.node
        frame.node = node
        try:
            yield
        except TritiumError as problem:
            problem.at(frame.loc(node))
            raise
        except InternalError:
            raise
        except Exception as problem:
            if knobs.compilation.front_end_debugging:
                raise
            if isinstance(problem, AssertionError) and frames.is_own(problem.__traceback__):
                said = f"an assertion failed at {frame.loc(node)}: {problem}"
                raise InternalError(said) from problem
            name, text = type(problem).__name__, str(problem)
            raise error("E0117", error=name, text=text, hint="", loc=frame.loc(node)) from problem
        finally:
            frame.node = before

    @contextmanager
    def pointing(self, nodes: Mapping[str, ast.AST]) -> Iterator[None]:
        """A problem inside that names one of these arguments belongs to its node."""
        here = self.frame.loc()
        try:
            yield
        except TritiumError as problem:
            node = nodes.get(problem.argument or "")
            if node is not None and problem.loc in (None, here):
                problem.loc = self.frame.loc(node)
                self._name_variable(problem, node)
            raise

    def _name_variable(self, problem: TritiumError, node: ast.AST) -> None:
        """Let the help about a value that must be known name the variable that isn't."""
        if problem.code != "E0205":
            return
        for part in ast.walk(node):
            binding = self.frame.scope.get(part.id) if isinstance(part, ast.Name) else None
            if binding is not None and not is_known(binding.value):
                problem.help = CATALOGUE[problem.code].help.format(name=part.id)  # type: ignore[attr-defined]
                return

    def refuse(self, construct: str, hint: str = "") -> NoReturn:
        """Raise E0110 for a piece of Python that kernels don't have."""
        raise error("E0110", construct=construct, hint=hint)

    # ---- variables -------------------------------------------------------------------------------

    def bind(self, name: str, value: Any, *, declared: bool = False) -> None:
        """Let a variable hold ``value`` from here on; a new tile is named after it."""
        if isinstance(value, Tile) and not value.value.name:
            value.value.name = name
        self.frame.scope[name] = Binding(value, self.frame.loc(), declared)

    def store(self, target: ast.expr, value: Any) -> None:
        """Assign to a target. Raises E0110 for targets that kernels don't have."""
        with self.at(target):
            if isinstance(target, ast.Name):
                before = self.frame.scope.get(target.id)
                known = before is not None and before.declared and not before.is_set
                if known and not is_known(wrap(folded(value))):
                    op, name = f"{target.id}: tl.constexpr", "the value"
                    raise error("E0205", op=op, name=name, got=describe(value))
                kept = wrap(folded(value)) if known else assigned(value, target.id)
                self.bind(target.id, kept, declared=known)
            elif isinstance(target, (ast.Tuple, ast.List)):
                self._unpack(target, value)
            elif isinstance(target, ast.Starred):
                self.refuse("a starred assignment target", "name each element")
            elif isinstance(target, ast.Attribute):
                self.refuse("assignment to an attribute", "use a variable of its own")
            else:
                self.refuse(
                    "assignment to an element", "tiles don't change: compute a new one, by tl.where"
                )

    def _unpack(self, target: ast.Tuple | ast.List, value: Any) -> None:
        if not isinstance(value, TileTuple):
            raise error("E0204", op="unpacking", expected="a tuple", got=describe(value), hint="")
        for element in target.elts:
            if isinstance(element, ast.Starred):
                self.store(element, None)
        if len(value) != len(target.elts):
            raise error(
                "E0206",
                op="unpacking",
                text=f"{len(value)} values for {len(target.elts)} names",
                hint="",
            )
        for element, part in zip(target.elts, value):
            self.store(element, part)
