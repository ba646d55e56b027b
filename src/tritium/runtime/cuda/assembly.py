"""Who turns PTX into machine code: ptxas where there is one that can, else the driver."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tritium import knobs
from tritium.backends.nvptx import tools
from tritium.backends.nvptx.tools import Assembler
from tritium.diagnostics import error
from tritium.runtime import cache

from . import devices, library
from .devices import Device
from .library import CudaFailure, Unavailable

if TYPE_CHECKING:
    from tritium.backends.nvptx.ptxas import Assembly

# Numbers of CUjit_option and CUjitInputType.
_INFO, _INFO_SIZE, _ERRORS, _ERRORS_SIZE = 3, 4, 5, 6
_VERBOSE, _LINES = 12, 13
_PTX = 1
_LOG_BYTES = 1 << 16
_ELF = b"\x7fELF"


# ---- ptxas ---------------------------------------------------------------------------------------


def assembler() -> Assembler | None:
    """The ptxas of this machine, None where there is none that runs."""
    path = tools.find("ptxas")
    if path is None:
        return None
    try:
        status = os.stat(path)
        identity = (status.st_size, status.st_mtime_ns, status.st_ino)
        return _assembler(path, identity)
    except (OSError, ValueError):
        return None


@functools.cache
def _assembler(path: str, identity: tuple[int, ...]) -> Assembler:
    """What it says of itself, which is kept: asking takes longer than all else of a warm start."""
    with open(path, "rb") as stream:
        is_program = stream.read(len(_ELF)) == _ELF
    if not is_program:
        # A script may run another one tomorrow.
        return tools.describe(path)
    name = cache.key("ptxas", path, str(identity))
    kept = cache.load(name, cache.HOST_SUFFIX)
    if kept is not None:
        facts = kept.facts
        arches = frozenset(facts["arches"])
        return Assembler(path, facts["release"], facts["ptx_version"], arches)
    found = tools.describe(path)
    facts = {
        "entry": "ptxas",
        "release": found.release,
        "ptx_version": found.ptx_version,
        "arches": sorted(found.arches),
    }
    cache.store(name, cache.Entry(facts, {}), cache.HOST_SUFFIX)
    return found


# ---- either --------------------------------------------------------------------------------------


def key(arch: str, ptx_version: int) -> str:
    """What the machine code depends on beside PTX and options: who assembles it."""
    tool = assembler()
    if tool is not None and tool.takes(arch, ptx_version):
        return f"ptxas {tool.release} {' '.join(tools.FLAGS)}"
    try:
        return f"driver {devices.driver_version()}"
    except Unavailable:
        return "nobody"


@contextlib.contextmanager
def assembling(
    arch: str, ptx_version: int, options: str | None, device: Device | None, kernel: str
) -> Iterator[Callable[[str, Callable[[], None]], Assembly | None]]:
    """A ``with`` block that yields a function from PTX to machine code.

    It also takes what is to be called while ptxas works.

    ptxas, or the driver of ``device``, makes it; None where there is neither. ptxas starts at once,
    so that it is ready when the PTX is. ``options`` are further words for it. Raises
    ``PTXASError`` for PTX that is refused and where ptxas can't be run, E0519 where the driver is
    too old for it.
    """
    # A warm start assembles nothing.
    from tritium.backends.nvptx import ptxas
    from tritium.runtime.errors import PTXASError

    tool = assembler()
    try:
        if tool is not None and tool.takes(arch, ptx_version):
            with ptxas.Assembling(tool.path, arch, (options or "").split()) as started:
                yield started.finish
        else:

            def by_driver(ptx: str, meanwhile: Callable[[], None]) -> Assembly | None:
                meanwhile()
                return _by_driver(ptx, ptx_version, device, kernel)

            yield by_driver
    except ptxas.AssemblerError as problem:
        place = "" if problem.place is None else f" at {problem.place[0]}:{problem.place[1]}"
        help = "the option ptx_options was given to it" if options else ""
        raise PTXASError(f"{kernel}{place}: {problem}", help=help) from problem


def _by_driver(ptx: str, ptx_version: int, device: Device | None, kernel: str) -> Assembly | None:
    if device is None:
        return None
    _refuse_old(device, ptx_version, kernel)
    return link(device, ptx)


def _refuse_old(device: Device, ptx_version: int, kernel: str) -> None:
    major, minor = devices.driver_version()
    known = [ptx for release, ptx in tools.PTX_OF_RELEASE if release <= 10 * major + minor]
    if known and known[-1] >= ptx_version:
        return
    raise error(
        "E0519",
        kernel=kernel,
        device=device,
        text=f"the driver (CUDA {major}.{minor}) is too old to assemble PTX "
        f"{ptx_version // 10}.{ptx_version % 10}, and no ptxas was found",
        hint="install a newer driver, or nvidia-cuda-nvcc, or set TRITIUM_PTXAS_PATH",
    )


# ---- the driver ----------------------------------------------------------------------------------


def link(device: Device, ptx: str) -> Assembly:
    """Have the driver assemble PTX for a device. Raises ``AssemblerError``."""
    from tritium.backends.nvptx import ptxas

    cuda = device.cuda
    said, errors = (ctypes.create_string_buffer(_LOG_BYTES) for _ in range(2))
    options: dict[int, Any] = {
        _INFO: ctypes.addressof(said),
        _INFO_SIZE: _LOG_BYTES,
        _ERRORS: ctypes.addressof(errors),
        _ERRORS_SIZE: _LOG_BYTES,
        _VERBOSE: 1,
        _LINES: 1,
    }
    numbers = (ctypes.c_int * len(options))(*options)
    values = (ctypes.c_void_p * len(options))(*options.values())
    state = ctypes.c_void_p()
    with device.current():
        cuda.cuLinkCreate_v2(len(options), numbers, values, ctypes.byref(state))
        try:
            text = ptx.encode()
            cuda.cuLinkAddData_v2(state, _PTX, text, len(text) + 1, b"kernel", 0, None, None)
            data, size = ctypes.c_void_p(), ctypes.c_size_t()
            cuda.cuLinkComplete(state, ctypes.byref(data), ctypes.byref(size))
            assert data.value is not None
            cubin = ctypes.string_at(data.value, size.value)
        except CudaFailure as problem:
            log = errors.value.decode(errors="replace")
            if problem.status in (library.OUT_OF_MEMORY, library.INVALID_CONTEXT):
                raise
            raise ptxas.refusal(log or str(problem), ptx, 1) from problem
        finally:
            cuda.cuLinkDestroy(state)
    log = said.value.decode(errors="replace")
    return ptxas.Assembly(cubin, ptxas.usage(log), log)


def found() -> str:
    """A sentence on who assembles here, for ``tritium doctor``."""
    tool = assembler()
    if tool is not None:
        version = f"{tool.ptx_version // 10}.{tool.ptx_version % 10}"
        return f"ptxas {tool.release} at {tool.path}, for PTX up to {version}"
    if knobs.nvidia.ptxas is not None:
        return f"no ptxas runs at {knobs.nvidia.ptxas}, which TRITIUM_PTXAS_PATH names"
    return "no ptxas was found: the driver assembles, more slowly; nvidia-cuda-nvcc has one"
