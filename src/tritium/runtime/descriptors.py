"""Tensor descriptors that the host makes and kernels get as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tritium.diagnostics import TritiumError, error
from tritium.ops.blocks import ALIGNMENT, Description, DescriptorArgument, host_description
from tritium.ops.constexpr import constexpr

from . import arrays


@dataclass
class TensorDescriptor(arrays.Composite):
    """An array, described so that a kernel reads and writes blocks of it.

    In the kernel it is what ``tl.make_tensor_descriptor`` makes, by the same rule: ``base`` is the
    array, aligned to 16 bytes; ``shape`` and ``strides`` are in elements, 1 to 5 of them, the last
    stride is 1 and the others are multiples of 16 bytes; ``block_shape`` holds the extents of a
    block, whose last axis has at least 16 bytes. ``padding`` ("zero" or "nan") is what is read
    outside of the shape. Fields may be changed between launches, which check them again.

    Raises E0501 and E0513 for a base that no kernel takes, E0204 for what is no sequence of
    integers, E0203 for integers beyond 64 bits, E0606 for another padding, E0206 for the rest.
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    _known: tuple[Any, Description] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    """What was found right last, and what it gave."""

    def __post_init__(self) -> None:
        self._check("TensorDescriptor", "TensorDescriptor", "base", "base")

    @classmethod
    def from_tensor(
        cls, tensor: Any, block_shape: Sequence[int], padding: str = "zero"
    ) -> TensorDescriptor:
        """The descriptor of a whole tensor or array. Raises E0515 for strides within elements."""
        strides = arrays.element_strides(tensor, "TensorDescriptor.from_tensor")
        return cls(tensor, list(tensor.shape), list(strides), list(block_shape), padding)

    def argument(self, kernel: str, name: str, parameter: str) -> tuple[Any, ...]:
        """What a launch passes: a named tuple of the array, numbers and constants."""
        op = f"{kernel}: argument {name}"
        try:
            made = self._check(op, kernel, f"{name}.base", parameter)
        except TritiumError as problem:
            problem.argument = parameter
            raise
        return DescriptorArgument(
            self.base,
            made.shape,
            made.strides,
            constexpr(made.block_shape),
            constexpr(made.padding),
        )

    def _check(self, op: str, kernel: str, name: str, parameter: str) -> Description:
        """The fields as they are now; ``op`` and the others are for messages."""
        try:
            found = arrays.describe(self.base, kernel, name, parameter)
        except arrays.Elsewhere as problem:
            raise arrays.elsewhere(problem, kernel, name) from None
        if found is None:
            kind, hint = type(self.base).__name__, "pass a tensor or a NumPy array"
            raise error("E0501", kernel=kernel, name=name, type=kind, hint=hint, argument=parameter)
        fields = self.shape, self.strides, self.block_shape, self.padding
        low = found.address % ALIGNMENT
        state = found.element, low, *map(_as_it_is, fields)
        if self._known is None or self._known[0] != state:
            self._known = state, host_description(op, found.element, low, *fields)
        return self._known[1]


def _as_it_is(values: Any) -> tuple[Any, Any]:
    """A field's types and values: True is equal to 1, but isn't as good."""
    if not isinstance(values, (list, tuple)):
        return type(values), values
    return tuple(map(type, values)), tuple(values)
