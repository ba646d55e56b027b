"""Programs that wait for others, and those that wait in vain.

A program waits in a loop whose next pass what it polled has decided (``passes.waiting`` says what
polls). Then others get their turn. It is no deadlock yet: a loop may count its passes and give up.
A program that comes back to a state it was in, without a change of memory since, will do so for
ever; where that holds for all programs of the grid, and nobody else may change memory, none ends.
"""

from __future__ import annotations

import dis
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tritium.diagnostics.frames import PACKAGE
from tritium.ir.dtypes import Type
from tritium.ops.callable import ConstexprFunction, DeviceFunction
from tritium.ops.constexpr import unwrap
from tritium.ops.tile import Tile
from tritium.ops.tuples import Structure

from .frames import EXECUTION, call_program, is_kernel_code
from .memory import shared_pages

LIBRARIES = frozenset({"tritium", "triton"})
"""Packages whose modules keep no state that a kernel's course depends on."""


WATCHERS = ("pytest_timeout ", "pydevd.")
"""How names begin of threads that belong to test runners and debuggers, and write nothing."""


class Poll(NamedTuple):
    """What a program polls that is about to begin another pass of a loop.

    ``address`` is one of the places, ``pages`` have them all. ``state()`` is everything besides
    memory that decides what the program does next; None where that can't be told.
    """

    address: int
    pages: frozenset[int]
    state: Callable[[], object]


class Watch:
    """Notices that a program comes back to a state that it was in.

    One state is kept, after 1, 2, 4, ... passes the one of then: so a round of any length is found
    (Brent's algorithm). It counts only as long as memory stays as it is.
    """

    def __init__(self) -> None:
        self._version = -1
        self._kept: object = None
        self._passes = 0
        self._reach = 1

    def repeats(self, version: int, poll: Poll | None) -> bool:
        """Whether the state is that of an earlier pass; ``version`` counts changes of memory."""
        if version != self._version or poll is None:
            self._version, self._kept, self._passes, self._reach = version, None, 0, 1
            return False
        state = poll.state()
        if state is not None and state == self._kept:
            return True
        self._passes += 1
        if self._passes >= self._reach:
            self._kept, self._passes, self._reach = state, 0, 2 * self._reach
        return False


class ProgramThread(threading.Thread):
    """The thread of a program that was suspended."""


def outsiders(launching: threading.Thread, pages: Iterable[int]) -> bool:
    """Whether anybody but the programs may write what they poll.

    That is another thread of this process, which Python knows of, or a process that shares memory.
    """
    mine = (ProgramThread, threading._DummyThread)
    threads = (each for each in threading.enumerate() if not isinstance(each, mine))
    others = (each for each in threads if not each.name.startswith(WATCHERS))
    return any(each is not launching for each in others) or shared_pages(pages)


# ---- the state of a program that runs as Python --------------------------------------------------


class _Untold(Exception):
    """What decides a program's course isn't all in plain sight."""


def state_of(frame: FrameType | None, execution: object) -> object:
    """Where kernel code is from ``frame`` outwards and what its variables hold.

    What is on the stacks, such as the iterators of ``for`` loops around, isn't seen. It stays as it
    is in one ``execution`` of a loop, so states are equal only within one. None where still more
    may decide what the program does next: it holds or calls what isn't of the kernel language, such
    as a list's iterator or a plain function.
    """
    held: list[Any] = [execution]
    try:
        while frame is not None and frame.f_code is not call_program.__code__:
            code = frame.f_code
            if is_kernel_code(code):
                held.append((id(code), frame.f_lasti))
                for name, value in sorted(frame.f_locals.items()):
                    if not name.startswith(EXECUTION):
                        held.append((name, _told(value)))
                if not code.co_filename.startswith(PACKAGE):
                    names = ((name, frame.f_globals.get(name)) for name in _globals(code))
                    held += ((name, _told(value)) for name, value in names)
            elif not code.co_filename.startswith(PACKAGE):
                return None
            frame = frame.f_back
    except _Untold:
        return None
    return held


@functools.lru_cache(maxsize=1024)
def _globals(code: CodeType) -> tuple[str, ...]:
    """The names that code looks up outside of functions."""

    def names() -> Iterator[str]:
        for each in dis.get_instructions(code):
            if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield str(each.argval)

    return tuple(sorted(set(names())))


def _told(value: Any) -> Any:
    """What tells a value from every other one, to be compared. Raises ``_Untold``."""
    known = unwrap(value)
    if isinstance(known, Tile):
        return known.type, known.data.tobytes()
    if isinstance(known, Structure):
        return known._kind(), *map(_told, known._parts())
    if isinstance(known, (tuple, list)):
        return type(known), *map(_told, known)
    if known is None or isinstance(known, (bool, int, str, bytes, Enum)):
        return type(known), known
    if isinstance(known, (float, complex, np.generic)):
        return type(known), repr(known)
    if _is_fixed(known):
        return id(known)
    raise _Untold


def _is_fixed(known: Any) -> bool:
    """Whether an object is part of the kernel language, and keeps nothing from call to call."""
    if isinstance(known, ModuleType):
        return known.__name__.partition(".")[0] in LIBRARIES
    kinds = (Type, type, DeviceFunction, ConstexprFunction, BuiltinFunctionType)
    return isinstance(known, kinds) or getattr(known, "is_surface", False)
