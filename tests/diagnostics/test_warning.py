"""Warnings: coded, rendered, once for each place, and under Python's filters."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tritium
from tritium.diagnostics import InternalError, Loc, TritiumWarning, forget_warnings, warn

PLACE = Loc("kernels/softmax.py", 4, 8, 4, 10)


def shown(action: str, *places: Loc | None, **how: object) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.filterwarnings(action, **how)  # type: ignore[arg-type]
        for place in places:
            warn("W0901", loc=place, text="the offset wraps", hint="use int64")
    return list(caught)


def test_a_warning_is_a_coded_rendered_message_at_its_place() -> None:
    (caught,) = shown("default", PLACE)
    assert caught.category is TritiumWarning
    assert (caught.filename, caught.lineno) == (PLACE.file, PLACE.line)
    assert isinstance(caught.message, TritiumWarning)
    assert caught.message.code == "W0901"
    assert caught.message.loc is PLACE
    assert str(caught.message) == (
        "warning[W0901]: the offset wraps\n --> kernels/softmax.py:4:9\n  = help: use int64"
    )


@pytest.mark.parametrize("action", ["default", "once", "module"])
def test_a_place_is_shown_once_in_a_process(action: str) -> None:
    elsewhere = Loc(PLACE.file, PLACE.line, PLACE.col + 1)
    assert len(shown(action, PLACE, PLACE, elsewhere)) == 2
    # Python's own memory is cleared whenever a filter changes.
    assert shown(action, PLACE, elsewhere) == []
    forget_warnings()
    assert len(shown(action, PLACE)) == 1


def test_always_shows_each_time() -> None:
    assert len(shown("always", PLACE, PLACE)) == 2


def test_an_ignored_warning_is_not_used_up() -> None:
    assert shown("ignore", PLACE) == []
    assert len(shown("default", PLACE)) == 1


def test_error_raises_each_time() -> None:
    for _ in range(2):
        with pytest.raises(TritiumWarning) as raised:
            shown("error", PLACE)
        assert raised.value.loc is PLACE


def test_filters_by_category_message_and_module_work() -> None:
    assert shown("ignore", PLACE, category=TritiumWarning) == []
    assert shown("ignore", PLACE, category=UserWarning) == []
    assert shown("ignore", PLACE, message=r"warning\[W0901\]") == []
    assert shown("ignore", PLACE, module="kernels/softmax") == []
    assert len(shown("ignore", PLACE, module="another")) == 1


def test_without_a_place_the_caller_outside_of_tritium_is_named() -> None:
    (caught,) = shown("always", None)
    assert caught.filename == __file__
    with open(__file__, encoding="utf-8") as file:
        assert file.readlines()[caught.lineno - 1].strip().startswith('warn("W0901"')


def test_frames_of_tritium_are_skipped() -> None:
    inside = os.path.join(os.path.dirname(tritium.__file__), "runtime", "pretended.py")
    space: dict[str, Any] = {"warn": warn}
    exec(compile("def f():\n    warn('W0901', text='t', hint='')", inside, "exec"), space)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        space["f"]()
    assert caught[0].filename == __file__


def test_threads_share_the_memory() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        with ThreadPoolExecutor(8) as pool:
            for _ in range(200):
                pool.submit(warn, "W0901", loc=PLACE, text="t", hint="")
    assert len(caught) == 1


def test_an_error_is_not_a_warning() -> None:
    with pytest.raises(InternalError, match="E0301 is not a warning"):
        warn("E0301", text="t")


def test_a_script_shows_it_once_on_stderr() -> None:
    script = (
        "from tritium.diagnostics import Loc, warn\n"
        "for _ in range(3):\n"
        "    warn('W0901', text='wraps', hint='', loc=Loc('k.py', 4, 8))\n"
        "    warn('W0901', text='wraps', hint='')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("warning[W0901]: wraps") == 2
    assert "k.py:4: TritiumWarning: " in done.stderr
    assert "<string>:4: TritiumWarning: " in done.stderr
