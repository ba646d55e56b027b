"""The threads that run the programs of a grid.

They are native (``backends.host.pool``): they take ascending runs of programs from the launch, so
programs start in ascending order and each thread ascends. The caller takes part; it drops the GIL
unless the grid is done in no time. Workers are woken only when the work seems worth it, by the time
that the kernel's programs took before, and spin only while launches follow each other closely. On
Linux they keep off the CPU of the thread that wakes them.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
import time
from typing import Any

import numpy as np

from tritium import knobs
from tritium.backends.host import POOL_FUNCTIONS, layout
from tritium.diagnostics import error

from . import hostcode

ENTRY_TYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
"""Compiled code: the addresses and numbers ``arguments, first, last, scratch``."""

# Seconds. All but the last two are weighed against what programs took before.
TINY = 2e-6
"""A grid of less work keeps the GIL."""
WORTH_SHARING = 3e-6
"""Work from which on it is shared with a worker that is awake."""
WORTH_WAKING = 20e-6
"""Work from which on sleeping workers are woken: about what that costs."""
SHORT = 2e-6
"""The least work that a thread claims at once."""
LONG = 0.02
"""The most work that a thread claims at once; signals are looked at so often."""
SPIN = 50e-6
"""How long a worker waits awake where the grid before had come so soon after its predecessor."""
PLACING = 5e-3
"""How long workers keep the CPUs that a caller has allowed them, whoever wakes them."""
PATIENCE = 2.0
"""How long programs may wait for some that can't be started before their launch fails."""
_CALIBRATION = 5e-4

_LIMITS = {
    layout.Pool.TINY: TINY,
    layout.Pool.SHORT: SHORT,
    layout.Pool.WORTH_SHARING: WORTH_SHARING,
    layout.Pool.WORTH_WAKING: WORTH_WAKING,
    layout.Pool.SPIN: SPIN,
    layout.Pool.LONG: LONG,
    layout.Pool.PATIENCE: PATIENCE,
    layout.Pool.PLACING: PLACING,
}
_ALIGNMENT = 64


def record(entry: int, scratch_bytes: int, *, steady: bool = True, waits: bool = False) -> Any:
    """The memory that tells the pool of compiled code; its address is what ``Pool.run`` takes.

    ``entry`` is an address of ``ENTRY_TYPE``. Each thread gets ``scratch_bytes``, aligned to 64.
    The GIL is kept only by code that is ``steady``: what it took before says how long it will take.
    Code that ``waits`` does so by ``layout.Waiter``, at the start of its scratch memory.
    """
    made = (ctypes.c_uint64 * (layout.Record.SIZE // layout.WORD))()
    made[layout.Record.ENTRY // layout.WORD] = entry
    made[layout.Record.SCRATCH // layout.WORD] = scratch_bytes
    made[layout.Record.STEADY // layout.WORD] = steady
    made[layout.Record.WAITS // layout.WORD] = waits
    return made


def _stuck(most: int) -> None:
    """Raise E0523: programs wait for others that can't be started."""
    from . import callsite

    raise error("E0523", most=most, loc=callsite.launch_loc("grid"))


class Pool:
    """Worker threads; they are started when they are first needed.

    ``limits`` overrides the times above, by their names. ``condition``: threads don't wait by the
    futex, even where there is one. ``most`` threads run one grid at once.
    """

    def __init__(
        self, condition: bool = False, most: int = layout.Waiter.MOST, **limits: float
    ) -> None:
        self._condition = condition
        self._most = most
        self._raising = functools.partial(_stuck, most)
        self._limits = {**_LIMITS, **{getattr(layout.Pool, k): v for k, v in limits.items()}}
        self._memory = np.zeros(layout.POOL_SIZE + _ALIGNMENT, np.uint8)
        self.address: int = -(-self._memory.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        """Of the memory that ``layout.Pool`` describes."""
        self._run: Any = None
        self._starting = threading.Lock()
        self._entry = 0

    def run(self, record: int, arguments: bytes, programs: int) -> None:
        """Run ``programs`` programs of a grid, with the number of threads that the knob says.

        ``record`` is the address of a ``record``, ``arguments`` are what the code is given. Raises
        ``KeyboardInterrupt`` (or what a signal's handler raises), and ``MemoryError`` for scratch
        memory; no program runs any more then.
        """
        if not hostcode.SUPPORTED:
            _run_alone(record, arguments, programs)
            return
        if self._run is None:
            self.start()
        threads = 1 if programs == 1 else min(knobs.cpu.num_threads, programs)
        self._run(record, arguments, programs, threads)

    def start(self) -> int:
        """Load the code, unless that is done; the address of ``run_grid``."""
        with self._starting:
            if self._run is None:
                self._load()
        return self._entry

    def _load(self) -> None:
        name = f"pool of {self._most}{' by condition' if self._condition else ''}"
        library = hostcode.load(name, self._write, POOL_FUNCTIONS)
        prepare = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._prepare = prepare(library.address("prepare"))
        # Waiting for the workers takes a while.
        self._close = prepare(library.address("close"))
        self.ticks = ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("ticks"))
        self.frequency = self._calibrated()
        self._clear()
        self._entry = library.address("run_grid")
        # With the GIL: the code drops it itself, and leaves the exceptions of signals.
        method = hostcode.method("run_grid", library.address("call"), hostcode.FASTCALL)
        self._run = hostcode.builtin(method, self.address)

    def _write(self, module: Any, target: Any) -> tuple[str, ...]:
        from tritium.backends.host import pool

        block, faults = hostcode.sig_block(), hostcode.faults()
        rest: dict[str, Any] = {"condition": self._condition, "most": self._most}
        return pool.write(module, target, block=block, faults=faults, **rest)

    def _calibrated(self) -> float:
        """Ticks a second."""
        start, first = time.perf_counter(), self.ticks()
        while time.perf_counter() - start < _CALIBRATION:
            pass
        return float(self.ticks() - first) / (time.perf_counter() - start)

    def _clear(self) -> None:
        ctypes.memset(self.address, 0, layout.POOL_SIZE)
        for field, seconds in self._limits.items():
            ctypes.c_double.from_address(self.address + field).value = seconds * self.frequency
        ctypes.c_uint64.from_address(self.address + layout.Pool.STUCK).value = id(self._raising)
        self._prepare(self.address)

    @property
    def workers(self) -> int:
        """How many threads have been started."""
        return ctypes.c_int64.from_address(self.address + layout.Pool.WORKERS).value

    def limit(self, name: str, seconds: float) -> None:
        """Change one of the times above."""
        self._limits[getattr(layout.Pool, name)] = seconds
        if self._run is not None:
            field = self.address + getattr(layout.Pool, name)
            ctypes.c_double.from_address(field).value = seconds * self.frequency

    def close(self) -> None:
        """End the workers and wait for them; later launches run on their caller's thread."""
        if self._run is not None:
            self._close(self.address)

    def after_fork(self) -> None:
        """Start anew in a child process, which has none of the threads."""
        self._starting = threading.Lock()
        if self._run is not None:
            self._clear()


def _run_alone(record: int, arguments: bytes, programs: int) -> None:
    """Where there is no native pool: run the grid on the calling thread."""
    words = (ctypes.c_uint64 * (layout.Record.SIZE // layout.WORD)).from_address(record)
    entry, size = words[:2]
    if words[layout.Record.WAITS // layout.WORD] and programs > 1:
        raise error("E0523", most=1)
    scratch = np.zeros(size + _ALIGNMENT, np.uint8)
    aligned = -(-scratch.ctypes.data // _ALIGNMENT) * _ALIGNMENT
    held = ctypes.create_string_buffer(arguments, len(arguments))
    ENTRY_TYPE(entry)(ctypes.addressof(held), 0, programs, aligned)


POOL = Pool()
atexit.register(POOL.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.after_fork)
