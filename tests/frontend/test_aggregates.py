"""Classes of the user's as kernel values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.frontend.kernels import F32, I32, PTR, compile, jit, refused, results

import tritium
import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.frontend.dependencies import verify
from tritium.ops.callable import constexpr_function


@tritium.aggregate
class Point:
    x: tl.tensor
    y: tl.tensor

    @jit
    def norm(self):
        return self.x * self.x + self.y * self.y

    @jit
    def moved(self, dx, dy=1):
        return Point(self.x + dx, self.y + dy)

    @jit
    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

    @jit
    def __neg__(self):
        return Point(-self.x, -self.y)

    @jit
    def __getitem__(self, index):
        return self.x if index == 0 else self.y


@tritium.aggregate
class Blocks:
    origin: Point
    SIZE: tl.constexpr
    scale: tl.float32 = 2.0
    NAME: tl.constexpr = "rows"

    @constexpr_function
    def doubled(self, by=2):
        return tl.constexpr(self.SIZE.value * by).value

    @jit
    def offsets(self):
        return self.origin.x + tl.arange(0, self.SIZE)


@tritium.aggregate
class Written:
    value: tl.tensor
    COUNT: tl.constexpr

    def __init__(self, value, count):
        self.value = value + count
        self.COUNT = tl.constexpr(count.value + 1)


@tritium.aggregate
class AtCompileTime:
    value: tl.tensor
    COUNT: tl.constexpr

    @constexpr_function
    def __init__(self, value, count):
        self.value = value
        self.COUNT = tl.constexpr(count * 2)


@tritium.aggregate
class Derived(Written):
    more: tl.tensor

    def __init__(self, value, count, more):
        super().__init__(value, count)
        self.more = more


@tritium.aggregate
class Extended(Point):
    z: tl.tensor = 7

    @jit
    def total(self):
        return self.norm() + self.z


def test_fields_and_methods() -> None:
    @jit
    def kernel(out, n):
        p = Point(n, y=2)
        q = p.moved(1)
        tl.store(out, p.norm() * 1000 + q.x * 10 + q.y)

    assert results(kernel, 3) == 13000 + 40 + 3


def test_operators_and_subscripts() -> None:
    @jit
    def kernel(out, n):
        p = Point(n, 2) + Point(10, n)
        q = -p
        tl.store(out, p[0] * 100 + p[1] + q[1] * 1000)

    assert results(kernel, 3) == 1300 + 5 - 5000


def test_constants_defaults_and_nesting() -> None:
    @jit
    def kernel(out, n):
        b = Blocks(Point(n, 0), 4)
        tl.static_assert(b.SIZE == 4)
        tl.static_assert(b.NAME == "rows")
        tl.static_assert(b.doubled() == 8)
        tl.static_assert(b.doubled(by=3) == 12)
        tl.static_assert(b.scale.dtype == tl.float32)
        at = b.offsets()
        tl.store(out + at, (at * b.scale).to(tl.int32))

    assert results(kernel, 2, size=6) == [0, 0, 4, 6, 8, 10]


def test_written_constructors() -> None:
    @jit
    def kernel(out, n):
        w = Written(n, 3)
        a = AtCompileTime(n, 3)
        d = Derived(n, 1, more=5)
        e = Extended(n, 1)
        tl.static_assert(w.COUNT == 4)
        tl.static_assert(a.COUNT == 6)
        tl.static_assert(d.COUNT == 2)
        tl.store(out, w.value + 100 * a.value + 10000 * d.more + 100000 * e.total() + d.value)

    assert results(kernel, 2) == 5 + 200 + 50000 + 1200000 + 3


def test_loops_branches_calls_and_returns() -> None:
    @jit
    def chosen(p, n):
        if n > 5:
            return p
        return p.moved(100)

    @jit
    def kernel(out, n):
        p = Point(n, 0)
        for i in range(n):
            if i % 2 == 0:
                p = p.moved(i)
            else:
                p = Point(p.y, p.x)
        while p.x < 50:
            p += Point(7, 1)
        q = p if n > 4 else Point(0, 1)
        r = chosen(q, n)
        tl.store(out, r.x * 1000 + r.y)

    def expected(n: int) -> int:
        x, y = n, 0
        for i in range(n):
            x, y = (x + i, y + 1) if i % 2 == 0 else (y, x)
        while x < 50:
            x, y = x + 7, y + 1
        if n <= 4:
            x, y = 0, 1
        if n <= 5:
            x, y = x + 100, y + 1
        return x * 1000 + y

    for n in (1, 4, 5, 6, 9):
        assert results(kernel, n) == expected(n)


def test_replace() -> None:
    @jit
    def kernel(out, n):
        p = tl.core.aggregate_replace(Point(n, 2), y=n * 2)
        tl.store(out, p.x * 10 + p.y)

    assert results(kernel, 3) == 36

    @jit
    def unknown(out, n):
        tl.core.aggregate_replace(Point(n, 2), z=n)

    refused(unknown, "E0206", PTR, I32, at="tl.core.aggregate_replace(Point(n, 2), z=n)")

    @jit
    def number(out, n):
        tl.core.aggregate_replace(n, z=n)

    refused(number, "E0204", PTR, I32, at="n")


def test_instances_are_isinstance() -> None:
    @jit
    def kernel(out, n):
        p = Extended(n, 2)
        if isinstance(p, Point):
            tl.store(out, p.z)

    assert results(kernel, 3) == 7


def test_native_and_interpreted_launches_agree() -> None:
    @tritium.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        b = Blocks(Point(tl.program_id(0) * BLOCK, 0), BLOCK)
        total = Point(tl.zeros((BLOCK,), tl.float32), 0.0)
        for _ in range(3):
            loaded = tl.load(x + b.offsets(), mask=b.offsets() < n)
            total = Point(total.x + loaded, total.y + tl.sum(loaded))
        tl.store(out + b.offsets(), total.x + total.y, mask=b.offsets() < n)

    x = np.arange(13, dtype=np.float32)
    one, other = np.zeros_like(x), np.zeros_like(x)
    kernel[(3,)](x, one, 13, 5)
    kernel.interpret[(3,)](x, other, 13, 5)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one[:5], 3 * x[:5] + 30)


def test_fields_refused() -> None:
    @jit
    def run_time(out, n):
        Blocks(Point(n, 0), n)

    refused(run_time, "E0205", PTR, I32, at="n")

    @jit
    def wrong_type(out, n):
        Blocks(n, 4)

    refused(wrong_type, "E0204", PTR, I32, at="n")

    @jit
    def wrong_dtype(out, n):
        Blocks(Point(n, 0), 4, scale=n)

    refused(wrong_dtype, "E0204", PTR, I32, at="scale=n")

    @jit
    def text(out, n):
        Point(n, "2")

    refused(text, "E0204", PTR, I32, at='"2"')

    @jit
    def missing(out, n):
        Point(n)

    refused(missing, "E0113", PTR, I32, at="Point(n)")

    @jit
    def unknown(out, n):
        Point(n, 2, z=3)

    refused(unknown, "E0112", PTR, I32, at="z=3")


def test_instances_do_not_change() -> None:
    @jit
    def kernel(out, n):
        p = Point(n, 0)
        p.x = 3
        tl.store(out, p.x)

    refused(kernel, "E0110", PTR, I32, at="p.x")
    with pytest.raises(TritiumError) as caught:
        tritium.jit(kernel.fn).interpret[(1,)](np.zeros(1, np.int32), 2)
    assert caught.value.code == "E0110"


def test_types_are_stable_in_loops_and_branches() -> None:
    @jit
    def loop(out, n):
        b = Blocks(Point(n, 0), 4)
        for _ in range(n):
            b = Blocks(Point(n, 0), 8)
        tl.store(out, b.origin.x)

    refused(loop, "E0401", PTR, I32, at="b")

    @jit
    def branch(out, n):
        p = Point(n, 0)
        if n > 3:
            p = (n, 0)
        tl.store(out, n)

    refused(branch, "E0402", PTR, I32, at="p")

    @jit
    def part(out, n, f):
        p = Point(n, 0)
        if n > 3:
            p = Point(f, 0)
        tl.store(out, n)

    refused(part, "E0402", PTR, I32, F32, at="p")


def test_an_aggregate_is_no_tuple() -> None:
    @jit
    def unpacked(out, n):
        _x, _y = Point(n, 2)

    refused(unpacked, "E0204", PTR, I32, at="_x, _y")

    @jit
    def plain(out, n):
        WithPlainMethod(n).method()

    refused(plain, "E0111", PTR, I32, at="WithPlainMethod(n).method")


@tritium.aggregate
class WithPlainMethod:
    x: tl.tensor

    def method(self):
        return self.x


@tritium.aggregate
class Forgets:
    x: tl.tensor
    y: tl.tensor

    def __init__(self, x):
        self.x = x


@tritium.aggregate
class SetsAnother:
    x: tl.tensor

    def __init__(self, x):
        self.z = x


@pytest.mark.parametrize("cls", [Forgets, SetsAnother])
def test_constructors_set_the_fields(cls: Any) -> None:
    @jit
    def kernel(out, n, CLS: tl.constexpr):
        CLS(n)

    refused(kernel, "E0206", PTR, I32, tritium.frontend.ConstantSpec(cls), at="CLS(n)")


def test_classes_refused() -> None:
    with pytest.raises(TritiumError, match="needs fields"):

        @tritium.aggregate
        class Empty:
            pass

    with pytest.raises(TritiumError, match="can't be a kernel function"):

        @tritium.aggregate
        class Compiled:
            x: tl.tensor

            @jit
            def __init__(self, x):
                self.x = x


def test_local_classes_and_unresolved_annotations() -> None:
    @tritium.aggregate
    class Local:
        point: Point
        anything: NotThere
        KNOWN: tl.constexpr = 3

    @jit
    def kernel(out, n):
        a = Local(Point(n, 1), (n, 5))
        tl.store(out, a.point.x + a.anything[1] + a.KNOWN)

    assert results(kernel, 2) == 10


@jit
def uses_methods(out, n):
    tl.store(out, Written(Point(n, 1).norm(), 2).value)


def test_what_is_read_of_a_class_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compile(uses_methods, PTR, I32).dependencies
    manifest = made.manifest()
    assert manifest["complete"]
    assert verify(manifest, uses_methods, {}) is None

    @jit
    def norm(self):
        return self.x

    monkeypatch.setattr(Point, "norm", norm)
    assert verify(manifest, uses_methods, {}) is not None
    assert made.changed() is not None
    monkeypatch.undo()
    assert made.changed() is None

    def constructor(self, value, count):
        self.value, self.COUNT = value, count

    monkeypatch.setattr(Written, "_constructor", constructor)
    assert verify(manifest, uses_methods, {}) == "Written"
    assert made.changed() == "Written"
