"""Our compiled kernels beside Triton's interpreter, which runs in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .case import OURS, Setup
from .measure import Side, summary, time_rounds
from .pointwise import add
from .rows import softmax
from .specs import Spec
from .triton_env import ROOT, Unavailable

PEER = "Triton interpreter"
LEAST = 1000.0
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
    assert process.stdin and process.stdout and process.stderr
    requests, replies = process.stdin, process.stdout

    def ask(text: str) -> str:
        try:
            requests.write(text + "\n")
            requests.flush()
        except BrokenPipeError:
            return ""
        return replies.readline().strip()

    def call() -> None:
        if ask("run") != "done":
            raise Unavailable(f"{PEER} ended early")

    try:
        if not ask(json.dumps([spec.kernel, spec.shape])).startswith("ready"):
            process.kill()
            last = (process.stderr.read().strip() or "no message").splitlines()[-1]
            raise Unavailable(f"{PEER} failed: {last}")
        yield Side(PEER, call, warm=False)
    finally:
        requests.close()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def run(spec: Spec, python: Path, setup: Setup, pairs: int, judge: bool) -> dict[str, Any]:
    """One case, as ``worker.run_case`` returns it. Raises Unavailable."""
    case = BUILDERS[spec.kernel](spec, setup)
    case.check()
    with triton_process(python, spec) as side:
        times = time_rounds([case.ours, side], pairs)
    result = {
        "name": spec.name,
        "kernel": spec.kernel,
        "shape": spec.shape,
        "dtype": spec.dtype,
        "threads": setup.threads,
        "work": case.work,
        "unit": case.unit,
        **summary(times, OURS),
    }
    if judge:
        ratio = result["ratios"][PEER]["median"]
        result["floor"] = {
            "text": f"{LEAST:,.0f}x {PEER}",
            "least": LEAST,
            "peer": PEER,
            "ratio": ratio,
            "met": ratio >= LEAST,
        }
    return result
