"""Tuning on a GPU that is a fake one: launches are waited for, and what doesn't fit is left out."""

from __future__ import annotations

import numpy as np
import pytest
from tests.runtime.cuda.fake_driver import Fake

import tritium
import tritium.language as tl
from tritium.runtime.descriptors import TensorDescriptor
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


def double_blocks(arrays, n: tl.constexpr, BLOCK: tl.constexpr):
    x, out = arrays
    out.store([0], 2 * x.load([0]))


def test_arrays_in_descriptors_and_tuples_are_waited_for_too(fake: Fake) -> None:
    configs = [Config({"BLOCK": 32}), Config({"BLOCK": 64})]
    tuned = tritium.autotune(configs, key=["n"], warmup=0, rep=0)(tritium.jit(double_blocks))
    x, out = torch.rand(32), torch.zeros(32)
    tuned[(1,)](tuple(TensorDescriptor.from_tensor(each, [32]) for each in (x, out)), n=1)
    assert torch.equal(out, 2 * x)
    assert fake.driver.log.count("cuCtxSynchronize") == 2 * 3


def test_each_kind_of_device_has_its_own_best(fake: Fake) -> None:
    configs = [Config({"BLOCK": 32}), Config({"BLOCK": 64})]
    best = iter([1, 2, 2, 1])
    tuned = tritium.autotune(configs, key=["n"], do_bench=lambda call, quantiles: next(best))(
        tritium.jit(double)
    )
    for _ in range(2):
        for make, fastest in ((np.asarray, configs[0]), (torch.from_numpy, configs[1])):
            x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
            tuned[(2,)](make(x), make(out), 64)
            assert (out == 2).all()
            assert tuned.best_config is fastest
    assert [key[-1][:3] for key in tuned.cache] == ["cpu", "sm_"]
