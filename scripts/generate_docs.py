"""Writes the pages of the documentation that come from the source; with --check, compares them.

Each page is a function that returns its text, registered in PAGES under its file name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tritium import knobs
from tritium.diagnostics import CATALOGUE, SECTIONS, exception_class

DOCS = Path(__file__).parents[1] / "docs"

NOTICE = "<!-- Written by scripts/generate_docs.py: change the source, not this file. -->"


def code(text: str) -> str:
    """``text`` as a code span inside a table; empty text stays empty."""
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    pad = " " if fence == "``" else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def errors_page() -> str:
    """Every coded message."""
    lines = [
        NOTICE,
        "",
        "# Errors and warnings",
        "",
        "Every message has a code. The words in braces are filled in where it is raised. All",
        "classes derive from `TritiumError`, and from the Python exception that fits.",
    ]
    for prefix, title in SECTIONS.items():
        rows = [
            (
                code(entry.code),
                code(entry.template),
                "" if entry.help == "{hint}" else code(entry.help),
                code(exception_class(entry.kind).__name__),
            )
            for entry in sorted(CATALOGUE.values(), key=lambda entry: entry.code)
            if entry.code.startswith(prefix)
        ]
        lines += ["", f"## {title}", "", *table(("Code", "Message", "Help", "Class"), rows)]
    return "\n".join(lines) + "\n"


def knobs_page() -> str:
    """Every option and environment variable."""
    lines = [
        NOTICE,
        "",
        "# Options and environment variables",
        "",
        "Each option is an attribute of a group in `tritium.knobs`. Its value is what Python",
        "assigned to it, else its environment variable, else its default. A change of the",
        "environment takes effect at once. Of several variables the first that is set counts; an",
        "empty one counts as not set. `del knobs.cpu.num_threads` takes back what was assigned.",
        "`with knobs.cpu.scope():` keeps what is assigned inside to the block and to the thread.",
        "Assigning outside of a scope sets the variables too, for child processes, unless",
        "`knobs.propagate_env` is false.",
    ]
    rows = knobs.describe()
    for group in knobs.GROUPS:
        lines += ["", f"## {group.name}", "", type(group).__doc__ or "", ""]
        lines += table(
            ("Option", "Variables", "Type", "Default", "Meaning"),
            [
                (
                    code(row.name),
                    ", ".join(code(name) for name in row.environment),
                    row.type,
                    row.default,
                    row.doc,
                )
                for row in rows
                if row.name.startswith(f"{group.name}.")
            ],
        )
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "errors.md": errors_page,
    "knobs.md": knobs_page,
}


def main() -> int:
    """Write the pages, or say which are stale; the exit status is 1 if any is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, list stale pages")
    check = parser.parse_args().check
    stale = []
    for name, page in PAGES.items():
        path = DOCS / name
        text = page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"docs/{name} {'is stale' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
