"""From a kernel in tile IR to an object file, with what a launch must know about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tritium.backends import llvm
from tritium.ir.core import Function
from tritium.passes.origins import alias_pairs, written_parameters

if TYPE_CHECKING:
    from tritium.backends.llvm import Target, Times

from .dump import dump_plans
from .facts import is_steady
from .kernel import KernelWriter


@dataclass(frozen=True)
class CpuKernel:
    """A compiled kernel: ``void entry(ptr arguments, i64 first, i64 last, ptr scratch)``.

    ``arguments`` holds one 8-byte slot a parameter, then the grid's three extents. ``scratch`` is
    ``scratch_bytes`` of memory of each thread's own, aligned to 64 bytes. ``alias_pairs`` are the
    parameters whose memory must not overlap (none unless compiled as ``disjoint``), ``written``
    those that are stored through. ``steady``: a program takes about as long in every launch.
    ``slow`` counts the places that access memory lane by lane.
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


def symbol_of(function: Function) -> str:
    """The name of a kernel's entry.

    The dot keeps it apart from functions of the C library that the code may call (``exp``,
    ``memset``): a kernel may have the name of any.
    """
    return f"{function.name}.kernel"


def write_module(
    function: Function, target: Target, *, disjoint: bool, times: Times | None = None
) -> KernelWriter:
    """The kernel as LLVM IR, not yet optimised. Adds seconds by phase to ``times``."""
    with llvm.timed(times, "plan"):
        writer = KernelWriter(function, target, disjoint=disjoint, name=symbol_of(function))
    with llvm.timed(times, "emit"):
        writer.write()
    return writer


def compile_kernel(
    function: Function, target: Target, *, disjoint: bool, times: Times | None = None
) -> CpuKernel:
    """Compile a verified function.

    ``disjoint``: distinct pointer parameters (``alias_pairs``) are known not to overlap, so loads
    may move past stores to other parameters. Adds seconds by phase to ``times``.
    """
    writer = write_module(function, target, disjoint=disjoint, times=times)
    with llvm.timed(times, "emit"):
        text = writer.module.text()
    module: Any = llvm.optimise(text, target, times)
    return CpuKernel(
        object=llvm.emit_object(module, times),
        entry=symbol_of(function),
        scratch_bytes=writer.arena.peak,
        alias_pairs=tuple(alias_pairs(function)) if disjoint else (),
        written=written_parameters(function),
        steady=is_steady(function),
        llvm_ir=text,
        dump=dump_plans(writer),
        slow=dict(writer.counts),
    )
