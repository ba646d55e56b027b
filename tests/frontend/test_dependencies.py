"""What a compilation read, and that a change of it is seen."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from tests.frontend.kernels import PTR, define, jit

import tritium.language as tl
from tritium.frontend import ConstantSpec, Dependencies, TraceResult, TupleSpec, trace, verify
from tritium.frontend.dependencies import recall
from tritium.frontend.fingerprint import Marker, fingerprint
from tritium.ops.callable import DeviceFunction, constexpr_function
from tritium.ops.constexpr import constexpr

SOURCE = """
@jit
def inner(x):
    return x + C

@jit
def helper(x, offset=7):
    if mod.FLAG:
        return inner(x) + settings.Sizes.WIDTH
    return x + UNUSED

@jit
def kernel(out, F=None):
    if F is not None:
        F(1)
    tl.store(out, helper(SCALE) + table[1])
"""


@pytest.fixture
def settings() -> Iterator[types.ModuleType]:
    module = types.ModuleType("settings_under_test")
    module.FLAG = True  # type: ignore[attr-defined]
    module.Sizes = type("Sizes", (), {"WIDTH": 4, "__module__": module.__name__})  # type: ignore[attr-defined]
    module.Sizes.__qualname__ = "Sizes"  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def build(settings: types.ModuleType, source: str = SOURCE, **names: Any) -> DeviceFunction:
    values = {
        "C": constexpr(3),
        "SCALE": constexpr(2),
        "UNUSED": constexpr(0),
        "table": tl.tuple((constexpr(1), constexpr(2))),
        "mod": settings,
        "settings": settings,
        **names,
    }
    return define(source, **values)


def compiled(kernel: DeviceFunction, **constants: Any) -> TraceResult:
    specs: dict[str, Any] = {name: ConstantSpec(value) for name, value in constants.items()}
    return trace(kernel, {"out": PTR, **specs})


def stored(dependencies: Dependencies) -> dict[str, Any]:
    """The manifest as it comes back from a file."""
    made: dict[str, Any] = json.loads(json.dumps(dependencies.manifest()))
    return made


def test_what_is_read(settings: types.ModuleType) -> None:
    result = compiled(build(settings))
    entries = {tuple(entry["path"]): entry for entry in stored(result.dependencies)["functions"]}
    assert set(entries) == {(), ("helper",), ("helper", "inner")}
    assert set(entries[()]["names"]) == {"tl", "helper", "SCALE", "table"}
    assert set(entries[("helper",)]["names"]) == {"mod", "inner", "settings"}
    assert entries[("helper", "inner")]["names"] == {"C": "int 3"}
    attributes = stored(result.dependencies)["attributes"]
    assert attributes == {
        "settings_under_test:FLAG": "bool True",
        "settings_under_test:Sizes": "type settings_under_test:Sizes",
        "settings_under_test:Sizes.WIDTH": "int 4",
    }


def test_nothing_has_changed(settings: types.ModuleType) -> None:
    result = compiled(build(settings))
    assert result.dependencies.changed() is None
    manifest = stored(result.dependencies)
    assert verify(manifest, build(settings), {}) is None


@pytest.mark.parametrize(
    "names, changed",
    [
        ({"C": constexpr(4)}, "C"),
        ({"C": constexpr(3.0)}, "C"),
        ({"SCALE": constexpr(True)}, "SCALE"),
        ({"table": tl.tuple((constexpr(1), constexpr(3)))}, "table"),
        ({"UNUSED": constexpr(5)}, None),
        ({"other": 5}, None),
    ],
)
def test_a_global_has_changed(
    settings: types.ModuleType, names: dict[str, Any], changed: str | None
) -> None:
    kernel = build(settings)
    result = compiled(kernel)
    manifest = stored(result.dependencies)
    assert verify(manifest, build(settings, **names), {}) == changed
    kernel.fn.__globals__.update(names)
    assert result.dependencies.changed() == changed


@pytest.mark.parametrize(
    "old, new, changed",
    [
        ("return x + C", "return x - C", "inner"),
        ("offset=7", "offset=8", "helper"),
        ("return x + UNUSED", "return x - UNUSED", "helper"),
        ("tl.store(out, helper", "tl.store(out, 1 + helper", "kernel"),
        ("\n@jit\ndef kernel", "\n\n@jit\n# moved\ndef kernel", None),
    ],
)
def test_a_source_has_changed(
    settings: types.ModuleType, old: str, new: str, changed: str | None
) -> None:
    manifest = stored(compiled(build(settings)).dependencies)
    assert old in SOURCE
    assert verify(manifest, build(settings, SOURCE.replace(old, new)), {}) == changed


def test_an_attribute_has_changed(settings: types.ModuleType) -> None:
    result = compiled(build(settings))
    manifest = stored(result.dependencies)
    settings.Sizes.WIDTH = 5
    assert verify(manifest, build(settings), {}) == "settings_under_test:Sizes.WIDTH"
    assert result.dependencies.changed() == "settings_under_test:Sizes.WIDTH"
    settings.Sizes.WIDTH = 4
    assert result.dependencies.changed() is None
    del settings.FLAG
    assert result.dependencies.changed() == "settings_under_test:FLAG"
    assert verify(manifest, build(settings), {}) == "settings_under_test:FLAG"


def test_a_name_is_gone(settings: types.ModuleType) -> None:
    kernel = build(settings)
    result = compiled(kernel)
    del kernel.fn.__globals__["SCALE"]
    assert result.dependencies.changed() == "SCALE"
    assert verify(stored(result.dependencies), kernel, {}) == "SCALE"


def test_functions_among_the_arguments(settings: types.ModuleType) -> None:
    first = define("K = tl.constexpr(1)\ndef f(x):\n    return x + K\n", "f")
    same = define("K = tl.constexpr(1)\ndef f(x):\n    return x + K\n", "f")
    other = define("K = tl.constexpr(2)\ndef f(x):\n    return x + K\n", "f")
    text = define("K = tl.constexpr(1)\ndef f(x):\n    return x - K\n", "f")
    kernel = build(settings)
    manifest = stored(compiled(kernel, F=first).dependencies)
    assert ["=F"] in [entry["path"] for entry in manifest["functions"]]
    assert verify(manifest, kernel, {"F": first}) is None
    assert verify(manifest, kernel, {"F": same}) is None
    assert verify(manifest, kernel, {"F": other}) == "K"
    assert verify(manifest, kernel, {"F": text}) == "=F"
    assert verify(manifest, kernel, {}) == "=F"


def test_functions_in_tuples_and_closures() -> None:
    def make(value: int) -> DeviceFunction:
        bound = constexpr(value)

        @jit
        def f(x):
            return x + bound

        return f

    @jit
    def kernel(out, fs: tl.constexpr):
        tl.store(out, fs[1](1))

    result = trace(kernel, {"out": PTR, "fs": ConstantSpec((None, make(1)))})
    manifest = stored(result.dependencies)
    assert verify(manifest, kernel, {"fs": (None, make(1))}) is None
    assert verify(manifest, kernel, {"fs": (None, make(2))}) == "bound"
    by_element = trace(
        kernel, {"out": PTR, "fs": TupleSpec((ConstantSpec(None), ConstantSpec(make(1))))}
    )
    assert [entry["path"] for entry in stored(by_element.dependencies)["functions"]][1] == ["=fs.1"]


def test_helpers_reached_through_a_module(settings: types.ModuleType) -> None:
    settings.f = define("def f(x):\n    return x + 1\n", "f")  # type: ignore[attr-defined]
    source = "def kernel(out):\n    tl.store(out, mod.f(1))\n"
    result = compiled(build(settings, source))
    manifest = stored(result.dependencies)
    assert ["@settings_under_test:f"] in [entry["path"] for entry in manifest["functions"]]
    assert verify(manifest, build(settings, source), {}) is None
    settings.f = define("def f(x):\n    return x + 2\n", "f")  # type: ignore[attr-defined]
    assert verify(manifest, build(settings, source), {}) == "@settings_under_test:f"
    assert result.dependencies.changed() == "settings_under_test:f"


def test_the_library_is_not_listed() -> None:
    @jit
    def kernel(out):
        tl.store(out, tl.cdiv(7, 2) + tl.zeros((), tl.int32))

    manifest = stored(trace(kernel, {"out": PTR}).dependencies)
    assert [entry["path"] for entry in manifest["functions"]] == [[]]
    assert manifest["attributes"] == {}


def test_a_builtin_is_hidden_by_a_new_global(settings: types.ModuleType) -> None:
    source = "def kernel(out):\n    tl.store(out, max(1, 2))\n"
    kernel = build(settings, source)
    result = compiled(kernel)
    manifest = stored(result.dependencies)
    assert verify(manifest, build(settings, source), {}) is None
    assert verify(manifest, build(settings, source, max=constexpr(3)), {}) == "max"
    kernel.fn.__globals__["max"] = constexpr(3)
    assert result.dependencies.changed() == "max"


HOST = """
LIMITS = {"width": 3}
NESTED = 1

def deeper(x):
    return x + NESTED + settings.WIDTH

@constexpr_function
def width(x):
    def inner():
        return deeper(x) * LIMITS["width"]
    return inner()

@jit
def kernel(out, F: tl.constexpr = None):
    tl.store(out, width(2))
    if F is not None:
        tl.store(out, F(2))
"""


@pytest.mark.parametrize(
    "old, new",
    [
        ('"width": 3', '"width": 4'),
        ("NESTED = 1", "NESTED = 2"),
        ("return x + NESTED", "return x - NESTED"),
        ("deeper(x) *", "deeper(x) +"),
    ],
)
def test_what_compile_time_functions_read(settings: types.ModuleType, old: str, new: str) -> None:
    def make(source: str) -> DeviceFunction:
        return define(source, settings=settings, constexpr_function=constexpr_function)

    settings.WIDTH = 5  # type: ignore[attr-defined]
    manifest = stored(compiled(make(HOST)).dependencies)
    assert manifest["complete"]
    assert verify(manifest, make(HOST), {}) is None
    assert old in HOST
    assert verify(manifest, make(HOST.replace(old, new)), {}) == "width"
    settings.WIDTH = 6  # type: ignore[attr-defined]
    assert verify(manifest, make(HOST), {}) == "width"


def test_what_compile_time_functions_read_has_changed_in_this_process(
    settings: types.ModuleType,
) -> None:
    settings.WIDTH = 5  # type: ignore[attr-defined]
    kernel = define(HOST, settings=settings, constexpr_function=constexpr_function)
    names = kernel.fn.__globals__
    deeper = constexpr_function(names["deeper"])
    argument = compiled(kernel, F=deeper)
    assert argument.dependencies.changed() is None
    manifest = stored(argument.dependencies)
    again = recall(manifest, kernel, {"F": deeper})
    assert isinstance(again, Dependencies)
    assert again.changed() is None
    names["LIMITS"]["width"] = 4
    assert argument.dependencies.changed() == again.changed() == "width"
    names["LIMITS"]["width"] = 3
    assert argument.dependencies.changed() is None
    plain_only = build(settings)
    assert compiled(plain_only).dependencies._hosts == []


def test_functions_that_call_one_another() -> None:
    source = """
def odd(n):
    return n != 0 and even(n - 1)

def even(n):
    return n == 0 or odd(n - LESS)

def kernel(n):
    return even(n)
"""
    made = [define(source, LESS=less) for less in (1, 1, 2)]
    texts = {fingerprint(each.fn.__globals__["even"]) for each in made}
    assert len(texts) == 2


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2

    def factor(self) -> int:
        return self.value * FACTOR


FACTOR = 3


def test_members_of_enumerations(monkeypatch: pytest.MonkeyPatch) -> None:
    marker = Marker()
    first = marker.mark(Mode.FAST)
    assert first == fingerprint(Mode.FAST) != fingerprint(Mode.SLOW)
    assert not marker.opaque
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert fingerprint(Mode.FAST) != first


@dataclasses.dataclass(frozen=True)
class Settings:
    width: int


@pytest.mark.parametrize("value", [object(), Settings(3), {1, 2}, (3).__add__])
def test_a_manifest_of_what_cannot_be_looked_into_is_not_complete(value: Any) -> None:
    kernel = define(
        "def kernel(out):\n    tl.store(out, 1 if V is None else 2)\n", V=constexpr(value)
    )
    manifest = stored(compiled(kernel).dependencies)
    assert not manifest["complete"]


def test_a_manifest_of_functions_that_cannot_be_found_is_not_complete() -> None:
    made = [define("def f(x):\n    return x + 1\n", "f")]

    @constexpr_function
    def choose() -> DeviceFunction:
        return made[0]

    kernel = define("def kernel(out):\n    tl.store(out, choose()(1))\n", choose=choose)
    assert not stored(compiled(kernel).dependencies)["complete"]


@constexpr_function
def known(x: int) -> int:
    return x + 1


def plain(x: int, y: int = 2) -> int:
    return x


class Opaque:
    pass


def test_fingerprints_tell_values_apart() -> None:
    values = [
        1, 1.0, True, "1", None, (1,), (1.0,), ((1,),), (1, 1), tl.int32, tl.float32, math_module(),
        known, plain, jit(plain), Opaque, Opaque(), Opaque(), tl.exp, tl.load, -0.0, 0.0,
        tl.pointer_type(tl.int32), 1j, b"1",
    ]  # fmt: skip
    marks = [fingerprint(value) for value in values]
    assert len(set(marks)) == len(values)
    assert fingerprint(constexpr(1)) == fingerprint(1)
    assert fingerprint([1, 2]) == fingerprint((1, 2)) == fingerprint(tl.tuple((1, 2)))


def math_module() -> types.ModuleType:
    import math

    return math


def test_functions_without_text_are_told_apart() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x):\n    return x + 1\ndef g(x):\n    return x + 2\n", scope)
    first, second = fingerprint(scope["f"]), fingerprint(scope["g"])
    assert first.split()[2:] != second.split()[2:]
