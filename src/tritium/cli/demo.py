"""``tritium demo``: Triton kernels on NumPy arrays, checked, timed and compared with NumPy."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from tritium import compat, interpret, knobs
from tritium.diagnostics import TritiumError

Array = Any
SECONDS = 0.3
"""How long each of the two is repeated for its time."""


@dataclass
class Case:
    """One kernel: what it computes, how it is launched, and what NumPy makes of the same.

    ``launch`` fills ``out``; ``reference`` computes the same in the dtype it is given. ``bound`` is
    the largest error allowed, relative to 1 + |value|. ``rival`` is what is timed beside it, where
    that is not ``reference`` in float32.
    """

    name: str
    shape: str
    out: Array
    launch: Callable[[], Any]
    reference: Callable[[Any], Array]
    bound: float
    rival: Callable[[], object] | None = None

    def error(self) -> float:
        """The largest difference from the float64 reference."""
        expected = self.reference(np.float64)
        return float(np.max(np.abs(self.out - expected) / (1 + np.abs(expected)), initial=0))


def cases(scale: int) -> list[Case]:
    """The kernels and their arrays; ``scale`` divides the sizes."""
    # Needs the alias, which the command installs.
    from . import kernels

    random = np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return random.standard_normal(shape, dtype=np.float32)

    return [
        _add(kernels, normal, 16_000_003 // scale),
        _gelu(kernels, normal, 4_000_001 // scale),
        _softmax(kernels, normal, 4096 // scale, 1000),
        _layer_norm(kernels, normal, 4096 // scale, 1000),
        _matmul(kernels, normal, 1000 // scale, 800 // scale, 1100 // scale),
    ]


def _add(kernels: Any, normal: Any, n: int) -> Case:
    x, y, out = normal(n), normal(n), np.empty(n, np.float32)
    theirs = np.zeros(n, np.float32)
    grid = (-(-n // 4096),)
    return Case(
        "vector add",
        f"{n:,}",
        out,
        lambda: kernels.add[grid](x, y, out, n, BLOCK=4096),
        lambda dtype: x.astype(dtype, copy=False) + y,
        1e-7,
        rival=lambda: np.add(x, y, out=theirs),
    )


def _gelu(kernels: Any, normal: Any, n: int) -> Case:
    x, scale, shift, out = normal(n), normal(n), normal(n), np.empty(n, np.float32)

    def reference(dtype: Any) -> Array:
        y = x.astype(dtype, copy=False) * scale + shift
        inner = dtype(0.7978845608) * (y + dtype(0.044715) * y * y * y)
        with np.errstate(over="ignore"):
            return y / (1 + np.exp(-2 * inner))

    grid = (-(-n // 4096),)
    return Case(
        "fused gelu",
        f"{n:,}",
        out,
        lambda: kernels.gelu_of_affine[grid](x, scale, shift, out, n, BLOCK=4096),
        reference,
        1e-5,
    )


def _softmax(kernels: Any, normal: Any, rows: int, columns: int) -> Case:
    x, out = normal(rows, columns), np.empty((rows, columns), np.float32)

    def reference(dtype: Any) -> Array:
        powers = np.exp(x.astype(dtype, copy=False) - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return Case(
        "row softmax",
        f"{rows}x{columns}",
        out,
        lambda: kernels.softmax[(rows,)](out, x, columns, columns, BLOCK=1024),
        reference,
        1e-6,
    )


def _layer_norm(kernels: Any, normal: Any, rows: int, columns: int) -> Case:
    x, out = normal(rows, columns), np.empty((rows, columns), np.float32)
    weight, bias = normal(columns), normal(columns)

    def reference(dtype: Any) -> Array:
        wide = x.astype(dtype, copy=False)
        centred = wide - wide.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        return centred / np.sqrt(variance + dtype(1e-5)) * weight + bias

    return Case(
        "layer norm",
        f"{rows}x{columns}",
        out,
        lambda: kernels.layer_norm[(rows,)](
            x, weight, bias, out, columns, columns, 1e-5, BLOCK=1024
        ),
        reference,
        1e-5,
    )


def _matmul(kernels: Any, normal: Any, m: int, n: int, k: int) -> Case:
    a, b, out = normal(m, k), normal(k, n), np.empty((m, n), np.float32)
    grid = lambda meta: (-(-m // meta["BLOCK_M"]), -(-n // meta["BLOCK_N"]))  # noqa: E731
    blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
    return Case(
        "matmul",
        f"{m}x{n}x{k}",
        out,
        lambda: kernels.matmul[grid](a, b, out, m, n, k, k, 1, n, 1, n, 1, **blocks),
        lambda dtype: a.astype(dtype, copy=False) @ b.astype(dtype, copy=False),
        1e-3,
    )


@click.command(short_help="Five Triton kernels on NumPy arrays: checked, timed, compared.")
@click.option(
    "--scale",
    type=click.IntRange(1, 800),
    default=1,
    show_default=True,
    help="Divides the sizes of the arrays.",
)
def demo(scale: int) -> None:
    """Run five Triton kernels on NumPy arrays, natively on this CPU.

    Each is checked against NumPy in float64 and timed beside NumPy in float32.
    """
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    console = Console()
    compat.install()
    table = Table(
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        title="Triton kernels on NumPy arrays, natively on the CPU",
        caption="check: largest error; first run: compiled, or read from the cache;\n"
        "ratio: NumPy's time over this one's",
    )
    for heading, justify in _COLUMNS.items():
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    wrong: list[str] = []
    threads = knobs.cpu.num_threads
    console.print(f"running on {threads} {'thread' if threads == 1 else 'threads'}")
    for case in cases(scale):
        table.add_row(*_row(case, wrong))
    console.print(table)
    for line in wrong:
        console.print(line, style="red", highlight=False, markup=False)
    _further(console)
    sys.exit(1 if wrong else 0)


_COLUMNS = {
    "kernel": "left",
    "size": "left",
    "check": "left",
    "first run": "right",
    "time": "right",
    "NumPy": "right",
    "ratio": "right",
}


def _row(case: Case, wrong: list[str]) -> list[str]:
    started = time.perf_counter()
    try:
        case.launch()
    except Exception as problem:  # noqa: BLE001 - the demo goes on with what works
        wrong.append(_fallback(case, problem))
        return [case.name, case.shape, "not compiled"]
    first = time.perf_counter() - started
    worst = case.error()
    if not worst <= case.bound:
        wrong.append(f"{case.name}: the error {worst:.1e} is over {case.bound:.0e}")
    own = _fastest(case.launch)
    theirs = _fastest(case.rival or (lambda: case.reference(np.float32)))
    check = f"{'ok' if worst <= case.bound else 'WRONG'} {worst:.0e}"
    times = [f"{first * 1e3:.0f} ms", f"{own * 1e3:.2f} ms", f"{theirs * 1e3:.2f} ms"]
    return [case.name, case.shape, check, *times, f"{theirs / own:.2f}"]


def _fallback(case: Case, problem: Exception) -> str:
    """Say what went wrong natively, and whether the interpreter gets it right."""
    text = problem.message if isinstance(problem, TritiumError) else str(problem)
    said = f"{case.name} could not be compiled for this CPU: {text.splitlines()[0]}"
    try:
        with interpret():
            case.launch()
    except Exception as second:  # noqa: BLE001 - reported beside the first
        return f"{said}; nor does the interpreter run it: {second}"
    return f"{said}; in the interpreter its error is {case.error():.1e}"


def _fastest(run: Callable[[], object]) -> float:
    """Seconds of the fastest of the runs that fit into a moment."""
    best, end = float("inf"), time.perf_counter() + SECONDS
    while (start := time.perf_counter()) < end:
        run()
        best = min(best, time.perf_counter() - start)
    return best


def _further(console: Any) -> None:
    console.print(
        f"\nWhere to go next:\n{_activation()}"
        "  tritium run script.py              a script that says `import triton`\n"
        "  tritium run --interpret script.py  step by step: breakpoint() stops in kernels\n"
        "  tritium explain script.py          the loops that its kernels became\n"
        "  tritium doctor                     what was found on this machine\n"
        "  docs/getting-started.md, examples/ a first kernel of your own",
        highlight=False,
        markup=False,
    )


def _activation() -> str:
    """The line that makes the command known to the shell; empty where it is."""
    script = os.path.join(sys.prefix, "bin", "activate")
    command = os.path.join(os.path.dirname(sys.executable), "tritium")
    found = shutil.which("tritium")
    if not os.path.exists(script) or (
        found and os.path.realpath(found) == os.path.realpath(command)
    ):
        return ""
    nearer = min(script, os.path.relpath(script), key=len)
    return f"  {'. ' + shlex.quote(nearer):34} tells the shell where `tritium` is\n"
