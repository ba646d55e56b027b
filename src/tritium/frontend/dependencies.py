"""What a compilation read besides its arguments: sources of functions, globals, attributes.

The compile cache keeps the manifest beside the code, and verifies it before it uses that code
again: a kernel is compiled anew when a helper's text or a constant has changed.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from tritium.diagnostics import TritiumError
from tritium.ir.dtypes import Type
from tritium.ops.callable import ConstexprFunction, DeviceFunction
from tritium.ops.constexpr import unwrap
from tritium.ops.source import capture
from tritium.ops.tuples import TileTuple

_MISSING: Any = object()
_PLAIN = (bool, int, float, complex, str, bytes)


def in_library(module: str | None) -> bool:
    """Whether that is a module of Tritium, whose text the compiler's own version stands for."""
    return (module or "").partition(".")[0] == "tritium"


def source_hash(function: Any) -> str:
    """A hash of a Python function's text, or of its code where there is no text."""
    try:
        return capture(function).hash
    except TritiumError:
        code = function.__code__
        return hashlib.sha256(repr((code.co_code, code.co_consts)).encode()).hexdigest()


def fingerprint(value: Any) -> str:
    """A text that changes when the value does, the same in every process.

    For objects it can't look into it may differ from process to process, never agree wrongly.
    """
    value = unwrap(value)
    if isinstance(value, Type) or value is None:
        return str(value)
    if type(value) in _PLAIN:
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (tuple, list, TileTuple)):
        return f"({', '.join(map(fingerprint, value))})"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    name = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
    if isinstance(value, (DeviceFunction, ConstexprFunction)):
        value = value.fn
    if isinstance(value, FunctionType):
        defaults = fingerprint(value.__defaults__ or ())
        return f"function {name} {source_hash(value)} {defaults}"
    if isinstance(value, type) or in_library(getattr(value, "__module__", None)):
        return name
    return f"object {type(value).__module__}:{type(value).__qualname__} {value!r}"


@dataclass
class Reads:
    """What one function read: the values of its global and closure names.

    ``path`` leads to the function from the kernel: the names (``@owner:attribute`` for attributes)
    to look up one after the other; None where it was reached in another way.
    """

    function: DeviceFunction
    path: tuple[str, ...] | None
    names: dict[str, Any] = field(default_factory=dict)


class Dependencies:
    """Collects what a compilation reads."""

    def __init__(self) -> None:
        self.functions: dict[int, Reads] = {}
        self.attributes: dict[str, tuple[Any, str, Any]] = {}

    def enter(self, function: DeviceFunction, caller: Reads | None) -> Reads:
        """Note that ``function`` is compiled as part of the kernel; what it reads goes there."""
        known = self.functions.get(id(function))
        if known is None:
            known = Reads(function, () if caller is None else self._path(function, caller))
            self.functions[id(function)] = known
        return known

    def arguments(self, constants: Mapping[str, Any]) -> None:
        """Note the functions among the kernel's compile-time arguments."""
        for name, value in constants.items():
            for step, function in _functions_in(name, value):
                self.functions.setdefault(id(function), Reads(function, (f"={step}",)))

    def _path(self, function: DeviceFunction, caller: Reads) -> tuple[str, ...] | None:
        if caller.path is not None:
            for name, value in caller.names.items():
                if unwrap(value) is function:
                    return (*caller.path, name)
        for key, (_, _, value) in self.attributes.items():
            if unwrap(value) is function:
                return (f"@{key}",)
        return None

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Note that ``owner.name`` was read, where ``owner`` is a module or a class."""
        module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
        if in_library(module):
            return
        inside = "" if isinstance(owner, ModuleType) else f"{owner.__qualname__}."
        self.attributes[f"{module}:{inside}{name}"] = (owner, name, value)

    def changed(self) -> str | None:
        """The first name whose value is no longer what was read, None if all are."""
        for reads in self.functions.values():
            for name, value in reads.names.items():
                if _differs(lookup(reads.function, name), value):
                    return name
        for key, (owner, name, value) in self.attributes.items():
            if _differs(getattr(owner, name, _MISSING), value):
                return key
        return None

    def manifest(self) -> dict[str, Any]:
        """Everything read, as plain data with fingerprints; ``verify`` takes it."""
        return {
            "functions": [
                {
                    "path": None if reads.path is None else list(reads.path),
                    "function": fingerprint(reads.function),
                    "names": {name: fingerprint(value) for name, value in reads.names.items()},
                }
                for reads in self.functions.values()
                if not in_library(reads.function.__module__)
            ],
            "attributes": {
                key: fingerprint(value) for key, (_, _, value) in self.attributes.items()
            },
        }


def verify(
    manifest: Mapping[str, Any], function: DeviceFunction, constants: Mapping[str, Any]
) -> str | None:
    """The first thing a manifest lists that is different now, None if nothing is.

    ``function`` is the kernel and ``constants`` its compile-time arguments, from which the paths of
    the manifest start.
    """
    for entry in manifest["functions"]:
        path = entry["path"]
        if path is None:
            return str(entry["function"])
        found = _follow(function, path, constants)
        if found is _MISSING or fingerprint(found) != entry["function"]:
            return str(path[-1]) if path else function.__name__
        for name, recorded in entry["names"].items():
            if fingerprint(lookup(found, name)) != recorded:
                return str(name)
    for key, recorded in manifest["attributes"].items():
        if fingerprint(_attribute(key)) != recorded:
            return str(key)
    return None


def lookup(function: DeviceFunction, name: str) -> Any:
    """The closure or global value of a name in a function; a unique object where there is none."""
    python = inspect.unwrap(function.fn)
    code = python.__code__
    if name in code.co_freevars:
        cells = python.__closure__ or ()
        try:
            return cells[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return _MISSING
    return python.__globals__.get(name, _MISSING)


def is_missing(value: Any) -> bool:
    """Whether ``lookup`` found nothing."""
    return value is _MISSING


def _differs(now: Any, before: Any) -> bool:
    return now is not before and fingerprint(now) != fingerprint(before)


def _follow(function: DeviceFunction, path: list[str], constants: Mapping[str, Any]) -> Any:
    at: Any = function
    for step in path:
        if step.startswith("@"):
            at = unwrap(_attribute(step[1:]))
        elif step.startswith("="):
            name, *places = step[1:].split(".")
            at = constants.get(name, _MISSING)
            for place in places:
                at = unwrap(at)[int(place)]
            at = unwrap(at)
        else:
            at = unwrap(lookup(at, step))
        if not isinstance(at, DeviceFunction):
            return _MISSING
    return at


def _attribute(key: str) -> Any:
    module, _, chain = key.partition(":")
    at: Any = sys.modules.get(module, _MISSING)
    for name in chain.split("."):
        at = getattr(at, name, _MISSING)
    return at


def _functions_in(name: str, value: Any) -> Iterator[tuple[str, DeviceFunction]]:
    value = unwrap(value)
    if isinstance(value, DeviceFunction):
        yield name, value
    elif isinstance(value, (tuple, list, TileTuple)):
        for place, each in enumerate(value):
            yield from _functions_in(f"{name}.{place}", each)
