"""Every operation, from its own statements: reference rule against an oracle, and its rejects."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests import counts
from tests.ops.harness import (
    all_operations,
    all_rejects,
    disagreement,
    eager,
    evaluate_case,
    heard,
)
from tests.ops.oracles import ORACLES, values
from tests.ops.tile_oracles import TILE_ORACLES

from tritium.diagnostics import TritiumError
from tritium.ir.core import Op
from tritium.ir.dtypes import Type
from tritium.ops.spec import Array, Case, Exact, Reject, agreement_of, cases_of

OPERATIONS = all_operations()
REJECTS = all_rejects()
LIMIT = 6000
"""Most elements of a case that a Python oracle is asked for; longer ones are thinned out."""
LIMITS = {"cast.convert": 1500}
"""The same for an operation with many cases; test_codecs tries every value."""


def with_cases() -> list[type[Op]]:
    return [cls for cls in OPERATIONS if cases_of(cls)]


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.mnemonic)
def test_docstring_says_what_it_is(cls: type[Op]) -> None:
    summary = (cls.__doc__ or "").strip().partition("\n\n")[0]
    assert len(summary) > 10
    assert summary.endswith((".", ":"))


@pytest.mark.parametrize("cls", with_cases(), ids=lambda cls: cls.mnemonic)
def test_reference_against_oracle(
    cls: type[Op], record_property: Callable[[str, object], None]
) -> None:
    cases = cases_of(cls)
    counts.note(record_property, "interpreter", cls.mnemonic, len(cases))
    wrong = [f"{case.label}: {text}" for case in cases if (text := difference(case))]
    assert wrong == []


def difference(case: Case) -> str | None:
    """What the reference rule has otherwise than the oracle; None for nothing."""
    results, told = heard(lambda: evaluate_case(case))
    if told != case.told:
        return f"tells {told!r}, not {case.told!r}"
    if results is None:
        return None
    if case.op.mnemonic == "cast.bitcast":
        same = results[0].tobytes() == case.samples()[0].data.tobytes()
        return None if same else "the bits changed"
    whole = case.oracle
    if whole is None and case.op.mnemonic in TILE_ORACLES:
        whole = functools.partial(TILE_ORACLES[case.op.mnemonic], case)
    if whole is not None:
        return by_arrays(case, results, whole)
    oracle = ORACLES.get(case.op.mnemonic)
    assert oracle is not None, f"{case.op.mnemonic} has no oracle"
    arrays = [sample.data.reshape(-1) for sample in case.samples()]
    # An odd step meets every row and column of a grid of pairs.
    step = max(1, math.ceil(arrays[0].size / LIMITS.get(case.op.mnemonic, LIMIT))) | 1
    some = slice(None, None, step)
    operands = [values(each[some], s.type.scalar) for each, s in zip(arrays, case.samples())]
    want = oracle(case, *operands)
    (type,) = case.result_types()
    return compare_numbers(case, results[0].reshape(-1)[some], want, type, operands)


def by_arrays(case: Case, results: Sequence[Array], oracle: Callable[..., Any]) -> str | None:
    """Against an oracle that gives arrays."""
    data = [sample.data for sample in case.samples()]
    wanted = oracle(*data)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    types = [type.scalar for type in case.result_types()]
    magnitude = None if case.magnitude is None else case.magnitude(*data)
    for got, want, type in zip(results, wanted, types):
        promised = agreement_of(case.op, "reference", type)
        text = disagreement(got, want, promised, type, magnitude, case.accumulator)
        if text:
            return text
    for got, want in zip(results[len(types) :], wanted[len(types) :], strict=True):
        if got.tobytes() != np.asarray(want).tobytes():
            return f"memory holds {got}, expected {want}"
    return None if len(wanted) == len(results) else f"{len(results)} results, not {len(wanted)}"


def compare_numbers(
    case: Case, got: Array, want: Sequence[Any], type: Type, operands: Sequence[Sequence[Any]]
) -> str | None:
    """Against an oracle that gives Python numbers."""
    dtype = type.scalar
    promised = agreement_of(case.op, "reference", dtype)
    if not isinstance(promised, Exact):
        return disagreement(got, np.array(want, np.float64), promised, dtype)
    for place, (have, expected) in enumerate(zip(values(got, dtype), want, strict=True)):
        if not same_number(have, expected):
            shown = ", ".join(repr(each[place]) for each in operands)
            return f"({shown}) gives {have!r}, expected {expected!r}"
    return None


def same_number(have: Any, expected: Any) -> bool:
    """Equal, both NaN, or zeros of one sign."""
    if expected != expected:
        return bool(have != have)
    return bool(have == expected) and math.copysign(1, have) == math.copysign(1, expected)


@pytest.mark.parametrize(
    ("cls", "reject"),
    REJECTS,
    ids=[f"{cls.mnemonic}: {reject.description}" for cls, reject in REJECTS],
)
def test_rejects(
    cls: type[Op], reject: Reject, record_property: Callable[[str, object], None]
) -> None:
    counts.note(record_property, "refusals", cls.mnemonic, 1)
    with eager(), pytest.raises(TritiumError) as caught:
        reject.attempt()
    assert caught.value.code == reject.code, caught.value
    assert caught.value.argument == reject.argument, caught.value
    assert caught.value.message
