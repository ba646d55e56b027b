"""Locations, the catalogue of coded messages, the exception classes and the renderers."""

from __future__ import annotations

from .catalogue import CATALOGUE, SECTIONS, Entry, Kind
from .errors import (
    ArgumentKeyError,
    ArgumentTypeError,
    ArgumentValueError,
    CompilationError,
    CompileTimeAssertionFailure,
    InternalError,
    InterpreterError,
    KernelNameError,
    KernelTypeError,
    KernelValueError,
    LaunchError,
    TritiumError,
    TritiumWarning,
    UnsupportedLanguageConstruct,
    error,
    exception_class,
)
from .fault import write_report
from .loc import Loc
from .render import sarif, text, to_json
from .warning import forget_warnings, warn

__all__ = [
    "CATALOGUE",
    "SECTIONS",
    "ArgumentKeyError",
    "ArgumentTypeError",
    "ArgumentValueError",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "Entry",
    "InternalError",
    "InterpreterError",
    "KernelNameError",
    "KernelTypeError",
    "KernelValueError",
    "Kind",
    "LaunchError",
    "Loc",
    "TritiumError",
    "TritiumWarning",
    "UnsupportedLanguageConstruct",
    "error",
    "exception_class",
    "forget_warnings",
    "sarif",
    "text",
    "to_json",
    "warn",
    "write_report",
]
