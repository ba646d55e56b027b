"""Every relative link of the project's pages leads to a file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")

CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def links_of(page: Path) -> list[str]:
    return LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))


def test_relative_links_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "design").glob("*.md")]
    links = [(page, link) for page in pages for link in links_of(page)]
    assert len(links) > 5
    assert [(p.name, link) for p, link in links if not (p.parent / link).exists()] == []
