"""Runs the generated cases by the reference rules, and compares results by class of agreement.

Nothing here depends on an executor: cases run without a kernel, on memory of their own.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import io
import math
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from types import FrameType
from typing import Any, TypeVar

import numpy as np

import tritium.ops
from tritium.diagnostics import Loc, TritiumError
from tritium.ir.core import REGISTRY, ConcreteValue, Op, Region, Value
from tritium.ir.dtypes import DType, Type, float64
from tritium.ir.tracer import tracing
from tritium.ir.types import shaped
from tritium.ops.codecs import convert, decode
from tritium.ops.scalars import ScalarRule
from tritium.ops.spec import (
    Agreement,
    Array,
    Case,
    Exact,
    Order,
    Reject,
    Ulp,
    agreement_of,
    cases_of,
    rejects_of,
)
from tritium.ops.tile import Tile
from tritium.ops.tuples import TileTuple

T = TypeVar("T")


@functools.cache
def load_operations() -> None:
    """Import every module of operations, so that the registry is complete."""
    for module in pkgutil.iter_modules(tritium.ops.__path__):
        importlib.import_module(f"tritium.ops.{module.name}")


def all_operations() -> list[type[Op]]:
    load_operations()
    return [REGISTRY[mnemonic] for mnemonic in sorted(REGISTRY)]


def all_cases() -> list[Case]:
    """Every case of every operation, in order of the mnemonics."""
    return [case for cls in all_operations() for case in cases_of(cls)]


def all_rejects() -> list[tuple[type[Op], Reject]]:
    return [(cls, reject) for cls in all_operations() for reject in rejects_of(cls)]


# ---- running ------------------------------------------------------------------------------------


class ReferenceMachine:
    """Program (0, 0, 0) of a grid of one, on the process's own memory."""

    program = (0, 0, 0)
    grid = (1, 1, 1)

    def __init__(self) -> None:
        self.known: dict[Value, Any] = {}

    def load(self, op: Op, addresses: Array, mask: Array | None, fill: Array) -> Array:
        loaded = np.array(np.broadcast_to(fill, addresses.shape))
        for lane in np.ndindex(addresses.shape):
            if mask is None or mask[lane]:
                raw = ctypes.string_at(int(addresses[lane]), loaded.itemsize)
                loaded[lane] = np.frombuffer(raw, loaded.dtype)[0]
        return loaded

    def store(self, op: Op, addresses: Array, values: Array, mask: Array | None) -> None:
        for lane in np.ndindex(addresses.shape):
            if mask is None or mask[lane]:
                raw = np.asarray(values[lane]).tobytes()
                ctypes.memmove(int(addresses[lane]), raw, len(raw))

    def update(
        self, op: Op, addresses: Array, mask: Array | None, change: Any, *given: Array
    ) -> Array:
        found = np.zeros(addresses.shape, given[-1].dtype)
        for lane in np.ndindex(addresses.shape):
            if mask is None or mask[lane]:
                one = np.ones((), bool)
                old = self.load(op, addresses[lane], one, np.zeros(1, found.dtype)[0])
                parts = [np.asarray(each[lane]).reshape(1) for each in given]
                self.store(op, addresses[lane], change(old.reshape(1), *parts)[0], one)
                found[lane] = old
        return found

    def made_pointers(self) -> None:
        pass

    def again(self, loop: Op, execution: object, carried: tuple[Any, ...]) -> None:
        pass

    def print(self, text: str) -> None:
        sys.stdout.write(text)

    def run(self, region: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        if not isinstance(region, Region):
            return tuple(region(*args))
        # Inner regions read what the ones around them have made.
        known = self.known
        known.update(zip(region.args, args))
        for op in region.ops:
            handed = evaluate_op(op, self, known)
            if op.terminator:
                return tuple(handed)
            known.update(zip(op.results, handed))
        return ()


def evaluate_op(op: Op, machine: Any, known: dict[Value, Any]) -> tuple[Any, ...]:
    """The results of one operation, its operands looked up in ``known``."""

    def array(group: Value | tuple[Value, ...] | None) -> Any:
        if isinstance(group, tuple):
            return tuple(known[value] for value in group)
        return None if group is None else known[group]

    outcome = op.evaluate(machine, *(array(group) for group in op.operand_groups()))
    if outcome is None:
        return ()
    return outcome if isinstance(outcome, tuple) else (outcome,)


def case_buffers(case: Case) -> dict[str, Array]:
    """Copies of the memory that a case works on."""
    return {name: np.array(buffer) for name, buffer in case.buffers.items()}


def operand_data(case: Case, buffers: dict[str, Array]) -> list[Array]:
    """The data of each of ``case.samples()``; pointers as byte addresses into ``buffers``."""
    data = []
    for sample in case.samples():
        if sample.buffer is None:
            data.append(sample.data)
        else:
            buffer = buffers[sample.buffer]
            offsets = np.asarray(sample.data).astype(np.int64) * buffer.itemsize
            data.append((buffer.ctypes.data + offsets).astype(np.uint64))
    return data


def evaluate_case(case: Case) -> list[Array]:
    """The results by the reference rule, then the final contents of the case's buffers."""
    buffers = case_buffers(case)
    data = operand_data(case, buffers)
    values = [ConcreteValue(sample.type, each) for sample, each in zip(case.samples(), data)]
    op = case.build(values)
    types = op.result_types()
    results = evaluate_op(op, ReferenceMachine(), dict(zip(values, data)))
    assert len(results) == len(types), f"{case.label}: {len(results)} results, {types} inferred"
    arrays = [np.asarray(result) for result in results]
    for array, type in zip(arrays, types):
        expected = (type.scalar.numpy, type.shape)
        assert (array.dtype, array.shape) == expected, f"{case.label}: {array.dtype}, {type}"
    return arrays + list(buffers.values())


def heard(run: Callable[[], T]) -> tuple[T | None, str]:
    """What ``run`` gives, and what it prints; an assertion that fails ends it with its message."""
    made: T | None = None
    with io.StringIO() as text:
        with redirect_stdout(text):
            try:
                made = run()
            except TritiumError as problem:
                if problem.code != "E0703":
                    raise
                text.write(problem.message)
        return made, text.getvalue()


def case_difference(
    case: Case, got: Sequence[Array], executor: str, want: Sequence[Array] | None = None
) -> str | None:
    """Where an executor's results and buffers break its promise, in words; None if nowhere.

    ``want`` is ``evaluate_case(case)``, where the caller has it.
    """
    want = evaluate_case(case) if want is None else want
    types = [type.scalar for type in case.result_types()]
    magnitude = None
    if case.magnitude is not None:
        magnitude = case.magnitude(*(sample.data for sample in case.samples()))
    for have, expected, type in zip(got, want, types):
        promised = agreement_of(case.op, executor, type)
        text = disagreement(have, expected, promised, type, magnitude, case.accumulator)
        if text:
            return text
    for have, expected in zip(got[len(types) :], want[len(types) :], strict=True):
        if have.tobytes() != expected.tobytes():
            return f"memory holds {have}, expected {expected}"
    return None


class EagerTracer:
    """Evaluates each operation as it is made: enough for surface functions on known tiles."""

    eager = True
    quiet = False
    checks = True

    def loc(self) -> Loc | None:
        return None

    def emit(self, op: Op) -> Sequence[Value]:
        if self.rule is not None:
            self.rule.check(op)
        types = op.result_types()
        known = {value: value.data for value in op.operands if isinstance(value, ConcreteValue)}
        with np.errstate(all="ignore"):
            results = evaluate_op(op, ReferenceMachine(), known)
        return [ConcreteValue(type, np.asarray(data)) for type, data in zip(types, results)]

    def call(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return function.fn(*args, **kwargs)

    rule: ScalarRule | None = None

    def decides(self, value: Value) -> None:
        if self.rule is not None:
            self.rule.decides()

    def tells(self, verb: str) -> None:
        pass

    def again(self, frame: FrameType, execution: object) -> None:
        pass

    def region(self, function: Any, arg_types: Sequence[Type], rule: ScalarRule) -> Any:
        def combine(*arrays: Array) -> tuple[Array, ...]:
            tiles = [
                Tile(ConcreteValue(shaped(type, array.shape), array))
                for type, array in zip(arg_types, arrays)
            ]
            self.rule = rule
            try:
                result = function(*tiles)
            finally:
                self.rule = None
            several = result if isinstance(result, (tuple, TileTuple)) else (result,)
            return tuple(tile.data for tile in several)

        return combine


@contextmanager
def eager() -> Iterator[EagerTracer]:
    """Surface functions evaluate at once inside."""
    load_operations()
    tracer = EagerTracer()
    with tracing(tracer):
        yield tracer


# ---- comparing ----------------------------------------------------------------------------------


def agrees(
    got: Array,
    want: Array,
    agreement: Agreement,
    dtype: Type,
    magnitude: Array | None = None,
    accumulator: DType | None = None,
) -> bool:
    """Whether ``got``, of type ``dtype`` in storage form, is as close to ``want`` as promised.

    ``want`` is in storage form too, or float64 for a float type that is narrower: then ``Exact``
    asks for the one rounding of it. ``magnitude`` and ``accumulator`` belong to ``Order``.
    """
    return disagreement(got, want, agreement, dtype, magnitude, accumulator) is None


def disagreement(
    got: Array,
    want: Array,
    agreement: Agreement,
    dtype: Type,
    magnitude: Array | None = None,
    accumulator: DType | None = None,
) -> str | None:
    """The first element that breaks the promise, in words; None when all keep it."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.dtype != dtype.numpy:
        return f"stored as {got.dtype}, expected {dtype.numpy}"
    got, want = got.reshape(-1), want.reshape(-1)
    with np.errstate(all="ignore"):
        if not (isinstance(dtype, DType) and dtype.is_floating()):
            fine = got == want
        elif isinstance(agreement, Exact):
            fine = _equal_bits(got, want, dtype)
        else:
            fine = _close(got, want, agreement, dtype, magnitude, accumulator)
    if fine.all():
        return None
    bad = np.flatnonzero(~fine)
    index = int(bad[0])
    return (
        f"{len(bad)} of {fine.size} elements, first at {index}: {got[index]!r} "
        f"instead of {want[index]!r} ({agreement})"
    )


def _equal_bits(got: Array, want: Array, dtype: DType) -> Array:
    if want.dtype != dtype.numpy:
        want = convert(want, float64, dtype)
    unsigned = f"u{dtype.itemsize}"
    both_nan = np.isnan(decode(got, dtype)) & np.isnan(decode(want, dtype))
    return (got.view(unsigned) == want.view(unsigned)) | both_nan


def _close(
    got: Array,
    want: Array,
    agreement: Agreement,
    dtype: DType,
    magnitude: Array | None,
    accumulator: DType | None,
) -> Array:
    have = decode(got, dtype)
    exact = want if want.dtype == np.float64 else decode(want, dtype)
    same = (np.isnan(have) & np.isnan(exact)) | (have == exact) | _equal_bits(got, want, dtype)
    if isinstance(agreement, Ulp):
        # Zeros with the wrong sign are equal by value; the sign must agree where zero is exact.
        same &= (exact != 0) | (np.signbit(have) == np.signbit(exact))
        return same | _within_ulps(have, exact, agreement.count, dtype)
    assert isinstance(agreement, Order)
    assert magnitude is not None, "an Order needs the case's magnitude"
    epsilon = (accumulator or dtype).format.epsilon
    rounding = dtype.format.epsilon * np.abs(exact) if accumulator not in (None, dtype) else 0.0
    bound = agreement.bound * epsilon * np.asarray(magnitude).reshape(-1) + rounding
    return same | (np.abs(have - exact) <= bound)


def _within_ulps(have: Array, exact: Array, count: float, dtype: DType) -> Array:
    layout = dtype.format
    _, exponent = np.frexp(np.where(np.isfinite(exact), exact, 1.0))
    floor = round(math.log2(layout.smallest_subnormal))
    unit = np.ldexp(1.0, np.maximum(exponent - 1 - layout.mantissa_bits, floor))
    top = round(math.log2(layout.largest)) if not layout.has_inf else layout.bias
    if not layout.has_inf or dtype is float64:
        return np.isfinite(have) & np.isfinite(exact) & (np.abs(have - exact) <= count * unit)
    # Past the largest value comes the infinity, one step further.
    limit = math.ldexp(1.0, top + 1)
    last_unit = layout.largest * layout.epsilon / 2
    must_overflow = np.abs(exact) > limit + count * last_unit
    have_limited = np.clip(have, -limit, limit)
    near = np.abs(have_limited - np.clip(exact, -limit, limit)) <= count * unit
    return np.where(must_overflow, np.isinf(have) & (np.sign(have) == np.sign(exact)), near)
