"""The house rules that no linter knows: sizes, leftovers, and names that belong to a machine."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tritium"
MAXIMAL_FILE_LINES = 800
MAXIMAL_FUNCTION_LINES = 60

# Written in pieces, so that this file passes its own test.
LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~}*-])/(?:wo" + r"rk|ro" + r"ot|fa" + r"rm)(?![\w-])")
REGISTRY_HOST = re.compile(r"\b(?:py" + r"pi\.org|python" + r"hosted\.org|npm" + r"js\.)")

PROJECT_FOLDERS = [
    ".ci",
    "benchmarks",
    "changelog.d",
    "design",
    "docs",
    "examples",
    "scripts",
    "src",
    "tests",
]
BUILT = {"_build", "__pycache__"}
WRITTEN = ["benchmarks", "docs", "examples", "scripts", "src", "tests"]
"""Folders of Python that keep to the sizes."""


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def written_files() -> list[Path]:
    """All Python that people of the project have written."""
    folders = (ROOT / folder for folder in WRITTEN)
    files = [path for folder in folders for path in folder.rglob("*.py")]
    return sorted(path for path in files if not BUILT & set(path.parts))


def project_files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != ".git")
    for folder in PROJECT_FOLDERS:
        for place, folders, names in os.walk(ROOT / folder):
            folders[:] = [name for name in folders if name not in BUILT]
            yield from (Path(place) / name for name in names)


def lines_matching(pattern: re.Pattern[str], paths: Iterator[Path] | list[Path]) -> list[str]:
    """``file:line: text`` of each match; files that aren't UTF-8 text are binary and have none."""
    found = []
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        found += [f"{place}:{n}: {line}" for n, line in enumerate(lines, 1) if pattern.search(line)]
    return found


def long_functions(text: str) -> list[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        f"{node.name} at line {node.lineno}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, functions)
        and (node.end_lineno or 0) - node.lineno + 1 > MAXIMAL_FUNCTION_LINES
    ]


def test_no_file_is_too_long() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in written_files()}
    assert {str(p): n for p, n in lengths.items() if n > MAXIMAL_FILE_LINES} == {}


def test_sizes_are_checked_everywhere() -> None:
    files = {path.relative_to(ROOT).parts[0] for path in written_files()}
    assert files == set(WRITTEN)
    assert Path(__file__) in written_files()
    assert set(source_files()) <= set(written_files())


def test_no_function_is_too_long() -> None:
    found = {str(path): long_functions(path.read_text("utf-8")) for path in written_files()}
    assert {path: names for path, names in found.items() if names} == {}


def test_every_folder_of_source_is_a_package() -> None:
    """import-linter sees packages only: a folder without ``__init__.py`` would escape it."""
    folders = {path.parent for path in source_files()}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def imports_of_its_own_folder(path: Path) -> list[str]:
    """Absolute imports of what stands beside a module: these are relative, all others absolute."""
    package = ".".join(path.relative_to(SOURCE.parent).parent.parts)
    beside = {each.stem for each in path.parent.iterdir()}
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.level or package == "tritium":
            continue
        module = node.module or ""
        if module == package or module.rpartition(".")[0] == package:
            names = (
                {module.rpartition(".")[2]} if module != package else {a.name for a in node.names}
            )
            found += [f"{path}:{node.lineno}"] * bool(names & beside)
    return found


def test_modules_of_one_folder_import_each_other_relatively() -> None:
    """ruff holds the other half: nothing is imported relatively from further up."""
    assert [each for path in source_files() for each in imports_of_its_own_folder(path)] == []


def test_nothing_is_left_to_do_in_the_source() -> None:
    assert lines_matching(LEFTOVER, source_files()) == []


def test_no_file_names_a_machine() -> None:
    assert lines_matching(MACHINE_PATH, project_files()) == []
    assert lines_matching(REGISTRY_HOST, project_files()) == []


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (LEFTOVER, "# TO" + "DO: later", True),
        (LEFTOVER, "mastodon", False),
        (MACHINE_PATH, "cd /wo" + "rk/main", True),
        (MACHINE_PATH, '"/ro' + 'ot"', True),
        (MACHINE_PATH, "a/wo" + "rk/b", False),
        (MACHINE_PATH, "/wo" + "rkspace", False),
        (REGISTRY_HOST, "https://py" + "pi.org/simple", True),
    ],
)
def test_patterns_can_match(pattern: re.Pattern[str], text: str, matches: bool) -> None:
    assert bool(pattern.search(text)) == matches


def test_function_length_counts_from_def_to_end() -> None:
    body = "    x = 1\n" * (MAXIMAL_FUNCTION_LINES - 1)
    assert long_functions("def f():\n" + body) == []
    assert long_functions("def f():\n" + body + "    x = 1\n") == ["f at line 1"]
