"""Mutated kernels: refused with one coded message at a place, or alike on every executor.

``python -m tests.fuzz.job mutated`` runs 20,000 of them; here a sample is run, in a process that
may die.
"""

from __future__ import annotations

import ast
import os
import random
import signal
import sys

import pytest
from tests.fuzz import job
from tests.fuzz.calls import CALLS
from tests.fuzz.corpus import Subject, all_subjects, of_calls, surface
from tests.fuzz.mutate import mutated
from tests.fuzz.outcome import Fault, Trial, judge

import tritium.language as tl

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals of Unix")

SAMPLE = 400
CHUNK = 100
UNFIT = {
    *("advance", "annotations", "core", "names", "random", "standard", "math", "tensor"),
    *("dot_scaled", "inline_asm_elementwise", "slice", "const"),
}
"""Public names that aren't functions to call, or aren't built yet."""


def judged(subject: Subject, source: str) -> str:
    file = f"<mutation of {subject.name}>"
    trial = Trial(subject.function(source, file), file, subject.arguments, subject.grid)
    try:
        return judge(trial).kind
    except Fault as fault:
        return f"{fault.outcome.kind} {fault.outcome.code}"


@pytest.mark.parametrize("first", range(0, SAMPLE, CHUNK))
def test_a_sample(first: int) -> None:
    found = list(job.results("mutated", first, first + CHUNK))
    assert [each["seed"] for each in found] == list(range(first, first + CHUNK))
    assert not any(map(job.is_fault, found)), "\n".join(job.tally(found))
    kinds = {each["kind"] for each in found}
    assert {"agrees", "refused compiled"} <= kinds


@pytest.mark.parametrize("subject", of_calls(), ids=lambda subject: subject.name)
def test_what_is_mutated_is_valid(subject: Subject) -> None:
    assert judged(subject, subject.source) in ("agrees", "agrees by its class, not to the bit")


def test_every_function_is_called_by_a_subject() -> None:
    called = {
        node.attr
        for body in CALLS
        for node in ast.walk(ast.parse(body))
        if isinstance(node, ast.Attribute)
    }
    functions = {name for name in surface() if callable(getattr(tl, name))}
    types = {name for name in functions if isinstance(getattr(tl, name), type)}
    assert functions - types - UNFIT - called == set()


def test_a_seed_gives_the_same_mutant() -> None:
    subject = of_calls()[0]
    first, second = (mutated(subject.source, surface(), random.Random(3)) for _ in range(2))
    assert first == second
    assert first.source != subject.source


def test_every_mutation_is_made() -> None:
    text = next(each.source for each in of_calls() if "for j in" in each.source)
    made = {kind for n in range(300) for kind in mutated(text, surface(), random.Random(n)).kinds}
    wanted = {"operator", "number", "extent", "operand", "name", "exchange", "dtype", "attribute"}
    wanted |= {"index", "wrap", "unwrap", "arguments", "keyword", "statement", "insert", "nest"}
    assert made >= wanted | {"unnest", "bounds", "annotate"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("tl.store(out, n, mask=1)", "refused compiled"),
        ("tl.store(out + 100000, n)", "compiled, not run"),
        ("tl.store(out, tl.load(out - 1))", "compiled, not run"),
        ("tl.store(out + tl.arange(0, 8) // 2, tl.arange(0, 8))", "compiled, lanes collide"),
        ("while n > 0:\n    m += 1", "compiled, not run"),
        ("import os", "refused compiled, Python that eager mode runs"),
        ("if n > 100:\n    tl.store(out, n @ m)", "refused compiled, not reached in eager mode"),
        ("tl.store(out + n, m)", "agrees"),
    ],
)
def test_outcomes(body: str, kind: str) -> None:
    subject = next(each for each in all_subjects() if each.name.startswith("subset"))
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    assert judged(subject, f"@jit\ndef kernel(out, n, m, f):\n{lines}") == kind


def dies(seed: int) -> job.Result:
    if seed == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"kind": "agrees"}


def hangs(seed: int) -> job.Result:
    if seed == 1:
        signal.pause()
    return {"kind": "agrees"}


@pytest.mark.parametrize(
    ("what", "kind"), [("dies", "the process ends with -11"), ("hangs", "the process says nothing")]
)
def test_a_process_that_dies_or_hangs_is_a_fault_with_its_seed(
    what: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "hangs":
        monkeypatch.setattr(job, "SILENCE", 8.0)
    found = list(job.results(f"tests.fuzz.test_mutated:{what}", 0, 4))
    assert [each["seed"] for each in found] == [0, 1, 2, 3]
    assert [each["kind"] for each in found] == ["agrees", f"fault: {kind}", "agrees", "agrees"]
