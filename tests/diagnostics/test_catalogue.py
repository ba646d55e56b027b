"""The catalogue is complete and consistent, and every message can be made."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from tritium import diagnostics
from tritium.diagnostics import CATALOGUE, SECTIONS, Entry, InternalError, Kind
from tritium.diagnostics.catalogue import define

SOURCE = Path(diagnostics.__file__).parents[1]
ENTRIES = list(CATALOGUE.values())


def places(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.code)
def test_every_message_formats_to_what_it_was_given(entry: Entry) -> None:
    names = places(entry.template) | places(entry.help)
    made = diagnostics.error(entry.code, **{name: f"<{name}>" for name in names})
    assert type(made) is diagnostics.exception_class(entry.kind)
    assert made.code == entry.code
    for name in places(entry.template):
        assert f"<{name}>" in made.message
    for name in places(entry.help):
        assert f"<{name}>" in made.help
    assert not set("{}") & set(made.message + made.help)
    assert str(made).startswith(f"{diagnostics.render.severity(made)}[{entry.code}]: ")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.code)
def test_every_message_lacks_a_value_that_is_not_given(entry: Entry) -> None:
    for missing in places(entry.template) | places(entry.help):
        names = (places(entry.template) | places(entry.help)) - {missing}
        with pytest.raises(InternalError, match=f"{entry.code} lacks the value '{missing}'"):
            diagnostics.error(entry.code, **dict.fromkeys(names, "given"))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.code)
def test_messages_follow_one_form(entry: Entry) -> None:
    assert CATALOGUE[entry.code] is entry
    assert re.fullmatch(r"[EW]\d{4}", entry.code)
    assert entry.code.startswith("W") == (entry.kind is Kind.WARNING)
    assert all(name.isidentifier() for name in places(entry.template) | places(entry.help))
    for words in (entry.template, entry.help):
        assert words == words.strip()
        assert not words.endswith(".") or words.endswith("...")


def test_every_kind_has_a_class_and_the_classes_differ() -> None:
    classes = [diagnostics.exception_class(kind) for kind in Kind]
    assert len(set(classes)) == len(classes)


def test_a_code_is_given_out_once_and_in_a_section() -> None:
    code = next(iter(CATALOGUE))
    before = CATALOGUE[code]
    with pytest.raises(ValueError, match="twice"):
        define(code, Kind.TYPE, "other words")
    with pytest.raises(ValueError, match="no section"):
        define("E9901", Kind.TYPE, "words")
    assert CATALOGUE[code] is before
    assert "E9901" not in CATALOGUE


def test_an_unknown_code_is_a_fault_of_tritium() -> None:
    with pytest.raises(InternalError, match="no message with the code E9999"):
        diagnostics.error("E9999")


def test_every_section_has_messages() -> None:
    assert {code[:3] for code in CATALOGUE} == set(SECTIONS)


def test_every_code_in_the_source_is_in_the_catalogue() -> None:
    used = {
        code
        for path in SOURCE.rglob("*.py")
        for code in re.findall(r"[\"']([EW]0[1-9]\d\d)[\"']", path.read_text(encoding="utf-8"))
    }
    assert used
    assert used <= set(CATALOGUE)
