"""The same operation on one register after another: written by its rule once, then copied.

Rules are written for one lane, and a thread has many. Where a rule wrote instructions that depend
on nothing but its operands, those for other operands are the same text with other names, which
takes a fraction of the time. What comes out is what the rule would have written, to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tritium.backends.emit import LType, V
from tritium.ir.core import Op

if TYPE_CHECKING:
    from .kernel import Writer

_NAME = re.compile(r"%[\w.]+")
_UNNAMED = "%."
"""What names begin with that nobody chose."""


def _is_register(value: V) -> bool:
    """Not a constant, in which a rule may see something. ``null`` is one that has no number."""
    return value.number is None and value.text.startswith("%")


class Line(NamedTuple):
    """An instruction: its result's name, and its text as a format for the names in it.

    ``pure`` is the result's type where the block may use it again.
    """

    name: str
    form: str
    names: tuple[str, ...]
    pure: LType | None


class Repeated:
    """``writer.apply`` of an operation, for one register after another."""

    def __init__(self, writer: Writer, op: Op) -> None:
        self._writer = writer
        self._op = op
        self._mark = writer.lines.mark(op.loc)
        self._operands: Sequence[V] | None = None
        self._lines: list[Line] | None = None
        self._result: V

    def __call__(self, operands: Sequence[V]) -> V:
        """The operation's result."""
        if self._lines is not None:
            copied = self._copy(operands)
            if copied is not None:
                return copied
        if self._operands is not None:
            return self._writer.apply(self._op, operands)
        block, before = self._writer.b.block, self._state()
        start = len(block.lines)
        self._operands = operands
        self._result = self._writer.apply(self._op, operands)
        if self._writer.b.block is block and self._state() == before:
            self._lines = self._read(block.lines[start:])
        return self._result

    def _state(self) -> tuple[int, ...]:
        """What grows where a rule writes elsewhere than in the current block."""
        function, block = self._writer.function, self._writer.b.block
        elsewhere = 0 if block is function.entry else len(function.entry.lines)
        return len(function.blocks), len(function.allocas), elsewhere

    def _read(self, lines: Sequence[str]) -> list[Line] | None:
        """The lines of a rule; None where they depend on more than its operands."""
        assert self._operands is not None
        if not all(map(_is_register, self._operands)):
            return None
        known = self._writer.b.block.known
        defined = {each.text for each in self._operands}
        read = []
        for line in lines:
            name, equals, text = line.strip().partition(" = ")
            text = text.removesuffix(self._mark)
            names = tuple(_NAME.findall(text))
            if not (equals and name.startswith(_UNNAMED) and defined.issuperset(names)):
                return None
            defined.add(name)
            found = known.get(text)
            pure = found.type if found is not None and found.text == name else None
            form = "%s".join(part.replace("%", "%%") for part in _NAME.split(text))
            read.append(Line(name, form, names, pure))
        return read if self._result.text in defined else None

    def _copy(self, operands: Sequence[V]) -> V | None:
        """The lines for other operands; None where the rule may see something in these."""
        assert self._operands is not None
        assert self._lines is not None
        names: dict[str, str] = {}
        for before, now in zip(self._operands, operands, strict=True):
            if not _is_register(now) or names.setdefault(before.text, now.text) != now.text:
                return None
        if len(set(names.values())) != len(names):
            return None
        block, fresh = self._writer.b.block, self._writer.function.fresh
        for name, form, used, pure in self._lines:
            text = form % tuple([names[each] for each in used])
            found = block.known.get(text) if pure is not None else None
            if found is None:
                made = fresh()
                block.lines.append(f"  {made} = {text}{self._mark}")
                found = V(made, self._result.type if pure is None else pure)
                if pure is not None:
                    block.known[text] = found
            names[name] = found.text
        return V(names[self._result.text], self._result.type)
