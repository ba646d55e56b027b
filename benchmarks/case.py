"""One case: our kernel and its peers on the same arrays, and the float64 result they must give."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

import tritium
import tritium.language as tl

from . import kernels
from .arrays import Array, Arrays
from .measure import Side, WrongResult, summary
from .specs import OURS, Floor, Spec

BFLOAT16_ROUNDING = 2.0**-8 * 1.01
PEER_SHARE = 4.0
"""What a peer's error may be of ours: NumPy's float32 exp is 2.5 ulp off, torch's and ours 1, and a
peer that rounds each step to bfloat16 rounds several times."""


@dataclass(frozen=True)
class Setup:
    """What a worker process has: its thread count and the peers that it times."""

    threads: int
    peers: frozenset[str]
    torch: ModuleType | None

    def compiles(self, spec: Spec) -> bool:
        """Whether torch.compile is a peer: it needs a C++ compiler and takes seconds a case."""
        first = spec.dtype == "float32" and not spec.odd and spec.shape != (1024, 8192)
        wanted = "compile" in self.peers and self.torch is not None
        return wanted and first and any(map(shutil.which, ("c++", "g++", "clang++")))

    def numba(self, spec: Spec) -> bool:
        found = importlib.util.find_spec("numba") is not None
        return found and "numba" in self.peers and spec.dtype == "float32" and spec.kernel != "dot"

    def numpy(self, spec: Spec) -> bool:
        return "numpy" in self.peers and spec.dtype == "float32"


@dataclass(frozen=True)
class Output:
    """What a side writes. Its error may be ``relative`` times ``scale``, plus bfloat16's rounding.

    ``exact`` and ``scale`` are float64 of the array's shape (``scale`` may be a number).
    """

    array: Array
    exact: np.ndarray
    relative: float
    scale: np.ndarray | float

    def allowed(self, ours: bool) -> np.ndarray | float:
        allowed = self.relative * np.abs(self.scale)
        if self.array.numpy.dtype.itemsize == 2:
            allowed = allowed + BFLOAT16_ROUNDING * np.abs(self.exact if ours else self.scale)
        return allowed if ours else PEER_SHARE * allowed

    def poison(self) -> None:
        self.array.numpy[...] = np.nan

    def check(self, side: str) -> None:
        error = np.abs(self.array.exact - self.exact)
        # NaN, where nothing was written, is not below either.
        bad = ~(error <= self.allowed(side == OURS))
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise WrongResult(
                f"{side}: {bad.sum():,} of {bad.size:,} results are wrong, the first at {where}: "
                f"{float(self.array.exact[where])} for {float(self.exact[where])}"
            )


@dataclass
class Case:
    """``outputs[0]`` is written by every side, the others by ours. ``work`` is of one call."""

    spec: Spec
    ours: Side
    outputs: list[Output]
    work: float
    unit: str
    peers: list[Side] = field(default_factory=list)

    def add(self, name: str, call: Callable[[], object]) -> None:
        self.peers.append(Side(name, call))

    def check(self) -> None:
        """Runs every side once. Raises WrongResult if one is wrong."""
        for side in (self.ours, *self.peers):
            outputs = self.outputs if side is self.ours else self.outputs[:1]
            for output in outputs:
                output.poison()
            side.call()
            for output in outputs:
                output.check(side.name)

    def result(
        self, setup: Setup, times: Mapping[str, Sequence[float]], floor: Floor | None
    ) -> dict[str, Any]:
        """The case as it is written to JSON; times in seconds."""
        spec = self.spec
        result: dict[str, Any] = {
            "name": spec.name,
            "kernel": spec.kernel,
            "shape": spec.shape,
            "dtype": spec.dtype,
            "threads": setup.threads,
            "arguments": "NumPy arrays" if setup.torch is None else "torch tensors",
            "work": self.work,
            "unit": self.unit,
            **summary(times, OURS),
        }
        found = floor.ratio(result["ratios"]) if floor else None
        if floor and found:
            peer, ratio = found
            met = floor.met(ratio)
            result["floor"] = {
                "text": floor.text,
                "least": floor.least,
                "peer": peer,
                "ratio": ratio,
                "met": met,
            }
        return result


def launcher(name: str, grid: tuple[int, ...], *args: Any, **constants: int) -> Side:
    """Our side: the kernel ``name`` on a fixed grid and arguments."""
    launch = kernels.build(name, tritium, tl)[grid]
    given = tuple(arg.argument if isinstance(arg, Array) else arg for arg in args)
    return Side(OURS, lambda: launch(*given, **constants))


def add_compiled(case: Case, setup: Setup, function: Callable[..., object], *args: Array) -> None:
    """Adds torch.compile of ``function`` as a peer; a failure of it is told, not fatal."""
    if not setup.compiles(case.spec):
        return
    torch = setup.torch
    assert torch is not None
    torch._dynamo.reset()
    compiled = torch.compile(function, dynamic=False, fullgraph=True)
    tensors = [array.torch for array in args]
    try:
        compiled(*tensors)
    except RuntimeError as problem:
        print(f"  torch.compile is left out of {case.spec.name}: {problem}".splitlines()[0])
    else:
        case.add("torch.compile", lambda: compiled(*tensors))


def make_arrays(setup: Setup) -> Arrays:
    return Arrays(setup.torch)
