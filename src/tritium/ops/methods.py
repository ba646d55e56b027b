"""Functions of the language found on a value that they then get as their first argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class BoundMethod:
    """A surface or kernel function found as a method of a value."""

    __slots__ = ("function", "receiver")

    def __init__(self, receiver: Any, function: Callable[..., Any]) -> None:
        self.receiver = receiver
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.receiver, *args, **kwargs)


class Method:
    """A kernel function in a class: found on an instance, it is bound to it."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.function if instance is None else BoundMethod(instance, self.function)
