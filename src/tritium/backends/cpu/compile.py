"""From a kernel in tile IR to an object file, with what a launch must know about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tritium.backends import llvm
from tritium.backends.compiled import CpuKernel
from tritium.backends.supported import check_supported
from tritium.ir.core import Function
from tritium.passes.origins import alias_pairs, written_parameters
from tritium.passes.waiting import waits

if TYPE_CHECKING:
    from tritium.backends.llvm import Target, Times

from .dump import dump_plans
from .facts import is_steady
from .footprint import largest
from .kernel import KernelWriter


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
    may move past stores to other parameters. Adds seconds by phase to ``times``. Raises E0211 for
    an operation that says that there is no code for it.
    """
    check_supported(function, "cpu")
    writer = write_module(function, target, disjoint=disjoint, times=times)
    with llvm.timed(times, "emit"):
        text = writer.module.text()
    module: Any = llvm.optimise(text, target, times)
    return CpuKernel(
        object=llvm.emit_object(module, times),
        entry=symbol_of(function),
        scratch_bytes=writer.arena.peak,
        largest=largest(writer.arena),
        alias_pairs=tuple(alias_pairs(function)) if disjoint else (),
        written=written_parameters(function),
        steady=is_steady(function),
        waits=waits(function),
        reports=writer.reports > 0,
        llvm_ir=text,
        dump=dump_plans(writer),
        slow=dict(writer.counts),
    )
