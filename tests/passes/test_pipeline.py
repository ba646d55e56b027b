from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tritium import knobs
from tritium.diagnostics import ArgumentValueError, CompilationError, InternalError
from tritium.ir import Function, function_text, parse_function
from tritium.ir.dtypes import int64
from tritium.passes import DEFAULT, PASSES, Step, parse_pipeline, register_pass, run_pipeline

TEXT = """
func @f(%p: *i32, %n: i32) ({
  %zero = create.constant {value = 0, dtype = i32} : i32
  %sum = arith.add %n, %zero : i32
  memory.store %p, %sum, _
  control.return
})
"""


@dataclass(frozen=True)
class BreakOptions:
    times: int = 1


@pytest.fixture
def breaking() -> Iterator[None]:
    @register_pass("break", BreakOptions)
    def run(function: Function, options: BreakOptions) -> bool:
        for _ in range(options.times):
            function.body.ops[1].results[0].type = int64
        return True

    yield
    del PASSES["break"]


def test_steps_run_in_order_and_are_recorded() -> None:
    function = parse_function(TEXT)
    seen: list[tuple[str, str]] = []

    def after(step: Step, function: Function) -> None:
        seen.append((str(step), function_text(function)))

    runs = run_pipeline(function, "canonicalize,dce,cse", check=True, after=after)
    assert [str(run.step) for run in runs] == ["canonicalize", "dce", "cse"]
    assert [run.changed for run in runs] == [True, True, False]
    assert all(run.seconds > 0 for run in runs)
    assert [name for name, _ in seen] == ["canonicalize", "dce", "cse"]
    assert "%zero" in seen[0][1]
    assert "%zero" not in seen[1][1]
    assert seen[2][1] == seen[1][1] == function_text(function)


def test_the_default_pipeline_reads_back() -> None:
    assert ",".join(map(str, parse_pipeline(DEFAULT))) == DEFAULT


def test_options() -> None:
    (step,) = parse_pipeline('canonicalize{disable = ("zero-right", "fold")}')
    assert step.options.disable == ("zero-right", "fold")
    assert str(step) == 'canonicalize{disable = ("zero-right", "fold")}'
    (step,) = parse_pipeline("canonicalize{disable = ()}")
    assert str(step) == "canonicalize"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("cse,optimize", "no pass is called optimize", "canonicalize"),
        ("cse{depth = 1}", "depth", "its options are: none"),
        ("canonicalize{depth = 1}", "depth", "its options are: disable"),
        ('canonicalize{disable = ("speed",)}', "no rule is called speed", "disable"),
        ("cse;dce", "expected ','", ""),
    ],
)
def test_bad_pipelines(text: str, message: str, hint: str) -> None:
    function = parse_function(TEXT)
    with pytest.raises(ArgumentValueError) as caught:
        run_pipeline(function, text)
    assert caught.value.code == "E0303"
    assert message in caught.value.message
    assert hint in caught.value.help
    assert function_text(function) == function_text(parse_function(TEXT))


def test_a_pass_that_breaks_the_ir_is_found_by_name(breaking: None) -> None:
    with pytest.raises(InternalError, match=r"the pass break\{times = 2\} made invalid IR of f"):
        run_pipeline(parse_function(TEXT), "cse,break{times = 2},dce", check=True)


def test_the_knob_decides_where_nothing_is_said(breaking: None) -> None:
    with knobs.compilation.scope():
        knobs.compilation.verify = False
        run_pipeline(parse_function(TEXT), "break")
        knobs.compilation.verify = True
        with pytest.raises(InternalError):
            run_pipeline(parse_function(TEXT), "break")
        run_pipeline(parse_function(TEXT), "break", check=False)


def test_an_invalid_kernel_is_refused_before_any_pass() -> None:
    function = parse_function(TEXT)
    function.body.ops[1].results[0].type = int64
    with pytest.raises(CompilationError) as caught:
        run_pipeline(function, "dce", check=True)
    assert caught.value.code == "E0301"


def test_a_pass_has_one_name() -> None:
    with pytest.raises(ValueError, match="defined twice"):
        register_pass("cse")(PASSES["cse"].run)


def test_an_empty_pipeline_changes_nothing() -> None:
    function = parse_function(TEXT)
    before = function_text(function)
    assert run_pipeline(function, "") == []
    assert function_text(function) == before
