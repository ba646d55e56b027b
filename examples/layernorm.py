"""Layer normalisation of each row. Arguments: rows and columns (default 1151 769)."""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def layernorm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, stride, columns, epsilon, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < columns
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    weight = tl.load(weight_ptr + offs, mask=mask)
    bias = tl.load(bias_ptr + offs, mask=mask)
    result = centred / tl.sqrt(variance + epsilon) * weight + bias
    tl.store(out_ptr + row * stride + offs, result, mask=mask)


def layernorm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, epsilon: float) -> np.ndarray:
    """Each row of ``x`` to mean 0 and variance 1, times ``weight``, plus ``bias``; float32."""
    rows, columns = x.shape
    out = np.empty(x.shape, np.float32)
    block = tritium.next_power_of_2(columns)
    layernorm_kernel[(rows,)](x, weight, bias, out, columns, columns, epsilon, BLOCK_SIZE=block)
    return out


def main() -> None:
    rows, columns = (int(v) for v in sys.argv[1:3]) if len(sys.argv) > 2 else (1151, 769)
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, columns), dtype=np.float32) * 3 + 1
    weight, bias = random.standard_normal((2, columns), dtype=np.float32)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(
        wide.var(axis=1, keepdims=True) + 1e-5
    )
    error = np.abs(layernorm(x, weight, bias, 1e-5) - (exact * weight + bias)).max()
    assert error < 1e-5, error
    print("ok", rows, columns, "largest error", f"{error:.1e}")


if __name__ == "__main__":
    main()
