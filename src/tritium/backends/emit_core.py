"""The base of the builder: position, lines, control flow, calls, lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .emit_module import Block, Function, Module, Phi
from .emit_types import (
    EmitError,
    LType,
    V,
    const,
    const_lanes,
    elem,
    i1,
    i64,
    lanes,
    undef,
    vec,
    void,
)


class BuilderCore:
    """Appends instructions to `block`."""

    def __init__(self, block: Block) -> None:
        self.block = block

    @property
    def function(self) -> Function:
        """The function being written."""
        return self.block.function

    @property
    def module(self) -> Module:
        """The module being written."""
        return self.block.function.module

    @contextmanager
    def at(self, block: Block) -> Iterator[None]:
        """Write into another block for the extent of a `with`."""
        saved, self.block = self.block, block
        try:
            yield
        finally:
            self.block = saved

    def goto(self, block: Block) -> None:
        """Write into another block from here on."""
        self.block = block

    def pure(self, type_: LType, text: str, name: str = "") -> V:
        """Append an instruction without effects, or reuse the block's value of the same text."""
        known = self.block.known.get(text)
        if known is None:
            known = self.block.known[text] = self.value(type_, text, name)
        return known

    def value(self, type_: LType, text: str, name: str = "") -> V:
        """Append `%new = text`."""
        result = self.function.fresh(name)
        self.block.lines.append(f"  {result} = {text}{self.block.function.mark}")
        return V(result, type_)

    def line(self, text: str) -> None:
        """Append an instruction without result."""
        self.block.lines.append(f"  {text}{self.block.function.mark}")

    def comment(self, text: str) -> None:
        """Append a comment line, for the reader of a dump."""
        self.block.lines.append("  ; " + text.replace("\n", " "))

    # Constants, so that a user of the builder needs one object.

    def const(self, type_: LType, value: int | float | bool) -> V:
        """See `emit_types.const`."""
        return const(type_, value)

    def iota(self, element: LType, count: int) -> V:
        """The constant vector 0, 1, ... count - 1."""
        return const_lanes(element, range(count))

    # Control flow.

    def br(self, target: Block) -> None:
        """Jump."""
        self.block.terminate(f"br label %{target.label}")

    def cbr(
        self, condition: V, then: Block, otherwise: Block, *, weights: tuple[int, int] | None = None
    ) -> None:
        """Jump by an i1; `weights` tell LLVM how often each side is taken."""
        if condition.type is not i1:
            raise EmitError(f"branch on {condition}")
        tail = ""
        if weights is not None:
            body = f'!{{!"branch_weights", i32 {weights[0]}, i32 {weights[1]}}}'
            tail = f", !prof {self.module.metadata(body)}"
        self.block.terminate(
            f"br i1 {condition.text}, label %{then.label}, label %{otherwise.label}{tail}"
        )

    def switch(self, value: V, default: Block, cases: Sequence[tuple[int, Block]]) -> None:
        """Jump by the value of an integer."""
        inner = " ".join(
            f"{const(value.type, number)}, label %{block.label}" for number, block in cases
        )
        self.block.terminate(f"switch {value}, label %{default.label} [ {inner} ]")

    def ret(self, value: V | None = None) -> None:
        """Return."""
        expected = self.function.result
        if (value.type if value is not None else void) is not expected:
            raise EmitError(f"{self.function.name} returns {expected.text}, given {value}")
        self.block.terminate("ret void" if value is None else f"ret {value}")

    def unreachable(self) -> None:
        """End a block that control never leaves."""
        self.block.terminate("unreachable")

    def phi(self, type_: LType, name: str = "", incoming: Sequence[tuple[V, Block]] = ()) -> Phi:
        """A phi at the front of the current block; more incoming values by `Phi.add`."""
        result = Phi(self.function.fresh(name), type_)
        for value, block in incoming:
            result.add(value, block)
        self.block.phis.append(result)
        return result

    # Calls.

    def call(
        self,
        callee: str | V,
        result: LType,
        args: Sequence[V],
        *,
        arg_attributes: Sequence[str] = (),
        attributes: str = "",
        convention: str = "",
        name: str = "",
        pure: bool = False,
    ) -> V:
        """Call a function by name (declared here if the module doesn't define it) or by address.

        `arg_attributes` stand before each argument ("align 4"). `pure` promises that the call has
        no effects and depends on its arguments alone. The result of a void call has type void and
        no text.
        """
        if isinstance(callee, str):
            callee = self._resolve(callee, result, args)
        given = [f"{arg.type.text} {arg.text}" for arg in args]
        for place, mark in enumerate(arg_attributes):
            if mark:
                given[place] = f"{args[place].type.text} {mark} {args[place].text}"
        inner = ", ".join(given)
        prefix = f"{convention} " if convention else ""
        text = f"call {prefix}{result.text} {callee.text}({inner}) {attributes}".rstrip()
        if result is void:
            self.line(text)
            return V("", void)
        return self.pure(result, text, name) if pure else self.value(result, text, name)

    def _resolve(self, name: str, result: LType, args: Sequence[V]) -> V:
        for function in self.module.functions:
            if function.name == name:
                wanted = [param.type for param in function.params]
                if function.result is not result or wanted != [arg.type for arg in args]:
                    raise EmitError(f"{name} takes {wanted}, called with {list(args)}")
                return function.address
        return self.module.declare(name, result, [arg.type for arg in args])

    def intrinsic(
        self,
        name: str,
        args: Sequence[V],
        result: LType | None = None,
        overloads: Sequence[LType] | None = None,
        *,
        arg_attributes: Sequence[str] = (),
        name_hint: str = "",
        pure: bool = False,
    ) -> V:
        """Call `llvm.<name>` with the overload suffixes of `overloads`.

        By default the intrinsic returns and is overloaded on the type of its first argument
        ("fma", "ctpop", "vector.reduce.add" with the element type as `result`).
        """
        if result is None:
            result = args[0].type
        if overloads is None:
            overloads = (args[0].type,)
        types = tuple([arg.type for arg in args])
        callee = self.module.intrinsic(name, result, types, tuple(overloads))
        return self.call(
            callee, result, args, arg_attributes=arg_attributes, name=name_hint, pure=pure
        )

    def asm(
        self,
        text: str,
        constraints: str,
        result: LType,
        args: Sequence[V] = (),
        *,
        side_effects: bool = False,
        attributes: str = "",
        pure: bool = False,
    ) -> V:
        """Inline assembly with LLVM's constraint string; ``pure`` as in ``call``."""
        escaped = "".join(f"\\{ord(c):02X}" if c in '"\\' or ord(c) < 32 else c for c in text)
        inner = ", ".join(str(arg) for arg in args)
        effects = "sideeffect " if side_effects else ""
        line = f'call {result.text} asm {effects}"{escaped}", "{constraints}"({inner}) {attributes}'
        line = line.rstrip()
        if result is void:
            self.line(line)
            return V("", void)
        return self.pure(result, line) if pure else self.value(result, line)

    # Lanes and aggregates.

    def extract(self, vector: V, lane: int | V) -> V:
        """One lane."""
        index = const(i64, lane) if isinstance(lane, int) else lane
        if not vector.type.is_vector:
            raise EmitError(f"a lane of {vector}")
        if vector.number is not None:
            return const(elem(vector.type), vector.number)
        return self.pure(elem(vector.type), f"extractelement {vector}, {index}")

    def insert(self, vector: V, scalar: V, lane: int | V) -> V:
        """`vector` with one lane replaced."""
        index = const(i64, lane) if isinstance(lane, int) else lane
        if scalar.type is not elem(vector.type):
            raise EmitError(f"{scalar} into a lane of {vector}")
        return self.pure(vector.type, f"insertelement {vector}, {scalar}, {index}")

    def shuffle(self, first: V, second: V | None, mask: Sequence[int]) -> V:
        """Lanes of the concatenation of two vectors; -1 in `mask` is a lane nobody reads."""
        result = vec(elem(first.type), len(mask))
        if first.number is not None and second is None and result.is_vector:
            return const(result, first.number)
        second = second if second is not None else undef(first.type)
        if not result.is_vector:
            return self.extract(
                first if mask[0] < lanes(first.type) else second, mask[0] % lanes(first.type)
            )
        inner = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in mask)
        return self.pure(result, f"shufflevector {first}, {second}, <{len(mask)} x i32> <{inner}>")

    def splat(self, scalar: V, count: int) -> V:
        """`scalar` in every one of `count` lanes; `scalar` itself where `count` is 1."""
        if count == 1:
            return scalar
        type_ = vec(scalar.type, count)
        if scalar.number is not None:
            return const(type_, scalar.number)
        if scalar.text == "poison":
            return undef(type_)
        first = self.pure(type_, f"insertelement {undef(type_)}, {scalar}, i64 0")
        return self.pure(
            type_, f"shufflevector {first}, {undef(type_)}, <{count} x i32> zeroinitializer"
        )

    def concat(self, parts: Sequence[V]) -> V:
        """The parts' lanes one after the other; equal types, a power of two of them."""
        parts = list(parts)
        while len(parts) > 1:
            count = lanes(parts[0].type)
            if count == 1:
                whole = undef(vec(parts[0].type, len(parts)))
                for lane, part in enumerate(parts):
                    whole = self.insert(whole, part, lane)
                return whole
            if len(parts) % 2:
                raise EmitError(f"concat of {len(parts)} vectors")
            parts = [
                self.shuffle(parts[i], parts[i + 1], range(2 * count))
                for i in range(0, len(parts), 2)
            ]
        return parts[0]

    def slice(self, vector: V, start: int, count: int) -> V:
        """Lanes `start` to `start + count` of a vector."""
        if start == 0 and count == lanes(vector.type):
            return vector
        return self.shuffle(vector, None, range(start, start + count))

    def extract_value(self, aggregate: V, index: int) -> V:
        """A field of a struct."""
        field = aggregate.type.fields[index]
        return self.pure(field, f"extractvalue {aggregate}, {index}")

    def insert_value(self, aggregate: V, value: V, index: int) -> V:
        """A struct with one field replaced."""
        return self.pure(aggregate.type, f"insertvalue {aggregate}, {value}, {index}")
