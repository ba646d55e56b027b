"""Kernels with atomic operations: in program order, between programs, and programs that wait."""

from __future__ import annotations

import linecache
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frontend.kernels import ir

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.diagnostics import TritiumError
from tritium.interp import grid as grids
from tritium.interp import run_ir
from tritium.runtime.pool import POOL

EXECUTORS = ["cpu", "interp"]


def on(kernel: Any, executor: str) -> Any:
    return kernel if executor == "cpu" else kernel.interpret


@tritium.jit
def collide(x, out, old, n: tl.constexpr):
    at = tl.arange(0, n)
    found = tl.atomic_add(out + at % 3, tl.load(x + at), mask=at != 2)
    tl.store(old + at, found)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int64"])
def test_lanes_that_share_an_address_take_turns(executor: str, dtype: str) -> None:
    x = np.arange(1, 11).astype(dtype)
    out, old = np.zeros(3, dtype), np.full(10, 7, dtype)
    on(collide, executor)[(1,)](x, out, old, n=10)
    want, found = [0, 0, 0], []
    for lane in range(10):
        found.append(0 if lane == 2 else want[lane % 3])
        want[lane % 3] += 0 if lane == 2 else int(x[lane])
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(old, found)


@tritium.jit
def in_order(x, y, z, n: tl.constexpr):
    at = tl.arange(0, n)
    before = tl.load(x + at)
    tl.store(y + at, at)
    tl.atomic_add(x + at, 100)
    found = tl.atomic_xchg(y + (n - 1 - at), -1)
    tl.store(z + at, before)
    tl.store(z + n + at, tl.load(x + at))
    tl.store(z + 2 * n + at, found)
    tl.store(z + 3 * n + at, tl.load(y + at))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_stands_before_has_taken_effect(executor: str) -> None:
    n = 37
    at = np.arange(n, dtype=np.int32)
    x, y, z = at * 2, np.zeros(n, np.int32), np.zeros((4, n), np.int32)
    on(in_order, executor)[(1,)](x, y, z, n=n)
    np.testing.assert_array_equal(z, [at * 2, at * 2 + 100, at[::-1], at * 0 - 1])


@tritium.jit
def guarded(sequence, x, out, n: tl.constexpr):
    at = tl.arange(0, n)
    first = tl.atomic_load(sequence)
    found = tl.load(x + at)
    again = tl.atomic_load(sequence)
    tl.store(out + at, tl.where(first == again, found, -1))


def test_loads_stay_between_atomic_loads() -> None:
    x, out = np.arange(40, dtype=np.int32), np.zeros(40, np.int32)
    sequence = np.zeros(1, np.int32)
    sequence.flags.writeable = False
    made = guarded[(1,)](sequence, x, out, n=40)
    np.testing.assert_array_equal(out, x)
    wanted = ("atomic.load", "keep %found of memory.load", "memory.store")
    steps = [each for line in made.asm["nests"].splitlines() for each in wanted if each in line]
    assert steps == [wanted[0], wanted[1], wanted[0], wanted[2]]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_arrays_that_overlap(executor: str) -> None:
    n = 37
    at = np.arange(n, dtype=np.int32)
    x, z = at * 2, np.zeros((4, n), np.int32)
    on(in_order, executor)[(1,)](x, x, z, n=n)
    np.testing.assert_array_equal(z, [at * 2, at * 0 - 1, at[::-1] + 100, at * 0 - 1])


@tritium.jit
def totals(x, out, n: tl.constexpr):
    me = tl.program_id(0)
    at = tl.arange(0, n)
    values = tl.load(x + me * n + at)
    tl.atomic_add(out + at, values)
    tl.atomic_max(out + n, tl.max(values))
    (out + n + 1).atomic_min(tl.min(values))
    tl.atomic_or(out + n + 2, 1 << (me % 30), sem="relaxed", scope="sys")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_many_programs_change_the_same(executor: str) -> None:
    programs, n = (2000, 12) if executor == "cpu" else (60, 12)
    x = np.random.default_rng(1).integers(-1000, 1000, (programs, n)).astype(np.int32)
    out = np.zeros(n + 3, np.int32)
    on(totals, executor)[(programs,)](x, out, n=n)
    np.testing.assert_array_equal(out[:n], x.sum(0))
    assert [*out[n:]] == [x.max(), x.min(), (1 << min(programs, 30)) - 1]


@tritium.jit
def maximum_by_cas(x, out):
    """The largest, as a loop that compares and exchanges."""
    mine = tl.load(x + tl.program_id(0))
    seen = tl.load(out)
    going = seen < mine
    while going:
        found = tl.atomic_cas(out, seen, mine)
        going = (found != seen) & (found < mine)
        seen = found


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_compare_and_exchange(executor: str, dtype: str) -> None:
    x = np.random.default_rng(2).permutation(300).astype(dtype)
    out = np.zeros(1, dtype)
    on(maximum_by_cas, executor)[(300,)](x, out)
    assert out[0] == 299


# ---- programs that wait --------------------------------------------------------------------------


@tritium.jit
def spin(lock, total, more, n: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    at = tl.arange(0, n)
    tl.store(total, tl.load(total) + 1)
    tl.store(more + at, tl.load(more + at) + at)
    tl.atomic_xchg(lock, 0)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_spin_lock(executor: str) -> None:
    lock, total, more = (np.zeros(n, np.int32) for n in (1, 1, 8))
    on(spin, executor)[(1000,)](lock, total, more, n=8)
    assert (lock[0], total[0]) == (0, 1000)
    np.testing.assert_array_equal(more, 1000 * np.arange(8))


@tritium.jit
def barrier(counter, out, n, rounds):
    me = tl.program_id(0)
    for r in range(rounds):
        tl.store(out + r * n + me, r + 1)
        tl.atomic_add(counter, 1)
        while tl.atomic_load(counter) < n * (r + 1):
            pass
        seen = tl.load(out + r * n + (me + 1) % n)
        tl.store(out + (rounds + r) * n + me, seen)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_grid_barrier(executor: str) -> None:
    counter, out = np.zeros(1, np.int32), np.zeros((2, 32, 64), np.int32)
    on(barrier, executor)[(64,)](counter, out, 64, 32)
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(1, 33)[:, None], out.shape))


@tritium.jit
def look_back(x, flags, sums, prefixes, out):
    """An exclusive prefix sum: each program adds up what those before it have left."""
    me = tl.program_id(0)
    mine = tl.load(x + me)
    tl.store(sums + me, mine)
    tl.atomic_xchg(flags + me, 1)
    before = mine * 0
    place = me - 1
    while place >= 0:
        flag = tl.atomic_load(flags + place)
        if flag == 2:
            before += tl.load(prefixes + place)
            place = -1
        elif flag == 1:
            before += tl.load(sums + place)
            place -= 1
    tl.store(prefixes + me, before + mine)
    tl.atomic_xchg(flags + me, 2)
    tl.store(out + me, before)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_look_back(executor: str) -> None:
    n = 10_000
    x = np.random.default_rng(3).integers(0, 100, n).astype(np.int32)
    flags, sums, prefixes, out = (np.zeros(n, np.int32) for _ in range(4))
    on(look_back, executor)[(n,)](x, flags, sums, prefixes, out)
    np.testing.assert_array_equal(out, np.cumsum(x) - x)


@tritium.jit
def two_flags(flags, out):
    """Two places are polled in turn; a later program writes them."""
    me = tl.program_id(0)
    if me == 0:
        while (tl.atomic_load(flags) == 0) | (tl.atomic_load(flags + 1) == 0):
            pass
    else:
        tl.atomic_store(flags + me - 1, 1)
    tl.store(out + me, 1)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_two_places_polled_in_turn(executor: str) -> None:
    flags, out = np.zeros(2, np.int32), np.zeros(3, np.int32)
    on(two_flags, executor)[(3,)](flags, out)
    assert out.all()


@tritium.jit
def polls(flag, out):
    me = tl.program_id(0)
    if me == 0:
        tl.store(out, tl.atomic_poll(flag, 5))
    else:
        tl.atomic_store(flag, 5)


@tritium.jit
def polls_with_a_timeout(flag):
    tl.atomic_poll(flag, 5, timeout_ns=10)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_poll(executor: str) -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
    on(polls, executor)[(2,)](flag, out)
    assert out[0] == 1
    with pytest.raises(TritiumError, match="atomic_poll has no timeout"):
        on(polls_with_a_timeout, executor)[(1,)](flag)


@tritium.jit
def takes(counter, out, n):
    """A loop over pieces of work: nobody is waited for."""
    done = 0
    while done < n:
        tl.store(out + tl.atomic_add(counter, 1), 1)
        done += 1


@tritium.jit
def takes_to_the_end(counter, out, n):
    """A queue of work: whoever is done takes the next piece, and nobody waits for anybody."""
    piece = tl.atomic_add(counter, 1)
    while piece < n:
        tl.store(out + piece, tl.load(out + piece) + 1)
        piece = tl.atomic_add(counter, 1)


def test_which_loops_wait() -> None:
    lock, out = np.zeros(1, np.int32), np.zeros(10, np.int32)

    def waits(kernel: Any, *arguments: Any) -> bool:
        compiled = kernel.warmup(lock, out, *arguments, grid=(1,))
        return bool(compiled.code.version(True).kernel.waits)

    assert waits(never)
    assert waits(barrier, 1, 1)
    assert not waits(takes, 10)
    assert not waits(takes_to_the_end, 10)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_queue_of_work(executor: str) -> None:
    """More programs than threads there may be for programs that wait."""
    pieces = 20_000 if executor == "cpu" else 6000
    counter, out = np.zeros(1, np.int32), np.zeros(pieces, np.int32)
    before = POOL.workers
    on(takes_to_the_end, executor)[(5000,)](counter, out, pieces)
    assert counter[0] == pieces + 5000
    assert (out == 1).all()
    assert POOL.workers <= max(before, os.cpu_count() or 1)


@tritium.jit
def a_bit_of_a_count(count, out, mine):
    if tl.program_id(0) == 0:
        while tl.atomic_add(count, 2) & 1 == 0:
            pass
    else:
        tl.atomic_or(count, 1)
    tl.atomic_add(out, 1)


@tritium.jit
def away_from_the_bound(count, out, mine):
    if tl.program_id(0) == 0:
        while tl.atomic_add(count, 1) >= 0:
            pass
    else:
        tl.atomic_xchg(count, -(2**40))
    tl.atomic_add(out, 1)


@tritium.jit
def after_a_bound_that_moves(count, out, mine):
    if tl.program_id(0) == 0:
        bound = 1
        while tl.atomic_add(count, 1) < bound:
            bound += 1
    else:
        tl.atomic_add(count, 2**40)
    tl.atomic_add(out, 1)


@tritium.jit
def through_memory(flag, out, mine):
    if tl.program_id(0) == 0:
        while tl.load(mine) == 0:
            tl.store(mine, tl.load(flag, volatile=True))
    else:
        tl.atomic_xchg(flag, 1)
    tl.atomic_add(out, 1)


@tritium.jit
def through_memory_by_a_branch(flag, out, mine):
    if tl.program_id(0) == 0:
        while tl.load(mine) == 0:
            if tl.atomic_load(flag) == 1:
                tl.store(mine, 1)
    else:
        tl.atomic_xchg(flag, 1)
    tl.atomic_add(out, 1)


@pytest.mark.parametrize("executor", ["cpu", "eager", "ir"])
@pytest.mark.parametrize(
    "kernel",
    [
        a_bit_of_a_count,
        away_from_the_bound,
        after_a_bound_that_moves,
        through_memory,
        through_memory_by_a_branch,
    ],
)
def test_what_only_another_program_ends(kernel: Any, executor: str) -> None:
    """The first of the programs waits, and nobody takes the second one at the same time."""
    flag, out, mine = np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.int64)
    if executor == "cpu":
        with knobs.cpu.scope():
            knobs.cpu.num_threads = 1
            kernel[(2,)](flag, out, mine)
    else:
        step_by_step(kernel, executor, 2, flag, out, mine)
    assert out[0] == 2


@tritium.jit
def never(lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, 1)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread that another test has left may write what programs poll."""
    monkeypatch.setattr(grids, "outsiders", lambda launching, pages: False)


@pytest.mark.usefixtures("alone")
def test_nobody_opens_the_lock() -> None:
    lock, out = np.ones(1, np.int32), np.zeros(1, np.int32)
    with pytest.raises(TritiumError) as caught:
        never.interpret[(3,)](lock, out)
    assert caught.value.code == "E0702"
    assert "while tl.atomic_cas" in linecache.getline(__file__, caught.value.loc.line)
    assert out[0] == 0


def test_a_process_without_other_threads_is_told(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(
        "import numpy as np\n"
        "from tests.runtime.test_atomics import never\n"
        "never.interpret[(3,)](np.ones(1, np.int32), np.zeros(1, np.int32))\n"
    )
    paths = os.pathsep.join(map(str, sys.path))
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert "E0702" in done.stderr


@tritium.jit
def counts_and_polls(flag, out):
    """The state is another one in each pass: nobody can tell that it would never end."""
    passes = 0
    while tl.atomic_load(flag) == 0:
        passes += 1
    tl.store(out, passes)


@tritium.jit
def many_flags(flags, out, n):
    """More places than anybody would keep; the last program writes one after the other."""
    me = tl.program_id(0)
    if me < 2:
        seen = 0
        while seen < n:
            seen = 0
            for i in range(n):
                seen += tl.atomic_load(flags + i)
    else:
        for i in range(n):
            tl.atomic_store(flags + i, 1)
    tl.store(out + me, 1)


@tritium.jit
def one_flag_after_the_other(flags, out, n):
    """Each pass polls another place."""
    me = tl.program_id(0)
    if me < 2:
        i, seen = 0, 0
        while seen < 1:
            i = (i + 1) % n
            seen = tl.load(flags + i, volatile=True)
    else:
        tl.store(flags + n - 1, 1)
    tl.store(out + me, 1)


def step_by_step(kernel: Any, executor: str, programs: int, *arguments: Any) -> None:
    """Launch in eager mode, or from tile IR."""
    if executor == "eager":
        kernel.interpret[(programs,)](*arguments)
    else:
        run_ir(ir(kernel, *arguments), arguments, (programs,))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("executor", ["eager", "ir"])
@pytest.mark.parametrize("kernel", [many_flags, one_flag_after_the_other])
def test_any_number_of_places_polled(kernel: Any, executor: str) -> None:
    flags, out = np.zeros(300, np.int32), np.zeros(3, np.int32)
    step_by_step(kernel, executor, 3, flags, out, 300)
    assert out.all()
    # Without the one that writes.
    flags[:], out[:] = 0, 0
    with pytest.raises(TritiumError) as caught:
        step_by_step(kernel, executor, 2, flags, out, 300)
    assert caught.value.code == "E0702"
    assert not out.any()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_ctrl_c_ends_what_nobody_can_tell() -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
    with interrupted_after(0.5), pytest.raises(KeyboardInterrupt):
        counts_and_polls.interpret[(3,)](flag, out)
    assert out[0] == 0


def test_another_thread_may_open_the_lock() -> None:
    lock, out = np.ones(1, np.int32), np.zeros(1, np.int32)
    late = threading.Timer(0.5, lock.__setitem__, [0, 0])
    late.start()
    never.interpret[(1,)](lock, out)
    late.join()
    assert out[0] == 1


# ---- programs that don't wait --------------------------------------------------------------------


@tritium.jit
def running_maximum(x, out, n):
    """Most updates leave memory as it is."""
    for i in range(n):
        tl.atomic_max(out, tl.load(x + i))
        tl.atomic_or(out + 1, 1)


@tritium.jit
def reads_the_same(x, out, n):
    total = 0
    i = 0
    while i < n:
        total += tl.load(x, volatile=True) + tl.atomic_load(x + 1)
        i += 1
    tl.store(out, total)


@tritium.jit
def attempts(lock, out, n):
    """Gives up in the end."""
    tries = 0
    while (tries < n) & (tl.atomic_cas(lock, 0, 1) != 0):
        tries += 1
    tl.store(out, tries)


@tritium.jit
def attempts_in_turn(lock, out, n):
    """The state of the inner loop is the same each time that it is begun."""
    total = 0
    for _ in range(n):
        tries = 0
        while (tries < 2) & (tl.atomic_cas(lock, 0, 1) != 0):
            tries += 1
        total += 1
    tl.store(out, total)


@tritium.jit
def attempts_that_forget_the_round(lock, out, n):
    """All variables are as they were in each round: only its iterator knows which one it is."""
    for _ in range(n):
        tries, _ = 0, 0
        while (tries < 3) & (tl.atomic_cas(lock, 0, 1) != 0):
            tries += 1
    tl.store(out, n)


@tritium.jit
def three_attempts(lock):
    tries = 0
    while (tries < 3) & (tl.atomic_cas(lock, 0, 1) != 0):
        tries += 1
    return tries


@tritium.jit
def attempts_in_an_expression(lock, out, n):
    for _ in range(n):
        _, seen = 0, 0
        seen += 3 + three_attempts(lock) * 2
    tl.store(out, n)


WANTED = {
    running_maximum: lambda n: 7,
    reads_the_same: lambda n: 14 * n,
    attempts: lambda n: n,
    attempts_in_turn: lambda n: n,
    attempts_that_forget_the_round: lambda n: n,
    attempts_in_an_expression: lambda n: n,
}


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("executor", ["eager", "ir"])
@pytest.mark.parametrize(("programs", "n"), [(1, 2500), (3, 200)])
@pytest.mark.parametrize("kernel", WANTED)
def test_what_does_not_wait_ends(
    kernel: Any, programs: int, n: int, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("nobody is to wait"))
    x, out = np.full(n, 7, np.int32), np.zeros(2, np.int32)
    step_by_step(kernel, executor, programs, x, out, n)
    assert out[0] == WANTED[kernel](n)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kernel", [running_maximum, reads_the_same])
def test_what_does_not_wait_is_not_suspended(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "ProgramThread", lambda **given: pytest.fail("one is suspended"))
    x, out = np.full(50, 7, np.int32), np.zeros(2, np.int32)
    kernel.interpret[(3,)](x, out, 50)
    assert out[0] in (7, 700)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
@pytest.mark.parametrize("executor", EXECUTORS)
def test_ctrl_c_ends_a_deadlock(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Somebody else might open the lock.
    monkeypatch.setattr(grids, "outsiders", lambda launching, pages: True)
    lock, out = np.ones(1, np.int32), np.zeros(1, np.int32)
    with interrupted_after(0.5), pytest.raises(KeyboardInterrupt):
        on(never, executor)[(3,)](lock, out)
    assert out[0] == 0


@tritium.jit
def stores_some(p, m, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.atomic_store(p + at, at, mask=at < m)
    tl.atomic_store(p + n, m, mask=m > 2)


def test_masked_stores_have_no_result() -> None:
    p = np.full(9, -1, np.int32)
    made = stores_some[(1,)](p, 5, n=8)
    assert p.tolist() == [0, 1, 2, 3, 4, -1, -1, -1, 5]
    assert "phi i32" not in made.asm["llir"]
