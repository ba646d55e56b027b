"""What a name in a kernel means: a variable, a closure or global value, a builtin."""

from __future__ import annotations

import builtins
import difflib
import inspect
import math
from collections.abc import Iterable
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from tritium import knobs
from tritium.diagnostics import Loc, TritiumError, error
from tritium.ir.dtypes import Type
from tritium.ops.builtins import VISIBLE
from tritium.ops.callable import ConstexprFunction, DeviceFunction
from tritium.ops.constexpr import constexpr
from tritium.ops.emit import SURFACE
from tritium.ops.python import wrap
from tritium.ops.tuples import TileTuple

from .dependencies import Reads
from .fingerprint import in_library, is_missing, lookup

HELPER = (
    "decorate it with @tritium.jit, or with @tritium.constexpr_function to run it at compile time"
)


@dataclass(frozen=True)
class Unset:
    """What a variable holds that has a value on some paths only; ``hint`` says what to do."""

    hint: str

    @classmethod
    def by(cls, construct: str) -> Unset:
        """For a variable that is first assigned in ``construct``."""
        return cls(f"give it a value of the same type before the {construct}")


@dataclass(slots=True, eq=False)
class Binding:
    """What a variable holds, and where it got that.

    ``declared`` marks a value that the source declares as ``tl.constexpr``.
    """

    value: Any
    loc: Loc | None = None
    declared: bool = False

    @property
    def is_set(self) -> bool:
        return not isinstance(self.value, Unset)


Scope = dict[str, Binding]
"""The variables of a function at one place of it."""


def read(scope: Scope, reads: Reads, name: str) -> Any:
    """The value of a name, as a kernel value.

    Variables come first, then closure and global names, then the builtins of ``ops.builtins``. What
    is read outside of the function is noted in ``reads``. Raises E0101 for a name without a value,
    E0103 for a variable without one on some paths, E0102 for a global that might change, E0111 for
    a plain Python function.
    """
    binding = scope.get(name)
    if binding is not None:
        if isinstance(binding.value, Unset):
            raise error("E0103", name=name, hint=binding.value.hint)
        return binding.value
    value = lookup(reads.function, name)
    if not is_missing(value):
        _check_outside(name, value)
        reads.names[name] = value
        return wrap(value)
    if name in VISIBLE:
        # Once there is a global of that name, the kernel means another thing.
        reads.names[name] = value
        return VISIBLE[name]
    raise error("E0101", name=name, hint=_suggestion(name, [*scope, *_known(reads)]))


def _check_outside(name: str, value: Any) -> None:
    """Raises unless a kernel may use that closure or global value."""
    if isinstance(value, FunctionType) and not _is_ours(value):
        raise error("E0111", name=name, hint=HELPER)
    if _is_constant(value) or knobs.compilation.allow_non_constexpr_globals:
        return
    raise _plain_global(name, value)


def _plain_global(name: str, value: Any) -> TritiumError:
    shown = repr(value)
    return error(
        "E0102",
        name=name,
        type=type(value).__name__,
        value=shown if len(shown) <= 40 else "...",
    )


def _is_constant(value: Any) -> bool:
    """Whether a value can't change, or is noted by what it contains when it is used."""
    if value is None or isinstance(value, (constexpr, ModuleType, type, Type, TileTuple)):
        return True
    if isinstance(value, (DeviceFunction, ConstexprFunction)) or _is_ours(value):
        return True
    return isinstance(value, BuiltinFunctionType) and value.__module__ == math.__name__


def _is_ours(value: Any) -> bool:
    return (
        getattr(value, "is_surface", False) is True
        or hasattr(value, "__triton_builtin__")
        or in_library(getattr(value, "__module__", None))
    )


def _known(reads: Reads) -> Iterable[str]:
    function = inspect.unwrap(reads.function.fn)
    return (*function.__globals__, *function.__code__.co_freevars, *VISIBLE)


def counterpart(name: str) -> str:
    """What stands for another library's function in kernels, as help; empty where nothing does."""
    last = name.rpartition(".")[2]
    return f"on tiles, use tl.{last}" if last in SURFACE else ""


def _suggestion(name: str, known: Iterable[str]) -> str:
    if name in SURFACE:
        return f"write tl.{name}"
    if name == "breakpoint":
        return "native code can't stop: run it in the interpreter, kernel.interpret[grid](...)"
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    if close:
        return f"did you mean {close[0]}?"
    if hasattr(builtins, name):
        return f"of Python's builtins, kernels have {', '.join(VISIBLE)}"
    return "assign it, pass it as an argument, or make it a global tl.constexpr"
