"""Finds a kernel in the cache before it is traced.

A manifest is kept under a key of what is known without tracing: the kernel's text, what it is
specialised for, options, target and the compiler. It holds the tile IR, and lists what tracing read
besides, with fingerprints; where one of them differs, the kernel is traced again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tritium import knobs
from tritium.frontend.dependencies import Dependencies, Span, recall
from tritium.frontend.fingerprint import Marker
from tritium.frontend.specialize import ConstantSpec, PointerSpec, ScalarSpec, Spec, TupleSpec

from . import cache

_STRING = r'(?P<file>"(?:[^"\\]|\\.)*")'
_PLACE = rf"{_STRING}(?P<between>:|, line = )(?P<line>\d+)(?P<column>:\d+)?(?: to (?P<end>\d+):)?"
"""A place of an operation, ``"file":1:2 to 3:4``, or attributes ``file = "file", line = 1``."""
if TYPE_CHECKING:
    from tritium.backends.llvm import Target

    from .binder import Bound
    from .jit import JITFunction


class Found(NamedTuple):
    """A kernel in tile IR, and what its compilation read as it is now.

    ``ir`` is what machine code is made of, ``located`` the same with the operations' places.
    """

    ir: str
    located: str
    dependencies: Dependencies


def key(kernel: JITFunction, bound: Bound, target: Target) -> str | None:
    """The name of the manifest; None where the arguments have no key that other processes share.

    Raises E0118 where there is no source.
    """
    marker = Marker()
    parts = [
        f"{kernel.__module__}:{kernel.__qualname__}",
        marker.mark(kernel),
        *(f"{name}: {_spec_text(spec, marker)}" for name, spec in bound.specs.items()),
        *(f"{name}={marker.mark(value)}" for name, value in bound.options.items()),
        # What else the front end looks at.
        f"{knobs.language.fp32_default} {knobs.compilation.allow_non_constexpr_globals}",
        f"{sys.version_info[:2]} {np.__version__}",
        target.key,
    ]
    return None if marker.opaque else cache.key("manifest", *parts)


def find(name: str, kernel: JITFunction, bound: Bound) -> Found | None:
    """What a manifest tells, None where there is none that holds."""
    entry = cache.load(name, cache.MANIFEST_SUFFIX)
    if entry is None:
        return None
    try:
        found = recall(entry.facts["reads"], kernel, _constants(bound.specs))
        if isinstance(found, str):
            return None
        ir, located = (
            moved(entry.sections[name].decode(), found.moves) for name in ("ir", "located")
        )
        return Found(ir, located or ir, found)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        # Its checksum is right, but it isn't made as this version makes them.
        return None


def keep(name: str, kernel: JITFunction, made: Found) -> None:
    """Keep the manifest of a kernel that was traced, unless another process couldn't verify it."""
    reads = made.dependencies.manifest()
    if reads["complete"]:
        facts = {"kernel": kernel.__name__, "reads": reads}
        located = "" if made.located == made.ir else made.located
        sections = {"ir": made.ir.encode(), "located": located.encode()}
        cache.store(name, cache.Entry(facts, sections), cache.MANIFEST_SUFFIX)


def moved(text: str, moves: Sequence[tuple[Span, Span]]) -> str:
    """Tile IR whose places, and those that assertions name, are where functions stand now."""
    if not moves:
        return text

    def place(found: re.Match[str]) -> str:
        name, line = json.loads(found["file"]), int(found["line"])
        for before, now in moves:
            if name == before.file and before.first <= line <= before.last:
                down = now.first - before.first
                end = f" to {int(found['end']) + down}:" if found["end"] else ""
                between, column = found["between"], found["column"] or ""
                return f"{json.dumps(now.file)}{between}{line + down}{column}{end}"
        return found[0]

    return re.sub(_PLACE, place, text)


def _spec_text(spec: Spec, marker: Marker) -> str:
    if isinstance(spec, ConstantSpec):
        return f"constant {marker.mark(spec.value)}"
    if isinstance(spec, ScalarSpec):
        return f"{spec.dtype} {spec.divisible}"
    if isinstance(spec, PointerSpec):
        return f"*{spec.dtype} {spec.divisible} {spec.const}"
    elements = "; ".join(_spec_text(each, marker) for each in spec.elements)
    return f"{spec.fields} ({elements})"


def _constants(specs: Mapping[str, Spec]) -> dict[str, Any]:
    """The values that are compiled in, by parameter; None for those that aren't."""
    return {name: _constant(spec) for name, spec in specs.items()}


def _constant(spec: Spec) -> Any:
    if isinstance(spec, ConstantSpec):
        return spec.value
    return tuple(map(_constant, spec.elements)) if isinstance(spec, TupleSpec) else None
