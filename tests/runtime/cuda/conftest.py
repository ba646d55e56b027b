"""A fake driver for each test that asks for one."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from tests.runtime.cuda.fake_driver import Fake, installed


@pytest.fixture
def fake(tmp_path: pathlib.Path) -> Iterator[Fake]:
    """Each test compiles anew: what is compiled depends on the fake."""
    # Not by the fixture: what a test patches is to be undone before this is.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "cache"))
        with installed() as found:
            yield found
