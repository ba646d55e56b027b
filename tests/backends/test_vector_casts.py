"""Every conversion in machine code against the codecs: exhaustive for 8- and 16-bit sources."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.backends.jit import Body, Loops, write_loop

from tritium.backends import llvm
from tritium.backends.common import vector_casts as vc
from tritium.backends.emit import Module, double, float_, i1, i8, i16, i64
from tritium.backends.llvm import Target
from tritium.ir import dtypes
from tritium.ir.dtypes import VALUES, DType
from tritium.ops import codecs
from tritium.ops.codecs import Rounding

Array: TypeAlias = np.ndarray[Any, Any]
Pair: TypeAlias = tuple[DType, DType, Rounding]

ROUNDINGS: tuple[Rounding, ...] = ("rtne", "rtz")
PAIRS: list[Pair] = [
    (src, dst, rounding)
    for src in VALUES
    for dst in VALUES
    for rounding in ROUNDINGS
    if codecs.is_convertible(src, dst)
]
# The second and third lack AVX-512, the third FMA and the float16 instructions too.
TARGETS = {"host": None, "avx2": "x86-64-v3", "sse2": "x86-64"}
CASES = [("host", 16), ("avx2", 8), ("host", 1), ("sse2", 4)]


def target_named(name: str) -> Target:
    try:
        return llvm.host_target(TARGETS[name])
    except ValueError as reason:
        pytest.skip(str(reason))


def body_of(src: DType, dst: DType, rounding: Rounding) -> Body:
    return lambda b, values, target: vc.convert(b, values[0], src, dst, rounding, target)


BODIES = {
    f"{src}.{dst}.{rounding}": ((vc.storage(src),), vc.storage(dst), body_of(src, dst, rounding))
    for src, dst, rounding in PAIRS
}


def random_bits(dtype: DType, count: int) -> Array:
    generator = np.random.default_rng(dtype.bits)
    raw = generator.integers(0, 1 << 63, count, dtype=np.uint64, endpoint=True)
    raw ^= generator.integers(0, 2, count, dtype=np.uint64) << np.uint64(63)
    if dtype.is_int():
        raw[::2] >>= generator.integers(0, 64, len(raw[::2]), dtype=np.uint64)
    return raw.astype(f"u{dtype.itemsize}").view(dtype.numpy)


def float_samples(dtype: DType) -> Array:
    """Random patterns; every value and tie of every narrower format, and their neighbours."""
    points = [np.array([2.0**k for k in range(-160, 130)] + [0.5, 1.5, 2.5, np.inf, np.nan])]
    points += [np.array([float((1 << bits) - 1) for bits in (7, 8, 15, 16, 31, 32, 63, 64)])]
    for narrow in dtypes.FLOATS:
        if narrow.bits <= 16:
            patterns = np.arange(1 << narrow.bits, dtype=f"u{narrow.itemsize}").view(narrow.numpy)
            values = codecs.decode(patterns, narrow)
            values = np.unique(values[np.isfinite(values) & (values >= 0)])
            points += [values, (values[1:] + values[:-1]) / 2]
    with np.errstate(over="ignore"):
        x = np.concatenate(points).astype(dtype.numpy)
        up, down = (np.nextafter(x, dtype.numpy.type(end)) for end in (np.inf, -np.inf))
    x = np.concatenate([x, up, down])
    return np.concatenate([x, -x, random_bits(dtype, 1 << 14)])


def int_samples(dtype: DType) -> Array:
    """Random numbers of every magnitude; sums of two powers of two and their neighbours."""
    powers = [1 << bit for bit in range(dtype.bits)]
    sums = {p + q + d for p in powers for q in (0, *powers) for d in (-1, 0, 1)}
    mask = (1 << dtype.bits) - 1
    patterns = sorted({value & mask for p in sums for value in (p, -p)})
    x = np.array(patterns, dtype=f"u{dtype.itemsize}").view(dtype.numpy)
    return np.concatenate([x, random_bits(dtype, 1 << 14)])


def samples(dtype: DType) -> Array:
    if dtype is dtypes.int1:
        x = np.array([False, True])
    elif dtype.bits <= 16:
        x = np.arange(1 << dtype.bits, dtype=f"u{dtype.itemsize}").view(dtype.numpy)
    else:
        x = float_samples(dtype) if dtype.is_floating() else int_samples(dtype)
    return np.resize(x, -(-len(x) // 16) * 16)


@pytest.fixture(scope="module")
def inputs() -> dict[DType, Array]:
    return {dtype: samples(dtype) for dtype in VALUES}


def equal(got: Array, expected: Array, dtype: DType) -> Array:
    """Where the bits agree; for NaN the sign, the payload being unspecified."""
    unsigned = f"u{dtype.itemsize}"
    difference = got.view(unsigned) ^ expected.view(unsigned)
    if not dtype.is_floating():
        return difference == 0
    both_nan = np.isnan(codecs.decode(got, dtype)) & np.isnan(codecs.decode(expected, dtype))
    return (difference == 0) | (both_nan & (difference < 1 << (dtype.bits - 1)))


def wrong(loops: Loops, pair: Pair, x: Array) -> str | None:
    src, dst, rounding = pair
    got = np.zeros(len(x), dst.numpy)
    loops.call(f"{src}.{dst}.{rounding}", x, out=got)
    bad = np.flatnonzero(~equal(got, codecs.convert(x, src, dst, rounding), dst))
    if not len(bad):
        return None
    return f"{src} -> {dst} {rounding}: {len(bad)} wrong, first of {x[bad[0]]}: {got[bad[0]]}"


@pytest.mark.parametrize("name, lanes", CASES)
def test_every_conversion(name: str, lanes: int, inputs: dict[DType, Array]) -> None:
    loops = Loops(BODIES, lanes, target_named(name))
    found = [wrong(loops, pair, inputs[pair[0]]) for pair in PAIRS]
    assert [message for message in found if message] == []


def test_pairs_without_a_meaning() -> None:
    with pytest.raises(ValueError):
        Loops(
            {"f": ((i8,), i64, body_of(dtypes.float8e5, dtypes.int64, "rtne"))},
            8,
            llvm.host_target(),
        )


def test_storage_is_what_lies_in_memory() -> None:
    assert vc.storage(dtypes.int1) is i1
    assert vc.storage(dtypes.bfloat16) is i16
    assert vc.storage(dtypes.float16) is i16
    assert vc.storage(dtypes.float8e4nv) is i8
    assert vc.storage(dtypes.float32) is float_
    assert vc.storage(dtypes.float64) is double
    assert vc.storage(dtypes.uint64) is i64


@pytest.mark.parametrize("cpu", ["x86-64-v3", "skylake-avx512", "znver4"])
def test_no_helper_of_a_compiler_runtime_is_called(cpu: str) -> None:
    """What LLVM calls for bfloat and half exists in no library that a process has."""
    target = llvm.cross_target("x86_64-unknown-linux-gnu", cpu)
    module = Module("casts")
    for name, (sources, output, body) in BODIES.items():
        write_loop(module, name, sources, output, body, 8, target)
    text = llvm.assembly(llvm.optimise(module.text(), target))
    assert "call" not in text
    assert "__trunc" not in text
