"""Coded warnings: once for each place, through Python's ``warnings`` and its filters."""

from __future__ import annotations

import sys
import warnings

from .errors import InternalError, TritiumWarning, error
from .frames import outside
from .loc import Loc

_given: dict[tuple[str, str, int, int], object] = {}


def warn(
    code: str, *, argument: str | None = None, loc: Loc | None = None, **values: object
) -> None:
    """Issue the warning ``code`` at ``loc``, or at the caller outside of Tritium without one.

    Under the actions ``default``, ``module`` and ``once`` of Python's filters each (code, place) is
    shown once in a process; ``always`` shows and ``error`` raises it each time.

    Raises ``InternalError`` when ``code`` is not a warning of the catalogue or a value is missing.
    """
    warning = error(code, argument=argument, loc=loc, **values)
    if not isinstance(warning, TritiumWarning):
        raise InternalError(f"message {code} is not a warning")
    if loc is None:
        file, line, module = _caller()
        column = 0
    else:
        file, line, column = loc.file, loc.line, loc.col
        # Python's own rule for a file whose module isn't known.
        module = file.removesuffix(".py")
    key = (code, file, line, column)
    mine = object()
    if _given.setdefault(key, mine) is not mine:
        return
    registry: dict[str | tuple[str, type[Warning], int], int] = {}
    try:
        warnings.warn_explicit(
            warning, TritiumWarning, file, line, module=module, registry=registry
        )
    finally:
        # Python notes in the registry what a filter wants shown once only.
        if not any(isinstance(noted, tuple) for noted in registry):
            _given.pop(key, None)


def forget_warnings() -> None:
    """Let every warning be shown again."""
    _given.clear()


def _caller() -> tuple[str, int, str]:
    here = sys._getframe()
    frame = outside(here) or here
    file = frame.f_code.co_filename
    return file, frame.f_lineno, frame.f_globals.get("__name__", file.removesuffix(".py"))
