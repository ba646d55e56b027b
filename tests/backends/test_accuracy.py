"""The sweeps over all floats: a sample of them, and what is kept of the whole ones."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from tritium.backends import llvm
from tritium.backends.common import vector_math
from tritium.backends.emit import Builder, V, const, float_, i1, vec
from tritium.ir.dtypes import VALUES

ROOT = Path(__file__).parents[2]


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


sweeps = script("sweep_math")
KEPT = json.loads(sweeps.KEPT.read_text("utf-8"))
PARTS = [(name, part) for name in sweeps.NAMES for part in sweeps.parts_of(name)]
CEILING = 1.0


def label(value: Any) -> str:
    return value if isinstance(value, str) else value.label


# ---- functions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "part"), PARTS, ids=label)
def test_a_sample_of_the_sweep(name: str, part: Any) -> None:
    """Every 61st chunk of 2**20 floats: every eighth exponent; the worst by mpmath."""
    found = sweeps.sweep(name, part, llvm.host_target(), step=61)
    assert found.inputs >= 28 << 20
    assert found.worst <= CEILING
    assert found.mpmath_worst <= CEILING
    assert found.mpmath_checked == sweeps.WORST
    assert found.libm_error < 1e-6


def test_every_float_was_swept() -> None:
    rows = {(row["function"], row["part"]): row for row in KEPT["found"]}
    assert list(rows) == [(name, part.label) for name, part in PARTS]
    for name in sweeps.NAMES:
        mine = [row for row in rows.values() if row["function"] == name]
        assert sum(row["inputs"] for row in mine) == 1 << 32
    for row in rows.values():
        assert 0 < row["mpmath_worst"] <= CEILING
        assert row["worst"] == pytest.approx(row["mpmath_worst"], abs=1e-6)
        assert row["mpmath_checked"] == sweeps.WORST


@pytest.mark.parametrize("cpu", [None, "x86-64-v3"])
@pytest.mark.parametrize("name", sweeps.NAMES)
def test_the_worst_inputs_are_as_bad_as_they_were(name: str, cpu: str | None) -> None:
    """What is kept was found with these very functions, and is the same for another CPU."""
    try:
        loop = sweeps.Sweep(name, llvm.host_target(cpu))
    except ValueError as reason:
        pytest.skip(str(reason))
    for row in (row for row in KEPT["found"] if row["function"] == name):
        pattern = int(np.float32(row["at"]).view(np.uint32))
        loop.run(pattern, sweeps.LANES)
        error = sweeps.ulps(name, row["at"], float(loop.results[0]))
        assert error == pytest.approx(row["mpmath_worst"], rel=1e-12)


def replaced(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Builder, V, V], V], first: int
) -> tuple[Any, int]:
    """A sweep of 16 floats of an ``exp`` whose results are changed."""
    exact = vector_math.exp
    monkeypatch.setattr(vector_math, "exp", lambda b, x, target: change(b, x, exact(b, x, target)))
    loop = sweeps.Sweep("exp", llvm.host_target())
    return loop, loop.run(first, sweeps.LANES)


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_by_two(b: Builder, x: V, result: V) -> V:
        bits = b.as_int(result)
        return b.as_float(b.add(bits, const(bits.type, 2)), float_)

    first = int(np.float32(1.5).view(np.uint32))
    loop, otherwise = replaced(monkeypatch, off_by_two, first)
    assert otherwise == sweeps.LANES
    errors = loop.errors[: sweeps.LANES]
    assert ((errors > 1) & (errors < 3)).all()
    with mpmath.workprec(100):
        want = abs(mpmath.mpf(float(loop.results[0])) - mpmath.exp(mpmath.mpf(1.5))) * 2**21
    assert float(errors[0]) == pytest.approx(float(want), rel=1e-6)
    assert sweeps.ulps("exp", 1.5, float(loop.results[0])) == pytest.approx(float(want), rel=1e-9)


@pytest.mark.parametrize(
    ("first", "wrong"), [(0x7F800000, 1.0), (0x7FC00000, 1.0), (0x43000000, 3e38), (1, math.nan)]
)
def test_wrong_infinities_and_nan_are_found(
    first: int, wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of exp of infinity, of NaN, of an overflow, of nearly 0."""
    loop, otherwise = replaced(monkeypatch, lambda b, x, _: const(x.type, wrong), first)
    assert otherwise == sweeps.LANES
    assert loop.errors[0] > 1


def test_a_zero_of_the_wrong_sign_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = vector_math.sin

    def positive(b: Builder, x: V, target: llvm.Target) -> V:
        zero = b.fcmp("oeq", x, const(x.type, 0.0))
        none = const(vec(i1, sweeps.LANES), 0)
        assert zero.type is none.type
        return b.select(zero, const(x.type, 0.0), exact(b, x, target))

    monkeypatch.setattr(vector_math, "sin", positive)
    loop = sweeps.Sweep("sin", llvm.host_target())
    loop.run(0x80000000, sweeps.LANES)
    assert loop.errors[0] == math.inf
    loop.run(0, sweeps.LANES)
    assert loop.errors[0] == 0


# ---- conversions ---------------------------------------------------------------------------------


def test_every_conversion_was_tried_on_every_value() -> None:
    casts = script("cast_table")
    kept = json.loads(casts.KEPT.read_text("utf-8"))["found"]
    have = [(row["from"], row["to"], row["rounding"]) for row in kept]
    assert have == [(a.name, b.name, rounding) for a, b, rounding in casts.pairs()]
    bits = {dtype.name: dtype.bits for dtype in VALUES}
    for row in kept:
        assert (row["interp"], row["cpu"]) == (0, 0)
        few = bits[row["from"]] <= 16
        assert row["values"] == 1 << bits[row["from"]] if few else row["values"] > 10_000


def test_a_wrong_conversion_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    casts = script("cast_table")
    source, target = (next(d for d in VALUES if d.name == name) for name in ("fp8e5", "fp16"))
    name = f"{source}.{target}.rtne"
    bodies = {name: casts.BODIES[name]}
    loops = [casts.Loops(bodies, 16, llvm.host_target())]
    assert casts.wrong(source, target, "rtne", loops) == (256, 0, 0)
    right = casts.codecs.convert
    monkeypatch.setattr(casts.codecs, "convert", lambda *args: right(*args) + np.float16(1))
    tried, interp, cpu = casts.wrong(source, target, "rtne", loops)
    assert tried == 256
    # Infinities stay, NaN too, and some are too large for the sum to differ.
    assert 100 < interp < 250
    assert 100 < cpu < 250
