from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ir.random_ir import all_cases, any_function, runnable_function
from tests.ir.structure import assert_equal

from tritium.ir import REGISTRY, Function, Value, function_text, parse_function, verify
from tritium.ir.dtypes import DType, from_name, int32
from tritium.ops.spec import Case

CONTROL = {"control.for", "control.if", "control.return", "control.while", "control.yield"}


def check_round_trip(function: Function) -> None:
    verify(function)
    for locations in (False, True):
        text = function_text(function, locations)
        read = parse_function(text)
        verify(read)
        assert function_text(read, locations) == text
        assert_equal(function, read, locations=locations)


def test_every_operation_is_tried() -> None:
    assert set(all_cases()) == set(REGISTRY) - CONTROL


@pytest.mark.parametrize("mnemonic", sorted(set(REGISTRY) - CONTROL))
def test_each_case_of_each_operation(mnemonic: str) -> None:
    for case in all_cases()[mnemonic]:
        check_round_trip(function_of(case))


def function_of(case: Case) -> Function:
    function = Function("f", [(f"x{n}", s.type, 1) for n, s in enumerate(case.samples())])
    made = case.build([param.value for param in function.params])
    made.make_results("made")
    function.body.block.append(made)
    function.body.block.append(REGISTRY["control.return"]())
    return function


@given(st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_random_functions_of_all_operations(random: Random) -> None:
    check_round_trip(any_function(random))


@given(st.integers(0, 1 << 32))
@settings(max_examples=30)
def test_random_runnable_functions(seed: int) -> None:
    check_round_trip(runnable_function(Random(seed)))


@given(st.floats(), st.sampled_from(["fp32", "fp64", "fp8e5", "bf16"]))
@settings(max_examples=300)
def test_floats_are_exact(number: float, mnemonic: str) -> None:
    function = constant(number, from_name(mnemonic))
    read = parse_function(function_text(function))
    found = read.body.ops[0].attributes["value"]
    assert type(found) is float
    assert (found.hex(), found != found) == (number.hex(), number != number)


def constant(value: object, dtype: DType) -> Function:
    function = Function("f", [])
    made = REGISTRY["create.constant"](value=value, dtype=dtype)
    made.results = [Value(dtype, made)]
    function.body.block.append(made)
    function.body.block.append(REGISTRY["control.return"]())
    return function


@given(st.text())
@settings(max_examples=200)
def test_any_string_can_be_an_attribute_a_file_and_a_hint(text: str) -> None:
    function = Function("f", [])
    made = constant(1, int32).body.ops[0]
    made.results[0].name = text
    function.body.block.append(made)
    function.body.block.append(REGISTRY["control.return"]())
    made.dtype = text  # type: ignore[attr-defined]
    read = parse_function(function_text(function))
    assert read.body.ops[0].attributes["dtype"] == text
    assert function_text(read) == function_text(function)
