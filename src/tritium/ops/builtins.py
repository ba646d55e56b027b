"""Python's builtins in kernels: which names there are, and what calling them means.

A kernel that is compiled sees no others. Names keep their Python objects as values, so that
``isinstance(x, int)`` works; ``in_kernel`` gives what a call of such an object runs instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritium.diagnostics import error
from tritium.ir.tracer import active

from . import python
from .constexpr import constexpr, unwrap
from .emit import SURFACE
from .hints import Range
from .python import describe, is_known, plain, wrap
from .tile import Tile
from .tuples import TileTuple


def length(obj: Any) -> constexpr:
    """``len``: of a tuple or a known string. Raises E0204 for anything else."""
    if isinstance(obj, TileTuple) or isinstance(unwrap(obj), str):
        return constexpr(len(obj))
    raise error(
        "E0204",
        op="len()",
        expected="a tuple",
        got=describe(obj),
        hint="an extent of a tile x is x.shape[axis]",
        argument="obj",
    )


def as_list(iterable: Any = ()) -> TileTuple:
    """``list``: kernels have one kind of sequence."""
    return TileTuple(iterable)


def as_slice(*parts: Any) -> slice:
    """``slice``: ``start:stop:step`` as a value, for ``tl.set``."""
    return slice(*parts)


def _number(name: str, kind: type, value: Any) -> Any:
    tracer = active()
    if isinstance(value, Tile) and not (tracer is not None and tracer.eager):
        raise error(
            "E0204",
            op=f"{name}()",
            expected="a compile-time value",
            got=value.type,
            hint=f"convert a tile by x.to(tl.{name}32)",
            argument="x",
        )
    try:
        return constexpr(kind(plain(value)))
    except (TypeError, ValueError, OverflowError) as problem:
        text = str(problem)
        raise error("E0206", op=f"{name}()", text=text, hint="", argument="x") from None


def as_float(x: Any = 0.0) -> Any:
    """``float`` of a known number or string.

    Raises E0204 for a tile that is compiled, E0206 for what no number can be made of.
    """
    return _number("float", float, x)


def as_int(x: Any = 0) -> Any:
    """``int`` of a known number or string. Raises as ``as_float`` does."""
    return _number("int", int, x)


def is_instance(obj: Any, class_or_tuple: Any) -> constexpr:
    """``isinstance``: a constant is both a ``constexpr`` and of the type it holds."""
    classes = plain(class_or_tuple)
    return constexpr(isinstance(wrap(obj), classes) or isinstance(unwrap(obj), classes))


def get_attribute(obj: Any, name: Any, *default: Any) -> Any:
    """``getattr`` with a known name. Raises E0204 for what is no name."""
    if not isinstance(unwrap(name), str):
        raise error(
            "E0204",
            op="getattr()",
            expected="a constant string as name",
            got=describe(name),
            hint="",
            argument="name",
        )
    try:
        return python.attribute(obj, unwrap(name))
    except AttributeError:
        if not default:
            raise python.no_attribute(obj, unwrap(name)) from None
        return default[0]


def has_attribute(obj: Any, name: Any) -> constexpr:
    """``hasattr`` with a known name."""
    return constexpr(python.has_attribute(obj, unwrap(name)))


def _extreme(name: str, fold: Callable[..., Any], args: tuple[Any, ...], keep: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], TileTuple):
        args = tuple(args[0])
    if not args:
        raise error(
            "E0113", name=name, missing="value", signature=f"{name}(value, ...)", argument=None
        )
    result = args[0]
    for value in args[1:]:
        if is_known(result) and is_known(value):
            result = wrap(fold(plain(result), plain(value)))
        else:
            extra = {} if keep is None else {"propagate_nan": keep}
            result = SURFACE[f"{name}imum"](result, value, **extra)
    return result


def minimum(*args: Any, propagate_nan: Any = None) -> Any:
    """``min``: of constants Python's, else ``tl.minimum`` from left to right."""
    return _extreme("min", min, args, propagate_nan)


def maximum(*args: Any, propagate_nan: Any = None) -> Any:
    """``max``: of constants Python's, else ``tl.maximum`` from left to right."""
    return _extreme("max", max, args, propagate_nan)


def absolute(x: Any, /) -> Any:
    """``abs``: of a known number Python's, else ``tl.abs``."""
    known = unwrap(x)
    return wrap(abs(known)) if isinstance(known, (int, float)) else SURFACE["abs"](x)


def device_print(prefix: Any, *args: Any, hex: Any = False) -> None:
    """``print``: ``tl.device_print``."""
    SURFACE["device_print"](prefix, *args, hex=hex)


_IN_KERNEL: dict[Any, Any] = {
    len: length,
    list: as_list,
    range: Range,
    float: as_float,
    int: as_int,
    isinstance: is_instance,
    getattr: get_attribute,
    hasattr: has_attribute,
    print: device_print,
    min: minimum,
    max: maximum,
    abs: absolute,
    slice: as_slice,
}

VISIBLE: dict[str, Any] = {function.__name__: function for function in _IN_KERNEL}
"""The builtins that a kernel's names can mean, after its own, closure and global names."""


def in_kernel(function: Any) -> Any:
    """What a call of ``function`` runs in a kernel: another object for a visible builtin."""
    try:
        return _IN_KERNEL.get(function, function)
    except TypeError:
        # Unhashable callables are no builtins.
        return function
