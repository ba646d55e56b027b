"""From a Python function to tile IR: names, syntax, control flow, specialisation."""

from __future__ import annotations

from .dependencies import Dependencies, verify
from .specialize import (
    ArrayArgument,
    ConstantSpec,
    Parameter,
    PointerSpec,
    ScalarSpec,
    Spec,
    TraceResult,
    TupleSpec,
    parameters,
    specialize_arg,
    trace,
)
from .tracer import CompileTracer, TraceOptions

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
