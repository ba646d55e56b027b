"""Tiles larger than one pass through shared memory, rearranged, run by the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.backends.cpu import one_op
from tests.backends.nvptx.emulator import unsupported
from tests.backends.nvptx.gpu.compiling import Part
from tests.backends.nvptx.gpu.host import Host, written
from tests.backends.nvptx.gpu.running import run_part

from tritium.backends.nvptx import shared
from tritium.ir.core import Op
from tritium.ir.dtypes import float32, int32
from tritium.ir.types import TileType
from tritium.ops import samples
from tritium.ops.rearrange import Cat, Gather, Slice, Update
from tritium.ops.spec import Case, Sample

pytestmark = pytest.mark.skipif(unsupported() is not None, reason=str(unsupported()))

ROWS, COLUMNS = 12, 1100
WIDE = samples.ordinary(float32, (ROWS, COLUMNS))
MOST = 16 * 1024
"""Bytes of shared memory in these tests: a few passes for a tile."""


def case(cls: type[Op], operands: dict[str, Sample], **attributes: Any) -> Case:
    return Case(cls, f"large {cls.verb}", operands, attributes)


def places() -> Sample:
    rng = np.random.default_rng(0)
    data = rng.integers(-9, COLUMNS + 9, (ROWS, 40)).astype(np.int32)
    return Sample(TileType(int32, (ROWS, 40)), data)


CASES = [
    case(Slice, {"x": WIDE}, starts=(11, 1000), steps=(-1, -3), extents=(12, 300)),
    case(Cat, {"left": WIDE, "right": samples.ordinary(float32, (ROWS, 5))}, axis=1),
    case(
        Update,
        {"x": samples.ordinary(float32, (ROWS, 2300), 1), "value": WIDE},
        starts=(0, 2200),
        steps=(1, -2),
    ),
    case(Gather, {"x": WIDE, "index": places()}, axis=1),
]


@pytest.mark.parametrize("made", CASES, ids=lambda each: each.op.mnemonic)
def test_in_several_passes(made: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    assert WIDE.data.nbytes > 3 * MOST
    monkeypatch.setattr(shared, "most_bytes", lambda capability: MOST)
    code = written(one_op.build([made], 16), 8)
    assert 0 < code.shared_bytes <= MOST
    assert run_part(Host(0), Part([made], code), True) == []
