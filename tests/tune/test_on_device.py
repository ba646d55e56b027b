"""Tuning with arrays on a GPU: every timed launch has ended before its time is taken."""

from __future__ import annotations

import pytest

import tritium
import tritium.language as tl
from tritium.tune import Config

pytestmark = pytest.mark.gpu


@tritium.jit
def count(out_ptr, n, rounds, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.zeros((BLOCK,), tl.int32)
    for _ in range(rounds):
        x = x * 3 + 1
    # x is (3**rounds - 1) / 2, which is never -1; the compiler doesn't know.
    one = tl.where(x == -1, 2, 1)
    tl.store(out_ptr + offs, tl.load(out_ptr + offs, mask=offs < n) + one, mask=offs < n)


def test_a_long_kernel_takes_long() -> None:
    torch = pytest.importorskip("torch")
    configs = [Config({"BLOCK": block}) for block in (128, 256)]
    tuned = tritium.autotune(configs, key=["rounds"], restore_value=["out_ptr"])(count)
    medians = []
    for rounds in (1, 2_000_000):
        out = torch.zeros(1000, dtype=torch.int32, device="cuda")
        tuned[lambda meta: (tritium.cdiv(1000, meta["BLOCK"]),)](out, 1000, rounds)
        assert out.tolist() == [1] * 1000
        medians.append(min(found[0] for found in tuned.configs_timings.values()))
    # Two million dependent steps take at least a millisecond; a launch alone takes microseconds.
    assert medians[1] > 1 > medians[0]
