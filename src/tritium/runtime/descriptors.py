"""Tensor descriptors that the host makes and kernels get as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tritium.diagnostics import error
from tritium.ops.blocks import PADDINGS, DescriptorArgument
from tritium.ops.constexpr import constexpr

MOST_AXES = 5


@dataclass
class TensorDescriptor:
    """An array, described so that a kernel reads and writes blocks of it.

    In the kernel it is what ``tl.make_tensor_descriptor`` makes. ``base`` is the array, ``shape``
    and ``strides`` are in elements, the last stride is 1; ``block_shape`` holds the extents of a
    block, and may be changed between launches. ``padding`` ("zero" or "nan") is what is read
    outside of the shape. Raises E0206 for anything else.
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"

    def __post_init__(self) -> None:
        rank = len(self.shape)
        if not rank == len(self.strides) == len(self.block_shape) or not 1 <= rank <= MOST_AXES:
            text = "shape, strides and block_shape have different lengths, or none from 1 to 5"
            raise _refused(text, "give one number for each axis")
        if self.strides[-1] != 1:
            text = f"the last stride is {self.strides[-1]}"
            raise _refused(text, "it must be 1: make the array contiguous along its last axis")
        if self.padding not in PADDINGS:
            raise _refused(f"unknown padding {self.padding!r}", f"allowed: {', '.join(PADDINGS)}")

    @classmethod
    def from_tensor(
        cls, tensor: Any, block_shape: Sequence[int], padding: str = "zero"
    ) -> TensorDescriptor:
        """The descriptor of a whole tensor or NumPy array."""
        strides = getattr(tensor, "stride", None)
        if callable(strides):
            steps = list(strides())
        else:
            steps = [step // tensor.itemsize for step in tensor.strides]
        return cls(tensor, list(tensor.shape), steps, list(block_shape), padding)

    def argument(self) -> tuple[Any, ...]:
        """What a launch passes: a named tuple of the array, numbers and constants."""
        return DescriptorArgument(
            self.base,
            tuple(map(int, self.shape)),
            tuple(map(int, self.strides)),
            constexpr(tuple(map(int, self.block_shape))),
            constexpr(self.padding),
        )


def _refused(text: str, hint: str) -> Exception:
    return error("E0206", op="TensorDescriptor", text=text, hint=hint)
