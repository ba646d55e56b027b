"""Argument binding: from the arguments of a launch to what is compiled for and what is passed.

This is the path that every launch can take. Anything faster must agree with it.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tritium import knobs
from tritium.diagnostics import error
from tritium.frontend import specialize
from tritium.frontend.specialize import (
    ConstantSpec,
    Parameter,
    PointerSpec,
    ScalarSpec,
    Spec,
    TupleSpec,
)
from tritium.ops.callable import DeviceFunction
from tritium.ops.constexpr import constexpr

from . import arrays
from .arrays import ArrayArgument, Elsewhere
from .options import DEFAULTS, Options

Grid: TypeAlias = tuple[int, int, int]

MOST_PROGRAMS = (1 << 31) - 1
"""Along an axis: program ids are int32."""


class Bound:
    """The arguments of one launch.

    ``values`` holds every parameter by name as the caller gave it, defaults included; ``described``
    the same with an ``ArrayArgument`` in place of each array, in tuples too; ``specs`` what is
    compiled for.
    """

    __slots__ = ("described", "options", "specs", "values")

    def __init__(
        self,
        values: dict[str, Any],
        described: dict[str, Any],
        specs: dict[str, Spec],
        options: Options,
    ) -> None:
        self.values = values
        self.described = described
        self.specs = specs
        self.options = options

    @property
    def key(self) -> Any:
        """Finds compiled code: equal for launches that can share it, now.

        Of the knobs it has those that code depends on and that are no options of the launch.
        """
        cpu = (knobs.cpu.target, knobs.cpu.features)
        return (tuple(self.specs.values()), self.options, cpu, knobs.language.fp32_default)

    def leaves(self) -> Iterator[tuple[str, ScalarSpec | PointerSpec, Any]]:
        """Name, spec and described value of each run-time parameter, tuples element by element.

        They are the parameters of the compiled function, in its order.
        """
        for name, spec in self.specs.items():
            yield from _leaves(name, spec, self.described[name])

    def arrays(self) -> Iterator[tuple[str, ArrayArgument]]:
        """Name and description of each array among them."""
        for name, _, value in self.leaves():
            if isinstance(value, ArrayArgument):
                yield name, value


def _leaves(
    name: str, spec: Spec, value: Any
) -> Iterator[tuple[str, ScalarSpec | PointerSpec, Any]]:
    if isinstance(spec, TupleSpec):
        for place, (each, part) in enumerate(zip(spec.elements, value)):
            yield from _leaves(f"{name}.{place}", each, part)
    elif not isinstance(spec, ConstantSpec):
        yield name, spec, value


class Binder:
    """Binds the arguments of one kernel. ``rules`` say how each parameter is specialised.

    ``positional`` are the names of the parameters that are given by position.
    """

    def __init__(
        self,
        function: DeviceFunction,
        rules: Mapping[str, Parameter],
        debug: bool | None = None,
    ) -> None:
        self.kernel = function.__name__
        self.rules = rules
        self.debug = debug
        self._parameters = function.python_signature.parameters
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.positional = [n for n, p in self._parameters.items() if p.kind in positional]
        variadic = [n for n, p in self._parameters.items() if p.kind is p.VAR_POSITIONAL]
        self._variadic = variadic[0] if variadic else None

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Bound:
        """Bind as a Python call does; keywords that are no parameters are launch options.

        Raises E0502 for a missing argument, E0503 for an unknown keyword, E0504 for too many
        positional arguments, E0505 for two values of one parameter; E0501, E0512, E0513 and E0515
        for arguments that a kernel can't take.
        """
        values, given = self._assign(args, keywords)
        options = Options(given, self.kernel, self.debug)
        described = self._describe(values)
        specs = {
            name: specialize.specialize_arg(_for_compiler(value), self.rules[name], self.kernel)
            for name, value in described.items()
        }
        return Bound(values, described, specs, options)

    def _assign(
        self, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if len(args) > len(self.positional) and self._variadic is None:
            raise error(
                "E0504",
                kernel=self.kernel,
                most=len(self.positional),
                got=len(args),
                hint=f"parameters: {', '.join(self._parameters)}",
            )
        given = dict(zip(self.positional, args))
        if self._variadic is not None:
            given[self._variadic] = tuple(args[len(self.positional) :])
        options: dict[str, Any] = {}
        for name, value in keywords.items():
            if name in given:
                raise error("E0505", kernel=self.kernel, name=name, argument=name)
            known = name in self._parameters
            if known:
                given[name] = value
            if name in DEFAULTS:
                options[name] = value.value if isinstance(value, constexpr) else value
            elif not known:
                raise error(
                    "E0503",
                    kernel=self.kernel,
                    name=name,
                    parameters=", ".join(self._parameters),
                    argument=name,
                )
        return {name: self._value(name, given) for name in self._parameters}, options

    def _value(self, name: str, given: Mapping[str, Any]) -> Any:
        if name in given:
            return given[name]
        parameter = self._parameters[name]
        if parameter.default is not parameter.empty:
            return parameter.default
        known = self.rules[name].is_constexpr
        what = "it is a tl.constexpr" if known else "it has no default"
        raise error(
            "E0502", kernel=self.kernel, name=name, hint=f"{what}: pass {name}=...", argument=name
        )

    # ---- arrays ----------------------------------------------------------------------------------

    def _describe(self, values: Mapping[str, Any]) -> dict[str, Any]:
        devices: dict[str, Elsewhere | None] = {}
        described = {
            name: value
            if self.rules[name].is_constexpr
            else self._described(value, name, name, devices)
            for name, value in values.items()
        }
        far = [(name, problem) for name, problem in devices.items() if problem is not None]
        if not far:
            return described
        name, problem = far[0]
        names = {each: "cpu" if at is None else at.device for each, at in devices.items()}
        if len(set(names.values())) > 1 and problem.tensor:
            raise error(
                "E0512",
                kernel=self.kernel,
                devices=", ".join(f"{each} on {device}" for each, device in names.items()),
                argument=name.partition(".")[0],
            )
        raise arrays.elsewhere(problem, self.kernel, name)

    def _described(
        self, value: Any, name: str, parameter: str, devices: dict[str, Elsewhere | None]
    ) -> Any:
        """``value`` with its arrays described; where each is goes to ``devices``."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, tuple):
            parts = [
                self._described(each, f"{name}.{place}", parameter, devices)
                for place, each in enumerate(value)
            ]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        try:
            found = arrays.describe(value, self.kernel, name, parameter)
        except Elsewhere as problem:
            devices[name] = problem
            return None
        if found is None:
            self._check_number(value, name, parameter)
            return value
        devices[name] = None
        return found

    def _check_number(self, value: Any, name: str, parameter: str) -> None:
        if not hasattr(value, "dtype") or not hasattr(value, "item"):
            return
        kind = "int" if hasattr(value, "__index__") else "float"
        kind = "bool" if str(value.dtype) == "bool" else kind
        raise error(
            "E0501",
            kernel=self.kernel,
            name=name,
            type=f"NumPy's {value.dtype}",
            hint=f"pass {kind}({name})",
            argument=parameter,
        )


def _for_compiler(value: Any) -> Any:
    if isinstance(value, ArrayArgument):
        return specialize.ArrayArgument(value.element, value.address)
    if isinstance(value, tuple):
        parts = map(_for_compiler, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


# ---- the grid ------------------------------------------------------------------------------------

GridLike: TypeAlias = "int | Sequence[int] | Callable[[dict[str, Any]], int | Sequence[int]]"


def resolve_grid(grid: GridLike, values: Mapping[str, Any], kernel: str) -> Grid:
    """The three extents of a grid given as integers, or as a function of the bound arguments.

    Raises E0511 for anything else, E0510 for extents that are negative or too large.
    """
    given: Any = grid(dict(values)) if callable(grid) else grid
    # Arrays can be asked for an index whatever their shape.
    has_axes = bool(getattr(given, "shape", ()))
    single = isinstance(given, (int, constexpr)) or (hasattr(given, "__index__") and not has_axes)
    try:
        extents = [operator.index(each) for each in ([given] if single else given)]
    except TypeError:
        raise error("E0511", kernel=kernel, got=_shown(given), argument="grid") from None
    extra = extents[3:]
    if not extents or any(each != 1 for each in extra):
        raise error("E0511", kernel=kernel, got=_shown(given), argument="grid")
    shown = tuple(extents)
    if min(extents) < 0:
        raise error(
            "E0510",
            kernel=kernel,
            grid=shown,
            text="has a negative extent",
            hint="an extent of 0 launches nothing",
            argument="grid",
        )
    x, y, z = (*extents[:3], 1, 1)[:3]
    if max(x, y, z) > MOST_PROGRAMS or x * y * z >= 1 << 63:
        raise error(
            "E0510",
            kernel=kernel,
            grid=shown,
            text="is too large",
            hint=f"an axis has up to {MOST_PROGRAMS} programs",
            argument="grid",
        )
    return x, y, z


def _shown(given: Any) -> str:
    return f"{given!r} ({type(given).__name__})"
