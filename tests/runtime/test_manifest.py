"""What is kept of a kernel before it is traced follows the kernel to where it stands now."""

from __future__ import annotations

import itertools
import linecache
import re
import types
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.frontend
import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.frontend import PointerSpec, TraceOptions, trace, tracing
from tritium.frontend.dependencies import Span, recall
from tritium.ir import function_text
from tritium.runtime.manifest import moved

HELPER = """
@tritium.jit
def helper(x):
    tl.device_assert(x < 5, 'file = "a", line = 1 and "b":2:3')
    return tl.sum(
        x + 1,
        0,
    )
"""
KERNEL = """
@tritium.jit
def kernel(x):
    at = tl.arange(0, 4)
    tl.store(x, helper(tl.load(x + at)))
"""
_count = itertools.count()


def program(*parts: str) -> types.SimpleNamespace:
    """A module of that text, in a file of its own."""
    text = "".join(parts)
    file = f'<manifest "{next(_count)}">'
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"tritium": tritium, "tl": tl, "__name__": "program_under_test"}
    exec(compile(text, file, "exec"), scope)
    return types.SimpleNamespace(**scope)


def traced(kernel: Any) -> Any:
    return trace(kernel, {"x": PointerSpec(tl.int32)}, TraceOptions(debug=True))


@pytest.mark.parametrize("parts", [("\n\n\n", HELPER, KERNEL), (KERNEL, "\n", HELPER)])
def test_places_move_with_their_functions(parts: tuple[str, ...]) -> None:
    """As if the kernel were traced anew: in another file, at other lines, in another order."""
    before, after = program(HELPER, "\n", KERNEL), program(*parts)
    was, now = traced(before.kernel), traced(after.kernel)
    moves = recall(was.dependencies.manifest(), after.kernel, {}).moves
    for locations in (True, False):
        old, new = (function_text(each.function, locations) for each in (was, now))
        assert old != new
        assert moved(old, moves) == new
        assert moved(old, []) == old


def test_an_assertion_names_its_line_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(function: Any, *rest: Any) -> Any:
        calls.append(function.__name__)
        return tracing.trace(function, *rest)

    monkeypatch.setattr(tritium.frontend, "trace", counted)
    for parts, line in (((HELPER, KERNEL), 4), (("\n" * 7, HELPER, KERNEL), 11)):
        module = program(*parts)
        with pytest.raises(TritiumError) as caught:
            module.kernel[(1,)](np.full(4, 7, np.int32), debug=True)
        assert caught.value.loc is not None
        assert caught.value.loc.line == line
        assert caught.value.loc.file == module.kernel.fn.__code__.co_filename
    assert calls == ["kernel"]


def test_a_function_without_text_has_no_lines() -> None:
    scope: dict[str, Any] = {"tritium": tritium}
    exec("@tritium.jit\ndef unseen(x): pass", scope)
    assert Span.of(scope["unseen"]) == Span("<string>", 0, 0)


def test_code_for_gpus_names_lines_of_now() -> None:
    for parts, line in (((HELPER, KERNEL), 13), (("\n" * 7, HELPER, KERNEL), 20)):
        kernel = program(*parts).kernel
        ptx = kernel.warmup(tl.int32, grid=(1,), target="sm_80").asm["ptx"]
        named = {int(found) for found in re.findall(r"^\s*\.loc\s+\d+\s+(\d+)", ptx, re.MULTILINE)}
        assert line in named
        assert named <= set(range(line - 12, line + 1))
