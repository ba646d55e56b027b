"""Runs one kernel three ways on copies of the same arrays: eager, IR evaluator, machine code."""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tritium import interp, passes
from tritium.backends import caches, llvm
from tritium.backends.cpu import CpuKernel, compile_kernel
from tritium.backends.host import layout
from tritium.backends.llvm import Library
from tritium.frontend import ArrayArgument, parameters, specialize_arg, trace
from tritium.frontend.specialize import PointerSpec, ScalarSpec
from tritium.ir.core import Function
from tritium.ir.dtypes import from_numpy
from tritium.ops.callable import DeviceFunction
from tritium.ops.create import Constant
from tritium.passes.origins import alias_pairs
from tritium.runtime import reports

Arrays = Mapping[str, np.ndarray]


def storage_of(array: np.ndarray) -> np.ndarray:
    """The array that owns a view's memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def forbid(start: int, size: int) -> None:
    """Let an access to these pages end the process, where the system can do that."""
    protect = getattr(ctypes.CDLL(None), "mprotect", None) if sys.platform != "win32" else None
    if protect is not None:
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        assert protect(start, size, 0) == 0


def _fresh(size: int) -> mmap.mmap:
    """Pages of this process alone, as arrays have; what ``mmap`` gives unasked is shared memory."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def guarded_copy(array: np.ndarray, place: str) -> np.ndarray:
    """A copy, in the same order, between two pages that must not be touched.

    ``place``: "first" begins a cache line right behind one page, "last" ends within 16 bytes of
    the other, at a multiple of 16.
    """
    page = mmap.PAGESIZE
    inner = max(1, -(-array.nbytes // page)) * page
    memory = _fresh(inner + 2 * page)
    start = page if place == "first" else page + (inner - array.nbytes) // 16 * 16
    made = np.ndarray(array.shape, array.dtype, memory, start, array.strides)
    made[...] = array
    base = address(made) - start
    forbid(base, page)
    forbid(base + page + inner, page)
    return made


def copied(arguments: Mapping[str, Any], place: str = "first") -> dict[str, Any]:
    """The arguments with their memory copied once per owner, so that views stay views of it."""
    owners: dict[int, np.ndarray] = {}
    made: dict[str, Any] = {}
    for name, value in arguments.items():
        if not isinstance(value, np.ndarray):
            made[name] = value
            continue
        owner = storage_of(value)
        if id(owner) not in owners:
            owners[id(owner)] = guarded_copy(owner, place)
        fresh = owners[id(owner)]
        offset = value.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        made[name] = np.ndarray(value.shape, value.dtype, fresh, offset, value.strides)
    return made


def address(array: np.ndarray) -> int:
    """Of the first element."""
    return int(array.__array_interface__["data"][0])


def extent(array: np.ndarray) -> tuple[int, int]:
    """The bytes of the memory a view belongs to."""
    owner = storage_of(array)
    return address(owner), address(owner) + owner.nbytes


def specialised(fn: DeviceFunction, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The specs of the arguments by name."""
    rules = parameters(fn)
    specs = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            value = ArrayArgument(from_numpy(value.dtype), address(value))
        specs[name] = specialize_arg(value, rules[name])
    return specs


def traced(
    fn: DeviceFunction, arguments: Mapping[str, Any], pipeline: str | None = None
) -> Function:
    """The kernel in tile IR after the default passes (or the given ones); not to be changed."""
    specs = tuple(specialised(fn, arguments).items())
    return _traced(fn, specs, passes.DEFAULT if pipeline is None else pipeline)


@functools.lru_cache(maxsize=256)
def _traced(fn: DeviceFunction, specs: tuple[tuple[str, Any], ...], pipeline: str) -> Function:
    function = trace(fn, dict(specs)).function
    passes.run_pipeline(function, pipeline)
    return function


def run_eager(
    fn: DeviceFunction, arguments: Mapping[str, Any], grid: Sequence[int]
) -> dict[str, Any]:
    """Eager mode on copies; returns them."""
    mine = copied(arguments)
    specs = specialised(fn, mine)
    described: dict[str, Any] = {}
    for name, value in mine.items():
        spec = specs[name]
        if isinstance(spec, PointerSpec):
            described[name] = interp.Pointer(spec.dtype, address(value))
        elif isinstance(spec, ScalarSpec):
            described[name] = interp.Scalar(spec.dtype, value)
        else:
            described[name] = interp.Known(value)
    ranges = [extent(value) for value in mine.values() if isinstance(value, np.ndarray)]
    interp.run_eager(fn, described, grid, ranges)
    return mine


def run_ir(
    fn: DeviceFunction,
    arguments: Mapping[str, Any],
    grid: Sequence[int],
    pipeline: str | None = None,
) -> dict[str, Any]:
    """The IR evaluator on copies; returns them."""
    mine = copied(arguments)
    function = traced(fn, mine, pipeline)
    values = []
    for param in function.params:
        value = mine[param.name]
        if isinstance(value, np.ndarray):
            values.append(address(value))
        else:
            number = float(value) if param.type.is_floating() else int(value)
            values.append(Constant(value=number, dtype=param.type).evaluate(None))
    ranges = [extent(value) for value in mine.values() if isinstance(value, np.ndarray)]
    interp.run_ir(function, values, grid, ranges)
    return mine


def overlapping(function: Function, pairs: Sequence[tuple[int, int]], mine: Arrays) -> bool:
    """Whether the memory of any of these pairs of parameters overlaps."""
    for left, right in pairs:
        a = extent(mine[function.params[left].name])
        b = extent(mine[function.params[right].name])
        if a[0] < b[1] and b[0] < a[1]:
            return True
    return False


@functools.lru_cache(maxsize=256)
def compiled(
    function: Function, cpu: str | None, disjoint: bool, stream: bool
) -> tuple[CpuKernel, Library]:
    """The machine code of a kernel, linked."""
    with pytest.MonkeyPatch.context() as patch:
        if stream:
            patch.setattr(caches, "last_level_cache", lambda: 0)
        kernel = compile_kernel(function, llvm.host_target(cpu), disjoint=disjoint)
    return kernel, llvm.link(kernel.object, [kernel.entry], reports.imports())


def run_cpu(
    fn: DeviceFunction,
    arguments: Mapping[str, Any],
    grid: Sequence[int],
    *,
    cpu: str | None = None,
    parts: int = 1,
    disjoint: bool = True,
    stream: bool = False,
) -> tuple[dict[str, Any], CpuKernel]:
    """Machine code on copies; returns them and the kernel.

    ``cpu`` names a target with other vectors; ``parts`` is how many ranges of programs the grid is
    run in, last range first, as other threads might. Arguments that overlap, or ``disjoint=False``,
    make it the version that presumes nothing of them. ``stream`` lets every output that qualifies
    bypass the cache, whatever its size.
    """
    mine = copied(arguments, "first" if stream else "last")
    function = traced(fn, mine)
    disjoint = disjoint and not overlapping(function, alias_pairs(function), mine)
    kernel, library = compiled(function, cpu, disjoint, stream)
    execute(kernel, library, function, mine, grid, parts)
    return mine, kernel


def execute(
    kernel: CpuKernel,
    library: Library,
    function: Function,
    mine: Mapping[str, Any],
    grid: Sequence[int],
    parts: int = 1,
) -> None:
    """Run a compiled kernel over a grid, its scratch memory filled with rubbish."""
    slots = np.zeros(len(function.params) + 4, np.uint64)
    for number, param in enumerate(function.params):
        value = mine[param.name]
        if isinstance(value, np.ndarray):
            slots[number] = address(value)
        else:
            number_ = float(value) if param.type.is_floating() else int(value)
            data = Constant(value=number_, dtype=param.type).evaluate(None)
            raw = np.asarray(data).tobytes()
            slots[number : number + 1].view(np.uint8)[: len(raw)] = np.frombuffer(raw, np.uint8)
    extents = [*grid, 1, 1][:3]
    slots[len(function.params) : -1] = extents
    programs = int(np.prod(extents))
    scratch = guarded_copy(np.full(-(-kernel.scratch_bytes // 64) * 64, 0xC5, np.uint8), "last")
    aligned = address(scratch)
    if kernel.waits:
        ctypes.memset(aligned, 0, layout.Waiter.SIZE)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    entry = kind(library.address(kernel.entry))
    cuts = [programs * part // parts for part in range(parts + 1)]
    with reports.raising() as slots[-1]:
        for part in reversed(range(parts)):
            entry(address(slots), cuts[part], cuts[part + 1], aligned)


@functools.cache
def narrow_cpu() -> str | None:
    """A CPU with shorter vectors whose code this machine can run, if there is one."""
    try:
        llvm.host_target("x86-64-v3")
    except ValueError:
        return None
    return "x86-64-v3"


def same(got: np.ndarray, want: np.ndarray) -> bool:
    """Bit for bit, every NaN of a float type alike."""
    got, want = np.ascontiguousarray(got), np.ascontiguousarray(want)
    kind = f"u{got.itemsize}"
    equal = got.view(kind) == want.view(kind)
    if got.dtype.kind not in "iub":
        equal |= np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    return bool(equal.all())


def agree(
    kernel: DeviceFunction, grid: Sequence[int] = (1,), **arguments: Any
) -> tuple[dict[str, Any], CpuKernel]:
    """Run a kernel on every executor, natively with two widths of vectors; the memory that each
    array lies in must end up the same. Returns eager mode's arguments and the machine code."""
    want = run_eager(kernel, arguments, grid)
    results = {"ir": run_ir(kernel, arguments, grid)}
    results["cpu"], code = run_cpu(kernel, arguments, grid)
    narrow: dict[str, Any] = {"cpu": narrow_cpu(), "parts": 2, "stream": True}
    results["narrow"], _ = run_cpu(kernel, arguments, grid, **narrow)
    for executor, got in results.items():
        for name, value in want.items():
            if isinstance(value, np.ndarray):
                wrong = f"{name} of {executor}\n{code.dump}"
                assert same(storage_of(got[name]), storage_of(value)), wrong
    return want, code
