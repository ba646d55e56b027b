"""The CPU's functions against float64 and mpmath, and against themselves at other widths."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import mpmath
import numpy as np
import pytest
from tests.backends.jit import Body, Loops, x86_targets

from tritium.backends import llvm
from tritium.backends.common import polynomials
from tritium.backends.common import vector_math as vm
from tritium.backends.emit import Builder, EmitError, LType, V, double, float_
from tritium.backends.llvm import Target

Array: TypeAlias = np.ndarray[Any, Any]

FUNCTIONS: dict[str, Callable[[Builder, V, Target], V]] = {
    "exp": vm.exp,
    "exp2": vm.exp2,
    "log": vm.log,
    "log2": vm.log2,
    "sin": vm.sin,
    "cos": vm.cos,
    "tanh": vm.tanh,
    "erf": vm.erf,
    "sqrt": vm.sqrt,
    "rsqrt": vm.rsqrt,
    "floor": lambda b, x, _: vm.floor(b, x),
    "ceil": lambda b, x, _: vm.ceil(b, x),
    "trunc": lambda b, x, _: vm.trunc(b, x),
    "fabs": lambda b, x, _: vm.fabs(b, x),
}
EXACT = {"sqrt", "floor", "ceil", "trunc", "fabs"}
REFERENCES: dict[str, Callable[[Array], Array]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh")},
    **{name: getattr(np, name) for name in ("sqrt", "floor", "ceil", "trunc", "fabs")},
    "erf": lambda x: np.array([math.erf(value) for value in x.tolist()]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
# In ulp of the result; docs/numerics.md derives the first.
FLOAT_CEILINGS = {
    "exp": 1.0,
    "exp2": 0.97,
    "log": 0.84,
    "log2": 0.94,
    "sin": 0.95,
    "cos": 0.95,
    "tanh": 0.96,
    "erf": 0.99,
    "rsqrt": 0.501,
}
DOUBLE_CEILING = 2.0
WIDTHS = (1, 4, 8, 16, 32)


def body_of(name: str) -> Body:
    return lambda b, values, target: FUNCTIONS[name](b, values[0], target)


def compiled(element: LType, lanes: int, target: Target) -> Loops:
    bodies = {name: ((element,), element, body_of(name)) for name in FUNCTIONS}
    return Loops(bodies, lanes, target)


@pytest.fixture(scope="module")
def float_loops() -> dict[tuple[str, int], Loops]:
    return {
        (target.cpu, lanes): compiled(float_, lanes, target)
        for target in x86_targets()
        for lanes in WIDTHS
    }


def edges() -> list[float]:
    """Where a function changes its ways: overflow, underflow, switches between branches."""
    points = [0.0, 1.0, 0.92, 2.0, 4.0, 9.01, 20.0, 87.3, 88.72284, 103.97, 104.0, 126.0, 127.99]
    points += [128.0, 149.0, 150.0, 151.0, math.sqrt(0.5), math.sqrt(2), math.pi / 4, 2.0**17]
    points += [2.0**22, 2.0**23, 2.0**24, 2.0**-126, 2.0**-149, 3.4e38, math.inf]
    points += [k * math.pi / 2 for k in range(1, 60)] + [k * math.log(2) / 2 for k in range(1, 60)]
    return points


@pytest.fixture(scope="module")
def patterns() -> Array:
    """Every 997th float, and a few around each edge, of both signs."""
    every = np.arange(0, 1 << 32, 997, dtype=np.uint64).astype(np.uint32)
    near = np.array(edges(), np.float32).view(np.int32)[:, None] + np.arange(-3, 4, dtype=np.int32)
    near = near.ravel().view(np.uint32)
    special = np.array([0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF], np.uint32)
    positive = np.concatenate([near, special])
    both = np.concatenate([every, positive, positive ^ np.uint32(1 << 31)])
    return np.resize(both, -(-len(both) // 32) * 32).view(np.float32)


def ulps(got: Array, exact: Array, digits: int, smallest: int) -> Array:
    """|got - exact| in units of the last of `digits` bits of `exact`, at least 2**smallest.

    0 where both are the same infinity or NaN; infinite where only one of them is.
    """
    _, exponent = np.frexp(np.where(np.isfinite(exact), exact, 1.0))
    exponent = np.where(exact == 0, smallest, np.maximum(exponent - digits, smallest))
    unit = np.exp2(exponent.astype(np.float64))
    error = np.abs(got.astype(np.float64) - exact) / unit
    rounded = exact.astype(got.dtype)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def same_bits(first: Array, second: Array) -> bool:
    """Whether all elements agree bit for bit, any two NaN counting as the same."""
    unsigned = f"u{first.itemsize}"
    equal = first.view(unsigned) == second.view(unsigned)
    return bool((equal | (np.isnan(first) & np.isnan(second))).all())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float_is_within_its_ceiling(
    name: str, float_loops: dict[tuple[str, int], Loops], patterns: Array
) -> None:
    got = np.empty_like(patterns)
    float_loops[llvm.host_target().cpu, 16].call(name, patterns, out=got)
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](patterns.astype(np.float64))
        errors = ulps(got, exact, 24, -149)
    worst = int(np.argmax(errors))
    assert errors[worst] <= FLOAT_CEILINGS.get(name, 0.0), (
        patterns[worst],
        got[worst],
        exact[worst],
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float_is_the_same_at_every_width(
    name: str, float_loops: dict[tuple[str, int], Loops], patterns: Array
) -> None:
    # The edges stand at the end.
    some = np.ascontiguousarray(np.concatenate([patterns[::7], patterns[-4096:]]))
    some = some[: len(some) // 32 * 32]
    results = {}
    for key, loops in float_loops.items():
        results[key] = np.empty_like(some)
        loops.call(name, some, out=results[key])
    first = next(iter(results.values()))
    assert [key for key, got in results.items() if not same_bits(got, first)] == []


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_arguments_and_multiples_of_half_pi(
    name: str, float_loops: dict[tuple[str, int], Loops]
) -> None:
    """mpmath's sine of the floats next to multiples of pi / 2, where cancellation is worst."""
    with mpmath.workprec(300):
        powers = [mpmath.mpf(2) ** power for power in range(0, 127, 3)]
        near = [float(mpmath.nint(p / mpmath.pi * 2) * mpmath.pi / 2) for p in powers]
    centre = np.array(near, np.float32).view(np.int32)[:, None]
    x = (centre + np.arange(-3, 5, dtype=np.int32)).ravel().view(np.float32)
    x = np.concatenate([x, -x])
    x = np.resize(x, -(-len(x) // 16) * 16)
    got = np.empty_like(x)
    float_loops[llvm.host_target().cpu, 16].call(name, x, out=got)
    with mpmath.workprec(300):
        function = getattr(mpmath, name)
        exact = np.array([float(function(mpmath.mpf(float(value)))) for value in x])
    assert ulps(got, exact, 24, -149).max() <= FLOAT_CEILINGS[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_limits(name: str, float_loops: dict[tuple[str, int], Loops]) -> None:
    """Infinities, NaN and zeros, and what is too large or small for the result."""
    limits = [math.inf, math.nan, 0.0]
    if name not in ("sin", "cos"):
        limits += [1.0, 3e38]
    if name in ("exp", "exp2"):
        limits += [89.0 if name == "exp" else 128.0, 150.1, 1000.0]
    x = np.array([*limits, *(-value for value in limits)], np.float32)
    x = np.resize(x, 32)
    with np.errstate(all="ignore"):
        expected = REFERENCES[name](x.astype(np.float64)).astype(np.float32)
    for loops in float_loops.values():
        got = np.empty_like(x)
        loops.call(name, x, out=got)
        assert (np.isnan(got) == np.isnan(expected)).all()
        sure = ~np.isnan(x) & (np.abs(x) != 1.0)
        assert same_bits(got[sure], expected[sure])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_the_ends_of_quadrants(name: str, float_loops: dict[tuple[str, int], Loops]) -> None:
    """The reduced argument is largest there, and larger the further out."""
    generator = np.random.default_rng(5)
    ends = (generator.integers(0, 1 << 20, 1 << 16) + 0.5) * (np.pi / 2)
    x = (ends + generator.uniform(-0.02, 0.02, len(ends))).astype(np.float32)
    x[: len(x) // 2] *= np.float32(0.125)
    got = np.empty_like(x)
    float_loops[llvm.host_target().cpu, 16].call(name, x, out=got)
    exact = REFERENCES[name](x.astype(np.float64))
    assert ulps(got, exact, 24, -149).max() <= FLOAT_CEILINGS[name]


def test_signs_of_zero(float_loops: dict[tuple[str, int], Loops]) -> None:
    x = np.array([0.0, -0.0] * 16, np.float32)
    for name in ("sin", "tanh", "erf", "sqrt", "floor", "ceil", "trunc"):
        for loops in float_loops.values():
            got = np.empty_like(x)
            loops.call(name, x, out=got)
            assert (np.signbit(got) == np.signbit(x)).all(), name


def test_powers_of_two_are_exact(float_loops: dict[tuple[str, int], Loops]) -> None:
    integers = np.arange(-160, 160, dtype=np.float32)
    with np.errstate(over="ignore"):
        powers = np.exp2(integers.astype(np.float64)).astype(np.float32)
    for loops in float_loops.values():
        got = np.empty_like(integers)
        loops.call("exp2", integers, out=got)
        assert same_bits(got, powers)
        loops.call("log2", powers, out=got)
        finite = (powers > 0) & np.isfinite(powers)
        assert same_bits(got[finite], integers[finite])


def test_one_large_lane_leaves_the_others_alone(
    float_loops: dict[tuple[str, int], Loops],
) -> None:
    """The rare branch of sin is taken for a whole vector; its other lanes must not notice."""
    alone = np.linspace(-9, 9, 64, dtype=np.float32)
    mixed = alone.copy()
    mixed[::5] = 1e30
    rest = np.ones(len(alone), bool)
    rest[::5] = False
    loops = float_loops[llvm.host_target().cpu, 16]
    for name in ("sin", "cos"):
        first, second = np.empty_like(alone), np.empty_like(alone)
        loops.call(name, alone, out=first)
        loops.call(name, mixed, out=second)
        assert same_bits(first[rest], second[rest])


@pytest.fixture(scope="module")
def double_loops() -> dict[int, Loops]:
    return {lanes: compiled(double, lanes, llvm.host_target()) for lanes in (1, 8)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_double_is_within_its_ceiling(name: str, double_loops: dict[int, Loops]) -> None:
    generator = np.random.default_rng(7)
    x = np.concatenate(
        [
            generator.uniform(-750, 750, 120),
            generator.uniform(-2, 2, 120),
            np.exp(generator.uniform(-600, 600, 120)),
            np.array(edges()),
            -np.array(edges()),
            np.array([math.nan, -0.0, 5e-324, -5e-324, 1.7976931348623157e308]),
        ]
    )
    x = np.resize(x, -(-len(x) // 8) * 8)
    got, scalar = np.empty_like(x), np.empty_like(x)
    double_loops[8].call(name, x, out=got)
    double_loops[1].call(name, x, out=scalar)
    assert same_bits(got, scalar)
    if name in EXACT:
        with np.errstate(all="ignore"):
            assert same_bits(got, REFERENCES[name](x))
        return
    special = ~np.isfinite(x) | (x == 0) | ((x < 0) & (name in ("log", "log2", "rsqrt")))
    with np.errstate(all="ignore"):
        assert same_bits(got[special], REFERENCES[name](x[special]))
    assert worst_double(name, x[~special], got[~special]) <= DOUBLE_CEILING


def worst_double(name: str, x: Array, got: Array) -> float:
    """The largest error in ulp, by mpmath."""
    functions = {
        "exp2": lambda v: mpmath.mpf(2) ** v,
        "log2": lambda v: mpmath.log(v) / mpmath.log(2),
        "rsqrt": lambda v: 1 / mpmath.sqrt(v),
    }
    function = functions.get(name) or getattr(mpmath, name)
    largest = 0.0
    with mpmath.workprec(1300):
        for value, result in zip(x.tolist(), got.tolist()):
            exact = function(mpmath.mpf(value))
            if abs(exact) >= mpmath.mpf(2) ** 1024 or math.isinf(result):
                assert result == float(exact), value
                continue
            exponent = max(mpmath.frexp(exact)[1] - 53, -1074) if exact else -1074
            largest = max(largest, float(abs(result - exact) / mpmath.mpf(2) ** exponent))
    return largest


@pytest.mark.parametrize("name", FLOAT_CEILINGS)
def test_the_ceilings_are_argued(name: str) -> None:
    """The bound from the roundings on the way, which looks at no result."""
    path = Path(__file__).parents[2] / "scripts" / "bound_math.py"
    spec = importlib.util.spec_from_file_location("bound_math", path)
    assert spec is not None
    assert spec.loader is not None
    bound_math = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bound_math
    spec.loader.exec_module(bound_math)
    total, place, *_ = bound_math.bound(name)
    assert 0.5 <= total <= FLOAT_CEILINGS[name], place


def test_library_calls_of_float_round_once() -> None:
    body: Body = lambda b, values, target: vm.library_call(b, "pow", values, target)  # noqa: E731
    loops = Loops({"power": ((float_, float_), float_, body)}, 8, llvm.host_target())
    generator = np.random.default_rng(3)
    x = generator.uniform(0.1, 10, 800).astype(np.float32)
    y = generator.uniform(-5, 5, 800).astype(np.float32)
    got = np.empty_like(x)
    loops.call("power", x, y, out=got)
    exact = x.astype(np.float64) ** y.astype(np.float64)
    assert same_bits(got, exact.astype(np.float32))


def test_a_cpu_without_fma_computes_the_same(
    float_loops: dict[tuple[str, int], Loops], patterns: Array
) -> None:
    target = llvm.host_target("x86-64")
    bodies = {name: ((float_,), float_, body_of(name)) for name in ("exp", "log", "sin")}
    plain = Loops(bodies, 4, target)
    some = np.ascontiguousarray(patterns[::101])
    some = some[: len(some) // 4 * 4]
    for name in bodies:
        got, expected = np.empty_like(some), np.empty_like(some)
        plain.call(name, some, out=got)
        float_loops[llvm.host_target().cpu, 1].call(name, some, out=expected)
        assert same_bits(got, expected), name


def test_helper_functions_are_written_once() -> None:
    def twice(b: Builder, values: Any, target: Target) -> V:
        return b.fadd(vm.sin(b, values[0], target), vm.sin(b, b.fneg(values[0]), target))

    loops = Loops({"twice": ((float_,), float_, twice)}, 8, llvm.host_target())
    assert loops.text.count("define internal") == 1
    x = np.linspace(0, 1e9, 64, dtype=np.float32)
    got = np.ones_like(x)
    loops.call("twice", x, out=got)
    assert (got == 0).all()


def test_coefficients_are_floats() -> None:
    tables = [value for value in vars(polynomials).values() if isinstance(value, tuple)]
    assert len(tables) >= 8
    assert all(float(np.float32(number)) == number for table in tables for number in table)


def test_half_is_refused() -> None:
    from tritium.backends.emit import half

    with pytest.raises(EmitError):
        Loops({"f": ((half,), half, body_of("exp"))}, 8, llvm.host_target())
