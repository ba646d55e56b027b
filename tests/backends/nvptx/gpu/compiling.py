"""Compiles kernels in processes of their own, several at once; a compiler that dies is told."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.backends.nvptx.gpu.batches import Batch

from tritium.backends.nvptx import ptxas, tools
from tritium.backends.nvptx.compile import compile_kernel
from tritium.backends.nvptx.target import gpu_target
from tritium.ir.core import Function
from tritium.ops.spec import Case

ROOT = Path(__file__).parents[4]
LONGEST = 240.0
"""Seconds after which a compilation counts as hung."""
LAST_LINES = 3
"""Of what a compiler that died has printed."""


@dataclass(frozen=True)
class Code:
    """A compiled kernel. ``llvm_ir`` is what stands before LLVM has seen it."""

    cubin: bytes
    entry: str
    num_warps: int
    shared_bytes: int
    llvm_ir: str = ""
    spilled: int = 0


@dataclass(frozen=True)
class Part:
    """Cases that became one kernel, or the reason why they didn't."""

    cases: Sequence[Case]
    code: Code | None
    problem: str = ""


class Failed(Exception):
    """A kernel couldn't be compiled."""


@functools.cache
def why_not(arch: str) -> str | None:
    """The reason why nothing is assembled for an architecture here, or None."""
    path = tools.find("ptxas")
    if path is None:
        return "ptxas is not installed"
    found = tools.describe(path)
    return None if arch in found.arches else f"ptxas {found.release} doesn't know {arch}"


def compiled(function: Function, arch: str, num_warps: int, disjoint: bool = True) -> Code:
    """A kernel as a cubin. Raises whatever the compiler and ptxas raise."""
    kernel = compile_kernel(function, gpu_target(arch), num_warps=num_warps, disjoint=disjoint)
    path = tools.find("ptxas")
    if path is None:
        raise Failed("ptxas is not installed")
    made = ptxas.assemble(path, kernel.ptx, arch)
    return Code(
        made.cubin, kernel.entry, num_warps, kernel.shared_bytes, "", made.usage.spill_stores
    )


def compile_batch(batch: Batch, arch: str) -> Code:
    return compiled(batch.build(), arch, batch.num_warps)


def work(
    connection: Connection, log: str, function: Callable[..., Any], args: Sequence[Any]
) -> None:
    """In the process: what it prints goes to a file, the result through the connection."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 2)
    try:
        connection.send((True, function(*args)))
    except Exception as problem:  # noqa: BLE001 - the other process raises it
        lines = str(problem).strip().splitlines() or ["no message"]
        connection.send((False, f"{type(problem).__name__}: {lines[0]}"))


def in_process(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, computed in a process of its own. Raises Failed if it raises or dies."""
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "stderr")
        process = context.Process(target=work, args=(theirs, log, function, args))
        process.start()
        theirs.close()
        try:
            if not ours.poll(LONGEST):
                raise Failed(f"the compiler had not ended after {LONGEST:.0f} s")
            well, found = ours.recv()
        except EOFError:
            process.join()
            raise Failed(told(log, process.exitcode)) from None
        finally:
            process.kill()
            process.join()
            ours.close()
    if not well:
        raise Failed(found)
    return found


def told(log: str, status: int | None) -> str:
    """How a process ended, and the last that it printed."""
    text = Path(log).read_text(errors="replace") if os.path.exists(log) else ""
    lines = [line for line in text.splitlines() if line.strip()]
    # LLVM's own stack follows what it says.
    said = [line for line in lines if "LLVM ERROR" in line] or lines[-LAST_LINES:]
    ended = f"the compiler ended with status {status}"
    return f"{ended}: {' '.join(said)}" if said else ended


@contextlib.contextmanager
def importable() -> Any:
    """The processes find these tests, wherever they are started from."""
    before = os.environ.get("PYTHONPATH")
    places = [str(ROOT), str(ROOT / "src"), *([before] if before else [])]
    os.environ["PYTHONPATH"] = os.pathsep.join(places)
    preloaded = [__name__, "tests.backends.nvptx.gpu.chunks"]
    multiprocessing.get_context("forkserver").set_forkserver_preload(preloaded)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def processors() -> int:
    """How many compilers run at once here."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (found or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


class Farm:
    """Compiles batches ahead of those who ask for them, by ``workers`` processes at a time."""

    def __init__(
        self, batches: Iterable[Batch], workers: int, compile_one: Callable[[Batch], Code]
    ) -> None:
        self._compile_one = compile_one
        self._threads = ThreadPoolExecutor(workers)
        self._futures: dict[Batch, Future[list[Part]]] = {}
        for batch in batches:
            self._submit(batch)

    def _submit(self, batch: Batch) -> Future[list[Part]]:
        if batch not in self._futures:
            self._futures[batch] = self._threads.submit(self._parts, batch)
        return self._futures[batch]

    def _parts(self, batch: Batch) -> list[Part]:
        """One kernel of all cases; where that fails, one of each."""
        try:
            return [Part(batch.cases, self._compile_one(batch))]
        except Failed as problem:
            if batch.alone is not None:
                return [Part(batch.cases, None, str(problem))]
        return self.singly(batch)

    def singly(self, batch: Batch) -> list[Part]:
        """A kernel of each case."""
        return [part for one in batch.singly() for part in self._parts(one)]

    def parts(self, batch: Batch) -> list[Part]:
        """The kernels of a batch, waited for."""
        return self._submit(batch).result()

    def close(self) -> None:
        """Gives up what hasn't begun."""
        self._threads.shutdown(wait=True, cancel_futures=True)
