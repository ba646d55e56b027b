"""From a kernel and what is known of its arguments to tile IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritium.diagnostics import error
from tritium.ir.core import Function
from tritium.ir.dtypes import Type
from tritium.ir.tracer import tracing
from tritium.ops.blocks import described
from tritium.ops.callable import DeviceFunction
from tritium.ops.control import Return
from tritium.ops.python import wrap
from tritium.ops.recursion import deep_recursion
from tritium.ops.source import capture
from tritium.ops.tile import Tile

from .dependencies import Dependencies
from .specialize import (
    DIVISIBILITY,
    ConstantSpec,
    Parameter,
    Spec,
    TupleSpec,
    parameters,
    specialize_arg,
)
from .tracer import CompileTracer, TraceOptions


@dataclass(frozen=True)
class TraceResult:
    """A kernel in tile IR: its run-time parameters only, what it read, and its constants.

    The elements of a tuple ``t`` are the parameters ``t.0``, ``t.1``, ...; ``constants`` holds the
    parameters that are known, by their names.
    """

    function: Function
    dependencies: Dependencies
    constants: dict[str, Any]


def trace(
    function: DeviceFunction,
    specs: Mapping[str, Spec],
    options: TraceOptions | None = None,
) -> TraceResult:
    """Compile ``function`` to tile IR for arguments that ``specs`` describes, by parameter name.

    A parameter that ``specs`` leaves out has its default, by the rules of ``specialize_arg``.
    Raises E0502 where there is none, and the coded error of whatever the kernel does wrong.
    """
    given = _complete(function, specs)
    flat: list[tuple[str, Type, int]] = []
    constants: dict[str, Any] = {}
    for name, spec in given.items():
        _flatten(name, spec, flat, constants)
    source = capture(function.fn)
    made = Function(function.__name__, flat, source.header_loc())
    arguments = iter(param.value for param in made.params)
    values = {name: _value(spec, arguments) for name, spec in given.items()}
    tracer = CompileTracer(made.body.block, options)
    tracer.dependencies.enter(function, None)
    tracer.dependencies.arguments(constants)
    with tracing(tracer), deep_recursion:
        ended = tracer.run(function, values, None)
        end = Return()
        end.loc = ended.loc or made.loc
        tracer.emit(end)
    return TraceResult(made, tracer.dependencies.seal(), constants)


def _complete(function: DeviceFunction, specs: Mapping[str, Spec]) -> dict[str, Spec]:
    """The specs in the order of the parameters, defaults filled in."""
    complete: dict[str, Spec] = {}
    rules: dict[str, Parameter] | None = None
    for name, declared in function.python_signature.parameters.items():
        if name in specs:
            complete[name] = specs[name]
        elif declared.kind is declared.VAR_POSITIONAL:
            complete[name] = TupleSpec(())
        elif declared.default is declared.empty:
            hint = "every parameter without a default needs an argument"
            raise error("E0502", kernel=function.__name__, name=name, hint=hint)
        else:
            rules = rules or parameters(function)
            complete[name] = specialize_arg(declared.default, rules[name], function.__name__)
    return complete


def _flatten(
    name: str, spec: Spec, flat: list[tuple[str, Type, int]], constants: dict[str, Any]
) -> None:
    if isinstance(spec, ConstantSpec):
        constants[name] = spec.value
    elif isinstance(spec, TupleSpec):
        for place, each in enumerate(spec.elements):
            _flatten(f"{name}.{place}", each, flat, constants)
    else:
        flat.append((name, spec.type, DIVISIBILITY if spec.divisible else 1))


def _value(spec: Spec, arguments: Iterator[Any]) -> Any:
    """The kernel value of a parameter; run-time ones take the next of ``arguments``."""
    if isinstance(spec, ConstantSpec):
        return wrap(spec.value)
    if isinstance(spec, TupleSpec):
        return described((_value(each, arguments) for each in spec.elements), spec.fields)
    return Tile(next(arguments))
