"""What the failures of the driver mean, and what to do about them."""

from __future__ import annotations

from tritium.diagnostics import TritiumError, error
from tritium.runtime.errors import OutOfResources

from . import library, recent
from .devices import Device
from .library import CudaFailure, Unavailable

# Statuses after which a device's context can't be used any more.
_STICKY = frozenset({214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719})
_COOPERATIVE_TOO_LARGE = 720
_SHOWN = 3

_ADVICE = {
    library.OUT_OF_MEMORY: "free memory of the device: other processes may hold some, and "
    "torch.cuda.empty_cache() gives back what torch keeps",
    209: "the code is another architecture's: see TRITIUM_CUDA_ARCH",
    222: "the driver is older than the assembler: install a newer one, or set TRITIUM_PTXAS_PATH "
    "to an older ptxas",
    library.INVALID_CONTEXT: "the device was reset, or its context destroyed, by other code",
    400: "a stream of another device was passed",
    library.LAUNCH_OUT_OF_RESOURCES: "use fewer num_warps, or maxnreg, so that a block's threads "
    "have registers enough",
    _COOPERATIVE_TOO_LARGE: "launch_cooperative_grid needs room for all programs at once: use a "
    "smaller grid",
}


def unavailable(kernel: str, device: str, problem: Unavailable) -> TritiumError:
    """E0519: there is no such device here."""
    return error("E0519", kernel=kernel, device=device, text=problem.reason, hint=problem.hint)


def failed(kernel: str, device: Device, problem: CudaFailure) -> TritiumError:
    """The error for a call of the driver that failed while ``kernel`` was to be launched."""
    if problem.status == library.NOT_INITIALIZED:
        return unavailable(kernel, str(device), library.forked())
    if problem.status in _STICKY:
        names = list(map(str, recent.launched()[:_SHOWN])) or [kernel]
        return error(
            "E0521",
            device=device,
            name=problem.name,
            text=problem.text,
            launched=", before that ".join(names),
        )
    return error(
        "E0520",
        kernel=kernel,
        function=problem.function,
        name=problem.name,
        text=problem.text,
        hint=_ADVICE.get(problem.status, ""),
    )


def too_much_shared(required: int, device: Device) -> OutOfResources:
    """More shared memory than a block can have."""
    return OutOfResources(
        required,
        device.most_shared,
        "shared memory",
        help="use smaller tiles or fewer num_stages: both take shared memory",
    )


def too_many_threads(required: int, most: int) -> OutOfResources:
    """More threads than the registers of a multiprocessor allow."""
    return OutOfResources(
        required,
        most,
        "threads",
        help="use fewer num_warps, or smaller tiles so that a thread needs fewer registers",
    )
