"""The memory that native host code and Python share: byte offsets of 8-byte fields.

Fields that threads write while others read them stand on cache lines of their own. A field that is
waited on, or is 0 or 1, uses the low 4 bytes.
"""

from __future__ import annotations

WORD = 8
LINE = 64


class Record:
    """One version of a compiled kernel, as a launch needs it.

    ``COST`` is the time one program takes in clock ticks, a double; 0 while it isn't known.
    """

    ENTRY, SCRATCH, COST = 0, 8, 16
    SIZE = LINE


class Pool:
    """The pool. ``SEQUENCE`` counts the grids that were opened: workers wait for its change.

    ``OPEN`` has a bit for each slot whose grid may have programs left. ``TRAIN`` is 1 while grids
    follow each other closely, ``LAST`` when the last one ended. The times from ``TINY`` to ``LONG``
    are doubles, in ticks: see ``runtime.pool``.
    """

    SEQUENCE, OPEN = 0, 8
    SLEEPERS, STOP = 64, 72
    WORKERS, GROWING, CLOSED, TRAIN, LAST = 128, 136, 144, 152, 160
    TINY, SHORT, WORTH_SHARING, WORTH_WAKING, SPIN, LONG = 192, 200, 208, 216, 224, 232
    MUTEX, CONDITION = 256, 384
    SLOTS = 512


class Slot:
    """A grid in flight. ``TICKET`` is its generation << 32 | the next unit that nobody has claimed.

    A unit is ``UNIT`` programs; ``DONE`` counts the units that have run, ``WAITING`` is 1 where the
    caller sleeps until they all have. ``SHARE`` divides what is left into claims, ``LIMIT`` and
    ``LEAST`` bound them. ``CONTROL`` is the caller's floating-point control register. ``BUSY`` is 1
    while a caller owns the slot; ``ARENA`` is the scratch memory of that caller, and its size.
    ``WAKING`` is 1 where sleeping workers are to be woken.
    """

    TICKET = 0
    DONE, WAITING = 64, 72
    ENTRY, ARGUMENTS, PROGRAMS, UNIT, UNITS, HELPERS, SCRATCH, CONTROL = range(128, 192, 8)
    LIMIT, LEAST, SHARE, BUSY, ARENA, WAKING = 192, 200, 208, 216, 224, 240
    SIZE = 256
    COUNT = 16


class Worker:
    """A thread of the pool; ``ARENA`` is its scratch memory, and its size."""

    POOL, INDEX, THREAD, ARENA = 0, 8, 16, 24
    SIZE = LINE
    MOST = 4095
    FIRST = Pool.SLOTS + Slot.COUNT * Slot.SIZE


class Launch:
    """One launch on its caller's stack: what runs, and what is noted while it does.

    ``SLOT`` is null where none was free. ``TIME`` (a double, in ticks) and ``RAN`` (programs) are
    the caller's own share, ``COST`` the time per program that is reckoned with. ``CHECKED`` is when
    signals were last looked at, ``STATE`` the thread's state while it doesn't hold the GIL.
    """

    ENTRY, ARGUMENTS, PROGRAMS, UNIT, UNITS, SCRATCH, THREADS, SLOT = range(0, 64, 8)
    TIME, RAN, COST, CHECKED, STATE, INTERRUPTED, HOLDER = range(64, 120, 8)
    SIZE = 192


POOL_SIZE = Worker.FIRST + Worker.MOST * Worker.SIZE
