"""The surface functions that rearrange tiles: arguments in every form, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.frontend.kernels import jit, results
from tests.ops.harness import eager

import tritium.language as tl
from tritium.ir.core import ConcreteValue
from tritium.ir.dtypes import from_numpy
from tritium.ir.types import shaped


def tile(array: NDArray[Any]) -> Any:
    return tl.tensor(ConcreteValue(shaped(from_numpy(array.dtype), array.shape), array))


def numbered(*shape: int) -> NDArray[np.int32]:
    return np.arange(math.prod(shape), dtype=np.int32).reshape(shape)


def same(got: Any, want: Any) -> None:
    assert got.type.shape == np.shape(want)
    np.testing.assert_array_equal(got.data, want)


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 1), (5,)), ((), (4,)), ((4,), ()), ((2, 1, 3), (5, 1)), ((1,), (1, 1)), ((3,), (3,))],
)
def test_broadcast_is_numpy_s(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    with eager():
        pair = tl.broadcast(tile(numbered(*left)), tile(numbered(*right)))
        for got, want in zip(pair, np.broadcast_arrays(numbered(*left), numbered(*right))):
            same(got, want)


def test_broadcast_to() -> None:
    x = numbered(3, 1)
    with eager():
        want = np.broadcast_to(x, (3, 5))
        shape = tl.tuple((tl.constexpr(3), tl.constexpr(5)))
        for got in (
            tl.broadcast_to(tile(x), 3, 5),
            tl.broadcast_to(tile(x), (3, 5)),
            tl.broadcast_to(tile(x), [3, tl.constexpr(5)]),
            tl.broadcast_to(tile(x), shape),
            tile(x).broadcast_to(3, 5),
        ):
            same(got, want)
        same(tl.broadcast_to(7, 2, 3), np.full((2, 3), 7))
        same(tl.broadcast_to(7, ()), np.array(7))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3, (0, 1), (0, -1), [3, 1], (-1, -2), ()])
def test_expand_dims_is_numpy_s(axis: Any) -> None:
    x = numbered(3, 5)
    with eager():
        axes = tuple(np.atleast_1d(axis).astype(int))
        same(tl.expand_dims(tile(x), axis), np.expand_dims(x, axes))
        same(tile(x).expand_dims(tl.constexpr(0)), x[None])


def test_scalars_become_tiles() -> None:
    with eager():
        same(tl.expand_dims(7, 0), [7])
        same(tl.expand_dims(7, (0, 1)), [[7]])
        same(tl.unsqueeze(7, -1), [7])


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_unsqueeze_and_squeeze(axis: int) -> None:
    x = numbered(3, 5)
    with eager():
        wide = tl.unsqueeze(tile(x), axis)
        same(wide, np.expand_dims(x, axis))
        same(tl.squeeze(wide, axis), x)
        same(wide.squeeze(axis), x)
    with eager():
        same(tl.squeeze(tile(numbered(1)), 0), np.array(0))


def test_reshape_in_every_form() -> None:
    x = numbered(6, 4)
    with eager():
        for got in (
            tl.reshape(tile(x), 3, 8),
            tl.reshape(tile(x), (3, 8)),
            tl.reshape(tile(x), [3, 8], can_reorder=True),
            tile(x).reshape(3, tl.constexpr(8)),
            tl.view(tile(x), (3, 8)),
            tile(x).view(3, 8),
        ):
            same(got, x.reshape(3, 8))
        same(tl.ravel(tile(x)), x.ravel())
        same(tile(x).ravel(), x.ravel())
        same(tl.ravel(5), [5])
        same(tl.reshape(tile(numbered(1, 1)), ()), np.array(0))
        same(tl.reshape(9, 1, 1), [[9]])
        same(tile(numbered(1, 1)).item(), np.array(0))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_permute_is_numpy_s_transpose(order: tuple[int, ...]) -> None:
    x = numbered(2, 3, 5)
    with eager():
        for got in (
            tl.permute(tile(x), *order),
            tl.permute(tile(x), order),
            tile(x).permute([*order]),
            tl.trans(tile(x), *order),
            tile(x).trans(order),
        ):
            same(got, x.transpose(order))


def test_trans_exchanges_the_last_two_axes() -> None:
    with eager():
        same(tl.trans(tile(numbered(2, 3, 5))), numbered(2, 3, 5).swapaxes(1, 2))
        same(tile(numbered(3, 5)).T, numbered(3, 5).T)


INDICES = [
    (np.s_[:, None], (5,)),
    (np.s_[None, :], (5,)),
    (np.s_[None], (5,)),
    (np.s_[:], (5,)),
    (np.s_[None, :, None], (5,)),
    (np.s_[:, None, :], (3, 5)),
    (np.s_[:, None], (3, 5)),
    (np.s_[None, :, None, :, None], (3, 5)),
    (np.s_[None], ()),
    (np.s_[None, None], ()),
]


@pytest.mark.parametrize(("index", "shape"), INDICES, ids=str)
def test_an_index_adds_axes_as_in_numpy(index: Any, shape: tuple[int, ...]) -> None:
    with eager():
        same(tile(numbered(*shape))[index], numbered(*shape)[index])


def test_a_scalar_s_element_is_itself() -> None:
    with eager():
        same(tile(numbered())[0], np.array(0))
        same(tile(numbered())[tl.constexpr(0)], np.array(0))


@jit
def transpose_kernel(out, M: tl.constexpr, N: tl.constexpr):
    x = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    place = tl.reshape(tl.arange(0, M * N), (N, M))
    tl.store(out + place, tl.trans(x))


def test_a_compiled_transposition() -> None:
    assert results(transpose_kernel, 3, 5, size=15) == numbered(3, 5).T.ravel().tolist()
