"""The example in each pass's docstring is what the pass does."""

from __future__ import annotations

import sys
import textwrap

import pytest
from tests.passes.meaning import check_meaning

from tritium.ir import function_text, parse_function, verify
from tritium.passes import PASSES


def example(name: str) -> tuple[str, str]:
    """The IR before and after, from the docstring of the pass's module."""
    text = sys.modules[PASSES[name].run.__module__].__doc__
    assert text is not None
    _, before, after = text.replace("After::", "Before::").split("Before::")
    return textwrap.dedent(before).strip() + "\n", textwrap.dedent(after).strip() + "\n"


SCALARS = {"i32": 3, "i1": 1, "fp32": 2}


@pytest.mark.parametrize("name", sorted(PASSES))
def test_before_becomes_after(name: str) -> None:
    before, after = example(name)
    function = parse_function(before)
    assert function_text(function) == before
    verify(parse_function(after))
    assert function_text(check_meaning(function, name, SCALARS)) == after


@pytest.mark.parametrize("name", sorted(PASSES))
def test_after_stays(name: str) -> None:
    _, after = example(name)
    assert function_text(check_meaning(parse_function(after), name, SCALARS)) == after
