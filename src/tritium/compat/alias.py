"""The modules that ``import triton`` finds, and the finder that provides them."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import tritium
from tritium.diagnostics import error

from .children import follow

TRITON_VERSION = "3.9.0"
"""The release whose interface the alias has."""

_ERRORS = "tritium.runtime.errors"
_TUNING = ("Autotuner", "Config", "Heuristics", "autotune", "heuristics")
_ARRAYS = ("MockTensor", "TensorWrapper", "reinterpret")

# Modules that are Tritium's own under another name.
_SAME = {
    "triton.errors": _ERRORS,
    "triton.compiler.errors": _ERRORS,
    "triton.runtime.errors": _ERRORS,
    "triton.knobs": "tritium.knobs",
    "triton.language": "tritium.language",
    "triton.language.core": "tritium.language.core",
    "triton.language.math": "tritium.language.math",
    "triton.language.random": "tritium.language.random",
    "triton.language.standard": "tritium.language.standard",
    "triton.runtime.driver": "tritium.runtime.driver",
    "triton.tools.tensor_descriptor": "tritium.tools.tensor_descriptor",
}


def _names(module: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, module)


# Modules that gather names from several of Tritium's.
_GATHERED: dict[str, dict[str, str]] = {
    "triton": {
        **_names(
            "tritium",
            *("Config", "JITFunction", "KernelInterface", "aggregate", "autotune", "cdiv"),
            *("constexpr_function", "heuristics", "next_power_of_2", *_ARRAYS),
        ),
        **_names("tritium.runtime.errors", "CompilationError", "InterpreterError"),
        **_names("tritium.runtime.errors", "OutOfResources", "TritonError"),
        **_names("tritium.compat.alias", "jit"),
    },
    "triton.runtime": {
        **_names("tritium.tune", *_TUNING),
        **_names("tritium.runtime.jit", "JITFunction", "KernelInterface"),
        **_names("tritium.runtime.arrays", *_ARRAYS),
        **_names("tritium.runtime.driver", "driver"),
        **_names(_ERRORS, "OutOfResources", "InterpreterError"),
    },
    "triton.runtime.jit": {
        **_names("tritium.runtime.jit", "JITFunction", "KernelInterface", "KernelParam"),
        **_names("tritium.ops.callable", "BoundConstexprFunction", "ConstexprFunction"),
        **_names("tritium.ops.callable", "constexpr_function"),
        **_names("tritium.runtime.arrays", *_ARRAYS),
        **_names("tritium.compat.alias", "jit"),
    },
    "triton.runtime.autotuner": {
        **_names("tritium.tune", *_TUNING),
        **_names(_ERRORS, "OutOfResources", "PTXASError", "AutotunerError"),
    },
    "triton.compiler": {
        **_names("tritium.runtime.compiled", "CompiledKernel", "LazyDict"),
        **_names(_ERRORS, "CompilationError"),
    },
    "triton.compiler.compiler": _names("tritium.runtime.compiled", "CompiledKernel", "LazyDict"),
    "triton.backends": {},
    "triton.tools": {},
    "triton.backends.compiler": _names("tritium.runtime.compiled", "GPUTarget"),
}


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``tritium.jit`` for the alias: a global that changes after a compilation is an error."""
    if fn is None:
        return lambda function: jit(function, **options)
    made = tritium.jit(fn, **options)
    made.frozen_globals = True
    return made


class AliasModule(types.ModuleType):
    """A module of the alias; its names are looked up when they are first used."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"Tritium's stand-in for {name}.")
        self.__path__: list[str] = []
        self.__all__ = sorted(_GATHERED[name])
        if name == "triton":
            self.__version__ = TRITON_VERSION

    def __getattr__(self, name: str) -> Any:
        place = _GATHERED[self.__name__].get(name)
        if place is not None:
            value = getattr(importlib.import_module(place), name)
        elif _is_known(f"{self.__name__}.{name}"):
            value = importlib.import_module(f"{self.__name__}.{name}")
        else:
            raise AttributeError(_missing(f"{self.__name__}.{name}"))
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})


def _is_known(name: str) -> bool:
    return name in _GATHERED or name in _SAME


def _missing(name: str) -> str:
    return f"{name} is not part of Tritium {tritium.__version__}, which stands in for triton"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``triton`` and what is below it, before any installed Triton."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """The alias's module of that name; ModuleNotFoundError for one that there isn't."""
        if fullname != "triton" and not fullname.startswith("triton."):
            return None
        if not _is_known(fullname):
            raise ModuleNotFoundError(_missing(fullname), name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, origin="tritium", is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """An ``AliasModule``; an empty module, to be replaced, where it is one of Tritium's own."""
        return AliasModule(spec.name) if spec.name in _GATHERED else None

    def exec_module(self, module: types.ModuleType) -> None:
        """Put Tritium's own module in the place of the empty one."""
        if module.__name__ in _SAME:
            sys.modules[module.__name__] = importlib.import_module(_SAME[module.__name__])


_finder = _Finder()


def installed() -> bool:
    """Whether ``import triton`` means Tritium in this process."""
    return _finder in sys.meta_path


def install() -> None:
    """Make ``import triton`` mean Tritium from here on.

    Raises E0802 where another Triton has been imported already.
    """
    known = sys.modules.get("triton")
    if known is not None and not isinstance(known, AliasModule):
        raise error(
            "E0802",
            text="another triton has been imported in this process already",
            hint="call tritium.compat.install() before, or start the script with `tritium run`",
        )
    if not installed():
        sys.meta_path.insert(0, _finder)
        follow()


def uninstall() -> None:
    """Take the alias away; modules that have it in their variables keep it."""
    if installed():
        sys.meta_path.remove(_finder)
    for name in [each for each in sys.modules if each == "triton" or each.startswith("triton.")]:
        if _is_known(name):
            del sys.modules[name]
