"""Native launches and what ends: objects, threads, processes; signals that come meanwhile."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from tests.runtime.adding import Adding

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.diagnostics import TritiumError
from tritium.runtime import hostcode
from tritium.runtime.compiled import CompiledKernel

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(not hostcode.SUPPORTED, reason="there is no native launch here")
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


# ---- objects and memory --------------------------------------------------------------------------


def test_a_launch_that_outlives_its_kernel() -> None:
    adding = Adding()
    launch = adding.kernel[(4,)]
    x, y, out = adding.x, adding.y, adding.out
    dead = weakref.ref(adding.kernel)
    del adding
    gc.collect()
    out[:] = 0
    launch(x, y, out, 64, BLOCK=16)
    assert (out == x + y).all()
    del launch
    gc.collect()
    assert dead() is None


def test_a_grid_function_that_does_away_with_everything(adding: Adding) -> None:
    other = Adding()

    def grid(values: dict[str, Any]) -> tuple[int]:
        adding.kernel.kernels.clear()
        gc.collect()
        assert other.natively()
        return (4,)

    def launch() -> Any:
        return adding.kernel[grid](adding.x, adding.y, adding.out, 60, BLOCK=16)

    for _ in range(5):
        adding.out[:] = 0
        assert isinstance(launch(), CompiledKernel)
        assert (adding.out[:60] == adding.host[0][:60] + 2).all()


def resident() -> int:
    """The bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def references(adding: Adding) -> list[int]:
    gc.collect()
    objects_ = [None, True, adding.x, adding.out, adding.launch(), adding.kernel, (4,), 60]
    total = getattr(sys, "gettotalrefcount", lambda: 0)()
    return [*map(sys.getrefcount, objects_), total]


@pytest.mark.parametrize("wrap", [np.asarray, pytest.param("torch", marks=needs_torch)])
def test_a_million_launches_leave_nothing_behind(wrap: Any) -> None:
    adding = Adding(wrap=torch.from_numpy if wrap == "torch" else wrap)
    kernel, x, y, out = adding.kernel, adding.x, adding.y, adding.out
    by_function = kernel[lambda values: (values["n"] // 16,)]

    def launch(count: int) -> None:
        for number in range(count):
            kernel[(number & 3,)](x, y, out, 64, BLOCK=16)
            if number % 16 == 0:
                by_function(x, y, out, 64, BLOCK=16)

    launch(1000)
    before, memory = references(adding), resident()
    calls = kernel._fast.launches_by_python
    launch(1_000_000)
    assert kernel._fast.launches_by_python == calls
    after = references(adding)
    assert all(abs(one - other) <= 50 for one, other in zip(before, after)), (before, after)
    assert resident() - memory < 2 << 20


def test_errors_leave_nothing_behind(adding: Adding) -> None:
    def fail() -> None:
        for grid, args in (
            ((1,), (adding.x, adding.y, adding.out)),
            ((1,), (adding.x, adding.y, [], 3)),
            ((-1,), (adding.x, adding.y, adding.out, 3)),
            (lambda values: values["none"], (adding.x, adding.y, adding.out, 3)),
            (lambda values: (1.5,), (adding.x, adding.y, adding.out, 3)),
        ):
            with pytest.raises((TritiumError, KeyError)):
                adding.kernel[grid](*args, BLOCK=16)

    for _ in range(20):
        fail()
    before = references(adding)
    for _ in range(200):
        fail()
    after = references(adding)
    assert all(abs(one - other) <= 20 for one, other in zip(before[:-1], after[:-1]))


# ---- threads, signals, processes -----------------------------------------------------------------


def test_a_million_launches_from_four_threads() -> None:
    adding = Adding()
    kernel = adding.kernel
    wrong: list[str] = []
    start = threading.Barrier(4)

    def launch(seed: int) -> None:
        x = np.full(64, seed, np.float32)
        y, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        start.wait()
        for number in range(250_000):
            place = number % 60
            out[place] = -1
            kernel[(4,)](x, y, out, 60, BLOCK=16)
            if out[place] != seed + place:
                wrong.append(f"{seed}: {number}")

    memory = resident()
    threads = [threading.Thread(target=launch, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert kernel._fast.launches_by_python == 2
    assert resident() - memory < 8 << 20


def test_settings_change_while_other_threads_launch() -> None:
    adding = Adding()
    kernel = adding.kernel
    stop = threading.Event()
    problems: list[BaseException] = []

    def launch(seed: int) -> None:
        try:
            x = np.full(64, seed, np.float32)
            y, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
            while not stop.is_set():
                out[:] = -1
                kernel[(4,)](x, y, out, 64, BLOCK=16)
                assert (out == x + y).all()
        except BaseException as problem:  # noqa: BLE001 - looked at below
            problems.append(problem)

    threads = [threading.Thread(target=launch, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(100):
        os.environ["TRITIUM_DEBUG"] = str(turn & 1)
        knobs.cpu.num_threads = 1 + turn % 3
        assert adding.launch().options.debug == bool(turn & 1)
        if turn % 10 == 0:
            kernel.kernels.clear()
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []


@tritium.jit
def slow(out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        total += tl.exp(total * 0.5 + i)
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total)


def test_ctrl_c() -> None:
    kernel = tritium.jit(slow.fn)
    out = np.zeros(64, np.float32)
    for _ in range(3):
        kernel[(4,)](out, 16, BLOCK=16)
    before = kernel._fast.launches_by_python
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    large = np.zeros(16 * 4096, np.float32)
    references = sys.getrefcount(large)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernel[(4096,)](large, 1_600_000, BLOCK=16)
    timer.join()
    assert kernel._fast.launches_by_python == before
    assert sys.getrefcount(large) == references
    kernel[(4,)](out, 16, BLOCK=16)


PRELUDE = """
import atexit, os, sys
import numpy as np
import tritium
import tritium.language as tl

@tritium.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs, offs < n) + tl.load(y + offs, offs < n), offs < n)

def launch(wrap=np.asarray, count=3):
    x, y, out = (wrap(np.full(64, i, np.float32)) for i in range(3))
    for _ in range(count):
        add[(4,)](x, y, out, 64, BLOCK=16)
    return int(out[0]), add._fast.launches_by_python
"""


def run(script: str, tmp_path: Any) -> str:
    file = tmp_path / "script.py"
    file.write_text(PRELUDE + textwrap.dedent(script))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_process_launches(tmp_path: Any) -> None:
    script = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    print(launch(), flush=True)
    child = os.fork()
    if child == 0:
        os.environ["TRITIUM_DEBUG"] = "1"
        print("child", launch(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(launch())
    """
    assert run(script, tmp_path) == "(1, 2)\nchild (1, 3)\n(1, 2)\n"


def test_launches_while_the_process_ends(tmp_path: Any) -> None:
    script = """
    class Last:
        def __init__(self):
            self.launch = add[(4,)]
            self.arrays = [np.full(64, i, np.float32) for i in range(3)]
        def __del__(self):
            self.launch(*self.arrays, 64, BLOCK=16)
            os.write(1, b"%d\\n" % self.arrays[2][0])
    launch()
    last = Last()
    atexit.register(lambda: print(launch(count=1), flush=True))
    """
    assert run(script, tmp_path) == "(1, 2)\n1\n"


@needs_torch
def test_torch_that_is_loaded_late(tmp_path: Any) -> None:
    script = """
    print(launch())
    assert "torch" not in sys.modules
    import torch
    print(launch(torch.from_numpy))
    """
    assert run(script, tmp_path) == "(1, 2)\n(1, 3)\n"
