"""The knobs that every launch looks at, read together."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritium import knobs
from tritium.knobs import HookChain


class Settings(NamedTuple):
    """What a launch depends on beside its arguments."""

    interpret: bool
    debug: bool
    fp_fusion: bool | None
    fp32_default: str | None
    target: str
    features: str
    enter_hook: HookChain
    exit_hook: HookChain

    @property
    def compiled_in(self) -> tuple[Any, ...]:
        """What code is compiled for."""
        return self.debug, self.fp_fusion, self.fp32_default, self.target, self.features

    @property
    def hooked(self) -> bool:
        """Whether launches are to be told of."""
        return bool(self.enter_hook.calls or self.exit_hook.calls)


current = knobs.Snapshot(
    Settings,
    (knobs.runtime, "interpret"),
    (knobs.runtime, "debug"),
    (knobs.language, "default_fp_fusion"),
    (knobs.language, "fp32_default"),
    (knobs.cpu, "target"),
    (knobs.cpu, "features"),
    (knobs.runtime, "launch_enter_hook"),
    (knobs.runtime, "launch_exit_hook"),
)
"""The settings now. Raises ``KnobError`` for a variable that makes no sense."""
