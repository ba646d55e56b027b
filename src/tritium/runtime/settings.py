"""The knobs that every launch looks at, read together."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritium import knobs


class Settings(NamedTuple):
    """What a launch depends on beside its arguments.

    ``entering`` and ``leaving`` are the functions that are told of it: always the same lists.
    """

    interpret: bool
    debug: bool
    fp_fusion: bool | None
    fp32_default: str | None
    target: str
    features: str
    arch: str | None
    entering: list[Any]
    leaving: list[Any]

    @property
    def compiled_in(self) -> tuple[Any, ...]:
        """What code is compiled for."""
        of_device = self.target, self.features, self.arch
        return self.debug, self.fp_fusion, self.fp32_default, *of_device

    @property
    def hooked(self) -> bool:
        """Whether launches are to be told of."""
        return bool(self.entering or self.leaving)


def _make(*values: Any) -> Settings:
    *plain, entering, leaving = values
    return Settings._make((*plain, entering.calls, leaving.calls))


current = knobs.Snapshot(
    _make,
    (knobs.runtime, "interpret"),
    (knobs.runtime, "debug"),
    (knobs.language, "default_fp_fusion"),
    (knobs.language, "fp32_default"),
    (knobs.cpu, "target"),
    (knobs.cpu, "features"),
    (knobs.nvidia, "arch"),
    (knobs.runtime, "launch_enter_hook"),
    (knobs.runtime, "launch_exit_hook"),
)
"""The settings now. Raises ``KnobError`` for a variable that makes no sense."""
