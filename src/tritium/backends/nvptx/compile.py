"""From a kernel in tile IR to PTX, with what a launch must know about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritium.backends import llvm
from tritium.backends.supported import check_supported
from tritium.ir.core import Function
from tritium.passes.origins import alias_pairs, written_parameters

from . import codegen, shared
from .kernel import Writer
from .target import GpuTarget

if TYPE_CHECKING:
    from tritium.backends.llvm import Times


@dataclass(frozen=True)
class GpuKernel:
    """A compiled kernel: ``entry`` takes one parameter for each of the function's, in its type.

    It is launched with ``32 * num_warps`` threads along the first axis and ``shared_bytes`` of
    dynamic shared memory; the grid's extents are those of the launch. ``alias_pairs`` are the
    parameters whose memory must not overlap (none unless compiled as ``disjoint``), ``written``
    those that are stored through.
    """

    ptx: str
    entry: str
    num_warps: int
    shared_bytes: int
    alias_pairs: tuple[tuple[int, int], ...]
    written: frozenset[int]
    llvm_ir: str


def entry_name(function: Function) -> str:
    """The name of a kernel's entry: PTX has fewer letters than Python, and own names."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", function.name)
    return f"{name}_" if name in ("WARP_SZ", "_", shared.NAME) else name


def write_module(
    function: Function,
    target: GpuTarget,
    *,
    num_warps: int,
    disjoint: bool,
    times: Times | None = None,
) -> Writer:
    """The kernel as LLVM IR, not yet optimised. Adds seconds by phase to ``times``."""
    with llvm.timed(times, "plan"):
        writer = Writer(
            function, target, num_warps=num_warps, disjoint=disjoint, name=entry_name(function)
        )
    with llvm.timed(times, "emit"):
        writer.write()
    return writer


def compile_kernel(
    function: Function,
    target: GpuTarget,
    *,
    num_warps: int,
    disjoint: bool,
    times: Times | None = None,
) -> GpuKernel:
    """Compile a verified function for blocks of ``num_warps`` warps, a power of two up to 32.

    ``disjoint``: distinct pointer parameters (``alias_pairs``) are known not to overlap, so an
    access needs not wait for those to other parameters. Adds seconds by phase to ``times``. Raises
    E0211 for an operation that says that there is no code for it.
    """
    check_supported(function, "nvptx")
    writer = write_module(function, target, num_warps=num_warps, disjoint=disjoint, times=times)
    with llvm.timed(times, "emit"):
        text = writer.module.text()
    return GpuKernel(
        ptx=codegen.to_ptx(text, target, times),
        entry=entry_name(function),
        num_warps=num_warps,
        shared_bytes=writer.shared.total,
        alias_pairs=tuple(alias_pairs(function)) if disjoint else (),
        written=written_parameters(function),
        llvm_ir=text,
    )
