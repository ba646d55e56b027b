"""Where interpreted code is in the user's source: found in Python's frames when it is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any

from tritium.diagnostics import Loc
from tritium.diagnostics.frames import PACKAGE, place


class _Mark:
    def __repr__(self) -> str:
        return "<kernel code>"


MARK = _Mark()
"""The last constant of every code object that ``rewrite`` makes."""

EXECUTION = ".while"
"""How the variables of such code begin that tell the executions of its loops apart."""


def is_kernel_code(code: CodeType) -> bool:
    """Whether ``rewrite`` made this code from a function of the user (or of the library)."""
    return bool(code.co_consts) and code.co_consts[-1] is MARK


def call_program(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Call a kernel's rewritten copy: the frame where the call chain of a location ends."""
    function(*args, **kwargs)


def current_loc() -> Loc | None:
    """The place in kernel code that is being executed, with its call chain; None outside of it."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not call_program.__code__:
        frames.append(frame)
        frame = frame.f_back
    return _chain((each.f_code, each.f_lasti, each.f_lineno) for each in reversed(frames))


def loc_of_traceback(traceback: TracebackType | None) -> Loc | None:
    """The innermost place in kernel code that an exception passed, with its call chain."""
    entries: list[tuple[CodeType, int, int]] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code is call_program.__code__:
            entries.clear()
        entries.append((code, traceback.tb_lasti, traceback.tb_lineno))
        traceback = traceback.tb_next
    return _chain(entries)


def _chain(entries: Iterable[tuple[CodeType, int, int]]) -> Loc | None:
    """The location of the last of ``entries`` (code, instruction, line), outermost first.

    A place within the library's own functions is that of their call.
    """
    loc: Loc | None = None
    for code, instruction, line in entries:
        if is_kernel_code(code) and not code.co_filename.startswith(PACKAGE):
            loc = place(code, instruction, line, code.co_name, loc)
    return loc
