"""Two-dimensional convolution as a matrix product whose left operand is never made.

Arrays are channels last: images [batch, height, width, channels], weights [R, S, channels,
filters]. Arguments: batch, height, width, channels, filters and padding (default 2 28 30 32 48 1).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def conv2d_kernel(
    x_ptr,
    weight_ptr,
    out_ptr,
    places,
    height,
    width,
    out_height,
    out_width,
    channels,
    filters,
    stride,
    padding,
    R: tl.constexpr,
    S: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """``BLOCK_M`` of the places of all results, ``BLOCK_N`` filters."""
    place = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    filter = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    column = place % out_width * stride - padding
    row = place // out_width % out_height * stride - padding
    image = place // (out_width * out_height)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for r in range(R):
        for s in range(S):
            y = row + r
            x = column + s
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & (place < places)
            source = ((image * height + y) * width + x) * channels
            for start in range(0, channels, BLOCK_K):
                channel = start + tl.arange(0, BLOCK_K)
                a = tl.load(
                    x_ptr + source[:, None] + channel[None, :],
                    mask=inside[:, None] & (channel[None, :] < channels),
                    other=0.0,
                )
                b = tl.load(
                    weight_ptr
                    + ((r * S + s) * channels + channel[:, None]) * filters
                    + filter[None, :],
                    mask=(channel[:, None] < channels) & (filter[None, :] < filters),
                    other=0.0,
                )
                acc = tl.dot(a, b, acc)
    tl.store(
        out_ptr + place[:, None] * filters + filter[None, :],
        acc,
        mask=(place[:, None] < places) & (filter[None, :] < filters),
    )


def conv2d(x: np.ndarray, weight: np.ndarray, stride: int = 1, padding: int = 0) -> np.ndarray:
    """The result [batch, out height, out width, filters]; all contiguous and float32."""
    batch, height, width, channels = x.shape
    R, S, _, filters = weight.shape
    out_height = (height + 2 * padding - R) // stride + 1
    out_width = (width + 2 * padding - S) // stride + 1
    out = np.empty((batch, out_height, out_width, filters), np.float32)
    places = batch * out_height * out_width
    grid = (tritium.cdiv(places, 64), tritium.cdiv(filters, 64))
    conv2d_kernel[grid](
        *(x, weight, out),
        *(places, height, width, out_height, out_width, channels, filters, stride, padding),
        *(R, S),
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
    )
    return out


def exact(x, weight, stride, padding):
    pad = (0, 0), (padding, padding), (padding, padding), (0, 0)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x.astype(np.float64), pad), weight.shape[:2], axis=(1, 2)
    )[:, ::stride, ::stride]
    return np.einsum("bhwcrs,rscf->bhwf", windows, weight, optimize=True)


def main() -> None:
    given = [int(v) for v in sys.argv[1:7]] if len(sys.argv) > 6 else [2, 28, 30, 32, 48, 1]
    batch, height, width, channels, filters, padding = given
    random = np.random.default_rng(0)
    x = random.standard_normal((batch, height, width, channels), dtype=np.float32)
    weight = random.standard_normal((3, 3, channels, filters), dtype=np.float32)
    error = 0.0
    for stride in (1, 2):
        want = exact(x, weight, stride, padding)
        got = conv2d(x, weight, stride, padding)
        error = max(error, np.linalg.norm(got - want) / np.linalg.norm(want))
    assert error < 1e-6, error
    print("ok", *given, "relative error", f"{error:.1e}")


if __name__ == "__main__":
    main()
