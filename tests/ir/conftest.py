"""Collects ``.tir`` files: functions in tile IR that say what to do with them and what to expect.

The first line is ``// RUN: canonicalize,cse`` (a pipeline: its output must match the CHECK lines
below; the IR is verified after each pass, and every operation must keep a place) or
``// RUN: verify`` (the text must be valid, or be refused at the lines that end in
``// error: E0301 text``, the text being part of the message). ``// -----`` separates cases; each
holds one function.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

import tritium.ops  # noqa: F401 - registers the operations
from tritium.diagnostics import TritiumError
from tritium.ir import function_text, parse_function, verify
from tritium.passes import run_pipeline

RUN = re.compile(r"// RUN: (.+)")
SEPARATOR = re.compile(r"(?m)^// -----\s*$")
NAME = re.compile(r"func @(\w+)")
EXPECTED = re.compile(r"// error: (E\d+) ?(.*)")


class Failure(Exception):
    """What a case was expected to do and didn't."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return TirFile.from_parent(parent, path=file_path) if file_path.suffix == ".tir" else None


class TirFile(pytest.File):
    """One ``.tir`` file."""

    def collect(self) -> Iterator[pytest.Item]:
        text = self.path.read_text(encoding="utf-8")
        run = RUN.match(text)
        if run is None:
            raise self.CollectError(f"{self.path} does not begin with // RUN: ...")
        start = 0
        for separator in [*SEPARATOR.finditer(text), None]:
            end = separator.start() if separator else len(text)
            # Lines before the case stay, empty, so that places are those in the file.
            case = "\n" * text.count("\n", 0, start) + text[start:end]
            name = NAME.search(case)
            yield TirItem.from_parent(
                self, name=name[1] if name else f"line {case.count(chr(10))}", run=run[1], case=case
            )
            start = separator.end() if separator else end


class TirItem(pytest.Item):
    """One case."""

    def __init__(self, *, run: str, case: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.run = run.strip()
        self.case = case

    def runtest(self) -> None:
        if self.run == "verify":
            check_errors(self.case)
        else:
            check_pipeline(self.case, self.run)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Failure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}: {self.name}"


def check_errors(case: str) -> None:
    """Read and verify; what is refused, and where, must be what the case says."""
    expected = [
        (number, found[1], found[2].strip())
        for number, line in enumerate(case.splitlines(), 1)
        if (found := EXPECTED.search(line))
    ]
    try:
        verify(parse_function(case, file="case.tir"))
    except TritiumError as problem:
        if not expected:
            raise Failure(f"unexpected: {problem}") from problem
        (line, code, text), *more = expected
        got = (problem.loc.line if problem.loc else None, problem.code)
        if more or got != (line, code) or text not in problem.message:
            raise Failure(f"expected {expected}, got {got}: {problem.message}") from problem
        return
    if expected:
        raise Failure(f"expected {expected}, but nothing was refused")


def check_pipeline(case: str, pipeline: str) -> None:
    """Run the passes; their output must match the case's CHECK lines."""
    function = parse_function(case, file="case.tir")
    run_pipeline(function, pipeline, check=True)
    lost = [op.mnemonic for op in function.walk() if op.loc is None]
    if lost:
        raise Failure(f"operations without a place: {lost}")
    text = function_text(function)
    options = Options(match_filename="case.tir")
    lines = Parser(options, io.StringIO(case), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("output", text), lines)
    matcher.stderr = told = io.StringIO()
    if matcher.run() != 0:
        raise Failure(f"{told.getvalue()}\nthe output was:\n{text}")
