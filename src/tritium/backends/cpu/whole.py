"""Operations on stored tiles: each is a step of its own between the nests.

It reads its operands from scratch and leaves its results there. Which operations these are is
said once, where each one's code is written: by ``writes``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tritium.ir.core import Op

from .memory_map import Buffer

if TYPE_CHECKING:
    from .kernel import KernelWriter

Writer: TypeAlias = "Callable[[KernelWriter, Any], None]"
WriterOfTiles: TypeAlias = "Callable[[KernelWriter, Any, Sequence[Buffer]], None]"

_WRITERS: dict[type[Op], Writer] = {}


def writes(*classes: type[Op]) -> Callable[[Writer], Writer]:
    """Decorator: the function writes such an operation where the kernel stands."""

    def register(writer: Writer) -> Writer:
        _WRITERS.update(dict.fromkeys(classes, writer))
        return writer

    return register


def writes_tiles(cls: type[Op]) -> Callable[[WriterOfTiles], WriterOfTiles]:
    """As ``writes``; the function is given a buffer for each result, and may use scratch."""

    def register(writer: WriterOfTiles) -> WriterOfTiles:
        @writes(cls)
        def write(kernel: KernelWriter, op: Any) -> None:
            results = {value: kernel.buffer(value) for value in op.results}
            mark = kernel.arena.top
            writer(kernel, op, [*results.values()])
            kernel.arena.release(mark)
            kernel.buffers.update(results)

        return writer

    return register


def is_whole(op: Op) -> bool:
    """Whether an operation works on stored tiles."""
    return type(op) in _WRITERS


def write_whole(kernel: KernelWriter, op: Op) -> None:
    """Write one such operation where the kernel stands."""
    _WRITERS[type(op)](kernel, op)
