"""Cross-entropy of logits and targets, and the logits' gradient.

The forward pass goes over the logits once. Arguments: rows and classes (default 512 5003).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def forward_kernel(loss_ptr, lse_ptr, x_ptr, target_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, classes, BLOCK):
        mask = start + offs < classes
        x = tl.load(x_ptr + row * classes + start + offs, mask=mask, other=-float("inf"))
        bound = tl.maximum(largest, x)
        shift = tl.where(bound == -float("inf"), 0.0, bound)
        total = total * tl.exp(largest - shift) + tl.exp(x - shift)
        largest = bound
    highest = tl.max(largest, axis=0)
    lse = highest + tl.log(tl.sum(total * tl.exp(largest - highest), axis=0))
    target = tl.load(target_ptr + row)
    tl.store(loss_ptr + row, lse - tl.load(x_ptr + row * classes + target))
    tl.store(lse_ptr + row, lse)


@tritium.jit
def backward_kernel(dx_ptr, x_ptr, lse_ptr, target_ptr, dloss, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < classes
    x = tl.load(x_ptr + row * classes + offs, mask=mask)
    share = tl.exp(x - tl.load(lse_ptr + row))
    share = tl.where(offs == tl.load(target_ptr + row), share - 1.0, share)
    tl.store(dx_ptr + row * classes + offs, share * dloss, mask=mask)


def forward(x, targets):
    """Each row's loss, and the logarithm of its sum of exponentials; float32."""
    rows, classes = x.shape
    loss, lse = np.empty((2, rows), np.float32)
    forward_kernel[(rows,)](loss, lse, x, targets, classes, BLOCK=1024)
    return loss, lse


def backward(x, lse, targets):
    """The gradient of the mean of all losses."""
    rows, classes = x.shape
    dx = np.empty_like(x)
    grid = (rows, tritium.cdiv(classes, 1024))
    backward_kernel[grid](dx, x, lse, targets, 1.0 / rows, classes, BLOCK=1024)
    return dx


def main() -> None:
    rows, classes = (int(v) for v in sys.argv[1:3]) if len(sys.argv) > 2 else (512, 5003)
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, classes), dtype=np.float32) * 4
    targets = random.integers(0, classes, rows)
    loss, lse = forward(x, targets)
    dx = backward(x, lse, targets)
    wide = x.astype(np.float64)
    exact_lse = np.log(np.exp(wide).sum(axis=1))
    exact = np.exp(wide - exact_lse[:, None])
    exact[np.arange(rows), targets] -= 1
    chosen = wide[np.arange(rows), targets]
    error = max(np.abs(loss - (exact_lse - chosen)).max(), np.abs(dx * rows - exact).max())
    assert error < 2e-5, error
    print("ok", rows, classes, "largest error", f"{error:.1e}")


if __name__ == "__main__":
    main()
