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


def programs() -> dict[str, str]:
    """The programs of the pages that have one, by the page's path."""
    inside = [path for path in (ROOT / "docs").rglob("*.md") if not path.is_relative_to(BUILT)]
    found = {
        str(page.relative_to(ROOT)): program_of(page.read_text(encoding="utf-8"))
        for page in (ROOT / "README.md", *sorted(inside))
    }
    return {page: program for page, program in found.items() if program.strip()}


@pytest.mark.parametrize("page", programs())
def test_examples_of_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = programs()[page]
    monkeypatch.chdir(tmp_path)
    # A real file: kernels find their source, tracebacks show the page's lines.
    script = tmp_path / f"{Path(page).stem}.py"
    script.write_text(program, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")


def test_the_first_pages_have_programs() -> None:
    assert {"README.md", str(Path("docs", "getting-started.md"))} <= programs().keys()


def test_blocks_keep_their_lines_and_tags_are_honoured() -> None:
    plain = "# T\n```python\nx = 1\n```\n\n"
    left_out = "```python no-run\ny\n```\n"
    indented = "1.\n   ```python\n   x += 1\n   ```\n"
    expected = ["", "", "x = 1", "", "", "", "", "", "", "", "x += 1", ""]
    assert program_of(plain + left_out + indented).splitlines() == expected


def test_other_languages_are_left_out() -> None:
    page = "```console\n$ ./dev demo\n```\n````md\n```python\n1/0\n```\n````\n"
    assert program_of(page).split() == []
