"""Kernels of single parts of the writer: tiles loaded register by register, dumped whole.

    kernel = TileKernel(num_warps=4)
    x = kernel.load(type, layout)            # a Held; its array is given to `run` in this order
    kernel.dump(convert(kernel.writer, x, other))
    (got,) = kernel.run([array])             # what every register of every thread holds
    check(got, type, other, wanted)

A register that is padding in its thread alone is loaded with garbage, and isn't looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.backends.nvptx.emulator import Emulator
from tests.backends.nvptx.layouts.machine import evaluate

from tritium.backends import llvm
from tritium.backends.common.rules import register_type
from tritium.backends.emit import V, const, i32, i64, pointer, zero
from tritium.backends.nvptx.kernel import Writer
from tritium.backends.nvptx.layouts import REGISTER, Holding, LinearLayout
from tritium.backends.nvptx.positions import holdings
from tritium.backends.nvptx.target import gpu_target
from tritium.backends.nvptx.values import Held
from tritium.ir.core import Function
from tritium.ir.dtypes import DType, Type, int8
from tritium.ir.types import PointerType
from tritium.ops import control

ENTRY = "kernel"
MOST_ARRAYS = 8


def garbage(type: Type) -> V:
    """What an unused register holds."""
    made = register_type(type)
    if made.is_pointer:
        return zero(made)
    return const(made, -77.0 if made.is_float else -77)


@dataclass
class TileKernel:
    """A kernel under construction. Parameters are pointers: the tiles loaded, then those dumped."""

    num_warps: int
    arch: str = "sm_90a"
    loads: int = 0
    dumps: list[tuple[Type, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        params = [(f"a{number}", PointerType(int8), 1) for number in range(MOST_ARRAYS)]
        source = Function("part", params)
        source.body.block.append(control.Return())
        target = gpu_target(self.arch)
        self.writer = Writer(source, target, num_warps=self.num_warps, disjoint=True, name=ENTRY)
        # The tiles aren't in the function, from which the writer told how many blocks fit.
        attributes = self.writer.function.attributes
        attributes[:] = [each for each in attributes if "minctasm" not in each]

    def _param(self, number: int) -> V:
        return V(f"%p{number}", pointer(1))

    def load(self, type: Type, layout: LinearLayout) -> Held:
        """The next array, row-major."""
        param = self._param(self.loads)
        self.loads += 1
        return Held(
            type,
            layout,
            tuple(
                None if holding is Holding.PADDING else self._element(type, layout, register, param)
                for register, holding in enumerate(holdings(type.shape, layout))
            ),
        )

    def _element(self, type: Type, layout: LinearLayout, register: int, param: V) -> V:
        writer = self.writer
        b, index = writer.b, zero(i32)
        for here, extent in zip(writer.coordinates(layout, register), type.shape, strict=True):
            index = b.add(b.mul(index, const(i32, extent)), here)
        inside = writer.inside(type, layout, register)
        if inside is not None:
            index = b.select(inside, index, zero(i32))
        size = type.scalar.itemsize
        address = b.gep(param, b.zext(b.mul(index, const(i32, size)), i64))
        loaded = b.load(register_type(type.scalar), address, align=size)
        return loaded if inside is None else b.select(inside, loaded, garbage(type.scalar))

    def dump(self, result: Held | V, type: Type | None = None) -> None:
        """Every register of every thread, thread by thread; of a scalar its value in each."""
        registers = result.registers if isinstance(result, Held) else (result,)
        kind = result.type if isinstance(result, Held) else type
        assert kind is not None
        param = self._param(MOST_ARRAYS - 1 - len(self.dumps))
        self.dumps.append((kind, len(registers)))
        b, size = self.writer.b, kind.scalar.itemsize
        start = b.mul(self.writer.threads.thread, const(i32, len(registers) * size))
        base = b.gep(param, b.zext(start, i64))
        for number, value in enumerate(registers):
            if value is not None:
                b.store(value, b.gep(base, number * size), align=size)

    def text(self) -> str:
        """The module as LLVM IR."""
        if self.writer.b.block.terminator is None:
            self.writer.b.ret()
        return self.writer.module.text()

    def ptx(self) -> str:
        target = gpu_target(self.arch).llvm
        return llvm.assembly(llvm.optimise(self.text(), target))

    def emulator(self) -> Emulator:
        return Emulator(self.text(), ENTRY, self.num_warps)

    def run(self, arrays: Sequence[Any], seed: int = 0) -> list[np.ndarray]:
        """The dumps, each as (warp, lane, register)."""
        assert len(arrays) == self.loads
        gpu = self.emulator()
        return run(gpu, self, arrays, seed)


def run(gpu: Emulator, kernel: TileKernel, arrays: Sequence[Any], seed: int) -> list[np.ndarray]:
    """Launch one block of an emulated kernel."""
    kept = [np.ascontiguousarray(array) for array in arrays]
    made = [
        np.zeros((kernel.num_warps, 32, count), type.scalar.numpy) for type, count in kernel.dumps
    ]
    addresses = [0] * MOST_ARRAYS
    for number, array in enumerate(kept):
        addresses[number] = array.ctypes.data
    for number, array in enumerate(made):
        addresses[MOST_ARRAYS - 1 - number] = array.ctypes.data
    gpu.launch(addresses, seed=seed)
    return made


def elements(type: Type, layout: LinearLayout) -> tuple[np.ndarray, np.ndarray]:
    """The logical row-major index of every (warp, lane, register), and whether it is an element."""
    physical = evaluate(layout, ("warp", "lane", "register"))
    coordinates = np.unravel_index(physical, layout.shape) if layout.shape else ()
    index = np.zeros_like(physical)
    inside = np.ones(physical.shape, bool)
    for here, extent in zip(coordinates, type.shape, strict=True):
        inside &= here < extent
        index = index * extent + here
    return np.where(inside, index, 0), inside


def agree(
    got: np.ndarray,
    type: Type,
    layout: LinearLayout,
    wanted: np.ndarray,
    equal: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> None:
    """Every register of every thread that is an element holds the one of ``wanted``."""
    index, inside = elements(type, layout)
    want = np.ascontiguousarray(wanted).reshape(-1)[index]
    if equal is None:
        bits = f"u{type.scalar.itemsize}" if isinstance(type.scalar, DType) else "u8"
        same = got.view(bits) == np.ascontiguousarray(want).view(bits)
    else:
        same = equal(got, want)
    assert layout.input_extent(REGISTER) == got.shape[-1]
    bad = np.argwhere(inside & ~same)
    assert not len(bad), f"{len(bad)} wrong, first at warp, lane, register {bad[0]}"
