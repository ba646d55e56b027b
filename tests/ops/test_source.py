"""Source capture: whose text is found, and that places are those of the file."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import linecache
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy.ma.core
import pytest

from tritium.diagnostics import CompilationError, Loc
from tritium.ops.source import FunctionSource, capture, indented_block


def decorate(*args: Any) -> Any:
    return (lambda fn: fn) if not (args and isinstance(args[0], FunctionType)) else args[0]


def nodes(source: FunctionSource, cls: type[ast.AST]) -> list[ast.AST]:
    return [node for node in ast.walk(source.tree) if isinstance(node, cls)]


def covered(loc: Loc) -> str:
    """The text of the file that a location covers."""
    lines = linecache.getlines(loc.file)[loc.line - 1 : loc.end_line]
    lines[-1] = lines[-1][: loc.end_col]
    lines[0] = lines[0][loc.col :]
    return "".join(lines)


def check_places(function: Callable[..., Any]) -> FunctionSource:
    """Every node's location covers the text of the file that parses to that node."""
    source = capture(function)
    assert source.file == function.__code__.co_filename
    for node in nodes(source, ast.expr):
        parents = [each for each in nodes(source, ast.JoinedStr) if node is not each]
        if any(node in ast.walk(parent) for parent in parents):
            continue
        text = covered(source.loc(node))
        again = ast.parse(f"({text})", mode="eval").body
        assert ast.dump(again) == ast.dump(node).replace("Store()", "Load()")
    return source


def from_text(text: str, tmp_path: Path, name: str = "f") -> Any:
    """A function of a module that is a file."""
    path = tmp_path / "module_under_test.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("module_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def module_level(x, y=3):
    z = x * (y + 1)
    return z


def test_a_function_of_a_module() -> None:
    source = check_places(module_level)
    first = module_level.__code__.co_firstlineno
    assert source.tree.lineno == source.first_line == first
    assert source.text.startswith("def module_level(x, y=3):\n    z = x")
    assert source.text == inspect.getsource(module_level)
    assert covered(source.header_loc()) == "def module_level"
    assert source.loc(source.tree).function == "module_level"


@decorate
@decorate(
    1,
    "def wrong(): pass",
)
# a comment between
def decorated(x):
    return x + 1


def test_decorators_are_cut() -> None:
    source = check_places(decorated)
    assert source.tree.decorator_list == []
    assert source.text == "def decorated(x):\n    return x + 1\n"
    assert source.tree.lineno == decorated.__code__.co_firstlineno + 6
    assert source.first_line == decorated.__code__.co_firstlineno


# fmt: off
def one_line(x): return x + 1


def make(y):
    def nested(x): return (x + y
  ) * 2
    return nested


class Holder:
    class Inner:
        @decorate
        def method(self, x):
            text = """
not indented
  at all"""
            z = x + \
  1
            # a comment
    # another one, to the left
            return f"{z}{text}"

        other = 1

    @staticmethod
    def last(x):
        if x:
            return x
        return 0
# fmt: on


@pytest.mark.parametrize(
    "function", [one_line, make(1), Holder.Inner.method, Holder.last], ids=lambda f: f.__qualname__
)
def test_places_are_those_of_the_file(function: Callable[..., Any]) -> None:
    source = check_places(function)
    assert source.name == function.__name__
    assert source.tree.name == function.__name__


def test_methods_and_wrapped_functions() -> None:
    assert capture(Holder().last) is capture(Holder.last)

    def wrapper(*args):
        return module_level(*args)

    wrapper.__wrapped__ = module_level  # type: ignore[attr-defined]
    assert capture(wrapper) is capture(module_level)


def test_a_capture_is_kept() -> None:
    first, second = make(1), make(2)
    assert first is not second
    assert capture(first) is capture(second)


def test_same_code_in_two_files_is_told_apart(tmp_path: Path) -> None:
    text = "def f(x):\n    return x\n"
    functions = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        functions.append(from_text(text, tmp_path / name))
    first, second = functions
    assert first.__code__ == second.__code__
    assert capture(first).file != capture(second).file
    assert capture(first).hash == capture(second).hash


def test_tabs_and_wide_characters(tmp_path: Path) -> None:
    text = "class A:\n\tdef f(x):\n\t\té = 'ßü漢字'; 变 = é + x  # ü\n\t\treturn (变, é\n\t\t, x)\n"
    function = from_text(text, tmp_path, "A").f
    source = check_places(function)
    (total,) = nodes(source, ast.BinOp)
    loc = source.loc(total)
    assert (loc.line, loc.col, loc.end_col) == (3, 18, 23)


def test_line_ends_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "module_under_test.py"
    path.write_bytes(b"if True:\r\n    def f(x):\r\n        y = x + 1\r\n        return y\r\n")
    spec = importlib.util.spec_from_file_location("module_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = check_places(module.f)
    assert source.text == "def f(x):\n        y = x + 1\n        return y\n"


def execute(text: str, file: str, register: bool = True, name: str = "f") -> Any:
    if register:
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    return scope[name]


def test_exec_with_linecache() -> None:
    function = execute("x = 1\n\ndef f(x):\n    return x + 1\n", "<generated kernel>")
    source = check_places(function)
    assert source.file == "<generated kernel>"
    assert source.tree.lineno == 3


def test_cells_of_notebooks() -> None:
    """IPython registers each cell under a name of its own, without a time of modification."""
    first = execute("def f(x):\n    return x + 1\n", "/tmp/ipykernel_1/11.py")
    second = execute("# changed\ndef f(x):\n    return x + 2\n", "/tmp/ipykernel_1/22.py")
    assert "x + 1" in check_places(first).text
    assert "x + 2" in check_places(second).text


def test_hashes_follow_the_text() -> None:
    def hashed(text: str, file: str) -> str:
        return capture(execute(text, file)).hash

    plain = hashed("def f(x):\n    return x\n", "<hash 1>")
    assert plain == hashed("\n@staticmethod\ndef f(x):\n    return x\n", "<hash 2>")
    assert plain != hashed("def f(x):\n    return x # comment\n", "<hash 3>")
    assert len(plain) == 64


@pytest.mark.parametrize(
    "function",
    [
        execute("def f(x):\n    return x\n", "<never registered>", register=False),
        len,
        (lambda x: x),
        object(),
    ],
    ids=["unregistered", "builtin", "lambda", "object"],
)
def test_source_that_is_not_there(function: Any) -> None:
    with pytest.raises(CompilationError) as caught:
        capture(function)
    assert caught.value.code == "E0118"
    assert "linecache" in caught.value.help


@pytest.mark.parametrize(
    "edited",
    [
        "",
        "\n\n\n",
        "def g(x):\n    return x\n",
        "def f(y):\n    return y\n",
        "class A: pass\n",
        "f(\n",
    ],
)
def test_a_file_that_was_edited_since(edited: str, tmp_path: Path) -> None:
    function = from_text("def f(x):\n    return x + 1\n", tmp_path)
    path = Path(function.__code__.co_filename)
    path.write_text(edited)
    linecache.clearcache()
    with pytest.raises(CompilationError) as caught:
        capture(function)
    assert caught.value.code == "E0118"


def test_every_function_of_the_standard_library_is_placed_right() -> None:
    """Whatever real code looks like: a module that has nested functions, methods, decorators."""
    import tempfile

    checked = 0
    for owner in (tempfile, textwrap.TextWrapper, Path):
        for value in vars(owner).values():
            function = inspect.unwrap(getattr(value, "__func__", value))
            if isinstance(function, FunctionType) and "<" not in function.__qualname__:
                source = capture(function)
                assert source.text.startswith("def ")
                assert source.text in "".join(linecache.getlines(source.file))
                checked += 1
    assert checked > 40


# ---- blocks without tokens -----------------------------------------------------------------------

ODD = '''
@jit
def plain(x):
    return x


@jit(
    version=1,
)
def decorated(
    x,
    y=(
        1,
    ),
):
    # a comment
    return x
    # one after it

  # one of less indentation

    # one inside
# one outside
def nested(x):
    def inner():
        return 1

    return inner() + x
    # last

def one_line(x): return x
def brackets(x):
    y = [
1, 2,
]
    return y
def text(x):
    return """
no margin
    """
def continued(x):
    y = x + \\
1
    return y
if True:
    def indented(x):
        if x:
            return 1
    other = 1
'''


def definitions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Names of the functions, and the lines of the file from where each starts."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.name, lines[min([node, *node.decorator_list], key=line_of).lineno - 1 :]


def line_of(node: ast.expr | ast.stmt) -> int:
    return node.lineno


def is_whole(lines: list[str]) -> bool:
    try:
        ast.parse("if True:\n" * lines[0].startswith(" ") + "".join(lines))
    except SyntaxError:
        return False
    return True


def test_indented_blocks_are_those_of_inspect() -> None:
    broken = []
    for name, lines in definitions(ODD):
        block = indented_block(lines)
        if is_whole(block):
            assert block == inspect.getblock(lines)
        else:
            broken.append(name)
    assert broken == ["brackets", "text", "continued"], "these are left to inspect"


@pytest.mark.parametrize("module", [argparse, ast, inspect, textwrap, numpy.ma.core])
def test_so_are_those_of_any_module(module: types.ModuleType) -> None:
    text = inspect.getsource(module)
    found = list(definitions(text))
    wholes = 0
    for _, lines in found:
        block = indented_block(lines)
        if is_whole(block):
            wholes += 1
            assert block == inspect.getblock(lines)
    assert wholes >= 0.95 * len(found)
