"""How one kernel is launched on each executor with NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

EXECUTORS = ["interp", "cpu", pytest.param("gpu", marks=pytest.mark.gpu)]


def launch(executor: str, kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    """Launch ``kernel``; what it writes is in the arrays afterwards, on a GPU too."""
    if executor != "gpu":
        (kernel.interpret if executor == "interp" else kernel)[grid](*args, **options)
        return
    import torch

    moved = [torch.from_numpy(x).cuda() if isinstance(x, np.ndarray) else x for x in args]
    kernel[grid](*moved, **options)
    for array, tensor in zip(args, moved):
        if isinstance(array, np.ndarray):
            array[...] = tensor.cpu().numpy()
