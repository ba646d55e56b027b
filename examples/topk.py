"""The largest elements of each row and where they are. Arguments: rows, columns, k (500 1000 8)."""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def topk_kernel(values_ptr, indices_ptr, x_ptr, columns, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offs, mask=offs < columns, other=-float("inf"))
    values, indices = tl.topk(x, K, return_indices=True)
    place = row * K + tl.arange(0, K)
    tl.store(values_ptr + place, values)
    tl.store(indices_ptr + place, indices)


def topk(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` largest of each row, largest first, and their columns; of equal ones the first."""
    rows, columns = x.shape
    values, indices = np.empty((rows, k), x.dtype), np.empty((rows, k), np.int32)
    topk_kernel[(rows,)](values, indices, x, columns, K=k, BLOCK=columns)
    return values, indices


def main() -> None:
    given = [int(v) for v in sys.argv[1:4]] if len(sys.argv) > 3 else [500, 1000, 8]
    rows, columns, k = given
    # Few different numbers, so that there are equal ones.
    x = np.random.default_rng(0).integers(0, 2 * columns, (rows, columns)).astype(np.float32)
    values, indices = topk(x, k)
    want = np.argsort(-x, axis=1, kind="stable")[:, :k]
    assert np.array_equal(indices, want)
    assert np.array_equal(values, np.take_along_axis(x, want, axis=1))
    print("ok", *given)


if __name__ == "__main__":
    main()
