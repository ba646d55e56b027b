"""Tile IR as text. One form for all operations; ``parser`` reads it back.

An operation is ``results = family.verb operands {attributes} (regions) : types loc``, each part
only where there is something to say::

    func @scale(%x: *fp32 {divisibility = 16}, %n: i32) ({
      %lo = create.constant {value = 0, dtype = i32} : i32
      %step = create.constant {value = 1, dtype = i32} : i32
      %zero = create.constant {value = 0.0, dtype = fp32} : fp32
      %1:2 = control.for %lo, %n, %step, [%zero, %x] ({ ^(%iv: i32, %sum: fp32, %at: *fp32):
        %loaded = memory.load %at, _, _ : fp32
        %next = arith.add %sum, %loaded : fp32
        %moved = memory.offset %at, %step : *fp32
        control.yield [%next, %moved]
      }) : (fp32, *fp32)
      memory.store %x, %1#0, _
      control.return
    })

Operands follow the fields of the operation's class: ``_`` is an absent optional operand, ``[...]``
a variadic field. Several results are ``%name:count`` where made and ``%name#index`` where read.
Attributes that have their default are left out. Values keep their names as far as these are
unique; values without one are numbered. Floats are Python's shortest decimals, which are exact.
``loc("file":line:column to line:column in "function" at loc(...))`` counts columns from 1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tritium.diagnostics import InternalError, Loc

from .core import FieldKind, Function, Op, Region, Value
from .dtypes import Type

IDENTIFIER = re.compile(r"[^\W\d]\w*")
"""What values and functions may be called; a function's other names are quoted."""

INDENT = "  "


def op_text(op: Op) -> str:
    """One operation, its regions included; what it reads is named as if nothing else were."""
    return _Printer(locations=False).op(op)


def function_text(function: Function, locations: bool = False) -> str:
    """A whole function, ending in a newline; with the operations' places under ``locations``."""
    return _Printer(locations).function(function)


def type_text(type: Type) -> str:
    """A type's text form: ``i32``, ``*kfp32``, ``tile<4x8xfp32>``."""
    return type.mnemonic


def attribute_text(value: Any) -> str:
    """An attribute's text form. Raises InternalError for what can't be one."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(float(value))
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Type):
        return type_text(value)
    if isinstance(value, tuple):
        inner = ", ".join(map(attribute_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    raise InternalError(f"{value!r} can't be an attribute of an operation")


def loc_text(loc: Loc) -> str:
    """A place with its call sites."""
    text = f"{json.dumps(loc.file)}:{loc.line}:{loc.col + 1}"
    if loc.end_line:
        text += f" to {loc.end_line}:{loc.end_col + 1}"
    if loc.function:
        text += f" in {json.dumps(loc.function)}"
    if loc.call_site is not None:
        text += f" at {loc_text(loc.call_site)}"
    return f"loc({text})"


class _Names:
    """Unique names of values, from their hints, in the order in which they are first printed."""

    def __init__(self) -> None:
        self._of: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self._count = 0

    def of(self, value: Value) -> str:
        """The name of a value, made up where it hasn't got one yet."""
        if value not in self._of:
            maker = value.defining_op
            if maker is not None and value in maker.results:
                self.declare_results(maker)
            else:
                self.declare(value, value.name)
        return self._of[value]

    def declare(self, value: Value, hint: str) -> str:
        """Name a value."""
        name = self._of[value] = self._unique(hint)
        return name

    def declare_results(self, op: Op) -> str:
        """Name an operation's results; returns the text that stands where they are made."""
        if len(op.results) == 1:
            return self._of.get(op.results[0]) or self.declare(op.results[0], op.results[0].name)
        name = self._of.get(op.results[0], "").partition("#")[0] or self._unique(op.results[0].name)
        for index, result in enumerate(op.results):
            self._of[result] = f"{name}#{index}"
        return f"{name}:{len(op.results)}"

    def _unique(self, hint: str) -> str:
        hint = re.sub(r"\W", "_", hint)
        if not hint or hint[0].isdigit():
            self._count += 1
            return f"%{self._count - 1}"
        name = hint
        while name in self._taken:
            self._next[hint] = number = self._next.get(hint, 0) + 1
            name = f"{hint}_{number}"
        self._taken.add(name)
        return f"%{name}"


class _Printer:
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.names = _Names()

    def function(self, function: Function) -> str:
        quoted = function.name
        if not IDENTIFIER.fullmatch(quoted):
            quoted = json.dumps(quoted)
        params = []
        for param in function.params:
            text = f"{self.names.declare(param.value, param.name)}: {type_text(param.type)}"
            if param.divisibility != 1:
                text += f" {{divisibility = {param.divisibility}}}"
            params.append(text)
        body = "\n".join(self.lines(function.body.ops, INDENT))
        head = f"func @{quoted}({', '.join(params)}) ({{\n"
        return f"{head}{body}{chr(10) if body else ''}}}){self.place(function.loc)}\n"

    def lines(self, ops: Sequence[Op], indent: str) -> Iterator[str]:
        for each in ops:
            yield indent + self.op(each, indent)

    def op(self, op: Op, indent: str = "") -> str:
        """The operation; lines after the first are indented."""
        # Operands are made before results: their numbers come first where nothing is known of them.
        operands = self.operands(op)
        text = f"{self.names.declare_results(op)} = " if op.results else ""
        text += op.mnemonic + (f" {operands}" if operands else "")
        if attributes := self.attributes(op):
            text += f" {{{attributes}}}"
        regions = [
            self.region(getattr(op, key), indent)
            for key, declared in op.fields.items()
            if declared.kind is FieldKind.REGION
        ]
        if regions:
            text += f" ({', '.join(regions)})"
        if op.results:
            types = ", ".join(type_text(result.type) for result in op.results)
            text += f" : {types}" if len(op.results) == 1 else f" : ({types})"
        return text + self.place(op.loc)

    def operands(self, op: Op) -> str:
        parts = []
        for group in op.operand_groups():
            if group is None:
                parts.append("_")
            elif isinstance(group, tuple):
                parts.append(f"[{', '.join(map(self.names.of, group))}]")
            else:
                parts.append(self.names.of(group))
        return ", ".join(parts)

    def attributes(self, op: Op) -> str:
        parts = []
        for key, value in op.attributes.items():
            text = attribute_text(value)
            declared = op.fields[key]
            if declared.required or text != attribute_text(declared.default):
                parts.append(f"{key} = {text}")
        return ", ".join(parts)

    def region(self, region: Any, indent: str) -> str:
        if not isinstance(region, Region):
            # Eager mode has a callable in its place.
            return f"{{{getattr(region, '__name__', 'callable')}}}"
        label = ""
        if region.args:
            args = (
                f"{self.names.declare(arg, arg.name)}: {type_text(arg.type)}" for arg in region.args
            )
            label = f" ^({', '.join(args)}):"
        body = "".join(f"\n{line}" for line in self.lines(region.ops, indent + INDENT))
        return f"{{{label}{body}\n{indent}}}"

    def place(self, loc: Loc | None) -> str:
        return f" {loc_text(loc)}" if self.locations and loc is not None else ""
