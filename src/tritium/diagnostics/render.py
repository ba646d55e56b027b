"""Errors as text for people, as JSON for tools, and as SARIF for code-scanning services."""

from __future__ import annotations

import linecache
import os
import unicodedata
from collections.abc import Iterable
from typing import Any

from .catalogue import CATALOGUE
from .errors import TritiumError, TritiumWarning
from .loc import Loc

TAB_WIDTH = 4
# A chain longer than this (compile-time recursion) is shown by its first and last calls.
CALLS_SHOWN = 12
SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_STYLES = {"error": "1;31", "warning": "1;33", "gutter": "1;34", "help": "1;36", "message": "1"}


def severity(err: TritiumError) -> str:
    """``error`` or ``warning``."""
    return "warning" if isinstance(err, TritiumWarning) else "error"


def text(err: TritiumError, color: bool = False) -> str:
    """The error as people read it: message, place, source line with carets, help, call chain.

    ``color`` adds ANSI escapes. Columns are printed from 1. A part that is not known (the place,
    or the file's text) is left out.
    """

    def paint(style: str, words: str) -> str:
        return f"\x1b[{_STYLES[style]}m{words}\x1b[0m" if color and words else words

    level = severity(err)
    lines = [paint(level, f"{level}[{err.code}]") + paint("message", f": {err.message}")]
    margin = " "
    if err.loc is not None:
        margin = " " * len(str(err.loc.line))
        lines.append(f"{margin}{paint('gutter', '-->')} {err.loc}")
        if source := _source_line(err.loc):
            shown, start, count = underline(source, err.loc)
            bar = paint("gutter", "|")
            lines.append(f"{margin} {bar}")
            lines.append(f"{paint('gutter', str(err.loc.line))} {bar} {shown}")
            lines.append(f"{margin} {bar} {' ' * start}{paint(level, '^' * count)}")
    if err.help:
        advice = err.help.replace("\n", f"\n{margin}         ")
        lines.append(f"{margin} {paint('gutter', '=')} {paint('help', 'help')}: {advice}")
    lines += [f"{margin} {call}" for call in _call_lines(err.loc)]
    return "\n".join(lines)


def _call_lines(loc: Loc | None) -> list[str]:
    calls = [] if loc is None else loc.chain()[1:]
    lines = [f"called from {call}" + f" in {call.function}" * bool(call.function) for call in calls]
    hidden = len(lines) - CALLS_SHOWN
    if hidden > 0:
        first = CALLS_SHOWN - CALLS_SHOWN // 3
        lines[first : first + hidden] = [f"... {hidden} more calls ..."]
    return lines


def _source_line(loc: Loc) -> str:
    """The text of the range's first line without its end, empty if the source is unavailable."""
    if os.path.exists(loc.file):
        # Text of a file that was edited since; what was only registered in the cache stays there.
        linecache.checkcache(loc.file)
    return linecache.getline(loc.file, loc.line).rstrip()


def _cell_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def underline(source: str, loc: Loc) -> tuple[str, int, int]:
    """``source`` as a terminal shows it, and the first cell and the number of the carets below.

    Tabs are expanded, other control characters shown as spaces, wide characters counted as two
    cells and combining ones as none. A range that goes on is underlined to the end of the line; one
    that lies outside the line, as when the file was edited, gets a single caret. Where no more than
    the line is known, all of its text is underlined.
    """
    shown: list[str] = []
    cells = [0]
    for character in source:
        if character == "\t":
            character = " " * (TAB_WIDTH - cells[-1] % TAB_WIDTH)
            width = len(character)
        else:
            if unicodedata.category(character) == "Cc":
                character = " "
            width = _cell_width(character)
        shown.append(character)
        cells.append(cells[-1] + width)
    start = min(loc.col, len(source))
    stop = len(source) if loc.end_line > loc.line else min(loc.end_col, len(source))
    if not loc.col and not loc.end_line:
        start, stop = len(source) - len(source.lstrip()), len(source)
    carets = max(cells[max(stop, start)] - cells[start], 1)
    return "".join(shown), cells[start], carets


def to_json(err: TritiumError) -> dict[str, Any]:
    """The error as a dictionary that ``json.dumps`` takes.

    Lines and columns count from 1; ``end_column`` is one past the last character. ``location``,
    and the end where only the start is known, are None. ``calls`` holds the call sites, innermost
    first.
    """
    entry = CATALOGUE.get(err.code)
    places = [] if err.loc is None else [_json_place(loc) for loc in err.loc.chain()]
    return {
        "code": err.code,
        "severity": severity(err),
        "kind": None if entry is None else entry.kind.value,
        "message": err.message,
        "help": err.help,
        "argument": err.argument,
        "location": places[0] if places else None,
        "calls": places[1:],
    }


def _json_place(loc: Loc) -> dict[str, Any]:
    return {
        "file": loc.file,
        "line": loc.line,
        "column": loc.col + 1,
        "end_line": loc.end_line or None,
        "end_column": loc.end_col + 1 if loc.end_line else None,
        "function": loc.function,
    }


def sarif(errors: Iterable[TritiumError]) -> dict[str, Any]:
    """A SARIF 2.1.0 document with one run that holds the errors, for ``json.dump``."""
    found = list(errors)
    codes = sorted({err.code for err in found})
    rules = [_sarif_rule(code) for code in codes]
    results = []
    for err in found:
        result: dict[str, Any] = {
            "ruleId": err.code,
            "ruleIndex": codes.index(err.code),
            "level": severity(err),
            "message": {"text": f"{err.message}\n{err.help}" if err.help else err.message},
        }
        if err.loc is not None:
            place, *calls = err.loc.chain()
            result["locations"] = [_sarif_location(place)]
            if calls:
                result["relatedLocations"] = [
                    _sarif_location(call, id=number, message={"text": "called from here"})
                    for number, call in enumerate(calls)
                ]
        results.append(result)
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "Tritium", "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def _sarif_rule(code: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": code}
    if entry := CATALOGUE.get(code):
        rule["shortDescription"] = {"text": entry.template}
    return rule


def _sarif_location(loc: Loc, **extra: Any) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": loc.line, "startColumn": loc.col + 1}
    if loc.end_line:
        region |= {"endLine": loc.end_line, "endColumn": loc.end_col + 1}
    location: dict[str, Any] = {
        **extra,
        "physicalLocation": {"artifactLocation": {"uri": _uri(loc.file)}, "region": region},
    }
    if loc.function:
        location["logicalLocations"] = [{"name": loc.function, "kind": "function"}]
    return location


def _uri(file: str) -> str:
    import pathlib
    import urllib.parse

    path = pathlib.Path(file)
    return path.as_uri() if path.is_absolute() else urllib.parse.quote(path.as_posix())
