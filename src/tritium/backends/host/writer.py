"""The builder that host code is written with: fields of memory, variables, loops, the platform."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tritium.backends.emit import (
    Block,
    Builder,
    Function,
    LType,
    Module,
    V,
    array,
    const,
    i8,
    i32,
    i64,
    ptr,
    void,
)

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from .layout import WORD

__all__ = ["HostBuilder", "Variable", "begin"]


class Variable:
    """A local variable: memory on the stack that LLVM turns into registers."""

    def __init__(self, b: HostBuilder, initial: V, name: str) -> None:
        self._b = b
        self._type = initial.type
        self.address = b.alloca(initial.type, align=WORD, name=name)
        self.set(initial)

    def get(self) -> V:
        """Its value."""
        return self._b.load(self._type, self.address, align=WORD)

    def set(self, value: V) -> None:
        """Give it a value."""
        self._b.store(value, self.address, align=WORD)


class HostBuilder(Builder):
    """Writes host code for ``target``."""

    def __init__(self, block: Block, target: Target) -> None:
        super().__init__(block)
        self.target = target

    # Memory.

    def get(self, base: V, offset: int, type_: LType = i64) -> V:
        """The field at a byte offset."""
        return self.load(type_, self.gep(base, offset), align=WORD)

    def put(self, base: V, offset: int, value: V) -> None:
        """Write the field at a byte offset."""
        self.store(value, self.gep(base, offset), align=WORD)

    def get_atomic(self, base: V, offset: int, type_: LType = i64, order: str = "acquire") -> V:
        """The field that another thread may write."""
        return self.load(type_, self.gep(base, offset), align=WORD, ordering=order)

    def put_atomic(self, base: V, offset: int, value: V, order: str = "release") -> None:
        """Write the field that another thread may read."""
        self.store(value, self.gep(base, offset), align=WORD, ordering=order)

    def variable(self, initial: V, name: str = "var") -> Variable:
        """A local variable."""
        return Variable(self, initial, name)

    def stack(self, size: int, name: str, align: int = 16) -> V:
        """Bytes on the stack."""
        return self.alloca(array(i8, size), align=align, name=name)

    # Control flow.

    def new(self, label: str) -> Block:
        """A block that is written later."""
        return self.function.block(label)

    def leave(self, condition: V, target: Block, *, rarely: bool = False) -> None:
        """Jump where the condition holds, go on below where it doesn't."""
        below = self.new("on")
        self.cbr(condition, target, below, weights=(1, 2000) if rarely else None)
        self.goto(below)

    def need(self, condition: V, otherwise: Block) -> None:
        """Go on below where the condition holds, as it nearly always does; else jump."""
        below = self.new("on")
        self.cbr(condition, below, otherwise, weights=(2000, 1))
        self.goto(below)

    @contextmanager
    def forever(self, name: str = "again") -> Iterator[tuple[Block, Block]]:
        """A loop: yields its head, to start over, and the block after it, to end."""
        head, after = self.new(name), self.new(f"{name}.end")
        self.br(head)
        self.goto(head)
        yield head, after
        self.br(head)
        self.goto(after)

    @contextmanager
    def case(self, condition: V, after: Block) -> Iterator[None]:
        """What is written in the ``with`` runs where a condition holds, and ends at ``after``."""
        inside, below = self.new("case"), self.new("else")
        self.cbr(condition, inside, below)
        self.goto(inside)
        yield
        self.br(after)
        self.goto(below)

    def null(self, pointer: V) -> V:
        """Whether a pointer is null."""
        return self.icmp("eq", pointer, const(ptr, 0))

    # The machine.

    def now(self) -> V:
        """The time in ticks."""
        architecture = self.target.architecture
        if architecture == "x86_64":
            return self.intrinsic("readcyclecounter", (), i64, ())
        if architecture == "aarch64":
            return self.asm("mrs $0, cntvct_el0", "=r", i64, side_effects=True)
        # Seconds and nanoseconds by the monotonic clock.
        moment = self.stack(16, "moment")
        self.call("clock_gettime", i32, (const(i32, 1), moment))
        seconds = self.mul(self.get(moment, 0), const(i64, 10**9))
        return self.add(seconds, self.get(moment, 8))

    def pause(self) -> None:
        """Tell the CPU that this is a waiting loop."""
        architecture = self.target.architecture
        if architecture == "x86_64":
            self.intrinsic("x86.sse2.pause", (), void, ())
        elif architecture == "aarch64":
            self.intrinsic("aarch64.hint", (const(i32, 1),), void, ())

    def control_register(self) -> V:
        """How this thread rounds, and whether it flushes subnormal numbers, as an i64."""
        architecture = self.target.architecture
        if architecture == "x86_64":
            held = self.alloca(i32, align=4, name="control")
            self.intrinsic("x86.sse.stmxcsr", (held,), void, ())
            return self.zext(self.load(i32, held, align=4), i64)
        if architecture == "aarch64":
            return self.asm("mrs $0, fpcr", "=r", i64, side_effects=True)
        return const(i64, 0)

    def set_control_register(self, value: V) -> None:
        """Round and flush as another thread does."""
        architecture = self.target.architecture
        if architecture == "x86_64":
            held = self.alloca(i32, align=4, name="control")
            self.store(self.trunc(value, i32), held, align=4)
            self.intrinsic("x86.sse.ldmxcsr", (held,), void, ())
        elif architecture == "aarch64":
            self.asm("msr fpcr, $0", "r", void, (value,), side_effects=True)


def begin(
    module: Module,
    target: Target,
    name: str,
    result: LType,
    params: Sequence[tuple[LType, str]],
    *,
    exported: bool = False,
    cold: bool = False,
) -> tuple[HostBuilder, list[V]]:
    """Start a function: a builder at its entry, and its parameters."""
    attributes = list(target.attributes)
    if cold:
        attributes += ["noinline", "cold"]
    function: Function = module.function(
        name,
        result,
        params,
        linkage="" if exported else "internal",
        attributes=attributes,
    )
    return HostBuilder(function.entry, target), function.params


Writer = Callable[[Module, "Target"], None]
