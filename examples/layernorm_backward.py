"""Layer normalisation and its gradients. Arguments: rows and columns (default 1151 769)."""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def forward_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, columns, epsilon, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    x = tl.load(x_ptr + row * columns + offs, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + offs, mask=mask)
    bias = tl.load(bias_ptr + offs, mask=mask)
    tl.store(out_ptr + row * columns + offs, centred * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@tritium.jit
def backward_kernel(
    dx_ptr,
    dweight_ptr,
    dbias_ptr,
    dout_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    rows,
    columns,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """``ROWS`` rows: their dx, and their share of the sums over all rows."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    weight = tl.load(weight_ptr + offs, mask=mask, other=0.0)
    dweight = tl.zeros((BLOCK,), tl.float32)
    dbias = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid * ROWS, min(pid * ROWS + ROWS, rows)):
        x = tl.load(x_ptr + row * columns + offs, mask=mask, other=0.0)
        dout = tl.load(dout_ptr + row * columns + offs, mask=mask, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        scaled = dout * weight
        along = tl.sum(scaled * normal, axis=0) / columns
        mean = tl.sum(scaled, axis=0) / columns
        tl.store(dx_ptr + row * columns + offs, (scaled - normal * along - mean) * rstd, mask=mask)
        dweight += dout * normal
        dbias += dout
    tl.store(dweight_ptr + pid * columns + offs, dweight, mask=mask)
    tl.store(dbias_ptr + pid * columns + offs, dbias, mask=mask)


@tritium.jit
def column_sums_kernel(out_ptr, x_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row[:, None] < rows) & (offs[None, :] < columns)
        x = tl.load(x_ptr + row[:, None] * columns + offs[None, :], mask=mask, other=0.0)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + offs, total, mask=offs < columns)


def forward(x, weight, bias, epsilon=1e-5):
    """The result, and each row's mean and 1 / standard deviation; all float32."""
    rows, columns = x.shape
    out, mean, rstd = np.empty_like(x), np.empty(rows, x.dtype), np.empty(rows, x.dtype)
    block = tritium.next_power_of_2(columns)
    forward_kernel[(rows,)](x, weight, bias, out, mean, rstd, columns, epsilon, BLOCK=block)
    return out, mean, rstd


def backward(dout, x, weight, mean, rstd):
    """The gradients of x, weight and bias."""
    rows, columns = x.shape
    programs = min(rows, 32)
    dx, shares = np.empty_like(x), np.empty((2, programs, columns), x.dtype)
    sums = np.empty((2, columns), x.dtype)
    backward_kernel[(programs,)](
        dx,
        *shares,
        *(dout, x, weight, mean, rstd),
        *(rows, columns),
        ROWS=tritium.cdiv(rows, programs),
        BLOCK=tritium.next_power_of_2(columns),
    )
    for total, share in zip(sums, shares):
        grid = (tritium.cdiv(columns, 256),)
        column_sums_kernel[grid](total, share, programs, columns, ROWS=8, BLOCK=256)
    return dx, *sums


def exact(dout, x, weight, bias, epsilon=1e-5):
    dout, x, weight, bias = (a.astype(np.float64) for a in (dout, x, weight, bias))
    rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + epsilon)
    normal = (x - x.mean(axis=1, keepdims=True)) * rstd
    scaled = dout * weight
    along = (scaled * normal).mean(axis=1, keepdims=True)
    dx = (scaled - normal * along - scaled.mean(axis=1, keepdims=True)) * rstd
    return normal * weight + bias, dx, (dout * normal).sum(axis=0), dout.sum(axis=0)


def main() -> None:
    rows, columns = (int(v) for v in sys.argv[1:3]) if len(sys.argv) > 2 else (1151, 769)
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, columns), dtype=np.float32) * 3 + 1
    dout = random.standard_normal((rows, columns), dtype=np.float32)
    weight, bias = random.standard_normal((2, columns), dtype=np.float32)
    out, mean, rstd = forward(x, weight, bias)
    got = out, *backward(dout, x, weight, mean, rstd)
    want = exact(dout, x, weight, bias)
    error = max(np.abs(g - w).max() / max(1, np.abs(w).max()) for g, w in zip(got, want))
    assert error < 1e-5, error
    print("ok", rows, columns, "largest error", f"{error:.1e}")


if __name__ == "__main__":
    main()
