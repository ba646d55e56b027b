"""One configuration that a kernel can be launched with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")


class Config:
    """Values of a kernel's constexpr parameters, and launch options.

    ``kwargs`` maps parameters (and options of a backend) to values, ``pre_hook`` is called with the
    launch's arguments by name before each launch. Configurations are equal when their values and
    hooks are; they pickle.
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], object] | None = None,
        ir_override: str | None = None,
    ) -> None:
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state.get("kwargs", {}))  # type: ignore[misc]
        self.__dict__.update(state)

    def all_kwargs(self) -> dict[str, Any]:
        """``kwargs`` and those options that have a value."""
        options = {name: getattr(self, name) for name in OPTIONS}
        given = {name: value for name, value in options.items() if value is not None}
        return {**self.kwargs, **given}

    def _key(self) -> tuple[Any, ...]:
        return (*self.all_kwargs().items(), self.pre_hook)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        shown = {**self.kwargs, **{name: getattr(self, name) for name in _SHOWN}}
        if self.ir_override is not None:
            shown["ir_override"] = self.ir_override
        return ", ".join(f"{name}: {value}" for name, value in shown.items())

    def __repr__(self) -> str:
        return f"Config({self})"


_SHOWN = ("num_warps", "num_ctas", "num_stages", "maxnreg")
