"""Python's frames: which are Tritium's own, and where in the source they stand."""

from __future__ import annotations

import itertools
import linecache
import os
import sys
from types import CodeType, FrameType, TracebackType

from .loc import Loc

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""What the paths of Tritium's own files begin with."""


def outside(frame: FrameType | None) -> FrameType | None:
    """``frame``, or its first caller that is no code of Tritium's; None where there is none."""
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def users_place(loc: Loc) -> Loc:
    """``loc``, or the first call on its chain that is no code of Tritium's."""
    return next((each for each in loc.chain() if not each.file.startswith(PACKAGE)), loc)


def foreign(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of Tritium's code; None where it has no other."""
    kept = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
            kept.append(trace)
        trace = trace.tb_next
    rest: TracebackType | None = None
    for each in reversed(kept):
        rest = TracebackType(rest, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return rest


def is_own(trace: TracebackType | None) -> bool:
    """Whether an exception with that traceback was raised by Tritium's code."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(PACKAGE)


def character(text: str, offset: int) -> int:
    """A column of a line in characters from one in bytes of UTF-8, as Python counts them."""
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))


def place(
    code: CodeType, instruction: int, line: int, function: str, call_site: Loc | None = None
) -> Loc:
    """The range that an instruction of ``code`` was compiled from.

    ``instruction`` is a frame's ``f_lasti``, ``line`` its ``f_lineno``: all that Python 3.10 knows,
    where the range is the line.
    """
    file = code.co_filename
    if sys.version_info >= (3, 11) and instruction >= 0:
        at = next(itertools.islice(code.co_positions(), instruction // 2, None))
        first, last, start, stop = at
        if first is not None and last is not None and start is not None and stop is not None:
            begin = character(linecache.getline(file, first), start)
            end = character(linecache.getline(file, last), stop)
            return Loc(file, first, begin, last, end, function, call_site)
    text = linecache.getline(file, line).rstrip()
    indent = len(text) - len(text.lstrip())
    return Loc(file, line, indent, line, len(text), function, call_site)
