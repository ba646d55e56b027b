"""Text, JSON and SARIF of an error."""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritium.diagnostics import Loc, TritiumError, error, sarif, text, to_json
from tritium.diagnostics.render import CALLS_SHOWN, underline

CELL = "<cell 1>"
SOURCE = """\
@jit
def kernel(x):
    y = tl.exp2(x)
\tz = '漢字' + tl.exp2(
\t\tx)
"""


@pytest.fixture(autouse=True)
def cell() -> Iterator[None]:
    linecache.cache[CELL] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), CELL)
    yield
    del linecache.cache[CELL]


def exp2_error(loc: Loc | None, hint: str = "cast it: x.to(tl.float32)") -> TritiumError:
    return error("E0204", op="exp2", expected="a float tile", got="int32", hint=hint, loc=loc)


def test_text_shows_message_place_carets_help_and_calls() -> None:
    outer = Loc("main.py", 7, 0)
    middle = Loc("main.py", 30, 4, 30, 20, "softmax", outer)
    assert text(exp2_error(Loc(CELL, 3, 8, 3, 18, "kernel", middle))) == (
        "error[E0204]: exp2 needs a float tile, got int32\n"
        " --> <cell 1>:3:9\n"
        "  |\n"
        "3 |     y = tl.exp2(x)\n"
        "  |         ^^^^^^^^^^\n"
        "  = help: cast it: x.to(tl.float32)\n"
        "  called from main.py:30:5 in softmax\n"
        "  called from main.py:7:1"
    )


def test_a_range_of_several_lines_is_underlined_to_the_end_of_the_first() -> None:
    lines = text(exp2_error(Loc(CELL, 4, 12, 5, 4))).splitlines()
    assert lines[3:5] == ["4 |     z = '漢字' + tl.exp2(", "  |                  ^^^^^^^^"]


def test_without_a_place_there_are_message_and_help_only() -> None:
    assert text(exp2_error(None)) == (
        "error[E0204]: exp2 needs a float tile, got int32\n  = help: cast it: x.to(tl.float32)"
    )
    assert text(exp2_error(None, hint="")) == "error[E0204]: exp2 needs a float tile, got int32"


def test_of_a_place_that_is_a_line_all_text_is_underlined() -> None:
    assert underline("    tl.assume(x > 0)", Loc("f", 1))[1:] == (4, 16)


@pytest.mark.parametrize("loc", [Loc("no such file.py", 3, 8, 3, 9), Loc(CELL, 99, 0, 99, 1)])
def test_without_source_the_place_is_still_named(loc: Loc) -> None:
    lines = text(exp2_error(loc)).splitlines()
    assert lines[1].endswith(f"--> {loc}")
    assert lines[2].endswith("= help: cast it: x.to(tl.float32)")
    assert len(lines) == 3


def test_the_margin_follows_the_line_number(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text("\n" * 1233 + "y = x\n")
    lines = text(exp2_error(Loc(str(file), 1234, 4, 1234, 5))).splitlines()
    assert lines[1].startswith("    --> ")
    assert lines[2:5] == ["     |", "1234 | y = x", "     |     ^"]
    assert lines[5].startswith("     = help: ")


def test_a_file_that_was_edited_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("before = 1\n")
    made = exp2_error(Loc(str(file), 1, 0, 1, 6))
    assert "1 | before = 1" in text(made)
    file.write_text("after, longer = 1\n")
    assert "1 | after, longer = 1" in text(made)


def test_help_of_several_lines_is_aligned() -> None:
    lines = text(exp2_error(None, hint="one\ntwo")).splitlines()
    assert lines[1:] == ["  = help: one", "          two"]


def test_long_chains_are_cut_in_the_middle() -> None:
    loc = None
    for line in range(100, 0, -1):
        loc = Loc("r.py", line, 0, function="f", call_site=loc)
    lines = text(exp2_error(loc)).splitlines()
    calls = [line.strip() for line in lines if "call" in line]
    assert len(calls) == CALLS_SHOWN + 1
    assert calls[0] == "called from r.py:2:1 in f"
    assert calls[-1] == "called from r.py:100:1 in f"
    assert f"... {99 - CALLS_SHOWN} more calls ..." in calls


def test_color_adds_escapes_and_nothing_else() -> None:
    made = exp2_error(Loc(CELL, 4, 12, 5, 4, "kernel", Loc("main.py", 1)))
    colored = text(made, color=True)
    assert "\x1b[" not in text(made)
    assert "\x1b[1;31merror[E0204]\x1b[0m" in colored
    assert "\x1b[1;31m^^^^^^^^\x1b[0m" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == text(made)
    warning = error("W0901", text="t", hint="")
    assert text(warning, color=True).startswith("\x1b[1;33mwarning[W0901]")


@pytest.mark.parametrize(
    ("source", "start", "stop", "shown", "cells"),
    [
        ("x = y", 4, 5, "x = y", (4, 1)),
        ("\tx = y", 5, 6, "    x = y", (8, 1)),
        ("ab\tx", 3, 4, "ab  x", (4, 1)),
        ("ab\tx", 2, 3, "ab  x", (2, 2)),
        ("漢字x", 2, 3, "漢字x", (4, 1)),
        ("漢字x", 0, 2, "漢字x", (0, 4)),
        ("e\u0301x", 2, 3, "e\u0301x", (1, 1)),
        ("漢\tx", 2, 3, "漢  x", (4, 1)),
        ("a\x1b[31mb", 0, 1, "a [31mb", (0, 1)),
        ("x", 5, 9, "x", (1, 1)),
        ("xy", 1, 0, "xy", (1, 1)),
    ],
)
def test_carets_count_terminal_cells(
    source: str, start: int, stop: int, shown: str, cells: tuple[int, int]
) -> None:
    assert underline(source, Loc("f", 1, start, 1, stop)) == (shown, *cells)


@given(st.text(max_size=20), st.integers(0, 25), st.integers(0, 25), st.integers(0, 3))
def test_carets_never_leave_the_line(source: str, start: int, stop: int, more: int) -> None:
    shown, first, count = underline(source, Loc("f", 1, start, 1 + more, stop))
    assert count >= 1
    # Each character takes at most two cells, and a caret may stand one past the end.
    assert 0 <= first <= 2 * len(shown)
    assert first + count <= 2 * len(shown) + 1
    assert not any(ord(character) < 32 for character in shown)


def test_json_holds_all_that_text_shows() -> None:
    site = Loc("main.py", 30, 4)
    made = exp2_error(Loc(CELL, 3, 8, 3, 18, "kernel", site))
    assert json.loads(json.dumps(to_json(made))) == {
        "code": "E0204",
        "severity": "error",
        "kind": "type",
        "message": "exp2 needs a float tile, got int32",
        "help": "cast it: x.to(tl.float32)",
        "argument": None,
        "location": {
            "file": CELL,
            "line": 3,
            "column": 9,
            "end_line": 3,
            "end_column": 19,
            "function": "kernel",
        },
        "calls": [
            {
                "file": "main.py",
                "line": 30,
                "column": 5,
                "end_line": None,
                "end_column": None,
                "function": "",
            }
        ],
    }
    assert to_json(exp2_error(None))["location"] is None


# What SARIF 2.1.0 says of the objects that occur here: type, required and allowed properties.
SARIF_OBJECTS: dict[str, dict[str, Any]] = {
    "log": {"required": {"version": str, "runs": ["run"]}, "optional": {"$schema": str}},
    "run": {
        "required": {"tool": "tool"},
        "optional": {"results": ["result"], "columnKind": str},
    },
    "tool": {"required": {"driver": "toolComponent"}, "optional": {}},
    "toolComponent": {"required": {"name": str}, "optional": {"rules": ["reportingDescriptor"]}},
    "reportingDescriptor": {
        "required": {"id": str},
        "optional": {"shortDescription": "message"},
    },
    "message": {"required": {"text": str}, "optional": {}},
    "result": {
        "required": {"message": "message"},
        "optional": {
            "ruleId": str,
            "ruleIndex": int,
            "level": str,
            "locations": ["location"],
            "relatedLocations": ["location"],
        },
    },
    "location": {
        "required": {},
        "optional": {
            "id": int,
            "message": "message",
            "physicalLocation": "physicalLocation",
            "logicalLocations": ["logicalLocation"],
        },
    },
    "physicalLocation": {
        "required": {"artifactLocation": "artifactLocation"},
        "optional": {"region": "region"},
    },
    "artifactLocation": {"required": {}, "optional": {"uri": str}},
    "region": {
        "required": {},
        "optional": {"startLine": int, "startColumn": int, "endLine": int, "endColumn": int},
    },
    "logicalLocation": {"required": {}, "optional": {"name": str, "kind": str}},
}


def check_sarif(value: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert isinstance(value, list)
        for item in value:
            check_sarif(item, expected[0])
    elif isinstance(expected, str):
        rule = SARIF_OBJECTS[expected]
        known = rule["required"] | rule["optional"]
        assert set(rule["required"]) <= set(value) <= set(known), expected
        for name, item in value.items():
            check_sarif(item, known[name])
        if expected == "region":
            assert all(number >= 1 for number in value.values())
    else:
        assert type(value) is expected


def test_sarif_is_a_valid_document() -> None:
    site = Loc("main.py", 30, 4, 30, 20, "softmax", Loc("main.py", 1))
    errors = [
        exp2_error(Loc(CELL, 3, 8, 3, 18, "kernel", site)),
        exp2_error(None, hint=""),
        error("W0901", text="wraps", hint="", loc=Loc("/folder/a b.py", 2, 0, 3, 1)),
        TritiumError("X1", "a message of no catalogue"),
    ]
    document = json.loads(json.dumps(sarif(errors)))
    check_sarif(document, "log")
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["E0204", "W0901", "X1"]
    for result, made in zip(run["results"], errors):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == made.code
    first, second, third, _ = run["results"]
    assert first["level"] == "error"
    assert third["level"] == "warning"
    assert first["message"]["text"].splitlines() == [errors[0].message, errors[0].help]
    place = first["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "%3Ccell%201%3E"
    assert place["physicalLocation"]["region"] == {
        "startLine": 3,
        "startColumn": 9,
        "endLine": 3,
        "endColumn": 19,
    }
    assert place["logicalLocations"] == [{"name": "kernel", "kind": "function"}]
    assert [call["id"] for call in first["relatedLocations"]] == [0, 1]
    assert "locations" not in second
    uri = third["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"file:///(\w:/)?folder/a%20b\.py", uri)


def test_the_check_of_sarif_can_fail() -> None:
    document = sarif([exp2_error(Loc(CELL, 0, 8))])
    with pytest.raises(AssertionError):
        check_sarif(document, "log")
    with pytest.raises(AssertionError, match="log"):
        check_sarif({"version": "2.1.0"}, "log")
