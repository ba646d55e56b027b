"""``tl.core``: what other libraries import from Triton's module of that name.

Besides the names below it holds everything that ``tl`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritium.ir.dtypes import get_int_dtype as get_int_dtype
from tritium.ops.aggregates import aggregate as _aggregate  # noqa: F401 - Triton's name
from tritium.ops.aggregates import aggregate_replace as aggregate_replace
from tritium.ops.constexpr import constexpr, unwrap
from tritium.ops.emit import SURFACE, surface
from tritium.ops.later import unsupported

from . import names, random, standard  # noqa: F401 - the latter two add to the tables

CONSTEXPR_0 = constexpr(0)

_unwrap_if_constexpr = unwrap


def builtin(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a Python function that kernels may call, with surface values as arguments."""
    return surface(name="")(fn)


def is_builtin(fn: object) -> bool:
    """Whether a function is one of the language's, or made by ``builtin``."""
    return getattr(fn, "is_surface", False) is True


extern = builtin
extern_elementwise = surface(name="")(
    unsupported("tl.core.extern_elementwise", "calls of foreign code")
)

globals().update(names.VALUES)
globals().update(SURFACE)
