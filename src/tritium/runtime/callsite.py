"""Where a launch stands in the user's program, and which of its arguments a message is about."""

from __future__ import annotations

import ast
import linecache
import sys

from tritium import knobs
from tritium.diagnostics import Loc, TritiumError
from tritium.diagnostics.frames import character, foreign, outside, place


class placing:
    """A ``with`` block that gives the errors of a launch their place, unless they have one.

    That is the argument at fault, else the whole call. ``names`` are the kernel's parameters in
    order. Tracebacks lose the compiler's frames and keep the user's.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if not isinstance(problem, TritiumError):
            return
        if problem.loc is None:
            problem.loc = launch_loc(problem.argument, self.names)
        if not knobs.compilation.front_end_debugging:
            if problem.__cause__ is not None:
                problem.__cause__.__traceback__ = foreign(problem.__cause__.__traceback__)
            # Python 3.10 forgets what is assigned to the traceback of an exception on its way.
            raise problem.with_traceback(foreign(problem.__traceback__))


def launch_loc(argument: str | None = None, names: list[str] | None = None) -> Loc | None:
    """The call outside of Tritium that led here, or the expression in it for one ``argument``."""
    frame = outside(sys._getframe(1))
    if frame is None:
        return None
    code = frame.f_code
    name = "" if code.co_name == "<module>" else code.co_name
    call = place(code, frame.f_lasti, frame.f_lineno, name)
    if argument is None or call.end_line == 0:
        return call
    return _argument_range(call, argument, names or []) or call


def _argument_range(call: Loc, argument: str, names: list[str]) -> Loc | None:
    """The place of an argument's expression in the text of the call; None where it has none."""
    lines = [linecache.getline(call.file, at) for at in range(call.line, call.end_line + 1)]
    if not all(lines):
        return None
    # The range starts in the middle of a line: blanks keep the columns, a bracket the newlines.
    lines[-1] = lines[-1][: call.end_col]
    lines[0] = lines[0][call.col :]
    try:
        node = ast.parse(f"({''.join(lines)}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    found = _expression(node, argument, names) if isinstance(node, ast.Call) else None
    if found is None or found.end_lineno is None or found.end_col_offset is None:
        return None
    begin = _position(call, lines, found.lineno, found.col_offset)
    end = _position(call, lines, found.end_lineno, found.end_col_offset)
    return Loc(call.file, *begin, *end, call.function)


def _expression(call: ast.Call, argument: str, names: list[str]) -> ast.expr | ast.keyword | None:
    for keyword in call.keywords:
        if keyword.arg == argument:
            return keyword
    if argument == "grid":
        return call.func.slice if isinstance(call.func, ast.Subscript) else None
    if argument not in names:
        return None
    index = names.index(argument)
    before = call.args[: index + 1]
    if len(before) <= index or any(isinstance(each, ast.Starred) for each in before):
        return None
    return before[index]


def _position(call: Loc, lines: list[str], line: int, offset: int) -> tuple[int, int]:
    """Line and column in the file of a place in the bracketed text, whose offsets are bytes."""
    text = lines[line - 1]
    if line == 1:
        # The bracket takes one byte of the first line.
        return call.line, call.col + character(text, offset - 1)
    return call.line + line - 1, character(text, offset)
