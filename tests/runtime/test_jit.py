"""The decorator and Triton's attributes of kernels and compiled kernels."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.ir import parse_function
from tritium.runtime.compiled import LazyDict, Stages
from tritium.runtime.jit import JITFunction, KernelInterface

FACTOR = tl.constexpr(2)


@tritium.jit
def helper(x):
    return x * FACTOR


@tritium.jit
def double(x_ptr, out_ptr, n: tl.int32, scale=1.0, BLOCK: tl.constexpr = 64):
    """Doubles."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, helper(tl.load(x_ptr + offs, mask=offs < n)), mask=offs < n)


def plain(x_ptr, n):
    tl.store(x_ptr, n)


# ---- the decorator -------------------------------------------------------------------------------


def test_bare_and_called() -> None:
    bare = tritium.jit(plain)
    called = tritium.jit(debug=True, noinline=True, version=3, do_not_specialize=["n"])(plain)
    assert isinstance(bare, JITFunction)
    assert isinstance(bare, KernelInterface)
    assert (bare.debug, bare.noinline, bare.version) == (None, False, None)
    assert (called.debug, called.noinline, called.version) == (True, True, 3)
    assert called.do_not_specialize == ("n",)
    assert tritium.jit(bare).fn is plain
    assert bare.__name__ == "plain"
    assert bare.__module__ == __name__


def test_triton_s_constructor() -> None:
    made = JITFunction(plain, None, ["n"], None, False, None, lambda special: "other", None)
    assert made.do_not_specialize == ("n",)
    compiled = made[(1,)](np.zeros(1, np.int32), 5)
    assert compiled is not None
    assert compiled.name == "other"
    with pytest.raises(TypeError):
        tritium.jit(plain, unknown=1)  # type: ignore[call-overload]


def test_a_name_for_a_specialisation() -> None:
    def name(special: Any) -> str:
        return f"{special.name}_{special.signature['x_ptr']}_{special.constants.get('n')}"

    compiled = tritium.jit(repr=name)(plain)[(1,)](np.zeros(1, np.int16), 1)
    assert compiled.name == "plain_*i16_1"


def test_contradictory_declarations() -> None:
    kernel = tritium.jit(do_not_specialize=["BLOCK"])(double.fn)
    with pytest.raises(TritiumError) as caught:
        kernel[(1,)](1, 2, 3)
    assert caught.value.code == "E0206"


# ---- attributes ----------------------------------------------------------------------------------


def test_attributes() -> None:
    assert double.arg_names == ["x_ptr", "out_ptr", "n", "scale", "BLOCK"]
    assert double.constexprs == [4]
    assert double.signature == inspect.signature(double.fn)
    assert double.__doc__ == "Doubles."
    assert double.src.startswith("def double(x_ptr, out_ptr, n: tl.int32")
    lines, first = inspect.getsourcelines(double.fn)
    assert double.raw_src == lines
    assert double.starting_line_number == first
    assert double.parse().body[0].name == "double"
    assert double.kernel is None
    assert double.module == __name__
    with pytest.raises(AttributeError):
        double.src = ""  # type: ignore[misc]


def test_parameters() -> None:
    x, _, n, scale, block = double.params
    assert [each.num for each in double.params] == [0, 1, 2, 3, 4]
    assert (x.name, x.annotation, x.has_default, x.is_constexpr) == ("x_ptr", "", False, False)
    assert (n.annotation, n.annotation_type) == ("tl.int32", "i32")
    assert (scale.default, scale.has_default) == (1.0, True)
    assert block.is_constexpr
    declared = tritium.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=[0])(plain)
    assert [each.do_not_specialize for each in declared.params] == [False, True]
    assert [each.do_not_specialize_on_alignment for each in declared.params] == [True, True]


def test_the_key_of_a_kernel_depends_on_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    before = double.cache_key
    assert before == double.cache_key == double.hash
    assert before != helper.cache_key
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(3))
    assert double.cache_key != before


def test_globals_that_were_used() -> None:
    kernel = tritium.jit(double.fn)
    x = np.ones(4, np.float32)
    kernel[(1,)](x, x, 4)
    used = {name: value for (name, _), (value, _) in kernel.used_global_vals.items()}
    assert used["FACTOR"] is FACTOR
    assert used["helper"] is helper


def test_the_cache_of_a_device() -> None:
    kernel = tritium.jit(plain)
    compiled = kernel[(1,)](np.zeros(1, np.int32), 5)
    kernels, _, target, _, binder = kernel.device_caches[0]
    assert list(kernels.values()) == [compiled]
    assert target.backend == "cpu"
    assert binder is kernel.create_binder()


def test_pickling_and_copying() -> None:
    assert pickle.loads(pickle.dumps(double)) is double
    assert copy.deepcopy(double) is double
    local = tritium.jit(lambda x: x)
    assert copy.deepcopy([local])[0] is local


# ---- warm-up -------------------------------------------------------------------------------------


def test_warmup_compiles_without_running() -> None:
    kernel = tritium.jit(plain)
    x = np.zeros(1, np.int32)
    made = kernel.warmup(x, 5, grid=(1,))
    assert x[0] == 0
    assert kernel[(1,)](x, 5) is made
    by_type = kernel.warmup(tl.int32, 5, grid=(1,))
    assert by_type is made
    assert kernel.warmup(x.dtype, 5, grid=(1,)) is made
    for launch in (kernel[(1,)], kernel.interpret[(1,)]):
        with pytest.raises(TritiumError, match="MockTensor") as caught:
            launch(tritium.MockTensor(tl.int32), 5)
        assert caught.value.code == "E0515"
    with tritium.interpret():
        assert kernel.warmup(x, 5, grid=(1,)) is None
    torch = pytest.importorskip("torch", reason="passes torch's dtypes")
    assert kernel.warmup(torch.int32, n=5, grid=(1,)) is made


# ---- compiled kernels ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled() -> Any:
    x = np.arange(100, dtype=np.float32)
    return double[(2,)](x, np.zeros_like(x), 100, num_warps=8)


def test_stages(compiled: Any) -> None:
    stages = compiled.asm
    assert isinstance(stages, Stages)
    assert list(stages) == ["source", "ttir", "optimised", "nests", "llir", "asm", "object"]
    assert stages["source"] == double.src
    for name in ("ttir", "optimised"):
        assert parse_function(stages[name]).name == "double"
    assert "define" in stages["llir"]
    assert "double.kernel:" in stages["asm"]
    assert stages["object"][:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe") or sys.platform == "win32"
    assert compiled.kernel == stages["object"]
    assert "memory.store" in stages["nests"]
    assert stages.get("ptx") is None
    assert len(stages) == 7


def test_metadata(compiled: Any) -> None:
    assert compiled.metadata.name == compiled.name == "double"
    assert compiled.metadata.num_warps == 8
    assert compiled.metadata.num_stages == 3
    assert compiled.metadata.target == compiled.target
    assert compiled.metadata.hash == compiled.hash
    assert len(compiled.hash) == 64
    assert compiled.metadata._asdict()["shared"] == 0
    assert compiled.packed_metadata == (8, 1, 0)
    assert (compiled.n_regs, compiled.n_spills) == (0, 0)
    assert compiled.src is double
    assert compiled.target.backend == "cpu"


def test_launching_a_compiled_kernel(compiled: Any) -> None:
    x = np.arange(64, dtype=np.float32)
    out = np.zeros_like(x)
    compiled[(1, 1, 1)](x, out, 64, 1.0, 64)
    assert np.array_equal(out, 2 * x)
    out[:] = 0
    calls: list[Any] = []
    enter, leave = (lambda told: calls.append(told)), (lambda told: calls.append("exit"))
    compiled.run(1, 1, 1, 0, compiled.function, compiled.packed_metadata, "told", enter, leave,
                 x, out, 64, 1.0, 64)  # fmt: skip
    assert np.array_equal(out, 2 * x)
    assert calls == ["told", "exit"]
    out[:] = 0
    compiled[(0, 1, 1)](x, out, 64, 1.0, 64)
    assert not out.any()


@pytest.mark.parametrize(
    "change, code",
    [
        ({0: np.zeros(64, np.float64)}, "E0515"),
        ({0: 3}, "E0515"),
        ({2: 1.5}, "E0501"),
        ({2: 2**40}, "E0501"),
        ({3: 3}, "E0515"),
        ({3: "x"}, "E0501"),
    ],
    ids=str,
)
def test_a_compiled_kernel_refuses_what_it_was_not_compiled_for(
    compiled: Any, change: dict[int, Any], code: str
) -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    args: list[Any] = [x, out, 64, 1.0, 64]
    for place, value in change.items():
        args[place] = value
    with pytest.raises(TritiumError) as caught:
        compiled[(1, 1, 1)](*args)
    assert caught.value.code == code
    assert caught.value.loc is not None
    assert not out.any()


def test_a_compiled_kernel_refuses_numbers_of_another_kind() -> None:
    out = np.zeros(1, np.int32)
    made = tritium.jit(plain)[(1,)](out, 32)
    assert made is not None
    made[(1,)](out, 48)
    assert out[0] == 48
    for value in (1.5, 2**40, 33, None):
        with pytest.raises(TritiumError) as caught:
            made[(1,)](out, value)
        assert caught.value.code == "E0515"
    assert out[0] == 48


def test_a_compiled_kernel_does_not_write_to_a_read_only_array(compiled: Any) -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    out.flags.writeable = False
    for launch in (
        lambda *args: compiled[(1, 1, 1)](*args),
        lambda *args: compiled.run(1, 1, 1, 0, None, None, None, None, None, *args),
    ):
        with pytest.raises(TritiumError) as caught:
            launch(x, out, 64, 1.0, 64)
        assert caught.value.code == "E0514"
    assert not out.any()


def test_lazy_dictionaries() -> None:
    calls = []

    def more(value: int) -> dict[str, int]:
        calls.append(value)
        return {"b": value}

    lazy = LazyDict({"a": 1})
    lazy.add(more, (2,))
    assert not calls
    assert lazy.get() == {"a": 1, "b": 2}
    assert lazy.get() == {"a": 1, "b": 2}
    assert calls == [2]


# ---- the package ---------------------------------------------------------------------------------


def test_the_facade() -> None:
    for name in tritium.__all__:
        assert getattr(tritium, name) is not None
    assert set(tritium.__all__) <= set(dir(tritium))
    assert set(tritium.__all__) == {"__version__", *tritium._PLACES, *tritium._MODULES}
    with pytest.raises(AttributeError):
        _ = tritium.nothing
    stub = inspect.getsourcefile(tritium).replace(".py", ".pyi")
    with open(stub) as file:
        text = file.read()
    assert all(f" as {name}\n" in text or f"\n{name}: " in text for name in tritium.__all__)


def test_importing_loads_nothing() -> None:
    script = (
        "import sys; before = set(sys.modules); import tritium; print(set(sys.modules) - before)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"numpy", "typing", "tritium.language"} & eval(out.stdout)
    assert len(eval(out.stdout)) < 10
    script = (
        "import sys, tritium, tritium.language\n@tritium.jit\ndef f(x): pass\n"
        "print([n for n in sys.modules if n.partition('.')[0] in ('llvmlite', 'torch', 'triton')])"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert eval(out.stdout) == []


def test_arithmetic_of_the_host() -> None:
    for x in range(50):
        for y in range(1, 20):
            assert tritium.cdiv(x, y) == -(-x // y)
    for n in range(1, 2000):
        power = tritium.next_power_of_2(n)
        assert power >= n > power // 2
        assert power & (power - 1) == 0
    assert tritium.next_power_of_2(0) == 0
    assert tritium.next_power_of_2(2**62 + 1) == 2**63

    @tritium.constexpr_function
    def area(side: int) -> int:
        return side * side

    assert area(7) == 49


# ---- parameters ----------------------------------------------------------------------------------


@tritium.jit
def oddly_named(out, self, fn, args, keywords, kernel, n):
    tl.store(out, self + fn + args + keywords + kernel + n)


def test_parameters_may_have_names_that_the_launch_uses() -> None:
    for launch in (oddly_named[(1,)], oddly_named.interpret[(1,)]):
        out = np.zeros(1, np.int32)
        launch(out, self=1, fn=2, args=3, keywords=4, kernel=5, n=6)
        assert out[0] == 21


def test_parameters_for_any_keyword_are_refused() -> None:
    def kernel(out, **rest):
        tl.store(out, 1)

    with pytest.raises(TritiumError, match=r"\*\*rest") as caught:
        tritium.jit(kernel)
    assert caught.value.code == "E0110"


@pytest.mark.parametrize("what", [5, "kernel", len, int, functools.partial(print, 1)], ids=repr)
def test_only_functions_are_kernels(what: Any) -> None:
    with pytest.raises(TypeError, match="jit needs a Python function") as caught:
        tritium.jit(what)
    assert isinstance(caught.value, TritiumError)


def test_decorators_in_the_wrong_order() -> None:
    tuned = tritium.autotune(configs=[tritium.Config({})], key=[])(double)
    with pytest.raises(TritiumError, match="above @jit"):
        tritium.jit(tuned)
    for decorator in (tritium.autotune(configs=[], key=[]), tritium.heuristics({})):
        with pytest.raises(TritiumError, match="needs a kernel") as caught:
            decorator(plain)
        assert caught.value.code == "E0204"
