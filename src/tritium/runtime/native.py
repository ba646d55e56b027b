"""Native code of one specialisation on the CPU: compiled or from the cache, linked, launched."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritium import knobs
from tritium.backends import caches, llvm
from tritium.backends.compiled import CpuKernel, Stored
from tritium.backends.llvm import Library, Target
from tritium.diagnostics import Loc, error, warn
from tritium.diagnostics.frames import users_place

from . import cache
from .code import KernelCode, Version
from .pool import POOL, record
from .slots import packer

_LEAST = 128 << 10
"""Bytes that every core's L2 cache holds: how large it is takes a while to find out."""
WARP_SIZE = 0
"""Of the CPU: it has no warps."""


class Linked(Version):
    """A version that is linked into the process.

    ``record`` is what the pool is told of it; ``library`` keeps it mapped.
    """

    __slots__ = ("library", "record")

    def __init__(self, kernel: CpuKernel, library: Library, record: Any, cached: bool) -> None:
        super().__init__(kernel, ctypes.addressof(record), cached)
        self.library = library
        self.record = record


def host_target() -> Target:
    """The CPU that the knobs name. Raises E0801 where this machine can't run its code."""
    cpu, features = knobs.cpu.target, knobs.cpu.features
    try:
        return llvm.host_target(cpu, features or None)
    except ValueError as problem:
        raise error(
            "E0801",
            name="TRITIUM_CPU",
            value=cpu if not features else f"{cpu} {features}",
            expected="a CPU whose code runs here",
            hint=str(problem),
        ) from problem


class NativeCode(KernelCode):
    """A kernel's machine code on the CPU. ``types`` are those of its run-time parameters."""

    target: Target
    binary = "object"

    def __init__(
        self, name: str, ir: str, types: Sequence[Any], target: Target, **rest: Any
    ) -> None:
        super().__init__(name, ir, target, **rest)
        self._pack = packer(types)
        self._warned = False

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def triton_target(self) -> tuple[str, Any, int]:
        """A CPU has no warps."""
        return "cpu", self.target.cpu, WARP_SIZE

    def facts(self) -> dict[str, Any]:
        """Bytes of scratch memory of each thread, and accesses that are slow."""
        kernel = self.version(True).kernel
        return {
            "shared": 0,
            "arch": self.target.cpu,
            "scratch_bytes": kernel.scratch_bytes,
            "slow_accesses": dict(kernel.slow),
        }

    def stages(self) -> Mapping[str, Callable[[], Any]]:
        """The loops that it became, LLVM IR, assembly and the object file."""
        return {
            "nests": lambda: self.version(True).kernel.dump,
            "llir": lambda: self.version(True).kernel.llvm_ir,
            "asm": self.assembly,
            "object": lambda: self.version(True).kernel.object,
        }

    # ---- launching -------------------------------------------------------------------------------

    def launch(self, values: Sequence[Any], grid: tuple[int, int, int], stream: Any = None) -> None:
        """Run the grid, and wait for its end."""
        version = self.suited(values)
        programs = grid[0] * grid[1] * grid[2]
        arguments = self._pack(values, grid)
        if not version.kernel.reports:
            POOL.run(version.address, arguments, programs)
            return
        # Few kernels do, so a warm start doesn't load it.
        from .reports import raising

        with raising() as number:
            POOL.run(version.address, arguments + struct.pack("<q", number), programs)

    @property
    def plain(self) -> bool:
        """Whether a launch reports nothing: it neither prints nor checks."""
        return not self.version(True).kernel.reports

    def words(self, values: Sequence[Any]) -> list[int]:
        """Without the grid, which is the rest of what the code is given."""
        packed = self._pack(values, (0, 0, 0))
        return list(struct.unpack(f"<{len(values) + 3}Q", packed))[: len(values)]

    # ---- compiling -------------------------------------------------------------------------------

    def _make(self, disjoint: bool) -> Linked:
        with llvm.timed(self.times, "look up"):
            name = self._key(disjoint)
            found = self._found(name)
            kernel = None if found is None else _restored(found)
        library = None
        if kernel is not None:
            # Code that can't be linked here is made anew, as a damaged entry is.
            with contextlib.suppress(llvm.LLVMError):
                library = self._link(kernel)
        cached = library is not None
        if kernel is None or library is None:
            kernel = self._guarded("compiling", lambda: self._compile(disjoint))
            with llvm.timed(self.times, "store"):
                cache.store(name, _kept(self.name, kernel, self.places))
            library = self._guarded("linking", functools.partial(self._link, kernel))
        self._report(disjoint)
        self._warn_of_scratch(kernel)
        entry = library.address(kernel.entry)
        told = record(entry, kernel.scratch_bytes, steady=kernel.steady, waits=kernel.waits)
        return Linked(kernel, library, told, cached)

    def _link(self, kernel: CpuKernel) -> Library:
        told: Mapping[str, int] = {}
        if kernel.reports:
            from .reports import imports

            told = imports()
        return llvm.link(kernel.object, [kernel.entry], told, self.times)

    def _compile(self, disjoint: bool) -> CpuKernel:
        from tritium.backends.cpu import compile_kernel

        return compile_kernel(
            self._after_passes(), self.target, disjoint=disjoint, times=self.times
        )

    def _warn_of_scratch(self, kernel: CpuKernel) -> None:
        """W0904 for the first version whose programs don't keep to the cache of a core."""
        stored = kernel.largest
        if self._warned or stored is None or kernel.scratch_bytes <= _LEAST:
            return
        limit = caches.core_cache()
        if kernel.scratch_bytes <= limit:
            return
        self._warned = True
        loc = stored.loc or self.places[stored.op or 0]
        warn(
            "W0904",
            loc=None if loc is None else users_place(loc),
            kernel=self.name,
            total=_size(kernel.scratch_bytes),
            limit=_size(limit),
            type=stored.type,
            size=_size(stored.size),
        )

    def assembly(self, disjoint: bool = True) -> str:
        """The machine code as text."""
        module = llvm.optimise(self.version(disjoint).kernel.llvm_ir, self.target)
        return llvm.assembly(module)


def _size(count: int) -> str:
    """A number of bytes in words."""
    return f"{count / 1024:.0f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"


# ---- the cache -----------------------------------------------------------------------------------


def _kept(name: str, kernel: CpuKernel, traced: Sequence[Loc | None]) -> cache.Entry:
    stored = kernel.largest
    if stored is not None:
        op = traced.index(stored.loc) if stored.loc in traced else None
        stored = stored._replace(loc=None, op=op)
    facts = {
        "kernel": name,
        "entry": kernel.entry,
        "scratch_bytes": kernel.scratch_bytes,
        "largest": stored,
        "alias_pairs": kernel.alias_pairs,
        "written": sorted(kernel.written),
        "steady": kernel.steady,
        "waits": kernel.waits,
        "reports": kernel.reports,
        "slow": kernel.slow,
    }
    texts = {"llir": kernel.llvm_ir, "nests": kernel.dump}
    sections = {name: text.encode() for name, text in texts.items()}
    return cache.Entry(facts, {"object": kernel.object, **sections})


def _restored(entry: cache.Entry) -> CpuKernel | None:
    facts, sections = entry
    try:
        return CpuKernel(
            object=sections["object"],
            entry=facts["entry"],
            scratch_bytes=facts["scratch_bytes"],
            largest=None if facts["largest"] is None else Stored(*facts["largest"]),
            alias_pairs=tuple((left, right) for left, right in facts["alias_pairs"]),
            written=frozenset(facts["written"]),
            steady=facts["steady"],
            waits=facts["waits"],
            reports=facts["reports"],
            llvm_ir=sections["llir"].decode(),
            dump=sections["nests"].decode(),
            slow=facts["slow"],
        )
    except (KeyError, TypeError, ValueError):
        # Whole, but not made as this version makes them.
        return None
