"""What ``knobs.compilation.time_passes`` prints."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium import knobs


@tritium.jit
def copy(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


def phases(text: str) -> list[str]:
    """The phases of the only table in a text, whose milliseconds sum up to its total."""
    head, *lines = text.splitlines()
    found = re.fullmatch(r"copy(?:, where arrays overlap)?: (\d+\.\d\d) ms", head)
    assert found, head
    rows = [re.fullmatch(r"  (\S.*?) +(\d+\.\d\d) ms +(\d+)%", line) for line in lines]
    assert all(rows)
    assert abs(sum(float(row[2]) for row in rows if row) - float(found[1])) < 0.01 * len(rows)
    assert abs(sum(int(row[3]) for row in rows if row) - 100) <= len(rows)
    return [row[1] for row in rows if row]


COMPILED = ["plan", "emit", "parse", "optimise", "codegen"]


def test_a_table_for_each_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "cache"))
    x = np.arange(64, dtype=np.float32)

    def launch(*arrays: np.ndarray) -> str:
        kernel(*arrays, N=16)
        return capfd.readouterr().err

    with knobs.compilation.scope(), knobs.cache.scope():
        kernel = tritium.jit(copy.fn)[(1,)]
        assert launch(x, x.copy()) == ""
        knobs.cache.dir = str(tmp_path / "other")
        knobs.compilation.time_passes = True
        kernel = tritium.jit(copy.fn)[(1,)]
        found = phases(launch(x, x.copy()))
        assert found[:3] == ["capture", "look up", "trace"]
        passes = [each for each in found if each.startswith("pass ")]
        assert {"pass canonicalize", "pass cse", "pass dce"} <= set(passes)
        assert found[-len(COMPILED) - 2 :] == [*COMPILED, "store", "link"]
        assert phases(launch(x, x)) == ["look up", *COMPILED, "store", "link"]
        assert launch(x, x) == ""
        kernel = tritium.jit(copy.fn)[(1,)]
        assert phases(launch(x, x.copy())) == ["capture", "look up", "link"]
