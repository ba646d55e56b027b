"""Whether a pass keeps the meaning of a function: both are run by the operations' own rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.ir.random_ir import BUFFER

from tritium.interp import run_ir
from tritium.ir import Function, function_text, parse_function
from tritium.ir.dtypes import DType
from tritium.ir.types import element
from tritium.passes import run_pipeline

SCALARS: dict[str, int] = {"i32": 11, "i64": 1 << 33, "u8": 200, "i8": -5, "i1": 1}
GRID = (2, 2)


def outcome(function: Function, scalars: dict[str, int]) -> list[np.ndarray]:
    """The contents of every buffer after a launch; each pointer is the middle of a buffer."""
    buffers: list[np.ndarray] = []
    args: list[Any] = []
    for param in function.params:
        if param.type.is_ptr():
            dtype = element(param.type)
            assert isinstance(dtype, DType)
            buffers.append(np.arange(BUFFER).astype(dtype.numpy))
            args.append(buffers[-1][BUFFER // 2 :])
        else:
            args.append(scalars[param.type.mnemonic])  # type: ignore[attr-defined]
    ranges = [(b.ctypes.data, b.ctypes.data + b.nbytes) for b in buffers]
    run_ir(function, args, GRID, ranges)
    return buffers


def check_meaning(function: Function, pipeline: str, scalars: dict[str, int] = SCALARS) -> Function:
    """The function after the passes, verified after each, which must do what it did before."""
    before = function_text(function)
    want = outcome(function, scalars)
    changed = parse_function(before)
    run_pipeline(changed, pipeline, check=True)
    got = outcome(changed, scalars)
    for left, right in zip(want, got):
        np.testing.assert_array_equal(left, right, err_msg=f"{before}\n{pipeline}\n{changed!r}")
    return changed
