"""Break the compile cache in every way that can be thought of, and count what it costs.

    python scripts/cache_faults.py                # all of it, 200 kills: a few minutes
    python scripts/cache_faults.py --runs 10      # less of everything
    python scripts/cache_faults.py kills errors   # some of it

Each run is a process that launches three kernels whose results are known, with a cache in which
something goes wrong: the process is killed at some time or before some system call, calls fail,
the disk is full or read-only, two processes meet, entries are damaged. After each the cache is
examined, and a process that is left alone must get right results. Counted are results that were
``wrong``, entries that are ``damaged`` and nobody's fault, entries that were there before and are
``lost``, and processes that ``failed``; all of these must be 0. Needs fork; the disks are left out
where this user can't mount any.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tritium
import tritium.language as tl
from tritium.backends import cpu, llvm
from tritium.frontend import tracing
from tritium.runtime import cache

LOADED = (cpu, tracing, llvm.llvm_version())
"""What every process needs is loaded before it is forked."""

RIGHT, WRONG, FAILED = 0, 3, 4
BAD = ("wrong", "damaged", "lost", "failed")
OFFSET = tl.constexpr(3)
SIZE = 64


# ---- the kernels ---------------------------------------------------------------------------------


@tritium.jit
def inner(x):
    """What `helped` calls through another function."""
    return x * 2 + OFFSET


@tritium.jit
def outer(x):
    """What `helped` calls."""
    return inner(x) - 1


@tritium.jit
def helped(x_ptr, out_ptr, N: tl.constexpr):
    """Twice the elements, and two."""
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, outer(tl.load(x_ptr + offs)))


@tritium.jit
def summed(x_ptr, out_ptr, N: tl.constexpr):
    """The sum."""
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, N)), axis=0))


@tritium.jit
def moved(x_ptr, out_ptr, n, N: tl.constexpr):
    """The first `n` backwards."""
    offs = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + n - 1 - offs, mask=offs < n), mask=offs < n)


def launch_all() -> int:
    """Exit status of a process that launches the kernels: ``RIGHT`` or ``WRONG``."""
    x = np.arange(SIZE, dtype=np.float32)
    out = np.full((3, SIZE), -1, np.float32)
    helped[(1,)](x, out[0], N=SIZE)
    summed[(1,)](x, out[1], N=SIZE)
    moved[(4,)](x, out[2], SIZE - 3, N=SIZE // 4)
    want = np.full((3, SIZE), -1, np.float32)
    want[0], want[1, 0], want[2, : SIZE - 3] = x * 2 + 2, x.sum(), x[: SIZE - 3][::-1]
    return RIGHT if np.array_equal(out, want) else WRONG


# ---- processes -----------------------------------------------------------------------------------


def start(prepare: Callable[[], object] = lambda: None) -> int:
    """A new process that launches the kernels; its id."""
    pid = os.fork()
    if pid:
        return pid
    status = FAILED
    try:
        cache.compiler_hash.cache_clear()
        prepare()
        status = launch_all()
    finally:
        # Not back into the caller's loops, whatever was raised.
        if sys.exc_info()[1] is not None:
            sys.excepthook(*sys.exc_info())
        os._exit(status)


def finish(pid: int, counts: Counter[str]) -> bool:
    """Wait for a process and count what came of it; whether it was killed."""
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        counts["killed"] += 1
        return True
    if code != RIGHT:
        counts["wrong" if code == WRONG else "failed"] += 1
    return False


def whole() -> set[str]:
    """The entries that can be read."""
    return {f"{each.name} {each.kind}" for each in cache.entries() if each.facts is not None}


def examine(before: set[str], counts: Counter[str]) -> None:
    """Count what is damaged or lost since then, and let a process alone get right results."""
    entries = cache.entries()
    counts["damaged"] += sum(each.facts is None for each in entries)
    counts["lost"] += len(before - whole())
    place = Path(cache.folder())
    counts["unfinished files"] += len(list(place.glob(".*.tmp"))) if place.exists() else 0
    finish(start(), counts)


def forget_some(chance: random.Random) -> None:
    """Remove entries, so that there is something to store: all of them or some."""
    share = chance.choice((1.0, 0.5))
    cache.clear([each.name for each in cache.entries() if chance.random() < share])
    for path in Path(cache.folder()).glob(".*.tmp"):
        path.unlink()


# ---- system calls that go wrong ------------------------------------------------------------------


class Saboteur:
    """Counts the calls of this process that change files, and acts before some: first to last.

    A write is two steps: between them half of it has been done.
    """

    def __init__(self, first: int, last: int, act: Callable[[], object]) -> None:
        self.first = first
        self.last = last
        self.act = act
        self.steps = 0

    def step(self) -> None:
        """Before each call."""
        self.steps += 1
        if self.first <= self.steps <= self.last:
            self.act()

    def install(self) -> None:
        """From now on."""
        for name in ("replace", "mkdir", "utime"):
            setattr(os, name, self._watched(getattr(os, name)))
        opened, fdopen = os.open, os.fdopen

        def open_(path: Any, flags: int, *rest: Any, **keywords: Any) -> int:
            if flags & os.O_CREAT:
                self.step()
            return opened(path, flags, *rest, **keywords)

        os.open = open_  # type: ignore[assignment]
        os.fdopen = lambda *args, **keywords: Halves(self, fdopen(*args, **keywords))  # type: ignore[assignment]

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            self.step()
            return function(*args, **keywords)

        return call


class Halves:
    """A file that is written in two steps."""

    def __init__(self, saboteur: Saboteur, file: Any) -> None:
        self.saboteur = saboteur
        self.file = file

    def __enter__(self) -> Halves:
        return self

    def __exit__(self, *raised: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> None:
        """Half, then all."""
        self.saboteur.step()
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        self.saboteur.step()
        self.file.write(data[len(data) // 2 :])


def kill_oneself() -> None:
    """As by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(code: int) -> Callable[[], None]:
    """What raises the error of that number."""

    def act() -> None:
        raise OSError(code, os.strerror(code))

    return act


# ---- what is tried -------------------------------------------------------------------------------


def kills(runs: int, chance: random.Random) -> Iterator[tuple[str, Counter[str]]]:
    """Processes that are killed after any time."""
    counts: Counter[str] = Counter()
    started = time.perf_counter()
    finish(start(), counts)
    longest = time.perf_counter() - started
    done = 0
    # Some are done before.
    while counts["killed"] < runs and done < 4 * runs:
        done += 1
        forget_some(chance)
        before = whole()
        pid = start()
        time.sleep(chance.uniform(0, longest))
        os.kill(pid, signal.SIGKILL)
        finish(pid, counts)
        examine(before, counts)
    yield f"{done} runs killed at random times", counts


def calls(runs: int, chance: random.Random) -> Iterator[tuple[str, Counter[str]]]:
    """Processes that are killed before each call that changes a file, in the middle of writes."""
    counts: Counter[str] = Counter()
    step, killed = 0, True
    while killed and step < 3 * runs:
        step += 1
        cache.clear()
        pid = start(Saboteur(step, step, kill_oneself).install)
        killed = finish(pid, counts)
        examine(set(), counts)
    yield f"{step} runs killed before a system call", counts


def errors(runs: int, chance: random.Random) -> Iterator[tuple[str, Counter[str]]]:
    """Calls that fail, one or all from some time on."""
    counts: Counter[str] = Counter()
    for _ in range(runs):
        code = chance.choice((errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES, errno.EDQUOT))
        first, last = chance.randrange(1, 40), chance.choice((0, 1 << 30))
        forget_some(chance)
        before = whole()
        finish(start(Saboteur(first, max(first, last), refuse(code)).install), counts)
        examine(before, counts)
    yield f"{runs} runs whose system calls failed", counts


def meetings(runs: int, chance: random.Random) -> Iterator[tuple[str, Counter[str]]]:
    """Processes that compile the same at once."""
    counts: Counter[str] = Counter()
    for _ in range(runs):
        forget_some(chance)
        before = whole()
        for pid in [start() for _ in range(2)]:
            finish(pid, counts)
        examine(before, counts)
    yield f"{runs} pairs of processes at once", counts


def damage(runs: int, chance: random.Random) -> Iterator[tuple[str, Counter[str]]]:
    """Entries of which a byte has another value, or the end is missing, or which are another's."""
    counts: Counter[str] = Counter()
    finish(start(), counts)
    for _ in range(runs):
        files = sorted(each for each in Path(cache.folder()).iterdir() if each.is_file())
        file = chance.choice(files)
        data = bytearray(file.read_bytes())
        at = chance.randrange(len(data))
        kind = chance.choice(("flip", "cut", "another"))
        if kind == "flip":
            data[at] ^= 1 << chance.randrange(8)
        elif kind == "cut":
            del data[at:]
        else:
            data = bytearray(chance.choice([each for each in files if each != file]).read_bytes())
        file.write_bytes(data)
        finish(start(), counts)
        if kind != "another":
            counts["damaged"] += sum(each.facts is None for each in cache.entries())
        else:
            file.unlink()
            finish(start(), counts)
    yield f"{runs} runs with an entry that was changed", counts


def disks(runs: int, chance: random.Random) -> Iterator[tuple[str, Counter[str]]]:
    """Disks of a few kB, and one that can't be written to."""
    place = os.environ["TRITIUM_CACHE_DIR"]
    counts: Counter[str] = Counter()
    sizes = list(range(0, 4 * min(runs, 16), 4))
    for size in sizes:
        with mounted(place, f"size={max(size, 1)}k") as done:
            if not done:
                yield "no disk can be mounted here", counts
                return
            finish(start(), counts)
            examine(set(), counts)
    yield f"{len(sizes)} full disks", counts
    counts = Counter()
    with mounted(place, "size=1m"):
        finish(start(), counts)
        before = whole()
        cache.clear([each.name for each in cache.entries()][:2])
        kept = whole()
        mount("-o", "remount,ro", place)
        finish(start(), counts)
        examine(kept, counts)
        counts["entries"] = len(before)
    yield "a disk that can't be written to", counts


@contextlib.contextmanager
def mounted(place: str, options: str) -> Iterator[bool]:
    """A file system in memory as the cache's folder, if this user may."""
    os.makedirs(place, mode=0o700, exist_ok=True)
    done = mount("-t", "tmpfs", "-o", f"{options},mode=700", "none", place)
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", place], check=True)


def mount(*arguments: str) -> bool:
    """Whether that succeeded."""
    if shutil.which("mount") is None:
        return False
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


TRIALS = {each.__name__: each for each in (kills, calls, errors, meetings, damage, disks)}


def trials(names: Iterable[str], runs: int, seed: int) -> Iterator[tuple[str, Counter[str]]]:
    """What each trial did, and its counts; each has a cache of its own."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRITIUM_CACHE_DIR"] = os.path.join(folder, "cache")
            yield from TRIALS[name](runs, random.Random(seed))


def main() -> int:
    """Exit status 1 if anything was wrong, damaged or lost, or a process failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trials", nargs="*", choices=[*TRIALS, []], help="default: all")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON, one line a trial")
    options = parser.parse_args()
    # Forking is safe: no process launches anything before it forks.
    warnings.simplefilter("ignore", DeprecationWarning)
    bad = 0
    for what, counts in trials(options.trials or TRIALS, options.runs, options.seed):
        bad += sum(counts[name] for name in BAD)
        found = {**{name: counts[name] for name in BAD}, **counts}
        if options.json:
            print(json.dumps({"what": what, **found}), flush=True)
        else:
            print(f"{what}: {', '.join(f'{n} {name}' for name, n in found.items())}", flush=True)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
