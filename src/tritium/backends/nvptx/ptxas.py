"""Running the assembler of PTX, and what it says of registers.

path = tools.find("ptxas")
made = assemble(path, ptx, "sm_90a")
made.cubin, made.usage.registers, made.usage.spill_stores
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .tools import FLAGS

_BLOCKS = re.compile(r"^\.minnctapersm .*\n", re.MULTILINE)
_PTX_LINE = re.compile(r", line (\d+); (?:error|fatal)\s*: (.*)")
_SECONDS = 300.0
"""After which the assembler counts as hung."""
_PAUSE = 1e-4
"""Seconds between two looks at whether it has come to reading its source."""
_MEMORY = ("hugetlb=1", f"top_pad={32 << 20}", f"trim_threshold={1 << 30}")
"""How glibc is to get the assembler's memory: in few large pages, of which it gives none back. It
spends an eighth of its time on page faults otherwise (glibc, "Memory Allocation Tunables")."""


class Usage(NamedTuple):
    """What a kernel's code takes: registers of a thread, bytes of a thread's memory and a block's.

    ``spill_stores`` and ``spill_loads`` are the bytes that instructions for registers in memory
    move; ``stack`` has arrays of a thread too. ``shared`` is what is fixed when it is assembled.
    """

    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0


class Assembly(NamedTuple):
    """Machine code, what it takes, and all that the assembler said."""

    cubin: bytes
    usage: Usage
    log: str


class AssemblerError(RuntimeError):
    """PTX was refused. ``place`` is the file and line of Python it was made for, where known."""

    def __init__(self, message: str, log: str, place: tuple[str, int] | None = None) -> None:
        super().__init__(message)
        self.log = log
        self.place = place


def assemble(path: str, ptx: str, arch: str, options: Sequence[str] = ()) -> Assembly:
    """Machine code for an architecture. Raises ``AssemblerError``; OSError where it doesn't run."""
    with Assembling(path, arch, options) as assembling:
        return assembling.finish(ptx)


class Assembling:
    """An assembler that has been started and waits for its PTX; ``with`` ends it in any case.

    It starts while the PTX is still being made. Raises OSError where it doesn't run.
    """

    def __init__(self, path: str, arch: str, options: Sequence[str] = ()) -> None:
        self._again = path, arch, options
        self._limited = any("maxrregcount" in option for option in options)
        self._folder = tempfile.TemporaryDirectory(prefix="tritium-ptxas-")
        self._result = os.path.join(self._folder.name, "kernel.cubin")
        self._source = os.path.join(self._folder.name, "kernel.ptx")
        self._piped = _make_pipe(self._source)
        command = [path, f"-arch={arch}", *FLAGS, *options, "-o", self._result]
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                [*command, self._source if self._piped else "-"],
                stdin=subprocess.DEVNULL if self._piped else pipe,
                stdout=pipe,
                stderr=subprocess.STDOUT,
                env=_environment(),
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError:
            self._folder.cleanup()
            raise

    def __enter__(self) -> Assembling:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()
        self._folder.cleanup()

    def finish(self, ptx: str, meanwhile: Callable[[], None] = lambda: None) -> Assembly:
        """Machine code for PTX; ``meanwhile`` is called while that is made.

        Raises ``AssemblerError``.

        How many blocks are to share a multiprocessor is a guess of the compiler: where that made
        the assembler spill registers it is left out if that is better, and where an option limits
        them, which would be ignored.
        """
        if self._limited:
            ptx = _BLOCKS.sub("", ptx)
        made = self._finish(ptx, meanwhile)
        if made.usage.spill_stores and _BLOCKS.search(ptx):
            with Assembling(*self._again) as again:
                free = again._finish(_BLOCKS.sub("", ptx))
            return min(made, free, key=lambda each: each.usage.spill_stores)
        return made

    def _finish(self, ptx: str, meanwhile: Callable[[], None] = lambda: None) -> Assembly:
        if self._piped:
            self._feed(ptx.encode())
        meanwhile()
        try:
            log, _ = self._process.communicate(None if self._piped else ptx, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssemblerError(f"ptxas had not ended after {_SECONDS:.0f} s", "") from None
        if self._process.returncode or not os.path.exists(self._result):
            raise refusal(log, ptx, self._process.returncode)
        with open(self._result, "rb") as stream:
            return Assembly(stream.read(), usage(log), log)

    def _feed(self, ptx: bytes) -> None:
        """Write to the pipe as soon as it is read; not at all where the assembler has ended.

        It reads its source once more at its end: then that is a plain file.
        """
        plain = self._source + ".again"
        with open(plain, "wb") as stream:
            stream.write(ptx)
        end = time.monotonic() + _SECONDS
        while self._process.poll() is None and time.monotonic() < end:
            try:
                pipe = os.open(self._source, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                # Nobody reads it yet.
                time.sleep(_PAUSE)
                continue
            os.replace(plain, self._source)
            os.set_blocking(pipe, True)
            with contextlib.suppress(BrokenPipeError), open(pipe, "wb") as stream:
                stream.write(ptx)
            return


def _environment() -> Mapping[str, str]:
    """The process's own, with what the user says of glibc's memory last, so that it counts."""
    name = "GLIBC_TUNABLES"
    ours = [f"glibc.malloc.{each}" for each in _MEMORY]
    return {**os.environ, name: ":".join(filter(None, (*ours, os.environ.get(name))))}


def _make_pipe(path: str) -> bool:
    """A named pipe, where there are such.

    ptxas reads its standard input first of all, but a file only when everything else of its start
    is done, which takes longer: before a pipe it waits at the right place.
    """
    if sys.platform == "win32":
        return False
    try:
        os.mkfifo(path)
    except OSError:
        return False
    return True


def refusal(log: str, ptx: str, status: int) -> AssemblerError:
    """What an assembler's log says of PTX that it refused."""
    found = _PTX_LINE.search(log)
    if found is not None:
        number = int(found[1])
        lines = ptx.splitlines()
        text = lines[number - 1].strip() if number <= len(lines) else ""
        return AssemblerError(f"{found[2]}: {text}", log, python_place(ptx, number))
    fatal = re.search(r"(?:fatal|error)\s*: (.*)", log)
    if fatal is not None:
        return AssemblerError(fatal[1], log)
    ended = f"by signal {-status}" if status < 0 else f"with status {status}"
    return AssemblerError(f"ptxas ended {ended}", log)


def python_place(ptx: str, number: int) -> tuple[str, int] | None:
    """File and line of Python of a line of PTX: those of the last ``.loc`` before it."""
    place = None
    for line in ptx.splitlines()[:number]:
        if found := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", line):
            place = found[1], int(found[2])
    if place is None or place[1] == 0:
        return None
    file = re.search(rf'^\s*\.file\s+{place[0]}\s+"([^"]*)"', ptx, re.MULTILINE)
    return (file[1], place[1]) if file else None


def usage(log: str) -> Usage:
    """What an assembler's log (with ``-v``), or the driver's, tells of a kernel."""

    def number(pattern: str) -> int:
        found = re.findall(pattern, log)
        return max(map(int, found), default=0)

    return Usage(
        registers=number(r"Used (\d+) registers"),
        stack=number(r"(\d+) bytes stack frame"),
        spill_stores=number(r"(\d+) bytes spill stores"),
        spill_loads=number(r"(\d+) bytes spill loads"),
        shared=number(r"(\d+) bytes smem"),
    )
