"""What an operation promises and how it is tested: agreement classes, cases, rejects.

An operation class states, beside its meaning:

- ``agreement``: for each executor how close it must come to ``evaluate`` (the key ``"reference"``:
  how close ``evaluate`` itself comes to the exact mathematical result). A class, or one for each
  dtype; what isn't named is ``Exact``.
- ``cases()``: a class method that yields ``Case`` objects, concrete operands to run it on.
- ``rejects()``: a class method that yields ``Reject`` objects, programs that must be refused.

The family bases of ``elementwise`` give the last two to their members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tritium.ir.core import ConcreteValue, FieldKind, Op, Region, Value
from tritium.ir.dtypes import Array, DType, Type
from tritium.ir.types import shaped

from .tile import Tile

EXECUTORS = ("reference", "interp", "cpu", "nvptx")


@dataclass(frozen=True)
class Exact:
    """Equal bit for bit; every NaN of a format counts as the same."""


@dataclass(frozen=True)
class Ulp:
    """At most ``count`` units in the last place of the result's type away.

    Infinities, NaN and the sign of zero must agree exactly, except that a finite result within
    ``count`` ulp of the overflow threshold may be the infinity.
    """

    count: float


@dataclass(frozen=True)
class Order:
    """A sum whose order is free: |got - want| <= ``bound`` * epsilon * magnitude.

    epsilon is that of the type the sum is accumulated in (``Case.accumulator``, else the
    result's), magnitude what ``Case.magnitude`` gives: the sum of the terms' absolute values.
    """

    bound: float


Agreement: TypeAlias = Exact | Ulp | Order
AgreementTable: TypeAlias = Mapping[str, "Agreement | Mapping[DType, Agreement]"]


def agreement_of(cls: type[Op], executor: str, dtype: Type) -> Agreement:
    """The class that ``cls`` declares for an executor and an element type."""
    table: AgreementTable = getattr(cls, "agreement", {})
    given = table.get(executor, Exact())
    if isinstance(given, Mapping):
        return given.get(dtype, Exact()) if isinstance(dtype, DType) else Exact()
    return given


@dataclass(frozen=True)
class Sample:
    """One operand of a case.

    ``data`` has ``type``'s shape, in storage form. A pointer operand names a buffer of its case:
    its data are int64 element offsets from that buffer's start.
    """

    type: Type
    data: Array
    buffer: str | None = None


Operands: TypeAlias = "Mapping[str, Sample | tuple[Sample, ...] | None]"


@dataclass(frozen=True)
class Case:
    """Concrete operands for one operation, and what is known of the result.

    ``regions`` makes each region anew (a region belongs to one operation only). ``buffers`` holds
    the memory that pointer operands point into, as one-dimensional arrays in storage form; it is
    copied before a run, and its final contents belong to the results. ``oracle`` takes the
    operands' arrays (pointers as offsets) and gives the results by independent means: float64 or
    exact integers where the results round, else storage form; where it is None the tests look one
    up by the operation's mnemonic. ``told`` is what it prints, or the message of the error that
    ends its program. ``row`` is the element type that the case stands for in the completeness
    table, where that isn't the first operand's.
    """

    op: type[Op]
    label: str
    operands: Operands
    attributes: Mapping[str, Any] = field(default_factory=dict)
    regions: Mapping[str, Callable[[], Region]] = field(default_factory=dict)
    buffers: Mapping[str, Array] = field(default_factory=dict)
    oracle: Callable[..., Any] | None = None
    magnitude: Callable[..., Any] | None = None
    accumulator: DType | None = None
    told: str = ""
    row: Type | None = None

    @property
    def dtype(self) -> Type:
        """``row``, else the element type of the first operand, else of the result."""
        if self.row is not None:
            return self.row
        for sample in self.samples():
            return sample.type.scalar
        return self.result_types()[0].scalar

    def result_types(self) -> tuple[Type, ...]:
        """Types of the results."""
        return self.build([Value(sample.type) for sample in self.samples()]).result_types()

    def samples(self) -> list[Sample]:
        """The operands that are present, flat, in the order of the fields."""
        flat: list[Sample] = []
        for key, declared in self.op.fields.items():
            given = self.operands.get(key) if declared.is_operand else None
            if isinstance(given, tuple):
                flat.extend(given)
            elif given is not None:
                flat.append(given)
        return flat

    def build(self, values: Iterable[Value]) -> Op:
        """The operation on ``values``, one for each of ``samples()``; its results not yet made."""
        rest = iter(values)
        fields: dict[str, Any] = {**self.attributes}
        fields.update((key, make()) for key, make in self.regions.items())
        for key, declared in self.op.fields.items():
            if not declared.is_operand:
                continue
            given = self.operands.get(key)
            if declared.kind is FieldKind.OPERANDS:
                assert isinstance(given, tuple)
                fields[key] = tuple(next(rest) for _ in given)
            else:
                fields[key] = None if given is None else next(rest)
        return self.op(**fields)


@dataclass(frozen=True)
class Reject:
    """A program that must be refused with ``code``.

    ``attempt`` is called with an eager tracer active and uses surface functions on tiles made by
    ``given``. ``argument`` is the parameter at fault, None where the message has none.
    """

    description: str
    code: str
    attempt: Callable[[], object]
    argument: str | None = None


def given(scalar: Type, *shape: int) -> Tile:
    """A tile of zeros with a known value, for ``Reject.attempt`` and tests."""
    return Tile(ConcreteValue(shaped(scalar, shape), np.zeros(shape, scalar.numpy)))


def cases_of(cls: type[Op]) -> list[Case]:
    """Every case of an operation; none where it doesn't say."""
    cases: Callable[[], Iterable[Case]] | None = getattr(cls, "cases", None)
    return list(cases()) if cases is not None else []


def rejects_of(cls: type[Op]) -> list[Reject]:
    """Every reject of an operation; none where it doesn't say."""
    rejects: Callable[[], Iterable[Reject]] | None = getattr(cls, "rejects", None)
    return list(rejects()) if rejects is not None else []
