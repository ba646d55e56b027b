"""Every rule of the elementwise operations, in machine code, against `evaluate`.

The generated cases of the operations are exhaustive for unary operations on 8- and 16-bit types and
for pairs of 8-bit values. Beyond them stand oracles of other kinds: Python's integers, exact
fractions, the C library's fmod.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.backends.jit import Body, Loops
from tests.ops.harness import all_cases, disagreement, evaluate_case
from tritium.backends import llvm
from tritium.backends.common.rules import COMMON, Lowering, lower, register_type, rule_of
from tritium.backends.emit import V, const, i64, vec
from tritium.backends.llvm import Target
from tritium.diagnostics import InternalError
from tritium.ir import dtypes
from tritium.ir.core import REGISTRY, Op, Value
from tritium.ir.dtypes import FLOATS, INTEGERS, DType, Type
from tritium.ir.types import PointerType
from tritium.ops import arith, cast, compare, control, create, logic, samples, select
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


class Loop(NamedTuple):
    """One operation to compile; `constants` are operands that are known, by position."""

    op: Op
    constants: tuple[tuple[int, Any], ...] = ()

    @property
    def inputs(self) -> list[Type]:
        known = dict(self.constants)
        return [x.scalar for index, x in enumerate(self.op.operands) if index not in known]

    def body(self, lanes: int) -> Body:
        def write(b: Any, args: Sequence[V], target: Target) -> V:
            given = iter(args)
            known = dict(self.constants)
            operands = [
                constant(known[index], x.scalar, lanes) if index in known else next(given)
                for index, x in enumerate(self.op.operands)
            ]
            return rule_of(self.op)(Lowering(b, target, lanes), self.op, *operands)

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


def compiled(loops: Sequence[Loop], lanes: int, target: Target) -> Loops:
    """The loops in one module, named by their positions."""
    bodies = {
        str(position): (
            [register_type(scalar) for scalar in loop.inputs],
            register_type(loop.op.result.scalar),
            loop.body(lanes),
        )
        for position, loop in enumerate(loops)
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
    return applied(compiled([Loop(op)], lanes, target), "0", op.result.scalar, *arrays)


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
    loops: list[Loop] = []
    for case in cases()[mnemonic]:
        if kind_of(case) not in places:
            places[kind_of(case)] = len(loops)
            scalars = [sample.type.scalar for sample in case.samples()]
            loops.append(Loop(operation(case.op, scalars, **case.attributes)))
    module = compiled(loops, lanes, target)
    results = []
    for case in cases()[mnemonic]:
        place = places[kind_of(case)]
        data = [sample.data for sample in case.samples()]
        results.append(applied(module, str(place), loops[place].op.result.scalar, *data))
    return results


def kind_of(case: Case) -> Any:
    """What two cases share that can be run by one loop."""
    return tuple(case.attributes.items()), tuple(x.type.scalar for x in case.samples())


def result_of(case: Case) -> Type:
    scalars = [sample.type.scalar for sample in case.samples()]
    return operation(case.op, scalars, **case.attributes).result.scalar


@pytest.mark.parametrize("mnemonic", MNEMONICS)
@configs
def test_a_rule_agrees_with_evaluate_on_every_case(mnemonic: str, name: str, lanes: int) -> None:
    got = obtained(mnemonic, lanes, target_named(name))
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
