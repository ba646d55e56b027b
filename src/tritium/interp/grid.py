"""The programs of a grid, one after the other, each of which can be suspended.

Programs start in ascending linear order, x + gx * (y + gy * z), and only one runs at any time. As
long as none is suspended they all run on the calling thread, so that a debugger finds its terminal
there. When one is suspended, others get threads of their own and the baton is passed between them:
a program that waits for another one, lower or higher, goes on in the end. Where all of them are
proved to wait for ever the launch fails; no clock decides that.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from tritium.diagnostics import error

from .waiting import Poll, ProgramThread, Watch, outsiders

Index: TypeAlias = tuple[int, int, int]

MOST_SUSPENDED = 1024
"""How many programs may be suspended at one time: each keeps a thread."""
PAUSE = 0.001
"""Seconds between passes of programs that only others than they could make go on."""


class Cancelled(BaseException):
    """Ends a suspended program that nobody will resume."""


class Baton(Protocol):
    """What a program needs of those that run it."""

    def suspend(self, poll: Poll | None = None) -> None:
        """Let others run before the program goes on; ``poll`` is what it waits for in a loop."""

    def progressed(self) -> None:
        """Note that the program changed memory, which another one may wait for."""

    def check(self) -> None:
        """Asked between operations. Raises ``Cancelled`` when the program is to end."""


class Fiber:
    """A function that can be suspended where it is and resumed later, on a thread of its own.

    Whoever resumes it waits until it suspends itself or ends, so only one of them ever runs. It is
    a ``Baton`` for the program that is its body.
    """

    def __init__(self, body: Callable[[], None]) -> None:
        self._body = body
        self._mine = threading.Semaphore(0)
        self._theirs = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._problem: BaseException | None = None
        self._cancelled = False
        self.done = False

    def resume(self) -> bool:
        """Run on until the body suspends itself or ends; returns whether it has ended.

        Raises what the body raised.
        """
        if self.done:
            return True
        if self._thread is None:
            context = contextvars.copy_context()
            trace = sys.gettrace()
            self._thread = ProgramThread(
                target=context.run, args=(self._run, trace), name="tritium-program", daemon=True
            )
            self._thread.start()
        else:
            self._mine.release()
        try:
            self._theirs.acquire()
        except BaseException:
            # Ctrl-C came while the body was running: it ends at its next operation.
            self._cancelled = True
            raise
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        return self.done

    def suspend(self, poll: Poll | None = None) -> None:
        """Called by the body: hand the baton back and wait to be resumed."""
        self._theirs.release()
        self._mine.acquire()
        self.check()

    def progressed(self) -> None:
        """Called by the body; nobody else runs meanwhile, so nothing follows from it."""

    def check(self) -> None:
        """Called by the body between operations. Raises ``Cancelled`` once nobody waits for it."""
        if self._cancelled:
            raise Cancelled

    def cancel(self) -> None:
        """End a suspended body by an exception, and wait for the end."""
        self._cancelled = True
        if self._thread is None:
            self.done = True
        elif not self.done:
            self._mine.release()
            self._thread.join()

    def _run(self, trace: object) -> None:
        # A debugger or coverage tool that traces the launching thread traces this one too.
        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            self._body()
        except Cancelled:
            pass
        except BaseException as problem:  # noqa: BLE001 - handed to the one who resumed
            self._problem = problem
        finally:
            sys.settrace(None)
            self.done = True
            self._theirs.release()


class Scheduler:
    """Runs ``body(program)`` for every program of the grid; their ``Baton``."""

    def __init__(self, grid: Index, body: Callable[[Index], None]) -> None:
        self._body = body
        self._pending = _programs(grid)
        self._first = next(self._pending, None)
        self._suspended: deque[tuple[Index, Fiber]] = deque()
        self._turns = 0
        self._current: Fiber | None = None
        self._version = 0
        self._watches: dict[Index, Watch] = {}
        self._waiting: dict[Index, Poll | None] = {}
        self._in_vain: set[Index] = set()
        self._running: Index = (0, 0, 0)
        self._launching = threading.current_thread()
        self._ended = False

    def run(self) -> None:
        """Run them all. Raises what a program raised; programs still suspended are ended then."""
        try:
            while (program := self._next()) is not None:
                self._enter(program)
            while self._suspended:
                self._resume_next()
        finally:
            self._ended = True
            # After Ctrl-C the program that was running may still add itself.
            while self._suspended:
                _, fiber = self._suspended.popleft()
                fiber.cancel()

    def suspend(self, poll: Poll | None = None) -> None:
        """Called from within a program: let others run before it goes on.

        Those that are suspended get a turn each, then the next one starts. ``poll`` is what the
        program waits for. Raises E0702 where all programs wait for ever.
        """
        program = self._running
        self._waiting[program] = poll
        self._judge(program, poll)
        if self._current is not None:
            self._current.suspend()
        else:
            self._others()
        self._running = program
        self._waiting.pop(program, None)

    def progressed(self) -> None:
        """Called from within a program that changed memory."""
        self._version += 1
        self._in_vain.clear()

    def check(self) -> None:
        """Called from within a program. Raises ``Cancelled`` when the launch has failed."""
        if self._ended:
            raise Cancelled

    def _enter(self, program: Index) -> None:
        self._running = program
        self._body(program)
        self._watches.pop(program, None)
        self._in_vain.discard(program)

    def _next(self) -> Index | None:
        program, self._first = self._first, next(self._pending, None)
        return program

    def _others(self) -> None:
        """One turn for another program, on behalf of the one on the calling thread."""
        if self._turns < len(self._suspended):
            self._turns += 1
            self._resume_next()
            return
        self._turns = 0
        program = self._next() if self._has_room() else None
        if program is not None:
            self._step(program, Fiber(lambda: self._enter(program)))
        elif self._suspended:
            self._turns = 1
            self._resume_next()

    def _has_room(self) -> bool:
        """Whether another program may start beside those that are suspended."""
        return len(self._suspended) < MOST_SUSPENDED

    def _resume_next(self) -> None:
        program, fiber = self._suspended.popleft()
        self._running = program
        self._step(program, fiber)

    def _step(self, program: Index, fiber: Fiber) -> None:
        before, self._current = self._current, fiber
        ended = False
        try:
            ended = fiber.resume()
        finally:
            self._current = before
            if not ended and not fiber.done:
                self._suspended.append((program, fiber))

    def _judge(self, program: Index, poll: Poll | None) -> None:
        """Whether a program that is about to wait does so in vain, and all others too."""
        if self._watches.setdefault(program, Watch()).repeats(self._version, poll):
            self._in_vain.add(program)
        else:
            self._in_vain.discard(program)
        if len(self._in_vain) < len(self._waiting):
            return
        if self._first is not None and self._has_room():
            return
        pages = {page for each in self._waiting.values() if each is not None for page in each.pages}
        if not outsiders(self._launching, pages):
            raise self._stuck()
        time.sleep(PAUSE / len(self._waiting))

    def _stuck(self) -> Exception:
        shown = sorted(self._waiting.items(), key=lambda each: each[0])[:4]
        programs = ", ".join(
            f"{program}" + (f" for a change at {poll.address:#x}" if poll is not None else "")
            for program, poll in shown
        )
        hidden = len(self._waiting) - len(shown)
        programs += f" and {hidden} more" if hidden > 0 else ""
        full = self._first is not None
        hint = (
            f"no more than {MOST_SUSPENDED} programs can wait at one time: use a smaller grid"
            if full
            else "one of them must write what the others read"
        )
        return error("E0702", programs=programs, hint=hint)


def _programs(grid: Index) -> Iterator[Index]:
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                yield x, y, z


def padded(grid: tuple[int, ...]) -> Index:
    """A grid of one to three extents as three."""
    x, y, z = (*(int(extent) for extent in grid), 1, 1)[:3]
    return x, y, z
