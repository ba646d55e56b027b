"""Argument binding: from the arguments of a launch to what is compiled for and what is passed.

This is the path that every launch can take. Anything faster must agree with it.
"""

from __future__ import annotations

import collections
import contextlib
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from tritium.ir.dtypes import DType
from tritium.ops.callable import DeviceFunction
from tritium.ops.constexpr import constexpr

from . import arrays, placement
from .arrays import ANYWHERE, CPU, CUDA, ArrayArgument, Composite, Elsewhere
from .options import DEFAULTS, Options
from .settings import Settings, current

Grid: TypeAlias = tuple[int, int, int]
Leaf: TypeAlias = "tuple[str, ScalarSpec | PointerSpec, Any]"

_PLAIN = frozenset({type(None), bool, int, str})
_MOST_KEPT = 4096
"""So many specs of plain values a parameter keeps, and so many forms a kernel."""

MOST_PROGRAMS = (1 << 31) - 1
"""Along an axis: program ids are int32."""


class Key:
    """Finds compiled code: equal for launches that can share it. The hash is computed once."""

    __slots__ = ("_hash", "parts")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.parts == other.parts

    def __repr__(self) -> str:
        return repr(self.parts)


class Form:
    """What the launches have in common that are specialised alike, and have the same options.

    ``specs`` holds what is compiled for, by parameter; ``device`` is where. ``places`` are those of
    the run-time parameters; it is None where there are tuples.
    """

    __slots__ = ("device", "key", "options", "places", "specs")

    def __init__(
        self,
        names: Iterable[str],
        specs: Sequence[Spec],
        options: Options,
        settings: Settings,
        device: str,
    ) -> None:
        self.specs = dict(zip(names, specs))
        self.options = options
        self.device = device
        self.key = self.key_for(settings, device)
        plain = not any(isinstance(spec, TupleSpec) for spec in specs)
        found = [at for at, spec in enumerate(specs) if not isinstance(spec, ConstantSpec)]
        self.places = found if plain else None

    def key_for(self, settings: Settings, place: str) -> Key:
        """The key of code for a device, or an architecture.

        Of the knobs it has those that code depends on and that are no options of the launch.
        """
        cpu, gpu = (settings.target, settings.features), (place, settings.arch)
        parts = (self.options, cpu if place == CPU else gpu, settings.fp32_default)
        return Key((tuple(self.specs.values()), *parts))


class Bound:
    """The arguments of one launch: those of all parameters, in order, defaults included.

    ``given`` are the values as the caller gave them, ``seen`` the same with an ``ArrayArgument`` in
    place of each array, in tuples too. ``usual``: there are no arrays but those that have an
    address. ``specs`` are those of the form, unless others are put in their place. ``arch`` is what
    is compiled for instead of the device, where there is none.
    """

    __slots__ = ("_form", "arch", "given", "seen", "settings", "specs", "usual")

    def __init__(
        self,
        form: Form,
        given: Sequence[Any],
        seen: Sequence[Any],
        settings: Settings,
        usual: bool = False,
    ) -> None:
        self._form = form
        self.given = given
        self.seen = seen
        self.settings = settings
        self.specs = form.specs
        self.arch: str | None = None
        self.usual = usual

    @property
    def options(self) -> Options:
        """Of the launch."""
        return self._form.options

    @property
    def key(self) -> Key:
        """Of the code."""
        if self.arch is not None:
            return self._form.key_for(self.settings, self.arch)
        return self._form.key

    @property
    def device(self) -> str:
        """Where the kernel will run: where its arrays are."""
        return self._form.device if self.arch is None else CUDA

    @property
    def values(self) -> dict[str, Any]:
        """What the caller gave by name."""
        return dict(zip(self._form.specs, self.given))

    @property
    def described(self) -> dict[str, Any]:
        """The same, arrays described."""
        return dict(zip(self._form.specs, self.seen))

    def leaves(self) -> list[Leaf]:
        """Name, spec and described value of each run-time parameter, tuples element by element.

        They are the parameters of the compiled function, in its order.
        """
        described = self.described
        return [
            leaf
            for name, spec in self.specs.items()
            for leaf in _leaves(name, spec, described[name])
        ]

    def leaf_values(self) -> list[Any]:
        """The described values alone."""
        form, seen = self._form, self.seen
        if form.places is not None and self.specs is form.specs:
            return [seen[place] for place in form.places]
        return [value for _, _, value in self.leaves()]

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


class _Plain(dict[Any, Spec]):
    """The specs of a parameter's plain values, by type and value: up to a number they are kept.

    That of floats, by their type, where all have the same.
    """

    def __init__(self, rule: Parameter, kernel: str) -> None:
        super().__init__()
        self._rule, self._kernel = rule, kernel
        if not rule.is_constexpr:
            with contextlib.suppress(TritiumError):
                self[float] = specialize.specialize_arg(0.0, rule, kernel)

    def __missing__(self, key: tuple[type, Any]) -> Spec:
        spec = specialize.specialize_arg(key[1], self._rule, self._kernel)
        if len(self) < _MOST_KEPT:
            self[key] = spec
        return spec


class _Pointers(dict[Any, "list[PointerSpec | None]"]):
    """The specs of a parameter's arrays, by element, and by address modulo 16 bytes.

    None for one that isn't aligned: elements have up to 16 bytes.
    """

    def __init__(self, rule: Parameter, kernel: str) -> None:
        super().__init__()
        self._rule, self._kernel = rule, kernel

    def __missing__(self, element: Any) -> list[PointerSpec | None]:
        found = self[element] = [
            None
            if low % (element.itemsize or 1)
            else specialize.pointer(element, low, self._rule, self._kernel)
            for low in range(specialize.DIVISIBILITY)
        ]
        return found


Scanned: TypeAlias = "tuple[tuple[Spec, ...], tuple[Any, ...], str]"
"""The specs of the arguments of a launch, these with arrays described, and the device of those."""
Scan: TypeAlias = "Callable[[tuple[Any, ...], tuple[Any, ...]], Scanned | None]"


def scan_natively(native: Scan) -> None:
    """Have a native function find specs that are known: see ``backends.host.reader``."""
    global scan
    scan = native


scan: Scan = lambda given, ways: None  # noqa: E731 - there is one to be put in its place


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
        self._in_order: set[tuple[Any, ...]] = set()
        """Numbers of positional arguments and keywords that name all parameters in order."""
        self._ways = tuple(
            (rule, _Plain(rule, self.kernel), _Pointers(rule, self.kernel))
            for rule in rules.values()
        )
        self._known: tuple[Settings | None, Options, dict[tuple[Any, ...], Form]] | None = None

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Bound:
        """Bind as a Python call does; keywords that are no parameters are launch options.

        Raises E0502 for a missing argument, E0503 for an unknown keyword, E0504 for too many
        positional arguments, E0505 for two values of one parameter; E0501, E0512, E0513 and E0515
        for arguments that a kernel can't take.
        """
        settings = current()
        if (len(args), *keywords) in self._in_order:
            bound = self._usual((*args, *keywords.values()), settings)
            if bound is not None:
                return bound
        values, given = self._assign(args, keywords)
        options = Options(given, self.kernel, self.debug)
        bound = self._usual(tuple(values.values()), settings, options if given else None)
        if bound is not None:
            return bound
        # Which of several errors is raised, this decides.
        described, places = self._describe(values)
        device = self._device(places)
        specs = [
            specialize.specialize_arg(_for_compiler(value), self.rules[name], self.kernel)
            for name, value in described.items()
        ]
        device = device or placement.default_device()
        form = Form(self.rules, specs, options, settings, device)
        return Bound(form, list(values.values()), list(described.values()), settings)

    def _usual(
        self, given: tuple[Any, ...], settings: Settings, options: Options | None = None
    ) -> Bound | None:
        """All arguments in order, if they are nothing but numbers and arrays.

        None for others, and where something is wrong.
        """
        found = scan(given, self._ways) or self._scan(given)
        if found is None:
            return None
        specs, seen, device = found
        device = device or placement.default_device()
        known = self._known
        if known is None or known[0] is not settings:
            known = self._known = (settings, Options({}, self.kernel, self.debug), {})
        key = (specs, device, options)
        form = known[2].get(key)
        if form is None:
            form = Form(self.rules, specs, options or known[1], settings, device)
            if len(known[2]) < _MOST_KEPT:
                known[2][key] = form
        return Bound(form, given, seen, settings, True)

    def _scan(self, given: tuple[Any, ...]) -> Scanned | None:
        """What is found out of the arguments; None for unusual ones."""
        seen: list[Any] = []
        specs: list[Spec] = []
        device = ANYWHERE
        readers = arrays.READERS
        try:
            for value, (rule, plain, pointers) in zip(given, self._ways):
                kind = type(value)
                if kind in _PLAIN:
                    specs.append(plain[kind, value])
                elif rule.is_constexpr or kind is float:
                    specs.append(specialize.specialize_arg(value, rule, self.kernel))
                else:
                    value = readers[kind](value)
                    spec = pointers[value[0]][value[1] & 15]
                    if spec is None or not value[1] or (device != value[2] and device):
                        return None
                    device = value[2]
                    specs.append(spec)
                seen.append(value)
        except (KeyError, TritiumError, arrays.Refused, Elsewhere):
            return None
        return tuple(specs), tuple(seen), device

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
            self._in_order.add((len(args), *keywords))
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

    def survey(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[str, list[DType]]:
        """Where a launch with these arguments runs, and the element types of its arrays.

        Arguments may be missing yet, and keywords may be no parameters. Raises what ``bind`` does
        for arrays that a kernel can't take.
        """
        given = {**dict(zip(self.positional, args)), **keywords}
        if self._variadic is not None:
            given[self._variadic] = tuple(args[len(self.positional) :])
        _, places = self._describe({name: given[name] for name in self.rules if name in given})
        device = self._device(places) or placement.default_device()
        return device, [each.element for each in places.values() if isinstance(each, ArrayArgument)]

    def _describe(
        self, values: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, ArrayArgument | Elsewhere]]:
        """The values with their arrays described, and where each array is."""
        places: dict[str, ArrayArgument | Elsewhere] = {}
        described = {
            name: value
            if self.rules[name].is_constexpr
            else self._described(value, name, name, places)
            for name, value in values.items()
        }
        return described, places

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
        near = [found for found in places.values() if found.device == CPU]
        far = {device for device in names.values() if device != CPU}
        if len(far) > 1 or not all(map(arrays.is_pinned, near)):  # type: ignore[arg-type]
            count = collections.Counter(names.values())
            # Most likely the one that somebody forgot to move.
            odd = min(names, key=lambda each: (count[names[each]], names[each] == CPU))
            raise self._scattered(names, odd)
        return far.pop()

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
        if isinstance(value, Composite):
            value = value.argument(self.kernel, name, parameter)
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
