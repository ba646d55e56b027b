from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.runtime.errors import AutotunerError
from tritium.tune import Autotuner, Config


def fill(out_ptr, n, value, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + offs, value + 100)
    else:
        tl.store(out_ptr + offs, value, mask=offs < n)


KERNEL = tritium.jit(fill)


def filled(kernel: Any, n: int = 10, **keywords: Any) -> list[int]:
    out = np.zeros(n, np.int32)
    kernel[lambda meta: (tritium.cdiv(n, meta["BLOCK"]),)](out, n, 7, **keywords)
    return out.tolist()


# ---- Config --------------------------------------------------------------------------------------


def test_a_configuration() -> None:
    config = Config({"BLOCK": 64}, num_warps=8, maxnreg=None)
    assert config.all_kwargs() == {"BLOCK": 64, "num_warps": 8, "num_stages": 3, "num_ctas": 1}
    assert str(config) == "BLOCK: 64, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: None"
    assert "ir_override: x" in str(Config({}, ir_override="x"))
    assert config == Config({"BLOCK": 64}, 8)
    assert hash(config) == hash(Config({"BLOCK": 64}, 8))
    assert config != Config({"BLOCK": 64})
    assert config != Config({"BLOCK": 64}, 8, pre_hook=print)
    again = pickle.loads(pickle.dumps(config))
    assert again == config
    old = Config.__new__(Config)
    old.__setstate__({"kwargs": {"BLOCK": 1}, "num_warps": 2})
    assert (old.num_warps, old.num_stages, old.ir_override) == (2, 3, None)


# ---- heuristics ----------------------------------------------------------------------------------


def test_heuristics_see_arguments_and_earlier_results() -> None:
    seen: list[dict[str, Any]] = []

    def block(args: dict[str, Any]) -> int:
        seen.append(args)
        return tritium.next_power_of_2(args["n"])

    kernel = tritium.heuristics({"BLOCK": block, "EVEN": lambda args: args["n"] == args["BLOCK"]})(
        KERNEL
    )
    assert filled(kernel, 8) == [107] * 8
    assert filled(kernel, 10, num_warps=8, BLOCK=1) == [7] * 10
    assert seen[1]["n"] == 10
    assert seen[1]["num_warps"] == 8
    assert seen[1]["BLOCK"] == 1
    assert {"grid", "warmup"} <= seen[1].keys()
    assert filled(kernel.interpret, 8) == [107] * 8
    with tritium.interpret():
        assert filled(kernel, 8) == [107] * 8


def test_heuristics_and_autotune_either_way_round() -> None:
    even = tritium.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    tuned = tritium.autotune([Config({"BLOCK": 4})], key=["n"])
    assert filled(tuned(even(KERNEL)), 8) == [107] * 8
    block = tritium.heuristics({"BLOCK": lambda args: 4})
    outer = tritium.autotune([Config({"EVEN": True})], key=["n"])
    assert filled(block(outer(KERNEL)), 8) == [107] * 8


# ---- autotune ------------------------------------------------------------------------------------


def test_one_configuration() -> None:
    hooked: list[dict[str, Any]] = []
    config = Config({"BLOCK": 4}, num_warps=8, pre_hook=hooked.append)
    kernel = tritium.autotune([config], key=["n"])(KERNEL)
    assert isinstance(kernel, Autotuner)
    assert kernel.best_config is None
    assert filled(kernel) == [7] * 10
    assert kernel.best_config is config
    assert kernel.nargs is None
    assert hooked[0]["n"] == 10
    assert hooked[0]["BLOCK"] == 4
    assert hooked[0]["num_warps"] == 8
    assert filled(kernel.interpret) == [7] * 10
    compiled = kernel.warmup(np.zeros(10, np.int32), 10, 7, grid=(1,))
    assert [each.metadata.num_warps for each in compiled] == [8]
    assert kernel.base_fn is KERNEL


def test_no_configuration_is_the_default_one() -> None:
    kernel = tritium.autotune([], key=[])(KERNEL)
    assert kernel.configs == [Config({})]
    assert filled(kernel, BLOCK=16) == [7] * 10


CONFIGS = [Config({"BLOCK": block}) for block in (4, 8, 16)]


def test_several_configurations_are_refused_except_in_the_interpreter() -> None:
    kernel = tritium.autotune(CONFIGS, key=["n"])(KERNEL)
    with pytest.raises(TritiumError, match="3 configurations") as caught:
        filled(kernel)
    assert caught.value.code == "E0802"
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    with tritium.interpret():
        assert filled(kernel) == [7] * 10
    assert filled(kernel.interpret) == [7] * 10
    assert kernel.best_config is CONFIGS[0]


def test_pruning() -> None:
    seen: list[Any] = []

    def prune(configs: list[Config], nargs: dict[str, Any], **keywords: Any) -> list[Config]:
        seen.append((nargs["n"], sorted(keywords)))
        return [each for each in configs if each.kwargs["BLOCK"] >= nargs["n"]]

    kernel = tritium.autotune(CONFIGS, ["n"], prune_configs_by={"early_config_prune": prune})(
        KERNEL
    )
    assert filled(kernel, 12) == [7] * 12
    assert kernel.best_config is CONFIGS[2]
    assert seen == [(12, ["grid", "warmup"])]
    with pytest.raises(AutotunerError):
        filled(kernel, 20)

    def model(n: int, BLOCK: int, **rest: Any) -> int:
        return abs(BLOCK - n)

    for top, best in ((1, 8), (0.5, 8)):
        by = {"perf_model": model, "top_k": top}
        kernel = tritium.autotune(CONFIGS, ["n"], prune_configs_by=by)(KERNEL)
        assert filled(kernel, 9) == [7] * 9
        assert kernel.best_config.kwargs == {"BLOCK": best}
    by = {"perf_model": model, "top_k": "one"}
    with pytest.raises(TypeError):
        filled(tritium.autotune(CONFIGS, ["n"], prune_configs_by=by)(KERNEL))


@pytest.mark.parametrize("what", ["key", "reset_to_zero", "restore_value"])
def test_unknown_names(what: str) -> None:
    given = {"key": [], what: ["m"]}
    with pytest.raises(ValueError, match="m is not a parameter"):
        tritium.autotune(CONFIGS, **given)(KERNEL)


def test_a_tuned_argument_that_is_given_too() -> None:
    kernel = tritium.autotune(CONFIGS[:1], key=["n"])(KERNEL)
    for given in ({"BLOCK": 4}, {"num_warps": 4}):
        with pytest.raises(TritiumError) as caught:
            filled(kernel, **given)
        assert caught.value.code == "E0505"


def test_the_constructor_takes_triton_s_order() -> None:
    names = list(inspect.signature(Autotuner).parameters)
    assert names == (
        ["fn", "arg_names", "configs", "key", "reset_to_zero", "restore_value", "pre_hook"]
        + ["post_hook", "prune_configs_by", "warmup", "rep", "use_cuda_graph", "do_bench"]
        + ["cache_results"]
    )
    assert "cache_results" in inspect.signature(tritium.autotune).parameters
