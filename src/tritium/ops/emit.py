"""From a surface function to an operation, and the decorator that marks surface functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tritium.diagnostics import TritiumError, error, warn
from tritium.ir.core import Op
from tritium.ir.tracer import Tracer, active

if TYPE_CHECKING:
    from .tile import Tile

F = TypeVar("F", bound=Callable[..., Any])

SURFACE: dict[str, Callable[..., Any]] = {}
"""Every surface function by its public name; ``tritium.language`` exports them."""

METHODS: dict[str, Callable[..., Any]] = {}
"""Those that are also methods of tiles, by method name (``__add__`` and friends included)."""


def tracer_of(name: str) -> Tracer:
    """The active tracer. Raises E0517 when ``name`` is used outside a kernel."""
    tracer = active()
    if tracer is None:
        raise error("E0517", name=name)
    return tracer


def emit(cls: type[Op], **fields: Any) -> Any:
    """Build the operation from surface values and carry it out.

    Tiles among the fields become IR values. Returns a Tile, a tuple of Tiles, or None, by the
    number of results.
    """
    from .tile import Tile

    tracer = tracer_of(cls.mnemonic)
    raw = {
        key: tuple(e.value if isinstance(e, Tile) else e for e in field)
        if isinstance(field, tuple)
        else field.value
        if isinstance(field, Tile)
        else field
        for key, field in fields.items()
    }
    build: Any = cls  # its fields are only known to the class
    made: Op = build(loc=tracer.loc(), **raw)
    try:
        results = tracer.emit(made)
    except TritiumError as problem:
        problem.at(made.loc)
        raise
    if not results:
        return None
    tiles = tuple(Tile(result) for result in results)
    return tiles[0] if len(tiles) == 1 else tiles


def emit_tile(cls: type[Op], **fields: Any) -> Tile:
    """``emit`` for an operation with one result."""
    made: Tile = emit(cls, **fields)
    return made


def warn_here(text: str, hint: str, argument: str) -> None:
    """Issue W0901 at the place in the kernel that is being compiled or run."""
    tracer = active()
    if tracer is not None and tracer.quiet:
        return
    loc = tracer.loc() if tracer is not None else None
    warn("W0901", text=text, hint=hint, argument=argument, loc=loc)


@overload
def surface(fn: F) -> F: ...


@overload
def surface(
    *, name: str | None = None, method: bool | str | tuple[str, ...] = False
) -> Callable[[F], F]: ...


def surface(
    fn: F | None = None, *, name: str | None = None, method: bool | str | tuple[str, ...] = False
) -> Any:
    """Decorator: publish a function as ``tl.<name>``, and as a method of tiles where given.

    A surface function needs an active tracer; called outside a kernel it raises E0517. ``name``
    "" keeps it out of ``tl``; ``method`` may be True (same name), a name, or several.
    """

    def register(function: F) -> F:
        public = function.__name__ if name is None else name

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            tracer_of(f"tl.{public or function.__name__}")
            if kwargs:
                # Other libraries' builtins hand on Triton's builder, which there is none of here.
                kwargs.pop("_semantic", None)
            return function(*args, **kwargs)

        checked.is_surface = True  # type: ignore[attr-defined]
        if public:
            if public in SURFACE:
                raise ValueError(f"surface function {public} is defined twice")
            SURFACE[public] = checked
        names = (public,) if method is True else (method,) if isinstance(method, str) else method
        for each in names or ():
            if each in METHODS:
                raise ValueError(f"tile method {each} is defined twice")
            METHODS[each] = checked
        return checked  # type: ignore[return-value]

    return register if fn is None else register(fn)
