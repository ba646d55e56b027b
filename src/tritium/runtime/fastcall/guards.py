"""What compiled code depends on beside its arguments, for native code to look at."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

from tritium.backends.host.layout import Guard
from tritium.frontend.dependencies import Dependencies, Reads
from tritium.frontend.fingerprint import MISSING, in_library, lookup

from .arguments import Unusual


class Watched(NamedTuple):
    """A ``Guard``: ``value`` is ``MISSING`` where there was none."""

    kind: int
    owner: Any
    name: str
    value: Any


def watched(dependencies: Dependencies) -> list[Watched]:
    """What a compilation read, as it is now.

    Raises ``Unusual`` where more than the identity of objects decides.
    """
    if dependencies.calls_python:
        raise Unusual("Python functions that the compilation called")
    found = [
        each
        for reads in dependencies.functions.values()
        if not in_library(reads.function.__module__)
        for each in _names(reads)
    ]
    found += [
        _attribute(owner, sys.intern(name), getattr(owner, name, MISSING))
        for owner, name, _ in dependencies.attributes.values()
    ]
    distinct = {(each.kind, id(each.owner), each.name): each for each in found}
    return list(distinct.values())


def _names(reads: Reads) -> Iterator[Watched]:
    python: Any = inspect.unwrap(reads.function.fn)
    free = python.__code__.co_freevars
    for name in reads.names:
        value = lookup(reads.function, name)
        if name in free:
            yield Watched(Guard.CELL, python.__closure__[free.index(name)], "", value)
        else:
            yield Watched(Guard.ITEM, python.__globals__, name, value)


def _attribute(owner: Any, name: str, value: Any) -> Watched:
    if type(owner) is ModuleType and name in vars(owner):
        return Watched(Guard.ITEM, vars(owner), name, value)
    return Watched(Guard.ATTRIBUTE, owner, name, value)
