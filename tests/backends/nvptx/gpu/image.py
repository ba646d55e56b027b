"""The memory of one launch: arrays between guards, pointers into them, written at any address."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.ops.harness import case_buffers

from tritium.ops.spec import Array, Case

GUARD = 256
"""Bytes before, between and behind the arrays; also what their addresses are a multiple of."""
GUARDED = 0xC5
"""What a guard's bytes hold."""


class Image:
    """Arrays are added first; then ``bytes`` is what memory holds from an address ``base``."""

    def __init__(self, aligned: bool = True) -> None:
        self.aligned = aligned
        self.arrays: list[Array] = []
        self.starts: list[int] = []
        self.pointers: list[tuple[int, int]] = []
        self.size = GUARD
        self.bytes: np.ndarray = np.zeros(0, np.uint8)

    def add(self, array: Array, into: int | None = None) -> int:
        """The array's number. ``into``: it holds byte offsets (uint64) into the array of that one.

        Where the image isn't ``aligned``, its address is no multiple of more than its elements.
        """
        array = np.array(array, order="C")
        start = self.size + (0 if self.aligned or into is not None else array.itemsize)
        number = len(self.arrays)
        self.arrays.append(array)
        self.starts.append(start)
        if into is not None:
            self.pointers.append((number, into))
        self.size = -(-(start + array.nbytes) // GUARD) * GUARD + GUARD
        return number

    def place(self, base: int) -> np.ndarray:
        """The bytes of the memory that begins at ``base``, which is what ``bytes`` is then."""
        self.bytes = np.full(self.size, GUARDED, np.uint8)
        points = dict(self.pointers)
        for number, (array, start) in enumerate(zip(self.arrays, self.starts)):
            data = array
            if number in points:
                data = array.astype(np.uint64) + np.uint64(base + self.starts[points[number]])
            self.bytes[start : start + array.nbytes] = np.frombuffer(data.tobytes(), np.uint8)
        return self.bytes

    def read(self, number: int) -> Array:
        """What an array holds now."""
        array, start = self.arrays[number], self.starts[number]
        raw = self.bytes[start : start + array.nbytes].tobytes()
        return np.frombuffer(raw, array.dtype).reshape(array.shape)

    def damage(self) -> str | None:
        """Where a guard was written, in words; None if nowhere."""
        inside = np.zeros(self.size, np.bool_)
        for array, start in zip(self.arrays, self.starts):
            inside[start : start + array.nbytes] = True
        bad = np.flatnonzero(~inside & (self.bytes != GUARDED))
        if not len(bad):
            return None
        place = int(bad[0])
        number = max(n for n, start in enumerate([0, *self.starts]) if start <= place)
        return f"{len(bad)} bytes outside of arrays were written, the first behind array {number}"


class LaunchImage(Image):
    """The memory of a launch together with its arguments: addresses in it, and numbers."""

    grid: tuple[int, int, int] = (1, 1, 1)

    def __init__(self, aligned: bool = True) -> None:
        super().__init__(aligned)
        self.parameters: list[tuple[int, int] | Array] = []

    def arguments(self, base: int) -> list[int | float]:
        """Addresses as integers; numbers as Python's."""
        return [
            base + self.starts[each[0]] + each[1] if isinstance(each, tuple) else each.item()
            for each in self.parameters
        ]

    def slots(self, base: int) -> list[int]:
        """The arguments as they lie in 8 bytes each, in the parameters' own types."""
        return [
            base + self.starts[each[0]] + each[1]
            if isinstance(each, tuple)
            else int.from_bytes(each.tobytes(), "little")
            for each in self.parameters
        ]


class CaseImage(LaunchImage):
    """The memory of a kernel of cases (``one_op.build``): its parameters, and buffers."""

    def __init__(
        self,
        cases: Sequence[Case],
        aligned: bool = True,
        grid: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        super().__init__(aligned)
        self.grid = grid
        self.outcomes: list[list[int]] = []
        for case in cases:
            buffers = {name: self.add(data) for name, data in case_buffers(case).items()}
            operands = []
            for sample in case.samples():
                into = None if sample.buffer is None else buffers[sample.buffer]
                data = sample.data
                if sample.buffer is not None:
                    step = case.buffers[sample.buffer].itemsize
                    data = (np.asarray(data).astype(np.int64) * step).view(np.uint64)
                operands.append(self.add(data, into))
            results = [
                self.add(np.zeros(type.shape, type.scalar.numpy)) for type in case.result_types()
            ]
            self.parameters += [(number, 0) for number in [*operands, *results]]
            self.outcomes.append([*results, *buffers.values()])

    def results(self) -> list[list[Array]]:
        """For each case its results, then the final contents of its buffers."""
        return [[self.read(number) for number in numbers] for numbers in self.outcomes]
