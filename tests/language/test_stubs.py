"""The type stub of ``tritium.language`` is up to date and says what the functions take."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tritium.language as tl
from tritium.ops.callable import DeviceFunction
from tritium.ops.emit import METHODS, SURFACE

ROOT = Path(__file__).parents[2]
STUB = Path(tl.__file__).with_suffix(".pyi")


def load_script() -> ModuleType:
    path = ROOT / "scripts" / "generate_stubs.py"
    spec = importlib.util.spec_from_file_location("generate_stubs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate_stubs = load_script()
TREE = ast.parse(STUB.read_text(encoding="utf-8"))


def functions(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def test_the_committed_stub_is_what_the_tables_give() -> None:
    committed = STUB.read_text(encoding="utf-8")
    assert committed == generate_stubs.stub(), "run: python scripts/generate_stubs.py"


def test_every_public_name_is_in_the_stub() -> None:
    assigned = {
        node.target.id
        for node in TREE.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    imported = {
        alias.asname
        for node in TREE.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    classes = {node.name for node in TREE.body if isinstance(node, ast.ClassDef)}
    declared = assigned | imported | classes | set(functions(TREE.body))
    public = {name for name in vars(tl) if not name.startswith("_")} - {"annotations", "slice"}
    # A submodule that nothing exports is still set on its package by the import system.
    assert public - declared == {"names"}
    assert declared - public == set()


def test_functions_have_the_parameters_of_the_source() -> None:
    found = functions(TREE.body)
    assert set(found) == set(SURFACE)
    for name, node in found.items():
        function = SURFACE[name]
        signature = (
            function.python_signature
            if isinstance(function, DeviceFunction)
            else inspect.signature(function)
        )
        given = node.args
        names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        names += [each.arg for each in (given.vararg, given.kwarg) if each]
        assert sorted(names) == sorted(signature.parameters), name
        assert ast.get_docstring(node) == inspect.getdoc(function), name


def test_methods_are_those_of_tiles() -> None:
    (tensor,) = (node for node in TREE.body if isinstance(node, ast.ClassDef))
    public = {name for name in METHODS if not name.startswith("_")}
    assert set(functions(tensor.body)) == public
    assert all(node.args.args[0].arg == "self" for node in functions(tensor.body).values())


def test_the_script_writes_a_stale_stub_and_its_check_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stub = tmp_path / "__init__.pyi"
    monkeypatch.setattr(generate_stubs, "STUB", stub)
    monkeypatch.setattr(sys, "argv", ["generate_stubs.py", "--check"])
    assert generate_stubs.main() == 1
    assert "stale" in capsys.readouterr().out
    assert not stub.exists()
    monkeypatch.setattr(sys, "argv", ["generate_stubs.py"])
    assert generate_stubs.main() == 0
    assert stub.read_text(encoding="utf-8") == generate_stubs.stub()
    monkeypatch.setattr(sys, "argv", ["generate_stubs.py", "--check"])
    assert generate_stubs.main() == 0
