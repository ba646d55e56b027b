from __future__ import annotations

import contextvars
import ctypes
import itertools
import os
import platform
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
from tritium.backends.emit import ptr, void
from tritium.backends.host import layout, pool
from tritium.backends.host.writer import begin
from tritium.backends.llvm import Library, compile_and_link, host_target
from tritium.runtime import hostcode
from tritium.runtime.pool import ENTRY_TYPE, Pool, record

pytestmark = pytest.mark.skipif(not hostcode.SUPPORTED, reason="there is no pool here")

# Counts in ``arguments[0]`` how often each program ran, and adds the low bits of the address of
# the scratch memory, whose first and last bytes are written. ``arguments[1]`` are the bytes of it,
# ``arguments[2]`` the steps that a program takes.
CODE = """
define void @entry(ptr %arguments, i64 %first, i64 %last, ptr %scratch) {
start:
  %counters = load ptr, ptr %arguments, align 8
  %sp = getelementptr i64, ptr %arguments, i64 1
  %size = load i64, ptr %sp, align 8
  %tp = getelementptr i64, ptr %arguments, i64 2
  %steps = load i64, ptr %tp, align 8
  %bits = ptrtoint ptr %scratch to i64
  %low = and i64 %bits, 63
  %any = icmp ne i64 %size, 0
  br i1 %any, label %touch, label %head
touch:
  %end0 = getelementptr i8, ptr %scratch, i64 %size
  %end = getelementptr i8, ptr %end0, i64 -1
  store volatile i8 1, ptr %scratch, align 1
  store volatile i8 1, ptr %end, align 1
  br label %head
head:
  %p = phi i64 [ %first, %start ], [ %first, %touch ], [ %next, %after ]
  %more = icmp slt i64 %p, %last
  br i1 %more, label %body, label %out
body:
  %at = getelementptr i64, ptr %counters, i64 %p
  %old = load i64, ptr %at, align 8
  %one = add i64 %old, 1
  %new = add i64 %one, %low
  store i64 %new, ptr %at, align 8
  br label %work
work:
  %i = phi i64 [ 0, %body ], [ %i2, %work ]
  %v = phi i64 [ 1, %body ], [ %v2, %work ]
  %v2 = call i64 asm sideeffect "", "=r,0"(i64 %v)
  %i2 = add i64 %i, 1
  %busy = icmp slt i64 %i2, %steps
  br i1 %busy, label %work, label %after
after:
  %next = add i64 %p, 1
  br label %head
out:
  ret void
}
"""

# Halves a float32 in ``arguments[0]``; the result goes to the program's place in ``arguments[1]``.
# The threads of a grid of ``arguments[3]`` programs meet by the counter at ``arguments[2]``.
HALVE = """
define void @halve(ptr %arguments, i64 %first, i64 %last, ptr %scratch) {
start:
  %x = load volatile float, ptr %arguments, align 8
  %rp = getelementptr i64, ptr %arguments, i64 1
  %results = load ptr, ptr %rp, align 8
  %cpp = getelementptr i64, ptr %arguments, i64 2
  %cp = load ptr, ptr %cpp, align 8
  %np = getelementptr i64, ptr %arguments, i64 3
  %number = load i64, ptr %np, align 8
  %half = fmul float %x, 5.0e-1
  %at = getelementptr float, ptr %results, i64 %first
  store float %half, ptr %at, align 4
  %here = atomicrmw add ptr %cp, i64 1 seq_cst, align 8
  br label %meet
meet:
  %now = load atomic i64, ptr %cp seq_cst, align 8
  %all = icmp sge i64 %now, %number
  br i1 %all, label %out, label %meet
out:
  ret void
}
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define void @control(ptr %old, ptr %new) {
  call void @llvm.x86.sse.stmxcsr(ptr %old)
  call void @llvm.x86.sse.ldmxcsr(ptr %new)
  ret void
}
"""


@pytest.fixture(scope="module")
def library() -> Library:
    return compile_and_link(CODE, host_target(), ["entry"])


@pytest.fixture(params=[False, True], ids=["futex", "condition"])
def threads(request: pytest.FixtureRequest) -> Iterator[Pool]:
    made = Pool(condition=request.param)
    yield made
    made.close()


@pytest.fixture(params=[False, True], ids=["futex", "condition"])
def eager(request: pytest.FixtureRequest) -> Iterator[Pool]:
    """A pool that shares every grid of a known cost."""
    made = Pool(request.param, TINY=0, WORTH_SHARING=0, WORTH_WAKING=0, SHORT=0)
    yield made
    made.close()


def known(made: Any, cost: float = 1.0) -> Any:
    """A record whose programs are reckoned to take so many ticks."""
    ctypes.c_double.from_address(ctypes.addressof(made) + layout.Record.COST).value = cost
    return made


def cost(made: Any) -> float:
    return ctypes.c_double.from_address(ctypes.addressof(made) + layout.Record.COST).value


class Grid:
    """Counters of a grid's programs and the arguments that point to them."""

    def __init__(self, library: Library, programs: int, scratch: int = 0, steps: int = 1) -> None:
        self.record = record(library.address("entry"), scratch)
        self.programs = programs
        self.counters = np.zeros(programs, np.int64)
        self.arguments = np.array([self.counters.ctypes.data, scratch, steps], np.uint64)

    def run(self, pool: Pool) -> None:
        address = ctypes.addressof(self.record)
        pool.run(address, self.arguments.tobytes(), self.programs)

    def ran_once(self) -> bool:
        right = bool((self.counters == 1).all())
        self.counters[:] = 0
        return right


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("programs", [1, 2, 3, 7, 64, 1000, 12_345])
def test_each_program_runs_once(
    library: Library, threads: Pool, number: int, programs: int
) -> None:
    with knobs.cpu.scope():
        knobs.cpu.num_threads = number
        for scratch in (0, 100, 1 << 20):
            grid = Grid(library, programs, scratch)
            for _ in range(5):
                grid.run(threads)
                assert grid.ran_once()


@pytest.mark.parametrize("number", [2, 3, 9])
def test_shared_grids_run_each_program_once(library: Library, eager: Pool, number: int) -> None:
    with knobs.cpu.scope():
        knobs.cpu.num_threads = number
        for programs in (*range(2, 40), 999):
            grid = Grid(library, programs, 64)
            for _ in range(20):
                known(grid.record)
                grid.run(eager)
                assert grid.ran_once()
    assert eager.workers == number - 1


def test_a_grid_of_more_than_32_bits_of_programs(library: Library, eager: Pool) -> None:
    """Its programs are claimed several at once."""
    seen: list[tuple[int, int]] = []
    entry = ENTRY_TYPE(lambda arguments, first, last, scratch: seen.append((first, last)))
    made = known(record(ctypes.cast(entry, ctypes.c_void_p).value or 0, 0))
    programs = (5 << 31) + 3
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 2
        eager.run(ctypes.addressof(made), b"", programs)
    seen.sort()
    assert seen[0][0] == 0
    assert seen[-1][1] == programs
    assert all(last == first for (_, last), (first, _) in itertools.pairwise(seen))


class Recorder:
    """An entry in Python that notes which thread ran which programs; what it raises goes here."""

    def __init__(self, work: Callable[[int], None] = lambda program: None) -> None:
        self.chunks: list[tuple[int, int, int]] = []
        self.problems: list[BaseException] = []
        self.work = work
        self.entry = ENTRY_TYPE(self._run)
        self.record = record(ctypes.cast(self.entry, ctypes.c_void_p).value or 0, 0)

    def _run(self, arguments: int, first: int, last: int, scratch: int) -> None:
        self.chunks.append((threading.get_native_id(), first, last))
        try:
            for program in range(first, last):
                self.work(program)
        except BaseException as problem:  # noqa: BLE001 - looked at by the test
            self.problems.append(problem)

    def run(self, pool: Pool, programs: int) -> None:
        pool.run(ctypes.addressof(self.record), b"", programs)
        assert self.problems == []

    def threads(self) -> set[int]:
        return {thread for thread, _, _ in self.chunks}

    def check(self, programs: int) -> None:
        """Each thread ascends, and the grid is covered."""
        for thread in self.threads():
            mine = [first for each, first, _ in self.chunks if each == thread]
            assert mine == sorted(mine)
        covered = sorted(p for _, first, last in self.chunks for p in range(first, last))
        assert covered == list(range(programs))


class Meeting:
    """Work that goes on once so many threads have come to it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.here: set[int] = set()
        self.complete = threading.Event()

    def __call__(self, program: int) -> None:
        self.here.add(threading.get_native_id())
        if len(self.here) == self.number:
            self.complete.set()
        assert self.complete.wait(60)


@pytest.mark.parametrize("number", [1, 2, 3, 6])
def test_threads_take_ascending_chunks(eager: Pool, number: int) -> None:
    entry = Recorder(Meeting(number))
    known(entry.record)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = number
        entry.run(eager, 100)
    entry.check(100)
    assert len(entry.threads()) == number


def test_a_thread_claims_more_and_more_and_less_towards_the_end(eager: Pool) -> None:
    entry = Recorder(Meeting(2))
    known(entry.record)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 2
        entry.run(eager, 10_000)
    for thread in entry.threads():
        sizes = [last - first for each, first, last in entry.chunks if each == thread]
        assert sizes[0] == 1
        assert all(later <= 8 * size for size, later in itertools.pairwise(sizes))
    for _, first, last in entry.chunks:
        assert last - first <= max(1, (10_000 - first) // 4)
    assert max(last - first for _, first, last in entry.chunks) > 500
    entry.check(10_000)


def test_what_was_quick_and_takes_long_now_is_claimed_bit_by_bit(eager: Pool) -> None:
    eager.limit("LONG", 0.004)
    entry = Recorder(lambda program: time.sleep(0.001))
    known(entry.record, 1e-3)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 2
        entry.run(eager, 200)
    entry.check(200)
    assert max(last - first for _, first, last in entry.chunks) <= 8


def tasks() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/task")}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads have no sets of CPUs")
def test_workers_keep_off_the_cpu_of_their_caller(library: Library, threads: Pool) -> None:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("there is one CPU")
    before, grid = tasks(), Grid(library, 100, steps=10_000)
    threads.limit("WORTH_WAKING", 0)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 3
        known(grid.record)
        grid.run(threads)
        workers = tasks() - before
        assert len(workers) == 2
        (left,) = {frozenset(os.sched_getaffinity(each)) for each in workers}
        assert left < allowed
        assert len(left) == len(allowed) - 1
        # A caller that may run on one CPU only leaves them as they are.
        os.sched_setaffinity(0, {min(left)})
        try:
            time.sleep(0.02)
            known(grid.record)
            grid.run(threads)
        finally:
            os.sched_setaffinity(0, allowed)
        assert {frozenset(os.sched_getaffinity(each)) for each in workers} == {left}


def test_small_work_stays_on_the_callers_thread(threads: Pool) -> None:
    entry = Recorder()
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 4
        known(entry.record, 1.0)
        threads.limit("WORTH_WAKING", 1e6)
        threads.limit("WORTH_SHARING", 1e6)
        entry.run(threads, 50)
    entry.check(50)
    assert entry.threads() == {threading.get_native_id()}
    assert threads.workers == 0


def test_what_is_left_is_shared_once_it_is_seen_to_take_long(threads: Pool) -> None:
    """Nothing is known of the kernel: the first program runs alone."""
    meeting = Meeting(2)
    entry = Recorder(lambda program: time.sleep(0.002) if program == 0 else meeting(program))
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 2
        entry.run(threads, 10)
    assert entry.chunks[0] == (threading.get_native_id(), 0, 1)
    entry.check(10)
    assert len(entry.threads()) == 2


def test_a_grid_that_was_quick_and_is_slow_now_is_shared(threads: Pool) -> None:
    """One program of it runs before that is noticed."""
    meeting = Meeting(2)
    entry = Recorder(lambda program: time.sleep(0.001) if program < 1 else meeting(program))
    known(entry.record, 1e-6)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 2
        entry.run(threads, 64)
    assert entry.chunks[0] == (threading.get_native_id(), 0, 1)
    entry.check(64)
    assert len(entry.threads()) == 2


def test_the_time_of_a_program_is_remembered(library: Library, threads: Pool) -> None:
    grid = Grid(library, 50, steps=10_000)
    assert cost(grid.record) == 0
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 1
        grid.run(threads)
        long = cost(grid.record)
        assert long > 0
        grid.arguments[2] = 1
        grid.run(threads)
        assert 0 < cost(grid.record) < long / 10
        # More than before counts half.
        known(grid.record, 1e-9)
        grid.run(threads)
        assert cost(grid.record) > 1e-3


def test_launches_from_four_threads(library: Library, eager: Pool) -> None:
    wrong: list[int] = []

    def launch(seed: int) -> None:
        for turn in range(500):
            programs = 1 + (seed * 131 + turn * 17) % 300
            grid = Grid(library, programs, 64 * seed)
            known(grid.record)
            grid.run(eager)
            if not grid.ran_once():
                wrong.append(programs)

    with knobs.cpu.scope():
        knobs.cpu.num_threads = 3
        context = [contextvars.copy_context() for _ in range(4)]
        callers = [
            threading.Thread(target=each.run, args=(launch, seed))
            for seed, each in enumerate(context)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert wrong == []


def test_more_grids_at_once_than_there_are_slots(eager: Pool) -> None:
    """Those that find none run on their caller's thread."""
    number = layout.Slot.COUNT + 4
    here = threading.Barrier(number)

    def work(program: int) -> None:
        if program == 0:
            here.wait(60)

    entry = Recorder(work)
    problems: list[BaseException] = []

    def launch() -> None:
        try:
            entry.run(eager, 3)
        except BaseException as problem:  # noqa: BLE001 - looked at below
            problems.append(problem)

    eager.start()
    callers = [threading.Thread(target=launch) for _ in range(number)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert problems == []
    ran = sorted(program for _, first, last in entry.chunks for program in range(first, last))
    assert ran == sorted([*range(3)] * number)


def test_a_program_may_launch_a_grid(library: Library, eager: Pool) -> None:
    inner = [Grid(library, 50) for _ in range(8)]

    def launch(program: int) -> None:
        known(inner[program].record)
        inner[program].run(eager)

    entry = Recorder(launch)
    known(entry.record)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 2
        entry.run(eager, 8)
    assert all(grid.ran_once() for grid in inner)


# ---- signals, memory, floating point -------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2])
def test_ctrl_c(library: Library, threads: Pool, number: int) -> None:
    def press() -> None:
        while not grid.counters[0]:
            time.sleep(0.001)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    grid = Grid(library, 1_000_000, steps=1_000_000)
    finger = threading.Thread(target=press)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = number
        finger.start()
        with pytest.raises(KeyboardInterrupt):
            grid.run(threads)
        finger.join()
        count = int(grid.counters.sum())
        # What was claimed was run, and nothing after that.
        assert 0 < count < 1_000_000
        assert (grid.counters[:count] == 1).all()
        time.sleep(0.05)
        assert grid.counters.sum() == count
        again = Grid(library, 1000)
        again.run(threads)
        assert again.ran_once()


def test_an_exception_of_a_signal_handler(library: Library, threads: Pool) -> None:
    def handler(number: int, frame: Any) -> None:
        raise LookupError("usr1")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        with knobs.cpu.scope():
            knobs.cpu.num_threads = 2
            with pytest.raises(LookupError, match="usr1"):
                Grid(library, 1_000_000, steps=1_000_000).run(threads)
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("number", [1, 2])
def test_scratch_memory_that_there_is_not(library: Library, threads: Pool, number: int) -> None:
    grid = Grid(library, 10)
    grid.record = record(library.address("entry"), 1 << 60)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = number
        with pytest.raises(MemoryError):
            grid.run(threads)
    assert not grid.counters.any()
    again = Grid(library, 10, 1 << 16)
    again.run(threads)
    assert again.ran_once()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="writes x86's control register")
def test_workers_flush_as_the_caller_does(eager: Pool) -> None:
    made = compile_and_link(HALVE, host_target(), ["halve", "control"])
    control = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(made.address("control"))
    subnormal = np.array([1e-40], np.float32).view(np.uint32)[0]
    before, ignored = ctypes.c_uint32(), ctypes.c_uint32()
    flushing = ctypes.c_uint32(0x1F80 | 0x8040)
    results = np.empty(3, np.float32)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 3
        for flush in (True, False, True):
            entry = known(record(made.address("halve"), 0))
            counter = np.zeros(1, np.int64)
            words = [subnormal, results.ctypes.data, counter.ctypes.data, 3]
            arguments = np.array(words, np.uint64).tobytes()
            results[:] = -1
            if flush:
                control(ctypes.addressof(before), ctypes.addressof(flushing))
            try:
                eager.run(ctypes.addressof(entry), arguments, 3)
            finally:
                if flush:
                    control(ctypes.addressof(ignored), ctypes.addressof(before))
            bits = results.view(np.uint32)
            assert (bits == 0).all() if flush else (bits == subnormal // 2).all()


# ---- processes -----------------------------------------------------------------------------------

PRELUDE = """
import ctypes, os, sys, time, threading
os.environ["TRITIUM_NUM_THREADS"] = "2"
from tritium.runtime.pool import ENTRY_TYPE, POOL, record
def launch(number):
    names = set()
    complete = threading.Event()
    def entry(arguments, first, last, scratch):
        names.add(threading.get_native_id())
        time.sleep(0.001)
        if len(names) == number:
            complete.set()
        if first:
            complete.wait(60)
    native = ENTRY_TYPE(entry)
    made = record(ctypes.cast(native, ctypes.c_void_p).value, 0)
    POOL.run(ctypes.addressof(made), b"", 100)
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
        print("child", POOL.workers, launch(2), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print("parent", launch(2), flush=True)
    """
    assert run(script) == "parent 2\nchild 0 2\nparent 2\n"


def test_workers_are_joined_at_exit_and_later_launches_still_run() -> None:
    script = """
    import atexit
    def tasks():
        return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
    # NumPy has threads of its own.
    before = tasks()
    # Functions registered last run first.
    atexit.unregister(POOL.close)
    atexit.register(lambda: print(POOL.workers, launch(1), tasks() - before))
    atexit.register(POOL.close)
    print(launch(2), POOL.workers)
    """
    assert run(script) == "2 1\n0 1 0\n"


def test_a_daemon_thread_launches_while_the_process_ends() -> None:
    script = """
    def forever():
        while True:
            launch(1)
    threading.Thread(target=forever, daemon=True).start()
    print(launch(2))
    time.sleep(0.05)
    """
    assert run(script) == "2\n"


def test_where_there_is_no_pool(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostcode, "SUPPORTED", False)
    made = Pool()
    grid = Grid(library, 100, 1000)
    grid.run(made)
    assert grid.ran_once()
    assert made.workers == 0


def test_the_builtin_refuses_what_it_cannot_read(library: Library, threads: Pool) -> None:
    threads.start()
    grid = Grid(library, 3)
    address = ctypes.addressof(grid.record)
    for given in (
        ("a", b"", 1, 1),
        (1 << 70, b"", 1, 1),
        (address, "text", 1, 1),
        (address, b"", None, 1),
        (address, b"", 1, 1.5),
    ):
        with pytest.raises((TypeError, OverflowError)):
            threads._run(*given)
    grid.run(threads)
    assert grid.ran_once()


def test_a_worker_that_reads_of_the_next_grid_has_room_for_a_waiter() -> None:
    """Between its looks at a slot a thread may be held up until the slot has another grid.

    Here the slot's scratch memory is that of a grid without any, the rest that of programs that
    wait: what is written for these before a claim must not need what wasn't allocated.
    """

    def write(module: Any, target: Any) -> tuple[str, ...]:
        needed = pool.write(module, target, block=hostcode.sig_block(), faults=hostcode.faults())
        b, (memory, worker) = begin(
            module, target, "probe", void, [(ptr, "pool"), (ptr, "worker")], exported=True
        )
        b.put(b.gep(memory, layout.Pool.SLOTS), layout.Slot.CONTROL, b.control_register())
        b.call("help", void, (memory, worker))
        b.ret()
        return needed

    library = hostcode.load("pool of a test", write, ["probe"])
    ran: list[tuple[int, int]] = []
    entry = ENTRY_TYPE(lambda _, first, last, __: ran.append((first, last)))
    memory = np.zeros(layout.POOL_SIZE // layout.WORD + 8, np.uint64)
    memory = memory[-(memory.ctypes.data // layout.WORD) % 8 :]
    slot = memory[layout.Pool.SLOTS // layout.WORD :]
    given = {
        layout.Slot.TICKET: 5 << 32,
        layout.Slot.ENTRY: ctypes.cast(entry, ctypes.c_void_p).value,
    }
    ones = ("UNITS", "UNIT", "PROGRAMS", "HELPERS", "LEAST", "SHARE", "WAITS")
    given.update({getattr(layout.Slot, name): 1 for name in ones})
    for field, value in given.items():
        slot[field // layout.WORD] = value
    memory[layout.Pool.OPEN // layout.WORD] = 1
    worker = memory.ctypes.data + layout.Worker.FIRST
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    kind(library.address("probe"))(memory.ctypes.data, worker)
    assert ran == [(0, 1)]
    assert slot[layout.Slot.DONE // layout.WORD] == 1
