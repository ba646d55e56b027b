"""The GPUs that code is generated for."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tritium.backends import llvm

TRIPLE = "nvptx64-nvidia-cuda"

_ARCHES: dict[str, tuple[tuple[int, int], int]] = {
    "sm_75": ((7, 5), 74),
    "sm_80": ((8, 0), 74),
    "sm_86": ((8, 6), 74),
    "sm_87": ((8, 7), 74),
    "sm_89": ((8, 9), 81),
    "sm_90": ((9, 0), 78),
    "sm_90a": ((9, 0), 80),
    "sm_100": ((10, 0), 86),
    "sm_100a": ((10, 0), 86),
    "sm_103a": ((10, 3), 88),
    "sm_120a": ((12, 0), 87),
    "sm_121a": ((12, 1), 88),
}
"""Compute capability, and the lowest version of PTX that knows the name and what is used of it:
priorities of caches came with 7.4, sm_89's 8-bit floats with 8.1 (PTX ISA, "Release Notes"). A
driver of that version or later takes the code."""


class GpuTarget(NamedTuple):
    """A GPU's instruction set: ``arch`` as ptxas names it, ``ptx_version`` ten times PTX's."""

    arch: str
    capability: tuple[int, int]
    ptx_version: int

    @property
    def llvm(self) -> llvm.Target:
        """The target of LLVM's code generator."""
        return llvm.cross_target(TRIPLE, self.arch, f"+ptx{self.ptx_version}")

    @property
    def attributes(self) -> tuple[str, ...]:
        """Function attributes, for ``Module.function``."""
        return ("nounwind",)

    @property
    def architecture(self) -> str:
        """As ``llvm.Target`` has it, whose place this takes in lowering rules."""
        return TRIPLE.partition("-")[0]

    def has(self, *names: str) -> bool:
        """Whether it has all these CPU features: never any."""
        return not names

    def at_least(self, major: int, minor: int = 0) -> bool:
        """Whether the compute capability is that or a later one."""
        return self.capability >= (major, minor)

    @property
    def key(self) -> str:
        """Everything of the target that the PTX depends on, for a cache key.

        LLVM isn't loaded for it: code that is in the cache needs none.
        """
        return f"{TRIPLE} {self.arch} ptx{self.ptx_version} llvmlite {llvm.installed()}"


@cache
def gpu_target(wanted: str | tuple[int, int]) -> GpuTarget:
    """The target of a name (``"sm_90a"``) or of a device's compute capability (``(9, 0)``).

    A capability gets the name with its architecture's own instructions where there is one, which
    runs on that capability only. One that isn't listed gets the last listed before it in its
    generation, whose code it runs. Raises ValueError where there is none.
    """
    if isinstance(wanted, str):
        if wanted not in _ARCHES:
            raise ValueError(f"name one of {', '.join(_ARCHES)}, not {wanted}")
        return GpuTarget(wanted, *_ARCHES[wanted])
    exact = [name for name, (capability, _) in _ARCHES.items() if capability == wanted]
    if exact:
        return gpu_target(exact[-1])
    older = [
        (capability, name)
        for name, (capability, _) in _ARCHES.items()
        if capability[0] == wanted[0] and capability < wanted and not name.endswith("a")
    ]
    if not older:
        raise ValueError(f"no code can be generated for compute capability {wanted}")
    return gpu_target(max(older)[1])
