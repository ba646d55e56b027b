"""A step of k-means: the nearest centre of each point, then each centre's mean.

Arguments: points, dimensions and centres (default 5000 17 30).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def assign_kernel(
    x_ptr,
    centre_ptr,
    nearest_ptr,
    sums_ptr,
    counts_ptr,
    points,
    centres,
    dimensions,
    D: tl.constexpr,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """The nearest centres of ``BLOCKS`` blocks of points, their sums and counts by centre."""
    pid = tl.program_id(0)
    dims = tl.arange(0, D)
    clusters = tl.arange(0, K)
    centre_mask = (clusters[:, None] < centres) & (dims[None, :] < dimensions)
    centre_place = clusters[:, None] * dimensions + dims[None, :]
    centre = tl.load(centre_ptr + centre_place, mask=centre_mask, other=0.0)
    # Of |x - c|^2, what depends on the centre: |c|^2 - 2 x c.
    norms = tl.where(clusters < centres, tl.sum(centre * centre, axis=1), float("inf"))
    sums = tl.zeros((K, D), tl.float32)
    counts = tl.zeros((K,), tl.float32)
    for block in range(BLOCKS):
        rows = (pid * BLOCKS + block) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(
            x_ptr + rows[:, None] * dimensions + dims[None, :],
            mask=(rows[:, None] < points) & (dims[None, :] < dimensions),
            other=0.0,
        )
        distance = norms[None, :] - 2.0 * tl.dot(x, tl.trans(centre), input_precision="ieee")
        nearest = tl.argmin(distance, axis=1)
        tl.store(nearest_ptr + rows, nearest, mask=rows < points)
        chosen = (nearest[None, :] == clusters[:, None]) & (rows[None, :] < points)
        chosen = chosen.to(tl.float32)
        sums = tl.dot(chosen, x, sums, input_precision="ieee")
        counts += tl.sum(chosen, axis=1)
    tl.store(sums_ptr + pid * centres * dimensions + centre_place, sums, mask=centre_mask)
    tl.store(counts_ptr + pid * centres + clusters, counts, mask=clusters < centres)


@tritium.jit
def means_kernel(
    new_ptr, centre_ptr, sums_ptr, counts_ptr, parts, centres, dimensions, D: tl.constexpr
):
    """The mean of a centre's points; a centre without points stays."""
    centre = tl.program_id(0)
    dims = tl.arange(0, D)
    mask = dims < dimensions
    total = tl.zeros((D,), tl.float32)
    count = 0.0
    for part in range(parts):
        place = part * centres + centre
        total += tl.load(sums_ptr + place * dimensions + dims, mask=mask, other=0.0)
        count += tl.load(counts_ptr + place)
    old = tl.load(centre_ptr + centre * dimensions + dims, mask=mask)
    new = tl.where(count > 0, total / tl.maximum(count, 1.0), old)
    tl.store(new_ptr + centre * dimensions + dims, new, mask=mask)


def step(x: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of each point's nearest centre, and the new centres; contiguous float32 arrays."""
    (points, dimensions), centres = x.shape, len(centre)
    parts = tritium.cdiv(points, 4 * 128)
    D = max(16, tritium.next_power_of_2(dimensions))
    nearest, new = np.empty(points, np.int32), np.empty_like(centre)
    sums = np.empty((parts, *centre.shape), np.float32)
    counts = np.empty((parts, centres), np.float32)
    extents = {"D": D, "K": max(16, tritium.next_power_of_2(centres)), "BLOCK": 128, "BLOCKS": 4}
    outputs = (nearest, sums, counts)
    assign_kernel[(parts,)](x, centre, *outputs, points, centres, dimensions, **extents)
    means_kernel[(centres,)](new, centre, sums, counts, parts, centres, dimensions, D=D)
    return nearest, new


def main() -> None:
    given = [int(v) for v in sys.argv[1:4]] if len(sys.argv) > 3 else [5000, 17, 30]
    points, dimensions, centres = given
    random = np.random.default_rng(0)
    x = random.standard_normal((points, dimensions), dtype=np.float32)
    centre = random.standard_normal((centres, dimensions), dtype=np.float32) * 2
    nearest, new = step(x, centre)
    wide = x.astype(np.float64)
    distance = ((wide[:, None, :] - centre[None, :, :]) ** 2).sum(axis=2)
    chosen = np.take_along_axis(distance, nearest[:, None], axis=1)[:, 0]
    # Which of two centres is nearer isn't decided where they differ by a rounding.
    assert np.all(chosen <= distance.min(axis=1) + 1e-4 * dimensions)
    for k in range(centres):
        mine = wide[nearest == k]
        want = mine.mean(axis=0) if len(mine) else centre[k]
        assert np.allclose(new[k], want, rtol=1e-5, atol=1e-5)
    print("ok", *given, "centres without points", centres - len(np.unique(nearest)))


if __name__ == "__main__":
    main()
