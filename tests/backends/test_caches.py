"""What is found out about the CPU's caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritium.backends import caches


def described(place: Path, *given: tuple[str, str]) -> None:
    for number, (level, size) in enumerate(given):
        folder = place / f"index{number}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")


@pytest.mark.parametrize(
    ("given", "core", "last"),
    [
        ((("1", "32K"), ("1", "64K"), ("2", "512K"), ("3", "16384K")), 512 << 10, 16 << 20),
        ((("1", "32K"), ("2", "2048K")), 2 << 20, 2 << 20),
        ((("1", "48K"), ("3", "4096K")), caches.CORE_CACHE, 4 << 20),
        ((("2", "x"), ("", "8K"), ("2", "4M")), caches.CORE_CACHE, caches.LAST_LEVEL_CACHE),
        ((), caches.CORE_CACHE, caches.LAST_LEVEL_CACHE),
    ],
)
def test_sizes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[tuple[str, str], ...],
    core: int,
    last: int,
) -> None:
    described(tmp_path, *given)
    # What tells only a part of it isn't a cache.
    (tmp_path / "index9").mkdir()
    monkeypatch.setattr(caches, "_FOLDER", str(tmp_path))
    assert caches.core_cache() == core
    assert caches.last_level_cache() == last


def test_a_system_that_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "_FOLDER", str(tmp_path / "none"))
    assert caches.core_cache() == 1 << 20
    assert caches.last_level_cache() == 32 << 20
