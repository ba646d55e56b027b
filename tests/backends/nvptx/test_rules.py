"""Rules of NVIDIA GPUs: what they compute, emulated on the host, and that ptxas takes them."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from tests import counts
from tests.backends.jit import Body, Loops
from tests.backends.nvptx.emulator import for_host
from tests.backends.test_rules import (
    MNEMONICS,
    applied,
    cases,
    kind_of,
    operation,
    result_of,
    wanted,
)
from tests.ops.harness import disagreement

from tritium.backends import llvm
from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, Module, V, const
from tritium.backends.llvm import Target
from tritium.backends.nvptx.rules import apply
from tritium.backends.nvptx.target import GpuTarget, gpu_target
from tritium.ir.core import REGISTRY, Op, Value
from tritium.ir.dtypes import float16, float32, float64
from tritium.ops import arith, compare, create, select
from tritium.ops.spec import Array, Ulp, agreement_of

ROOT = Path(__file__).parents[3]
arches = pytest.mark.parametrize("arch", ("sm_80", "sm_90a"))


def body_of(op: Op, target: GpuTarget) -> Body:
    def write(b: Builder, args: Sequence[V], host: Target) -> V:
        return apply(b, target, op, args)

    return write


def compiled(ops: Sequence[Op], arch: str) -> Loops:
    bodies = {
        str(position): (
            [register_type(x.scalar) for x in op.operands],
            register_type(op.result.scalar),
            body_of(op, gpu_target(arch)),
        )
        for position, op in enumerate(ops)
    }
    return Loops(bodies, 1, llvm.host_target(), for_host)


@pytest.mark.parametrize("mnemonic", MNEMONICS)
@arches
def test_a_rule_agrees_with_evaluate_on_every_case(
    mnemonic: str, arch: str, record_property: Callable[[str, object], None]
) -> None:
    counts.note(record_property, "GPU, emulated", mnemonic, len(cases()[mnemonic]))
    places: dict[Any, int] = {}
    ops: list[Op] = []
    for case in cases()[mnemonic]:
        if kind_of(case) not in places:
            places[kind_of(case)] = len(ops)
            ops.append(operation(case.op, kind_of(case)[1], **case.attributes))
    loops = compiled(ops, arch)
    for case, want in zip(cases()[mnemonic], wanted(mnemonic)):
        place = places[kind_of(case)]
        data = [sample.data for sample in case.samples()]
        have = applied(loops, str(place), ops[place].result.scalar, *data)
        agreement = agreement_of(case.op, "nvptx", case.dtype)
        assert disagreement(have, want, agreement, result_of(case)) is None, case.label


# ---- machine code --------------------------------------------------------------------------------


def written(arch: str, directory: Path) -> list[str]:
    """PTX of all operations; returns those of which LLVM's code generator died."""
    failed: list[str] = []
    left = list(MNEMONICS)
    while left:
        program = [sys.executable, "-m", "tests.backends.nvptx.op_table", arch, str(directory)]
        done = subprocess.run([*program, *left], cwd=ROOT, capture_output=True, text=True)
        said = done.stdout.split()
        if done.returncode == 0:
            break
        assert said, done.stderr
        failed.append(f"{said[-1]}: {done.stderr.strip().splitlines()[-1:]}")
        left = left[left.index(said[-1]) + 1 :]
    return failed


# Those that are named otherwise in gpu/test_assembling.py.
@pytest.mark.parametrize("arch", ("sm_75", "sm_89", "sm_90a"))
def test_every_operation_becomes_machine_code(arch: str, tmp_path: Path) -> None:
    assert not written(arch, tmp_path)
    if shutil.which("ptxas") is None:
        pytest.skip("there is no ptxas to assemble the PTX")
    for path in sorted(tmp_path.glob("*.ptx")):
        text = path.read_text()
        assert ".ftz" not in text.replace("ex2.approx.ftz", ""), path.stem
        assert ".extern" not in text, f"{path.stem} calls what nothing provides"
        command = ["ptxas", f"-arch={arch}", str(path), "-o", str(tmp_path / "out")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{path.stem}: {done.stderr}"


def test_products_are_not_fused_into_sums(tmp_path: Path) -> None:
    done = written_ops(["arith.mul", "arith.add", "arith.sub"], tmp_path)
    for text in done:
        lines = [line for line in text.splitlines() if "\tmul." in line or "\tadd." in line]
        floats = [line for line in lines if line.split()[0].endswith(("f16", "f32", "f64"))]
        assert all(".rn" in line for line in floats), floats


def test_counts_of_wide_shifts_are_limited_before_they_are_cut(tmp_path: Path) -> None:
    """PTX counts a shift by 32 bits of a 64-bit count, of which 2**32 has none."""
    for text in written_ops(["logic.shl", "logic.shr"], tmp_path):
        kernels = text.split(".visible .entry")[1:]
        wide = [
            each for each in kernels if re.search(r"\tsh[lr]\.[bsu]64\s+%rd\d+, %rd\d+, %r\d", each)
        ]
        assert wide
        assert all("\tmin.u64" in each for each in wide), wide


@pytest.mark.parametrize("predicate", (compare.Lt, compare.Le, compare.Gt, compare.Ge))
@pytest.mark.parametrize("dtype", (float16, float32, float64))
def test_a_choice_of_zero_is_no_extremum(predicate: Any, dtype: Any) -> None:
    x, zero_ = Value(dtype), Value(dtype)
    chosen = predicate(x=x, y=zero_)
    chosen.make_results()
    made = select.Where(condition=chosen.results[0], x=x, y=zero_)
    made.make_results()
    target, kind = gpu_target("sm_90a"), register_type(dtype)
    module = Module("choice")
    function = module.function("choice", kind, [(kind, "x")])
    b = Builder(function.entry)
    given = function.params[0], const(kind, 0.0)
    flag = apply(b, target, chosen, given)
    b.ret(apply(b, target, made, (flag, *given)))
    text = llvm.assembly(llvm.optimise(module.text(), target.llvm))
    assert "setp." in text
    assert "min." not in text
    assert "max." not in text


def written_ops(mnemonics: Sequence[str], directory: Path) -> list[str]:
    program = [sys.executable, "-m", "tests.backends.nvptx.op_table", "sm_90a", str(directory)]
    subprocess.run([*program, *mnemonics], cwd=ROOT, check=True, capture_output=True)
    return [(directory / f"{name}.ptx").read_text() for name in mnemonics]


# ---- functions of doubles ------------------------------------------------------------------------

mpmath.mp.prec = 200

POINTS: dict[str, Sequence[float]] = {
    "math.exp": [*np.linspace(-745.2, 709.78, 400), -708.5, 5e-324, 1e-17, -1e-17],
    "math.exp2": [*np.linspace(-1074.9, 1023.99, 400), 5e-324, 1e-17],
    "math.log": [*np.geomspace(5e-324, 1.7e308, 300), *np.linspace(0.7, 1.42, 400), 1 + 2**-52],
    "math.log2": [*np.geomspace(5e-324, 1.7e308, 300), *np.linspace(0.7, 1.42, 400), 1 - 2**-53],
    "math.sin": [
        *np.linspace(-10, 10, 301),
        *np.geomspace(1e-300, 1.7e308, 300),
        *(k * np.pi / 2 for k in (1, 2, 3, 1000, 683565275, 683565276, 2**40 + 1)),
        6381956970095103 * 2.0**797,
        2.0**30,
        np.nextafter(2.0**30, 0),
    ],
    "math.erf": [*np.linspace(-6.2, 6.2, 1001), 1e-300, 0.92, 2.2, np.nextafter(2.2, 3)],
    "math.tanh": [*np.linspace(-20, 20, 801), 1e-300, 1.0, np.nextafter(1.0, 0), 19.0616, 5e-324],
}
POINTS["math.cos"] = POINTS["math.sin"]
EXACT = {
    "math.exp2": lambda x: mpmath.mpf(2) ** x,
    "math.log2": lambda x: mpmath.log(x, 2),
}


@pytest.mark.parametrize("mnemonic", sorted(POINTS))
def test_functions_of_doubles_keep_their_ceiling(mnemonic: str) -> None:
    cls = REGISTRY[mnemonic]
    op = operation(cls, [float64])
    points = np.array(POINTS[mnemonic], np.float64)
    have = applied(compiled([op], "sm_90a"), "0", float64, points)
    exact_of = EXACT.get(mnemonic) or getattr(mpmath, cls.verb)
    promised = agreement_of(cls, "nvptx", float64)
    assert isinstance(promised, Ulp)
    # The worst case needs more bits than the result has.
    with mpmath.workprec(1400):
        for x, got in zip(points.tolist(), have.tolist()):
            exact = exact_of(mpmath.mpf(x))
            near = abs(float(exact))
            unit = np.spacing(near) if near < 1.7e308 else 2.0**970
            error = abs(mpmath.mpf(got) - exact) / mpmath.mpf(float(unit))
            assert error <= promised.count, (mnemonic, x, got, float(error))


@functools.cache
def remainders(dtype: Any) -> Loops:
    return compiled([operation(arith.Rem, [dtype, dtype])], "sm_90a")


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_remainders_of_any_quotient_are_exact(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    info = np.finfo(dtype.numpy)
    size = 4000
    bits = f"u{dtype.itemsize}"
    x, y = (
        rng.integers(0, 2 ** (8 * dtype.itemsize), size, dtype=bits, endpoint=False).view(
            dtype.numpy
        )
        for _ in range(2)
    )
    x[:4] = info.max, info.max, info.smallest_subnormal, info.max
    y[:4] = info.smallest_subnormal, 3.0, info.max, info.smallest_normal
    loops = remainders(dtype)
    have: Array = applied(loops, "0", dtype, x, y)
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    assert disagreement(have, want, agreement_of(arith.Rem, "nvptx", dtype), dtype) is None


def test_quotients_of_one_divisor_keep_their_ceiling() -> None:
    """Whatever scale the divisor has, whether it is none or no number."""
    rng = np.random.default_rng(11)
    x, y = rng.integers(0, 1 << 32, (2, 1 << 14), np.uint32).view(np.float32)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e-39, 3e38, 2.0**126, 2.0**-126, 1.0]
    grid = np.array(np.meshgrid(special, special), np.float32).reshape(2, -1)
    x, y = (np.concatenate([each, some, own]) for each, some, own in zip((x, y), grid, (x, x)))
    spread = create.Splat(x=Value(float32), shape=(4,))
    spread.make_results()
    op = arith.Div(x=Value(spread.result.type), y=spread.result)
    op.make_results()
    have: Array = applied(compiled([op], "sm_90a"), "0", float32, x, y)
    with np.errstate(all="ignore"):
        want = (x.astype(np.float64) / y).astype(np.float32)
    agreement = agreement_of(arith.Div, "nvptx", float32)
    assert disagreement(have, want, agreement, float32) is None
