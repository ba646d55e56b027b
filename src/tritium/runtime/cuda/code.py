"""A kernel's machine code for a GPU: compiled or read from the cache, loaded, launched."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritium.backends import llvm
from tritium.backends.host import layout
from tritium.diagnostics import Loc, error, warn
from tritium.ir import function_text, parse_function
from tritium.runtime import cache
from tritium.runtime.arrays import Produced
from tritium.runtime.code import KernelCode, Version
from tritium.runtime.options import Options
from tritium.runtime.slots import packer

from . import assembly, devices, library, modules, recent
from .devices import LEGACY, Device
from .library import CudaFailure
from .modules import Loaded
from .recent import Launched

if TYPE_CHECKING:
    from tritium.backends.nvptx.target import GpuTarget

WARP_SIZE = 32
MOST_WARPS = 32
"""Of a block."""
MOST_ROWS = 65535
"""Programs along the second and third axis of a grid."""
_REGISTER = 4
_CAPTURE_ELSEWHERE = 906


class Code:
    """What is kept of a compiled kernel; ``cubin`` is empty where nobody could assemble it.

    ``shared`` are bytes of a block's dynamic shared memory, ``spilled`` those of a thread that the
    registers in memory take; ``spill_place`` is the file and line where most of them are written.
    A warm start makes this class: a named tuple of as many fields takes ten times as long to make.
    """

    def __init__(
        self,
        *,
        cubin: bytes,
        ptx: str,
        entry: str,
        num_warps: int,
        shared: int,
        alias_pairs: tuple[tuple[int, int], ...],
        written: frozenset[int],
        llvm_ir: str,
        registers: int,
        spilled: int,
        spill_place: tuple[str, int] | None,
    ) -> None:
        self.cubin = cubin
        self.ptx = ptx
        self.entry = entry
        self.num_warps = num_warps
        self.shared = shared
        self.alias_pairs = alias_pairs
        self.written = written
        self.llvm_ir = llvm_ir
        self.registers = registers
        self.spilled = spilled
        self.spill_place = spill_place


class Resident(Version):
    """A version in a device's memory; ``loaded`` is None where it was only compiled."""

    __slots__ = ("loaded", "record")

    def __init__(self, kernel: Code, loaded: Loaded | None, number: int, cached: bool) -> None:
        words = (ctypes.c_uint64 * (layout.OnDevice.SIZE // layout.WORD))()
        super().__init__(kernel, ctypes.addressof(words), cached)
        self.loaded = loaded
        self.record = words
        for field, value in (
            (layout.OnDevice.FUNCTION, 0 if loaded is None else loaded.function),
            (layout.OnDevice.THREADS, WARP_SIZE * kernel.num_warps),
            (layout.OnDevice.SHARED, kernel.shared),
            (layout.OnDevice.NUMBER, number),
        ):
            words[field // layout.WORD] = value


class CudaCode(KernelCode):
    """A kernel's machine code for ``device``; for no device in particular where that is None.

    ``types`` are those of its run-time parameters, ``place`` says where it is defined. Raises E0515
    for options that can't be honoured.
    """

    target: GpuTarget
    binary = "cubin"

    def __init__(
        self,
        name: str,
        ir: str,
        types: Sequence[Any],
        target: GpuTarget,
        *,
        device: Device | None,
        options: Options,
        place: Launched,
        **rest: Any,
    ) -> None:
        super().__init__(name, ir, target, **rest)
        self.device = device
        self.options = options
        self.place = place
        self.number = recent.number(place)
        self._count = len(types)
        self._pack = packer(types)
        self._packed: dict[str, bytes] = {}
        _refuse(name, options, device)

    def _depends_on(self) -> Sequence[str]:
        names = ("num_warps", "maxnreg", "ptx_options")
        return (
            *(f"{name}={self.options[name]}" for name in names),
            assembly.key(self.target.arch, self.target.ptx_version),
        )

    # ---- what it is ------------------------------------------------------------------------------

    def tile_ir(self) -> str:
        return function_text(parse_function(self.ir))

    def _passes(self) -> str:
        from tritium.passes import DEVICE

        return DEVICE

    @property
    def triton_target(self) -> tuple[str, Any, int]:
        """The architecture is ten times the compute capability."""
        major, minor = self.target.capability
        return "cuda", 10 * major + minor, WARP_SIZE

    def facts(self) -> dict[str, Any]:
        """Bytes of shared memory, the architecture."""
        return {"shared": self._first.kernel.shared, "arch": self.target.arch}

    def stages(self) -> Mapping[str, Callable[[], Any]]:
        """Who holds what, LLVM IR, PTX, machine code and that as text."""
        return {
            "homes": self._homes,
            "llir": lambda: self._first.kernel.llvm_ir,
            "ptx": lambda: self._first.kernel.ptx,
            "cubin": self._cubin,
            "sass": self._sass,
        }

    def _homes(self) -> str:
        from tritium.backends.nvptx.explain import describe

        kernel = self._first.kernel
        return describe(self._after_passes(), self.target, kernel.num_warps, kernel.shared)

    def _sass(self) -> str:
        from tritium.backends.nvptx import sass

        try:
            return sass.disassemble(self._cubin())
        except OSError as problem:
            hint = "install a CUDA toolkit of these days, or set TRITIUM_NVDISASM_PATH"
            raise error("E0802", text=str(problem), hint=hint) from None

    def _cubin(self) -> bytes:
        found: bytes = self._first.kernel.cubin
        if not found:
            raise error(
                "E0519",
                kernel=self.name,
                device=self.target.arch,
                text="there is neither a ptxas nor a driver to assemble its PTX",
                hint="install nvidia-cuda-nvcc, or set TRITIUM_PTXAS_PATH; asm['ptx'] is there",
            )
        return found

    @property
    def _first(self) -> Resident:
        version = self.version(True)
        assert isinstance(version, Resident)
        return version

    @property
    def registers(self) -> int:  # type: ignore[override]
        """Registers of a thread."""
        loaded = self._first.loaded
        return self._first.kernel.registers if loaded is None else loaded.registers

    @property
    def spills(self) -> int:  # type: ignore[override]
        """Registers of a thread that were put in memory."""
        return int(self._first.kernel.spilled) // _REGISTER

    @property
    def most_threads(self) -> int:  # type: ignore[override]
        """The most threads that a block of this code can have; 0 where it isn't loaded."""
        loaded = self._first.loaded
        return 0 if loaded is None else loaded.most_threads

    @property
    def module(self) -> int | None:
        """The driver's handle of the module."""
        loaded = self._first.loaded
        return None if loaded is None else loaded.module

    @property
    def function(self) -> int | None:
        """The driver's handle of the function; None where it isn't loaded."""
        loaded = self._first.loaded
        return None if loaded is None else loaded.function

    # ---- launching -------------------------------------------------------------------------------

    def launch(self, values: Sequence[Any], grid: tuple[int, int, int], stream: Any = None) -> None:
        """Have the grid run on a stream, by default the device's current one.

        Raises E0510 for a grid that no GPU takes, E0519 to E0521 where the driver fails.
        """
        device = self._device()
        if library.is_forked():
            raise self._problems.unavailable(self.name, str(device), library.forked())
        version = self.suited(values)
        assert isinstance(version, Resident)
        _refuse_grid(self.name, grid)
        handle = devices.current_stream(device.ordinal) if stream is None else _handle(stream)
        packed = self._pack(values, grid)
        buffer = ctypes.create_string_buffer(packed, len(packed))
        first = ctypes.addressof(buffer)
        parameters = (ctypes.c_uint64 * self._count)(
            *range(first, first + layout.WORD * self._count, layout.WORD)
        )
        recent.note(self.number)
        try:
            with device.current():
                _wait_for_producers(device, handle, values)
                self._start(version, grid, handle, parameters)
        except CudaFailure as problem:
            raise self._problems.failed(self.name, device, problem) from None

    def _start(
        self, version: Resident, grid: tuple[int, int, int], stream: int, parameters: Any
    ) -> None:
        device, loaded = self._device(), version.loaded
        assert loaded is not None
        threads, shared = WARP_SIZE * version.kernel.num_warps, version.kernel.shared
        if not self.options.launch_cooperative_grid:
            device.cuda.cuLaunchKernel(
                loaded.function, *grid, threads, 1, 1, shared, stream, parameters, None
            )
            return
        from . import cooperative

        attribute = cooperative.LaunchAttribute(cooperative.COOPERATIVE)
        attribute.value[0] = 1
        config = cooperative.LaunchConfig(
            *grid, threads, 1, 1, shared, stream, ctypes.addressof(attribute), 1
        )
        device.cuda.cuLaunchKernelEx(ctypes.byref(config), loaded.function, parameters, None)

    @property
    def _problems(self) -> Any:
        # A warm start has none.
        from . import problems

        return problems

    def _device(self) -> Device:
        if self.device is None:
            raise error(
                "E0519",
                kernel=self.name,
                device=self.target.arch,
                text="it was compiled for no device of this machine",
                hint="launch the kernel itself",
            )
        return self.device

    def words(self, values: Sequence[Any]) -> list[int]:
        """The slots that the parameters point to."""
        packed = self._pack(values, (0, 0, 0))
        return list((ctypes.c_uint64 * (len(values) + 3)).from_buffer_copy(packed))[: len(values)]

    @property
    def plain(self) -> bool:
        """Whether a launch needs nothing but the function and its arguments."""
        return self.device is not None and not self.options.launch_cooperative_grid

    # ---- compiling -------------------------------------------------------------------------------

    def _make(self, disjoint: bool) -> Resident:
        self._refuse_capture()
        with llvm.timed(self.times, "look up"):
            name = self._key(disjoint)
            found = self._found(name)
            kernel = None if found is None else _restored(found)
        cached = kernel is not None
        if kernel is None:
            kernel = self._guarded("compiling", lambda: self._compile(disjoint))
            if kernel.cubin:
                with llvm.timed(self.times, "store"):
                    cache.store(name, _kept(self.name, kernel, self._packed))
        loaded = None
        if self.device is not None:
            with llvm.timed(self.times, "load"):
                loaded = self._load(kernel)
        self._report(disjoint)
        if disjoint:
            self._warn_of_spills(kernel)
        return Resident(kernel, loaded, self.number, cached)

    def _load(self, kernel: Code) -> Loaded:
        assert self.device is not None
        loaded = modules.load(self.device, kernel.cubin, kernel.entry, self.name, kernel.shared)
        threads = WARP_SIZE * kernel.num_warps
        if threads > loaded.most_threads:
            raise self._problems.too_many_threads(threads, loaded.most_threads)
        return loaded

    def _compile(self, disjoint: bool) -> Code:
        from tritium.backends.nvptx.compile import compile_kernel

        target, options = self.target, self.options
        with assembly.assembling(
            target.arch, target.ptx_version, options.ptx_options, self.device, self.name
        ) as assemble:
            made = compile_kernel(
                self._after_passes(),
                target,
                num_warps=options.num_warps,
                disjoint=disjoint,
                times=self.times,
            )
            ptx = made.ptx if options.maxnreg is None else _limited(made.ptx, options.maxnreg)
            with llvm.timed(self.times, "assemble"):
                assembled = assemble(ptx, lambda: self._meanwhile(ptx, made.llvm_ir))
        cubin, usage = (b"", None) if assembled is None else assembled[:2]
        spilled = 0 if usage is None else usage.spill_stores
        return Code(
            cubin=cubin,
            ptx=ptx,
            entry=made.entry,
            num_warps=made.num_warps,
            shared=made.shared_bytes,
            alias_pairs=made.alias_pairs,
            written=made.written,
            llvm_ir=made.llvm_ir,
            registers=0 if usage is None else usage.registers,
            spilled=spilled,
            spill_place=_spill_place(cubin) if spilled else None,
        )

    def _meanwhile(self, ptx: str, llvm_ir: str) -> None:
        """What the cache is to keep, as far as it is known before there is machine code."""
        self.catch_up()
        self._packed = {"ptx": cache.pack(ptx.encode()), "llir": cache.pack(llvm_ir.encode())}

    def _warn_of_spills(self, kernel: Code) -> None:
        if kernel.spilled:
            file, line = kernel.spill_place or self.place[1:]
            count = -(-kernel.spilled // _REGISTER)
            loc = Loc(file, line, 0, line, 0, self.name)
            warn("W0903", loc=loc, kernel=self.name, count=count)

    def _refuse_capture(self) -> None:
        """Raise E0522 while a CUDA graph is captured: code can't be loaded then."""
        device = self.device
        if device is None:
            return
        try:
            with device.current():
                capturing = device.capturing(devices.current_stream(device.ordinal))
        except CudaFailure as problem:
            if problem.status != _CAPTURE_ELSEWHERE:
                raise self._problems.failed(self.name, device, problem) from None
            capturing = True
        if capturing:
            raise error("E0522", kernel=self.name)


def _refuse(kernel: str, options: Options, device: Device | None) -> None:
    """Raise E0515 for options of a launch that can't be honoured."""
    text, name, hint = "", "num_warps", ""
    if options.num_warps > MOST_WARPS:
        text = f"a program has up to {MOST_WARPS} warps, got {options.num_warps}"
    elif options.num_ctas != 1:
        name, text = "num_ctas", "a program runs on one block of threads in this version"
        hint = "leave num_ctas out: results are the same"
    elif options.launch_cooperative_grid and device is not None and not device.cooperative:
        name, text = "launch_cooperative_grid", f"{device.name} can't run all programs at once"
    if text:
        raise error("E0515", kernel=kernel, name=name, text=text, hint=hint, argument=name)


def _refuse_grid(kernel: str, grid: tuple[int, int, int]) -> None:
    if max(grid[1:]) > MOST_ROWS:
        raise error(
            "E0510",
            kernel=kernel,
            grid=grid,
            text="is too large for a GPU",
            hint=f"the second and third axis have up to {MOST_ROWS} programs, the first 2**31 - 1",
            argument="grid",
        )


def _handle(stream: Any) -> int:
    """Of a stream: a number, or an object of torch or CuPy."""
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    return int(stream)


def _wait_for_producers(device: Device, stream: int, values: Sequence[Any]) -> None:
    """Have the stream wait for those on which arrays say that they are made."""
    for value in values:
        if isinstance(value, Produced) and value.stream not in (0, stream, stream or LEGACY):
            device.wait(stream, value.stream)


def _spill_place(cubin: bytes) -> tuple[str, int] | None:
    # Few kernels spill, and a warm start assembles none.
    from tritium.backends.nvptx import sass

    return sass.spill_place(cubin)


def _limited(ptx: str, registers: int) -> str:
    """PTX whose kernel's threads have no more than so many registers."""
    head, brace, rest = ptx.partition("\n{")
    return f"{head}\n.maxnreg {registers}{brace}{rest}"


# ---- the cache -----------------------------------------------------------------------------------


def _kept(name: str, kernel: Code, texts: Mapping[str, bytes]) -> cache.Entry:
    facts = {
        "kernel": name,
        "entry": kernel.entry,
        "num_warps": kernel.num_warps,
        "shared": kernel.shared,
        "alias_pairs": kernel.alias_pairs,
        "written": sorted(kernel.written),
        "registers": kernel.registers,
        "spilled": kernel.spilled,
        "spill_place": kernel.spill_place,
    }
    return cache.Entry(facts, {"cubin": kernel.cubin, **texts})


def _restored(entry: cache.Entry) -> Code | None:
    facts, sections = entry
    try:
        return Code(
            cubin=sections["cubin"],
            ptx=sections["ptx"].decode(),
            entry=facts["entry"],
            num_warps=facts["num_warps"],
            shared=facts["shared"],
            alias_pairs=tuple((left, right) for left, right in facts["alias_pairs"]),
            written=frozenset(facts["written"]),
            llvm_ir=sections["llir"].decode(),
            registers=facts["registers"],
            spilled=facts["spilled"],
            spill_place=tuple(facts["spill_place"]) if facts["spill_place"] else None,
        )
    except (KeyError, TypeError, ValueError):
        # Whole, but not made as this version makes them.
        return None
