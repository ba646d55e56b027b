"""The exception classes, and ``error``, which makes one from a code of the catalogue."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from .catalogue import CATALOGUE, Kind
from .loc import Loc


class TritiumError(Exception):
    """Root of every error that Tritium reports about the user's program.

    ``code`` names the message in the catalogue, ``message`` is its text with the values filled
    in, ``argument`` the parameter that is at fault (the front end points its caret there), ``loc``
    the place, and ``help`` one line that says what to do. Pickles with all of them.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        help: str = "",
        argument: str | None = None,
        loc: Loc | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help
        self.argument = argument
        self.loc = loc

    @property
    def error_message(self) -> str:
        """Triton's name for ``message``."""
        return self.message

    def at(self, loc: Loc | None) -> TritiumError:
        """Record the place, unless a more precise one is known already."""
        if self.loc is None:
            self.loc = loc
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), copy.copy(self.__dict__)))

    def __str__(self) -> str:
        from .render import text

        return text(self)


def _rebuild(cls: type[TritiumError], state: dict[str, Any]) -> TritiumError:
    made = cls.__new__(cls)
    Exception.__init__(made, state["message"])
    made.__dict__.update(state)
    return made


class CompilationError(TritiumError):
    """The kernel is not a valid program."""


class KernelTypeError(CompilationError, TypeError):
    """A value in the kernel has a type that is not accepted there."""


class KernelValueError(CompilationError, ValueError):
    """A value in the kernel is not accepted there."""


class KernelNameError(CompilationError, NameError):
    """A name in the kernel has no value."""


class CompileTimeAssertionFailure(CompilationError):
    """A ``static_assert`` is false."""


class UnsupportedLanguageConstruct(CompilationError):
    """A piece of Python that the kernel language does not have."""


class ArgumentTypeError(TritiumError, TypeError):
    """A launch argument has a type that kernels do not take."""


class ArgumentValueError(TritiumError, ValueError):
    """A launch argument, or the grid, has a value that is not accepted."""


class ArgumentKeyError(TritiumError, KeyError):
    """A launch keyword is neither a parameter nor an option."""


class LaunchError(TritiumError, RuntimeError):
    """A kernel can't be launched here and now."""


class InterpreterError(TritiumError):
    """A Python exception inside a kernel that runs interpreted."""


class TritiumWarning(TritiumError, UserWarning):
    """Something legal that is probably not meant; ``warn`` issues it.

    A filter may turn it into an exception: it is then caught as any error of Tritium.
    """


class InternalError(Exception):
    """A fault of Tritium itself, never of the user's program.

    ``report`` is the path of the crash report, once ``fault.write_report`` has written one.
    """

    report: str | None = None

    def __str__(self) -> str:
        said = f"{super().__str__()}\nThis is a fault of Tritium, not of your program."
        if self.report is not None:
            said += f" What is needed to find it is in {self.report}"
        return said


_CLASSES: dict[Kind, type[TritiumError]] = {
    Kind.COMPILE: CompilationError,
    Kind.TYPE: KernelTypeError,
    Kind.VALUE: KernelValueError,
    Kind.NAME: KernelNameError,
    Kind.ASSERTION: CompileTimeAssertionFailure,
    Kind.UNSUPPORTED: UnsupportedLanguageConstruct,
    Kind.ARGUMENT_TYPE: ArgumentTypeError,
    Kind.ARGUMENT_VALUE: ArgumentValueError,
    Kind.ARGUMENT_KEY: ArgumentKeyError,
    Kind.LAUNCH: LaunchError,
    Kind.INTERPRETER: InterpreterError,
    Kind.WARNING: TritiumWarning,
}


def exception_class(kind: Kind) -> type[TritiumError]:
    """The class that messages of that kind are raised as."""
    return _CLASSES[kind]


def fill(code: str, values: Mapping[str, object]) -> tuple[str, str]:
    """The message and the help of that ``code`` with ``values`` in their places.

    Raises ``InternalError`` when the catalogue has no such code or a value is missing, so that a
    message can't silently be wrong.
    """
    entry = CATALOGUE.get(code)
    if entry is None:
        raise InternalError(f"no message with the code {code}")
    try:
        return entry.template.format(**values), entry.help.format(**values)
    except (KeyError, IndexError) as missing:
        raise InternalError(f"message {code} lacks the value {missing}") from missing


def error(
    code: str, *, argument: str | None = None, loc: Loc | None = None, **values: object
) -> TritiumError:
    """The error of that ``code``, its template filled with ``values``; the caller raises it.

    Raises ``InternalError`` as ``fill`` does.
    """
    message, advice = fill(code, values)
    made = exception_class(CATALOGUE[code].kind)
    return made(code, message, help=advice, argument=argument, loc=loc)
