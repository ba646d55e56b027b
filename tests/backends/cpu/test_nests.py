"""How blocks are cut into nests, by the dump: loops, what each computes, reasons, scratch."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from tests.backends.cpu import kernels
from tests.backends.three_way import run_cpu, run_eager, traced

from tritium.backends import llvm
from tritium.backends.cpu import CpuKernel, compile_kernel
from tritium.backends.llvm import Target


@pytest.fixture(scope="module")
def wide() -> Target:
    """A target with vectors of 16 lanes, whatever this machine is: code is emitted, not run."""
    return llvm.cross_target("x86_64-unknown-linux-gnu", "x86-64-v4")


def compiled(target: Target, name: str, *, disjoint: bool = True, **changed: Any) -> CpuKernel:
    function, arguments, _ = kernels.example(name, **changed)
    return compile_kernel(traced(function, arguments), target, disjoint=disjoint)


def check(dump: str, expected: str) -> None:
    """The dump matches the CHECK lines."""
    options = Options(match_filename="expected")
    lines = Parser(options, io.StringIO(expected), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("dump", dump), lines)
    matcher.stderr = told = io.StringIO()
    assert matcher.run() == 0, f"{told.getvalue()}\nthe dump was:\n{dump}"


def test_filecheck_can_fail() -> None:
    with pytest.raises(AssertionError, match="the dump was"):
        check("block:\n  for c<4 by 4: memory.store\n", "CHECK: for c<8")


def test_vector_add_is_one_loop(wide: Target) -> None:
    check(
        compiled(wide, "add").dump,
        """
        CHECK:      block:
        CHECK-NEXT:   for c<1024 by 16: memory.store of {{.*}}memory.load, memory.load
        CHECK-NEXT: slow: 2 x masked gather where integers may wrap
        CHECK-NEXT: slow: 1 x masked scatter where integers may wrap
        CHECK-NEXT: scratch: 0 bytes
        """,
    )


def test_row_softmax_keeps_one_row(wide: Target) -> None:
    check(
        compiled(wide, "softmax_row").dump,
        """
        CHECK:      block:
        CHECK-NEXT:   for c<1024 by 16: reduce.max of {{.*}}memory.load
        CHECK-NEXT:   for c<1024 by 16: keep %e of arith.sub, {{.*}}math.exp{{.*}}; reduce.sum
        CHECK-NEXT:   for c<1024 by 16: memory.store of arith.div
        CHECK-NEXT:   because %e: stored, it is costly and several loops read it
        CHECK-NEXT: scratch: 4096 bytes
        """,
    )


def test_softmax_of_a_tile_fuses_its_rows(wide: Target) -> None:
    """Three loops inside of one loop over rows; nothing but one row of 128 is stored."""
    check(
        compiled(wide, "softmax_tile").dump,
        """
        CHECK:      block:
        CHECK-NEXT:   for r0<32:
        CHECK-NEXT:     for c<128 by 16: reduce.max of {{.*}}memory.load
        CHECK-NEXT:     for c<128 by 16: keep %e of {{.*}}math.exp{{.*}}; reduce.sum
        CHECK-NEXT:     for c<128 by 16: memory.store of {{.*}}arith.div
        CHECK-NEXT:   because %e: stored, it is costly and several loops read it
        CHECK-NEXT: scratch: 512 bytes
        """,
    )


def test_layernorm_over_column_blocks(wide: Target) -> None:
    """Each loop's body is one nest, which adds to the carried tile in its place."""
    check(
        compiled(wide, "layernorm").dump,
        """
        CHECK:      block:
        CHECK-NEXT:   for c<256 by 16: keep %total
        CHECK-NEXT:   control.for
        CHECK-NEXT:   for c<256 by 16: reduce.sum
        CHECK-NEXT:   control.for
        CHECK-NEXT:   for c<256 by 16: reduce.sum
        CHECK-NEXT:   control.for
        CHECK-NEXT:   because %total: stored, a loop or branch starts with it
        CHECK-NEXT:   block:
        CHECK-NEXT:     for c<256 by 16: keep %total of arith.add{{.*}}memory.load
        CHECK-NEXT:     because %total: stored, it leaves the block
        CHECK-NEXT:   block:
        CHECK-NEXT:     for c<256 by 16: keep %total of arith.add{{.*}}memory.load{{.*}}select.where
        CHECK-NEXT:     because %total: stored, it leaves the block
        CHECK-NEXT:   block:
        CHECK-NEXT:     for c<256 by 16: memory.store of {{.*}}memory.load, memory.load, memory.load
        CHECK-NEXT: slow:
        CHECK:      scratch: 3072 bytes
        """,
    )


def test_matmul(wide: Target) -> None:
    """The loop carries a buffer and scalars, and its body is two loads and the dot."""
    kernel = compiled(wide, "matmul")
    check(
        kernel.dump,
        """
        CHECK:      block:
        CHECK-NEXT:   for r0<64:
        CHECK-NEXT:     for c<64 by 16: keep %acc
        CHECK-NEXT:   control.for
        CHECK-NEXT:   for r0<64:
        CHECK-NEXT:     for c<64 by 16: memory.store
        CHECK-NEXT:   because %acc: stored, a loop or branch starts with it
        CHECK-NEXT:   block:
        CHECK-NEXT:     for r0<64:
        CHECK-NEXT:       for c<32 by 16: keep %a of {{.*}}memory.load
        CHECK-NEXT:     for r0<32:
        CHECK-NEXT:       for c<64 by 16: keep %b of {{.*}}memory.load
        CHECK-NEXT:     dot.dot
        CHECK-NEXT:     because %a: stored, a dot reads it in blocks
        CHECK-NEXT:     because %b: stored, a dot reads it in blocks
        """,
    )
    accumulator, a, b = 64 * 64 * 4, 64 * 32 * 4, 32 * 64 * 4
    assert kernel.scratch_bytes == accumulator + a + b


@pytest.mark.parametrize("name", ["transpose", "transpose_masked"])
def test_transposing_copy_is_one_nest(wide: Target, name: str) -> None:
    check(
        compiled(wide, name).dump,
        """
        CHECK:      block:
        CHECK-NEXT:   for r0<64 by 16, transposed in registers:
        CHECK-NEXT:     for c<64 by 16: memory.store of {{.*}}memory.load
        CHECK-NEXT: slow: 16 x {{(masked )?}}gather where integers may wrap
        CHECK:      scratch: 0 bytes
        """,
    )


def test_attention(wide: Target) -> None:
    """The scores never leave scratch, and the rescaled accumulator stays in its place."""
    check(
        compiled(wide, "attention").dump,
        """
        CHECK:        control.for
        CHECK-NEXT:   for r0<64:
        CHECK-NEXT:     for c<32 by 16: memory.store of {{.*}}arith.div
        CHECK:        block:
        CHECK:          dot.dot
        CHECK-NEXT:     for r0<64:
        CHECK-NEXT:       for c<32 by 16: reduce.max of {{.*}}select.where
        CHECK-NEXT:     for c<64 by 16: keep %m_new of arith.maximum
        CHECK-NEXT:     for r0<64:
        CHECK-NEXT:       for c<32 by 16: keep %p of {{.*}}math.exp2
        CHECK:          dot.dot
        CHECK-NEXT:     for r0<64:
        CHECK-NEXT:       for c<32 by 16: keep %acc of arith.add, arith.mul
        """,
    )


def test_any_of_a_mask(wide: Target) -> None:
    """A mask is stored as bytes between nests."""
    check(
        compiled(wide, "any_above").dump,
        """
        CHECK:      block:
        CHECK-NEXT:   for c<1024 by 16: keep %above of compare.gt{{.*}}math.exp{{.*}}; reduce.max
        CHECK-NEXT:   for c<1024 by 16: memory.store of compare.lt, logic.and
        CHECK-NEXT:   because %above: stored, it is costly and several loops read it
        CHECK-NEXT: scratch: 1024 bytes
        """,
    )


def test_disjoint_arguments_are_fused_and_overlapping_ones_are_not(wide: Target) -> None:
    check(
        compiled(wide, "shift", disjoint=True).dump,
        """
        CHECK:      block:
        CHECK-NEXT:   for c<1024 by 16: memory.store of {{.*}}memory.load
        CHECK-NEXT:   for c<1024 by 16: memory.store of {{.*}}memory.load
        CHECK-NEXT:   because memory.store: a nest of its own, memory accesses may overlap
        CHECK-NEXT: scratch: 0 bytes
        """,
    )
    check(
        compiled(wide, "shift", disjoint=False).dump,
        """
        CHECK:      block:
        CHECK-NEXT:   for c<1024 by 16: keep %x of {{.*}}memory.load
        CHECK-NEXT:   for c<1024 by 16: memory.store of
        CHECK-NOT:    memory.load
        CHECK:        because %x: stored, a store that may overlap it stands before its use
        CHECK-NEXT:   because memory.store: a nest of its own, memory accesses may overlap
        CHECK:      scratch: 4096 bytes
        """,
    )


def test_alias_pairs_are_those_that_matter() -> None:
    """Two inputs may overlap: only what is written must stand apart."""
    host = llvm.host_target()
    function, arguments, _ = kernels.example("add")
    ir = traced(function, arguments)
    fused = compile_kernel(ir, host, disjoint=True)
    names = [param.name for param in ir.params]
    assert {tuple(names[n] for n in pair) for pair in fused.alias_pairs} == {
        ("x_ptr", "out_ptr"),
        ("y_ptr", "out_ptr"),
    }
    assert compile_kernel(ir, host, disjoint=False).alias_pairs == ()
    assert fused.written == {names.index("out_ptr")}


def test_code_is_the_same_each_time(wide: Target) -> None:
    """No order of a set or an address in memory reaches the code."""
    for name in ("softmax_tile", "attention"):
        first, second = (compiled(wide, name) for _ in range(2))
        assert first.llvm_ir == second.llvm_ir
        assert first.dump == second.dump


@pytest.mark.parametrize("name", ["add", "transpose", "shift"])
def test_examples_compute_what_eager_mode_does(name: str) -> None:
    function, arguments, grid = kernels.example(name)
    want = run_eager(function, arguments, grid)
    got, _ = run_cpu(function, arguments, grid)
    for key, value in want.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(got[key], value)
