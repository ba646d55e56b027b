"""Native code of one specialisation on the CPU: compiled or read from the cache, linked, launched.

There are two versions. One assumes that certain arrays don't overlap; a launch where they do uses
the other, which is compiled when it is first needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tritium import knobs
from tritium.backends import llvm
from tritium.backends.llvm import Library, Target
from tritium.diagnostics import InternalError, TritiumError, error, write_report
from tritium.frontend.specialize import PointerSpec, ScalarSpec, Spec
from tritium.ir import Function, function_text, parse_function
from tritium.ir.dtypes import DType, float32, float64

from . import cache
from .arrays import ArrayArgument
from .pool import POOL, record

Times = dict[str, float]

COMPILING = threading.RLock()
"""Held while a kernel is compiled."""
if hasattr(os, "register_at_fork"):
    # Another thread may have held it, which the child doesn't have.
    os.register_at_fork(after_in_child=COMPILING._at_fork_reinit)  # type: ignore[attr-defined]


class Code(NamedTuple):
    """What is kept of a compiled kernel; the fields are those of ``backends.cpu.CpuKernel``.

    The backend itself isn't loaded where the cache has all that is needed.
    """

    object: bytes
    entry: str
    scratch_bytes: int
    alias_pairs: tuple[tuple[int, int], ...]
    written: frozenset[int]
    steady: bool
    llvm_ir: str
    dump: str
    slow: dict[str, int]


class Version:
    """One version of the code, linked.

    ``record`` is what the pool is told of it, at ``address``; ``library`` keeps it mapped.
    ``written`` are the kernel's in order.
    """

    __slots__ = ("address", "cached", "kernel", "library", "record", "written")

    def __init__(self, kernel: Code, library: Library, record: Any, cached: bool) -> None:
        self.kernel = kernel
        self.library = library
        self.record = record
        self.address = ctypes.addressof(record)
        self.written = sorted(kernel.written)
        self.cached = cached


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


class NativeCode:
    """A kernel in tile IR, and its machine code for ``target``.

    ``ir`` is its text and ``types`` those of its run-time parameters; ``function`` is the same IR,
    where it is at hand. ``fuse`` has products and sums rounded once. ``source`` goes into a crash
    report; ``times`` collects the seconds of the phases.
    """

    def __init__(
        self,
        name: str,
        ir: str,
        types: Sequence[Any],
        target: Target,
        *,
        fuse: bool,
        source: str,
        times: Times,
        function: Function | None = None,
    ) -> None:
        self.name = name
        self.target = target
        self.times = times
        self.ir = ir
        self.fuse = fuse
        self._source = source
        self._function = function
        self._optimised = False
        self._versions: dict[bool, Version] = {}
        self._reported: Times = {}
        self._pack = _packer(types)

    @property
    def key(self) -> str:
        """The name of the first version in the cache."""
        return self._key(True)

    def _key(self, disjoint: bool) -> str:
        return cache.key(self.ir, self.target.key, f"disjoint={disjoint} fuse={self.fuse}")

    # ---- launching -------------------------------------------------------------------------------

    def launch(self, values: Sequence[Any], grid: tuple[int, int, int]) -> None:
        """Run the grid. ``values`` are those of the run-time parameters, arrays described."""
        version = self.version(True)
        for left, right in version.kernel.alias_pairs:
            one, other = values[left], values[right]
            if one.low < other.high and other.low < one.high:
                version = self.version(False)
                break
        programs = grid[0] * grid[1] * grid[2]
        POOL.run(version.address, self._pack(values, grid), programs)

    def words(self, values: Sequence[Any]) -> list[int]:
        """The slots that the compiled code is given for values of the run-time parameters."""
        packed = self._pack(values, (0, 0, 0))
        return list(struct.unpack(f"<{len(values) + 3}Q", packed))[: len(values)]

    def linked(self, disjoint: bool) -> Version | None:
        """A version of the code, None if it wasn't needed yet."""
        return self._versions.get(disjoint)

    # ---- compiling -------------------------------------------------------------------------------

    def version(self, disjoint: bool) -> Version:
        """The linked code that may (or may not) assume disjoint arrays."""
        made = self._versions.get(disjoint)
        if made is None:
            with COMPILING:
                made = self._versions.get(disjoint)
                if made is None:
                    made = self._versions[disjoint] = self._make(disjoint)
        return made

    def _make(self, disjoint: bool) -> Version:
        with llvm.timed(self.times, "look up"):
            name = self._key(disjoint)
            found = None if knobs.compilation.always_compile else cache.load(name)
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
                cache.store(name, _kept(self.name, kernel))
            library = self._guarded("linking", functools.partial(self._link, kernel))
        if knobs.compilation.time_passes:
            self._report(disjoint)
        entry = library.address(kernel.entry)
        told = record(entry, kernel.scratch_bytes, steady=kernel.steady)
        return Version(kernel, library, told, cached)

    def _link(self, kernel: Code) -> Library:
        return llvm.link(kernel.object, [kernel.entry], times=self.times)

    def _compile(self, disjoint: bool) -> Code:
        from tritium.backends.cpu import compile_kernel

        made = compile_kernel(
            self._after_passes(), self.target, disjoint=disjoint, times=self.times
        )
        return Code(*(getattr(made, name) for name in Code._fields))

    def _report(self, disjoint: bool) -> None:
        from . import timing

        news = {
            phase: seconds - self._reported.get(phase, 0.0)
            for phase, seconds in self.times.items()
            if seconds != self._reported.get(phase)
        }
        self._reported = dict(self.times)
        timing.report(self.name if disjoint else f"{self.name}, where arrays overlap", news)

    def _after_passes(self) -> Function:
        from tritium.passes import run_pipeline

        with COMPILING:
            if self._function is None:
                self._function = parse_function(self.ir)
            if not self._optimised:
                for run in run_pipeline(self._function, self._pipeline()):
                    phase = f"pass {run.step}"
                    self.times[phase] = self.times.get(phase, 0.0) + run.seconds
                self._optimised = True
            return self._function

    def _pipeline(self) -> str:
        from tritium.passes import CONTRACTED, DEFAULT

        return CONTRACTED if self.fuse else DEFAULT

    def optimised_ir(self) -> str:
        """The text of the IR after the passes."""
        return function_text(self._after_passes())

    def assembly(self, disjoint: bool = True) -> str:
        """The machine code as text."""
        module = llvm.optimise(self.version(disjoint).kernel.llvm_ir, self.target)
        return llvm.assembly(module)

    def _guarded(self, doing: str, step: Callable[[], Any]) -> Any:
        """Run a step that a user's program can't make fail; if it does, leave a report."""
        try:
            return step()
        except TritiumError:
            raise
        except Exception as problem:
            text = f"{doing} {self.name} failed: {type(problem).__name__}: {problem}"
            fault = InternalError(text)
            # The report shows it too.
            fault.__cause__ = problem
            parts = {
                "kernel.py": self._source,
                "kernel.ir": self.ir,
                "pipeline.txt": self._pipeline(),
            }
            if isinstance(problem, llvm.LLVMError) and problem.ir:
                parts["kernel.ll"] = problem.ir
            with contextlib.suppress(OSError):
                write_report(fault, parts)
            raise fault from problem


# ---- the cache -----------------------------------------------------------------------------------


def _kept(name: str, kernel: Code) -> cache.Entry:
    facts = {
        "kernel": name,
        "entry": kernel.entry,
        "scratch_bytes": kernel.scratch_bytes,
        "alias_pairs": kernel.alias_pairs,
        "written": sorted(kernel.written),
        "steady": kernel.steady,
        "slow": kernel.slow,
    }
    texts = {"llir": kernel.llvm_ir, "nests": kernel.dump}
    sections = {name: text.encode() for name, text in texts.items()}
    return cache.Entry(facts, {"object": kernel.object, **sections})


def _restored(entry: cache.Entry) -> Code | None:
    facts, sections = entry
    try:
        return Code(
            object=sections["object"],
            entry=facts["entry"],
            scratch_bytes=facts["scratch_bytes"],
            alias_pairs=tuple((left, right) for left, right in facts["alias_pairs"]),
            written=frozenset(facts["written"]),
            steady=facts["steady"],
            llvm_ir=sections["llir"].decode(),
            dump=sections["nests"].decode(),
            slow=facts["slow"],
        )
    except (KeyError, TypeError, ValueError):
        # Whole, but not made as this version makes them.
        return None


# ---- arguments -----------------------------------------------------------------------------------


def _packer(types: Sequence[Any]) -> Callable[[Sequence[Any], tuple[int, int, int]], bytes]:
    """A function that lays values out as compiled code expects them: one 8-byte slot each."""
    slots = struct.Struct("<" + "".join(map(_format, types)) + "3Q")
    converters = [_converter(type) for type in types]

    def pack(values: Sequence[Any], grid: tuple[int, int, int]) -> bytes:
        fields = [
            value.address if convert is None else convert(value)
            for convert, value in zip(converters, values)
        ]
        return slots.pack(*fields, *grid)

    return pack


def _format(type: Any) -> str:
    """How ``struct`` writes what ``_converter`` makes of a value of that type."""
    if not isinstance(type, DType):
        return "Q"
    if type is float64:
        return "d"
    return "q" if type.is_int() and type.get_int_max_value() < 1 << 63 else "Q"


def _converter(type: Any) -> Callable[[Any], int | float] | None:
    """How a value of that type becomes what is written; None for an array, whose address is."""
    if not isinstance(type, DType):
        return None
    if type is float32:
        # Too large a number becomes an infinity; struct alone would refuse it.
        return lambda value: _word("<I", "<f", ctypes.c_float(value).value)
    if type is float64:
        return float
    if type.is_floating():
        from tritium.interp import Scalar

        return lambda value: int.from_bytes(Scalar(type, value).data().tobytes(), "little")
    return int


def _word(integer: str, number: str, value: float) -> int:
    word: int = struct.unpack(integer, struct.pack(number, value))[0]
    return word


def refuse_read_only(
    code: NativeCode, kernel: str, leaves: Sequence[tuple[str, Spec, Any]]
) -> None:
    """Raise E0514 where the kernel writes through a read-only array."""
    for index in code.version(True).written:
        name, _, value = leaves[index]
        if isinstance(value, ArrayArgument) and not value.writable:
            argument = name.partition(".")[0]
            raise error("E0514", kernel=kernel, name=name, argument=argument)


def fits(spec: Spec, value: Any) -> bool:
    """Whether code that was compiled for ``spec`` may be given ``value``."""
    if isinstance(spec, PointerSpec):
        if not isinstance(value, ArrayArgument):
            return False
        aligned = not spec.divisible or value.address % 16 == 0
        return aligned and value.element.itemsize == getattr(spec.dtype, "itemsize", 0)
    if isinstance(spec, ScalarSpec):
        if not isinstance(value, (int, float)) or isinstance(value, float) == spec.dtype.is_int():
            return False
        if not spec.dtype.is_int():
            return True
        low, high = spec.dtype.get_int_min_value(), spec.dtype.get_int_max_value()
        return low <= value <= high and not (spec.divisible and value % 16)
    return True
