"""Texts that stand for values: equal in every process while the value means the same to a kernel.

What a fingerprint can't look into gets a text of this process's own, so fingerprints may differ
where values are equal, and never agree where they differ.
"""

from __future__ import annotations

import enum
import inspect
import os
import sys
from collections.abc import Iterator
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tritium.diagnostics import TritiumError
from tritium.ir.digest import digest
from tritium.ir.dtypes import Type
from tritium.ops.aggregates import Aggregate, host_constructor
from tritium.ops.callable import BoundConstexprFunction, ConstexprFunction, DeviceFunction
from tritium.ops.constexpr import unwrap
from tritium.ops.source import capture
from tritium.ops.tuples import TileTuple

MISSING: Any = object()
"""Stands for a name without a value."""

_PLAIN = (bool, int, float, complex, str, bytes)
_PROCESS = os.urandom(8).hex()


def in_library(module: str | None) -> bool:
    """Whether that is a module of Tritium, whose text the compiler's own version stands for."""
    return (module or "").partition(".")[0] == "tritium"


def lookup(function: Any, name: str) -> Any:
    """The closure or global value of a name in a function; ``MISSING`` where there is none.

    ``function`` is Python's, or a wrapper that has it as ``fn``.
    """
    python: Any = inspect.unwrap(getattr(function, "fn", function))
    code = python.__code__
    if name in code.co_freevars:
        cells = python.__closure__ or ()
        try:
            return cells[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return MISSING
    return python.__globals__.get(name, MISSING)


def is_missing(value: Any) -> bool:
    """Whether ``lookup`` found nothing."""
    return value is MISSING


def source_hash(function: Any) -> str:
    """A hash of a Python function's text, or of its code where there is no text."""
    try:
        return capture(function).hash
    except TritiumError:
        code = inspect.unwrap(function).__code__
        return digest(_code_text(code).encode()).hexdigest()


def fingerprint(value: Any) -> str:
    """A text that changes when the value does, the same in every process."""
    return Marker().mark(value)


def runs_on_the_host(value: Any) -> bool:
    """Whether that is a Python function which a compilation calls: what it reads counts too."""
    value = unwrap(value)
    if isinstance(value, (tuple, list, TileTuple)):
        return any(map(runs_on_the_host, value))
    if isinstance(value, ConstexprFunction):
        value = value.fn
    value = host_constructor(value) or value
    if not isinstance(value, FunctionType) or in_library(value.__module__):
        return False
    return not _is_foreign(value.__module__)


class Marker:
    """Makes fingerprints. ``opaque`` tells that one of them holds in this process only."""

    def __init__(self) -> None:
        self.opaque = False
        self._visited: dict[Any, int] = {}
        """The functions that the text so far has already, and their numbers."""

    def mark(self, value: Any) -> str:
        """The fingerprint of a value."""
        self._visited.clear()
        return self._mark(value)

    def _mark(self, value: Any) -> str:
        value = unwrap(value)
        if value is MISSING:
            return "missing"
        if isinstance(value, Type) or value is None:
            return str(value)
        if type(value) in _PLAIN:
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, (tuple, list, TileTuple)):
            return self._sequence(value)
        if type(value) is dict:
            return f"dict {self._mark(tuple(value.items()))}"
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return f"{value.dtype.str} {value.tobytes().hex()}"
        if isinstance(value, ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, enum.Enum):
            return self._member(value)
        return self._named(value)

    def _member(self, value: enum.Enum) -> str:
        """A member of an enumeration, with the methods that it has."""
        methods = {
            name: each.fget if isinstance(each, property) else each
            for base in reversed(type(value).__mro__)
            if not _is_foreign(base.__module__)
            for name, each in vars(base).items()
            if isinstance(each, (FunctionType, property))
        }
        shown = self._named(type(value)), value.name, self._mark(value.value)
        return f"{' '.join(shown)} {self._mark(methods)}"

    def _sequence(self, value: Any) -> str:
        fields = getattr(value, "fields", None) or getattr(type(value), "_fields", None)
        names = "" if fields is None else " ".join(map(str, fields)) + ": "
        return f"({names}{', '.join(map(self._mark, value))})"

    def _named(self, value: Any) -> str:
        name = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
        if isinstance(value, BoundConstexprFunction):
            return f"{self._mark(value.instance)}.{name} {self._host(value.fn, name)}"
        if isinstance(value, DeviceFunction):
            known = " ".join(sorted(value.constexpr_names))
            return f"{self._function(value.fn, name)} {known} {value.noinline}"
        if isinstance(value, ConstexprFunction):
            value = value.fn
        if isinstance(value, FunctionType):
            return self._host(value, name)
        if isinstance(value, type) and issubclass(value, Aggregate):
            return self._aggregate(value, name)
        if isinstance(value, (type, BuiltinFunctionType)):
            return f"{type(value).__name__} {name}"
        return self._opaque(value)

    def _aggregate(self, cls: type[Aggregate], name: str) -> str:
        """A class of kernel values: its fields, their defaults, and what makes an instance."""
        defaults = [getattr(cls, field, None) for field in cls._fields]
        constructor = host_constructor(cls)
        made = "" if constructor is None else self._host(constructor, name)
        return f"type {name} {self._mark((tuple(cls._fields.items()), tuple(defaults)))} {made}"

    def _opaque(self, value: Any) -> str:
        self.opaque = True
        return f"object {_PROCESS} {id(value)}"

    def _function(self, value: Any, name: str) -> str:
        """The text of a function and its defaults, not what it reads."""
        if in_library(getattr(value, "__module__", None)):
            return f"function {name}"
        python = inspect.unwrap(value)
        defaults = self._mark((python.__defaults__ or (), python.__kwdefaults__ or {}))
        return f"function {name} {source_hash(value)} {defaults}"

    def _host(self, value: Any, name: str) -> str:
        """A function that runs on the host, with what it and those that it calls read."""
        module = getattr(value, "__module__", None)
        if in_library(module):
            return f"function {name}"
        if _is_foreign(module):
            return f"function {name} {self._version(module)}"
        python = inspect.unwrap(value)
        if python in self._visited:
            return f"function {name} number {self._visited[python]}"
        self._visited[python] = len(self._visited)
        reads = "".join(f"\n{each}={text}" for each, text in self._reads(python))
        return f"{self._function(value, name)}{{{reads}}}"

    def _reads(self, python: Any) -> Iterator[tuple[str, str]]:
        """Names that a Python function may look up, with their fingerprints.

        Of a module every attribute counts whose name stands anywhere in the function.
        """
        names = sorted(_names(python.__code__))
        for name in names:
            value = unwrap(lookup(python, name))
            if value is MISSING:
                continue
            yield name, self._mark(value)
            yield from self._attributes(name, value, names, set())

    def _attributes(
        self, path: str, owner: Any, names: list[str], seen: set[int]
    ) -> Iterator[tuple[str, str]]:
        if not isinstance(owner, (ModuleType, type)):
            return
        module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
        if _is_foreign(module):
            yield path, self._version(module)
        elif not in_library(module) and id(owner) not in seen:
            seen.add(id(owner))
            for name in names:
                value = unwrap(getattr(owner, name, MISSING))
                if value is not MISSING:
                    yield f"{path}.{name}", self._mark(value)
                    yield from self._attributes(f"{path}.{name}", value, names, seen)

    def _version(self, module: str | None) -> str:
        """The version of an installed package; the standard library has Python's."""
        top = (module or "").partition(".")[0]
        if top in sys.stdlib_module_names:
            return sys.version
        version = getattr(sys.modules.get(top), "__version__", None)
        return version if isinstance(version, str) else self._opaque(sys.modules.get(top))


def _names(code: CodeType) -> set[str]:
    """The names that code looks up outside of itself, in functions inside it too."""
    names = {*code.co_names, *code.co_freevars}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            names |= _names(each)
    return names


def _code_text(code: CodeType) -> str:
    consts = [_code_text(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return repr((code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars))


@cache
def _installed() -> tuple[str, ...]:
    import site
    import sysconfig

    paths = sysconfig.get_paths()
    folders = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(os.path.join(each, "") for each in (*folders, site.getusersitepackages()))


def _is_foreign(module: str | None) -> bool:
    """Whether a module is installed, so that a version stands for its text."""
    found = sys.modules.get(module or "")
    if found is None or in_library(module):
        return False
    if (module or "").partition(".")[0] in sys.stdlib_module_names and module != "__main__":
        return True
    return (getattr(found, "__file__", None) or "").startswith(_installed())
