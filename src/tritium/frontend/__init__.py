"""From a Python function to tile IR: names, syntax, control flow, specialisation.

What compiles is loaded when it is first used: code that is in the cache needs none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .dependencies import Dependencies, verify
    from .specialize import (
        ArrayArgument,
        ConstantSpec,
        Parameter,
        PointerSpec,
        ScalarSpec,
        Spec,
        TupleSpec,
        parameters,
        specialize_arg,
    )
    from .tracer import CompileTracer, TraceOptions
    from .tracing import TraceResult, trace

_PLACES = {
    "ArrayArgument": "specialize",
    "CompileTracer": "tracer",
    "ConstantSpec": "specialize",
    "Dependencies": "dependencies",
    "Parameter": "specialize",
    "PointerSpec": "specialize",
    "ScalarSpec": "specialize",
    "Spec": "specialize",
    "TraceOptions": "tracer",
    "TraceResult": "tracing",
    "TupleSpec": "specialize",
    "parameters": "specialize",
    "specialize_arg": "specialize",
    "trace": "tracing",
    "verify": "dependencies",
}

__all__ = [
    "ArrayArgument",
    "CompileTracer",
    "ConstantSpec",
    "Dependencies",
    "Parameter",
    "PointerSpec",
    "ScalarSpec",
    "Spec",
    "TraceOptions",
    "TraceResult",
    "TupleSpec",
    "parameters",
    "specialize_arg",
    "trace",
    "verify",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
