"""The warning of programs that keep more in scratch memory than a core's cache holds."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium.backends import caches
from tritium.diagnostics import TritiumWarning, forget_warnings

LIMIT = 128 << 10


@pytest.fixture(autouse=True)
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_warnings()
    monkeypatch.setattr(caches, "core_cache", lambda: LIMIT)


@tritium.jit
def transposed(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tile = tl.load(x + at[:, None] * N + at)  # transposed
    small = tl.sum(tile, 0)
    tl.store(y + at[:, None] * N + at, tl.cumsum(tile, 0) + small)


@tritium.jit
def accumulated(x, y, n, N: tl.constexpr):
    at = tl.arange(0, N)
    total = tl.zeros((N, N), tl.float32)  # accumulated
    for i in range(n):
        part = tl.load(x + i * 16 + at[:, None] * 16 + tl.arange(0, 16))
        total = tl.dot(part, tl.trans(part), total)
    tl.store(y + at[:, None] * N + at, total)


@tritium.jit
def flipped(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.flip(tl.cumsum(tl.load(x + at), 0)))  # flipped


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text("utf-8").splitlines()
    (found,) = (n for n, line in enumerate(lines, 1) if line.endswith(f"  # {mark}"))
    return found


def warned(kernel: Any, *args: Any, **options: Any) -> list[TritiumWarning]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        kernel[(1,)](*args, **options)
    return [each.message for each in caught if isinstance(each.message, TritiumWarning)]


def test_it_names_the_tile_and_is_given_once() -> None:
    x, y = np.ones((256, 256), np.float32), np.zeros((256, 256), np.float32)
    (warning,) = warned(transposed, x, y, N=256)
    assert warning.code == "W0904"
    assert warning.loc is not None
    assert (warning.loc.file, warning.loc.line) == (__file__, line_of("transposed"))
    scratch = transposed.warmup(x, y, N=256, grid=(1,)).metadata.scratch_bytes
    total = f"{scratch / 1024:.0f} KiB"
    assert f"keeps {total} in memory, more than the 128 KiB" in warning.message
    assert "this tile<256x256xfp32> takes 256 KiB of it" in warning.message
    assert "smaller tiles" in warning.help
    # The other version, other specialisations and later launches are the same kernel.
    assert warned(transposed, x, x, N=256) == []
    assert warned(transposed, x.astype(np.float64), y, N=256) == []
    assert warned(transposed, x, y, N=256) == []


def test_what_fits_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.ones((80, 80), np.float32), np.zeros((80, 80), np.float32)
    assert warned(transposed, x, y, N=80) == []
    monkeypatch.setattr(caches, "core_cache", lambda: 1 << 20)
    x, y = np.ones((200, 200), np.float32), np.zeros((200, 200), np.float32)
    assert warned(transposed, x, y, N=200) == []
    kept = transposed.warmup(x, y, N=200, grid=(1,)).metadata.scratch_bytes
    for least, codes in ((kept, []), (kept - 1, ["W0904"])):
        monkeypatch.setattr(caches, "core_cache", lambda least=least: least)
        transposed.kernels.clear()
        assert [each.code for each in warned(transposed, x, y, N=200)] == codes


@pytest.mark.parametrize(
    ("kernel", "rest", "shape", "mark", "type"),
    [
        (accumulated, (2,), (256, 256), "accumulated", "tile<256x256xfp32>"),
        (flipped, (), (32768,), "flipped", "tile<32768xfp32>"),
    ],
)
def test_the_users_line_is_named(
    kernel: Any, rest: tuple[int, ...], shape: tuple[int, ...], mark: str, type: str
) -> None:
    x, y = np.ones(1 << 16, np.float32), np.zeros(shape, np.float32)
    (warning,) = warned(kernel, x, y, *rest, N=shape[0])
    assert warning.loc is not None
    assert (warning.loc.file, warning.loc.line) == (__file__, line_of(mark))
    assert f"this {type} takes" in warning.message


PROGRAM = """
import sys, warnings, numpy as np, tritium, tritium.language as tl
from tritium.backends import caches
caches.core_cache = lambda: 128 << 10
@tritium.jit
def kernel(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tile = tl.load(x + at[:, None] * N + at)
    tl.store(y + at[:, None] * N + at, tl.cumsum(tile, 0))
x, y = np.ones((256, 256), np.float32), np.zeros((256, 256), np.float32)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    for _ in range(3):
        made = kernel[(1,)](x, y, N=256)
assert y[-1, 0] == 256
print(made.code.version(True).cached, [each.message.code for each in caught])
print(*(f"{each.lineno}" for each in caught), "tritium.passes" in sys.modules)
"""


def test_code_from_the_cache_warns_at_the_line_of_now(tmp_path: Path) -> None:
    """In each process once, at the line where the tile stands in the source of that process."""
    script = tmp_path / "script.py"

    def run(text: str) -> list[str]:
        script.write_text(text)
        command = [sys.executable, str(script)]
        out = subprocess.run(command, capture_output=True, text=True, check=True)
        return out.stdout.split("\n")[:2]

    moved = textwrap.dedent(PROGRAM).replace("\n@", "\n\n\n@")
    assert run(PROGRAM) == ["False ['W0904']", "8 True"]
    assert run(PROGRAM) == ["True ['W0904']", "8 False"]
    assert run(moved)[0] == "True ['W0904']"
    assert run(moved) == ["True ['W0904']", "10 False"]
    assert run(PROGRAM) == ["True ['W0904']", "8 False"]


def test_an_error_filter_makes_it_one() -> None:
    x, y = np.ones((257, 257), np.float32), np.zeros((257, 257), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TritiumWarning, match="W0904"):
            transposed[(1,)](x, y, N=257)
    assert (y == 0).all()
