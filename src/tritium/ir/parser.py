"""Reads the text form of tile IR that ``printer`` writes; ``//`` begins a comment.

The parser knows the operations that are registered, and checks form alone: whether the IR makes
sense is for the verifier to say. A value may therefore be named before the place that makes it.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from tritium.diagnostics import Loc, TritiumError, error

from .core import REGISTRY, Block, FieldKind, Function, Op, Region, Value
from .dtypes import ALL, Type, void
from .types import PointerType, TileType

T = TypeVar("T")

_DTYPES = {dtype.mnemonic: dtype for dtype in ALL}
_WORDS: dict[str, Any] = {
    "none": None,
    "true": True,
    "false": False,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
}

_SPACE = re.compile(r"(?:\s+|//[^\n]*)*")
_WORD = re.compile(r"[^\W\d]\w*")
_MNEMONIC = re.compile(r"[^\W\d]\w*(?:\.\w+)+")
_PASS = re.compile(r"[^\W\d][\w-]*")
_VALUE = re.compile(r"%([^\W\d]\w*|\d+)")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_HEX_FLOAT = re.compile(r"[+-]?0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?[pP][+-]?\d+")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_COUNT = re.compile(r"\d+")
_EXTENT = re.compile(r"(\d+)x")
_ADDRESS_SPACE = re.compile(r"<(\w+)>")
_SIGNED_WORD = re.compile(r"-?[^\W\d]\w*")


def parse_function(text: str, file: str = "") -> Function:
    """The function that ``text`` holds, its operations unverified.

    With ``file``, operations that state no place get the one where they stand in the text, as a
    line and column of ``file``. Raises E0302 at the place of what can't be read.
    """
    return _FunctionReader(text, file).function()


def parse_fields(text: str, code: str = "E0303") -> list[tuple[str, dict[str, Any]]]:
    """Names with attributes in braces, separated by commas: the text of a pass pipeline.

    Raises ``code``, a message with a ``text`` and a ``hint``.
    """
    return _Reader(text, "", code).pipeline()


class _Reader:
    """A place in a text, and the pieces that can be read there."""

    def __init__(self, text: str, file: str, code: str) -> None:
        self.text = text
        self.file = file
        self.code = code
        self.at = 0
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self.skip()

    def place(self, start: int) -> Loc:
        """From ``start`` to the end of its word, as a place in ``file``."""
        line = bisect.bisect_right(self._lines, start)
        column = start - self._lines[line - 1]
        word = re.compile(r"[%@]?[\w.]*").match(self.text, start)
        length = max(1, word.end() - start if word else 1)
        return Loc(self.file or "<text>", line, column, line, column + length)

    def fail(self, text: str, at: int | None = None) -> TritiumError:
        """The error that says what is wrong, at the next piece or at ``at``."""
        loc = self.place(self.at if at is None else at)
        return error(self.code, text=text, hint="", loc=loc)

    def skip(self) -> None:
        """Go on to the next piece."""
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def accept(self, piece: str) -> bool:
        """Read ``piece`` if it comes next."""
        if not self.text.startswith(piece, self.at):
            return False
        self.at += len(piece)
        self.skip()
        return True

    def expect(self, piece: str) -> None:
        """Read ``piece``, which must come next."""
        if not self.accept(piece):
            raise self.fail(f"expected {piece!r}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what ``pattern`` matches, if it comes next."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            self.skip()
        return found

    def read(self, pattern: re.Pattern[str], what: str) -> str:
        """Read what ``pattern`` matches, which must come next."""
        found = self.match(pattern)
        if found is None:
            raise self.fail(f"expected {what}")
        return found[0]

    def several(self, opening: str, closing: str, one: Callable[[], T]) -> list[T]:
        """Pieces in brackets, separated by commas; one more comma may follow."""
        self.expect(opening)
        found: list[T] = []
        while not self.accept(closing):
            found.append(one())
            if not self.accept(","):
                self.expect(closing)
                break
        return found

    def string(self) -> str:
        """A quoted string."""
        start = self.at
        quoted = self.read(_STRING, "a quoted string")
        try:
            text: str = json.loads(quoted)
        except json.JSONDecodeError as problem:
            raise self.fail(f"a string with a wrong escape: {problem.msg}", start) from None
        return text

    # ---- attributes and types ----

    def attributes(self) -> dict[str, Any]:
        """``{key = value, ...}``."""
        found: dict[str, Any] = {}

        def one() -> None:
            start = self.at
            key = self.read(_WORD, "the name of an attribute")
            self.expect("=")
            if key in found:
                raise self.fail(f"the attribute {key} is given twice", start)
            found[key] = self.attribute()

        self.several("{", "}", one)
        return found

    def attribute(self) -> Any:
        """The value of an attribute."""
        if self.text.startswith('"', self.at):
            return self.string()
        if self.text.startswith("(", self.at):
            return tuple(self.several("(", ")", self.attribute))
        if found := self.match(_HEX_FLOAT):
            return float.fromhex(found[0])
        if found := self.match(_NUMBER):
            return float(found[0]) if found[1] or found[2] else int(found[0])
        word = _SIGNED_WORD.match(self.text, self.at)
        if word and word[0] in _WORDS:
            self.accept(word[0])
            return _WORDS[word[0]]
        return self.type()

    def type(self) -> Type:
        """A type's mnemonic."""
        made = self._tile() if self.text.startswith("tile<", self.at) else self._scalar()
        self.skip()
        return made

    def _tile(self) -> Type:
        start = self.at
        self.at += len("tile<")
        shape = []
        while found := _EXTENT.match(self.text, self.at):
            shape.append(int(found[1]))
            self.at = found.end()
        scalar = self._scalar()
        self.expect(">")
        try:
            return TileType(scalar, tuple(shape))
        except ValueError as problem:
            raise self.fail(str(problem), start) from None

    def _scalar(self) -> Type:
        if self.text.startswith("*", self.at):
            self.at += 1
            const = self.text.startswith("k", self.at)
            self.at += const
            space = _ADDRESS_SPACE.match(self.text, self.at)
            if space:
                self.at = space.end()
            return PointerType(self._scalar(), space[1] if space else "global", const)
        word = _WORD.match(self.text, self.at)
        if word is None or word[0] not in _DTYPES:
            raise self.fail("expected a type" if word is None else f"{word[0]} is no type")
        self.at = word.end()
        return _DTYPES[word[0]]

    # ---- places and pipelines ----

    def loc(self) -> Loc | None:
        """``loc(...)`` where it comes next."""
        if not self.accept("loc("):
            return None
        file = self.string()
        line, column = self._line_and_column(":")
        end = self._line_and_column("") if self.accept("to") else (0, 1)
        function = self.string() if self.accept("in") else ""
        site = None
        if self.accept("at"):
            site = self.loc()
            if site is None:
                raise self.fail("expected a location")
        self.expect(")")
        return Loc(file, line, column - 1, end[0], end[1] - 1, function, site)

    def _line_and_column(self, before: str) -> tuple[int, int]:
        self.expect(before)
        line = int(self.read(_COUNT, "a line"))
        self.expect(":")
        return line, int(self.read(_COUNT, "a column"))

    def pipeline(self) -> list[tuple[str, dict[str, Any]]]:
        """Passes with their options."""
        found = []
        while self.at < len(self.text):
            name = self.read(_PASS, "the name of a pass")
            found.append((name, self.attributes() if self.text.startswith("{", self.at) else {}))
            if not self.accept(",") and self.at < len(self.text):
                raise self.fail("expected ','")
        return found


class _FunctionReader(_Reader):
    """Reads one function; ``values`` holds what was named so far, by its text after the %."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file, "E0302")
        self.values: dict[str, Value] = {}
        self.awaited: dict[str, tuple[Value, int]] = {}

    def function(self) -> Function:
        self.expect("func")
        self.expect("@")
        name = self.string() if self.text.startswith('"', self.at) else self.read(_WORD, "a name")
        starts: list[int] = []

        def param() -> tuple[str, Type, int]:
            starts.append(self.at)
            name, type = self._declaration()
            return name, type, self._divisibility()

        params = self.several("(", ")", param)
        made = Function(name, params)
        for value, start, (key, _, _) in zip(made.body.args, starts, params):
            self._define(key, value, start)
        self.expect("(")
        self._body(made.body.block)
        self.expect(")")
        made.loc = self.loc()
        if self.at < len(self.text):
            raise self.fail("expected the end of the text after the function")
        for key, (_, start) in self.awaited.items():
            raise self.fail(f"%{key} is not defined", start)
        return made

    def _declaration(self) -> tuple[str, Type]:
        name = self.read(_VALUE, "a value's name")[1:]
        self.expect(":")
        return name, self.type()

    def _divisibility(self) -> int:
        if not self.text.startswith("{", self.at):
            return 1
        start = self.at
        given = self.attributes()
        divisibility = given.pop("divisibility", 1)
        if given or type(divisibility) is not int:
            raise self.fail("a parameter has the attribute divisibility alone, an integer", start)
        return divisibility

    def _define(self, key: str, value: Value, start: int) -> None:
        if key in self.values:
            raise self.fail(f"%{key} is defined twice", start)
        self.values[key] = value
        awaited = self.awaited.pop(key, None)
        if awaited is not None:
            awaited[0].replace_all_uses_with(value)

    def _value(self) -> Value:
        start = self.at
        key = self.read(_VALUE, "a value")[1:]
        if self.accept("#"):
            key += "#" + self.read(_COUNT, "the index of a result")
        if key in self.values:
            return self.values[key]
        return self.awaited.setdefault(key, (Value(void), start))[0]

    def _body(self, block: Block) -> None:
        """The operations of a block up to the brace that ends it."""
        self.expect("{")
        if self.text.startswith("^", self.at):
            self.at += 1

            def argument() -> None:
                start = self.at
                name, type = self._declaration()
                self._define(name, block.add_arg(type, _hint(name)), start)

            self.several("(", ")", argument)
            self.expect(":")
        while not self.accept("}"):
            block.append(self._op())

    def _region(self) -> Region:
        made = Region()
        self._body(made.block)
        return made

    def _op(self) -> Op:
        start = self.at
        name, count = self._results()
        mnemonic = self.read(_MNEMONIC, "an operation")
        cls = REGISTRY.get(mnemonic)
        if cls is None:
            raise self.fail(f"there is no operation {mnemonic}", start)
        fields = self._operands(cls)
        fields.update(self._attributes(cls))
        fields.update(self._regions(cls))
        try:
            build: Any = cls
            made: Op = build(**fields)
        except TypeError as problem:
            raise self.fail(str(problem), start) from None
        made.results = [Value(type, made, _hint(name)) for type in self._types(count)]
        for index, result in enumerate(made.results):
            self._define(name if count == 1 else f"{name}#{index}", result, start)
        made.loc = self.loc() or (self.place(start) if self.file else None)
        return made

    def _results(self) -> tuple[str, int]:
        """The name of an operation's results, and their number."""
        if not self.text.startswith("%", self.at):
            return "", 0
        name = self.read(_VALUE, "a value")[1:]
        count = 1
        if self.accept(":"):
            count = int(self.read(_COUNT, "the number of results"))
            if count < 2:
                raise self.fail("a number of results is given from 2 up")
        self.expect("=")
        return name, count

    def _operands(self, cls: type[Op]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, declared in cls.fields.items():
            if not declared.is_operand:
                continue
            if found:
                self.expect(",")
            if declared.kind is FieldKind.OPERANDS:
                found[key] = tuple(self.several("[", "]", self._value))
            elif declared.kind is FieldKind.OPTIONAL and self.accept("_"):
                found[key] = None
            else:
                found[key] = self._value()
        return found

    def _attributes(self, cls: type[Op]) -> dict[str, Any]:
        if not self.text.startswith("{", self.at):
            return {}
        start = self.at
        found = self.attributes()
        for key in found:
            if key not in cls.fields or cls.fields[key].kind is not FieldKind.ATTRIBUTE:
                raise self.fail(f"{cls.mnemonic} has no attribute {key}", start)
        return found

    def _regions(self, cls: type[Op]) -> dict[str, Any]:
        keys = [key for key, each in cls.fields.items() if each.kind is FieldKind.REGION]
        if not keys:
            return {}
        start = self.at
        made = self.several("(", ")", self._region)
        if len(made) != len(keys):
            raise self.fail(f"{cls.mnemonic} has {len(keys)} regions, not {len(made)}", start)
        return dict(zip(keys, made))

    def _types(self, count: int) -> list[Type]:
        if not count:
            return []
        self.expect(":")
        start = self.at
        types = self.several("(", ")", self.type) if count > 1 else [self.type()]
        if len(types) != count:
            raise self.fail(f"{count} results have {len(types)} types", start)
        return types


def _hint(name: str) -> str:
    """The hint that gives a value this name again; numbers are given out anew."""
    return "" if name.isdigit() else name
