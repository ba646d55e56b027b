"""The functions of fp32 on every float there is, on the GPU: no error exceeds what is promised."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tritium.ir.core import REGISTRY
from tritium.ir.dtypes import float32
from tritium.ops.spec import Exact, Ulp, agreement_of

ROOT = Path(__file__).parents[4]
SCRIPT = Path(__file__).with_name("every_float.py")
UNARY = ("exp", "exp2", "log", "log2", "sin", "cos", "erf", "tanh", "sqrt", "sqrt_rn", "rsqrt")
BINARY = ("div", "div_rn")
MNEMONICS = {**{n: f"math.{n}" for n in UNARY}, **{n: f"arith.{n}" for n in BINARY}}


def measured(*arguments: str) -> dict[str, tuple[float, str]]:
    """The largest error of each function, and where it is."""
    found = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=variables,
    )
    assert done.returncode == 0, done.stderr
    lines = (line.split(maxsplit=2) for line in done.stdout.splitlines())
    return {name: (float(error), where) for name, error, where in lines}


def ceiling(name: str, executor: str) -> float:
    """What is promised against the exact value, in ulp."""
    promised = agreement_of(REGISTRY[MNEMONICS[name]], executor, float32)
    assert isinstance(promised, (Exact, Ulp))
    return 0.5 if isinstance(promised, Exact) else promised.count


@pytest.mark.gpu
def test_every_float_on_the_gpu() -> None:
    pytest.importorskip("torch", reason="the exact values are torch's")
    found = measured()
    print(
        *(f"{name}: {error:.3f} ulp at {where}" for name, (error, where) in found.items()), sep="\n"
    )
    assert set(found) == set(MNEMONICS)
    beyond = {n: e for n, e in found.items() if e[0] > ceiling(n, "nvptx") + 1e-3}
    assert beyond == {}


def test_the_measurement_holds_on_the_cpu() -> None:
    """Few floats; the CPU's own functions, whose errors are known."""
    pytest.importorskip("torch", reason="the exact values are torch's")
    names = ("exp", "sqrt", "rsqrt", "div")
    found = measured("--device", "cpu", "--step", "4093", "--chunk", str(1 << 20), *names)
    for name, (error, where) in found.items():
        assert error <= ceiling(name, "cpu") + 1e-3, (name, error, where)
        assert error >= 0.49, (name, error)
