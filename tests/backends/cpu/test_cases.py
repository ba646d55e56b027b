"""The generated cases of every operation as kernels of their own, at two widths of vectors.

The elementwise operations stand here with a few cases each: ``test_rules.py`` has them all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests import counts
from tests.backends.cpu import one_op
from tests.backends.three_way import narrow_cpu
from tests.ops.harness import all_operations, case_difference, evaluate_case, heard

from tritium.backends.common.rules import COMMON
from tritium.backends.common.structural import STRUCTURAL
from tritium.ir.core import REGISTRY
from tritium.ops.spec import Case, cases_of

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


def lowered() -> list[str]:
    """The operations that the CPU has code for."""
    return [
        m for m in sorted(REGISTRY) if m not in CONTROL and "cpu" not in REGISTRY[m].unsupported
    ]


def batches(cases: list[Case]) -> Iterator[list[Case]]:
    """Those that tell something stand alone: it may be the end of their program."""
    silent = [case for case in cases if not case.told]
    for start in range(0, len(silent), BATCH):
        yield silent[start : start + BATCH]
    yield from ([case] for case in cases if case.told)


@pytest.mark.parametrize("width", ["host", "narrow"])
@pytest.mark.parametrize("mnemonic", lowered())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_cases(mnemonic: str, width: str, record_property: Callable[[str, object], None]) -> None:
    cpu = narrow_cpu() if width == "narrow" else None
    wrong = []
    # Half of the many cases at the second width.
    every = chosen(mnemonic)
    every = every[::2] if width == "narrow" and len(every) > 100 else every
    counts.note(record_property, "CPU, nests", mnemonic, len(every))
    for cases in batches(every):
        results, told = heard(functools.partial(one_op.run, cases, cpu))
        if told != cases[0].told:
            wrong.append(f"{cases[0].label}: tells {told!r}, not {cases[0].told!r}")
        for case, got in zip(cases, results or [], strict=results is not None):
            text = case_difference(case, got, "cpu")
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
    assert case_difference(case, got, "cpu") is None
    got[0] = got[0] + got[0].dtype.type(1)
    assert case_difference(case, got, "cpu")
