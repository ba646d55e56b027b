"""Every refusal of the language: its code, what its caret marks, its words, and a fix.

``refusals/*.txt`` has one kernel's body a paragraph, and then what is expected:

    v = tl.arange(0, 4)
    a = v ** 2
    -> E0201 at `2`: ** can't combine tile<4xi32> and the constant 2

Eager mode says the same of it, at the same place, unless a further line tells what it does:
``eager: runs`` where it is Python that eager mode keeps or a path that it doesn't take, another
code for an exception of Python's, ``eager: not run`` where Python wouldn't end.
"""

from __future__ import annotations

import linecache
import pathlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.frontend.test_subset import NAMES

import tritium
import tritium.language as tl
from tritium.diagnostics import Loc, TritiumError

HELPERS = """
@jit
def add_twice(a, b):
    return a + b, a
@jit
def loads(a, b):
    return tl.load(a)
@jit
def early_mismatch(a):
    if a > 3:
        return a, 2
    return 1
"""
ANSWER = re.compile(r"-> (E\d{4}) at `(.*?)`: (.*)")
EXPLAINED = {"E0117", "E0119"}
"""Codes of messages that quote the user, or Python, who says what is wrong."""
SAYS_WHAT = (" needs ", "is not defined", " can't be called", "with is not part", "can't combine")
SAYS_WHAT += ("the step is 0", "must be above", "takes nothing", "could not convert", "unpacking:")
SAYS_WHAT += ("a nested function",)
"""Messages that say what is wanted, so that there is nothing to add."""


@dataclass(frozen=True)
class Refusal:
    """A kernel's body, and what it is answered."""

    body: str
    code: str
    caret: str
    message: str
    eager: str


def _read(paragraph: str) -> Refusal:
    lines = paragraph.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("-> "))
    found = ANSWER.fullmatch(lines[at])
    assert found is not None, paragraph
    eager = lines[at + 1].partition("eager: ")[2] if len(lines) > at + 1 else found[1]
    return Refusal("\n".join(lines[:at]), found[1], found[2], found[3], eager)


FILES = sorted((pathlib.Path(__file__).parent / "refusals").glob("*.txt"))
REFUSALS = [
    _read(paragraph)
    for path in FILES
    for paragraph in path.read_text(encoding="utf-8").strip().split("\n\n")
]


def kernel_of(body: str) -> Any:
    """The kernel of (out, x, h, n = 5, m = 7, f = 2.5) with that body."""
    text = f"{NAMES}\n{HELPERS}\n@jit\ndef kernel(out, x, h, n, m, f):\n"
    text += "".join(f"    {line}\n" for line in body.splitlines())
    file = f"<refusal {body}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"tl": tl, "jit": tritium.jit, "tritium": tritium}
    names["__name__"] = __name__
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names["kernel"]


def caret(loc: Loc | None) -> str:
    """What a message underlines; of several lines the first."""
    assert loc is not None
    line = linecache.getline(loc.file, loc.line)
    if loc.end_line > loc.line:
        return f"{line[loc.col :].rstrip()} ..."
    return line[loc.col : loc.end_col]


def words(message: str, code: str) -> str:
    """The message; of one that hands on Python's exception, whose words vary, the class alone."""
    return message.partition(":")[0] if code == "E0117" else message


def refused(launch: Any) -> TritiumError:
    with pytest.raises(TritiumError) as caught:
        launch[(1,)](np.zeros(16, np.int32), np.zeros(64, np.float32), 2.5, 5, 7, 2.5)
    return caught.value


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.body.replace("\n", "; "))
def test_refused(refusal: Refusal) -> None:
    problem = refused(kernel_of(refusal.body))
    assert (problem.code, caret(problem.loc)) == (refusal.code, refusal.caret)
    assert words(problem.message, problem.code) == words(refusal.message, refusal.code)
    explained = problem.code in EXPLAINED or any(each in problem.message for each in SAYS_WHAT)
    assert problem.help or explained, problem


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.body.replace("\n", "; "))
def test_refused_in_eager_mode(refusal: Refusal, capsys: pytest.CaptureFixture[str]) -> None:
    if refusal.eager == "not run":
        pytest.skip("Python itself doesn't end, or fills the memory")
    kernel = kernel_of(refusal.body).interpret
    if refusal.eager == "runs":
        kernel[(1,)](np.zeros(16, np.int32), np.zeros(64, np.float32), 2.5, 5, 7, 2.5)
        return
    problem = refused(kernel)
    assert problem.code == refusal.eager
    if problem.code == refusal.code:
        assert (caret(problem.loc), problem.message) == (refusal.caret, refusal.message)
    assert caret(problem.loc)
