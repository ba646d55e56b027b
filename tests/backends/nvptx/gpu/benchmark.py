"""The kernels of the GPU's benchmark in tile IR, as the benchmark's launches specialise them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from benchmarks import gpu_kernels
from benchmarks.gpu_cases import BUILDERS, PROCESSORS, Config, Data, Problem, Spec

import tritium.language as tl
from tritium import passes
from tritium.frontend import ArrayArgument, parameters, specialize_arg, trace
from tritium.ir import dtypes
from tritium.ir.core import Function
from tritium.ops.callable import DeviceFunction


class Shapes(Data):
    """Tensors without data."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.device = "meta"

    def normal(self, shape: Any, dtype: str) -> Any:
        return self.empty(shape, dtype)

    def processors(self) -> int:
        return PROCESSORS


def argument(value: Any) -> Any:
    """A tensor at an address that is a multiple of 16, a number as it is."""
    if isinstance(value, (int, float)):
        return value
    return ArrayArgument(getattr(dtypes, str(value.dtype).removeprefix("torch.")), 256)


def functions(problem: Problem) -> Iterator[tuple[Config, Function]]:
    """A case's kernel in tile IR with each of its configurations."""
    name = problem.spec.kernel
    kernel = gpu_kernels.build(name, SimpleNamespace(jit=DeviceFunction), tl)
    rules = parameters(kernel)
    for config in problem.configs:
        given = dict(zip(rules, map(argument, problem.args)))
        given.update(config.constants)
        specialised = {name: specialize_arg(value, rules[name]) for name, value in given.items()}
        function = trace(kernel, specialised).function
        passes.run_pipeline(function, passes.DEVICE)
        yield config, function


def without_data(torch: Any, spec: Spec) -> Problem:
    """A case of whatever size."""
    return BUILDERS[spec.kernel](spec, Shapes(torch))
