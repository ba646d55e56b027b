"""The guide's programs here are the guide's own, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

COPIES = Path(__file__).parent
GUIDE = COPIES.parents[2] / "shared" / "guide"
NAMES = [
    "GUIDE.md",
    "debug_helpers.py",
    "interpret.py",
    "matmul_autotuned.py",
    "vector_add.py",
]


@pytest.mark.parametrize("name", NAMES)
def test_copy_is_word_for_word(name: str) -> None:
    if not GUIDE.is_dir():
        pytest.skip("the guide doesn't lie beside this checkout (../shared/guide)")
    assert (COPIES / name).read_bytes() == (GUIDE / name).read_bytes()


def test_no_file_of_the_guide_is_left_out() -> None:
    if not GUIDE.is_dir():
        pytest.skip("the guide doesn't lie beside this checkout (../shared/guide)")
    assert sorted(path.name for path in GUIDE.iterdir()) == NAMES


def test_copies_are_here() -> None:
    assert [name for name in NAMES if not (COPIES / name).is_file()] == []
