"""The operations that have no rule: a backend's writer of kernels places them itself."""

from __future__ import annotations

from tritium.ir.core import REGISTRY
from tritium.ops import (
    atomic,
    bins,
    control,
    create,
    dot,
    hints,
    map,
    memory,
    program,
    rearrange,
    reduce,
    report,
    scan,
    shape,
    sort,
)

_MODULES = (
    atomic,
    bins,
    control,
    create,
    dot,
    hints,
    map,
    memory,
    program,
    rearrange,
    reduce,
    report,
    scan,
    shape,
    sort,
)
_FAMILIES = {module.__name__.rpartition(".")[2] for module in _MODULES}

STRUCTURAL = frozenset(name for name, cls in REGISTRY.items() if cls.family in _FAMILIES)
"""Their mnemonics; every other operation needs a rule in ``common``."""
