from __future__ import annotations

import contextlib
import copy
import inspect
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.runtime.descriptors import TensorDescriptor
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


def timed_as(times: dict[int, Any]) -> Any:
    """A benchmarker that calls once, and says of each ``BLOCK`` in turn what it took."""
    left = iter(times.values())

    def do_bench(call: Any, quantiles: Any) -> Any:
        assert quantiles == (0.5, 0.2, 0.8)
        call()
        return next(left)

    return do_bench


def test_the_fastest_is_taken_for_each_key() -> None:
    bench = timed_as({4: [3, 0, 9], 8: [1, 1, 1], 16: [1, 2, 2], 40: [1, 0, 0], 80: [2], 160: [3]})
    kernel = tritium.autotune(CONFIGS, key=["n"], do_bench=bench)(KERNEL)
    assert filled(kernel) == [7] * 10
    assert kernel.best_config is CONFIGS[1]
    assert kernel.configs_timings[CONFIGS[0]] == [3, 0, 9]
    assert kernel.bench_time > 0
    assert filled(kernel, 20) == [7] * 20
    assert kernel.best_config is CONFIGS[0]
    assert filled(kernel) == [7] * 10
    assert kernel.best_config is CONFIGS[1]
    assert kernel.cache == {(10, "int32", "cpu"): CONFIGS[1], (20, "int32", "cpu"): CONFIGS[0]}
    assert kernel.nargs is None


def test_the_key_holds_element_types_and_keywords() -> None:
    kernel = tritium.autotune(CONFIGS, ["n", "value"], do_bench=timed_as({4: 1, 8: 2, 16: 3}))(
        KERNEL
    )
    out = np.zeros(9, np.float32)
    kernel[(3,)](out, value=2.5, n=9)
    assert out.tolist() == [2.5] * 9
    assert list(kernel.cache) == [(9, 2.5, "fp32", "cpu")]
    kernel[(3,)](out, value=2.5, n=9)
    assert len(kernel.cache) == 1


@tritium.jit
def copy_block(pair, desc, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, 8), desc.load([0]) + tl.load(pair[0]))


def test_the_key_holds_the_element_types_in_tuples_and_descriptors() -> None:
    kernel = tritium.autotune(CONFIGS[:2], [], do_bench=no_time)(copy_block)
    out = np.zeros(8, np.float32)
    for pair, base in (("int32", "float32"), ("int32", "float64"), ("int8", "float64")):
        desc = TensorDescriptor.from_tensor(np.ones(8, base), [8])
        for _ in range(2):
            kernel[(1,)]((np.ones(1, pair), 3), desc, out_ptr=out)
    assert out.tolist() == [2] * 8
    assert list(kernel.cache) == [
        ("int32", "fp32", "fp32", "cpu"),
        ("int32", "fp64", "fp32", "cpu"),
        ("int8", "fp64", "fp32", "cpu"),
    ]


def test_a_key_that_has_no_hash() -> None:
    kernel = tritium.autotune(CONFIGS, key=["out_ptr"])(KERNEL)
    with pytest.raises(TritiumError) as caught:
        filled(kernel)
    assert caught.value.code == "E0515"
    assert "argument out_ptr: a ndarray can't be found again" in caught.value.message


def test_times_may_be_arrays() -> None:
    times = {4: np.array([2.0, 1, 1]), 8: np.array([1.0, 3, 3]), 16: np.array([1.0, 2, 3])}
    kernel = tritium.autotune(CONFIGS, key=["n"], do_bench=timed_as(times))(KERNEL)
    assert filled(kernel) == [7] * 10
    assert kernel.best_config is CONFIGS[2]


def test_a_tuned_kernel_can_be_copied_and_pickled() -> None:
    for again in (copy.copy(either), pickle.loads(pickle.dumps(either))):
        total, _ = accumulated(again, np.asarray)
        assert total.tolist() == [6] * 10


def test_the_interpreter_takes_the_first() -> None:
    kernel = tritium.autotune(CONFIGS, key=["n"], do_bench=timed_as({}))(KERNEL)
    with tritium.interpret():
        assert filled(kernel) == [7] * 10
    assert filled(kernel.interpret) == [7] * 10
    assert kernel.best_config is CONFIGS[0]
    assert kernel.cache == {}


def test_times_are_measured() -> None:
    kernel = tritium.autotune(CONFIGS, key=["n"], warmup=1, rep=2)(KERNEL)
    assert filled(kernel) == [7] * 10
    assert set(kernel.configs_timings) == set(CONFIGS)
    for median, low, high in kernel.configs_timings.values():
        assert 0 < low <= median <= high < 1000
    assert kernel.best_config is min(CONFIGS, key=kernel.configs_timings.__getitem__)


@tritium.jit
def accumulate(total_ptr, seen_ptr, n, BLOCK: tl.constexpr, fits: tl.constexpr = True):
    tl.static_assert(fits)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total_ptr + offs, 1, mask=offs < n)
    if seen_ptr is not None:
        tl.atomic_add(seen_ptr + offs, 1, mask=offs < n)


def no_time(call: Any, quantiles: Any) -> int:
    return 1


either = tritium.autotune(CONFIGS[:2], ["n"], do_bench=no_time)(accumulate)


def accumulated(tuned: Any, make: Any, n: int = 10) -> tuple[Any, Any]:
    total, seen = make(np.full(n, 5, np.int32)), make(np.full(n, 5, np.int32))
    tuned[lambda meta: (tritium.cdiv(n, meta["BLOCK"]),)](total, seen, n)
    return total, seen


def as_tensor(array: np.ndarray) -> Any:
    return pytest.importorskip("torch").from_numpy(array)


def as_wrapper(array: np.ndarray) -> Any:
    return tritium.reinterpret(array, tl.uint32)


@pytest.mark.parametrize("make", [np.asarray, as_tensor, as_wrapper])
def test_what_runs_change_is_put_back(make: Any) -> None:
    tuned = tritium.autotune(
        CONFIGS, ["n"], reset_to_zero=["total_ptr"], restore_value=["seen_ptr"], warmup=0, rep=0
    )(accumulate)
    total, seen = (
        getattr(x, "base", x) if make is as_wrapper else x for x in accumulated(tuned, make)
    )
    assert np.asarray(total).tolist() == [1] * 10
    assert np.asarray(seen).tolist() == [6] * 10
    total, _ = accumulated(tuned, make)
    assert (
        np.asarray(getattr(total, "base", total) if make is as_wrapper else total).tolist()
        == [6] * 10
    )


def test_copies_of_a_failed_launch_are_forgotten() -> None:
    tuned = tritium.autotune(CONFIGS, ["n"], restore_value=["seen_ptr"], warmup=0, rep=0)(
        accumulate
    )
    total, seen = np.zeros(4, np.int32), np.zeros(4, np.int32)
    seen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tuned[(1,)](total, seen, 4)
    assert tuned.cache == {}
    tuned[(1,)](total, None, 4)
    assert (total > len(CONFIGS)).all()


# ---- in several threads --------------------------------------------------------------------------


def in_threads(*calls: Any) -> None:
    threads = [threading.Thread(target=each) for each in calls]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def test_threads_that_tune_keep_to_their_own_arrays() -> None:
    meet = threading.Barrier(2)

    def even(args: dict[str, Any]) -> bool:
        # A run of each thread has begun; where they go one by one, the other never comes.
        with contextlib.suppress(threading.BrokenBarrierError):
            meet.wait(0.2)
        return True

    tuned = tritium.autotune(
        CONFIGS[:2],
        ["n"],
        restore_value=["total_ptr"],
        do_bench=lambda call, quantiles: call() or 1,
    )(tritium.heuristics({"fits": even})(accumulate))
    arrays = [np.full(16, 100 * each, np.int32) for each in range(2)]
    in_threads(*(lambda x=x, n=n: tuned[(4,)](x, None, n) for x, n in zip(arrays, (15, 16))))
    assert arrays[0].tolist() == [1] * 15 + [0]
    assert arrays[1].tolist() == [101] * 16
    assert len(tuned.cache) == 2


def test_threads_tune_for_a_key_once() -> None:
    runs: list[int] = []

    def do_bench(call: Any, quantiles: Any) -> int:
        time.sleep(0.02)
        runs.append(1)
        return 1

    kernel = tritium.autotune(CONFIGS, ["n"], do_bench=do_bench)(KERNEL)
    in_threads(*[lambda: filled(kernel)] * 4)
    assert len(runs) == len(CONFIGS)


def test_what_is_tuned_does_not_wait_for_other_tuning() -> None:
    going, launched = threading.Event(), threading.Event()

    def do_bench(call: Any, quantiles: Any) -> int:
        going.set()
        assert launched.wait(20)
        return 1

    kernel = tritium.autotune(CONFIGS, ["n"], do_bench=do_bench)(KERNEL)
    kernel.cache[10, "int32", "cpu"] = CONFIGS[1]
    results: list[list[int]] = []

    def meanwhile() -> None:
        assert going.wait(20)
        results.append(filled(kernel, 10))
        launched.set()

    in_threads(lambda: results.append(filled(kernel, 20)), meanwhile)
    assert results == [[7] * 10, [7] * 20]


def test_none_is_left_alone() -> None:
    tuned = tritium.autotune(CONFIGS, ["n"], reset_to_zero=["seen_ptr"], restore_value=["seen_ptr"],
        warmup=0, rep=0)(accumulate)  # fmt: skip
    total = np.zeros(4, np.int32)
    tuned[(1,)](total, None, 4)
    assert (total > len(CONFIGS)).all()


def test_hooks_in_their_order() -> None:
    said: list[Any] = []
    config = Config({"BLOCK": 16}, pre_hook=lambda args: said.append("config"))

    def before(args: dict[str, Any], reset_only: bool = False) -> None:
        said.append(("reset" if reset_only else "before", args["n"], args["BLOCK"]))

    def after(args: dict[str, Any], exception: BaseException | None) -> None:
        said.append("after" if exception is None else type(exception).__name__)

    tuned = tritium.autotune(
        [config, Config({"BLOCK": 8, "fits": False})],
        ["n"],
        pre_hook=before,
        post_hook=after,
        do_bench=timed_as({16: 1}),
    )(accumulate)
    tuned[(1,)](np.zeros(4, np.int32), None, 4)
    run = ["config", ("before", 4, 16), "after"]
    failed = [("before", 4, 8), "CompileTimeAssertionFailure"]
    assert said == [*run, *failed, ("reset", 4, 16), "config"]
    assert tuned.configs_timings == {config: 1, tuned.configs[1]: [float("inf")] * 3}


def test_a_configuration_that_does_not_fit_is_left_out() -> None:
    configs = [Config({"BLOCK": 4, "fits": False}), Config({"BLOCK": 8})]
    tuned = tritium.autotune(configs, ["n"], warmup=0, rep=0)(accumulate)
    tuned[(1,)](np.zeros(4, np.int32), None, 4)
    assert tuned.best_config is configs[1]
    none = tritium.autotune([configs[0], Config({"BLOCK": 16, "fits": False})], ["n"])(accumulate)
    with pytest.raises(TritiumError) as caught:
        none[(1,)](np.zeros(4, np.int32), None, 4)
    assert none.best_config is configs[0]
    assert caught.value.code == "E0119", caught.value


def test_other_failures_end_the_tuning() -> None:
    kernel = tritium.autotune(CONFIGS, key=["n"])(KERNEL)
    with pytest.raises(TritiumError) as caught:
        kernel[(1,)]([1, 2], 10, 7)
    assert caught.value.code == "E0501"
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    assert kernel.cache == {}


def test_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[dict[str, Any]] = []
    with tritium.knobs.autotuning.scope():
        tritium.knobs.autotuning.print = True
        tritium.knobs.autotuning.listener = lambda **what: heard.append(what)
        configs = [*CONFIGS[:2], Config({"BLOCK": 2, "fits": False})]
        tuned = tritium.autotune(configs, ["n"], do_bench=timed_as({4: 2, 8: 1}))(accumulate)
        for _ in range(2):
            tuned[(2,)](np.zeros(4, np.int32), None, 4)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [f"Autotuning kernel accumulate with config {each}" for each in configs]
    assert lines[3].startswith("Autotuning failed with ")
    at = next(
        i for i, line in enumerate(lines) if line == "Triton autotuning for function accumulate,"
    )
    assert lines[at + 1] == "with key as (4, 'int32', 'cpu'),"
    assert lines[at + 2].startswith("finished after 0.")
    assert lines[at + 3 :] == [f"best config selected: {configs[1]};"]
    assert [(each["key"], each["best_config"], each["cache_hit"]) for each in heard] == [
        ((4, "int32", "cpu"), configs[1], False)
    ]
    assert heard[0]["fn"] is accumulate


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
