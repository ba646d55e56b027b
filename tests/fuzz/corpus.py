"""Valid kernels to mutate: random ones, examples, the guide's, the tests', and ``calls``."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import pathlib
import random
import runpy
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.examples.test_examples import EXAMPLES, SMALL
from tests.frontend.test_subset import NAMES, WORKS
from tests.fuzz.calls import CALLS, CLOSING, HELPERS, OPENING
from tests.fuzz.generate import generate

import tritium
import tritium.language as tl
from tritium.ops.callable import DeviceFunction

GUIDE = pathlib.Path(__file__).parents[1] / "guide"
PACKAGES = {"torch", "triton", "triton.language", "tritium", "tritium.language"}
"""What kernels find without an import."""
UNSAFE = {"matmul_pointer_table.py"}
"""Examples that follow pointers which they find in memory."""


@dataclass(frozen=True)
class Subject:
    """A valid kernel: the text of its module, its name there, and one launch of it."""

    name: str
    source: str
    kernel: str
    arguments: Mapping[str, Any]
    grid: tuple[int, ...]

    def function(self, source: str, file: str) -> DeviceFunction:
        """The kernel of a text of its module, which messages and the front end find as ``file``."""
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        names: dict[str, Any] = {"__name__": "mutant", "jit": tritium.jit, "tritium": tritium}
        names |= {"tl": tl, "triton": tritium, "np": np}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source, file, "exec", dont_inherit=True), names)
        found = names[self.kernel]
        assert isinstance(found, DeviceFunction)
        return found


def surface() -> tuple[str, ...]:
    """The names of ``tl``."""
    return tuple(sorted(name for name in dir(tl) if not name.startswith("_")))


def _indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.splitlines())


@functools.cache
def of_calls() -> tuple[Subject, ...]:
    data = np.random.default_rng(1)
    x = (data.integers(-16, 17, 64) / 4).astype(np.float32)
    i = data.integers(-20, 21, 64).astype(np.int32)
    arguments: dict[str, Any] = {"x": x, "y": x[::-1].astype(np.float16), "i": i}
    arguments |= {"o": np.zeros(256, np.float32), "k": np.zeros(256, np.int32)}
    arguments |= {"n": 5, "m": 7, "f": 2.5, "B": 8}
    head = "@jit\ndef kernel(x, y, i, o, k, n, m, f, B: tl.constexpr):\n"
    closing = f"tl.store(o + 64 + at, v)\ntl.store(k + 64 + at, w)\n{CLOSING}\n"
    return tuple(
        Subject(
            f"call {number}",
            HELPERS + head + _indented(f"{OPENING}{body}\n{closing}"),
            "kernel",
            arguments,
            (2,),
        )
        for number, body in enumerate(CALLS)
    )


@functools.cache
def of_subset() -> tuple[Subject, ...]:
    arguments = {"out": np.zeros(16, np.int32), "n": 5, "m": 7, "f": 2.5}
    head = "@jit\ndef kernel(out, n, m, f):\n"
    return tuple(
        Subject(f"subset {number}", NAMES + head + _indented(body), "kernel", arguments, (1,))
        for number, (body, _) in enumerate(WORKS)
    )


def of_generator(seed: int) -> Subject:
    program = generate(seed)
    return Subject(f"generated {seed}", program.source, "kernel", program.arguments, program.grid)


# ---- files --------------------------------------------------------------------------------------


def kernels_of(text: str) -> str:
    """The kernels of a file, and what they may read of it: its imports and its constants."""
    kept: list[ast.stmt] = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            marks = [each for each in node.decorator_list if "jit" in ast.unparse(each)]
            if marks:
                node.decorator_list = [ast.Name("jit", ast.Load())]
                kept.append(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Constant, ast.Call)):
            if isinstance(node.value, ast.Constant) or "constexpr" in ast.unparse(node.value):
                kept.append(node)
        elif isinstance(node, ast.Import) and not PACKAGES & {each.name for each in node.names}:
            kept.append(node)
    return ast.unparse(ast.fix_missing_locations(ast.Module(kept, []))) + "\n"


class Noted:
    """Takes a kernel's place while a program runs: notes the first launch, carries out none."""

    def __init__(self, fn: Callable[..., Any], launches: dict[str, Any]) -> None:
        self.fn = fn
        self.launches = launches

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*args: Any, **options: Any) -> None:
            signature = inspect.signature(self.fn)
            given = {name: each for name, each in options.items() if name in signature.parameters}
            bound = signature.bind(*args, **given)
            bound.apply_defaults()
            extents = grid(bound.arguments) if callable(grid) else grid
            extents = extents if isinstance(extents, tuple) else (extents,)
            self.launches.setdefault(self.fn.__name__, (dict(bound.arguments), extents))

        return launch


def launches_of(path: pathlib.Path, given: list[str]) -> dict[str, Any]:
    """The first launch of each kernel of a program that is run with these arguments.

    As nothing is computed, it ends where it looks at the results.
    """
    launches: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [path.name, *given])
        patch.setattr(tritium, "jit", lambda fn: Noted(fn, launches), raising=False)
        # What isn't computed must not hold what was in memory.
        patch.setattr(np, "empty", np.zeros)
        patch.setattr(np, "empty_like", np.zeros_like)
        try:
            runpy.run_path(str(path), run_name="__main__")
        except (AssertionError, SystemExit):
            return launches
    return launches


@functools.cache
def of_example(name: str) -> tuple[Subject, ...]:
    path = EXAMPLES / name
    text = kernels_of(path.read_text(encoding="utf-8"))
    launches = launches_of(path, SMALL[name].split())
    return tuple(
        Subject(f"{name} {kernel}", text, kernel, arguments, grid)
        for kernel, (arguments, grid) in launches.items()
    )


@functools.cache
def of_guide() -> tuple[Subject, ...]:
    def text(name: str) -> str:
        return kernels_of((GUIDE / name).read_text(encoding="utf-8"))

    data = np.random.default_rng(2)
    x = data.integers(-9, 10, 24).astype(np.float32)
    a, b = (data.integers(-3, 4, shape).astype(np.float16) for shape in ((19, 21), (21, 17)))
    c = np.zeros((19, 17), np.float16)
    product = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": 19, "N": 17, "K": 21}
    product |= {"sam": 21, "sak": 1, "sbk": 17, "sbn": 1, "scm": 17, "scn": 1}
    names = inspect.signature(_only(text("matmul_autotuned.py"), "matmul_kernel")).parameters
    blocks = {name: 16 if name.startswith("B") else 2 for name in names if name not in product}
    vectors = {"x_ptr": x, "y_ptr": x[::-1].copy(), "out_ptr": np.zeros(24, np.float32)}
    doubled = {"x_ptr": x, "out_ptr": np.zeros(24, np.float32), "W": 8, "BLOCK": 4}
    return (
        Subject(
            "guide add",
            text("vector_add.py"),
            "add_kernel",
            {**vectors, "n": 24, "BLOCK_SIZE": 16},
            (2,),
        ),
        Subject("guide double", text("debug_helpers.py"), "double", doubled, (3, 2)),
        Subject(
            "guide matmul", text("matmul_autotuned.py"), "matmul_kernel", product | blocks, (4,)
        ),
    )


def _only(text: str, name: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"jit": lambda fn: fn, "tl": tl}
    exec(text, names)
    made: Callable[..., Any] = names[name]
    return made


def chosen(seed: int) -> Subject:
    """The subject that a seed is about."""
    chance = random.Random(f"subject {seed}")
    kind = chance.random()
    if kind < 0.4:
        return chance.choice(of_calls())
    if kind < 0.6:
        return chance.choice(of_subset())
    if kind < 0.8:
        return of_generator(chance.randrange(10**6))
    if kind < 0.85:
        return chance.choice(of_guide())
    return chance.choice(of_example(chance.choice(sorted(set(SMALL) - UNSAFE))))


def all_subjects() -> list[Subject]:
    """Every one that isn't made by the generator."""
    files = (of_example(name) for name in sorted(set(SMALL) - UNSAFE))
    return [*of_calls(), *of_subset(), *of_guide(), *itertools.chain.from_iterable(files)]
