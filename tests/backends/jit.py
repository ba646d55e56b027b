"""Small compiled loops over NumPy arrays, for the tests of the emitter and what stands on it."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tritium.backends import llvm
from tritium.backends.emit import Builder, LType, Module, V, const, i8, i64, ptr, vec, void
from tritium.backends.llvm import Library, Target

Body = Callable[[Builder, Sequence[V], Target], V]


def x86_targets() -> list[Target]:
    """The host, and the 256-bit CPU every recent x86 machine can run as."""
    found = [llvm.host_target()]
    with contextlib.suppress(ValueError):
        found.append(llvm.host_target("x86-64-v3"))
    return found


class Loops:
    """Compiled loops, each applying a body to whole arrays `lanes` elements at a time.

    `call(name, *inputs, out=array)`: every array has a multiple of `lanes` elements. `prepare`
    turns the module's text into what is compiled.
    """

    def __init__(
        self,
        bodies: Mapping[str, tuple[Sequence[LType], LType, Body]],
        lanes: int,
        target: Target,
        prepare: Callable[[str], str] = str,
    ) -> None:
        module = Module("loops")
        for name, (inputs, output, body) in bodies.items():
            write_loop(module, _symbol(name), inputs, output, body, lanes, target)
        self.text = prepare(module.text())
        symbols = [_symbol(name) for name in bodies]
        self.library: Library = llvm.compile_and_link(self.text, target, symbols)
        self.arity = {name: len(inputs) for name, (inputs, _, _) in bodies.items()}
        self.lanes = lanes

    def call(self, name: str, *inputs: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        assert len(inputs) == self.arity[name]
        count = len(out)
        assert count % self.lanes == 0
        assert all(len(x) == count and x.flags.c_contiguous for x in (*inputs, out))
        types = [ctypes.c_int64] + [ctypes.c_void_p] * (len(inputs) + 1)
        function = ctypes.CFUNCTYPE(None, *types)(self.library.address(_symbol(name)))
        function(count, *(x.ctypes.data for x in inputs), out.ctypes.data)


def _symbol(name: str) -> str:
    """Apart from the C library's names."""
    return f"loop.{name}"


def _bytes(element: LType) -> int:
    return 8 if element.is_pointer else max(element.bits, i8.bits) // 8


def write_loop(
    module: Module,
    name: str,
    inputs: Sequence[LType],
    output: LType,
    body: Body,
    lanes: int,
    target: Target,
) -> None:
    params = [(i64, "n"), *((ptr, f"a{i}") for i in range(len(inputs))), (ptr, "out")]
    function = module.function(name, void, params, attributes=target.attributes)
    b = Builder(function.entry)
    count, *sources, destination = function.params
    with b.loop(const(i64, 0), count, lanes) as loop:
        values = [
            b.load(
                vec(element, lanes),
                b.gep(source, b.mul(loop.index, const(i64, _bytes(element)))),
                align=_bytes(element),
            )
            for element, source in zip(inputs, sources)
        ]
        result = body(b, values, target)
        size = _bytes(output)
        b.store(result, b.gep(destination, b.mul(loop.index, const(i64, size))), align=size)
    b.ret()
