"""``tritium doctor``: what was found on this machine, for bug reports."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
from collections.abc import Iterator

import click

import tritium
from tritium import knobs
from tritium.diagnostics import TritiumError

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
    yield f"kernels run on {knobs.cpu.num_threads} threads"


def _gpu() -> Iterator[str]:
    import ctypes.util

    found = ctypes.util.find_library("cuda")
    yield f"NVIDIA driver: {found or 'not found'}"
    yield "this version of Tritium runs kernels on the CPU only"


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
    import time

    import numpy as np

    from .probe import double

    x = np.arange(1000, dtype=np.float32)
    for name, kernel in (("natively", double), ("in the interpreter", double.interpret)):
        out = np.zeros_like(x)
        start = time.perf_counter()
        try:
            kernel[(4,)](x, out, x.size, BLOCK=256)
        except TritiumError as problem:
            yield f"a kernel {name}: {problem.message}", False
            if problem.help:
                yield f"  help: {problem.help}", False
            continue
        except Exception as problem:  # noqa: BLE001 - reported
            yield f"a kernel {name}: {type(problem).__name__}: {problem}", False
            continue
        taken = (time.perf_counter() - start) * 1e3
        good = bool(np.array_equal(out, 2 * x))
        yield f"a kernel {name}: {'right' if good else 'WRONG'}, {taken:.0f} ms", good
