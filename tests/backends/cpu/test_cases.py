"""The generated cases of every operation as kernels of their own, at two widths of vectors.

The elementwise operations stand here with a few cases each: ``test_rules.py`` has them all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.backends.cpu import one_op
from tests.backends.three_way import narrow_cpu
from tests.ops.harness import all_operations, disagreement, evaluate_case

from tritium.backends.common.rules import COMMON
from tritium.backends.cpu import STRUCTURAL
from tritium.ir.core import REGISTRY
from tritium.ops.spec import Array, Case, agreement_of, cases_of

BATCH = 16
"""Cases that are compiled as one kernel."""
ELEMENTWISE_CASES = 3
CONTROL = {name for name in REGISTRY if name.startswith("control.")}


def chosen(mnemonic: str) -> list[Case]:
    """All cases of an operation that has its own code in the nests, a few of the others."""
    cases = cases_of(REGISTRY[mnemonic])
    if mnemonic in STRUCTURAL:
        return cases
    small = [case for case in cases if sum(s.data.size for s in case.samples()) < 20000]
    step = max(1, len(small) // ELEMENTWISE_CASES)
    return small[len(mnemonic) % step :: step]


def batches(cases: list[Case]) -> Iterator[list[Case]]:
    for start in range(0, len(cases), BATCH):
        yield cases[start : start + BATCH]


def difference(case: Case, got: list[Array]) -> str | None:
    """Where machine code isn't as close to the reference rule as the operation promises."""
    want = evaluate_case(case)
    types = [type.scalar for type in case.result_types()]
    magnitude = None
    if case.magnitude is not None:
        magnitude = case.magnitude(*(sample.data for sample in case.samples()))
    for have, expected, type in zip(got, want, types):
        promised = agreement_of(case.op, "cpu", type)
        text = disagreement(have, expected, promised, type, magnitude, case.accumulator)
        if text:
            return text
    for have, expected in zip(got[len(types) :], want[len(types) :], strict=True):
        if have.tobytes() != expected.tobytes():
            return f"memory holds {have}, expected {expected}"
    return None


@pytest.mark.parametrize("width", ["host", "narrow"])
@pytest.mark.parametrize("mnemonic", [m for m in sorted(REGISTRY) if m not in CONTROL])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_cases(mnemonic: str, width: str) -> None:
    cpu = narrow_cpu() if width == "narrow" else None
    wrong = []
    # Half of the many cases at the second width.
    every = chosen(mnemonic)
    for cases in batches(every[::2] if width == "narrow" and len(every) > 100 else every):
        for case, got in zip(cases, one_op.run(cases, cpu), strict=True):
            text = difference(case, got)
            if text:
                wrong.append(f"{case.label}: {text}")
    assert wrong == []


def test_every_operation_has_cases_here() -> None:
    names = {cls.mnemonic for cls in all_operations()}
    assert names == STRUCTURAL | {cls.mnemonic for cls in COMMON}
    assert [name for name in sorted(names - CONTROL) if not chosen(name)] == []


def test_a_wrong_result_is_found() -> None:
    case = cases_of(REGISTRY["reduce.sum"])[0]
    got = [np.array(array) for array in evaluate_case(case)]
    assert difference(case, got) is None
    got[0] = got[0] + got[0].dtype.type(1)
    assert difference(case, got)
