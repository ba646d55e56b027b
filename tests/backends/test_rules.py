"""Every rule of the elementwise operations, in machine code, against `evaluate`.

The generated cases of the operations are exhaustive for unary operations on 8- and 16-bit types and
for pairs of 8-bit values. Beyond them stand oracles of other kinds: Python's integers, exact
fractions, the C library's fmod.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests import counts
from tests.backends.jit import Body, Loops, write_loop
from tests.ops.harness import all_cases, disagreement, evaluate_case

from tritium.backends import llvm
from tritium.backends.common.rules import COMMON, Lowering, lower, register_type, rule_of
from tritium.backends.emit import Builder, Module, V, const, i64, ptr, vec, void
from tritium.backends.llvm import Target
from tritium.diagnostics import InternalError
from tritium.ir import dtypes
from tritium.ir.core import REGISTRY, Op, Value
from tritium.ir.dtypes import FLOATS, INTEGERS, DType, Type
from tritium.ir.types import PointerType
from tritium.ops import arith, cast, compare, create, logic, samples, select
from tritium.ops.codecs import decode, encode
from tritium.ops.spec import Array, Case, Exact, agreement_of

MNEMONICS = sorted(cls.mnemonic for cls in COMMON)
# The second and third lack AVX-512, the third FMA, roundings and float16 too.
TARGETS = {"host": None, "avx2": "x86-64-v3", "sse2": "x86-64"}
CONFIGS = [
    *(("host", lanes) for lanes in (1, 4, 8, 16)),
    *(("avx2", lanes) for lanes in (1, 8)),
    ("sse2", 4),
]
configs = pytest.mark.parametrize("name,lanes", CONFIGS)
some_configs = pytest.mark.parametrize("name,lanes", [("host", 1), ("host", 16), ("avx2", 8)])


def target_named(name: str) -> Target:
    try:
        return llvm.host_target(TARGETS[name])
    except ValueError as reason:
        pytest.skip(str(reason))


def body_of(op: Op, lanes: int) -> Body:
    """The operation by its rule."""

    def write(b: Builder, args: Sequence[V], target: Target) -> V:
        return rule_of(op)(Lowering(b, target, lanes), op, *args)

    return write


def operation(cls: type[Op], scalars: Iterable[Type], **attributes: Any) -> Op:
    """An operation on scalars of these types, its results made."""
    operands = [Value(scalar) for scalar in scalars]
    names = [key for key, declared in cls.fields.items() if declared.is_operand]
    made: Any = cls
    op: Op = made(**dict(zip(names, operands)), **attributes)
    op.make_results()
    return op


def constant(value: Any, scalar: Type, lanes: int) -> V:
    """A NumPy scalar in storage form as a constant of registers."""
    type_ = register_type(scalar, lanes)
    if type_.is_float:
        return const(type_, float(value))
    return const(type_, int(np.asarray(value).view(f"i{np.asarray(value).itemsize}")))


def compiled(ops: Sequence[Op], lanes: int, target: Target) -> Loops:
    """A loop for each operation in one module, named by their positions."""
    bodies = {
        str(position): (
            [register_type(x.scalar) for x in op.operands],
            register_type(op.result.scalar),
            body_of(op, lanes),
        )
        for position, op in enumerate(ops)
    }
    return Loops(bodies, lanes, target)


def applied(loops: Loops, name: str, result: Type, *arrays: Array) -> Array:
    """A loop's results on arrays of any one shape."""
    shape = np.shape(arrays[0])
    count = int(np.prod(shape))
    padded = math.ceil(count / loops.lanes) * loops.lanes
    inputs = [np.resize(array, padded) for array in arrays]
    storage = result.numpy if isinstance(result, DType) else np.dtype(np.uint64)
    out = np.zeros(padded, storage)
    loops.call(name, *inputs, out=out)
    return out[:count].reshape(shape)


def run(op: Op, lanes: int, target: Target, *arrays: Array) -> Array:
    """One operation on arrays."""
    return applied(compiled([op], lanes, target), "0", op.result.scalar, *arrays)


def bits(x: Array) -> Array:
    return np.asarray(x).view(f"u{np.asarray(x).itemsize}")


# ---- the generated cases -------------------------------------------------------------------------


@functools.cache
def cases() -> dict[str, list[Case]]:
    """The cases of every operation that has a rule."""
    found: dict[str, list[Case]] = defaultdict(list)
    for case in all_cases():
        if case.op in COMMON:
            found[case.op.mnemonic].append(case)
    return found


@functools.lru_cache(maxsize=2)
def wanted(mnemonic: str) -> list[Array]:
    """The results of an operation's cases by the reference rule."""
    return [evaluate_case(case)[0] for case in cases()[mnemonic]]


def obtained(mnemonic: str, lanes: int, target: Target) -> list[Array]:
    """The results of an operation's cases by its rule: one compiled loop for each kind of case."""
    places: dict[Any, int] = {}
    ops: list[Op] = []
    for case in cases()[mnemonic]:
        if kind_of(case) not in places:
            places[kind_of(case)] = len(ops)
            scalars = [sample.type.scalar for sample in case.samples()]
            ops.append(operation(case.op, scalars, **case.attributes))
    loops = compiled(ops, lanes, target)
    results = []
    for case in cases()[mnemonic]:
        place = places[kind_of(case)]
        data = [sample.data for sample in case.samples()]
        results.append(applied(loops, str(place), ops[place].result.scalar, *data))
    return results


def kind_of(case: Case) -> Any:
    """What two cases share that can be run by one loop."""
    return tuple(case.attributes.items()), tuple(x.type.scalar for x in case.samples())


def result_of(case: Case) -> Type:
    scalars = [sample.type.scalar for sample in case.samples()]
    return operation(case.op, scalars, **case.attributes).result.scalar


@pytest.mark.parametrize("mnemonic", MNEMONICS)
@configs
def test_a_rule_agrees_with_evaluate_on_every_case(
    mnemonic: str, name: str, lanes: int, record_property: Callable[[str, object], None]
) -> None:
    got = obtained(mnemonic, lanes, target_named(name))
    counts.note(record_property, "CPU, rules", mnemonic, len(got))
    assert got, f"{mnemonic} has a rule and no cases"
    for case, have, want in zip(cases()[mnemonic], got, wanted(mnemonic)):
        result = result_of(case)
        agreement = agreement_of(case.op, "cpu", case.dtype)
        assert disagreement(have, want, agreement, result) is None, case.label


@pytest.mark.parametrize(
    "mnemonic", [m for m in MNEMONICS if "cpu" in getattr(REGISTRY[m], "agreement", {})]
)
def test_lanes_and_cpu_change_no_bit_where_evaluate_may_differ(mnemonic: str) -> None:
    first = obtained(mnemonic, 1, target_named("host"))
    for name, lanes in CONFIGS[1:]:
        for case, have, want in zip(
            cases()[mnemonic], obtained(mnemonic, lanes, target_named(name)), first
        ):
            problem = disagreement(have, want, Exact(), result_of(case))
            assert problem is None, (case.label, name, lanes)


@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_arm64_code_calls_no_helper_that_nothing_provides(mnemonic: str) -> None:
    target = llvm.cross_target("aarch64-unknown-linux-gnu", "neoverse-n1")
    kinds = {kind_of(case): case for case in cases()[mnemonic]}
    module = Module("arm64")
    for place, case in enumerate(kinds.values()):
        op = operation(case.op, kind_of(case)[1], **case.attributes)
        inputs = [register_type(x.scalar) for x in op.operands]
        output = register_type(op.result.scalar)
        write_loop(module, f"loop.{place}", inputs, output, body_of(op, 4), 4, target)
    image = llvm.emit_object(llvm.optimise(module.text(), target))
    called = set(re.findall(rb"\0(\w+)(?=\0)", image))
    assert not {name for name in called if name.startswith(b"__")}


# ---- known operands ------------------------------------------------------------------------------


BINARY: list[type[Op]] = [
    *(arith.Add, arith.Sub, arith.Mul, arith.Div, arith.Idiv, arith.Rem),
    *(arith.Maximum, arith.Minimum, arith.Umulhi),
    *(logic.And, logic.Or, logic.Xor, logic.Shl, logic.Shr),
    *(compare.Eq, compare.Ne, compare.Lt, compare.Le, compare.Gt, compare.Ge),
]


def known_values(dtype: DType) -> list[Any]:
    """Constants that rules and the emitter treat in ways of their own, and ordinary ones."""
    if dtype.is_floating():
        values = np.array([0.0, -0.0, 1.0, -2.5, 3.0, math.inf, math.nan])
        return list(encode(values, dtype))
    if dtype is dtypes.int1:
        return [False, True]
    numbers = [0, 1, -1, 2, 7, -10, dtype.bits - 1, dtype.bits, 1 << (dtype.bits - 1)]
    return list(dict.fromkeys(samples.patterns(numbers, dtype).tolist()))


# One type for each way in which registers hold values and rules treat them.
KINDS = (
    *(dtypes.int1, dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.uint32, dtypes.int64),
    *(dtypes.uint64, dtypes.float8e5, dtypes.float8e4b8, dtypes.bfloat16, dtypes.float16),
    *(dtypes.float32, dtypes.float64),
)


class Known(NamedTuple):
    """An operation and the operands it is given, a row for each: None stands for the array."""

    op: Op
    rows: list[tuple[Any, Any]]

    def evaluate(self, x: Array) -> list[Array]:
        """A row of results for each row of operands."""
        given = [[x if y is None else np.full_like(x, y) for y in row] for row in self.rows]
        return [np.asarray(self.op.evaluate(None, *operands)) for operands in given]

    def write(self, module: Module, name: str, lanes: int, target: Target) -> None:
        """A function of the array's length, its address and that of the results."""
        params = [(i64, "n"), (ptr, "x"), (ptr, "out")]
        function = module.function(name, void, params, attributes=target.attributes)
        n, source, destination = function.params
        b = Builder(function.entry)
        scalar, made = self.op.operands[0].scalar, self.op.result.scalar
        size, made_size = itemsize(scalar), itemsize(made)
        with b.loop(const(i64, 0), n, lanes) as loop:
            address = b.gep(source, b.mul(loop.index, const(i64, size)))
            x = b.load(register_type(scalar, lanes), address, align=size)
            for place, row in enumerate(self.rows):
                operands = [x if y is None else constant(y, scalar, lanes) for y in row]
                result = rule_of(self.op)(Lowering(b, target, lanes), self.op, *operands)
                index = b.add(b.mul(n, const(i64, place)), loop.index)
                address = b.gep(destination, b.mul(index, const(i64, made_size)))
                b.store(result, address, align=made_size)
        b.ret()


def itemsize(scalar: Type) -> int:
    assert isinstance(scalar, DType)
    return scalar.itemsize


def check_known(known: Sequence[Known], lanes: int, target: Target) -> None:
    module = Module("known")
    names = [f"known.{place}" for place in range(len(known))]
    for name, each in zip(names, known):
        each.write(module, name, lanes, target)
    library = llvm.compile_and_link(module.text(), target, names)
    for name, (op, rows) in zip(names, known):
        scalar, made = op.operands[0].scalar, op.result.scalar
        assert isinstance(scalar, DType)
        assert isinstance(made, DType)
        x = np.concatenate([samples.edges(scalar), samples.random(scalar, 64)])
        x = np.resize(x, math.ceil(len(x) / lanes) * lanes)
        out = np.zeros((len(rows), len(x)), made.numpy)
        types = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
        function = ctypes.CFUNCTYPE(None, *types)(library.address(name))
        function(len(x), x.ctypes.data, out.ctypes.data)
        for row, got, want in zip(rows, out, Known(op, rows).evaluate(x)):
            assert disagreement(got, want, Exact(), made) is None, (op.mnemonic, scalar, row)


@pytest.mark.parametrize("cls", BINARY, ids=lambda cls: cls.mnemonic)
@pytest.mark.parametrize("name,lanes", [("host", 1), ("host", 16), ("avx2", 8)])
def test_known_operands_give_the_same(cls: type[Op], name: str, lanes: int) -> None:
    accepted: Any = cls
    known = []
    for dtype in [each for each in KINDS if each in accepted.accepts]:
        values = [dtype.numpy.type(value) for value in known_values(dtype)]
        rows: list[tuple[Any, Any]] = [(value, None) for value in values]
        rows += [(None, value) for value in values]
        rows += itertools.product(values, values) if lanes == 1 else []
        known.append(Known(operation(cls, (dtype, dtype)), rows))
    check_known(known, lanes, target_named(name))


# ---- integers ------------------------------------------------------------------------------------


def integer_pairs(dtype: DType) -> tuple[Array, Array]:
    """All pairs of edges, random pairs, and dividends beside multiples of their divisors."""
    edges = samples.edges(dtype)
    x, y = (each.ravel() for each in np.meshgrid(edges, edges))
    divisors = samples.random(dtype, 2000, seed=1) >> samples.patterns([dtype.bits // 3], dtype)
    with np.errstate(all="ignore"):
        multiples = divisors * samples.random(dtype, 2000, seed=2)
        beside = [multiples - dtype.numpy.type(1), multiples, multiples + dtype.numpy.type(1)]
    x = np.concatenate([x, *beside, samples.random(dtype, 2000, seed=3)])
    return x, np.concatenate([y, divisors, divisors, divisors, samples.random(dtype, 2000, seed=4)])


def truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


INTEGER_RULES: dict[type[Op], Callable[[int, int, int], int]] = {
    arith.Add: lambda x, y, bits: x + y,
    arith.Mul: lambda x, y, bits: x * y,
    arith.Idiv: lambda x, y, bits: truncated(x, y) if y else -1,
    arith.Rem: lambda x, y, bits: x - truncated(x, y) * y if y else x,
    arith.Umulhi: lambda x, y, bits: ((x % 2**bits) * (y % 2**bits)) >> bits,
    logic.Shl: lambda x, y, bits: x << y if 0 <= y < bits else 0,
    logic.Shr: lambda x, y, bits: x >> (y if 0 <= y < bits else bits),
}


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d.bits >= 32], ids=str)
@pytest.mark.parametrize("cls", INTEGER_RULES, ids=lambda cls: cls.mnemonic)
@some_configs
def test_wide_integers_against_python(cls: type[Op], dtype: DType, name: str, lanes: int) -> None:
    x, y = integer_pairs(dtype)
    if cls in (logic.Shl, logic.Shr):
        y = np.where(np.arange(len(y)) % 4 == 0, y, y % dtype.numpy.type(80))
    rule = INTEGER_RULES[cls]
    got = run(operation(cls, (dtype, dtype)), lanes, target_named(name), x, y)
    want = [rule(a, b, dtype.bits) for a, b in zip(x.tolist(), y.tolist())]
    assert got.tolist() == samples.patterns(want, dtype).tolist()


# ---- floats --------------------------------------------------------------------------------------


def remainder_pairs(dtype: DType, count: int = 3000) -> tuple[Array, Array]:
    """Dividends at, and a step beside, multiples of the divisor; quotients of every size."""
    rng = np.random.default_rng(11)
    significand = dtype.format.mantissa_bits + 1
    y = rng.uniform(1, 2, count).astype(dtype.numpy) * dtype.numpy.type(0.75)
    n = np.floor(2.0 ** rng.uniform(0, significand + 3, count))
    x = (n * y.astype(np.float64)).astype(dtype.numpy)
    sides = [x, np.nextafter(x, dtype.numpy.type(0)), np.nextafter(x, dtype.numpy.type(np.inf))]
    every = samples.random(dtype, 2 * count, seed=5)
    tiny = dtype.format.smallest_subnormal * rng.integers(1, 1000, count)
    x = np.concatenate([*sides, -x, every[:count], every[:count]])
    y = np.concatenate([y, y, -y, y, every[count:], tiny.astype(dtype.numpy)])
    edges = samples.edges(dtype)
    pairs = [each.ravel() for each in np.meshgrid(edges, edges)]
    return np.concatenate([x, pairs[0]]), np.concatenate([y, pairs[1]])


def c_fmod(x: float, y: float) -> float:
    try:
        return math.fmod(x, y)
    except ValueError:
        return math.nan


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@configs
def test_remainders_of_floats_are_exact(dtype: DType, name: str, lanes: int) -> None:
    x, y = remainder_pairs(dtype)
    got = run(operation(arith.Rem, (dtype, dtype)), lanes, target_named(name), x, y)
    # An exact remainder of two floats is a float: the C library's on doubles is the answer.
    want = np.array([c_fmod(a, b) for a, b in zip(x.tolist(), y.tolist())])
    assert disagreement(got, want.astype(dtype.numpy), Exact(), dtype) is None


@functools.cache
def finite_values(dtype: DType) -> tuple[list[Fraction], list[int]]:
    """The values of a narrow format from zero up and their patterns, and one step past them."""
    layout = dtype.format
    patterns = list(range(layout.largest_pattern + 1))
    values = decode(samples.patterns(patterns, dtype), dtype).tolist()
    step = values[-1] - values[-2]
    return [Fraction(value) for value in [*values, values[-1] + step]], [*patterns, -1]


def rounded(value: Fraction, dtype: DType) -> int | None:
    """The pattern of the nearest value, ties to the even one; None past the largest."""
    values, patterns = finite_values(dtype)
    magnitude = abs(value)
    low, high = 0, len(values) - 1
    if magnitude >= values[high]:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if values[middle] <= magnitude else (low, middle)
    above = magnitude - values[low], values[high] - magnitude
    place = high if above[0] > above[1] or (above[0] == above[1] and patterns[low] % 2) else low
    if patterns[place] < 0:
        return None
    return patterns[place] | (dtype.format.sign_pattern if value < 0 else 0)


def products_on_ties(dtype: DType, count: int = 60) -> list[tuple[float, float]]:
    """Pairs whose products lie in the middle between two values of the type."""
    leading = 1 << dtype.format.mantissa_bits
    numbers = np.arange(leading, 2 * leading)
    product = numbers[:, None] * numbers
    dropped = np.where(product >= 2 * leading * leading, 2 * leading, leading)
    found = np.argwhere(product % dropped == dropped // 2)
    chosen = found[:: max(1, len(found) // count)]
    return [(float(1 + x / leading), float(1 + y / leading)) for x, y in chosen.tolist()]


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 16], ids=str)
@some_configs
def test_a_narrow_fma_rounds_once(dtype: DType, name: str, lanes: int) -> None:
    layout = dtype.format
    small = [layout.smallest_subnormal, 3 * layout.smallest_subnormal, layout.smallest_normal]
    addends = [sign * z for sign in (1, -1) for z in [*small, 2.0**-60, 2.0**-20, 0.25, 1.0]]
    triples = [(x, y, z) for x, y in products_on_ties(dtype) for z in addends]
    triples += [(z, 1.0, -z * 2.0**-9) for _, z, _ in triples[:50]]
    x, y, z = (encode(np.array(column), dtype) for column in zip(*triples))
    got = run(operation(arith.Fma, (dtype,) * 3), lanes, target_named(name), x, y, z)
    exact = [decode(each, dtype).tolist() for each in (x, y, z)]
    tested = 0
    for place, (a, b, c) in enumerate(zip(*exact)):
        value = Fraction(a) * Fraction(b) + Fraction(c)
        want = rounded(value, dtype)
        if want is not None and value:
            tested += 1
            assert int(bits(got)[place]) == want, (a, b, c)
    assert tested > 50


# ---- pointers ------------------------------------------------------------------------------------


@some_configs
def test_pointers_and_integers_are_bits_of_each_other(name: str, lanes: int) -> None:
    pointer, other = PointerType(dtypes.float32), PointerType(dtypes.int8, const=True)

    def to_pointer_and_back(b: Any, args: Sequence[V], target: Target) -> V:
        lowering = Lowering(b, target, lanes)
        value = args[0]
        for source, into in itertools.pairwise(chain):
            op = operation(cast.Bitcast, (source,), dtype=into)
            value = rule_of(op)(lowering, op, value)
            assert value.type is register_type(into, lanes)
        return value

    chain: list[Type] = [dtypes.int64, pointer, other, dtypes.uint64, pointer, dtypes.float64]
    chain += [pointer, dtypes.int64]
    loops = Loops({"chain": ([i64], i64, to_pointer_and_back)}, lanes, target_named(name))
    x = samples.random(dtypes.int64, 64)
    assert applied(loops, "chain", dtypes.int64, x).tolist() == x.tolist()


@some_configs
def test_where_chooses_between_pointers(name: str, lanes: int) -> None:
    pointer = PointerType(dtypes.float32)
    op = operation(select.Where, (dtypes.int1, pointer, pointer))

    def choose(b: Any, args: Sequence[V], target: Target) -> V:
        addresses = [b.inttoptr(each, vec(register_type(pointer), lanes)) for each in args[1:]]
        chosen = rule_of(op)(Lowering(b, target, lanes), op, args[0], *addresses)
        return b.ptrtoint(chosen, i64)

    inputs = [register_type(dtypes.int1), i64, i64]
    loops = Loops({"choose": (inputs, i64, choose)}, lanes, target_named(name))
    condition = samples.random(dtypes.int1, 64)
    x, y = (samples.random(dtypes.int64, 64, seed) for seed in (1, 2))
    got = applied(loops, "choose", dtypes.int64, condition, x, y)
    assert got.tolist() == np.where(condition, x, y).tolist()


# ---- the table -----------------------------------------------------------------------------------


def test_an_operation_has_one_rule_and_a_missing_one_is_an_internal_error() -> None:
    table: dict[type[Op], Any] = {}
    lower(arith.Add, table=table)(lambda lowering, op, x, y: x)
    with pytest.raises(ValueError, match=r"arith\.add has two"):
        lower(arith.Add, table=table)(lambda lowering, op, x, y: y)
    add = operation(arith.Add, (dtypes.int32, dtypes.int32))
    assert rule_of(add, table) is table[arith.Add]
    assert rule_of(add, {}) is COMMON[arith.Add]
    with pytest.raises(InternalError, match=r"create\.arange has no lowering"):
        rule_of(create.Arange(start=0, end=4))
