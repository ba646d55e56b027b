"""Tuning on a GPU that is a fake one: launches are waited for, and what doesn't fit is left out."""

from __future__ import annotations

import pytest
from tests.runtime.cuda.fake_driver import Fake

import tritium
import tritium.language as tl
from tritium.tune import Config

torch = pytest.importorskip("torch", reason="torch's tensors stand for those of a GPU")


def double(x, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, 2 * tl.load(x + offs, offs < n), offs < n)


def test_every_sample_waits_for_its_launches(fake: Fake) -> None:
    fake.driver.most_threads = 256
    configs = [Config({"BLOCK": 32}, num_warps=16), Config({"BLOCK": 32}), Config({"BLOCK": 64})]
    tuned = tritium.autotune(configs, key=["n"], warmup=0, rep=0)(tritium.jit(double))
    x, out = torch.rand(100), torch.zeros(100)
    tuned[lambda meta: (tritium.cdiv(100, meta["BLOCK"]),)](x, out, 100)
    assert torch.equal(out, 2 * x)
    assert tuned.configs_timings[configs[0]] == [float("inf")] * 3
    assert tuned.best_config in configs[1:]
    # For each of the two: after the first calls, before the sample and after it.
    assert fake.driver.log.count("cuCtxSynchronize") == 2 * 3
    assert len(fake.driver.launches) > 2 * (1 + 5 + 1)
