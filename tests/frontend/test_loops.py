"""Loops: carried values, the loop variable, unrolling, and what loops refuse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontend.kernels import (
    F32,
    I32,
    I64,
    PTR,
    ConstantSpec,
    PointerSpec,
    ScalarSpec,
    ir,
    jit,
    ops,
    refused,
    results,
)

import tritium.language as tl
from tritium.ops.arith import Add, Mul
from tritium.ops.callable import constexpr_function
from tritium.ops.control import For, If, While

U32 = ScalarSpec(tl.uint32)
I8 = ScalarSpec(tl.int8)

visits: list[str] = []


@constexpr_function
def visit(name: str) -> int:
    visits.append(name)
    return 0


# ---- for ---------------------------------------------------------------------------------------


def test_carried_scalars_and_tiles() -> None:
    @jit
    def kernel(out, n):
        total = 0
        offsets = tl.arange(0, 4)
        untouched = n + 1
        for i in range(n):
            total += i
            offsets = offsets + 1
            temporary = untouched * 2
            tl.store(out + 5, temporary)
        tl.store(out + 4, total)
        tl.store(out + tl.arange(0, 4), offsets)

    (loop,) = ops(ir(kernel, PTR, I32), For)
    assert [str(value.type) for value in loop.init] == ["int32", "tile<4xi32>"]
    assert [result.name for result in loop.results] == ["total", "offsets"]
    assert [arg.name for arg in loop.body.args] == ["i", "total", "offsets"]
    assert results(kernel, 5, size=6) == [5, 6, 7, 8, 10, 12]
    assert results(kernel, 0, size=6) == [0, 1, 2, 3, 0, 0]


def test_carried_pointers() -> None:
    @jit
    def kernel(out, n):
        p = out
        for i in range(n):
            tl.store(p, i)
            p += 2

    (loop,) = ops(ir(kernel, PTR, I32), For)
    assert [str(value.type) for value in loop.init] == ["pointer<int32>"]
    assert results(kernel, 3, size=6) == [0, 0, 1, 0, 2, 0]


def test_variables_that_exchange_values() -> None:
    @jit
    def kernel(out, n):
        a, b = 0, 1
        for _ in range(n):
            a, b = b, a + b
        tl.store(out, a)

    assert results(kernel, 10) == 55


def test_a_variable_that_is_set_anew_is_not_carried() -> None:
    @jit
    def kernel(out, n):
        x = n
        y = x
        for i in range(n):
            x = x + i
            tl.store(out, x)
            x = y
        tl.store(out + 1, x)

    (loop,) = ops(ir(kernel, PTR, I32), For)
    assert loop.init == ()
    assert results(kernel, 4, size=2) == [7, 4]


def test_tuples_are_carried_element_by_element() -> None:
    @jit
    def kernel(out, n):
        state = (n, (0, None), 7)
        for i in range(n):
            state = (state[0], (state[1][0] + i, None), state[2])
        tl.store(out, state[0] + state[1][0] + state[2])

    (loop,) = ops(ir(kernel, PTR, I32), For)
    assert len(loop.init) == 1
    assert results(kernel, 4) == 4 + 6 + 7


def test_nested_loops() -> None:
    @jit
    def kernel(out, n, m):
        total = 0
        for i in range(n):
            row = 0
            for j in range(m):
                row += i * j
                for _ in range(2):
                    total += 1
            total += row
        tl.store(out, total)

    outer, middle, inner = ops(ir(kernel, PTR, I32, I32), For)
    assert [len(loop.init) for loop in (outer, middle, inner)] == [1, 2, 1]
    expected = sum(i * j + 2 for i in range(3) for j in range(4))
    assert results(kernel, 3, 4) == expected


def test_a_body_in_d_loops_is_visited_d_plus_1_times() -> None:
    @jit
    def kernel(out, n):
        x = 0
        visit("none")
        for i in range(n):
            visit("one")
            for j in range(n):
                visit("two")
                for k in range(n):
                    visit("three")
                    x += i + j + k
        tl.store(out, x)

    visits.clear()
    ir(kernel, PTR, I32)
    counts = {name: visits.count(name) for name in ("none", "one", "two", "three")}
    assert counts == {"none": 1, "one": 2, "two": 3, "three": 4}


def test_a_trial_leaves_no_uses_behind() -> None:
    @jit
    def kernel(out, n):
        x = n + 1
        for i in range(n):
            for j in range(x):
                tl.store(out + i + j, x)

    function = ir(kernel, PTR, I32)
    inside = set(function.walk())
    for op in inside:
        for result in op.results:
            assert all(user in inside for user in result.users())
    for param in function.params:
        assert all(user in inside for user in param.value.users())


def test_branches_inside_loops() -> None:
    @jit
    def kernel(out, n):
        even, odd = 0, 0
        for i in range(n):
            if i % 2 == 0:
                even += i
            else:
                odd += i
        tl.store(out, even * 100 + odd)

    (branch,) = ops(ir(kernel, PTR, I32), If)
    assert len(branch.results) == 2
    assert results(kernel, 5) == 600 + 4


def test_calls_inside_loops_may_return_early() -> None:
    @jit
    def step(x, i):
        if i == 2:
            return x
        return x + i

    @jit
    def kernel(out, n):
        x = 0
        for i in range(n):
            x = step(x, i)
        tl.store(out, x)

    assert results(kernel, 5) == 0 + 1 + 3 + 4


# ---- the loop variable -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds, type",
    [
        ((I32, I32), "int32"),
        ((I32, I64), "int64"),
        ((I32, U32), "uint32"),
        ((I64, U32), "int64"),
        ((I8, I8), "int32"),
        ((ConstantSpec(0), ConstantSpec(5)), "int32"),
        ((ConstantSpec(0), ConstantSpec(2**40)), "int64"),
        ((ConstantSpec(0), ConstantSpec(2**31)), "uint32"),
    ],
)
def test_type_of_the_loop_variable(bounds: tuple[object, object], type: str) -> None:
    @jit
    def kernel(out, a, b):
        for i in range(a, b):
            tl.store(out, i)

    (loop,) = ops(ir(kernel, PTR, *bounds), For)
    assert str(loop.body.args[0].type) == type


def test_constant_bounds_make_a_run_time_loop() -> None:
    @jit
    def kernel(out):
        for i in range(3):
            tl.store(out + i, tl.arange(0, i))

    problem = refused(kernel, "E0205", PTR, at="i")
    assert problem.loc is not None


@pytest.mark.parametrize("start, stop, step", [
    (0, 5, 1), (0, 7, 3), (2, 2, 1), (5, 0, -1), (5, 0, -2), (6, 0, -2), (0, 5, -1), (-3, -9, -4),
    (2**31 - 1, 2**31 - 3, -1), (-(2**31) + 5, -(2**31), -2), (2**31 - 4, 2**31 - 1, 2),
])  # fmt: skip
def test_values_of_the_loop_variable(start: int, stop: int, step: int) -> None:
    @jit
    def kernel(out, a, b, STEP: tl.constexpr):
        k = 0
        for i in tl.range(a, b, STEP):
            tl.store(out + k, i)
            k += 1

    expected = list(range(start, stop, step))
    got = results(kernel, start, stop, step, size=8)
    assert got == expected + [0] * (8 - len(expected))


def test_run_time_steps() -> None:
    @jit
    def kernel(out, n, step):
        total = 0
        for i in range(0, n, step):
            total += i
        tl.store(out, total)

    assert results(kernel, 10, 3) == 0 + 3 + 6 + 9
    assert results(kernel, -10, -3) == 0 - 3 - 6 - 9
    assert results(kernel, 10, -3) == results(kernel, -10, 3) == results(kernel, 10, 0) == 0


def test_assigning_the_loop_variable_changes_no_iteration() -> None:
    @jit
    def kernel(out, n):
        for i in range(n):
            i = i * 2
            tl.store(out + i, i)

    assert results(kernel, 3, size=6) == [0, 0, 2, 0, 4, 0]


def test_the_loop_variable_has_no_value_afterwards() -> None:
    @jit
    def kernel(out, n):
        i = 7
        for i in range(n):
            tl.store(out, i)
        tl.store(out, i)

    problem = refused(kernel, "E0103", PTR, I32, at="i")
    assert "copy it inside" in problem.help


def test_hints_are_kept() -> None:
    @jit
    def kernel(out, n):
        for i in tl.range(0, n, num_stages=3, loop_unroll_factor=2, flatten=True):
            tl.store(out, i)

    (loop,) = ops(ir(kernel, PTR, I32), For)
    assert (loop.num_stages, loop.unroll, loop.hints) == (3, 2, ("flatten",))


# ---- what changes its type ---------------------------------------------------------------------


def test_types_must_be_stable() -> None:
    @jit
    def kernel(out, n):
        acc = 0
        for i in range(n):
            acc += i * 1.5
        tl.store(out, acc)

    problem = refused(kernel, "E0401", PTR, I32, at="acc")
    assert problem.message == (
        "acc is int32 before the for loop and fp32 after one pass through it"
    )
    assert problem.loc is not None
    assert problem.loc.line == kernel.fn.__code__.co_firstlineno + 4


def test_shapes_must_be_stable() -> None:
    @jit
    def kernel(out, n):
        acc = tl.zeros((4,), tl.float32)
        while n > 0:
            acc = acc[:, None] + tl.zeros((4, 4), tl.float32)
            n -= 1

    problem = refused(kernel, "E0401", PTR, I32, at="acc")
    assert "tile<4xfp32>" in problem.message
    assert "tile<4x4xfp32>" in problem.message
    assert "while loop" in problem.message


def test_none_must_stay_none() -> None:
    @jit
    def kernel(out, n):
        acc = None
        for i in range(n):
            acc = i
        tl.store(out, 1)

    problem = refused(kernel, "E0401", PTR, I32, at="acc")
    assert "acc is None before" in problem.message

    @jit
    def back(out, n):
        acc = n
        for _ in range(n):
            acc = None
        tl.store(out, 1)

    assert "and None after" in refused(back, "E0401", PTR, I32, at="acc").message


def test_declared_constants_must_not_change() -> None:
    @jit
    def kernel(out, n, BLOCK: tl.constexpr):
        for _ in range(n):
            BLOCK = BLOCK * 2
        tl.store(out, 1)

    problem = refused(kernel, "E0401", PTR, I32, 8, at="BLOCK")
    assert "BLOCK is constexpr[8] before" in problem.message


def test_an_argument_that_is_known_may_change_in_a_loop() -> None:
    @jit
    def kernel(out, n, m):
        while n < m:
            if n == 1:
                tl.store(out + 1, 1)
            n = n * 2
        tl.store(out, n)

    (loop,) = ops(ir(kernel, PTR, ConstantSpec(1), I32), While)
    assert len(loop.init) == 1
    assert len(ops(ir(kernel, PTR, ConstantSpec(1), I32), If)) == 1
    assert results(kernel, ConstantSpec(1), 5, size=2) == [8, 1]
    assert results(kernel, ConstantSpec(1), 1, size=2) == [1, 0]


def test_first_assigned_inside() -> None:
    @jit
    def kernel(out, n):
        for i in range(n):
            x = i
            tl.store(out, x)
        tl.store(out, x)

    problem = refused(kernel, "E0103", PTR, I32, at="x")
    assert "before the for loop" in problem.help

    @jit
    def again(out, n):
        for i in range(n):
            x = i
            tl.store(out, x)
        x = 9
        for i in range(n):
            x += i
        tl.store(out, x)

    assert results(again, 3) == 12


def test_defined_in_one_branch_of_the_body() -> None:
    @jit
    def kernel(out, n):
        x = 1
        for i in range(n):
            if i > 2:
                y = i
            x = y

    refused(kernel, "E0103", PTR, I32, at="y")


# ---- while -------------------------------------------------------------------------------------


def test_while() -> None:
    @jit
    def kernel(out, n):
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        tl.store(out, steps)

    (loop,) = ops(ir(kernel, PTR, I32), While)
    assert len(loop.init) == 2
    assert results(kernel, 6) == 8


def test_while_with_an_integer_and_a_hint() -> None:
    @jit
    def kernel(out, n):
        total = 0
        while n:
            total += n
            n -= 1
        while tl.condition(total > 100, disable_licm=True):
            total -= 100
        tl.store(out, total)

    assert results(kernel, 20) == 10


def test_while_loops_without_carried_values() -> None:
    @jit
    def kernel(out):
        while tl.load(out) < 5:
            tl.store(out, tl.load(out) + 1)

    (loop,) = ops(ir(kernel, PTR), While)
    assert loop.init == ()
    assert results(kernel) == 5


def test_a_while_loop_that_never_runs_is_left_out() -> None:
    @jit
    def kernel(out, FLAG: tl.constexpr):
        while FLAG:
            undefined_name()
        tl.store(out, 1)

    assert not ops(ir(kernel, PTR, False), While)
    assert results(kernel, False) == 1


def test_while_refused() -> None:
    @jit
    def forever(out, n):
        while True:
            n += 1

    assert "never end" in refused(forever, "E0110", PTR, I32, at="True").help

    @jit
    def block(out, n):
        while tl.arange(0, 4) < n:
            n -= 1

    refused(block, "E0403", PTR, I32, at="tl.arange(0, 4) < n")

    @jit
    def number(out, n):
        while 1.5:
            n -= 1

    refused(number, "E0206", PTR, I32, at="1.5")

    @jit
    def walrus(out, n):
        while (m := n - 1) > 0:
            n = m

    refused(walrus, "E0110", PTR, I32, at="(m := n - 1) > 0")

    @jit
    def orelse(out, n):
        while n > 0:
            n -= 1
        else:
            n = 0

    assert refused(orelse, "E0110", PTR, I32, at="while n > 0:").message.startswith("while ... el")


# ---- static_range ------------------------------------------------------------------------------


def test_static_range() -> None:
    @jit
    def kernel(out, n, N: tl.constexpr):
        x = tl.zeros((1,), tl.int32)
        for i in tl.static_range(N, 0, -2):
            tl.store(out + tl.arange(0, i), n)
            x = x[:, None].reshape(1)
        i2: tl.constexpr = i + 5
        tl.store(out + i2, tl.sum(x, 0))

    function = ir(kernel, PTR, I32, 5)
    assert not ops(function, For)
    assert results(kernel, 3, 5, size=8) == [3, 3, 3, 3, 3, 0, 0, 0]


def test_types_may_change_between_iterations() -> None:
    @jit
    def kernel(out, n):
        x = n
        for i in tl.static_range(3):
            x = tl.zeros((2,) * i, tl.int32) + n if i else n.to(tl.int64)
            half: tl.constexpr = i * 2
        tl.store(out, tl.sum(tl.sum(x, 0), 0) + half)

    assert results(kernel, 3) == 12 + 4


def test_static_range_inside_a_loop() -> None:
    @jit
    def kernel(out, n):
        total = 0
        for i in range(n):
            for j in tl.static_range(3):
                total += i * j
        tl.store(out, total)

    function = ir(kernel, PTR, I32)
    assert len(ops(function, For)) == 1
    assert len(ops(function, Mul)) == 3
    assert len(ops(function, Add)) == 3
    assert results(kernel, 4) == 18


def test_static_range_refused() -> None:
    @jit
    def bound(out, n):
        for i in tl.static_range(n):
            tl.store(out, i)

    problem = refused(bound, "E0205", PTR, I32, at="n")
    assert "int32" in problem.message

    @jit
    def step(out, n):
        for i in tl.static_range(0, 3, 0):
            tl.store(out, i)

    refused(step, "E0206", PTR, I32, at="0")


# ---- refused -----------------------------------------------------------------------------------


def test_bounds_must_be_integers() -> None:
    @jit
    def kernel(out, a, b, c):
        for i in range(a, b, c):
            tl.store(out, i)

    assert "fp32" in refused(kernel, "E0405", PTR, F32, I32, I32, at="a").message
    refused(kernel, "E0405", PTR, I32, F32, I32, at="b")
    refused(kernel, "E0405", PTR, I32, I32, F32, at="c")
    refused(kernel, "E0405", PTR, I32, PointerSpec(tl.int32), I32, at="b")
    refused(kernel, "E0206", PTR, I32, I32, ConstantSpec(0), at="c")

    @jit
    def single(out, a):
        for i in range(a):
            tl.store(out, i)

    refused(single, "E0405", PTR, F32, at="a")

    @jit
    def block(out):
        for i in range(tl.arange(0, 4)):
            tl.store(out, i)

    refused(block, "E0405", PTR, at="tl.arange(0, 4)")


def test_other_iterables_are_refused() -> None:
    @jit
    def kernel(out):
        for i in (1, 2):
            tl.store(out, i)

    assert "tuple" in refused(kernel, "E0110", PTR, at="(1, 2)").message

    @jit
    def tile(out):
        for i in tl.arange(0, 4):
            tl.store(out, i)

    refused(tile, "E0110", PTR, at="tl.arange(0, 4)")

    @jit
    def target(out):
        for i, j in range(4):
            tl.store(out + i, j)

    refused(target, "E0110", PTR, at="i, j")


def test_returns_in_run_time_loops_are_refused() -> None:
    @jit
    def kernel(out, n):
        for i in range(n):
            if i > 3:
                return
            tl.store(out, i)

    refused(kernel, "E0404", PTR, I32, at="return")

    @jit
    def static(out, n, FLAG: tl.constexpr):
        while n > 0:
            n -= 1
            for _ in tl.static_range(2):
                if FLAG:
                    return n
        return n

    refused(static, "E0404", PTR, I32, True, at="return n")
    ir(static, PTR, I32, False)


@pytest.mark.parametrize("word", ["break", "continue"])
def test_break_and_continue_are_refused(word: str) -> None:
    @jit
    def ends(out, n):
        for _ in range(n):
            break

    @jit
    def goes_on(out, n):
        for _ in range(n):
            continue

    kernel = ends if word == "break" else goes_on
    problem = refused(kernel, "E0110", PTR, I32, at=word)
    assert problem.message == f"{word} is not part of the kernel language"


def test_else_of_a_for_loop_is_refused() -> None:
    @jit
    def kernel(out, n):
        for _ in range(n):
            pass
        else:
            tl.store(out, 1)

    refused(kernel, "E0110", PTR, I32, at="for _ in range(n):")


def test_random_programs_agree_with_python() -> None:
    """Loops and branches over a few variables: the IR stores what eager mode stores."""

    @jit
    def kernel(out, n, a, b):
        x, y, z = a, b, 0
        for i in range(n):
            if (x + y) % 3 == 0:
                x = x + i
            else:
                if x > y:
                    y = y + 2 * i
                    z += 1
                else:
                    x, y = y, x
            for j in range(i, 0, -1):
                z = z + j if x > z else z - 1
            while z > 50:
                z -= 7
                x = x - z
        tl.store(out, x)
        tl.store(out + 1, y)
        tl.store(out + 2, z)

    rng = np.random.default_rng(7)
    for n, a, b in rng.integers(0, 12, (12, 3)):
        results(kernel, int(n), int(a), int(b), size=3)
