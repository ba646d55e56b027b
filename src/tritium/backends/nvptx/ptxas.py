"""The assembler of PTX: where it is, what it takes, running it, what it says of registers.

path = find("ptxas")
made = assemble(path, ptx, "sm_90a")
made.cubin, made.usage.registers, made.usage.spill_stores
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tritium import knobs

# CUDA's release and the newest version of PTX that its assembler reads (PTX ISA, "Release Notes"),
# both times ten.
PTX_OF_RELEASE = (
    (118, 78),
    (120, 80),
    (121, 81),
    (122, 82),
    (123, 83),
    (124, 84),
    (125, 85),
    (127, 86),
    (128, 87),
    (129, 88),
    (130, 90),
    (131, 91),
)
_VERSION = re.compile(r"release (\d+)\.(\d+), V([\d.]+)")
_BLOCKS = re.compile(r"^\.minnctapersm .*\n", re.MULTILINE)
_PTX_LINE = re.compile(r", line (\d+); (?:error|fatal)\s*: (.*)")
_SECONDS = 300.0
"""After which the assembler counts as hung."""
_PAUSE = 1e-4
"""Seconds between two looks at whether it has come to reading its source."""
FLAGS = ("-v", "-O3", "-lineinfo", "--fmad=false")
"""Products and sums are fused by a pass of the tile IR, or not at all."""


class Assembler(NamedTuple):
    """An assembler: its release ("13.0.88"), the newest PTX it reads times ten, and its targets."""

    path: str
    release: str
    ptx_version: int
    arches: frozenset[str]

    def takes(self, arch: str, ptx_version: int) -> bool:
        """Whether it can assemble PTX of that version for an architecture."""
        return arch in self.arches and ptx_version <= self.ptx_version


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


# ---- finding it ----------------------------------------------------------------------------------


def find(tool: str) -> str | None:
    """The path of ``ptxas`` or ``nvdisasm``, None where there is none.

    What the knob of that name says counts alone.
    """
    chosen: str | None = getattr(knobs.nvidia, tool)
    if chosen is not None:
        return chosen if os.access(chosen, os.X_OK) else None
    name = tool + (".exe" if os.name == "nt" else "")
    return next((path for path in _places(name) if os.access(path, os.X_OK)), None)


def _places(name: str) -> Iterator[str]:
    on_path = shutil.which(name)
    if on_path is not None:
        yield on_path
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield os.path.join(home, "bin", name)
    yield os.path.join("/usr/local/cuda/bin", name)
    # Where the packages nvidia-cuda-nvcc of CUDA 13, and -cu12, put it.
    for folder in sys.path:
        yield from sorted(glob.glob(os.path.join(glob.escape(folder), "nvidia/cu*/bin", name)))


def describe(path: str) -> Assembler:
    """Ask an assembler what it is. Raises OSError or ValueError where it is none."""
    said = _VERSION.search(_output(path, "--version"))
    if said is None:
        raise ValueError(f"{path} doesn't say its version")
    number = 10 * int(said[1]) + int(said[2])
    known = [ptx for release, ptx in PTX_OF_RELEASE if release <= number]
    arches = re.findall(r"'(sm_\w+)'", _output(path, "--help"))
    return Assembler(path, said[3], known[-1] if known else 0, frozenset(arches))


def _output(path: str, flag: str) -> str:
    # Not loaded by a warm start, which runs no assembler.
    import subprocess

    done = subprocess.run(
        [path, flag], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    return done.stdout


# ---- running it ----------------------------------------------------------------------------------


def assemble(path: str, ptx: str, arch: str, options: Sequence[str] = ()) -> Assembly:
    """Machine code for an architecture. Raises ``AssemblerError``; OSError where it doesn't run."""
    with Assembling(path, arch, options) as assembling:
        return assembling.finish(ptx)


class Assembling:
    """An assembler that has been started and waits for its PTX; ``with`` ends it in any case.

    It starts while the PTX is still being made. Raises OSError where it doesn't run.
    """

    def __init__(self, path: str, arch: str, options: Sequence[str] = ()) -> None:
        # Not loaded by a warm start, which runs no assembler.
        import subprocess
        import tempfile

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

    def finish(self, ptx: str) -> Assembly:
        """Machine code for PTX. Raises ``AssemblerError``.

        How many blocks are to share a multiprocessor is a guess of the compiler: where that made
        the assembler spill registers it is left out if that is better, and where an option limits
        them, which would be ignored.
        """
        if self._limited:
            ptx = _BLOCKS.sub("", ptx)
        made = self._finish(ptx)
        if made.usage.spill_stores and _BLOCKS.search(ptx):
            with Assembling(*self._again) as again:
                free = again._finish(_BLOCKS.sub("", ptx))
            return min(made, free, key=lambda each: each.usage.spill_stores)
        return made

    def _finish(self, ptx: str) -> Assembly:
        import subprocess

        if self._piped:
            self._feed(ptx.encode())
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
