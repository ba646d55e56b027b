"""The pages that scripts/generate_docs.py writes are up to date and well formed."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_script():
    path = ROOT / "scripts" / "generate_docs.py"
    spec = importlib.util.spec_from_file_location("generate_docs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate_docs = load_script()


@pytest.mark.parametrize("name", generate_docs.PAGES)
def test_the_committed_page_is_what_the_source_gives(name: str) -> None:
    committed = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert committed == generate_docs.PAGES[name](), "run: python scripts/generate_docs.py"


@pytest.mark.parametrize("name", generate_docs.PAGES)
def test_every_row_of_a_table_has_the_columns_of_its_head(name: str) -> None:
    columns = 0
    for line in generate_docs.PAGES[name]().splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        found = len(re.findall(r"(?<!\\)\|", line))
        columns = columns or found
        assert found == columns, line


def test_the_script_writes_stale_pages_and_its_check_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate_docs, "DOCS", tmp_path)
    monkeypatch.setattr(generate_docs, "PAGES", {"a.md": lambda: "text\n"})
    monkeypatch.setattr(sys, "argv", ["generate_docs.py", "--check"])
    assert generate_docs.main() == 1
    assert "docs/a.md is stale" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sys, "argv", ["generate_docs.py"])
    assert generate_docs.main() == 0
    assert (tmp_path / "a.md").read_text() == "text\n"
    monkeypatch.setattr(sys, "argv", ["generate_docs.py", "--check"])
    assert generate_docs.main() == 0


def test_code_spans_survive_tables() -> None:
    assert generate_docs.code("") == ""
    assert generate_docs.code("a | b") == "`a \\| b`"
    assert generate_docs.code("a `b`") == "`` a `b` ``"
