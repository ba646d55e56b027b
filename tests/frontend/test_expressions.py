"""Expressions: operators, tuples, attributes, text."""

from __future__ import annotations

import enum
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests.frontend.kernels import F32, I32, PTR, ConstantSpec, ir, jit, ops, refused, results

import tritium.language as tl
from tritium.ops.arith import Add, Mul
from tritium.ops.compare import Lt
from tritium.ops.constexpr import constexpr
from tritium.ops.control import If
from tritium.ops.create import Constant
from tritium.ops.logic import And


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 3


# ---- operators ---------------------------------------------------------------------------------


def test_operators_agree_with_eager_mode() -> None:
    @jit
    def kernel(out, n, m):
        k = 0
        for x in (n, 5):
            pass
        tl.store(out, k)

    refused(kernel, "E0110", PTR, I32, I32, at="(n, 5)")

    @jit
    def all_of_them(out, n, m):
        tl.store(out, n + m - 3 * n)
        tl.store(out + 1, n // m * 100 + n % m)
        tl.store(out + 2, (n & 6) | (m ^ 1))
        tl.store(out + 3, (n << 2) + (n >> 1) + ~m + -n)
        tl.store(out + 4, (n < m) + (n <= m) * 2 + (n > m) * 4 + (n >= m) * 8)
        tl.store(out + 5, (n == m) + (n != m) * 2 + (3 < n) * 4 + (3 == m) * 8)
        tl.store(out + 6, (n / m).to(tl.int32))
        n += 1
        n *= m
        n -= 2
        n //= 3
        n <<= 1
        n |= 1
        tl.store(out + 7, n)

    for n, m in ((7, 3), (-7, 3), (3, 3), (-7, -2)):
        results(all_of_them, n, m, size=8)


def test_operands_at_fault_are_underlined() -> None:
    @jit
    def kernel(out, p, x):
        tl.store(out, x + p * 2)

    refused(kernel, "E0201", PTR, PTR, I32, at="2")

    @jit
    def shapes(out):
        tl.store(out, tl.arange(0, 4) + tl.arange(0, 8))

    problem = refused(shapes, "E0202", PTR, at="tl.arange(0, 8)")
    assert "(4,)" in problem.message
    assert "(8,)" in problem.message

    @jit
    def constant(out, x):
        tl.store(out, 2**40 < x)

    problem = refused(constant, "E0203", PTR, I32, at="2**40")
    assert str(2**40) in problem.message

    @jit
    def inside(out, x, y):
        z = (x + 1) * (tl.arange(0, 4) @ y)
        tl.store(out, z)

    problem = refused(inside, "E0201", PTR, I32, I32, at="y")
    assert "tl.dot" in problem.help

    @jit
    def power(out, x):
        tl.store(out, x**2)

    refused(power, "E0201", PTR, I32, at="2")

    @jit
    def nothing(out, x):
        tl.store(out, x + None)

    assert "None" in refused(nothing, "E0201", PTR, I32, at="None").message

    @jit
    def constants(out):
        tl.store(out, "a" + 1)

    refused(constants, "E0201", PTR, at='"a" + 1')

    @jit
    def augmented(out, x, p):
        x -= p
        tl.store(out, x)

    refused(augmented, "E0201", PTR, I32, PTR, at="p")

    @jit
    def unary(out, p):
        tl.store(out, -p)

    refused(unary, "E0204", PTR, PTR, at="p")


def test_python_errors_on_constants() -> None:
    @jit
    def kernel(out):
        tl.store(out, 1 + (3 // 0))

    problem = refused(kernel, "E0117", PTR, at="3 // 0")
    assert "ZeroDivisionError" in problem.message
    assert isinstance(problem.__cause__, ZeroDivisionError)


# ---- truth -------------------------------------------------------------------------------------


def test_and_or_not() -> None:
    @jit
    def kernel(out, n, m, FLAG: tl.constexpr):
        a = n > 1 and m > 1
        b = n > 1 or m > 1 or n == m
        c = not n > 1
        d = FLAG and n > 1
        e = FLAG or undefined_name
        f = n > 1 and FLAG and m > 1
        tl.store(out, a + b * 2 + c * 4 + d * 8 + e * 16 + f * 32)

    for n in (0, 2):
        for m in (0, 2):
            results(kernel, n, m, True)


def test_known_operands_decide() -> None:
    @jit
    def kernel(out, n, NONE: tl.constexpr):
        a = NONE is not None and NONE + undefined_name > 3
        b = n > 1 and False
        c = 0 or 5
        tl.static_assert(not b if False else True)
        tl.store(out, a + b * 10 + c * 100)

    assert results(kernel, 5, None) == 500
    assert not ops(ir(kernel, PTR, I32, None), And)


def test_operands_of_and_must_be_int1() -> None:
    @jit
    def kernel(out, n, m):
        tl.store(out, n > 1 and m > 1 and m)

    refused(kernel, "E0204", PTR, I32, I32, at="m")

    @jit
    def first(out, n, m):
        tl.store(out, n and m > 1)

    refused(first, "E0204", PTR, I32, I32, at="n")

    @jit
    def negated(out, n):
        tl.store(out, not n)

    refused(negated, "E0204", PTR, I32, at="n")


def test_chained_comparisons() -> None:
    @jit
    def kernel(out, n, A: tl.constexpr):
        a = 0 < n + 1 < 5
        b = 0 <= A < 5 <= n
        c = 9 < A < undefined_name
        tl.store(out, a + b * 2 + c * 4)

    function = ir(kernel, PTR, I32, 3)
    assert len(ops(function, Add)) == 3
    assert len(ops(function, Lt)) + len(ops(function, And)) >= 2
    assert [results(kernel, n, 3) for n in (-1, 2, 5)] == [0, 1, 2]


def test_identity_and_membership() -> None:
    @jit
    def kernel(out, n, X: tl.constexpr, KIND: tl.constexpr):
        a = X is None
        b = n is not None
        c = KIND in ("relu", "gelu")
        d = 3 not in (1, 2)
        e = tl.float32 is tl.float32
        tl.store(out, a + b * 2 + c * 4 + d * 8 + e * 16)

    assert results(kernel, 5, None, "gelu") == 31
    assert results(kernel, 5, 1, "silu") == 2 + 8 + 16

    @jit
    def run_time(out, n):
        tl.store(out, n in (1, 2))

    refused(run_time, "E0201", PTR, I32, at="n in (1, 2)")


# ---- tuples ------------------------------------------------------------------------------------


def test_tuples_and_lists() -> None:
    @jit
    def kernel(out, n):
        a, (b, _), *_rest = 1, (2, 3), 4
        tl.store(out, a + b)

    assert refused(kernel, "E0110", PTR, I32, at="*_rest")

    @jit
    def fine(out, n):
        t = (n, 2, None)
        u = (*t, 4) + (5,)
        a, (b, _) = 1, (2, 3)
        tl.static_assert(len(u) == 5)
        tl.static_assert(u[-3] is None)
        tl.store(out, u[0] * 1000 + u[-1] * 100 + a * 10 + b)
        v = u[1:]
        w = (7,) * 2
        tl.store(out + 1, v[0] + w[1] + (1, 2, 3)[1:][1])

    assert results(fine, 4, size=2) == [4512, 2 + 7 + 3]


def test_unpacking_refused() -> None:
    @jit
    def count(out, n):
        a, b = (n, 1, 2)
        tl.store(out, a + b)

    assert "3 values for 2 names" in refused(count, "E0206", PTR, I32, at="a, b").message

    @jit
    def scalar(out, n):
        a, b = n
        tl.store(out, a + b)

    refused(scalar, "E0204", PTR, I32, at="a, b")

    @jit
    def attribute(out, n):
        n.x = 1

    refused(attribute, "E0110", PTR, I32, at="n.x")

    @jit
    def element(out, n):
        n[0] = 1

    problem = refused(element, "E0110", PTR, I32, at="n[0]")
    assert "tl.where" in problem.help

    @jit
    def augmented(out, n):
        n[0] += 1

    refused(augmented, "E0110", PTR, I32, at="n[0]")


def test_indices_of_tuples() -> None:
    @jit
    def kernel(out, t):
        tl.store(out, t[0] + t[1])
        for i in tl.static_range(len(t)):
            tl.store(out + 1 + i, t[i])

    assert results(kernel, (4, 5), size=3) == [9, 4, 5]

    @jit
    def run_time(out, t, n):
        tl.store(out, t[n])

    refused(run_time, "E0205", PTR, (1, 2), I32, at="n")

    @jit
    def outside(out, t):
        tl.store(out, t[5])

    assert "IndexError" in refused(outside, "E0117", PTR, (1, 2), at="t[5]").message


def test_indices_of_tiles() -> None:
    @jit
    def kernel(out, n):
        x = tl.arange(0, 4)
        y = x[:, None] + x[None, :] * 4
        tl.static_assert(y.shape[0] == 4 and len(y.shape) == 2)
        z = y[None][:, :, :, None]
        tl.static_assert(len(z.shape) == 4)
        tl.store(out + y, y + n[None, None])

    assert results(kernel, 1, size=16) == list(range(1, 17))

    @jit
    def element(out):
        tl.store(out, tl.arange(0, 4)[4])

    refused(element, "E0206", PTR, at="4")

    @jit
    def everything(out):
        tl.store(out, tl.arange(0, 4)[...])

    refused(everything, "E0208", PTR, at="...")


def test_list_comprehensions() -> None:
    @jit
    def kernel(out, t, pairs: tl.constexpr):
        doubled = [x * 2 for x in t if x is not None]
        tl.static_assert(len(doubled) == 2)
        tl.store(out, doubled[0] + doubled[1])
        sizes: tl.constexpr = [a + b for a, b in pairs if a > 1]
        tl.store(out + tl.arange(0, sizes[0]), 1)
        for i in tl.static_range(2):
            x = i
        tl.store(out + 3, x)

    assert results(kernel, (3, None, 4), ((1, 1), (2, 1)), size=4) == [1, 1, 1, 1]

    @jit
    def over_range(out):
        t = [x for x in range(3)]
        tl.store(out, t[0])

    refused(over_range, "E0110", PTR, at="[x for x in range(3)]")


# ---- attributes --------------------------------------------------------------------------------


def test_attributes_of_tiles_types_and_modules() -> None:
    @jit
    def kernel(out, p, n):
        tl.static_assert(p.dtype.element_ty == tl.float32)
        tl.static_assert(n.dtype.primitive_bitwidth == 32)
        tl.static_assert(n.type.scalar.is_int32())
        tl.static_assert(tl.arange(0, 4).numel == 4)
        x = tl.arange(0, 4).to(tl.float32).sum(axis=0)
        y = tl.zeros((2, 4), tl.int32).T
        tl.static_assert(y.shape[0] == 4)
        tl.store(out, x.to(tl.int32) + int(math.pi) + int(math.sqrt(16)))

    assert results(kernel, np.zeros(1, np.float32), 3) == 6 + 3 + 4


def test_attributes_of_constants() -> None:
    @jit
    def kernel(out, A: tl.constexpr, T: tl.constexpr, NAME: tl.constexpr):
        tl.static_assert(A.value == 4 and T.value == tl.int64)
        tl.static_assert(NAME.startswith("re") and NAME.upper() == "RELU")
        tl.static_assert(T.is_int64())
        tl.store(out + tl.arange(0, A.value), A)

    assert results(kernel, 4, tl.int64, "relu", size=4) == [4] * 4


def test_a_known_argument_has_the_methods_of_a_tile() -> None:
    @jit
    def kernel(out, n):
        tl.static_assert(n.dtype == tl.int32)
        tl.store(out, n.to(tl.int64).to(tl.int32) + 1)

    assert results(kernel, ConstantSpec(1)) == 2
    assert results(kernel, 1) == 2


def test_enum_members() -> None:
    @jit
    def kernel(out, c: tl.constexpr, level: tl.constexpr):
        if c == Color.RED:
            tl.store(out, 1)
        elif c is Color.BLUE:
            tl.store(out, level)

    assert results(kernel, Color.RED, Level.LOW) == 1
    assert results(kernel, Color.BLUE, Level.LOW) == 3


def test_unknown_attributes() -> None:
    @jit
    def module(out):
        tl.store(out, tl.arrange(0, 4))

    problem = refused(module, "E0101", PTR, at="tl.arrange")
    assert "did you mean arange?" in problem.help

    @jit
    def tile(out, n):
        tl.store(out, n.foo)

    assert "AttributeError" in refused(tile, "E0117", PTR, I32, at="n.foo").message


def test_objects_as_constants() -> None:
    config = SimpleNamespace(block=4, name="a", types=(tl.float32,))

    @jit
    def kernel(out, CONFIG: tl.constexpr):
        x = tl.zeros((CONFIG.block,), CONFIG.types[0])
        if CONFIG.name == "a":
            tl.store(out, tl.sum(x, 0).to(tl.int32) + CONFIG.block)

    function = ir(kernel, PTR, ConstantSpecOf(config))
    assert ops(function, Constant)[-1].value == 4


def ConstantSpecOf(value: object) -> ConstantSpec:
    class Hashed(type(value)):  # type: ignore[misc]
        __hash__ = object.__hash__

    return ConstantSpec(Hashed(**vars(value)))


# ---- the rest ----------------------------------------------------------------------------------


def test_f_strings() -> None:
    @jit
    def kernel(out, A: tl.constexpr, T: tl.constexpr):
        tl.static_assert(f"{A}-{A + 1:03d}-{'x'!r}-{T}-{1.5:.2f}" == "4-005-'x'-fp32-1.50")
        tl.static_assert(A == 4, f"A is {A}")
        tl.store(out, 1)

    assert results(kernel, 4, tl.float32) == 1
    problem = refused(kernel, "E0119", PTR, 5, tl.float32, at=_fstring())
    assert problem.code == "E0119"

    @jit
    def message(out, A: tl.constexpr):
        tl.static_assert(A == 4, f"A is {A}, {('a', 1)}")

    problem = refused(message, "E0119", PTR, 5, at="A == 4")
    assert problem.message == "static assertion failed: A is 5, ('a', 1)"

    @jit
    def run_time(out, n):
        tl.static_assert(True, f"n is {n}")

    expected = 'f"n is {n}"'
    problem = refused(run_time, "E0110", PTR, I32, at=expected)
    assert "f-string" in problem.message


def _fstring() -> str:
    return """f"{A}-{A + 1:03d}-{'x'!r}-{T}-{1.5:.2f}" == "4-005-'x'-fp32-1.50\""""


def test_walrus() -> None:
    @jit
    def kernel(out, n):
        if (m := n + 1) > 3:
            tl.store(out, m)
        tl.store(out + 1, (k := 7) // -2 + k)

    assert results(kernel, 4, size=2) == [5, 4]


def test_walrus_inside_of_other_expressions() -> None:
    @jit
    def kernel(out, n):
        x = 1
        t = [(x := x + part) for part in (n, n + 1)]
        part = t[0] if (y := n + 1) > 3 else x
        tl.store(out, x * 100 + part * 10 + y)

    assert results(kernel, 2) == 6 * 100 + 60 + 3
    assert results(kernel, 3) == 8 * 100 + 40 + 4

    @jit
    def arm(out, n):
        x = 1
        y = (x := 2) if n > 3 else 3
        tl.store(out, x + y)

    refused(arm, "E0110", PTR, I32, at="x := 2")


def test_declarations_without_value() -> None:
    @jit
    def kernel(out, n):
        D: tl.constexpr
        for i in range(n):
            D = 4
            tl.store(out + tl.arange(0, D), i)
        E: tl.constexpr
        if n > 1:
            E = 2
            tl.store(out + tl.arange(0, E), n)

    assert results(kernel, 3, size=4) == [3, 3, 2, 2]

    @jit
    def unset(out):
        D: tl.constexpr
        tl.store(out, D)

    assert "where it is declared" in refused(unset, "E0103", PTR, at="D").help


def test_names_of_values_come_from_variables() -> None:
    @jit
    def kernel(out, n):
        total = n + 1
        other = total
        other *= 2
        tl.store(out, other)

    function = ir(kernel, PTR, I32)
    assert ops(function, Add)[0].result.name == "total"
    assert ops(function, Mul)[0].result.name == "other"


def test_places_of_operations() -> None:
    # fmt: off
    @jit
    def kernel(out, n):
        x = (n +
             1) * 2
        tl.store(out, x)
    # fmt: on

    function = ir(kernel, PTR, I32)
    first = kernel.fn.__code__.co_firstlineno
    add, mul = ops(function, Add)[0], ops(function, Mul)[0]
    assert (add.loc.line, add.loc.end_line) == (first + 2, first + 3)
    assert (add.loc.col, add.loc.end_col) == (13, 14)
    assert (mul.loc.col, mul.loc.end_col) == (12, 19)
    assert add.loc.function == "kernel"
    assert add.loc.file == __file__
    assert all(op.loc is not None for op in function.walk())


@pytest.mark.parametrize(
    "source, construct",
    [
        ("lambda: 1", "lambda"),
        ("{1: 2}", "a dict"),
        ("{1}", "a set"),
        ("{x: x for x in (1, 2)}", "a dict comprehension"),
        ("{x for x in (1, 2)}", "a set comprehension"),
        ("(x for x in (1, 2))", "a generator expression"),
        ("(yield)", "yield"),
        ("[x for x in (1, 2) for y in (1, 2)]", "a comprehension with several loops"),
    ],
)
def test_expressions_that_kernels_lack(source: str, construct: str) -> None:
    from tests.frontend.kernels import define

    kernel = define(f"def kernel(out):\n    x = {source}\n")
    at = source[1:-1] if source == "(yield)" else source
    assert refused(kernel, "E0110", PTR, at=at).message.startswith(construct)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python 3.14 brings template strings")
def test_template_strings() -> None:
    from tests.frontend.kernels import define

    kernel = define('def kernel(out):\n    x = t"a"\n')
    assert "template" in refused(kernel, "E0110", PTR, at='t"a"').message


def test_the_branch_of_a_float_condition() -> None:
    @jit
    def kernel(out, f):
        if f:
            tl.store(out, 1)

    assert len(ops(ir(kernel, PTR, F32), If)) == 1
    assert [results(kernel, f) for f in (0.0, -0.0, 0.5, math.nan)] == [0, 0, 1, 1]


def test_values_are_not_confused() -> None:
    """1, True and 1.0 are equal in Python, and different constants."""

    @jit
    def kernel(out, A: tl.constexpr):
        if A is True:
            tl.store(out, 1)
        elif isinstance(A, float):
            tl.store(out, 2)
        else:
            tl.store(out, 3)

    assert [results(kernel, value) for value in (True, 1.0, 1)] == [1, 2, 3]
    assert isinstance(constexpr(1).value, int)


def test_types_of_other_libraries_are_named() -> None:
    @jit
    def kernel(out, DTYPE: tl.constexpr):
        tl.store(out, tl.load(out).to(DTYPE))

    assert (
        "got dtype('float32')" in refused(kernel, "E0204", PTR, np.dtype("f4"), at="DTYPE").message
    )
    assert "got the class float32" in refused(kernel, "E0204", PTR, np.float32, at="DTYPE").message

    @jit
    def stored(out):
        tl.store(out, tl.float32)

    assert "tritium.language.float32" in refused(stored, "E0210", PTR, at="tl.float32").message
