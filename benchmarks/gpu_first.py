"""A fresh process that has torch's context and times a package's ways to first results on the GPU.

    python -m benchmarks.gpu_first PACKAGE [--no-llvm]

Prints JSON: seconds of importing the package (``import``), of its first kernel (``first``), and of
three more (``add``, ``softmax``, ``layernorm``), each from its definition to its result on small
tensors. ``--no-llvm``: only the first kernel, and loading llvmlite for it is an error.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from .gpu_cases import BUILDERS, Data, Spec

FIRST = Spec("copy", (16384,))
FURTHER = (
    Spec("add", (16384,)),
    Spec("softmax", (64, 4096)),
    Spec("layernorm", (64, 4096), "float16"),
)
NO_LLVM = "--no-llvm"


def first_result(
    spec: Spec, data: Data, package: Any, language: Any, synchronize: Callable[[], object]
) -> float:
    """Seconds from the kernel's definition to its result, which is checked afterwards."""
    problem = BUILDERS[spec.kernel](spec, data)
    config = problem.configs[0]
    synchronize()
    begin = time.perf_counter()
    problem.launcher(package, language, config)()
    synchronize()
    seconds = time.perf_counter() - begin
    problem.check(lambda: problem.launcher(package, language, config)())
    return seconds


def main() -> None:
    name, alone = sys.argv[1], NO_LLVM in sys.argv[2:]
    torch = importlib.import_module("torch")
    data = Data(torch, "cuda")
    data.normal((16,), "float32").double().sum().item()
    begin = time.perf_counter()
    package, language = importlib.import_module(name), importlib.import_module(f"{name}.language")
    # A script that has a kernel asks for this when it is imported.
    _ = package.jit
    times = {"import": time.perf_counter() - begin}
    times["first"] = first_result(FIRST, data, package, language, torch.cuda.synchronize)
    if alone and "llvmlite" in sys.modules:
        raise RuntimeError("a launch from the cache has loaded llvmlite")
    for spec in () if alone else FURTHER:
        times[spec.kernel] = first_result(spec, data, package, language, torch.cuda.synchronize)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
