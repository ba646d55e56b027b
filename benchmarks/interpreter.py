"""Our compiled kernels beside Triton's interpreter, which runs in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .case import Setup
from .measure import Side, time_rounds
from .pointwise import add
from .rows import softmax
from .specs import Floor, Spec
from .triton_env import ROOT, Unavailable

PEER = "interpreter"
FLOOR = Floor(1000.0, (PEER,))
BUILDERS = {"add": add, "softmax": softmax}


def specs(quick: bool) -> list[Spec]:
    if quick:
        return [Spec("add", (3000,)), Spec("softmax", (4, 128))]
    return [Spec("add", (10**6,)), Spec("softmax", (4096, 1024))]


@contextmanager
def triton_process(python: Path, spec: Spec) -> Iterator[Side]:
    """Triton's interpreter, ready to run ``spec`` at each call. Raises Unavailable."""
    process = subprocess.Popen(
        [str(python), "-m", "benchmarks.triton_side"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )
    requests, replies, errors = process.stdin, process.stdout, process.stderr
    if requests is None or replies is None or errors is None:
        raise RuntimeError("a pipe is missing")

    def ask(text: str) -> str:
        try:
            requests.write(text + "\n")
            requests.flush()
        except BrokenPipeError:
            return ""
        return replies.readline().strip()

    def call() -> None:
        if ask("run") != "done":
            raise Unavailable("Triton's interpreter ended early")

    try:
        if not ask(json.dumps([spec.kernel, spec.shape])).startswith("ready"):
            process.kill()
            last = (errors.read().strip() or "no message").splitlines()[-1]
            raise Unavailable(f"Triton's interpreter failed: {last}")
        yield Side(PEER, call, warm=False)
    finally:
        requests.close()
        process.wait()
        replies.close()
        errors.close()


def run(spec: Spec, python: Path, setup: Setup, pairs: int, judge: bool) -> dict[str, Any]:
    """One case, as ``worker.run_case`` returns it. Raises WrongResult and Unavailable."""
    case = BUILDERS[spec.kernel](spec, setup)
    case.check()
    with triton_process(python, spec) as side:
        times = time_rounds([case.ours, side], pairs)
    return case.result(setup, times, FLOOR if judge else None)
