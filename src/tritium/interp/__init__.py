"""The interpreter: kernels run step by step as Python, or from tile IR, by one set of rules.

``run_eager`` runs a kernel function as Python; ``run_ir`` a compiled ``ir.Function``. Both work on
memory in place. Launching binds the arguments first and describes them as ``Pointer``, ``Scalar``,
``Known``, None or tuples of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tritium.diagnostics import warn
from tritium.ir.core import Function
from tritium.ops.callable import DeviceFunction

from .arguments import Argument, Known, Pointer, Scalar, array_argument
from .eager import EagerLaunch, EagerTracer
from .evaluator import Evaluator
from .grid import Fiber, Scheduler
from .machine import Client, Machine
from .memory import Memory, Range, byte_range

__all__ = [
    "Argument",
    "Client",
    "EagerLaunch",
    "EagerTracer",
    "Evaluator",
    "Fiber",
    "Known",
    "Machine",
    "Memory",
    "Pointer",
    "Range",
    "Scalar",
    "Scheduler",
    "array_argument",
    "byte_range",
    "run_eager",
    "run_ir",
]


def run_eager(
    function: DeviceFunction,
    arguments: Mapping[str, Argument],
    grid: Sequence[int],
    known_ranges: Iterable[Range | tuple[int, int]] = (),
    *,
    closed: bool = False,
    clients: Sequence[Client] = (),
    enable_fp_fusion: bool | None = None,
) -> None:
    """Run every program of a launch as Python, in ascending order, on the calling thread.

    ``arguments`` gives the bound parameters by name. ``grid`` has one to three extents; a 0 among
    them runs nothing. ``known_ranges`` are the bytes [low, high) of the array arguments (a
    ``Range`` also has a name for messages, and may be read-only): pointers inside are used at once,
    others are asked of the system first; where these are all, as ``closed`` says, others are errors
    until the program has loaded a pointer or made one of an integer. ``enable_fp_fusion`` given as
    True can't be honoured and gives W0902.

    Raises the coded errors of the operations with their place; E0701 chained to any other exception
    of the kernel; E0118 where the kernel's source can't be found; E0514 and E0608 for memory that
    can't be written or reached.
    """
    if enable_fp_fusion:
        warn("W0902", kernel=function.__name__)
    EagerLaunch(function, arguments, grid, known_ranges, closed=closed, clients=clients).run()


def run_ir(
    function: Function,
    args: Sequence[Any],
    grid: Sequence[int],
    known_ranges: Iterable[Range | tuple[int, int]] = (),
    *,
    clients: Sequence[Client] = (),
) -> None:
    """Run every program of a launch from tile IR, by the operations' reference rules.

    ``args`` follow the function's parameters: an array, a ``Pointer`` or a byte address for a
    pointer, a number or a ``Scalar`` for a scalar. Arrays add their own bytes to ``known_ranges``.

    Raises the coded errors of the operations, E0514 and E0608 as ``run_eager`` does.
    """
    Evaluator(function, args, grid, known_ranges, clients=clients).run()
