"""The cases of the GPU's benchmark: inputs, the float64 result, configurations, torch's function.

Everything is made by torch on a device of its choice: tests use the CPU and small sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import gpu_kernels
from .kernels import next_power_of_2
from .measure import WrongResult

EPSILON = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Distance from 1 to the next number of a type."""

PROCESSORS = 132
"""Multiprocessors of an H200, where the device doesn't say."""


@dataclass(frozen=True)
class Config:
    """How a kernel is launched: the constants of its source, its warps, and its grid."""

    constants: Mapping[str, int]
    num_warps: int
    grid: tuple[int, ...]
    label: str = ""

    @property
    def name(self) -> str:
        sizes = "x".join(str(value) for value in self.constants.values())
        return f"{sizes}, {self.num_warps} warps" + (f", {self.label}" if self.label else "")

    @property
    def options(self) -> dict[str, int]:
        return {**self.constants, "num_warps": self.num_warps}


@dataclass(frozen=True)
class Spec:
    """One kernel at one size and type. ``further``: judged by itself, but no part of the mean."""

    kernel: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    further: bool = False

    @property
    def name(self) -> str:
        if len(self.shape) == 1:
            n = self.shape[0]
            power = n.bit_length() - 1
            size = f"2^{power}" if n == 1 << power else f"{n:,}"
        else:
            size = "x".join(map(str, self.shape))
        return f"{self.kernel} {size} {self.dtype}"


@dataclass
class Problem:
    """A case with its data. ``moved`` is in bytes: each input read once, the output written once.

    ``exact`` gives the float64 result; an error may be ``relative`` times ``scale()`` (float64,
    broadcast to the result) plus one rounding of the output's type.
    """

    spec: Spec
    args: tuple[Any, ...]
    out: Any
    moved: int
    configs: Sequence[Config]
    exact: Callable[[], Any]
    relative: float
    scale: Callable[[], Any]
    torch: Callable[[], Any]

    def launcher(self, package: Any, language: Any, config: Config) -> Callable[[], Any]:
        """A call that launches the kernel as users write it."""
        kernel = gpu_kernels.build(self.spec.kernel, package, language)
        args, grid, options = self.args, config.grid, config.options
        return lambda: kernel[grid](*args, **options)

    def check(self, call: Callable[[], Any]) -> None:
        """Runs ``call`` on a poisoned output. Raises WrongResult if an element is wrong."""
        self.out.fill_(float("nan"))
        result = call()
        # torch's function may return its result in memory of its own; a kernel returns no tensor.
        got = result if hasattr(result, "double") else self.out
        rounding = EPSILON[str(got.dtype).removeprefix("torch.")] / 2 * 1.01
        exact = self.exact()
        allowed = self.relative * self.scale().abs() + rounding * exact.abs()
        # NaN, where nothing was written, is not below either.
        wrong = ~((got.double() - exact).abs() <= allowed)
        if count := int(wrong.sum()):
            where = tuple(wrong.nonzero()[0].tolist())
            raise WrongResult(
                f"{count:,} of {exact.numel():,} results are wrong, the first at {where}: "
                f"{float(got[where])} for {float(exact[where])}"
            )


def specs(quick: bool) -> list[Spec]:
    """All cases in the order of the report; ``quick`` has every kernel at sizes of no time."""
    if quick:
        return [
            Spec("copy", (1 << 16,)),
            Spec("add", (1 << 16,)),
            Spec("add", (50_003,), "bfloat16"),
            Spec("softmax", (9, 1000)),
            Spec("layernorm", (9, 1000), "float16"),
            Spec("colsum", (256, 200)),
            Spec("transpose", (100, 61)),
        ]
    large = 1 << 28
    return [
        Spec("copy", (large,)),
        Spec("add", (large,)),
        Spec("add", (large,), "bfloat16", further=True),
        Spec("add", (10**8 + 3,), further=True),
        *(Spec("softmax", each) for each in ((4096, 1024), (8192, 4096), (8192, 8192))),
        Spec("softmax", (4096, 12345)),
        *(
            Spec("layernorm", each, "float16")
            for each in ((4096, 4096), (8192, 8192), (1000, 5000))
        ),
        Spec("colsum", (16384, 8192)),
        Spec("transpose", (8192, 8192)),
        Spec("transpose", (5000, 3001), further=True),
    ]


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


class Data:
    """Random tensors of one device."""

    def __init__(self, torch: Any, device: str, seed: int = 0) -> None:
        self.torch = torch
        self.device = device
        self.random = torch.Generator(device).manual_seed(seed)

    def normal(self, shape: Sequence[int], dtype: str) -> Any:
        made = self.torch.empty(tuple(shape), dtype=getattr(self.torch, dtype), device=self.device)
        return made.normal_(generator=self.random)

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        return self.torch.empty(tuple(shape), dtype=getattr(self.torch, dtype), device=self.device)

    def processors(self) -> int:
        if self.device == "cpu":
            return PROCESSORS
        count: int = self.torch.cuda.get_device_properties(self.device).multi_processor_count
        return count


def pointwise_configs(length: int) -> list[Config]:
    sizes = ((1024, 4), (2048, 8), (4096, 8))
    return [Config({"BLOCK": b}, warps, (cdiv(length, b),)) for b, warps in sizes]


def copy(spec: Spec, data: Data) -> Problem:
    (n,) = spec.shape
    x, out = data.normal(spec.shape, spec.dtype), data.empty(spec.shape, spec.dtype)
    return Problem(
        spec, (x, out, n), out, 2 * x.nbytes, pointwise_configs(n),
        exact=x.double, relative=0.0, scale=x.double, torch=lambda: out.copy_(x),
    )  # fmt: skip


def add(spec: Spec, data: Data) -> Problem:
    (n,) = spec.shape
    x, y = data.normal(spec.shape, spec.dtype), data.normal(spec.shape, spec.dtype)
    out = data.empty(spec.shape, spec.dtype)
    return Problem(
        spec, (x, y, out, n), out, 3 * x.nbytes, pointwise_configs(n),
        exact=lambda: x.double() + y.double(), relative=0.0, scale=x.double,
        torch=lambda: data.torch.add(x, y, out=out),
    )  # fmt: skip


def softmax(spec: Spec, data: Data) -> Problem:
    rows, columns = spec.shape
    x, out = data.normal(spec.shape, spec.dtype), data.empty(spec.shape, spec.dtype)
    block = next_power_of_2(columns)
    few = min(rows, 4 * data.processors())
    configs = [
        Config({"BLOCK": block}, warps, (programs,), label)
        for warps in ((4, 8) if block <= 4096 else (8, 16))
        for programs, label in ((rows, "a program a row"), (few, "4 programs a processor"))
    ]
    exact = lambda: data.torch.softmax(x.double(), 1)  # noqa: E731
    return Problem(
        spec, (x, out, columns, rows, columns), out, 2 * x.nbytes, configs,
        exact=exact, relative=8e-6, scale=exact, torch=lambda: data.torch.softmax(x, 1),
    )  # fmt: skip


def layernorm(spec: Spec, data: Data) -> Problem:
    rows, columns = spec.shape
    x, out = data.normal(spec.shape, spec.dtype), data.empty(spec.shape, spec.dtype)
    weight, bias = data.normal((columns,), spec.dtype), data.normal((columns,), spec.dtype)
    mean, rstd = data.empty((rows,), "float32"), data.empty((rows,), "float32")
    functional = data.torch.nn.functional

    def exact() -> Any:
        wide = functional.layer_norm(x.double(), (columns,), eps=1e-5)
        return wide * weight.double() + bias.double()

    def scale() -> Any:
        return (4.0 * weight.double().abs() + bias.double().abs()).expand(rows, columns)

    sizes = ((1024, 4), (2048, 8), (4096, 8), (8192, 16))
    return Problem(
        spec, (x, weight, bias, out, mean, rstd, columns, columns, 1e-5), out, 2 * x.nbytes,
        [Config({"BLOCK": block}, warps, (rows,)) for block, warps in sizes],
        exact=exact, relative=2e-5, scale=scale,
        torch=lambda: functional.layer_norm(x, (columns,), weight, bias, 1e-5),
    )  # fmt: skip


def colsum(spec: Spec, data: Data) -> Problem:
    rows, columns = spec.shape
    x, out = data.normal(spec.shape, spec.dtype), data.empty((columns,), spec.dtype)
    sizes = ((32, 32, 4), (128, 32, 8), (256, 32, 8), (128, 64, 8))
    configs = [
        Config({"BLOCK_M": m, "BLOCK_N": n}, warps, (cdiv(columns, n),)) for m, n, warps in sizes
    ]
    return Problem(
        spec, (x, out, columns, rows, columns), out, x.nbytes + out.nbytes, configs,
        exact=lambda: x.double().sum(0), relative=1e-5, scale=lambda: x.double().abs().sum(0),
        torch=lambda: data.torch.sum(x, 0, out=out),
    )  # fmt: skip


def transpose(spec: Spec, data: Data) -> Problem:
    rows, columns = spec.shape
    x, out = data.normal(spec.shape, spec.dtype), data.empty((columns, rows), spec.dtype)
    sizes = ((32, 32, 4), (64, 64, 4), (64, 64, 8), (128, 64, 8))
    configs = [
        Config({"BLOCK_M": m, "BLOCK_N": n}, warps, (cdiv(rows, m), cdiv(columns, n)))
        for m, n, warps in sizes
    ]
    exact = lambda: x.double().t()  # noqa: E731
    return Problem(
        spec, (x, out, columns, rows, rows, columns), out, 2 * x.nbytes, configs,
        exact=exact, relative=0.0, scale=exact, torch=lambda: out.copy_(x.t()),
    )  # fmt: skip


BUILDERS: dict[str, Callable[[Spec, Data], Problem]] = {
    "copy": copy,
    "add": add,
    "softmax": softmax,
    "layernorm": layernorm,
    "colsum": colsum,
    "transpose": transpose,
}
