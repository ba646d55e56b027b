"""The memory orderings of LLVM that atomic operations are compiled to.

On x86 most orderings are the same instructions, so no run of a kernel tells them apart.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.backends.three_way import compiled, copied, traced
from tests.frontend.kernels import jit

import tritium.language as tl

ORDER = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
FAILED = {"relaxed": "monotonic", "acquire": "acquire", "release": "monotonic"}
FAILED["acq_rel"] = "acquire"
"""A comparison that fails writes nothing, so it can't release."""
INTEGERS = ("add", "max", "min", "and", "or", "xor", "xchg")


@jit
def update(x, out, KIND: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr):
    at = x + tl.arange(0, 4)
    if KIND == "add":
        tl.store(out, tl.sum(tl.atomic_add(at, 1, sem=SEM, scope=SCOPE)))
    elif KIND == "max":
        tl.store(out, tl.sum(tl.atomic_max(at, 1, sem=SEM, scope=SCOPE)))
    elif KIND == "min":
        tl.store(out, tl.sum(tl.atomic_min(at, 1, sem=SEM, scope=SCOPE)))
    elif KIND == "and":
        tl.store(out, tl.sum(tl.atomic_and(at, 1, sem=SEM, scope=SCOPE)))
    elif KIND == "or":
        tl.store(out, tl.sum(tl.atomic_or(at, 1, sem=SEM, scope=SCOPE)))
    elif KIND == "xor":
        tl.store(out, tl.sum(tl.atomic_xor(at, 1, sem=SEM, scope=SCOPE)))
    elif KIND == "xchg":
        tl.store(out, tl.sum(tl.atomic_xchg(at, 1, sem=SEM, scope=SCOPE)))
    elif KIND == "cas":
        tl.store(out, tl.atomic_cas(x, 0, 1, sem=SEM, scope=SCOPE))
    elif KIND == "load":
        tl.store(out, tl.atomic_load(x, sem=SEM, scope=SCOPE))
    elif KIND == "store":
        tl.atomic_store(x, 1, sem=SEM, scope=SCOPE)
    elif KIND == "poll":
        tl.store(out, tl.atomic_poll(x, 1, sem=SEM, scope=SCOPE).to(tl.int32))


def atomics(dtype: Any, kind: str, sem: str | None, scope: str | None = None) -> list[str]:
    """The atomic instructions of the kernel's IR."""
    given = {"x": np.zeros(4, dtype), "out": np.zeros(1, dtype)}
    arguments = copied({**given, "KIND": kind, "SEM": sem, "SCOPE": scope})
    kernel, _ = compiled(traced(update, arguments), None, True, False)
    assert "syncscope" not in kernel.llvm_ir
    assert "fence" not in kernel.llvm_ir
    lines = (line.strip() for line in kernel.llvm_ir.splitlines())
    return [line for line in lines if re.search(r"\batomicrmw|cmpxchg|(load|store) atomic\b", line)]


def operation(line: str) -> tuple[str, str]:
    """What an instruction does, and in which order."""
    found = re.search(r"(atomicrmw \w+|cmpxchg|load atomic|store atomic) (.*), align", line)
    assert found is not None, line
    return found[1], " ".join(word for word in found[2].split() if word in ORDER.values())


@pytest.mark.parametrize("sem", ORDER)
@pytest.mark.parametrize("kind", INTEGERS)
def test_updates(kind: str, sem: str) -> None:
    (line,) = atomics(np.int32, kind, sem)
    assert operation(line) == (f"atomicrmw {kind}", ORDER[sem])


@pytest.mark.parametrize("sem", ORDER)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_comparisons(dtype: Any, sem: str) -> None:
    (line,) = atomics(dtype, "cas", sem)
    assert operation(line) == ("cmpxchg", f"{ORDER[sem]} {FAILED[sem]}")


@pytest.mark.parametrize("sem", ORDER)
@pytest.mark.parametrize("kind", ["add", "max", "min"])
def test_floats_read_without_an_order_and_exchange_in_the_given_one(kind: str, sem: str) -> None:
    first, exchange = atomics(np.float32, kind, sem)
    assert operation(first) == ("load atomic", "monotonic")
    assert operation(exchange) == ("cmpxchg", f"{ORDER[sem]} {FAILED[sem]}")


@pytest.mark.parametrize("sem", ["acquire", "relaxed"])
@pytest.mark.parametrize("kind", ["load", "poll"])
def test_loads(kind: str, sem: str) -> None:
    lines = atomics(np.int32, kind, sem)
    assert {operation(line) for line in lines} == {("load atomic", ORDER[sem])}


@pytest.mark.parametrize("sem", ["release", "relaxed"])
def test_stores(sem: str) -> None:
    (line,) = atomics(np.int32, "store", sem)
    assert operation(line) == ("store atomic", ORDER[sem])


@pytest.mark.parametrize(
    ("kind", "order"), [("add", "acq_rel"), ("cas", "acq_rel acquire"), ("load", "acquire")]
)
def test_the_order_where_none_is_given(kind: str, order: str) -> None:
    (line,) = atomics(np.int32, kind, None)
    assert operation(line)[1] == order


@pytest.mark.parametrize("kind", ["add", "cas", "load", "store"])
def test_scopes_change_nothing(kind: str) -> None:
    written = [atomics(np.int32, kind, None, scope) for scope in (None, "cta", "gpu", "sys")]
    assert all(each == written[0] for each in written)
