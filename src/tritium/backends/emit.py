"""LLVM IR as text, by one small typed emitter. The public face of `emit_*`.

Types: i1 i8 i16 i32 i64 i128 half bfloat float_ double ptr void, `pointer(space)`, `vec(elem, n)`
(n = 1: the scalar), `array`, `struct_type`; `lanes(t)`, `elem(t)`, `like(t, elem)`. They are
interned: compare with `is`.

Values: `V` with `.text`, `.type`, `.number` (the known number in every lane) and `.integer`.
`const(type, number)` (splat for vectors, floats exact), `const_lanes(elem, numbers)`, `zero`,
`undef`, `true`, `false`.

Modules: `Module().function(name, result, [(type, name), ...])` gives a `Function` (`.params`,
`.entry`, `.block(label)`); `Module.text()` is for `llvm.optimise`. Globals, constant tables,
metadata and alias scopes are methods of `Module`.

Builder: `Builder(block)` appends to a block, also to one that is already terminated; `b.at(block)`
(a `with`) and `b.goto(block)` move it. Instructions are methods: see `emit_core` (control flow,
phi, calls, intrinsics, lanes), `emit_arith` (integers, floats, compare, select, casts) and
`emit_memory` (load, store, masked, gather, scatter, alloca, atomics). A pure instruction that its
block holds already is not written again.

Loops: `with b.loop(lo, hi, step, carried=[...]) as loop:` writes the body, with `loop.index`,
`loop.carried` and `loop.next(values)`; after it there is `loop.results`, and `b` stands in
`loop.exit`. Invariants go to `with b.at(loop.preheader)`. `with b.when(condition) as before:`
writes a block that runs only if the condition holds.

Float flags are per instruction, never `nnan`, `ninf` or `fast`; `contract` is never the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .emit_memory import MemoryOps, memory_type
from .emit_module import Block, Function, Module, Phi
from .emit_types import (
    EmitError,
    Kind,
    LType,
    V,
    array,
    bfloat,
    const,
    const_lanes,
    double,
    elem,
    false,
    float_,
    half,
    i1,
    i8,
    i16,
    i32,
    i64,
    i128,
    int_,
    lanes,
    like,
    pointer,
    ptr,
    struct_type,
    true,
    undef,
    vec,
    void,
    wrap,
    zero,
)

__all__ = [
    "Block",
    "Builder",
    "EmitError",
    "Function",
    "Kind",
    "LType",
    "Loop",
    "Module",
    "Phi",
    "V",
    "array",
    "bfloat",
    "const",
    "const_lanes",
    "double",
    "elem",
    "false",
    "float_",
    "half",
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "int_",
    "lanes",
    "like",
    "memory_type",
    "pointer",
    "ptr",
    "struct_type",
    "true",
    "undef",
    "vec",
    "void",
    "wrap",
    "zero",
]


class Loop:
    """A counted loop under construction: `for (i = lo; i < hi; i += step)`, signed.

    `preheader` runs once before (write invariants there), `header` holds the phis and the test,
    `body` is the body's first block, `latch` counts and jumps back, `exit` follows.
    """

    def __init__(
        self, builder: Builder, lo: V, hi: V, step: V, carried: Sequence[V], name: str
    ) -> None:
        function = builder.function
        self.preheader = function.block(f"{name}.pre")
        self.header = function.block(f"{name}.head")
        self.body = function.block(f"{name}.body")
        self.latch = function.block(f"{name}.latch")
        self.exit = function.block(f"{name}.exit")
        self.step = step
        self._next: list[V] | None = None
        builder.br(self.preheader)
        with builder.at(self.preheader):
            builder.br(self.header)
        with builder.at(self.header):
            self.index = builder.phi(lo.type, name, [(lo, self.preheader)])
            self.carried: list[V] = [
                builder.phi(value.type, "", [(value, self.preheader)]) for value in carried
            ]
            inside = builder.icmp("slt", self.index, hi)
            builder.cbr(inside, self.body, self.exit)
        builder.goto(self.body)

    @property
    def results(self) -> list[V]:
        """The carried values after the loop."""
        return self.carried

    def next(self, values: Sequence[V]) -> None:
        """The carried values of the next trip."""
        if self._next is not None:
            raise EmitError("a loop's next values are given once")
        self._next = list(values)

    def close(self, builder: Builder) -> None:
        """End the body where `builder` stands; it moves to `exit`."""
        values = self._next or []
        if len(values) != len(self.carried):
            raise EmitError(f"a loop carries {len(self.carried)} values, next gave {len(values)}")
        builder.br(self.latch)
        builder.goto(self.latch)
        following = builder.add(self.index, self.step, "nsw")
        builder.br(self.header)
        self.index.add(following, self.latch)
        for phi, value in zip(self.carried, values, strict=True):
            assert isinstance(phi, Phi)
            phi.add(value, self.latch)
        builder.goto(self.exit)


class Builder(MemoryOps):
    """Appends instructions to a block: the whole instruction set, and structured control flow."""

    def loop_open(
        self, lo: V, hi: V, step: V | int = 1, *, carried: Sequence[V] = (), name: str = "i"
    ) -> Loop:
        """Start a counted loop; the builder stands in its body until `Loop.close`.

        The index must not overflow: `hi + step` fits the type.
        """
        if isinstance(step, int):
            step = const(lo.type, step)
        if not (lo.type is hi.type is step.type):
            raise EmitError(f"loop from {lo} to {hi} by {step}")
        return Loop(self, lo, hi, step, carried, name)

    @contextmanager
    def loop(
        self, lo: V, hi: V, step: V | int = 1, *, carried: Sequence[V] = (), name: str = "i"
    ) -> Iterator[Loop]:
        """A counted loop whose body is written in a `with`; see `loop_open`."""
        loop = self.loop_open(lo, hi, step, carried=carried, name=name)
        yield loop
        loop.close(self)

    @contextmanager
    def when(
        self, condition: V, name: str = "then", *, weights: tuple[int, int] | None = None
    ) -> Iterator[Block]:
        """Code that runs only where a scalar condition holds; yields the block that skips it.

        After the `with` the builder stands in the join, where `phi` may take values of both sides.
        """
        function = self.function
        before, then, join = self.block, function.block(name), function.block(f"{name}.end")
        self.cbr(condition, then, join, weights=weights)
        self.goto(then)
        yield before
        self.br(join)
        self.goto(join)
