"""Root mean square normalisation and its gradients. Arguments: rows, columns (default 1151 769)."""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def forward_kernel(x_ptr, weight_ptr, out_ptr, rstd_ptr, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    x = tl.load(x_ptr + row * columns + offs, mask=mask, other=0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + offs, mask=mask)
    tl.store(out_ptr + row * columns + offs, x * rstd * weight, mask=mask)
    tl.store(rstd_ptr + row, rstd)


@tritium.jit
def backward_kernel(
    dx_ptr,
    dweight_ptr,
    dout_ptr,
    x_ptr,
    weight_ptr,
    rstd_ptr,
    rows,
    columns,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """``ROWS`` rows: their dx, and their share of the weight's gradient."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    weight = tl.load(weight_ptr + offs, mask=mask, other=0.0)
    dweight = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid * ROWS, min(pid * ROWS + ROWS, rows)):
        x = tl.load(x_ptr + row * columns + offs, mask=mask, other=0.0)
        dout = tl.load(dout_ptr + row * columns + offs, mask=mask, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        normal = x * rstd
        scaled = dout * weight
        along = tl.sum(scaled * normal, axis=0) / columns
        tl.store(dx_ptr + row * columns + offs, (scaled - normal * along) * rstd, mask=mask)
        dweight += dout * normal
    tl.store(dweight_ptr + pid * columns + offs, dweight, mask=mask)


def forward(x, weight, epsilon=1e-6):
    """The result, and 1 / root of the mean square of each row; float32."""
    rows, columns = x.shape
    out, rstd = np.empty_like(x), np.empty(rows, x.dtype)
    block = tritium.next_power_of_2(columns)
    forward_kernel[(rows,)](x, weight, out, rstd, columns, epsilon, BLOCK=block)
    return out, rstd


def backward(dout, x, weight, rstd):
    """The gradients of x and weight."""
    rows, columns = x.shape
    programs = min(rows, 32)
    dx, shares = np.empty_like(x), np.empty((programs, columns), x.dtype)
    backward_kernel[(programs,)](
        *(dx, shares, dout, x, weight, rstd),
        *(rows, columns),
        ROWS=tritium.cdiv(rows, programs),
        BLOCK=tritium.next_power_of_2(columns),
    )
    return dx, shares.sum(axis=0)


def exact(dout, x, weight, epsilon=1e-6):
    dout, x, weight = (a.astype(np.float64) for a in (dout, x, weight))
    rstd = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + epsilon)
    normal, scaled = x * rstd, dout * weight
    dx = (scaled - normal * (scaled * normal).mean(axis=1, keepdims=True)) * rstd
    return normal * weight, dx, (dout * normal).sum(axis=0)


def main() -> None:
    rows, columns = (int(v) for v in sys.argv[1:3]) if len(sys.argv) > 2 else (1151, 769)
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, columns), dtype=np.float32) * 3 + 1
    dout = random.standard_normal((rows, columns), dtype=np.float32)
    weight = random.standard_normal(columns, dtype=np.float32)
    out, rstd = forward(x, weight)
    got = out, *backward(dout, x, weight, rstd)
    want = exact(dout, x, weight)
    error = max(np.abs(g - w).max() / max(1, np.abs(w).max()) for g, w in zip(got, want))
    assert error < 1e-5, error
    print("ok", rows, columns, "largest error", f"{error:.1e}")


if __name__ == "__main__":
    main()
