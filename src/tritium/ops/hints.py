"""What helps the compiler or talks at compile time, and changes no result; loop iterators."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import ORDERED, Op, Value, attribute, op, operand
from tritium.ir.dtypes import DType, Type, int1, int8, int32, int64
from tritium.ir.types import PointerType, shaped

from .cast import convert_tile
from .constants import constant, describe, number, to_tile
from .constexpr import constexpr, unwrap
from .control import iterations
from .create import static_flag, static_int, static_value
from .emit import METHODS, emit, emit_tile, surface, tracer_of
from .promotion import common_type
from .spec import Case, Reject, Sample, given
from .tile import Tile
from .tuples import several


@op("hints.promise")
class Promise(Op):
    """``x`` itself, with what the user promises of it: facts that a code generator may use.

    Each attribute has one number for each axis, or none (``multiple``: one too for a scalar). Along
    its axis, from each multiple of a number in ``contiguous`` on as many elements count up by 1 (by
    the size of an element, for pointers); ``constant`` likewise of equal elements; the first of
    each such run, or of each run that is known otherwise, is a multiple of the number in
    ``multiple`` (for pointers in bytes). No result depends on a promise. One that doesn't hold may
    let a GPU access memory wrongly.
    """

    x: Value = operand()
    multiple: tuple[int, ...] = attribute(())
    contiguous: tuple[int, ...] = attribute(())
    constant: tuple[int, ...] = attribute(())

    def infer(self) -> Type:
        return self.x.type

    def evaluate(self, machine: Any, x: Any) -> Any:
        return np.asarray(x)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Promises that hold, of integers and pointers."""
        runs = np.arange(16, 48)
        promised = {"multiple": (16,), "contiguous": (16,)}
        for dtype in (int8, int32, int64):
            x = Sample(shaped(dtype, runs.shape), runs.astype(dtype.numpy))
            yield Case(cls, f"{dtype}", {"x": x}, promised, oracle=lambda x: (x,))
        one = Sample(int32, np.asarray(48, np.int32))
        yield Case(cls, "a scalar", {"x": one}, {"multiple": (16,)}, oracle=lambda x: (x,))
        pointers = Sample(shaped(PointerType(int32), runs.shape), (4 * runs).astype(np.uint64))
        yield Case(cls, "pointers", {"x": pointers}, promised, oracle=lambda x: (x,))

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Numbers that aren't one for each axis, or no constants."""
        x = given(int32, 4, 8)
        yield Reject("one for two axes", "E0206", lambda: multiple_of(x, 4), "values")
        yield Reject("three for two axes", "E0206", lambda: max_constancy(x, (1, 2, 4)), "values")
        yield Reject("one for none", "E0206", lambda: max_contiguous(given(int32), 4), "values")
        run_time = lambda: multiple_of(given(int32), given(int32))  # noqa: E731
        yield Reject("a run-time value", "E0205", run_time, "values")


@op("hints.assume", effects=ORDERED)
class Assume(Op):
    """A promise that the scalar int1 ``condition`` is true from here to the end of its block."""

    condition: Value = operand()

    def infer(self) -> None:
        if self.condition.type is not int1:
            expected, got = "an int1 scalar", self.condition.type
            hint = "compare: x != 0; of a tile, reduce it"
            raise error(
                "E0204", op="assume", expected=expected, got=got, hint=hint, argument="cond"
            )

    def evaluate(self, machine: Any, condition: Any) -> None:
        return None

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """A condition that holds."""
        true = Sample(int1, np.asarray(True))
        yield Case(cls, "true", {"condition": true}, oracle=lambda condition: ())

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Numbers and tiles."""
        yield Reject("an integer", "E0204", lambda: assume(given(int32)), "cond")
        yield Reject("a tile", "E0204", lambda: assume(given(int1, 4)), "cond")


def _promise(name: str, attribute: str, input: Any, values: Any) -> Any:
    """``input`` with a promise: one compile-time integer for each axis. Raises E0206."""
    numbers = tuple(static_int(name, value, "values") for value in several(values))
    tile = to_tile(input, name, "input")
    entries = len(tile.type.shape)
    if not entries and attribute == "multiple":
        entries = 1
    if len(numbers) != entries:
        raise error(
            "E0206",
            op=name,
            text=f"{len(numbers)} values for {entries} axes",
            hint="give one value for each axis",
            argument="values",
        )
    if any(number < 1 for number in numbers):
        text = f"{min(numbers)} elements make no run"
        hint = "promise 1 or more"
        raise error("E0206", op=name, text=text, hint=hint, argument="values")
    if not numbers or not (tile.type.is_ptr() or tile.dtype.is_int()) or tile.dtype is int1:
        return input
    inner = tile.value.defining_op
    promises: dict[str, Any] = {}
    if isinstance(inner, Promise):
        # Told one after the other, they hold together.
        tile, promises = Tile(inner.x), inner.attributes
        before = promises[attribute] or (1,) * len(numbers)
        numbers = tuple(map(max, before, numbers))
    return emit_tile(Promise, x=tile, **{**promises, attribute: numbers})


@surface
def multiple_of(input: Any, values: Any) -> Any:
    """``input`` itself: a promise that along each axis runs start at multiples of ``values``.

    One integer for each axis, or one for a scalar. Runs are those of ``max_contiguous`` or
    ``max_constancy``, or such as are known. A promise changes no result where it holds; on a GPU
    one that doesn't hold may make accesses go wrong. Raises E0206 for another number of values and
    for values under 1.
    """
    return _promise("multiple_of", "multiple", input, values)


@surface
def max_contiguous(input: Any, values: Any) -> Any:
    """``input`` itself: a promise that along each axis runs of ``values`` elements count up by 1.

    One integer for each axis; runs begin at multiples of it. See ``multiple_of``. Raises E0206 for
    another number of values.
    """
    return _promise("max_contiguous", "contiguous", input, values)


@surface
def max_constancy(input: Any, values: Any) -> Any:
    """``input`` itself: a promise that along each axis runs of ``values`` elements are equal.

    One integer for each axis; runs begin at multiples of it. See ``multiple_of``. Raises E0206 for
    another number of values.
    """
    return _promise("max_constancy", "constant", input, values)


@surface
def assume(cond: Any) -> None:
    """A promise that the scalar int1 ``cond`` is true. Raises E0204 for anything else.

    Used where it says something of one value: that it is a multiple of a constant
    (``n % 16 == 0``), or how it compares with one; and of what is combined by ``&``.
    """
    emit(Assume, condition=to_tile(cond, "assume", "cond"))


@surface
def debug_barrier() -> None:
    """Nothing: memory operations of a program already take effect in program order."""


@surface
def static_assert(cond: Any, msg: Any = "") -> None:
    """Stop compiling unless ``cond``, a compile-time bool, is true: E0119 with ``msg``.

    Raises E0205 for a run-time condition, E0204 for anything but a bool.
    """
    known = static_value("static_assert", cond, "cond")
    if not isinstance(known, bool):
        raise error(
            "E0204",
            op="static_assert",
            expected="a compile-time bool",
            got=describe(known),
            hint="compare, or write bool(x)",
            argument="cond",
        )
    text = str(static_value("static_assert", msg, "msg"))
    if not known:
        raise error("E0119", detail=f": {text}" if text else "", argument="cond")


@surface
def static_print(
    *values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False
) -> None:
    """Print at compile time, as Python's ``print``: values of constants, types of tiles."""
    texts = [str(unwrap(value)) for value in values]
    if tracer_of("static_print").quiet:
        return
    print(
        *texts,
        sep=static_value("static_print", sep, "sep"),
        end=static_value("static_print", end, "end"),
        file=unwrap(file) or sys.stdout,
        flush=static_flag("static_print", flush, "flush"),
    )


def _schedule(number: Any, argument: str) -> int | None:
    """A number for the schedule of a loop, or None. Raises E0205 and E0204."""
    return None if unwrap(number) is None else static_int("range", number, argument)


class Range:
    """``tl.range``, and Python's ``range`` in kernels: a run-time loop over integers.

    ``range(end)``, ``range(start, end)`` or ``range(start, end, step)``. The values have the common
    type of the bounds, int32 for constants that fit; they are Python's for a negative ``step`` too,
    and none for a run-time step of 0. The keywords are hints for the compiler's schedule and change
    no result. In eager mode it can be iterated over.
    """

    is_surface = True

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = None,
        num_stages: Any = None,
        loop_unroll_factor: Any = None,
        disallow_acc_multi_buffer: Any = False,
        flatten: Any = False,
        warp_specialize: Any = False,
        disable_licm: Any = False,
    ) -> None:
        one_bound = unwrap(arg2) is None
        self.start = 0 if one_bound else arg1
        self.end = arg1 if one_bound else arg2
        self.step = 1 if unwrap(step) is None else step
        self.num_stages = _schedule(num_stages, "num_stages")
        self.loop_unroll_factor = _schedule(loop_unroll_factor, "loop_unroll_factor")
        flags = {
            "disallow_acc_multi_buffer": disallow_acc_multi_buffer,
            "flatten": flatten,
            "warp_specialize": warp_specialize,
            "disable_licm": disable_licm,
        }
        self.hints = tuple(name for name, flag in flags.items() if static_flag("range", flag, name))
        if number(self.step) == 0:
            raise error("E0206", op="range", text="the step is 0", hint="", argument="step")

    @property
    def descends(self) -> bool:
        """Whether the step is negative."""
        known = number(self.step)
        return known is not None and known < 0

    def counter(self) -> tuple[Tile, Tile, Tile]:
        """Lower bound, upper bound and step of the loop that counts, of one type.

        A range with a negative constant step counts up from its end. Raises E0405 for bounds that
        are no integers.
        """
        step = number(self.step)
        parts = {
            "arg1": to_tile(self.start, "range", "arg1"),
            "arg2": to_tile(self.end, "range", "arg2"),
            "step": to_tile(self.step if step is None else abs(step), "range", "step"),
        }
        dtype: DType = int32
        for position, (argument, tile) in enumerate(parts.items()):
            if tile.type.shape or not tile.dtype.is_int():
                raise error("E0405", got=tile.type, argument=argument)
            # int1 bounds count as int32: no loop fits into one bit.
            scalar = int32 if tile.dtype is int1 else tile.dtype
            dtype = common_type("range", dtype, scalar) if position else scalar  # type: ignore[assignment]
        start, end, size = (convert_tile(tile, dtype) for tile in parts.values())
        return (end, start, size) if self.descends else (start, end, size)

    def value(self, counted: Tile, lower: Tile, upper: Tile) -> Tile:
        """What the loop variable is when the counting loop is at ``counted``."""
        if not self.descends:
            return counted
        sub = METHODS["__sub__"]
        made: Tile = sub(upper, sub(counted, lower))
        return made

    def __iter__(self) -> Iterator[Tile]:
        lower, upper, step = self.counter()
        dtype = lower.dtype
        assert isinstance(dtype, DType)
        for position in iterations(int(lower), int(upper), int(step)):
            yield self.value(constant(position, dtype), lower, upper)


class StaticRange:
    """``tl.static_range``: a loop that is unrolled; its variable is a ``constexpr``.

    Arguments as Python's ``range``, all compile-time integers. Raises E0205 for a run-time value,
    E0204 for anything but an integer, E0206 for a step of 0.
    """

    is_surface = True

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None) -> None:
        one_bound = unwrap(arg2) is None
        first = static_int("static_range", arg1, "arg1")
        self.start = 0 if one_bound else first
        self.end = first if one_bound else static_int("static_range", arg2, "arg2")
        self.step = 1 if unwrap(step) is None else static_int("static_range", step, "step")
        if self.step == 0:
            raise error("E0206", op="static_range", text="the step is 0", hint="", argument="step")

    def __iter__(self) -> Iterator[constexpr]:
        return map(constexpr, range(self.start, self.end, self.step))

    def __len__(self) -> int:
        return len(range(self.start, self.end, self.step))


class Condition:
    """``tl.condition(arg)``: a ``while`` condition with a hint that changes no result."""

    is_surface = True

    def __init__(self, arg: Any, disable_licm: Any = False) -> None:
        self.condition = arg
        self.disable_licm = static_flag("condition", disable_licm, "disable_licm")

    def __bool__(self) -> bool:
        return bool(self.condition)
