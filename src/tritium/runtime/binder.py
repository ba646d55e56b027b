"""Argument binding: from the arguments of a launch to what is compiled for and what is passed.

This is the path that every launch can take. Anything faster must agree with it.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tritium.diagnostics import TritiumError, error
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

from . import arrays, placement
from .arrays import ANYWHERE, CPU, ArrayArgument, Elsewhere
from .options import DEFAULTS, Options
from .settings import Settings, current

Grid: TypeAlias = tuple[int, int, int]
Leaf: TypeAlias = "tuple[str, ScalarSpec | PointerSpec, Any]"

_PLAIN = frozenset({type(None), bool, int, str})
_MOST_PLAIN = 4096
"""So many specs of plain values a kernel keeps."""

MOST_PROGRAMS = (1 << 31) - 1
"""Along an axis: program ids are int32."""


class Bound:
    """The arguments of one launch.

    ``values`` holds every parameter by name as the caller gave it, defaults included; ``described``
    the same with an ``ArrayArgument`` in place of each array, in tuples too; ``specs`` what is
    compiled for. ``device`` is where the kernel will run: where its arrays are. ``arch`` is what it
    is compiled for instead where there is no such device. ``usual``: there are no arrays but those
    that have an address.
    """

    __slots__ = (
        "_leaves",
        "_leaves_of",
        "arch",
        "described",
        "device",
        "options",
        "settings",
        "specs",
        "usual",
        "values",
    )

    def __init__(
        self,
        values: dict[str, Any],
        described: dict[str, Any],
        specs: dict[str, Spec],
        options: Options,
        settings: Settings,
        device: str = ANYWHERE,
    ) -> None:
        self.device = device or placement.default_device()
        self.arch: str | None = None
        self.values = values
        self.described = described
        self.specs = specs
        self.options = options
        self.settings = settings
        self.usual = False
        self._leaves: list[Leaf] = []
        self._leaves_of: Any = None

    @property
    def key(self) -> Any:
        """Finds compiled code: equal for launches that can share it.

        Of the knobs it has those that code depends on and that are no options of the launch.
        """
        settings = self.settings
        if self.device == CPU:
            place: Any = (settings.target, settings.features)
        else:
            place = self.arch or self.device
        return (tuple(self.specs.values()), self.options, place, settings.fp32_default)

    def leaves(self) -> list[Leaf]:
        """Name, spec and described value of each run-time parameter, tuples element by element.

        They are the parameters of the compiled function, in its order.
        """
        if self._leaves_of is not self.specs:
            self._leaves = [
                leaf
                for name, spec in self.specs.items()
                for leaf in _leaves(name, spec, self.described[name])
            ]
            self._leaves_of = self.specs
        return self._leaves

    def know(self, leaves: list[Leaf]) -> None:
        """Take what ``leaves`` gives for usual arguments, where that has been found out already."""
        self.usual = True
        self._leaves, self._leaves_of = leaves, self.specs

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


class _Pointers(dict[tuple[str, Any, int], PointerSpec]):
    """The specs of a kernel's arrays, by parameter, element and address modulo 16 bytes.

    Raises ``KeyError`` for one that isn't aligned: elements have up to 16 bytes.
    """

    def __init__(self, binder: Binder) -> None:
        super().__init__()
        self._rules, self._kernel = binder.rules, binder.kernel

    def __missing__(self, key: tuple[str, Any, int]) -> PointerSpec:
        name, element, low = key
        if low % (element.itemsize or 1):
            raise KeyError(key)
        spec = specialize.pointer(element, low, self._rules[name], self._kernel)
        self[key] = spec
        return spec


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
        self._without: dict[Any, Options] = {}
        self._orders: dict[tuple[Any, ...], list[str]] = {}
        self._pointers = _Pointers(self)
        self._plain: dict[tuple[str, type, Any], Spec] = {}

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Bound:
        """Bind as a Python call does; keywords that are no parameters are launch options.

        Raises E0502 for a missing argument, E0503 for an unknown keyword, E0504 for too many
        positional arguments, E0505 for two values of one parameter; E0501, E0512, E0513 and E0515
        for arguments that a kernel can't take.
        """
        settings = current()
        values = self._as_before(args, keywords)
        if values is None:
            values, given = self._assign(args, keywords)
            options = Options(given, self.kernel, self.debug) if given else self._none(settings)
        else:
            options = self._none(settings)
        bound = self._usual(values, options, settings)
        if bound is not None:
            return bound
        described, device = self._describe(values)
        specs = {
            name: specialize.specialize_arg(_for_compiler(value), self.rules[name], self.kernel)
            for name, value in described.items()
        }
        return Bound(values, described, specs, options, settings, device)

    def _as_before(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any] | None:
        """The values of all parameters by name, where a launch has named them in this way before.

        Defaults, options and mistakes go the long way.
        """
        names = self._orders.get((len(args), *keywords))
        return None if names is None else dict(zip(names, (*args, *keywords.values())))

    def _none(self, settings: Settings) -> Options:
        """The options of a launch without any: made once for each way that knobs may stand."""
        key = (settings.debug, settings.fp_fusion)
        found = self._without.get(key)
        if found is None:
            found = self._without[key] = Options({}, self.kernel, self.debug)
        return found

    def _usual(self, values: dict[str, Any], options: Options, settings: Settings) -> Bound | None:
        """Arguments that are nothing but numbers and arrays.

        None for others, and where something is wrong: which of several errors is raised, the long
        way decides.
        """
        described: dict[str, Any] = {}
        specs: dict[str, Spec] = {}
        leaves: list[Any] = []
        device = ANYWHERE
        readers, pointers, plain = arrays.READERS, self._pointers, self._plain
        try:
            for name, rule in self.rules.items():
                value = values[name]
                kind = type(value)
                if kind in _PLAIN:
                    spec = plain.get((name, kind, value)) or self._plain_spec(rule, value)
                elif rule.is_constexpr or kind is float:
                    spec = specialize.specialize_arg(value, rule, self.kernel)
                else:
                    value = readers[kind](value)
                    if not value[1] or (device != value[2] and device):
                        return None
                    device = value[2]
                    spec = pointers[name, value[0], value[1] & 15]
                described[name] = value
                specs[name] = spec
                if type(spec) is not ConstantSpec:
                    leaves.append((name, spec, value))
        except (KeyError, TritiumError, arrays.Refused, Elsewhere):
            return None
        bound = Bound(values, described, specs, options, settings, device)
        bound.know(leaves)
        return bound

    def _plain_spec(self, rule: Parameter, value: Any) -> Spec:
        """The spec of a value that stands for itself only."""
        spec = specialize.specialize_arg(value, rule, self.kernel)
        if len(self._plain) < _MOST_PLAIN:
            self._plain[rule.name, type(value), value] = spec
        return spec

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
        if list(given) == list(self._parameters) and not options and self._variadic is None:
            self._orders[(len(args), *keywords)] = list(given)
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

    def _describe(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """The values with their arrays described, and the device of those."""
        places: dict[str, ArrayArgument | Elsewhere] = {}
        described = {
            name: value
            if self.rules[name].is_constexpr
            else self._described(value, name, name, places)
            for name, value in values.items()
        }
        return described, self._device(places)

    def _device(self, places: Mapping[str, ArrayArgument | Elsewhere]) -> str:
        """Where all arrays are. Raises E0512 and E0513."""
        names = {each: found.device for each, found in places.items() if found.device}
        several = len(set(names.values())) > 1
        for name, found in places.items():
            if not isinstance(found, Elsewhere):
                continue
            if several and found.tensor:
                raise self._scattered(names, name)
            raise arrays.elsewhere(found, self.kernel, name)
        if not several:
            return next(iter(names.values()), ANYWHERE)
        far = {device: name for name, device in names.items() if device != CPU}
        near = [found for found in places.values() if found.device == CPU]
        if len(far) > 1 or not all(map(arrays.is_pinned, near)):  # type: ignore[arg-type]
            raise self._scattered(names, next(iter(far.values())))
        return next(iter(far))

    def _scattered(self, names: Mapping[str, str], name: str) -> TritiumError:
        shown = ", ".join(f"{each} on {device}" for each, device in names.items())
        argument = name.partition(".")[0]
        return error("E0512", kernel=self.kernel, devices=shown, argument=argument)

    def _described(
        self,
        value: Any,
        name: str,
        parameter: str,
        places: dict[str, ArrayArgument | Elsewhere],
    ) -> Any:
        """``value`` with its arrays described; where each is goes to ``places``."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, tuple):
            parts = [
                self._described(each, f"{name}.{place}", parameter, places)
                for place, each in enumerate(value)
            ]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        try:
            found = arrays.describe(value, self.kernel, name, parameter)
        except Elsewhere as problem:
            places[name] = problem
            return None
        if found is None:
            self._check_number(value, name, parameter)
            return value
        places[name] = found
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
    if type(given) is tuple and len(given) == 1 and type(given[0]) is int:
        x = given[0]
        if 0 <= x <= MOST_PROGRAMS:
            return x, 1, 1
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
