"""Programs that wait for each other, on as many threads as that takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.diagnostics import TritiumError
from tritium.runtime import hostcode, native
from tritium.runtime.pool import POOL, Pool

pytestmark = pytest.mark.skipif(not hostcode.SUPPORTED, reason="there are no threads here")


@tritium.jit
def barrier(flags, out, n: tl.constexpr):
    """Every program waits for all."""
    me = tl.program_id(0)
    tl.store(flags + me, 1)
    at = tl.arange(0, n)
    seen = 0
    while seen < n:
        seen = tl.sum(tl.load(flags + at, volatile=True))
    tl.store(out + me, seen)


@tritium.jit
def chain(flags, out):
    """Every program waits for the one before it."""
    me = tl.program_id(0)
    if me > 0:
        while tl.load(flags + me - 1, volatile=True) == 0:
            pass
        tl.store(out + me, tl.load(out + me - 1) + 1)
    tl.store(flags + me, 1)


@tritium.jit
def backwards(flags, out):
    """Every program waits for the one after it."""
    me, count = tl.program_id(0), tl.num_programs(0)
    if me < count - 1:
        while tl.load(flags + me + 1, volatile=True) == 0:
            pass
    tl.store(out + me, me)
    tl.store(flags + me, 1)


@tritium.jit
def past_the_caches(flags, out):
    me = tl.program_id(0)
    tl.store(flags + me, 1)
    while tl.load(flags + 1 - me, cache_modifier=".cv") == 0:
        pass
    tl.store(out + me, 2)


@tritium.jit
def for_ever(flags, out):
    while tl.load(flags, volatile=True) == 0:
        pass
    tl.store(out + tl.program_id(0), 1)


def memory(programs: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(programs, np.int32), np.full(programs, -1, np.int32)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("programs", [1, 2, 8, 64])
def test_all_wait_for_all(programs: int, threads: int) -> None:
    with knobs.cpu.scope():
        knobs.cpu.num_threads = threads
        for _ in range(3):
            flags, out = memory(programs)
            barrier[(programs,)](flags, out, n=programs)
            assert (out == programs).all()


def test_each_waits_for_the_one_before() -> None:
    flags, out = memory(20_000)
    out[0] = 0
    chain[(20_000,)](flags, out)
    np.testing.assert_array_equal(out, np.arange(20_000))


@pytest.mark.parametrize("programs", [2, 100])
def test_each_waits_for_the_one_after(programs: int) -> None:
    flags, out = memory(programs)
    backwards[(programs,)](flags, out)
    np.testing.assert_array_equal(out, np.arange(programs))


@pytest.mark.parametrize(
    "kernel", [past_the_caches, past_the_caches.interpret], ids=["cpu", "interp"]
)
def test_loads_past_the_caches(kernel: Any) -> None:
    flags, out = memory(2)
    kernel[(2,)](flags, out)
    assert (out == 2).all()


def test_launches_at_the_same_time() -> None:
    def launch() -> None:
        flags, out = memory(8)
        barrier[(8,)](flags, out, n=8)
        results.append(bool((out == 8).all()))

    results: list[bool] = []
    several = [threading.Thread(target=launch) for _ in range(20)]
    for each in several:
        each.start()
    for each in several:
        each.join()
    assert results == [True] * 20


def test_what_the_host_writes_ends_a_wait() -> None:
    flags, out = memory(3)
    timer = threading.Timer(0.1, lambda: flags.__setitem__(0, 1))
    timer.start()
    for_ever[(3,)](flags, out)
    assert (out == 1).all()
    timer.join()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    made = Pool(most=8, PATIENCE=0.05)
    monkeypatch.setattr(native, "POOL", made)
    yield made
    made.close()


def test_more_than_can_run_at_once(small: Pool) -> None:
    flags, out = memory(32)
    with pytest.raises(TritiumError) as caught:
        barrier.run(flags, out, grid=(32,), n=32)
    assert caught.value.code == "E0523"
    assert "8 run at once" in caught.value.message
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    assert (out == -1).all()
    assert flags.sum() == 8
    # Those that wait for the ones before them do with fewer, and the pool is as it was.
    flags, out = memory(5000)
    out[0] = 0
    chain.run(flags, out, grid=(5000,))
    np.testing.assert_array_equal(out, np.arange(5000))
    flags, out = memory(8)
    barrier.run(flags, out, grid=(8,), n=8)
    assert (out == 8).all()
    assert small.workers == 7


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
@pytest.mark.parametrize("programs", [1, 2, 40])
def test_ctrl_c(programs: int) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    flags, out = memory(programs)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            for_ever[(programs,)](flags, out)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (out == -1).all()
    flags[0] = 1
    for_ever[(programs,)](flags, out)
    assert (out == 1).all()


def test_a_process_ends_though_programs_wait(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(
        textwrap.dedent(
            """
            import threading, time
            import numpy as np
            from tests.runtime.test_waiting import for_ever, memory

            threading.Thread(target=for_ever[(5,)], args=memory(5), daemon=True).start()
            time.sleep(1.0)
            print("ends")
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
    )
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr


def test_nobody_waits_for_long_where_nobody_has_to() -> None:
    """Flags that are there already: no threads are added."""
    flags, out = memory(200)
    flags[:] = 1
    for_ever[(200,)](flags, out)
    before = POOL.workers
    time.sleep(0.01)
    out[:] = -1
    for_ever[(200,)](flags, out)
    assert (out == 1).all()
    assert POOL.workers == before
