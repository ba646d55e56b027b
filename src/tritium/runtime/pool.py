"""The threads that run the programs of a grid.

Threads take ascending chunks of programs from the launch, so programs start in ascending order and
each thread ascends. The caller takes part; workers are woken only when the work seems worth it.
Calls into compiled code drop the GIL.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

from tritium import knobs

Entry = Callable[[int, int, int, int], None]
"""Compiled code: the addresses and numbers ``args, first, last, scratch``."""

ENTRY_TYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
ALIGNMENT = 64
"""Of scratch memory, in bytes; compiled code relies on it."""
KEPT_SCRATCH = 1 << 24
"""A thread keeps scratch memory of up to so many bytes for later launches."""
WORTH_WAKING = 60e-6
"""Seconds of remaining work from which on workers are woken: about what that costs."""
LONG_CHUNK = 0.05
"""Seconds after which a chunk is too long: Ctrl-C is noticed between chunks."""
SHORT_CHUNK = 0.0002
"""Seconds below which the next chunk is made longer: a call takes about a microsecond."""


class _FloatingPoint:
    """The floating-point environment of a thread: rounding, flushing of subnormal numbers.

    It belongs to a thread, so a caller that changed its own would get other results from workers.
    """

    def __init__(self) -> None:
        library = ctypes.PyDLL(None) if os.name == "posix" else None
        self._get = getattr(library, "fegetenv", None)
        self._set = getattr(library, "fesetenv", None)

    def read(self) -> Any:
        """The calling thread's environment."""
        if self._get is None:
            return None
        # Larger than fenv_t on any platform.
        held = ctypes.create_string_buffer(256)
        self._get(held)
        return held

    def write(self, held: Any) -> None:
        """Give the calling thread that environment."""
        if self._set is not None and held is not None:
            self._set(held)


_floating_point = _FloatingPoint()


class _Scratch(threading.local):
    """A thread's scratch memory."""

    buffer: np.ndarray[Any, Any] | None = None

    def get(self, size: int) -> tuple[np.ndarray[Any, Any], int]:
        """At least ``size`` bytes: what keeps them alive, and their aligned address."""
        held = self.buffer
        if held is None or held.nbytes < size + ALIGNMENT:
            held = np.empty(size + ALIGNMENT, np.uint8)
            if held.nbytes <= KEPT_SCRATCH:
                self.buffer = held
        return held, -(-held.ctypes.data // ALIGNMENT) * ALIGNMENT


_scratch = _Scratch()


class Launch:
    """One grid on its way through the threads."""

    def __init__(
        self, entry: Entry, args: int, programs: int, scratch_bytes: int, threads: int
    ) -> None:
        self._entry = entry
        self._args = args
        self._programs = programs
        self._scratch_bytes = scratch_bytes
        self._threads = threads
        self._lock = threading.Lock()
        self._next = 0
        self._size = 1
        self._active = 0
        self._idle = threading.Event()
        self._problem: BaseException | None = None
        self._environment: Any = None

    def run_alone(self) -> None:
        """Run all programs on the calling thread."""
        self._work(None)

    def run(self, pool: Pool, workers: int) -> None:
        """Run all programs with the help of up to ``workers`` threads of the pool.

        Raises what a worker raised, and ``KeyboardInterrupt``; no program runs any more then.
        """
        self._environment = _floating_point.read()
        try:
            self._work(lambda: pool.submit(self, min(workers, self._programs - self._next)))
        finally:
            self._finish()
        if self._problem is not None:
            raise self._problem

    def help(self) -> None:
        """Called by a worker: run chunks while there are any."""
        with self._lock:
            if self._next >= self._programs:
                return
            self._active += 1
        try:
            _floating_point.write(self._environment)
            self._work(None)
        except BaseException as problem:  # noqa: BLE001 - raised by the caller of the launch
            self._problem = problem
            self._stop()
        finally:
            with self._lock:
                self._active -= 1
                if not self._active:
                    self._idle.set()

    def _work(self, wake: Callable[[], None] | None) -> None:
        held, scratch = _scratch.get(self._scratch_bytes) if self._scratch_bytes else (None, 0)
        started = before = time.perf_counter()
        while True:
            first, last = self._claim()
            if first == last:
                break
            self._entry(self._args, first, last, scratch)
            now = time.perf_counter()
            taken, before = now - before, now
            self._adapt(taken, last - first)
            if wake is not None and self._worth_waking(now - started, last):
                wake()
                wake = None
        del held

    def _claim(self) -> tuple[int, int]:
        """The next programs; fewer towards the end, so that all threads end together."""
        with self._lock:
            first = self._next
            share = (self._programs - first) // (2 * self._threads)
            self._next = min(first + max(1, min(self._size, share)), self._programs)
            return first, self._next

    def _worth_waking(self, elapsed: float, done: int) -> bool:
        return elapsed / done * (self._programs - done) > WORTH_WAKING

    def _adapt(self, taken: float, count: int) -> None:
        if taken > LONG_CHUNK:
            self._size = max(1, count // 2)
        elif taken < SHORT_CHUNK and count == self._size:
            self._size = 2 * count

    def _stop(self) -> None:
        with self._lock:
            self._next = self._programs

    def _finish(self) -> None:
        """Wait for the workers that have started, however often the caller is interrupted."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                with self._lock:
                    self._next = self._programs
                    if not self._active:
                        break
                    self._idle.clear()
                self._idle.wait()
            except KeyboardInterrupt as pressed:
                interrupt = pressed
        if interrupt is not None:
            raise interrupt


class Pool:
    """Worker threads; they are started when they are first needed."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._queue: SimpleQueue[Launch | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._closed = False

    def run(self, entry: Entry, args: int, programs: int, scratch_bytes: int = 0) -> None:
        """Run ``programs`` programs of a grid, with the number of threads that the knob says.

        ``args`` is the address of the argument buffer; ``scratch_bytes`` each thread gets, aligned.
        """
        threads = 1 if programs == 1 else min(knobs.cpu.num_threads, programs)
        launch = Launch(entry, args, programs, scratch_bytes, threads)
        if threads == 1:
            launch.run_alone()
        else:
            launch.run(self, threads - 1)

    def submit(self, launch: Launch, workers: int) -> None:
        """Ask up to ``workers`` threads for their help."""
        if len(self._threads) < workers:
            self._grow(workers)
        for _ in range(min(workers, len(self._threads))):
            self._queue.put(launch)

    def _grow(self, workers: int) -> None:
        with self._starting:
            while len(self._threads) < workers and not self._closed:
                name = f"tritium-worker-{len(self._threads)}"
                thread = threading.Thread(
                    target=_serve, args=(self._queue,), name=name, daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:
                    # The system has no more threads, or the interpreter is shutting down.
                    return
                self._threads.append(thread)

    def close(self) -> None:
        """End the workers and wait for them; later launches run on their caller's thread."""
        with self._starting:
            self._closed = True
            threads, self._threads = self._threads, []
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            thread.join()

    def after_fork(self) -> None:
        """Start anew in a child process, which has none of the threads."""
        self._reset()


def _serve(queue: SimpleQueue[Launch | None]) -> None:
    while (launch := queue.get()) is not None:
        launch.help()
        # A finished launch must not stay alive until the next one.
        del launch


POOL = Pool()
atexit.register(POOL.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.after_fork)
