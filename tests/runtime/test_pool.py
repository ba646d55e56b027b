from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tritium import knobs
from tritium.backends.llvm import Library, compile_and_link, host_target
from tritium.runtime import pool
from tritium.runtime.pool import ENTRY_TYPE, Pool

# Adds 1 to a counter of each program, and the low bits of its scratch memory's address to another.
COUNT = """
define void @entry(ptr %args, i64 %first, i64 %last, ptr %scratch) {
start:
  %counters = load ptr, ptr %args, align 8
  %bits = ptrtoint ptr %scratch to i64
  %low = and i64 %bits, 63
  br label %head
head:
  %p = phi i64 [ %first, %start ], [ %next, %body ]
  %more = icmp slt i64 %p, %last
  br i1 %more, label %body, label %end
body:
  %at = getelementptr i64, ptr %counters, i64 %p
  %old = load i64, ptr %at, align 8
  %one = add i64 %old, 1
  %new = add i64 %one, %low
  store i64 %new, ptr %at, align 8
  %next = add i64 %p, 1
  br label %head
end:
  ret void
}
"""


@pytest.fixture(scope="module")
def library() -> Library:
    return compile_and_link(COUNT, host_target(), ["entry"])


@pytest.fixture
def threads() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


class Counters:
    """A grid's counters and the argument buffer that points to them."""

    def __init__(self, programs: int) -> None:
        self.values = np.zeros(programs, np.int64)
        self.buffer = np.array([self.values.ctypes.data], np.uint64)
        self.args = self.buffer.ctypes.data


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("programs", [1, 2, 3, 7, 64, 1000, 12_345])
def test_each_program_runs_once(
    library: Library, threads: Pool, number: int, programs: int
) -> None:
    entry = ENTRY_TYPE(library.address("entry"))
    with knobs.cpu.scope():
        knobs.cpu.num_threads = number
        for scratch in (0, 100, 1 << 20):
            grid = Counters(programs)
            threads.run(entry, grid.args, programs, scratch)
            assert (grid.values == 1).all()


class Recorder:
    """An entry in Python that notes which thread ran which programs, and takes its time."""

    def __init__(self, work: Callable[[int], None] = lambda program: None) -> None:
        self.chunks: list[tuple[int, int, int]] = []
        self.work = work

    def __call__(self, args: int, first: int, last: int, scratch: int) -> None:
        self.chunks.append((threading.get_ident(), first, last))
        for program in range(first, last):
            self.work(program)

    def check(self, programs: int) -> None:
        """Chunks start in ascending order and cover the grid."""
        starts = [first for _, first, _ in self.chunks]
        for thread in {each for each, _, _ in self.chunks}:
            mine = [first for each, first, _ in self.chunks if each == thread]
            assert mine == sorted(mine)
        covered = sorted(p for _, first, last in self.chunks for p in range(first, last))
        assert covered == list(range(programs))
        assert min(starts) == 0


class Meeting:
    """Work that goes on once so many threads have come to it; the first program only takes long."""

    def __init__(self, number: int, alone: int = 1) -> None:
        self.number = number
        self.alone = alone
        self.here: set[int] = set()
        self.complete = threading.Event()

    def __call__(self, program: int) -> None:
        if program < self.alone:
            time.sleep(0.001 if program == self.alone - 1 else 0)
            return
        self.here.add(threading.get_ident())
        if len(self.here) == self.number:
            self.complete.set()
        assert self.complete.wait(60)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("alone", [1, 5])
def test_threads_take_ascending_chunks(threads: Pool, number: int, alone: int) -> None:
    entry = Recorder(Meeting(number, alone))
    with knobs.cpu.scope():
        knobs.cpu.num_threads = number
        threads.run(entry, 0, 100)
    entry.check(100)
    assert len({thread for thread, _, _ in entry.chunks}) == number


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(pool, "time", made)
    return made


def test_small_work_stays_on_the_callers_thread(threads: Pool, clock: Clock) -> None:
    entry = Recorder(lambda program: clock.advance(0.9 * pool.WORTH_WAKING / 50))
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 4
        threads.run(entry, 0, 50)
    entry.check(50)
    assert {thread for thread, _, _ in entry.chunks} == {threading.get_ident()}


def test_chunks_grow_while_they_are_short_and_shrink_when_they_are_long(
    threads: Pool, clock: Clock
) -> None:
    entry = Recorder(lambda program: clock.advance(0.04 if program > 10_000 else 1e-6))
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 1
        threads.run(entry, 0, 10_020)
    entry.check(10_020)
    sizes = [last - first for _, first, last in entry.chunks]
    assert sizes[:5] == [1, 2, 4, 8, 16]
    assert max(sizes) == 256
    assert sizes[-1] == 1


def test_launches_from_four_threads(library: Library, threads: Pool) -> None:
    entry = ENTRY_TYPE(library.address("entry"))
    wrong: list[int] = []

    def launch(seed: int) -> None:
        for turn in range(200):
            programs = 1 + (seed * 131 + turn * 17) % 3000
            grid = Counters(programs)
            threads.run(entry, grid.args, programs, 64 * seed)
            if (grid.values != 1).any():
                wrong.append(programs)

    with knobs.cpu.scope():
        knobs.cpu.num_threads = 3
        callers = [threading.Thread(target=launch, args=(seed,)) for seed in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert wrong == []


def test_an_exception_of_a_worker_reaches_the_caller(threads: Pool) -> None:
    main = threading.get_ident()

    failed = threading.Event()

    def fail(program: int) -> None:
        if threading.get_ident() != main:
            failed.set()
            raise MemoryError("scratch")
        if program == 0:
            time.sleep(0.001)
        else:
            assert failed.wait(60)

    entry = Recorder(fail)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 2
        with pytest.raises(MemoryError, match="scratch"):
            threads.run(entry, 0, 10_000)
        assert len(entry.chunks) < 1000
        again = Recorder()
        threads.run(again, 0, 100)
        again.check(100)


def test_an_exception_of_the_caller_waits_for_the_workers(threads: Pool) -> None:
    main = threading.get_ident()
    running: list[int] = []
    finished: list[int] = []

    started = threading.Event()

    def work(program: int) -> None:
        if threading.get_ident() != main:
            running.append(program)
            started.set()
            time.sleep(0.1)
            finished.append(program)
        elif program == 0:
            time.sleep(0.001)
        else:
            assert started.wait(60)
            raise KeyboardInterrupt

    with knobs.cpu.scope():
        knobs.cpu.num_threads = 2
        with pytest.raises(KeyboardInterrupt):
            threads.run(Recorder(work), 0, 10_000)
    assert finished == running


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("number", [1, 2])
def test_ctrl_c(threads: Pool, number: int) -> None:
    def press() -> None:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    entry = Recorder(lambda program: time.sleep(0.001))
    finger = threading.Thread(target=press)
    finger.start()
    with knobs.cpu.scope():
        knobs.cpu.num_threads = number
        with pytest.raises(KeyboardInterrupt):
            threads.run(entry, 0, 1_000_000)
    finger.join()
    count = len(entry.chunks)
    time.sleep(0.05)
    assert len(entry.chunks) == count


def test_workers_get_the_callers_floating_point_environment(threads: Pool) -> None:
    posix = ctypes.CDLL(None) if os.name == "posix" else None
    if posix is None or not hasattr(posix, "fesetround"):
        pytest.skip("no fesetround here")
    seen: dict[int, set[int]] = {}
    upward = {"x86_64": 0x800, "aarch64": 0x400000}.get(os.uname().machine)
    if upward is None:
        pytest.skip("the number of this rounding mode is not known")

    def note(program: int) -> None:
        seen.setdefault(threading.get_ident(), set()).add(posix.fegetround())
        meeting(program)

    before = posix.fegetround()
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 2
        for mode in (upward, before):
            seen.clear()
            meeting = Meeting(2)
            posix.fesetround(mode)
            try:
                threads.run(Recorder(note), 0, 100)
            finally:
                posix.fesetround(before)
            assert len(seen) == 2
            assert all(modes == {mode} for modes in seen.values())


PRELUDE = """
import os, sys, time, threading
os.environ["TRITIUM_NUM_THREADS"] = "2"
from tritium.runtime.pool import POOL
def launch(number):
    names = set()
    complete = threading.Event()
    def entry(args, first, last, scratch):
        names.add(threading.current_thread().name)
        time.sleep(0.001)
        if len(names) == number:
            complete.set()
        assert first == 0 or complete.wait(60)
    POOL.run(entry, 0, 100)
    return len(names)
"""


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_process_starts_its_own_workers() -> None:
    script = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    print("parent", launch(2), flush=True)
    child = os.fork()
    if child == 0:
        print("child", launch(2), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print("parent", launch(2), flush=True)
    """
    assert run(script) == "parent 2\nchild 2\nparent 2\n"


def test_workers_are_joined_at_exit_and_later_launches_still_run() -> None:
    script = """
    import atexit
    from tritium.runtime import pool
    # Functions registered last run first.
    atexit.unregister(POOL.close)
    atexit.register(lambda: print(POOL._threads, launch(1)))
    atexit.register(POOL.close)
    print(launch(2))
    """
    assert run(script) == "2\n[] 1\n"


def test_scratch_memory_of_a_thread_is_kept_while_it_is_small() -> None:
    scratch: Any = pool._Scratch()
    first, address = scratch.get(1000)
    assert address % pool.ALIGNMENT == 0
    assert scratch.get(500)[0] is first
    large, _ = scratch.get(pool.KEPT_SCRATCH + 1)
    assert large.nbytes > pool.KEPT_SCRATCH
    assert scratch.buffer is first
