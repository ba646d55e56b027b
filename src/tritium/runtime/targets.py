"""What a launch's code is made for: the CPU, or a GPU, of this machine or of none."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritium import knobs
from tritium.diagnostics import error

from .arrays import CPU, CUDA
from .code import KernelCode
from .options import Options

if TYPE_CHECKING:
    from typing import Protocol

    from .binder import Bound
    from .cuda.devices import Device
    from .jit import JITFunction

    class Place(Protocol):
        """A target of a backend.

        ``fuse``: products and sums are rounded once unless said so. ``locations``: machine code
        names places in the source.
        """

        target: Any
        fuse: bool
        locations: bool

        def code(
            self,
            kernel: JITFunction,
            ir: str,
            types: Sequence[Any],
            options: Options,
            common: Mapping[str, Any],
        ) -> KernelCode:
            """A kernel's code; ``types`` are those of its run-time parameters."""


class OnCpu:
    """The CPU that the knobs name. Raises E0801 where this machine can't run its code."""

    fuse = False
    locations = False

    def __init__(self) -> None:
        from .native import host_target

        self.target = host_target()

    def code(
        self,
        kernel: JITFunction,
        ir: str,
        types: Sequence[Any],
        options: Options,
        common: Mapping[str, Any],
    ) -> KernelCode:
        """The CPU has no use for the options."""
        from .native import NativeCode

        return NativeCode(kernel.__name__, ir, types, self.target, **common)


class OnGpu:
    """An architecture, and the device of it, where there is one here. Raises E0519."""

    fuse = True
    locations = True

    def __init__(self, kernel: str, device: str, arch: str | None) -> None:
        from .cuda import devices
        from .cuda.library import CudaFailure, Unavailable

        self.device: Device | None = None
        hint = "name another target"
        if arch is None:
            try:
                self.device = devices.get(int(device.partition(":")[2]))
                found: Any = self.device.capability
            except Unavailable as problem:
                # A warm start has none.
                from .cuda import problems

                raise problems.unavailable(kernel, device, problem) from None
            except CudaFailure as problem:
                text, hint = str(problem), "see nvidia-smi"
                raise error("E0519", kernel=kernel, device=device, text=text, hint=hint) from None
            arch = knobs.nvidia.arch
            hint = "set TRITIUM_CUDA_ARCH to an architecture whose code the device runs"
            if arch is not None:
                hint = "unset TRITIUM_CUDA_ARCH to compile for the device's own architecture"
        self.target = _gpu_target(kernel, device, found if arch is None else arch, hint)

    def code(
        self,
        kernel: JITFunction,
        ir: str,
        types: Sequence[Any],
        options: Options,
        common: Mapping[str, Any],
    ) -> KernelCode:
        """Machine code for the options too. Raises E0515 for what can't be honoured."""
        from .cuda.code import CudaCode
        from .cuda.recent import Launched

        name, code = kernel.__name__, kernel.fn.__code__
        place = Launched(name, code.co_filename, code.co_firstlineno)
        return CudaCode(
            name, ir, types, self.target, device=self.device, options=options, place=place, **common
        )


def arch_of(target: Any, kernel: str) -> str:
    """The architecture that a target names: ``"sm_90a"``, ``90``, or Triton's ``GPUTarget``.

    Raises E0515 for a target that isn't an NVIDIA GPU.
    """
    named = getattr(target, "arch", target)
    backend = getattr(target, "backend", CUDA)
    if backend == CUDA and isinstance(named, int):
        from tritium.backends.nvptx.target import gpu_target

        with contextlib.suppress(ValueError):
            return gpu_target(divmod(named, 10)).arch
    if backend == CUDA and str(named).startswith("sm_"):
        return str(named)
    raise error(
        "E0515",
        kernel=kernel,
        name="target",
        text=f"{target!r} is no NVIDIA GPU",
        hint='name an architecture such as "sm_90a"',
        argument="target",
    )


def _gpu_target(kernel: str, device: str, wanted: Any, hint: str) -> Any:
    from tritium.backends.nvptx.target import gpu_target

    if isinstance(wanted, str):
        # Triton's variable has "sm90".
        wanted = f"sm_{wanted.removeprefix('sm').removeprefix('_')}"
    try:
        return gpu_target(wanted)
    except ValueError as problem:
        raise error(
            "E0519",
            kernel=kernel,
            device=device,
            text=str(problem),
            hint=hint,
        ) from None


def architecture(kernel: str, device: str) -> str:
    """What code for a device is made for: "cpu", or a GPU's architecture. Raises E0519."""
    if device == CPU:
        return CPU
    arch: str = OnGpu(kernel, device, None).target.arch
    return arch


def of(kernel: JITFunction, bound: Bound) -> Place:
    """What a launch is compiled for. Raises E0801 and E0519."""
    if bound.device == CPU:
        return OnCpu()
    return OnGpu(kernel.__name__, bound.device, bound.arch)
