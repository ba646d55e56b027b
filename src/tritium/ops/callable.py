"""Functions that kernels may call besides the operations: device functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any

from tritium.diagnostics import error
from tritium.ir.tracer import active

from .constexpr import constexpr, unwrap


def is_constexpr_annotation(annotation: Any) -> bool:
    """Whether a parameter's annotation marks it as a compile-time constant.

    Triton looks for the word in the annotation's text, so strings and postponed annotations work.
    """
    if annotation is inspect.Parameter.empty:
        return False
    if annotation is constexpr:
        return True
    return isinstance(annotation, str) and "constexpr" in annotation


class DeviceFunction:
    """A Python function written in the kernel language.

    The front end inlines calls to it; in eager mode its rewritten copy runs. ``tritium.jit``
    makes a subclass that can also be launched. Raises E0204 for anything but a Python
    function.
    """

    def __init__(self, fn: Callable[..., Any], *, noinline: bool = False) -> None:
        if not isinstance(inspect.unwrap(fn), FunctionType):
            kind = f"{type(fn).__name__} object"
            raise error("E0204", op="jit", expected="a Python function", got=kind, hint="")
        self.fn = fn
        self.noinline = noinline
        self.python_signature = inspect.signature(fn)
        self.constexpr_names = frozenset(
            name
            for name, parameter in self.python_signature.parameters.items()
            if is_constexpr_annotation(parameter.annotation)
        )
        update_wrapper(self, fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call from inside a kernel. Raises E0516 on the host."""
        tracer = active()
        if tracer is None:
            raise error("E0516", name=self.__name__)
        return tracer.call(self, args, kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__module__}:{self.__qualname__})"

    __name__: str
    __qualname__: str


def composite(fn: Callable[..., Any]) -> DeviceFunction:
    """Decorator for library functions written in the kernel language itself."""
    return DeviceFunction(fn)


class ConstexprFunction:
    """A plain Python function that runs while the kernel is compiled.

    Its arguments are unwrapped, its result is a ``constexpr``. On the host it is the function.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        update_wrapper(self, fn)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundConstexprFunction(instance, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.fn(
            *(unwrap(a) for a in args), **{name: unwrap(a) for name, a in kwargs.items()}
        )
        return result if active() is None else constexpr(result)


class BoundConstexprFunction(ConstexprFunction):
    """A ``ConstexprFunction`` found on an instance."""

    def __init__(self, instance: Any, function: ConstexprFunction) -> None:
        super().__init__(function.fn)
        self.instance = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return ConstexprFunction.__call__(self, self.instance, *args, **kwargs)


def constexpr_function(fn: Callable[..., Any]) -> ConstexprFunction:
    """Decorator: run ``fn`` at compile time on unwrapped arguments."""
    return ConstexprFunction(fn)
