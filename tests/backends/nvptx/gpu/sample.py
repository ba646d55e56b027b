"""A sample of the kernels for compute-sanitizer: compiled by one process, run by another.

    python -m tests.backends.nvptx.gpu.sample compile FILE [ARCH]
    compute-sanitizer --tool racecheck python -m tests.backends.nvptx.gpu.sample run FILE

The second imports no compiler and no torch: what it launches is all that the sanitizer sees.
"""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from tests.backends.nvptx.gpu.batches import EXTENTS, Batch
from tests.backends.nvptx.gpu.compiling import (
    Code,
    Failed,
    compile_batch,
    importable,
    in_process,
    processors,
)
from tests.backends.nvptx.gpu.device import Context
from tests.backends.nvptx.gpu.image import CaseImage
from tests.backends.nvptx.gpu.running import differences

ARCH = "sm_90a"

SAMPLE = (
    Batch("arith.add", False, 0),
    Batch("cast.convert", False, 3),
    Batch("math.exp", False, 0),
    Batch("memory.load", False, 1),
    Batch("memory.store", False, 0),
    Batch("memory.store", False, 2, num_warps=1),
    Batch("reduce.sum", False, 0),
    Batch("reduce.sum", False, 6, num_warps=8),
    Batch("reduce.reduce", False, 2),
    Batch("reduce.reduce", False, 12, num_warps=8),
    Batch("reduce.reduce", False, 20),
    Batch(EXTENTS + "reduce.sum", False, 3),
    Batch(EXTENTS + "reduce.max", False, 5, num_warps=8),
    Batch("shape.trans", False, 0),
    Batch(EXTENTS + "shape.trans", False, 0, num_warps=8),
    Batch(EXTENTS + "shape.reshape", False, 0),
    Batch(EXTENTS + "shape.broadcast", False, 0, num_warps=2),
    Batch("dot.dot", False, 1),
    Batch(EXTENTS + "dot.dot", False, 1),
    Batch(EXTENTS + "dot.dot", False, 3, num_warps=8),
)


def compile_sample(file: Path, arch: str) -> int:
    """Writes the batches that compile and their code; the status is 1 if one doesn't."""

    def one(batch: Batch) -> Code | str:
        try:
            code: Code = in_process(compile_batch, batch, arch)
        except Failed as problem:
            return str(problem)
        return code

    with importable(), ThreadPoolExecutor(processors()) as threads:
        made = list(zip(SAMPLE, threads.map(one, SAMPLE)))
    for batch, code in made:
        if isinstance(code, str):
            print(f"{batch.name}: {code}")
    good = [(batch, code) for batch, code in made if isinstance(code, Code)]
    file.write_bytes(pickle.dumps(good))
    print(f"{len(good)} of {len(made)} kernels of the sample are compiled")
    return 0 if len(good) == len(made) else 1


def run_sample(file: Path) -> int:
    """Runs what was compiled; the status is 1 if a result is wrong."""
    context = Context()
    wrong = []
    made: list[tuple[Batch, Code]] = pickle.loads(file.read_bytes())
    for batch, code in made:
        image = CaseImage(batch.cases, grid=batch.grid)
        context.run(code, image)
        with np.errstate(all="ignore"):
            wrong += differences(batch.cases, image)
    for text in wrong:
        print(text)
    print(f"{len(made)} kernels ran, {len(wrong)} results are wrong")
    return 1 if wrong else 0


def main() -> int:
    verb, file, *more = sys.argv[1:]
    if verb == "compile":
        return compile_sample(Path(file), more[0] if more else ARCH)
    return run_sample(Path(file))


if __name__ == "__main__":
    sys.exit(main())
