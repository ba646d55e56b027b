"""What the compiler says of a kernel that runs in the interpreter.

Both run one language, so they refuse the same program with the same message at the same place. The
interpreter finds a mistake only when it gets there, and Python often finds it first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.diagnostics import (
    InternalError,
    Loc,
    TritiumError,
    UnsupportedLanguageConstruct,
    error,
)
from tritium.frontend import TraceOptions, trace
from tritium.ir.core import Function
from tritium.passes.origins import written_parameters

from .binder import Bound

if TYPE_CHECKING:
    from .jit import JITFunction

NO_BETTER = frozenset({"E0102", "E0111", "E0117"})
"""Messages that don't stand in for the interpreter's own: about globals that may change and calls
of plain Python, which only the compiler refuses, and those that hand on an exception of Python."""


def refuse_read_only(kernel: JITFunction, bound: Bound) -> None:
    """Raise E0514 where the kernel writes through a read-only array, before it writes anything.

    A kernel that the compiler does not take is run: its own stores are checked one by one.
    """
    if all(array.writable for _, array in bound.arrays()):
        return
    compiled = _compiled(kernel, bound)
    if not isinstance(compiled, Function):
        return
    written = written_parameters(compiled)
    for place, (name, _, value) in enumerate(bound.leaves()):
        if place in written and not getattr(value, "writable", True):
            argument = name.partition(".")[0]
            raise error("E0514", kernel=kernel.__name__, name=name, argument=argument)


def compilers_words(kernel: JITFunction, bound: Bound, problem: TritiumError) -> TritiumError:
    """The compiler's error where it refuses the place that ``problem`` is about; else that one.

    What the interpreter allows beyond the language is no mistake there, so a message that forbids
    it doesn't stand in for another.
    """
    said = _compiled(kernel, bound) if problem.loc is not None else None
    if not isinstance(said, TritiumError) or isinstance(said, UnsupportedLanguageConstruct):
        return problem
    if said.code in NO_BETTER or not _covers(problem.loc, said.loc):
        return problem
    return said


def _compiled(kernel: JITFunction, bound: Bound) -> Function | TritiumError | None:
    """The kernel in tile IR, or why there is none."""
    # The interpreter has printed it all, or will.
    options = TraceOptions(debug=bound.options.debug, quiet=True)
    try:
        return trace(kernel, bound.specs, options).function
    except TritiumError as refused:
        return refused
    except InternalError:
        # A native launch will report it.
        return None


def _covers(place: Loc | None, part: Loc | None) -> bool:
    if place is None or part is None or place.file != part.file:
        return False
    return place.line <= part.line <= max(place.line, place.end_line)
