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
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple

from .tools import FLAGS

if sys.platform != "win32":
    import fcntl

_BLOCKS = re.compile(r"^\.minnctapersm .*\n", re.MULTILINE)
_PTX_LINE = re.compile(r", line (\d+); (?:error|fatal)\s*: (.*)")
_SECONDS = 300.0
"""After which the assembler counts as hung."""
_INPUT = "/proc/self/fd/0"
"""The standard input of whoever opens it, on Linux."""
_PIPE = 1 << 20
"""Bytes of PTX that wait in the pipe: as many as Linux lets everybody have by default."""
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
    """PTX was refused, or the assembler couldn't be run.

    ``place`` is the file and line of Python that refused PTX was made for, where known.
    """

    def __init__(self, message: str, log: str, place: tuple[str, int] | None = None) -> None:
        super().__init__(message)
        self.log = log
        self.place = place


def assemble(path: str, ptx: str, arch: str, options: Sequence[str] = ()) -> Assembly:
    """Machine code for an architecture. Raises ``AssemblerError``."""
    with Assembling(path, arch, options) as assembling:
        return assembling.finish(ptx)


_feeding: weakref.WeakSet[IO[bytes]] = weakref.WeakSet()
"""Pipes whose end is still to come."""


def _forget() -> None:
    """A fork that kept such a pipe open would keep its assembler waiting for the end."""
    for pipe in list(_feeding):
        pipe.close()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)


class Assembling:
    """An assembler that has been started and waits for its PTX; ``with`` ends it in any case.

    It starts while the PTX is still being made, and ends by itself where this process does: it
    waits for what comes from a pipe that this process alone holds open for writing. Raises
    ``AssemblerError`` where it doesn't run.
    """

    def __init__(self, path: str, arch: str, options: Sequence[str] = ()) -> None:
        self._again = path, arch, options
        self._limited = any("maxrregcount" in option for option in options)
        try:
            self._folder = tempfile.TemporaryDirectory(
                prefix="tritium-ptxas-", ignore_cleanup_errors=True
            )
        except OSError as problem:
            raise _not_run(problem) from problem
        self._result = os.path.join(self._folder.name, "kernel.cubin")
        self._source = os.path.join(self._folder.name, "kernel.ptx")
        self._linked = _link_input(self._source)
        source = self._source if self._linked else "-"
        try:
            self._process = subprocess.Popen(
                [path, f"-arch={arch}", *FLAGS, *options, "-o", self._result, source],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_environment(),
            )
        except OSError as problem:
            self._folder.cleanup()
            raise _not_run(problem) from problem
        assert self._process.stdin is not None
        _feeding.add(self._process.stdin)

    def __enter__(self) -> Assembling:
        return self

    def __exit__(self, *raised: object) -> None:
        process = self._process
        if process.returncode is None:
            process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.wait()
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
        try:
            rest = self._feed(ptx.encode())
        except OSError as problem:
            raise _not_run(problem) from problem
        meanwhile()
        try:
            said, _ = self._process.communicate(rest, timeout=_SECONDS)
            log = said.decode(errors="replace").replace("\r\n", "\n")
            if self._process.returncode or not os.path.exists(self._result):
                raise refusal(log, ptx, self._process.returncode)
            with open(self._result, "rb") as stream:
                return Assembly(stream.read(), usage(log), log)
        except subprocess.TimeoutExpired:
            raise AssemblerError(f"ptxas had not ended after {_SECONDS:.0f} s", "") from None
        except OSError as problem:
            raise _not_run(problem) from problem

    def _feed(self, ptx: bytes) -> bytes | None:
        """Write what the pipe takes at once, and return the rest; None where that was all.

        The assembler reads its source once more at its end: then that is a plain file. It is one
        from the first where the assembler hasn't opened it yet.
        """
        if self._linked:
            plain = self._source + ".plain"
            with open(plain, "wb") as stream:
                stream.write(ptx)
            os.replace(plain, self._source)
        pipe = self._process.stdin
        assert pipe is not None
        rest = _write_at_once(pipe.fileno(), ptx)
        if rest:
            return rest
        # The end of the file must not wait for ``communicate``, which takes no closed pipe.
        pipe.close()
        self._process.stdin = None
        return None


def _write_at_once(pipe: int, text: bytes) -> bytes:
    """Write to a pipe without waiting for its reader; what is left over."""
    if sys.platform == "win32":
        return text
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            # A user has a limit here: then it takes less at once.
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, min(len(text), _PIPE))
    os.set_blocking(pipe, False)
    try:
        while text:
            text = text[os.write(pipe, text) :]
    except BlockingIOError:
        os.set_blocking(pipe, True)
    except BrokenPipeError:
        # It has ended, and says why.
        return b""
    return text


def _not_run(problem: OSError) -> AssemblerError:
    return AssemblerError(f"ptxas could not be run: {problem}", "")


def _environment() -> Mapping[str, str]:
    """The process's own, with what the user says of glibc's memory last, so that it counts."""
    name = "GLIBC_TUNABLES"
    ours = [f"glibc.malloc.{each}" for each in _MEMORY]
    return {**os.environ, name: ":".join(filter(None, (*ours, os.environ.get(name))))}


def _link_input(path: str) -> bool:
    """A file that is the standard input of whoever opens it, where there can be such.

    ptxas reads what it is given as standard input first of all, but a file only when everything
    else of its start is done, which takes longer: with a file it waits at the right place. Unlike a
    named pipe this one can be opened when nobody is left who would write to it.
    """
    if not os.path.lexists(_INPUT):
        return False
    try:
        os.symlink(_INPUT, path)
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
