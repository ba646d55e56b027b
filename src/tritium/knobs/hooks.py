"""Chains of functions that are told of what happens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any


class HookChain:
    """Functions called one after the other with the same arguments; ``calls`` lists them.

    A ``reversed`` chain calls the one added last first. What a function returns is dropped, what it
    raises ends the chain.
    """

    def __init__(self, reversed: bool = False) -> None:
        self._calls: list[Callable[..., object]] = []
        self.reversed = reversed

    @property
    def calls(self) -> list[Callable[..., object]]:
        """The functions, in the order in which they were added: always the same list."""
        return self._calls

    @calls.setter
    def calls(self, functions: Iterable[Callable[..., object]]) -> None:
        self._calls[:] = functions

    def add(self, function: Callable[..., object]) -> None:
        """Append ``function``, unless the chain has it."""
        if function not in self.calls:
            self.calls.append(function)

    def remove(self, function: Callable[..., object]) -> None:
        """Take ``function`` out, if the chain has it."""
        with contextlib.suppress(ValueError):
            self.calls.remove(function)

    def copy(self) -> HookChain:
        """A chain of the same functions that changes on its own."""
        made = HookChain(self.reversed)
        made.calls = list(self.calls)
        return made

    def __call__(self, *args: Any, **keywords: Any) -> None:
        calls = tuple(self.calls)
        for function in calls[::-1] if self.reversed else calls:
            function(*args, **keywords)
