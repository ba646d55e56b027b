"""How much work the planner has with long kernels: in proportion to their length."""

from __future__ import annotations

import linecache

import pytest

import tritium
import tritium.language as tl
from tritium.backends.cpu.plan import BlockPlan, Planner
from tritium.backends.cpu.sinks import Walker
from tritium.frontend import trace
from tritium.frontend.specialize import ConstantSpec, PointerSpec
from tritium.ir import Function, dtypes
from tritium.passes import run_pipeline

LINES = {
    "reductions one after the other": "a = a - tl.sum(a, axis=0) * 0.5",
    "reductions of one chain": "a = tl.exp(a); tl.store(out + {i}, tl.sum(a, axis=0))",
    "one chain": "a = a * {i}.5 + 1.0",
    "loads": "a = a + tl.load(x + o + {i})",
    "stores": "tl.store(out + o + {i} * B, a + {i}.0)",
    "copies": "tl.store(out + o + {i} * B, tl.load(x + o + {i} * B) + {i}.0)",
}


def kernel_of(line: str, count: int) -> Function:
    """A kernel with so many lines of a kind, after the passes."""
    lines = [
        "def kernel(x, out, B: tl.constexpr):",
        "  o = tl.arange(0, B)",
        "  a = tl.load(x + o)",
    ]
    lines += [f"  {line.format(i=i)}" for i in range(count)]
    text = "\n".join([*lines, "  tl.store(out + o, a)", ""])
    name = f"<{count} lines of {line}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    made = {"tl": tl, "__name__": "tests.plans"}
    exec(compile(text, name, "exec"), made)
    pointer = PointerSpec(dtypes.float32, True)
    specs = {"x": pointer, "out": pointer, "B": ConstantSpec(256)}
    function = trace(tritium.jit(made["kernel"]), specs).function
    for _ in run_pipeline(function):
        pass
    return function


def planned(function: Function) -> BlockPlan:
    return Planner(function.body.block, disjoint=True, outer=set(), width=16).run()


@pytest.mark.parametrize("line", LINES.values(), ids=list(LINES))
def test_work_grows_with_the_length(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    visits = [0]
    step, conflict = Walker._made_from, Planner._memory_conflict

    def counting(*args: object) -> object:
        visits[0] += 1
        return step(*args)

    def comparing(*args: object) -> bool:
        visits[0] += 1
        return conflict(*args)

    monkeypatch.setattr(Walker, "_made_from", counting)
    monkeypatch.setattr(Planner, "_memory_conflict", comparing)
    counts = []
    for length in (50, 100, 200):
        function = kernel_of(line, length)
        visits[0] = 0
        planned(function)
        counts.append(visits[0])
    assert counts[0] > 50
    assert counts[2] < 2.6 * counts[1] < 2.6 * 2.6 * counts[0]


def test_long_chains_are_stored_at_intervals() -> None:
    plan = planned(kernel_of(LINES["reductions one after the other"], 200))
    assert 20 < len(plan.kept) < 60
    assert not planned(kernel_of(LINES["one chain"], 200)).kept
