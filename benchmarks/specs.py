"""What is timed: kernels, sizes and types, and the floors that their ratios must meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OURS = "tritium"
"""Our side's name beside the peers'."""

PEER_ORDER = ("torch", "torch rms_norm", "NumPy", "numba", "torch.compile")
"""In tables and in the plot."""

POINTWISE = ("add", "chain")
ROWS = ("softmax", "layernorm", "cross_entropy", "rmsnorm")
KERNELS = (*POINTWISE, *ROWS, "dot")
DTYPES = ("float32", "bfloat16")

ODD_SHARE = 0.9
"""The share of a floor that sizes must meet which are no multiple of a vector or a block."""

LEVEL = 0.97
"""What passes for a floor of 1.0: medians of equal implementations differ by this much."""


@dataclass(frozen=True)
class Spec:
    """One kernel at one size and type; ``odd`` sizes leave a tail in every row or in the array."""

    kernel: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    odd: bool = False

    @property
    def size(self) -> str:
        if self.kernel == "dot":
            return f"{self.shape[0]}^3"
        if len(self.shape) == 1:
            return f"{self.shape[0]:,}"
        return "x".join(map(str, self.shape))

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.size}" + (" bf16" if self.dtype == "bfloat16" else "")


@dataclass(frozen=True)
class Floor:
    """The least ratio of the best of ``peers`` (those whose name begins so) to our time."""

    least: float
    peers: tuple[str, ...]

    @property
    def text(self) -> str:
        best = f"best of {', '.join(self.peers)}" if len(self.peers) > 1 else self.peers[0]
        return f"{self.least:,.4g}x {best}"

    def ratio(self, ratios: Mapping[str, Mapping[str, float]]) -> tuple[str, float] | None:
        """The best of the peers that were timed and the ratio of the medians to it."""
        found = [
            (ratio["median"], name)
            for name, ratio in ratios.items()
            if name.split(" ")[0] in self.peers
        ]
        if not found:
            return None
        least, name = min(found)
        return name, least

    def met(self, ratio: float) -> bool:
        return ratio >= (LEVEL if self.least == 1.0 else self.least)


def floor(spec: Spec, threads: int) -> Floor | None:
    """What ``spec`` must meet at this thread count; None if its ratios are only printed."""
    if spec.dtype != "float32":
        return None
    if spec.kernel == "dot":
        return Floor(0.4, ("torch", "NumPy")) if spec.shape[0] == 512 else None
    if spec.kernel == "add":
        least, peers = 1.0, ("torch", "NumPy", "numba")
    else:
        peers = ("torch",)
        least = {
            "chain": 2.0,
            "softmax": 1.2 if threads == 1 else 1.0,
            "layernorm": 1.2 if threads == 1 else 1.0,
            "cross_entropy": 1.0,
            "rmsnorm": 1.0,
        }[spec.kernel]
    return Floor(least * ODD_SHARE if spec.odd else least, peers)


def specs(quick: bool) -> list[Spec]:
    """All cases in the order of the report; ``quick`` has every kernel at sizes of no time."""
    lengths = [(5_000, False), (5_003, True)] if quick else [(10**7, False), (10**7 + 3, True)]
    rows = (
        [((8, 128), False), ((7, 100), True)]
        if quick
        else [((4096, 1024), False), ((1024, 8192), False), ((4095, 1000), True)]
    )
    squares = [64] if quick else [512, 1024]
    return [
        spec
        for dtype in DTYPES
        for spec in (
            *(Spec(k, (n,), dtype, odd) for k in POINTWISE for n, odd in lengths),
            *(Spec(k, shape, dtype, odd) for k in ROWS for shape, odd in rows),
            *(Spec("dot", (n, n), dtype) for n in squares),
        )
    ]
