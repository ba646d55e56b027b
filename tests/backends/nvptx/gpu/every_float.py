"""The error of functions of fp32 on every float, and of quotients of random ones.

    python every_float.py [--device cuda] [--step 1] [--chunk 16777216] FUNCTION ...

For each it prints its name, the largest error in ulp and where. torch's functions of fp64 on the
same device are taken for exact. ``--step`` leaves floats out, ``--chunk`` are computed at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import torch

import tritium
import tritium.language as tl

QUOTIENTS = 1 << 28
BLOCK = 1024


@tritium.jit
def apply_kernel(x_ptr, y_ptr, out_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if NAME == "exp":
        r = tl.exp(x)
    elif NAME == "exp2":
        r = tl.exp2(x)
    elif NAME == "log":
        r = tl.log(x)
    elif NAME == "log2":
        r = tl.log2(x)
    elif NAME == "sin":
        r = tl.sin(x)
    elif NAME == "cos":
        r = tl.cos(x)
    elif NAME == "erf":
        r = tl.erf(x)
    elif NAME == "tanh":
        r = tl.tanh(x)
    elif NAME == "sqrt":
        r = tl.sqrt(x)
    elif NAME == "sqrt_rn":
        r = tl.sqrt_rn(x)
    elif NAME == "rsqrt":
        r = tl.rsqrt(x)
    elif NAME == "div":
        r = x / tl.load(y_ptr + offs)
    else:
        r = tl.div_rn(x, tl.load(y_ptr + offs))
    tl.store(out_ptr + offs, r)


UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "exp": torch.exp,
    "exp2": torch.exp2,
    "log": torch.log,
    "log2": torch.log2,
    "sin": torch.sin,
    "cos": torch.cos,
    "erf": torch.erf,
    "tanh": torch.tanh,
    "sqrt": torch.sqrt,
    "sqrt_rn": torch.sqrt,
    "rsqrt": torch.rsqrt,
}
BINARY = {"div": torch.div, "div_rn": torch.div}


def operands(
    name: str, device: str, step: int, chunk: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    if name in UNARY:
        for start in range(-(1 << 31), 1 << 31, chunk * step):
            bits = torch.arange(start, start + chunk * step, step, device=device)
            x = bits.to(torch.int32).view(torch.float32)
            yield x, x
        return
    generator = torch.Generator(device).manual_seed(1)
    for _ in range(max(1, QUOTIENTS // chunk // step)):
        bits = torch.randint(
            -(1 << 31), 1 << 31, (2, chunk), generator=generator, device=device, dtype=torch.int64
        ).to(torch.int32)
        # Half of the divisors are near their dividends, so that quotients are.
        close = (bits[0] & ~0x0FFFFFFF) | (bits[1] & 0x0FFFFFFF)
        bits[1] = torch.where(bits[1] & 1 == 0, close, bits[1])
        x, y = bits.view(torch.float32)
        yield x, y


def errors(have: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """In ulp of the exact value; infinite where NaN, infinities or the sign of zero are wrong."""
    top = 2.0**128
    value = exact.clamp(-top, top)
    got = have.double().clamp(-top, top)
    _, exponent = torch.frexp(value.abs().clamp(2.0**-126, top * (1 - 2.0**-24)))
    unit = torch.ldexp(torch.ones_like(value), exponent - 24)
    error = (got - value).abs() / unit
    # Rounded rightly to infinity.
    same = have.double() == exact.float().double()
    error = torch.where(same, error.clamp(max=0.5), error)
    wrong = (exact == 0) & ((have != 0) | (torch.signbit(have) != torch.signbit(exact)))
    wrong |= torch.isnan(have) != torch.isnan(exact)
    error = torch.where(torch.isnan(exact), torch.zeros_like(error), error)
    return torch.where(wrong, torch.full_like(error, torch.inf), error)


def largest(name: str, device: str, step: int, chunk: int) -> tuple[float, float, float]:
    """The largest error, and the operands it is at."""
    worst = (-1.0, 0.0, 0.0)
    for x, y in operands(name, device, step, chunk):
        out = torch.empty_like(x)
        apply_kernel[(len(x) // BLOCK,)](x, y, out, NAME=name, BLOCK=BLOCK)
        if name in UNARY:
            exact = UNARY[name](x.double())
        else:
            exact = BINARY[name](x.double(), y.double())
        found = errors(out, exact)
        place = int(found.argmax())
        if float(found[place]) > worst[0]:
            worst = float(found[place]), float(x[place]), float(y[place])
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--chunk", type=int, default=1 << 24)
    parser.add_argument("functions", nargs="*", default=[*UNARY, *BINARY])
    options = parser.parse_args()
    for name in options.functions:
        worst, x, y = largest(name, options.device, options.step, options.chunk)
        print(name, worst, repr(x), repr(y), flush=True)


if __name__ == "__main__":
    main()
