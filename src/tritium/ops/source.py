"""The source of kernel functions: their syntax tree, with the lines and columns of their file.

The front end compiles this tree and eager mode rewrites a copy of it, so both see the same text.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sys
import tokenize
import weakref
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from tritium.diagnostics import Loc, error
from tritium.diagnostics.frames import character
from tritium.ir.digest import digest


class FunctionSource:
    """A function's definition as it stands in its file.

    ``tree`` is shared by all readers, who must not change it; its line numbers are the file's, its
    columns are UTF-8 bytes as always in ``ast`` (``loc`` counts characters). Decorators are cut
    off. ``text`` runs from ``def`` to the end of the body, and ``hash`` is its digest.
    """

    __slots__ = ("file", "first_line", "hash", "lines", "name", "text", "tree")

    def __init__(self, code: CodeType, tree: ast.FunctionDef, lines: Sequence[str]) -> None:
        assert tree.end_lineno is not None
        first = code.co_firstlineno
        self.file = code.co_filename
        self.name = code.co_name
        self.tree = tree
        self.lines = tuple(lines)
        self.first_line = first
        self.text = "".join(lines[tree.lineno - first : tree.end_lineno - first + 1]).lstrip()
        self.hash: str = digest(self.text.encode()).hexdigest()

    def loc(self, node: ast.AST, call_site: Loc | None = None) -> Loc:
        """The place of a node of ``tree``, reached through the call at ``call_site``."""
        where: Any = node
        return Loc(
            self.file,
            where.lineno,
            self._column(where.lineno, where.col_offset),
            where.end_lineno,
            self._column(where.end_lineno, where.end_col_offset),
            self.name,
            call_site,
        )

    def header_loc(self, call_site: Loc | None = None) -> Loc:
        """The place of ``def name``."""
        where = self.tree
        start = self._column(where.lineno, where.col_offset)
        line = self.lines[where.lineno - self.first_line]
        end = line.find(where.name, start) + len(where.name)
        return Loc(self.file, where.lineno, start, where.lineno, end, self.name, call_site)

    def _column(self, line: int, offset: int) -> int:
        return character(self.lines[line - self.first_line], offset)


# By identity: code objects compare equal across files.
_captured: dict[int, tuple[weakref.ref[CodeType], FunctionSource]] = {}


def capture(function: Any) -> FunctionSource:
    """The source of a Python function, kept for the next call.

    Works for functions of files, of notebook cells, of the interactive prompt where Python keeps
    its text, and of ``exec`` where the text was registered with ``linecache``. Raises E0118 where
    there is no text or the text is not that function's.
    """
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        raise error("E0118", name=getattr(function, "__name__", repr(function)))
    code = function.__code__
    known = _captured.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    source = _read(function)
    key = id(code)
    _captured[key] = (weakref.ref(code, lambda _: _captured.pop(key, None)), source)
    return source


def _read(function: FunctionType) -> FunctionSource:
    code = function.__code__
    for lines in _blocks(function):
        tree = _parse(lines, code.co_firstlineno) if lines else None
        if tree is not None:
            break
    if tree is None or not _matches(tree, code):
        raise error("E0118", name=function.__qualname__)
    tree.decorator_list = []
    if sys.version_info < (3, 12):
        _place_fstrings(tree)
    return FunctionSource(code, tree, lines)


def _blocks(function: FunctionType) -> Iterator[list[str]]:
    """The lines of the function, decorators included, as they stand in the file.

    The first of these lists that can be parsed is right.
    """
    code = function.__code__
    if os.path.exists(code.co_filename):
        linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    if lines:
        yield indented_block(lines)
    try:
        yield inspect.getblock(lines) if lines else inspect.getsourcelines(code)[0]
    except (OSError, SyntaxError, IndexError, TypeError, tokenize.TokenError):
        # There is no text, or it is another file's by now.
        yield []


def indented_block(lines: Sequence[str]) -> list[str]:
    """The definition that starts in ``lines``: what is indented more than its first line.

    That is what ``inspect.getblock`` gives, found without tokens, unless a string or an expression
    has a line of less indentation; then it ends too early, and can't be parsed.
    """
    margin = _indentation(lines[0])
    inside = 0
    end = 0
    named = False
    for number, line in enumerate(lines):
        text = line.strip()
        depth = _indentation(line)
        if not text or (text[0] == "#" and depth < (inside or margin + 1)):
            continue
        if depth <= margin:
            if named and text[0] not in ")]}":
                break
            # What comes before are decorators.
            named = named or text.startswith(("def ", "async def "))
        if depth > margin and not inside and lines[end - 1].rstrip().endswith(":"):
            inside = depth
        end = number + 1
    return list(lines[:end])


def _indentation(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())


def _parse(lines: Sequence[str], first_line: int) -> ast.FunctionDef | None:
    """The definition that starts in ``lines``.

    An indented definition becomes the body of an ``if``: taking its indentation away would break
    continuation lines and multi-line strings, and move the columns. Empty lines before it give the
    tree the lines of the file.
    """
    indented = lines[0][:1] in (" ", "\t")
    text = "\n" * (first_line - 1 - indented) + ("if True:\n" if indented else "") + "".join(lines)
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    if indented and isinstance(body[0], ast.If):
        body = body[0].body
    tree = body[0] if body else None
    return tree if isinstance(tree, ast.FunctionDef) else None


def _matches(tree: ast.FunctionDef, code: CodeType) -> bool:
    """Whether the tree can be that code's: a file may have been edited since it was imported."""
    given = tree.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    named += [each for each in (given.vararg, given.kwarg) if each is not None]
    names = tuple(each.arg for each in named)
    return tree.name == code.co_name and names == code.co_varnames[: len(names)]


def _place_fstrings(tree: ast.AST) -> None:
    """Give the parts of f-strings the place of the whole: Python before 3.12 misplaces them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for part in ast.walk(node):
                if "lineno" in part._attributes:
                    ast.copy_location(part, node)
