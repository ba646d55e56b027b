"""Who carries out an operation: the front end records it, the interpreter evaluates it.

Surface functions (``tl.*``) build an operation and hand it to the active tracer of this thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

import numpy as np

from tritium.diagnostics import Loc

from .core import Op, Region, Value
from .dtypes import Type


class Tracer(Protocol):
    """What surface functions need from the front end and from eager mode."""

    eager: bool
    """True when values are known at once."""
    quiet: bool
    """True when nothing is to be printed or warned of: somebody else has been told already."""

    checks: bool
    """True when assertions are carried out."""

    def loc(self) -> Loc | None:
        """The place in the user's source that is being executed; None when found on demand."""

    def emit(self, op: Op) -> Sequence[Value]:
        """Carry out ``op`` (its fields set, its results not yet made); returns its results."""

    def call(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a device function (``ops.callable.DeviceFunction``) with surface values."""

    def region(
        self, function: Any, arg_types: Sequence[Type], rule: Any
    ) -> Region | Callable[..., tuple[Any, ...]]:
        """``function`` over scalars as the region of an operation such as a reduction.

        The front end returns a Region whose block ends with ``control.yield``; eager mode returns
        a callable over arrays (one per argument type) that returns a tuple of arrays. ``rule``, an
        ``ops.scalars.ScalarRule``, says what the function may hold: of a region the operation's
        ``infer`` asks it, eager mode while the function runs.
        """

    def decides(self, value: Value) -> None:
        """Note that a known value is asked for: what the program does next may depend on it."""

    def again(self, frame: FrameType, execution: object) -> None:
        """Note that a ``while`` loop of kernel code that runs as Python begins another pass."""

    def tells(self, verb: str) -> None:
        """Note that Python itself is about to print or to assert."""


class Machine(Protocol):
    """The state of one program while operations are evaluated; passed to ``Op.evaluate``."""

    program: tuple[int, int, int]
    """This program's index on the grid."""
    grid: tuple[int, int, int]
    """The grid's extents."""

    def load(
        self, op: Op, addresses: np.ndarray, mask: np.ndarray | None, fill: np.ndarray
    ) -> np.ndarray:
        """Elements at byte ``addresses`` (uint64), of ``fill``'s dtype, where ``mask``.

        Lanes that are masked off keep ``fill``.
        """

    def store(
        self, op: Op, addresses: np.ndarray, values: np.ndarray, mask: np.ndarray | None
    ) -> None:
        """Write ``values`` at byte ``addresses`` where ``mask``."""

    def print(self, text: str) -> None:
        """Print whole lines."""

    def again(self, loop: Op, execution: object, carried: tuple[Any, ...]) -> None:
        """A run-time ``while`` loop begins another pass, with these values.

        ``execution`` is another object each time that the loop is begun.
        """

    def made_pointers(self) -> None:
        """Note that pointers are made of integers."""

    def run(self, region: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """Run a region (or eager mode's callable) on arrays; returns what it yields."""


class _Active(threading.local):
    tracer: Tracer | None = None


_active = _Active()


def active() -> Tracer | None:
    """The tracer of this thread, or None outside kernels."""
    return _active.tracer


@contextmanager
def tracing(tracer: Tracer | None) -> Iterator[None]:
    """Make ``tracer`` this thread's active one."""
    before = _active.tracer
    _active.tracer = tracer
    try:
        yield
    finally:
        _active.tracer = before
