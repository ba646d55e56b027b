"""Every operation states its meaning and is tried on every type it takes, by every executor."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from tests.ops.harness import all_operations

import tritium.backends.common as common
from tritium.backends.common.rules import COMMON, Lowering, lower, register_type
from tritium.backends.common.structural import STRUCTURAL
from tritium.backends.emit import Builder, Module, undef, void
from tritium.backends.llvm import cross_target
from tritium.backends.nvptx.rules import NVPTX
from tritium.ir.core import REGISTRY, Op, Value, op
from tritium.ops.arith import Add
from tritium.ops.cast import Bitcast, Convert
from tritium.ops.elementwise import Elementwise
from tritium.ops.select import Where
from tritium.ops.spec import EXECUTORS, Exact, Order, Ulp, agreement_of, cases_of, rejects_of

OPERATIONS = all_operations()
WITHOUT_OPERANDS_TO_SAMPLE = ("control",)
"""Families whose meaning is the order of other operations: tested through whole kernels."""
REJECTED_ELSEWHERE = ("create.splat", "memory.offset")
"""Operations that no surface function makes by itself: ``full`` and ``+`` say what they refuse."""


def sampled() -> list[type[Op]]:
    """Operations that are run on operands of their own."""
    return [cls for cls in OPERATIONS if cls.family not in WITHOUT_OPERANDS_TO_SAMPLE]


def refusing() -> list[type[Op]]:
    """Operations on operands that a surface function makes."""
    return [
        cls
        for cls in sampled()
        if cls.mnemonic not in REJECTED_ELSEWHERE
        and any(declared.is_operand for declared in cls.fields.values())
    ]


def elementwise() -> list[type[Op]]:
    """Operations that every backend lowers by one rule, a scalar or a vector at a time."""
    return [
        cls
        for cls in OPERATIONS
        if issubclass(cls, Elementwise) or cls in (Convert, Bitcast, Where)
    ]


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.mnemonic)
def test_states_its_type_and_its_meaning(cls: type[Op]) -> None:
    assert cls.infer is not Op.infer
    assert cls.evaluate is not Op.evaluate
    if issubclass(cls, Elementwise) and cls.evaluate is Elementwise.evaluate:
        assert cls.compute is not Elementwise.compute


@pytest.mark.parametrize("cls", sampled(), ids=lambda cls: cls.mnemonic)
def test_has_cases_of_every_type_it_takes(cls: type[Op]) -> None:
    rows = {case.dtype for case in cases_of(cls)}
    assert rows
    if issubclass(cls, Elementwise):
        assert rows == set(cls.accepts)


@pytest.mark.parametrize("cls", refusing(), ids=lambda cls: cls.mnemonic)
def test_names_what_it_refuses(cls: type[Op]) -> None:
    assert rejects_of(cls)


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.mnemonic)
def test_agreement_is_declared_for_known_executors(cls: type[Op]) -> None:
    table = getattr(cls, "agreement", {})
    assert set(table) <= set(EXECUTORS)
    for case in cases_of(cls):
        for executor in EXECUTORS:
            assert isinstance(agreement_of(cls, executor, case.dtype), (Exact, Ulp, Order))


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.mnemonic)
def test_says_why_an_executor_has_no_code(cls: type[Op]) -> None:
    assert set(cls.unsupported) <= set(EXECUTORS) - {"reference", "interp"}
    assert all(cls.unsupported.values())


@pytest.mark.parametrize("cls", elementwise(), ids=lambda cls: cls.mnemonic)
def test_has_a_common_lowering(cls: type[Op]) -> None:
    for module in pkgutil.iter_modules(common.__path__):
        importlib.import_module(f"{common.__name__}.{module.name}")
    assert cls in COMMON, f"no backend rule for {cls.mnemonic}"


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("cls", elementwise(), ids=lambda cls: cls.mnemonic)
def test_its_lowering_takes_every_type(cls: type[Op], lanes: int) -> None:
    target = cross_target("x86_64-unknown-linux-gnu", "x86-64-v3")
    builder = Builder(Module("rules").function("rules", void, []).entry)
    for case in cases_of(cls):
        made = case.build([Value(sample.type.scalar) for sample in case.samples()])
        made.make_results()
        operands = [undef(register_type(each.scalar, lanes)) for each in made.operands]
        lowering = Lowering(builder, target, lanes)
        result = COMMON[cls](lowering, made, *operands)
        assert result.type is register_type(made.result.scalar, lanes), case.label


def test_every_backend_has_one_lowering_of_every_operation() -> None:
    by_rule = {cls.mnemonic for cls in COMMON}
    assert by_rule.isdisjoint(STRUCTURAL)
    assert by_rule | STRUCTURAL == {cls.mnemonic for cls in OPERATIONS}
    assert set(NVPTX) <= set(COMMON)


def test_a_mnemonic_is_taken_once() -> None:
    with pytest.raises(ValueError, match="defined twice"):
        op("arith.add")(Add)
    assert REGISTRY["arith.add"] is Add


def test_a_docstring_is_required() -> None:
    class Nameless(Op):
        pass

    with pytest.raises(ValueError, match="docstring"):
        op("test.nameless")(Nameless)
    assert "test.nameless" not in REGISTRY


def test_a_rule_is_given_once() -> None:
    table: dict[type[Op], object] = {}
    lower(Add, table=table)(lambda lowering, op, *operands: None)
    with pytest.raises(ValueError, match="two lowering rules"):
        lower(Add, table=table)(lambda lowering, op, *operands: None)
