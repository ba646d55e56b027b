"""Writes the type stub of ``tritium.language`` from the tables; with --check, compares it.

The names of ``tl`` come from tables, so editors and type checkers can't see them in the source.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tritium.language
from tritium.ir.dtypes import DType
from tritium.language import names
from tritium.ops.callable import DeviceFunction
from tritium.ops.emit import METHODS, SURFACE

STUB = Path(tritium.language.__file__).with_suffix(".pyi")

HEAD = '''"""What kernels import as ``tl``.

Written by scripts/generate_stubs.py: change the source, not this file.
"""

from typing import Any

from tritium.ir.dtypes import DType as dtype
from tritium.ir.types import PointerType as pointer_type
from tritium.ir.types import TileType as block_type
from tritium.ops.arith import PropagateNan as PropagateNan
from tritium.ops.constexpr import constexpr as constexpr
from tritium.ops.hints import Condition as condition
from tritium.ops.hints import Range as range
from tritium.ops.hints import StaticRange as static_range
from tritium.ops.tile import Tile
from tritium.ops.tuples import TileTuple as tuple

from . import core as core
from . import math as math
from . import random as random
from . import standard as standard
from .names import const as const
'''

IMPORTED = {
    "PropagateNan",
    "block_type",
    "condition",
    "const",
    "constexpr",
    "dtype",
    "pointer_type",
    "range",
    "static_range",
    "tuple",
}
WIDTH = 100
RETURNED = {"Tile": "tensor", "TileTuple": "tuple", "None": "None"}


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a surface function or of a composite."""
    if isinstance(function, DeviceFunction):
        return function.python_signature
    return inspect.signature(function)


def parameters(signature: inspect.Signature, first: str | None = None) -> list[str]:
    """The parameters as they stand in the stub; ``first`` replaces the first one's name."""
    parts = []
    star = False
    for position, parameter in enumerate(signature.parameters.values()):
        name = parameter.name
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            parts.append(f"*{name}: Any")
            star = True
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            parts.append(f"**{name}: Any")
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if position == 0 and first is not None:
            parts.append(first)
        elif parameter.default is inspect.Parameter.empty:
            parts.append(f"{name}: Any")
        else:
            parts.append(f"{name}: Any = {default_text(parameter.default)}")
    if first is not None and not parts[0].startswith(first):
        parts.insert(0, first)
    return parts


def default_text(value: Any) -> str:
    """A parameter's default as it stands in the stub."""
    return str(value) if isinstance(value, enum.Enum) else repr(value)


def function_stub(name: str, function: Callable[..., Any], first: str | None = None) -> str:
    """One function with its documentation, or one method with the beginning of it."""
    signature = signature_of(function)
    returned = RETURNED.get(str(signature.return_annotation), "Any")
    parts = parameters(signature, first)
    margin = "" if first is None else "    "
    head = f"{margin}def {name}({', '.join(parts)}) -> {returned}:"
    if len(head) > WIDTH:
        listed = "".join(f"{margin}    {part},\n" for part in parts)
        head = f"{margin}def {name}(\n{listed}{margin}) -> {returned}:"
    return f"{head}\n{documentation(function, first is not None)}\n"


def documentation(function: Callable[..., Any], of_method: bool) -> str:
    """The docstring; of a method its first paragraph, the rest stands at the function."""
    text = (inspect.getdoc(function) or "").strip()
    margin = "    "
    if of_method:
        margin = "        "
        text = textwrap.fill(" ".join(text.partition("\n\n")[0].split()), WIDTH - len(margin) - 6)
    lines = f'"""{text}'.splitlines()
    lines[-1:] = [lines[-1], '"""'] if len(lines) > 1 else [lines[-1] + '"""']
    return "\n".join(f"{margin}{line}".rstrip() for line in lines)


def stub() -> str:
    """The text of the stub."""
    constants = []
    for name, value in names.VALUES.items():
        if name in IMPORTED or name in ("slice", "tensor"):
            continue
        kind = "dtype" if isinstance(value, DType) else type(value).__name__
        constants.append(f"{name}: {'pointer_type' if kind == 'PointerType' else kind}\n")
    methods = [
        function_stub(name, METHODS[name], "self")
        for name in sorted(METHODS)
        if not name.startswith("_")
    ]
    functions = [function_stub(name, SURFACE[name]) for name in sorted(SURFACE)]
    tensor = 'class tensor(Tile):\n    """A tile, or a scalar where its shape is ()."""\n\n'
    parts = [HEAD, "".join(constants), tensor + "\n".join(methods), "\n".join(functions)]
    return "\n".join(parts)


def main() -> int:
    """Write the stub, or say that it is stale; the exit status is 1 if it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    text = stub()
    if STUB.is_file() and STUB.read_text(encoding="utf-8") == text:
        return 0
    if check:
        print(f"{STUB.name} is stale: run scripts/generate_stubs.py")
        return 1
    STUB.write_text(text, encoding="utf-8")
    print(f"{STUB.name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
