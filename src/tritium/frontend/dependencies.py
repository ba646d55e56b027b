"""What a compilation read besides its arguments: sources of functions, globals, attributes.

The compile cache keeps the manifest beside the code, and verifies it before it uses that code
again: a kernel is compiled anew when a helper's text or a constant has changed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from tritium.diagnostics import TritiumError
from tritium.ops.callable import DeviceFunction
from tritium.ops.constexpr import unwrap
from tritium.ops.source import capture
from tritium.ops.tuples import TileTuple

from .fingerprint import MISSING, Marker, fingerprint, in_library, lookup, runs_on_the_host


class Reads:
    """What one function read: the values of its global and closure names.

    ``path`` leads to the function from the kernel: the names (``@owner:attribute`` for attributes)
    to look up one after the other; None where it was reached in another way. ``names`` has
    ``MISSING`` for names that were looked for and not found.
    """

    __slots__ = ("function", "names", "path")

    def __init__(
        self,
        function: DeviceFunction,
        path: tuple[str, ...] | None,
        names: dict[str, Any] | None = None,
    ) -> None:
        self.function = function
        self.path = path
        self.names = {} if names is None else names


class Span(NamedTuple):
    """The lines of a file in which a function stands."""

    file: str
    first: int
    last: int

    @classmethod
    def of(cls, function: DeviceFunction) -> Span:
        """Of the function's text, from ``def`` on; no lines where there is none."""
        try:
            source = capture(function.fn)
        except TritiumError:
            return cls(inspect.unwrap(function.fn).__code__.co_filename, 0, 0)
        return cls(source.file, source.tree.lineno, source.tree.end_lineno or 0)


class Dependencies:
    """Collects what a compilation reads."""

    def __init__(self) -> None:
        self.functions: dict[int, Reads] = {}
        self.attributes: dict[str, tuple[Any, str, Any]] = {}
        self.constants: dict[str, Any] = {}
        self.moves: list[tuple[Span, Span]] = []
        """Where functions of a manifest stood, and stand now, where that differs."""
        self._hosts: list[tuple[str, Any, str]] = []
        """Python functions that the compilation called, and their fingerprints at that time."""
        self._globals: list[tuple[dict[str, Any], str, Any]] | None = None
        """Once the compilation is over: dictionaries, names and values of what was read."""

    def enter(self, function: DeviceFunction, caller: Reads | None) -> Reads:
        """Note that ``function`` is compiled as part of the kernel; what it reads goes there."""
        known = self.functions.get(id(function))
        if known is None:
            known = Reads(function, () if caller is None else self._path(function, caller))
            self.functions[id(function)] = known
        return known

    def arguments(self, constants: Mapping[str, Any]) -> None:
        """Note the kernel's compile-time arguments, and the functions among them."""
        self.constants = dict(constants)
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

    def seal(self) -> Dependencies:
        """Note what Python functions stand for now that the compilation has called them."""
        found = [
            *(
                (name, value)
                for each in self.functions.values()
                for name, value in each.names.items()
            ),
            *((key, value) for key, (_, _, value) in self.attributes.items()),
            *self.constants.items(),
        ]
        self._hosts = [
            (name, value, fingerprint(value)) for name, value in found if runs_on_the_host(value)
        ]
        return self

    def _is_untouched(self) -> bool:
        """Whether every global is the very object that was read, and nothing else was read."""
        if self.attributes or self._hosts:
            return False
        if self._globals is None:
            found = []
            for reads in self.functions.values():
                python: Any = inspect.unwrap(reads.function.fn)
                if not reads.names.keys().isdisjoint(python.__code__.co_freevars):
                    return False
                found += [(python.__globals__, *item) for item in reads.names.items()]
            self._globals = found
        for names, name, value in self._globals:  # noqa: SIM110 - half the time
            if names.get(name, MISSING) is not value:
                return False
        return True

    @property
    def calls_python(self) -> bool:
        """Whether the compilation called Python functions, which may read anything."""
        return bool(self._hosts)

    def changed(self) -> str | None:
        """The first name whose value is no longer what was read, None if all are."""
        if self._is_untouched():
            return None
        for reads in self.functions.values():
            for name, value in reads.names.items():
                if _differs(lookup(reads.function, name), value):
                    return name
        for key, (owner, name, value) in self.attributes.items():
            if _differs(getattr(owner, name, MISSING), value):
                return key
        for name, value, mark in self._hosts:
            if fingerprint(value) != mark:
                return name
        return None

    def manifest(self) -> dict[str, Any]:
        """Everything read, as plain data with fingerprints; ``recall`` takes it.

        ``complete`` is false where another process couldn't tell that something has changed.
        """
        marker = Marker()
        functions = [
            {
                "path": None if reads.path is None else list(reads.path),
                "function": marker.mark(reads.function),
                "span": Span.of(reads.function),
                "names": {name: marker.mark(value) for name, value in reads.names.items()},
            }
            for reads in self.functions.values()
            if not in_library(reads.function.__module__)
        ]
        attributes = {key: marker.mark(value) for key, (_, _, value) in self.attributes.items()}
        reached = all(each["path"] is not None for each in functions) and all(
            _owner(key) is owner for key, (owner, _, _) in self.attributes.items()
        )
        return {
            "functions": functions,
            "attributes": attributes,
            "complete": reached and not marker.opaque,
        }


def recall(
    manifest: Mapping[str, Any], function: DeviceFunction, constants: Mapping[str, Any]
) -> Dependencies | str:
    """What a manifest lists, as it is now; the first thing that is different if any is.

    ``function`` is the kernel and ``constants`` its compile-time arguments, from which the paths of
    the manifest start.
    """
    made = Dependencies()
    made.constants = dict(constants)
    for entry in manifest["functions"]:
        path = entry["path"]
        if path is None:
            return str(entry["function"])
        found = _follow(function, path, constants)
        if found is MISSING or fingerprint(found) != entry["function"]:
            return str(path[-1]) if path else function.__name__
        before, now = Span(*entry["span"]), Span.of(found)
        if before != now:
            made.moves.append((before, now))
        reads = made.functions[id(found)] = Reads(found, tuple(path))
        for name, recorded in entry["names"].items():
            value = reads.names[name] = lookup(found, name)
            if fingerprint(value) != recorded:
                return str(name)
    for key, recorded in manifest["attributes"].items():
        value = _attribute(key)
        if fingerprint(value) != recorded:
            return str(key)
        made.attributes[key] = (_owner(key), _last(key), value)
    return made.seal()


def verify(
    manifest: Mapping[str, Any], function: DeviceFunction, constants: Mapping[str, Any]
) -> str | None:
    """The first thing a manifest lists that is different now, None if nothing is."""
    found = recall(manifest, function, constants)
    return found if isinstance(found, str) else None


def _differs(now: Any, before: Any) -> bool:
    return now is not before and fingerprint(now) != fingerprint(before)


def _follow(function: DeviceFunction, path: list[str], constants: Mapping[str, Any]) -> Any:
    at: Any = function
    for step in path:
        if step.startswith("@"):
            at = unwrap(_attribute(step[1:]))
        elif step.startswith("="):
            name, *places = step[1:].split(".")
            at = constants.get(name, MISSING)
            for place in places:
                at = unwrap(at)[int(place)]
            at = unwrap(at)
        else:
            at = unwrap(lookup(at, step))
        if not isinstance(at, DeviceFunction):
            return MISSING
    return at


def _owner(key: str) -> Any:
    """The module or class of an attribute's key, ``module:Class.attribute``."""
    module, _, chain = key.partition(":")
    at: Any = sys.modules.get(module, MISSING)
    for name in chain.split(".")[:-1]:
        at = getattr(at, name, MISSING)
    return at


def _last(key: str) -> str:
    return key.rpartition(":")[2].rpartition(".")[2]


def _attribute(key: str) -> Any:
    return getattr(_owner(key), _last(key), MISSING)


def _functions_in(name: str, value: Any) -> Iterator[tuple[str, DeviceFunction]]:
    value = unwrap(value)
    if isinstance(value, DeviceFunction):
        yield name, value
    elif isinstance(value, (tuple, list, TileTuple)):
        for place, each in enumerate(value):
            yield from _functions_in(f"{name}.{place}", each)
