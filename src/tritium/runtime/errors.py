"""The exceptions that users catch, Tritium's and those of Triton's names."""

from __future__ import annotations

from tritium.diagnostics import (
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
)

TritonError = TritiumError


class OutOfResources(LaunchError):
    """A kernel needs more of something than the device has."""

    def __init__(
        self, required: int, limit: int, name: str, help: str = "use smaller tiles, or fewer stages"
    ) -> None:
        message = f"out of resource: {name}, required: {required}, limit: {limit}"
        super().__init__("E0802", message, help=help)
        self.required = required
        self.limit = limit
        self.name = name

    def __reduce__(self) -> tuple[type[OutOfResources], tuple[int, int, str, str]]:
        return OutOfResources, (self.required, self.limit, self.name, self.help)


class PTXASError(LaunchError):
    """The assembler of PTX failed."""

    def __init__(self, error_message: str | None = None, help: str = "") -> None:
        super().__init__("E0802", f"PTXAS error: {error_message or 'internal error'}", help=help)


class AutotunerError(LaunchError):
    """The tuner can't go on."""

    def __init__(self, error_message: str) -> None:
        super().__init__("E0802", error_message)


__all__ = [
    "ArgumentKeyError",
    "ArgumentTypeError",
    "ArgumentValueError",
    "AutotunerError",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "InternalError",
    "InterpreterError",
    "KernelNameError",
    "KernelTypeError",
    "KernelValueError",
    "LaunchError",
    "OutOfResources",
    "PTXASError",
    "TritiumError",
    "TritiumWarning",
    "TritonError",
    "UnsupportedLanguageConstruct",
]
