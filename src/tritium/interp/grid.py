"""The programs of a grid, one after the other, each of which can be suspended.

Programs start in ascending linear order, x + gx * (y + gy * z), and only one runs at any time. As
long as none is suspended they all run on the calling thread, so that a debugger finds its terminal
there. When one is suspended, others get threads of their own and the baton is passed between them:
a program that waits for another one, lower or higher, goes on in the end.
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

Index: TypeAlias = tuple[int, int, int]

MOST_SUSPENDED = 1024
"""How many programs may be suspended at one time: each keeps a thread."""
IDLE_ROUNDS = 2000
"""Rounds of waiting programs without any progress after which the launch is given up."""
IDLE_PAUSE = 0.001
"""Seconds between such rounds, for other threads of the process to make the progress."""


class Cancelled(BaseException):
    """Ends a suspended program that nobody will resume."""


class Baton(Protocol):
    """What a program needs of those that run it."""

    def suspend(self, waiting_for: int | None = None) -> None:
        """Let others run before the program goes on.

        ``waiting_for`` is the address whose contents it waits for, where it is a waiting loop.
        """

    def progressed(self) -> None:
        """Note that the program did something another one may wait for."""

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
            self._thread = threading.Thread(
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

    def suspend(self, waiting_for: int | None = None) -> None:
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
        self._suspended: deque[tuple[Index, Fiber]] = deque()
        self._turns = 0
        self._current: Fiber | None = None
        self._idle = 0
        self._waiting: dict[Index, int | None] = {}
        self._running: Index = (0, 0, 0)
        self._ended = False

    def run(self) -> None:
        """Run them all. Raises what a program raised; programs still suspended are ended then."""
        try:
            while (program := next(self._pending, None)) is not None:
                self._enter(program)
            while self._suspended:
                self._resume_next()
        finally:
            self._ended = True
            # After Ctrl-C the program that was running may still add itself.
            while self._suspended:
                _, fiber = self._suspended.popleft()
                fiber.cancel()

    def suspend(self, waiting_for: int | None = None) -> None:
        """Called from within a program: let others run before it goes on.

        Those that are suspended get a turn each, then the next one starts. ``waiting_for`` is the
        address whose contents the program waits for. Raises E0702 if nothing will ever happen.
        """
        program = self._running
        self._waiting[program] = waiting_for
        self._idle += 1
        if self._current is not None:
            self._current.suspend()
        else:
            self._others()
        self._running = program
        self._waiting.pop(program, None)

    def progressed(self) -> None:
        """Called from within a program that did something another one may wait for."""
        self._idle = 0

    def check(self) -> None:
        """Called from within a program. Raises ``Cancelled`` when the launch has failed."""
        if self._ended:
            raise Cancelled

    def _enter(self, program: Index) -> None:
        self._running = program
        self._body(program)
        self._idle = 0

    def _others(self) -> None:
        """One turn for another program, on behalf of the one on the calling thread."""
        if self._turns < len(self._suspended):
            self._turns += 1
            self._resume_next()
            return
        self._turns = 0
        room = len(self._suspended) < MOST_SUSPENDED
        program = next(self._pending, None) if room else None
        if program is not None:
            self._idle = 0
            self._step(program, Fiber(lambda: self._enter(program)))
        elif self._suspended:
            self._turns = 1
            self._resume_next()
        else:
            self._rest()

    def _resume_next(self) -> None:
        program, fiber = self._suspended.popleft()
        self._running = program
        self._step(program, fiber)
        self._rest()

    def _step(self, program: Index, fiber: Fiber) -> None:
        before, self._current = self._current, fiber
        ended = False
        try:
            ended = fiber.resume()
        finally:
            self._current = before
            if not ended and not fiber.done:
                self._suspended.append((program, fiber))

    def _rest(self) -> None:
        """Where everybody waits: give other threads of the process time, and up in the end."""
        round_length = len(self._suspended) + 1
        if self._idle and self._idle % round_length == 0:
            if self._idle >= IDLE_ROUNDS * round_length:
                raise self._stuck()
            time.sleep(IDLE_PAUSE)

    def _stuck(self) -> Exception:
        shown = sorted(self._waiting.items())[:4]
        programs = ", ".join(
            f"{program}" + (f" for a change at {address:#x}" if address is not None else "")
            for program, address in shown
        )
        hidden = len(self._waiting) - len(shown)
        programs += f" and {hidden} more" if hidden > 0 else ""
        full = len(self._suspended) >= MOST_SUSPENDED
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
