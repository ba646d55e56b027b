"""Runs the README's and the documentation's examples.

A page's ```python blocks run in order, as one program; a block whose fence says ``python no-run``
is left out. The program has the page's line numbers, so a failure names the line of the page.
"""

from __future__ import annotations

import re
import runpy
import textwrap
from pathlib import Path

import pytest

import tritium

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "docs" / "_build"
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")


def program_of(page: str) -> str:
    """The page's runnable blocks on their own lines; every other line is empty."""
    lines = page.splitlines()
    program = [""] * len(lines)
    fence: re.Match[str] | None = None
    start = 0
    for number, line in enumerate(lines):
        if fence is None:
            fence, start = FENCE.match(line), number + 1
        elif line.strip() == fence["ticks"]:
            info = fence["info"].split()
            if info[:1] == ["python"] and "no-run" not in info[1:]:
                block = textwrap.dedent("\n".join(lines[start:number]))
                program[start:number] = block.split("\n") if number > start else []
            fence = None
    assert fence is None, f"the block opened on line {start} is never closed"
    return "\n".join(program) + "\n"


def pages() -> list[Path]:
    inside = [path for path in (ROOT / "docs").rglob("*.md") if not path.is_relative_to(BUILT)]
    return [ROOT / "README.md", *sorted(inside)]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(page.read_text(encoding="utf-8"))
    if not program.strip():
        pytest.skip("no runnable example on this page")
    if not hasattr(tritium, "jit"):
        pytest.skip("tritium.jit doesn't stand yet")
    monkeypatch.chdir(tmp_path)
    # A real file: kernels find their source, tracebacks show the page's lines.
    script = tmp_path / f"{page.stem}.py"
    script.write_text(program, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")


def test_blocks_keep_their_lines_and_tags_are_honoured() -> None:
    plain = "# T\n```python\nx = 1\n```\n\n"
    left_out = "```python no-run\ny\n```\n"
    indented = "1.\n   ```python\n   x += 1\n   ```\n"
    expected = ["", "", "x = 1", "", "", "", "", "", "", "", "x += 1", ""]
    assert program_of(plain + left_out + indented).splitlines() == expected


def test_other_languages_are_left_out() -> None:
    assert (
        program_of("```console\n$ ./dev demo\n```\n````md\n```python\n1/0\n```\n````\n").split()
        == []
    )
