"""Rotary position embedding: pairs of a head's dimensions are turned by angles of the position.

Arguments: tokens, heads and dimensions of a head (default 1024 8 64).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def rope_kernel(out_ptr, x_ptr, cos_ptr, sin_ptr, heads, HALF: tl.constexpr, BLOCK: tl.constexpr):
    """All heads of a token; ``HALF`` is half of a head's dimensions."""
    token = tl.program_id(0)
    head = tl.arange(0, BLOCK)[:, None]
    pair = tl.arange(0, HALF)[None, :]
    mask = head < heads
    cos = tl.load(cos_ptr + token * HALF + pair)
    sin = tl.load(sin_ptr + token * HALF + pair)
    place = (token * heads + head) * 2 * HALF + pair
    first = tl.load(x_ptr + place, mask=mask)
    second = tl.load(x_ptr + place + HALF, mask=mask)
    tl.store(out_ptr + place, first * cos - second * sin, mask=mask)
    tl.store(out_ptr + place + HALF, second * cos + first * sin, mask=mask)


def angles(tokens: int, half: int) -> np.ndarray:
    """The angle of each token and pair; float64."""
    return np.arange(tokens)[:, None] * 10000.0 ** (-np.arange(half) / half)


def rope(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """``x`` [tokens, heads, dimensions] turned by angles [tokens, dimensions / 2]; float32."""
    tokens, heads, dimensions = x.shape
    out = np.empty_like(x)
    block = tritium.next_power_of_2(heads)
    rope_kernel[(tokens,)](out, x, cos, sin, heads, HALF=dimensions // 2, BLOCK=block)
    return out


def main() -> None:
    given = [int(v) for v in sys.argv[1:4]] if len(sys.argv) > 3 else [1024, 8, 64]
    tokens, heads, dimensions = given
    x = np.random.default_rng(0).standard_normal((tokens, heads, dimensions), dtype=np.float32)
    angle = angles(tokens, dimensions // 2)
    out = rope(x, np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32))
    first, second = x[..., : dimensions // 2], x[..., dimensions // 2 :]
    turned = (first + 1j * second) * np.exp(1j * angle)[:, None, :]
    error = np.abs(out - np.concatenate([turned.real, turned.imag], axis=-1)).max()
    assert error < 1e-6, error
    print("ok", *given, "largest error", f"{error:.1e}")


if __name__ == "__main__":
    main()
