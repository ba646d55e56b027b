"""The compile cache as kernels meet it: what has changed is compiled anew, and faults do no harm.

``scripts/cache_faults.py`` breaks it in more ways and more often; a little of that runs here.
"""

from __future__ import annotations

import errno
import itertools
import json
import linecache
import os
import pathlib
import subprocess
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tritium
import tritium.frontend
import tritium.language as tl
from tritium import knobs
from tritium.diagnostics import CompilationError, TritiumWarning
from tritium.frontend import tracing
from tritium.runtime import cache, native

ROOT = pathlib.Path(__file__).parents[2]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

PROGRAM = """
SCALE = tl.constexpr(3)
LIMIT = 7

@tritium.constexpr_function
def bound(n):
    return n + LIMIT

@tritium.jit
def inner(x, by=2):
    return x * SCALE + by

@tritium.jit
def outer(x):
    return inner(x) + numbers.OFFSET

def make(value):
    added = tl.constexpr(value)

    @tritium.jit
    def closed(x):
        return x + added

    return closed

closed = make(5)

@tritium.jit
def kernel(x_ptr, N: tl.constexpr, F: tl.constexpr = None):
    offs = tl.arange(0, N)
    x = closed(outer(tl.load(x_ptr + offs))) + bound(1)
    if F is not None:
        x = F(x)
    tl.store(x_ptr + offs, x)
"""
RESULT = 0 * 3 + 2 + 4 + 5 + 1 + 7
"""Of the program for an element that was 0."""


@pytest.fixture(autouse=True)
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", set())
    return tmp_path / "cache" / "kernels"


@pytest.fixture
def numbers() -> Iterator[types.ModuleType]:
    module = types.ModuleType("numbers_under_test")
    module.OFFSET = 4  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that were traced."""
    names: list[str] = []

    def trace(function: Any, *rest: Any) -> Any:
        names.append(function.__name__)
        return tracing.trace(function, *rest)

    monkeypatch.setattr(tritium.frontend, "trace", trace)
    return names


_count = itertools.count()


def program(text: str, **names: Any) -> dict[str, Any]:
    """The globals of a module of that text, as another process would have them."""
    file = f"<program {next(_count)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"tritium": tritium, "tl": tl, "__name__": "program_under_test", **names}
    exec(compile(text, file, "exec"), scope)
    return scope


def result(scope: dict[str, Any], **arguments: Any) -> float:
    x = np.zeros(16, np.float32)
    scope["kernel"][(1,)](x, N=16, **arguments)
    assert len(set(x.tolist())) == 1
    return float(x[0])


# ---- what has changed is seen --------------------------------------------------------------------


def test_a_kernel_that_is_known_is_not_traced(
    numbers: types.ModuleType, traced: list[str], place: pathlib.Path
) -> None:
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    assert traced == ["kernel"]
    files = {each: each.read_bytes() for each in place.iterdir()}
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    assert result(program(f"# moved\n\n{PROGRAM}", numbers=numbers)) == RESULT
    assert traced == ["kernel"]
    assert files == {each: each.read_bytes() for each in place.iterdir()}


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("x * SCALE + by", "x * SCALE - by", RESULT - 4),
        ("by=2", "by=3", RESULT + 1),
        ("SCALE = tl.constexpr(3)", "SCALE = tl.constexpr(4)", RESULT),
        ("make(5)", "make(6)", RESULT + 1),
        ("return x + added", "return x - added", RESULT - 10),
        ("LIMIT = 7", "LIMIT = 8", RESULT + 1),
        ("return n + LIMIT", "return n - LIMIT", RESULT - 14),
        ("numbers.OFFSET", "numbers.OFFSET * 2", RESULT + 4),
        ("+ bound(1)", "+ bound(2)", RESULT + 1),
    ],
)
def test_a_change_of_the_program_is_seen(
    numbers: types.ModuleType, traced: list[str], old: str, new: str, expected: float
) -> None:
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    assert old in PROGRAM
    changed = PROGRAM.replace(old, new)
    for _ in range(2):
        assert result(program(changed, numbers=numbers)) == expected
    assert traced == ["kernel", "kernel"]
    assert result(program(PROGRAM, numbers=numbers)) == RESULT


def test_a_change_of_a_module_is_seen(numbers: types.ModuleType, traced: list[str]) -> None:
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    numbers.OFFSET = 5  # type: ignore[attr-defined]
    assert result(program(PROGRAM, numbers=numbers)) == RESULT + 1
    assert len(traced) == 2
    # What tracing gives now and gave before are different kernels: both are still there.
    numbers.OFFSET = 4  # type: ignore[attr-defined]
    assert result(program(PROGRAM, numbers=numbers)) == RESULT


def test_a_change_of_the_arguments_is_seen(numbers: types.ModuleType, traced: list[str]) -> None:
    def with_helper(body: str, **options: Any) -> float:
        scope = program(f"{PROGRAM}\n@tritium.jit\ndef f(x):\n    return {body}\n", numbers=numbers)
        return result(scope, F=scope["f"], **options)

    assert with_helper("x * 2") == 2 * RESULT
    assert with_helper("x * 2") == 2 * RESULT
    assert with_helper("x * 3") == 3 * RESULT
    assert traced == ["kernel"] * 2
    assert with_helper("x * 3", enable_fp_fusion=True) == 3 * RESULT
    assert with_helper("x * 3", debug=True) == 3 * RESULT
    assert traced == ["kernel"] * 4


def test_what_cannot_be_verified_is_traced_each_time(traced: list[str]) -> None:
    text = """
V = tl.constexpr(object())

@tritium.jit
def kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 2.0 if V is None else 3.0)
"""
    assert [result(program(text)), result(program(text))] == [3, 3]
    assert traced == ["kernel"] * 2
    assert cache.size()[0]["manifest"] == 0
    assert cache.size()[0]["kernel"] == 1


def test_knobs_that_the_front_end_looks_at(traced: list[str]) -> None:
    text = """
PLAIN = 2

@tritium.jit
def kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), PLAIN)
"""
    with knobs.compilation.scope():
        knobs.compilation.allow_non_constexpr_globals = True
        assert result(program(text)) == 2
        assert result(program(text)) == 2
        assert result(program(text.replace("PLAIN = 2", "PLAIN = 3"))) == 3
    assert traced == ["kernel"] * 2
    with pytest.raises(CompilationError, match="E0102"):
        result(program(text))


@pytest.mark.parametrize("features", ["", "-avx512f", "-avx2,-avx512f", "-sse4.1"])
def test_code_for_another_cpu_is_not_used(
    numbers: types.ModuleType, traced: list[str], place: pathlib.Path, features: str
) -> None:
    before = native.host_target().key
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    first = {each.name for each in place.iterdir()}
    with knobs.cpu.scope():
        knobs.cpu.features = features
        if native.host_target().key == before:
            assert features == ""
            return
        assert result(program(PROGRAM, numbers=numbers)) == RESULT
        assert traced == ["kernel"] * 2
    second = {each.name for each in place.iterdir()} - first
    suffixes = sorted(os.path.splitext(name)[1] for name in second)
    assert [each for each in suffixes if each != cache.HOST_SUFFIX] == [".kernel", ".manifest"]
    # Not even under the other's name.
    for name in first:
        suffix = os.path.splitext(name)[1]
        other = next((each for each in second if each.endswith(suffix)), None)
        if other is not None and suffix != cache.HOST_SUFFIX:
            (place / name).write_bytes((place / other).read_bytes())
    made = program(PROGRAM, numbers=numbers)["kernel"][(1,)](np.zeros(16, np.float32), N=16)
    assert not made.code.version(True).cached


def test_code_that_cannot_be_linked_is_made_anew(numbers: types.ModuleType) -> None:
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    for each in cache.entries():
        entry = cache.load(each.name)
        if each.kind == "kernel" and entry is not None:
            broken = {**entry.sections, "object": b"\0" + entry.sections["object"][1:]}
            assert cache.store(each.name, entry._replace(sections=broken))
    assert result(program(PROGRAM, numbers=numbers)) == RESULT


@pytest.mark.parametrize("facts", [{}, {"reads": 5}, {"reads": {"functions": [{}]}}, {"entry": 1}])
def test_entries_made_in_another_way(
    numbers: types.ModuleType, traced: list[str], facts: dict[str, Any]
) -> None:
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    for each in cache.entries():
        suffix = {kind: suffix for suffix, kind in cache.KINDS.items()}[each.kind]
        if each.kind != "host":
            cache.store(each.name, cache.Entry(facts, {"object": b"", "ir": b"\xff"}), suffix)
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    assert traced == ["kernel"] * 2
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    assert traced == ["kernel"] * 2


# ---- faults --------------------------------------------------------------------------------------

FILE = "k.manifest"
DATA = cache.encode(
    cache.Entry({"kernel": "k", "reads": {"functions": [], "complete": True}}, {"ir": b"ir" * 99}),
    FILE,
)


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_a_changed_byte_is_seen(at: int, change: int) -> None:
    changed = bytearray(DATA)
    changed[at] ^= change
    assert cache.decode(bytes(changed), FILE) is None


@given(st.integers(0, len(DATA) - 1), st.binary(max_size=40))
def test_another_end_is_seen(length: int, rest: bytes) -> None:
    changed = DATA[:length] + rest
    assert (cache.decode(changed, FILE) is None) == (changed != DATA)


def folder_in_the_place_of(path: pathlib.Path) -> None:
    path.unlink()
    path.mkdir()


def link_in_the_place_of(path: pathlib.Path) -> None:
    elsewhere = path.parents[2] / path.name
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def nothing_in_the_place_of(path: pathlib.Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "spoil", [folder_in_the_place_of, link_in_the_place_of, nothing_in_the_place_of]
)
def test_kernels_run_whatever_stands_in_the_place_of_entries(
    numbers: types.ModuleType, place: pathlib.Path, spoil: Callable[[pathlib.Path], None]
) -> None:
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    for path in list(place.iterdir()):
        spoil(path)
    for _ in range(2):
        assert result(program(PROGRAM, numbers=numbers)) == RESULT


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["write", "replace", "mkdir", "open", "scandir", "stat"])
def test_kernels_run_where_calls_fail(
    monkeypatch: pytest.MonkeyPatch, numbers: types.ModuleType, call: str, code: int
) -> None:
    cache.compiler_hash()

    def refuse(*args: Any, **keywords: Any) -> Any:
        raise OSError(code, os.strerror(code))

    class Full:
        """A file on a full disk."""

        def __init__(self, handle: int, mode: str) -> None:
            self.handle = handle

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *raised: object) -> None:
            os.close(self.handle)

        write = refuse

    with monkeypatch.context() as patched:
        patched.setattr(os, *(("fdopen", Full) if call == "write" else (call, refuse)))
        scope = program(PROGRAM, numbers=numbers)
        x = np.zeros(16, np.float32)
        scope["kernel"][(1,)](x, N=16)
    assert x.tolist() == [RESULT] * 16
    assert result(program(PROGRAM, numbers=numbers)) == RESULT


@pytest.mark.skipif(not os.path.exists("/proc/self"), reason="root may write to all others")
def test_a_home_where_nothing_can_be_made(
    monkeypatch: pytest.MonkeyPatch, numbers: types.ModuleType
) -> None:
    monkeypatch.setenv("TRITIUM_CACHE_DIR", "/proc/tritium/cache")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert result(program(PROGRAM, numbers=numbers)) == RESULT


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_kernels_run_without_a_folder_that_others_can_write_to(
    numbers: types.ModuleType, traced: list[str], place: pathlib.Path
) -> None:
    assert result(program(PROGRAM, numbers=numbers)) == RESULT
    files = sorted(place.iterdir())
    place.chmod(0o777)
    with pytest.warns(TritiumWarning, match="others can write to it") as caught:
        assert [result(program(PROGRAM, numbers=numbers)) for _ in range(3)] == [RESULT] * 3
    assert len(caught) == 1
    assert traced == ["kernel"] * 4
    assert sorted(place.iterdir()) == files


# ---- processes -----------------------------------------------------------------------------------


def test_a_second_process_loads_no_compiler(tmp_path: pathlib.Path) -> None:
    (tmp_path / "numbers_under_test.py").write_text("OFFSET = 4\n")
    lines = f"""
    import sys, numpy as np, tritium, tritium.language as tl, numbers_under_test as numbers
    {textwrap.indent(PROGRAM, "    ").strip()}
    assert "llvmlite" not in sys.modules
    x = np.zeros(16, np.float32)
    made = kernel[(1,)](x, N=16)
    assert x.tolist() == [{RESULT}] * 16
    rooms = ("passes", "interp", "backends.cpu", "backends.emit", "frontend.tracer")
    found = [name for name in rooms if f"tritium.{{name}}" in sys.modules]
    print(found, made.asm["ttir"].count("memory.store"), "arith" in made.asm["optimised"])
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(lines))

    def run() -> str:
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        return done.stdout

    assert "'passes'" in run()
    found = run()
    assert found.startswith("[] ")
    assert found.endswith("1 True\n")


@needs_fork
@pytest.mark.parametrize(
    "trial, runs",
    [("kills", 10), ("calls", 5), ("errors", 8), ("meetings", 4), ("damage", 6), ("disks", 3)],
)
def test_faults(trial: str, runs: int) -> None:
    script = ROOT / "scripts" / "cache_faults.py"
    command = [sys.executable, script, trial, "--runs", str(runs), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines
    for counts in lines:
        assert not any(counts[name] for name in ("wrong", "damaged", "lost", "failed"))
    if trial in ("kills", "calls"):
        assert lines[0]["killed"] >= runs
