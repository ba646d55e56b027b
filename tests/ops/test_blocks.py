"""Block pointers and tensor descriptors: what they read and write, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.frontend.kernels import F32, I32, I64, array, compile, jit, launch, refused
from tests.ops.harness import eager

import tritium
import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.frontend.specialize import PointerSpec, ScalarSpec
from tritium.ir.types import PointerType
from tritium.ops.spec import given
from tritium.tools.tensor_descriptor import TensorDescriptor

FP = PointerSpec(tl.float32)


def both(kernel: Any, grid: tuple[int, ...], *args: Any, **known: Any) -> list[np.ndarray]:
    """Machine code's and eager mode's results, which must be equal bit for bit; the latter."""
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in args]
    kernel.interpret[grid](*args, **known)
    kernel[grid](*copies, **known)
    arrays = [each for each in args if isinstance(each, np.ndarray)]
    compiled = [each for each in copies if isinstance(each, np.ndarray)]
    for one, other in zip(arrays, compiled):
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
    return arrays


# ---- block pointers ------------------------------------------------------------------------------


@tritium.jit
def transpose_blocks(x, y, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    source = tl.make_block_ptr(x, (m, n), (n, 1), (i * BM, j * BN), (BM, BN), (1, 0))
    target = tl.make_block_ptr(y, (n, m), (m, 1), (j * BN, i * BM), (BN, BM), order=(1, 0))
    tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    tl.store(target, tl.trans(tile), boundary_check=(0, 1))


@pytest.mark.parametrize("shape", [(8, 16), (13, 29), (1, 1), (16, 5)])
@pytest.mark.parametrize("block", [(4, 8), (5, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64, np.float16])
def test_blocks_are_copied(shape: tuple[int, int], block: tuple[int, int], dtype: Any) -> None:
    x = np.arange(shape[0] * shape[1]).reshape(shape).astype(dtype)
    y = np.zeros(shape[::-1], dtype)
    grid = (-(-shape[0] // block[0]), -(-shape[1] // block[1]))
    both(transpose_blocks, grid, x, y, *shape, *block)
    np.testing.assert_array_equal(y, x.T)


@tritium.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    p = tl.make_block_ptr(a, (m, k), (k, 1), (row, 0), (BM, BK), (1, 0))
    q = tl.make_block_ptr(b, (k, n), (n, 1), (0, column), (BK, BN), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k, BK):
        left = tl.load(p, boundary_check=(0, 1))
        right = tl.load(q, boundary_check=(0, 1))
        total = tl.dot(left, right, total, input_precision="ieee")
        p = p.advance((0, BK))
        q = tl.advance(q, [BK, 0])
    r = tl.make_block_ptr(c, (m, n), (n, 1), (row, column), (BM, BN), (1, 0))
    tl.store(r, total.to(r.dtype.element_ty), boundary_check=(0, 1))


def test_matmul_carries_block_pointers() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (37, 45)).astype(np.float32)
    b = rng.integers(-4, 5, (45, 19)).astype(np.float32)
    c = np.zeros((37, 19), np.float32)
    both(matmul, (3, 2), a, b, c, 37, 19, 45, 16, 16, 16)
    np.testing.assert_array_equal(c, a @ b)


@tritium.jit
def padded(x, y, n, start, OPTION: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (start,), (8,), (0,))
    tile = tl.load(p, boundary_check=(0,), padding_option=OPTION)
    tl.store(y + tl.arange(0, 8), tile)


@pytest.mark.parametrize("option", ["", "zero", "nan"])
@pytest.mark.parametrize("start", [-3, 0, 4, 9, -20])
def test_padding(option: str, start: int) -> None:
    x = np.arange(1, 7, dtype=np.float32)
    y = np.full(8, -1, np.float32)
    both(padded, (1,), x, y, 6, start, option)
    outside = np.nan if option == "nan" else 0
    index = np.arange(start, start + 8)
    inside = (index >= 0) & (index < 6)
    np.testing.assert_array_equal(y, np.where(inside, x[np.clip(index, 0, 5)], outside))


@tritium.jit
def checked_along_one(x, y):
    p = tl.make_block_ptr(x, (2, 3), (4, 1), (0, 1), (2, 4), (1, 0))
    tile = tl.load(p, boundary_check=(1,))
    tl.store(tl.make_block_ptr(y, (2, 4), (4, 1), (0, 0), (2, 4), (1, 0)), tile)


def test_only_listed_axes_are_checked() -> None:
    x = np.arange(8, dtype=np.int32)
    y = np.full((2, 4), -1, np.int32)
    both(checked_along_one, (1,), x, y)
    assert y.tolist() == [[1, 2, 0, 0], [5, 6, 0, 0]]


@tritium.jit
def chosen(x, y, z, n, which):
    if which > 0:
        p = tl.make_block_ptr(x, (n,), (1,), (0,), (4,), (0,))
    else:
        p = tl.make_block_ptr(y, (n,), (1,), (which,), (4,), (0,))
    tl.store(z + tl.arange(0, 4), tl.load(moved(p, 1), boundary_check=0))


@tritium.jit
def moved(p, by):
    if by == 0:
        return p
    return tl.advance(p, (by,))


@pytest.mark.parametrize("which", [1, 0, -1])
def test_block_pointers_go_through_branches_and_calls(which: int) -> None:
    x, y = np.arange(10, 16, dtype=np.int32), np.arange(20, 26, dtype=np.int32)
    z = np.zeros(4, np.int32)
    both(chosen, (1,), x, y, z, 6, which)
    start = 1 + min(which, 0)
    assert z.tolist() == (x if which > 0 else y)[start : start + 4].tolist()


@tritium.jit
def far_offset(x, y, stride):
    p = tl.make_block_ptr(x, (3, 4), (stride, 1), (1, 0), (1, 4), (1, 0))
    tl.store(y + tl.arange(0, 4)[None, :], tl.load(p))


def test_index_arithmetic_does_not_wrap() -> None:
    rows = np.arange(12, dtype=np.int32).reshape(3, 4)
    y = np.zeros(4, np.int32)
    both(far_offset, (1,), rows, y, 4)
    assert y.tolist() == [4, 5, 6, 7]

    @jit
    def wide(out, big):
        p = tl.make_block_ptr(out, (8,), (1,), (big,), (1,), (0,))
        back = tl.advance(p, (0 - big.to(tl.int64),))
        tl.store(tl.advance(back, (3,)), tl.full((1,), 5, tl.int32))

    out = array([0] * 8)
    launch(wide, (1,), out, 2147483647)
    assert out.tolist() == [0, 0, 0, 5, 0, 0, 0, 0]


def test_block_pointers_refused() -> None:
    @jit
    def kernel(p, n):
        tl.make_block_ptr(p, (n,), (1,), (0,), (4,), (1,))

    refused(kernel, "E0206", FP, I32, at="(1,)")

    @jit
    def ranks(p, n):
        tl.make_block_ptr(p, (n, n), (1,), (0,), (4,), (0,))

    refused(ranks, "E0206", FP, I32, at="(n, n)")

    @jit
    def extents(p, n):
        tl.make_block_ptr(p, (n,), (1,), (0,), (n,), (0,))

    refused(extents, "E0205", FP, I32, at="(n,)")

    @jit
    def floats(p, n):
        tl.make_block_ptr(p, (n,), (1,), (0,), (4,), (0,))

    refused(floats, "E0204", FP, F32, at="(n,)")
    refused(floats, "E0601", I32, I32, at="p")

    @jit
    def number(p, n):
        tl.make_block_ptr(p, n, (1,), (0,), (4,), (0,))

    refused(number, "E0204", FP, I32, at="n")

    @jit
    def grown(p, n):
        block = tl.make_block_ptr(p, (n,), (1,), (0,), (4,), (0,))
        for _ in range(n):
            block = tl.make_block_ptr(p, (n,), (1,), (0,), (8,), (0,))
        tl.load(block)

    problem = refused(grown, "E0401", FP, I32, at="block")
    assert "[4] of fp32" in problem.message
    assert "[8] of fp32" in problem.message


def vector(element: Any) -> Any:
    """A block pointer to 4 elements."""
    return tl.make_block_ptr(given(PointerType(element)), (4,), (1,), (0,), (4,), (0,))


LOADS = {
    "mask": ("E0609", "mask", "tl.load(b, mask=m)"),
    "other": ("E0609", "other", "tl.load(b, other=0.0)"),
    "axis": ("E0207", "boundary_check", "tl.load(b, boundary_check=(1,))"),
    "negative axis": ("E0207", "boundary_check", "tl.load(b, boundary_check=(-1,))"),
    "padding": ("E0606", "padding_option", "tl.load(b, padding_option='inf')"),
}


@pytest.mark.parametrize("name", LOADS)
def test_loads_refused(name: str) -> None:
    code, argument, call = LOADS[name]
    with eager():
        names = {"tl": tl, "b": vector(tl.float32), "m": given(tl.int1, 4)}
        with pytest.raises(TritiumError) as caught:
            eval(call, names)
    assert (caught.value.code, caught.value.argument) == (code, argument)


def test_nan_needs_floats() -> None:
    with eager():
        b = vector(tl.int32)
        with pytest.raises(TritiumError) as caught:
            tl.load(b, boundary_check=(0,), padding_option="nan")
    assert caught.value.code == "E0206"
    assert caught.value.argument == "padding_option"


@pytest.mark.parametrize(
    "value",
    [given(tl.float16, 4), given(tl.float32, 8), given(tl.int32)],
    ids=["another type", "another shape", "a scalar of another type"],
)
def test_stores_refused(value: Any) -> None:
    with eager():
        b = vector(tl.float32)
        with pytest.raises(TritiumError) as caught:
            tl.store(b, value)
    assert (caught.value.code, caught.value.argument) == ("E0204", "value")


def test_advance_refused() -> None:
    with eager():
        b = vector(tl.float32)
        for pointer, offsets, code, argument in [
            (given(PointerType(tl.float32)), (1,), "E0204", "base"),
            (b, (1, 2), "E0206", "offsets"),
            (b, 1, "E0204", "offsets"),
            (b, (1.5,), "E0204", "offsets"),
        ]:
            with pytest.raises(TritiumError) as caught:
                tl.advance(pointer, offsets)
            assert (caught.value.code, caught.value.argument) == (code, argument)


# ---- descriptors made in kernels -----------------------------------------------------------------


@tritium.jit
def copy_by_descriptor(x, y, m, n, BM: tl.constexpr, BN: tl.constexpr, PADDING: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [BM, BN], PADDING)
    wide = tl.make_tensor_descriptor(y, [m + 1, n], strides=[n, 1], block_shape=[BM, BN])
    i = tl.program_id(0) * BM
    for j in range(0, n, BN):
        tile = source.load([i, j])
        tl.static_assert(tile.dtype == source.dtype)
        tl.static_assert(source.block_shape[0] == BM)
        wide.store([i, j], tile.to(tl.float64))


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("block", [(4, 8), (3, 5)])
def test_descriptors_copy(padding: str, block: tuple[int, int]) -> None:
    x = np.arange(6 * 12, dtype=np.float32).reshape(6, 12)
    y = np.full((7, 12), -1, np.float32)
    both(copy_by_descriptor, (3,), x, y, 6, 12, *block, padding)
    np.testing.assert_array_equal(y[:6], x)
    assert np.isnan(y[6]).all() if padding == "nan" else not y[6].any()


@tritium.jit
def rows(x, index, y, n, start, COUNT: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [5, n], [n, 1], [1, 4])
    target = tl.make_tensor_descriptor(y, [5, n], [n, 1], [1, 4])
    which = tl.load(index + tl.arange(0, COUNT))
    tile = source.gather(which, start)
    target.scatter(tile + 1, which, start)


def test_rows_are_gathered_and_scattered() -> None:
    x = np.arange(40, dtype=np.float32).reshape(5, 8)
    y = np.zeros((5, 8), np.float32)
    index = np.array([3, 0, 7, -1, 4], np.int32)
    both(rows, (1,), x, index, y, 8, 6, 5)
    expected = np.zeros((5, 8), np.float32)
    for row in (3, 0, 4):
        expected[row, 6:] = x[row, 6:] + 1
    np.testing.assert_array_equal(y, expected)


@tritium.jit
def functions(x, y, n):
    a = tl.make_tensor_descriptor(x, [n], [1], [4])
    b = tl.make_tensor_descriptor(y, [n], [1], [4])
    for i in range(2):
        tile = tl.load_tensor_descriptor(a, [i * 4])
        tl.store_tensor_descriptor(b, [i * 4], tile * 2)
        a, b = b, a


def test_function_forms_and_descriptors_in_loops() -> None:
    x, y = np.arange(8, dtype=np.float32), np.arange(8, dtype=np.float32) + 100
    both(functions, (1,), x, y, 8)
    assert y.tolist() == [0, 2, 4, 6, 104, 105, 106, 107]
    assert x.tolist() == [0, 1, 2, 3, 208, 210, 212, 214]


REFUSED = {
    "the last stride": ("E0206", "strides", "make(p, [n, n], [n, 2], [4, 4])"),
    "a run-time last stride": ("E0206", "strides", "make(p, [n, n], [n, n], [4, 4])"),
    "a stride of 12 bytes": ("E0206", "strides", "make(p, [n, n], [3, 1], [4, 4])"),
    "a short last axis": ("E0206", "block_shape", "make(p, [n, n], [n, 1], [4, 2])"),
    "six axes": ("E0206", "block_shape", "make(p, [n] * 6, [n] * 5 + [1], [1] * 5 + [4])"),
    "a rank": ("E0206", "shape", "make(p, [n], [n, 1], [4, 4])"),
    "padding": ("E0606", "padding_option", "make(p, [n], [1], [4], 'one')"),
    "no padding": ("E0606", "padding_option", "make(p, [n], [1], [4], '')"),
    "a tile of pointers": ("E0601", "base", "make(t, [n], [1], [4])"),
    "no tuple": ("E0204", "shape", "make(p, n, [1], [4])"),
    "offsets": ("E0206", "offsets", "make(p, [n], [1], [4]).load([n, n])"),
    "one offset": ("E0204", "offsets", "make(p, [n], [1], [4]).load(n)"),
    "a float offset": ("E0204", "offsets", "make(p, [n], [1], [4]).load([0.5])"),
    "a stored shape": ("E0204", "value", "make(p, [n], [1], [4]).store([n], x)"),
    "a pointer": ("E0204", "desc", "tl.load_tensor_descriptor(p, [n])"),
    "rows of several": ("E0206", "desc", "make(p, [n, n], [n, 1], [2, 4]).gather(r, n)"),
    "a scalar row": ("E0204", "x_offsets", "make(p, [n, n], [n, 1], [1, 4]).gather(n, n)"),
    "scattered shape": ("E0204", "value", "make(p, [n, n], [n, 1], [1, 4]).scatter(x, r, n)"),
}


@tritium.jit
def masked_descriptor(x, out):
    block = tl.make_tensor_descriptor(x, [8], [1], [8])
    tl.store(out + tl.arange(0, 8), block.load([0], mask=tl.arange(0, 8) < 3))


def test_a_mask_for_a_descriptor_is_refused() -> None:
    x = np.ones(8, np.float32)
    with pytest.raises(TritiumError, match="mask"):
        masked_descriptor[(1,)](x, x)


@pytest.mark.parametrize("name", REFUSED)
def test_descriptors_refused(name: str) -> None:
    code, argument, call = REFUSED[name]
    names = {
        "tl": tl,
        "make": tl.make_tensor_descriptor,
        "p": given(PointerType(tl.float32)),
        "t": given(PointerType(tl.float32), 4),
        "n": given(tl.int32),
        "r": given(tl.int32, 3),
        "x": given(tl.float32, 8),
    }
    with eager(), pytest.raises(TritiumError) as caught:
        eval(call, names)
    assert (caught.value.code, caught.value.argument) == (code, argument)


def test_a_nan_for_integers_is_refused() -> None:
    @jit
    def kernel(p, n):
        tl.make_tensor_descriptor(p, [n], [1], [4], padding_option="nan")

    refused(kernel, "E0206", PointerSpec(tl.int32), I64, at='padding_option="nan"')


# ---- descriptors made on the host ----------------------------------------------------------------


@tritium.jit
def scaled(x, y, factor, BN: tl.constexpr):
    for j in range(0, x.shape[1], BN):
        tile = x.load([tl.program_id(0) * x.block_shape[0], j])
        y.store([tl.program_id(0) * x.block_shape[0], j], tile * factor)


@pytest.mark.parametrize("rows", [1, 5, 16])
def test_host_made_descriptors(rows: int) -> None:
    whole = np.arange(rows * 24, dtype=np.float32).reshape(rows, 24)
    x = whole[:, :17]
    for launch_ in (scaled.interpret, scaled):
        y = np.zeros((rows, 20), np.float32)[:, :17]
        source = TensorDescriptor.from_tensor(x, [4, 8])
        target = TensorDescriptor(y, y.shape, (20, 1), [4, 8])
        launch_[(-(-rows // 4),)](source, target, 3, 8)
        np.testing.assert_array_equal(y, x * 3)
        source.block_shape = target.block_shape = [2, 5]
        y[:] = 0
        launch_[(-(-rows // 2),)](source, target, 2, 5)
        np.testing.assert_array_equal(y, x * 2)


@tritium.jit
def swapped(a, b, out, n):
    for _ in range(n):
        a, b = b, a
    tl.store(out + tl.arange(0, 4), a.load([2]))


def test_host_made_descriptors_in_loops_and_padding() -> None:
    x, y = np.arange(4, dtype=np.float32), np.arange(4, dtype=np.float32) + 10
    for launch_ in (swapped.interpret, swapped):
        out = np.zeros(4, np.float32)
        descriptors = [TensorDescriptor.from_tensor(each, [4], padding="nan") for each in (x, y)]
        launch_[(1,)](*descriptors, out, 3)
        np.testing.assert_array_equal(out, [12, 13, np.nan, np.nan])


def test_descriptors_of_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(40, dtype=torch.float32).reshape(5, 8)
    y = torch.zeros_like(x)
    scaled[(2,)](
        TensorDescriptor.from_tensor(x, [4, 8]), TensorDescriptor(y, [5, 8], [8, 1], [4, 8]), 3, 8
    )
    assert torch.equal(y, x * 3)


@jit
def described(x, shape: tl.constexpr, strides: tl.constexpr, block: tl.constexpr, padding):
    tl.make_tensor_descriptor(x, shape, strides, block, padding_option=padding)


X = np.zeros((8, 8), np.float32)
GOOD: dict[str, Any] = {
    "shape": [8, 8],
    "strides": [8, 1],
    "block_shape": [2, 4],
    "padding": "zero",
}
WRONG: list[tuple[str, str, dict[str, Any]]] = [
    ("fewer extents", "E0206", {"shape": [8]}),
    ("fewer strides", "E0206", {"strides": [1]}),
    ("fewer extents of a block", "E0206", {"block_shape": [4]}),
    ("no axes", "E0206", {"shape": [], "strides": [], "block_shape": []}),
    ("six axes", "E0206", {"shape": [1] * 6, "strides": [4] * 5 + [1], "block_shape": [4] * 6}),
    ("columns", "E0206", {"strides": [1, 8]}),
    ("a stride of 12 bytes", "E0206", {"strides": [3, 1]}),
    ("an empty array", "E0206", {"shape": [8, 0]}),
    ("a negative extent", "E0206", {"shape": [-8, 8]}),
    ("an extent that is no integer", "E0204", {"shape": [8, 8.0]}),
    ("a stride that is no integer", "E0204", {"strides": [True, 1]}),
    ("extents without order", "E0204", {"shape": 8}),
    ("an empty block", "E0206", {"block_shape": [2, 0]}),
    ("a negative block", "E0206", {"block_shape": [2, -4]}),
    ("a block of 12 bytes", "E0206", {"block_shape": [2, 3]}),
    ("a fraction of a block", "E0204", {"block_shape": [2, 16.7]}),
    ("a block of too many elements", "E0206", {"block_shape": [1 << 20, 4]}),
    ("an unknown padding", "E0606", {"padding": "one"}),
]


@pytest.mark.parametrize(("code", "wrong"), [each[1:] for each in WRONG], ids=[w[0] for w in WRONG])
def test_descriptors_are_checked_by_one_rule(code: str, wrong: dict[str, Any]) -> None:
    """Made on the host, changed between launches, and made in a kernel."""
    fields = {**GOOD, **wrong}
    with pytest.raises(TritiumError) as caught:
        TensorDescriptor(X, **fields)
    assert caught.value.code == code
    first = caught.value.message

    changed = TensorDescriptor(X, **GOOD)
    for name, value in wrong.items():
        setattr(changed, name, value)
    y = np.ones((8, 8), np.float32)
    for kernel in (scaled, scaled.interpret):
        with pytest.raises(TritiumError) as caught:
            kernel[(4,)](TensorDescriptor(y, **GOOD), changed, 3, 4)
        assert (caught.value.code, caught.value.argument) == (code, "y")
        assert caught.value.message == first.replace("TensorDescriptor", "scaled: argument y")
        assert caught.value.loc is not None
        assert caught.value.loc.file == __file__
    assert (y == 1).all()

    known = [tuple(each) if isinstance(each, list) else each for each in fields.values()]
    with pytest.raises(TritiumError) as caught:
        compile(described, FP, *known)
    assert caught.value.code == code
    assert caught.value.message == first.replace("TensorDescriptor", "make_tensor_descriptor")


def test_what_is_equal_but_not_right_is_refused() -> None:
    """Though the same numbers were right before."""
    for wrong in ({"block_shape": [2, 4.0]}, {"strides": [8, True]}, {"shape": np.array([8, 8])}):
        descriptor = TensorDescriptor(X, **GOOD)
        descriptor.argument("kernel", "x", "x")
        for name, value in wrong.items():
            setattr(descriptor, name, value)
        with pytest.raises(TritiumError) as caught:
            descriptor.argument("kernel", "x", "x")
        assert caught.value.code in ("E0204", "E0206")


def test_lists_may_be_changed_in_place() -> None:
    descriptor = TensorDescriptor(X, **{**GOOD, "block_shape": [2, 4]})
    assert descriptor.argument("kernel", "x", "x").descriptor_block_shape.value == (2, 4)
    descriptor.block_shape[0] = 4
    assert descriptor.argument("kernel", "x", "x").descriptor_block_shape.value == (4, 4)
    descriptor.block_shape[1] = 2
    with pytest.raises(TritiumError, match="argument x: the last axis of a block has 8 bytes"):
        descriptor.argument("kernel", "x", "x")


def test_numbers_beyond_64_bits() -> None:
    descriptor = TensorDescriptor(X, **GOOD)
    descriptor.shape = [8, 1 << 63]
    with pytest.raises(TritiumError, match="argument x: 9223372036854775808 in shape") as caught:
        scaled[(4,)](descriptor, descriptor, 3, 4)
    assert (caught.value.code, caught.value.argument) == ("E0203", "x")


def test_nan_is_for_floats_on_the_host_too() -> None:
    with pytest.raises(TritiumError, match="int32 has no NaN") as caught:
        TensorDescriptor(np.zeros(8, np.int32), [8], [1], [4], "nan")
    assert caught.value.code == "E0206"


@pytest.mark.parametrize("base", [None, 5, [1.0, 2.0], np.float32(1), np.zeros(8, np.complex64)])
def test_descriptors_of_what_no_kernel_takes(base: Any) -> None:
    with pytest.raises(TritiumError, match="argument base") as caught:
        TensorDescriptor(base, [8], [1], [4])
    assert caught.value.code == "E0501"
    with pytest.raises(TritiumError):
        TensorDescriptor.from_tensor(base, [4])
    changed = TensorDescriptor(np.zeros(8, np.float32), [8], [1], [4])
    changed.base = base
    with pytest.raises(TritiumError, match=r"argument b\.base") as caught:
        swapped[(1,)](TensorDescriptor(X[0], [8], [1], [4]), changed, np.zeros(4, np.float32), 1)
    assert (caught.value.code, caught.value.argument) == ("E0501", "b")


def test_descriptors_of_tensors_where_no_kernel_runs() -> None:
    torch = pytest.importorskip("torch")
    away = torch.empty(8, 8, device="meta")
    with pytest.raises(TritiumError, match="argument base is on meta") as caught:
        TensorDescriptor(away, **GOOD)
    assert (caught.value.code, caught.value.argument) == ("E0513", "base")
    changed = TensorDescriptor(X, **GOOD)
    changed.base = away
    with pytest.raises(TritiumError, match=r"argument y\.base is on meta") as caught:
        scaled[(1,)](TensorDescriptor(X, **GOOD), changed, 3, 4)
    assert (caught.value.code, caught.value.argument) == ("E0513", "y")


def test_the_base_is_aligned() -> None:
    x = np.zeros(16, np.float32)
    TensorDescriptor(x[4:], [8], [1], [4])
    with pytest.raises(TritiumError, match="no multiple of 16 bytes") as caught:
        TensorDescriptor(x[1:], [8], [1], [4])
    assert caught.value.code == "E0206"


def test_strides_within_elements_are_refused() -> None:
    record = np.zeros(8, [("x", np.float64), ("y", np.int32)])
    for make in (
        lambda: TensorDescriptor.from_tensor(record["x"], [4]),
        lambda: tritium.reinterpret(record["x"], tl.int64).stride(),
    ):
        with pytest.raises(TritiumError, match=r"\(12,\) are no multiples of 8") as caught:
            make()
        assert caught.value.code == "E0515"
    assert tritium.reinterpret(X, tl.int32).stride() == (8, 1)


def test_descriptors_of_any_array() -> None:
    class Exchanged:
        """An array that is known by DLPack alone."""

        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.shape = array.shape
            self.__dlpack__ = array.__dlpack__
            self.__dlpack_device__ = array.__dlpack_device__

    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    y = np.zeros_like(x)
    scaled[(4,)](
        TensorDescriptor.from_tensor(Exchanged(x), [2, 4]),
        TensorDescriptor.from_tensor(tritium.reinterpret(y, tl.float32), [2, 4]),
        2,
        4,
    )
    np.testing.assert_array_equal(y, x * 2)


@tritium.jit
def behind(x, out, n, low):
    d = tl.make_tensor_descriptor(x, [n], [1], [4], padding_option="nan")
    tl.store(out + tl.arange(0, 4), d.load([low]))
    tl.store(out + 4, d.shape[0] > 4)


@pytest.mark.parametrize("n", [(1 << 32) + 4, (1 << 31) + 2, 6])
def test_extents_are_not_cut_to_32_bits(n: int) -> None:
    x = np.arange(8, dtype=np.float32)
    for kernel in (behind, behind.interpret):
        out = np.zeros(5, np.float32)
        kernel[(1,)](x, out, n, 4)
        inside = [4, 5, 6, 7] if n > 8 else [4, 5, np.nan, np.nan]
        np.testing.assert_array_equal(out, [*inside, 1])


def test_types_of_extents() -> None:
    @jit
    def kernel(x, small, word, wide):
        d = tl.make_tensor_descriptor(x, [small, word, wide], [4, 4, 1], [1, 1, 4])
        tl.static_assert(d.shape[0].dtype == tl.int32)
        tl.static_assert(d.shape[1].dtype == tl.int64)
        tl.static_assert(d.shape[2].dtype == tl.int64)

    compile(kernel, FP, ScalarSpec(tl.int8), ScalarSpec(tl.uint32), I64)


def test_only_their_users_load_descriptors() -> None:
    script = (
        "import sys, tritium, tritium.language as tl\n@tritium.jit\ndef f(x): pass\n"
        "f.binder; print('tritium.runtime.descriptors' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


# ---- atomics through descriptors -----------------------------------------------------------------

ATOMICS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@tritium.jit
def counted(y, m, n, i, j, OPERATION: tl.constexpr):
    target = tl.make_tensor_descriptor(y, [m, n], [8, 1], [3, 4])
    value = 5 * tl.arange(0, 3)[:, None] + tl.arange(0, 4) + tl.program_id(0)
    at = [i, j]
    if OPERATION == "add":
        target.atomic_add(at, value)
    elif OPERATION == "min":
        target.atomic_min(at, value)
    elif OPERATION == "max":
        target.atomic_max(at, value)
    elif OPERATION == "and":
        target.atomic_and(at, value)
    elif OPERATION == "or":
        target.atomic_or(at, value)
    else:
        target.atomic_xor(at, value)


@pytest.mark.parametrize("at", [(1, 2), (-1, -2), (3, 4), (-3, 0), (5, 6)])
@pytest.mark.parametrize("operation", ATOMICS)
def test_atomics_stay_inside(operation: str, at: tuple[int, int]) -> None:
    """An array of 5 x 6 elements within one of 6 x 8, blocks of 3 x 4."""
    y = np.arange(48, dtype=np.int32).reshape(6, 8) % 11
    expected = y.copy()
    for program, row, column in np.ndindex(3, 3, 4):
        i, j = at[0] + row, at[1] + column
        if 0 <= i < 5 and 0 <= j < 6:
            value = 5 * row + column + program
            expected[i, j] = ATOMICS[operation](expected[i, j], value)
    both(counted, (3,), y, 5, 6, *at, operation)
    np.testing.assert_array_equal(y, expected)
