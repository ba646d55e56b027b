"""``tritium doctor``: what was found on this machine, for bug reports."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

import tritium
from tritium import knobs
from tritium.backends.nvptx import tools
from tritium.backends.nvptx.target import gpu_target
from tritium.diagnostics import TritiumError

if TYPE_CHECKING:
    from tritium.runtime.cuda.devices import Device

_PACKAGES = ("llvmlite", "numpy", "ml_dtypes", "click", "rich", "torch", "triton")


@click.command(short_help="What was found on this machine, for bug reports.")
def doctor() -> None:
    """Print versions, the CPU, the cache and the options in force; compile and run a kernel.

    The exit status is 1 if the kernel doesn't run.
    """
    failed = False
    for title, lines in (
        ("Tritium", _versions()),
        ("CPU", _cpu()),
        ("GPU", _gpu()),
        ("Cache", _cache()),
        ("Options that are set", _options()),
    ):
        click.echo(title)
        for line in lines:
            click.echo(f"  {line}")
    click.echo("Check")
    for line, good in _check():
        click.echo(f"  {line}")
        failed |= not good
    sys.exit(1 if failed else 0)


def _versions() -> Iterator[str]:
    folder = os.path.dirname(os.path.abspath(tritium.__file__))
    yield f"tritium {tritium.__version__} in {folder}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()})"
    yield platform.platform()
    for name in _PACKAGES:
        try:
            yield f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            yield f"{name} not installed"


def _cpu() -> Iterator[str]:
    from tritium.backends import llvm
    from tritium.runtime.native import host_target

    yield f"LLVM {'.'.join(map(str, llvm.llvm_version()))}"
    try:
        target = host_target()
    except TritiumError as problem:
        yield problem.message
        return
    yield f"{target.cpu}, {target.triple}, vectors of {target.vector_bits} bits"
    yield f"features: {' '.join(sorted(target.feature_set)) or 'none'}"
    yield f"{os.cpu_count()} CPUs, {knobs.available_cpus()} for this process"
    try:
        yield f"kernels run on {knobs.cpu.num_threads} threads"
    except knobs.KnobError as problem:
        yield f"the number of threads is unknown: {problem.message}"


def _gpu() -> Iterator[str]:
    from tritium.runtime.cuda import assembly, devices, library
    from tritium.runtime.cuda.library import CudaFailure, Unavailable

    try:
        major, minor = devices.driver_version()
        yield f"NVIDIA driver for CUDA {major}.{minor}: {library.file_name()}"
        for ordinal in range(devices.count()):
            yield _device(devices.get(ordinal))
    except Unavailable as problem:
        yield f"no GPU: {problem.reason}"
    except CudaFailure as problem:
        yield f"the NVIDIA driver fails: {problem}"
    yield assembly.found()
    disassembler = tools.find("nvdisasm")
    yield f"nvdisasm at {disassembler}" if disassembler else "no nvdisasm: asm['sass'] needs one"
    torch = sys.modules.get("torch")
    if torch is not None:
        version = torch.version.cuda
        yield f"torch for CUDA {version}" if version else "torch without CUDA"


def _device(device: Device) -> str:
    major, minor = device.capability
    try:
        arch = gpu_target(device.capability).arch
    except ValueError as problem:
        arch = str(problem)
    return (
        f"{device}: {device.name}, compute capability {major}.{minor} (code for {arch}), "
        f"{device.multiprocessors} multiprocessors, {device.memory / 2**30:.0f} GiB, "
        f"{device.most_shared >> 10} KiB of shared memory a block"
    )


def _cache() -> Iterator[str]:
    from tritium.runtime import cache

    from .cache import contents

    place = cache.folder()
    yield place
    try:
        yield contents()
    except OSError as problem:
        yield f"can't be read: {problem}"
        return
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as problem:
        yield f"can't be written, so that every process compiles anew: {problem.strerror}"
        yield "TRITIUM_CACHE_DIR names another folder"


def _options() -> Iterator[str]:
    none = True
    for group in knobs.GROUPS:
        for name, knob in group.descriptors().items():
            source = group.source(name)
            if source == "default" or isinstance(knob, knobs.Hooks):
                continue
            none = False
            try:
                value = repr(getattr(group, name))
            except knobs.KnobError as problem:
                value = problem.message
            yield f"{group.name}.{name} = {value} ({source})"
    if none:
        yield "none"


def _check() -> Iterator[tuple[str, bool]]:
    import numpy as np

    from .probe import double

    x = np.arange(1000, dtype=np.float32)
    for name, kernel in (("natively", double), ("in the interpreter", double.interpret)):
        out = np.zeros_like(x)
        yield from _launched(f"a kernel {name}", kernel, x, out, lambda: out)  # noqa: B023
    from tritium.runtime.cuda import devices
    from tritium.runtime.cuda.library import CudaFailure, Unavailable
    from tritium.runtime.cuda.memory import DeviceArray

    try:
        count = devices.count()
    except (Unavailable, CudaFailure):
        # Said under "GPU".
        return
    for device in map(devices.get, range(count)):
        what = f"a kernel on {device}"
        try:
            there, result = (DeviceArray(device, each) for each in (x, np.zeros_like(x)))
        except CudaFailure as problem:
            yield f"{what}: {problem}", False
            continue
        yield from _launched(what, double, there, result, result.numpy)


def _launched(
    what: str, kernel: Any, x: Any, out: Any, result: Callable[[], Any]
) -> Iterator[tuple[str, bool]]:
    """Run the kernel of ``probe`` on arrays; how that went, in lines, and whether it was right."""
    import time

    import numpy as np

    start = time.perf_counter()
    try:
        kernel[(4,)](x, out, 1000, BLOCK=256)
        good = bool((result() == 2 * np.arange(1000)).all())
    except TritiumError as problem:
        yield f"{what}: {problem.message}", False
        if problem.help:
            yield f"  help: {problem.help}", False
    except Exception as problem:  # noqa: BLE001 - reported
        yield f"{what}: {type(problem).__name__}: {problem}", False
    else:
        taken = (time.perf_counter() - start) * 1e3
        yield f"{what}: {'right' if good else 'WRONG'}, {taken:.0f} ms", good
