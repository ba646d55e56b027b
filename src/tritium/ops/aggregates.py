"""``tritium.aggregate``: classes of the user's whose instances are kernel values with parts."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, ClassVar

from tritium.diagnostics import error
from tritium.ir.dtypes import DType, Type

from .callable import ConstexprFunction, DeviceFunction, is_constexpr_annotation
from .constants import constant, number, to_tile
from .constexpr import constexpr, unwrap
from .emit import surface
from .methods import Method
from .python import describe, is_known, wrap
from .tile import Tile
from .tuples import Structure

_OPEN = "\0open"
"""Names the mark of an instance whose constructor runs."""


class Aggregate(Structure):
    """What the instances of all aggregates are: immutable, with named parts.

    ``_fields`` gives each field's annotation; ``_constructor`` is the user's ``__init__``, or None.
    """

    _fields: ClassVar[Mapping[str, Any]] = {}
    _constructor: ClassVar[Any] = None

    def __setattr__(self, name: str, value: Any) -> None:
        if _OPEN not in self.__dict__:
            hint = "make another one by tl.core.aggregate_replace(x, field=value)"
            raise error("E0110", construct="assignment to an attribute", hint=hint)
        if name not in self._fields:
            raise _wrong(type(self), f"there is no field {name}", "annotate it in the class")
        object.__setattr__(self, name, _field_value(type(self), name, value))

    def _parts(self) -> tuple[Any, ...]:
        return tuple(self.__dict__[name] for name in self._fields)

    def _rebuilt(self, parts: Iterable[Any]) -> Aggregate:
        made = object.__new__(type(self))
        made.__dict__.update(zip(self._fields, parts))
        return made

    def _kind(self) -> Any:
        """The class, and what fields that are ``tl.constexpr`` hold: these can't change."""
        known = (unwrap(self.__dict__[n]) for n, each in self._fields.items() if each is constexpr)
        return type(self), tuple((type(each), repr(each)) for each in known)

    def _shown(self, parts: Iterable[str]) -> str:
        fields = (f"{name}={part}" for name, part in zip(self._fields, parts))
        return f"{type(self).__name__}({', '.join(fields)})"

    def __repr__(self) -> str:
        return self._shown(map(repr, self._parts()))


def _wrong(cls: type, text: str, hint: str = "", argument: str | None = None) -> Exception:
    return error("E0206", op=cls.__name__, text=text, hint=hint, argument=argument)


def _field_value(cls: type[Aggregate], name: str, value: Any) -> Any:
    """A value as the annotation of its field wants it. Raises E0205 and E0204 where it isn't."""
    annotation = cls._fields[name]
    made = wrap(value)
    if annotation is constexpr:
        if is_known(made):
            return made
        got = describe(made)
        raise error("E0205", op=cls.__name__, name=name, got=got, argument=name)
    plain = number(made)
    if annotation is Tile or isinstance(annotation, Type):
        if plain is not None:
            if isinstance(annotation, DType):
                return constant(plain, annotation, name)
            return to_tile(made)
        if isinstance(made, Tile) and (annotation is Tile or made.dtype is annotation):
            return made
    elif not isinstance(annotation, type) or isinstance(unwrap(made), annotation):
        return made
    expected = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    expected = "a tile or a number" if annotation is Tile else expected
    got = describe(made)
    text = f"{expected} as {name}"
    raise error("E0204", op=cls.__name__, expected=text, got=got, hint="", argument=name)


def aggregate(cls: type) -> Any:
    """Decorator: make a class's instances values that kernels can hold.

    The class annotates its fields: ``tl.tensor``, a dtype, ``tl.constexpr``, ``tl.tuple``, another
    aggregate; fields of classes that it derives from come first. Without an ``__init__`` there is
    one that takes the fields in order; a default is a class attribute. A written one is Python,
    runs when the kernel is compiled, and sets every field. Instances can't be changed; they go
    through branches, loops, calls and returns. Methods are functions of ``tritium.jit`` or
    ``tritium.constexpr_function``; operators are methods, such as ``__add__``.

    Raises E0206 for a class without fields, or whose ``__init__`` is a kernel function.
    """
    own = _annotations(cls, sys._getframe(1).f_locals)
    inherited = dict(cls._fields) if issubclass(cls, Aggregate) else {}
    fields = {**inherited, **own}
    if not fields:
        raise _wrong(cls, "an aggregate needs fields", "annotate them: x: tl.tensor")
    written = vars(cls).get("__init__")
    if isinstance(written, DeviceFunction):
        raise _wrong(cls, "__init__ can't be a kernel function", "it is plain Python")
    if written is None and issubclass(cls, Aggregate) and not own:
        written = cls._constructor
    init = _generated(fields, cls) if written is None else _plain_init(written)
    bases = (cls,) if issubclass(cls, Aggregate) else (cls, Aggregate)
    space = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__init__": _guarded(init),
        "__signature__": _without_self(inspect.signature(init)),
        "__setattr__": Aggregate.__setattr__,
        "_fields": fields,
        "_constructor": written,
    }
    methods = {
        name: Method(each) for name, each in vars(cls).items() if isinstance(each, DeviceFunction)
    }
    return type(cls)(cls.__name__, bases, {**space, **methods})


def _annotations(cls: type, names: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations of a class's own fields; text is looked up where the class stands."""
    known = {**vars(sys.modules[cls.__module__]), **names}
    return {name: _resolved(each, known) for name, each in inspect.get_annotations(cls).items()}


def _resolved(annotation: Any, known: Mapping[str, Any]) -> Any:
    if is_constexpr_annotation(annotation):
        return constexpr
    if not isinstance(annotation, str):
        return annotation
    found: Any = None
    for place, name in enumerate(annotation.split(".")):
        found = getattr(found, name, None) if place else known.get(name)
    # What can't be found takes any value.
    return annotation if found is None else found


def _generated(fields: Mapping[str, Any], cls: type) -> Callable[..., None]:
    """An ``__init__`` with a parameter for each field, its default the class's attribute."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    parameters += [
        inspect.Parameter(name, kind, default=getattr(cls, name, inspect.Parameter.empty))
        for name in fields
    ]
    signature = inspect.Signature(parameters)

    def __init__(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        instance, *values = bound.arguments.values()
        for name, value in zip(fields, values):
            setattr(instance, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def _plain_init(written: Any) -> Callable[..., None]:
    """The user's ``__init__``; a compile-time function gets its arguments unwrapped."""
    if not isinstance(written, ConstexprFunction):
        return written  # type: ignore[no-any-return]

    @functools.wraps(written.fn)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        written.fn(self, *map(unwrap, args), **{name: unwrap(v) for name, v in kwargs.items()})

    return __init__


def _guarded(init: Callable[..., None]) -> Callable[..., None]:
    """``init``, while which the fields may be set, and after which all must be."""

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = {name: wrap(value) for name, value in kwargs.items()}
        if _OPEN in self.__dict__:
            init(self, *map(wrap, args), **given)
            return
        self.__dict__[_OPEN] = True
        try:
            init(self, *map(wrap, args), **given)
        finally:
            del self.__dict__[_OPEN]
        missing = [name for name in self._fields if name not in self.__dict__]
        if missing:
            text = f"__init__ doesn't set {', '.join(missing)}"
            raise _wrong(type(self), text, "set every field")

    return __init__


def _without_self(signature: inspect.Signature) -> inspect.Signature:
    return signature.replace(parameters=list(signature.parameters.values())[1:])


@surface(name="")
def aggregate_replace(obj: Any, **fields: Any) -> Any:
    """An aggregate with other values in some fields.

    Raises E0204 for anything but an aggregate, E0206 for a field that there isn't, and as setting
    the field would.
    """
    known = unwrap(obj)
    if not isinstance(known, Aggregate):
        raise error(
            "E0204",
            op="aggregate_replace",
            expected="an aggregate",
            got=describe(known),
            hint="",
            argument="obj",
        )
    cls = type(known)
    values = dict(zip(known._fields, known._parts()))
    for name, value in fields.items():
        if name not in values:
            hint = f"fields: {', '.join(values)}"
            raise _wrong(cls, f"there is no field {name}", hint)
        values[name] = _field_value(cls, name, value)
    return known._rebuilt(values.values())


def host_constructor(value: Any) -> FunctionType | None:
    """The Python function that makes instances of an aggregate, where the user wrote one."""
    if not (isinstance(value, type) and issubclass(value, Aggregate)):
        return None
    written = value._constructor
    written = written.fn if isinstance(written, ConstexprFunction) else written
    return written if isinstance(written, FunctionType) else None
