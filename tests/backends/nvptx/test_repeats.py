"""What is copied for further registers is what rules would have written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.backends.nvptx.test_assembled import BLOCKS, functions
from tests.backends.test_rules import MNEMONICS, cases, kind_of, operation

from tritium.backends.common.rules import register_type
from tritium.backends.emit import (
    Builder,
    Module,
    V,
    const,
    float_,
    i1,
    i32,
    i64,
    ptr,
    void,
    zero,
)
from tritium.backends.nvptx import rules
from tritium.backends.nvptx.compile import write_module
from tritium.backends.nvptx.repeats import Repeated
from tritium.backends.nvptx.target import gpu_target
from tritium.ir.core import Op

TARGET = gpu_target("sm_90a")


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call of a rule was replaced by a copy."""
    made: list[bool] = []
    real = Repeated._copy

    def noted(self: Repeated, operands: Sequence[V]) -> V | None:
        found = real(self, operands)
        made.append(found is not None)
        return found

    monkeypatch.setattr(Repeated, "_copy", noted)
    return made


def texts(write: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """What is written with copies, and without."""
    copied = write()
    with monkeypatch.context() as patch:
        patch.setattr(Repeated, "_copy", lambda self, operands: None)
        return copied, write()


@pytest.mark.parametrize("name", BLOCKS)
def test_whole_kernels(name: str, copies: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    for num_warps, function in functions(name):
        for disjoint in (True, False):

            def write(function: Any = function, warps: int = num_warps, d: bool = disjoint) -> str:
                writer = write_module(function, TARGET, num_warps=warps, disjoint=d)
                return writer.module.text()

            copied, written = texts(write, monkeypatch)
            assert copied == written
    assert any(copies) or name in ("dot", "gpu copy", "gpu transpose")


def written(op: Op, operands: Callable[[Builder, Op], list[list[V]]]) -> str:
    """The operation on some registers, in two blocks."""
    module = Module("test")
    function = module.function("kernel", void, [(i1, "flag")], convention="ptx_kernel")
    b = Builder(function.entry)
    writer: Any = SimpleNamespace(
        b=b,
        function=function,
        lines=SimpleNamespace(mark=lambda loc: ", !dbg !1"),
        apply=lambda op, values: marked(b, op, values),
    )
    following = function.block("following")
    given = operands(b, op)
    repeated = Repeated(writer, op)
    results = [repeated(each) for each in given]
    b.br(following)
    b.goto(following)
    results += [repeated(each) for each in given]
    for made in results:
        b.call(f"use.{made.type.text.replace(' ', '.')}", void, [made])
    b.ret()
    return module.text()


def marked(b: Builder, op: Op, values: Sequence[V]) -> V:
    b.function.mark = ", !dbg !1"
    made = rules.apply(b, TARGET, op, values)
    b.function.mark = ""
    return made


def registers(b: Builder, op: Op) -> list[list[V]]:
    """Operands that nothing is known of; with the first as another register has it; the same value
    twice; numbers; the first ones again."""
    kinds = [register_type(value.scalar) for value in op.operands]
    made = [
        [b.call(f"any.{number}.{place}", kind, []) for place, kind in enumerate(kinds)]
        for number in range(3)
    ]
    mixed = [*made[1][:1], *made[2][1:]]
    equal = [made[2][kinds.index(kind)] for kind in kinds]
    return [*made, mixed, equal, [zero(kind) for kind in kinds], made[0], made[2]]


@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_every_elementwise_operation(
    mnemonic: str, copies: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {kind_of(case): case for case in cases()[mnemonic]}
    for case in kinds.values():
        op = operation(case.op, kind_of(case)[1], **case.attributes)
        copied, plain = texts(lambda op=op: written(op, registers), monkeypatch)
        assert copied == plain


def test_what_a_rule_takes_from_elsewhere_is_not_copied(copies: list[bool]) -> None:
    """An instruction of the same text stands before: what it made belongs to its operand alone."""
    module = Module("test")
    function = module.function("kernel", void, [(float_, "x"), (float_, "y")])
    b = Builder(function.entry)

    def apply(op: Op, values: Sequence[V]) -> V:
        doubled = b.fadd(values[0], values[0])
        return b.fmul(doubled, const(float_, 3.0))

    x, y = function.params
    before = b.fadd(x, x)
    writer: Any = SimpleNamespace(
        b=b, function=function, lines=SimpleNamespace(mark=lambda loc: ""), apply=apply
    )
    repeated = Repeated(writer, SimpleNamespace(loc=None))  # type: ignore[arg-type]
    results = [repeated([each]) for each in (x, y)]
    assert results[0].text != results[1].text
    assert not copies
    b.call("use", void, [before, *results])
    b.ret()
    assert module.text().count("fadd") == 2


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_a_constant_without_a_number_is_not_copied(order: Sequence[int]) -> None:
    """The null pointer is one."""
    module = Module("test")
    function = module.function("kernel", void, [(ptr, "p"), (ptr, "q"), (i64, "n"), (i64, "m")])
    b = Builder(function.entry)
    p, q, n, m = function.params
    operands = [[zero(ptr), n], [p, m], [q, n]]
    writer: Any = SimpleNamespace(
        b=b,
        function=function,
        lines=SimpleNamespace(mark=lambda loc: ""),
        apply=lambda op, values: b.gep(values[0], values[1]),
    )
    repeated = Repeated(writer, SimpleNamespace(loc=None))  # type: ignore[arg-type]
    start = len(function.entry.lines)
    for each in order:
        repeated(operands[each])
    found = [line.split(", ptr ")[1] for line in function.entry.lines[start:]]
    expected = ["null, i64 %n", "%p, i64 %m", "%q, i64 %n"]
    assert found == [expected[each] for each in order]


def test_code_elsewhere_is_not_copied(copies: list[bool]) -> None:
    """A rule that opens a block, or writes in the entry, is asked for each register."""
    module = Module("test")
    function = module.function("kernel", void, [(i32, "x"), (i32, "y"), (i1, "flag")])
    b = Builder(function.entry)
    entry = Builder(function.entry)
    body = function.block("body")
    b.br(body)
    b.goto(body)

    def branching(op: Op, values: Sequence[V]) -> V:
        after = function.block("after")
        b.br(after)
        b.goto(after)
        return b.add(values[0], values[0])

    def in_entry(op: Op, values: Sequence[V]) -> V:
        entry.add(function.params[0], const(i32, 5))
        return b.add(values[0], const(i32, 7))

    for apply in (branching, in_entry):
        writer: Any = SimpleNamespace(
            b=b, function=function, lines=SimpleNamespace(mark=lambda loc: ""), apply=apply
        )
        repeated = Repeated(writer, SimpleNamespace(loc=None))  # type: ignore[arg-type]
        for each in function.params[:2]:
            repeated([each])
    assert not copies
