"""Launches end to end: results against NumPy, executors, caches, hooks, errors before any write."""

from __future__ import annotations

import collections
import contextlib
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.diagnostics import InternalError, LaunchError, TritiumError
from tritium.runtime import cache, native
from tritium.runtime.compiled import CompiledKernel

SCALE = tl.constexpr(3)


@tritium.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


@tritium.jit
def scaled(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, x * SCALE, mask=offs < n)


@tritium.jit
def put(out_ptr, value):
    tl.store(out_ptr, value)


@tritium.jit
def ids(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    gx, gy = tl.num_programs(0), tl.num_programs(1)
    tl.store(out_ptr + x + gx * (y + gy * z), x + 100 * y + 10000 * z)


@tritium.jit
def shifted(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        mask = start + offs < n
        x = tl.load(x_ptr + start + offs, mask=mask)
        tl.store(out_ptr + start + offs, x + 1, mask=mask)


@tritium.jit
def of_tuple(out_ptr, pair, FLAG: tl.constexpr):
    if FLAG:
        tl.store(out_ptr, pair[0] + pair[1])
    else:
        tl.store(out_ptr, tl.load(pair.left) + pair.right)


@tritium.jit
def carried(out_ptr, n, BLOCK: tl.constexpr):
    pointers = out_ptr + tl.arange(0, BLOCK)
    for _ in range(0, n):
        tl.store(pointers, 7)
        pointers += BLOCK


@contextlib.contextmanager
def executor(name: str) -> Iterator[None]:
    with tritium.interpret(name == "interp"):
        yield


EXECUTORS = pytest.mark.parametrize("name", ["cpu", "interp"])


# ---- results -------------------------------------------------------------------------------------


@EXECUTORS
@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64], ids=str)
def test_lengths(name: str, n: int, dtype: Any) -> None:
    random = np.random.default_rng(n)
    x, y = (random.integers(0, 100, n).astype(dtype) for _ in range(2))
    out = np.full(n + 7, 77, dtype)
    with executor(name):
        add[(tritium.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    assert np.array_equal(out[:n], x + y)
    assert (out[n:] == 77).all()


@EXECUTORS
@pytest.mark.parametrize("grid", [(5,), (3, 4), (2, 3, 4), 6, [2, 2]], ids=str)
def test_grids(name: str, grid: Any) -> None:
    x, y, z = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
    out = np.full(x * y * z, -1, np.int32)
    with executor(name):
        ids[grid](out)
    expected = [i + 100 * j + 10000 * k for k in range(z) for j in range(y) for i in range(x)]
    assert out.tolist() == expected


@EXECUTORS
@pytest.mark.parametrize("grid", [(0,), (3, 0), (0, 0, 0)], ids=str)
def test_a_grid_of_nothing(name: str, grid: Any) -> None:
    out = np.full(4, -1, np.int32)
    with executor(name):
        made = ids[grid](out)
    assert (out == -1).all()
    assert (made is None) == (name == "interp")


VALUES: list[Any] = [
    *(0, 1, -1, 16, 2**31 - 1, -(2**31), 2**31, 2**40 + 1, 2**63 - 1, -(2**63), True, False),
    *(1.0, 0.1, 1e300, -1e-50, float("inf"), 1e39),
]


@EXECUTORS
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_numbers(name: str, value: Any) -> None:
    """Integers arrive whole, floats as fp32: too large ones as infinities."""
    is_float = isinstance(value, float)
    out = np.zeros(1, np.float64 if is_float else np.int64)
    with executor(name), np.errstate(over="ignore"):
        put[(1,)](out, value)
        assert out[0] == (np.float32(value) if is_float else value)


@EXECUTORS
def test_unsigned_numbers_beyond_int64(name: str) -> None:
    out = np.zeros(1, np.uint64)
    with executor(name):
        put[(1,)](out, 2**64 - 3)
    assert out[0] == 2**64 - 3


@EXECUTORS
@pytest.mark.parametrize("annotation", ["fp16", "bf16", "fp64", "i8", "u16", "i64"])
def test_annotated_numbers(name: str, annotation: str) -> None:
    namespace: dict[str, Any] = {"tritium": tritium, "tl": tl}
    text = f"def typed(out_ptr, value: {annotation!r}):\n    tl.store(out_ptr, value)\n"
    kernel = tritium.jit(defined(text, namespace, "typed"))
    value: Any = 1.2345678901234567 if "f" in annotation else 100
    out = np.zeros(1, np.float64)
    with executor(name):
        kernel[(1,)](out, value)
    expected = {
        "fp16": float(np.float16(value)),
        "bf16": 1.234375,
        "fp64": value,
    }.get(annotation, 100.0)
    assert out[0] == expected


def defined(text: str, namespace: dict[str, Any], name: str) -> Any:
    """A function made from text, as a notebook would."""
    import linecache

    file = f"<{name} {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), namespace)
    return namespace[name]


@EXECUTORS
def test_tuples(name: str) -> None:
    Pair = collections.namedtuple("Pair", "left right")
    out = np.zeros(1, np.int32)
    x = np.array([5], np.int32)
    with executor(name):
        of_tuple[(1,)](out, (30, 4), FLAG=True)
        assert out[0] == 34
        of_tuple[(1,)](out, Pair(x, 7), FLAG=False)
        assert out[0] == 12


@EXECUTORS
@pytest.mark.parametrize(
    "x, out",
    [(slice(0, -1), slice(1, None)), (slice(1, None), slice(0, -1)), (slice(None), slice(None))],
    ids=["behind", "ahead", "in place"],
)
def test_arrays_that_overlap(name: str, x: slice, out: slice) -> None:
    """Tile by tile in program order, as the loop below does it."""
    buffer = np.arange(301, dtype=np.float32)
    expected = buffer.copy()
    source, target, n = expected[x], expected[out], len(expected[x])
    for start in range(0, n, 64):
        target[start : start + 64] = source[start : start + 64].copy() + 1
    with executor(name):
        shifted[(1,)](buffer[x], buffer[out], n, BLOCK=64)
    assert np.array_equal(buffer, expected)


def test_views_are_used_in_place() -> None:
    base = np.arange(100, dtype=np.float32)
    scaled[(1,)](base[10:], 5, BLOCK=8)
    expected = np.arange(100, dtype=np.float32)
    expected[10:15] *= 3
    assert np.array_equal(base, expected)


@EXECUTORS
def test_torch_tensors(name: str) -> None:
    torch = pytest.importorskip("torch", reason="passes torch's tensors")
    base = torch.arange(3000, dtype=torch.bfloat16)
    x, y, out = base[1:2001], base[1000:3000], torch.zeros(2000, dtype=torch.bfloat16)
    with executor(name):
        add[(2,)](x, y, out, 2000, BLOCK=1024)
    assert torch.equal(out, x + y)


# ---- choosing the executor -----------------------------------------------------------------------


@tritium.jit
def spy(out_ptr):
    tl.store(out_ptr, 1)


def interpreted(launch: Any) -> bool:
    """Whether a launch is interpreted: only the interpreter returns no kernel."""
    return launch(np.zeros(1, np.int32)) is None


def test_the_interpreter_is_chosen_at_each_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not interpreted(spy[(1,)])
    assert interpreted(spy.interpret[(1,)])
    with tritium.interpret():
        assert interpreted(spy[(1,)])
        with tritium.interpret(False):
            assert not interpreted(spy[(1,)])
    for variable in ("TRITON_INTERPRET", "TRITIUM_INTERPRET"):
        monkeypatch.setenv(variable, "1")
        assert interpreted(spy[(1,)])
        monkeypatch.delenv(variable)
    assert not interpreted(spy[(1,)])
    knobs.runtime.interpret = True
    assert interpreted(spy[(1,)])
    del knobs.runtime.interpret
    assert not interpreted(spy[(1,)])


def test_interpret_holds_for_its_thread_and_decorates() -> None:
    seen = []

    @tritium.interpret()
    def work() -> None:
        seen.append(interpreted(spy[(1,)]))
        other = threading.Thread(target=lambda: seen.append(interpreted(spy[(1,)])))
        other.start()
        other.join()

    work()
    assert seen == [True, False]


@tritium.jit
def typo_kernel(x):
    tl.store(x, tl.laod(x))


@pytest.mark.parametrize("name", ["native", "interpreted"])
def test_tracebacks_leave_out_the_compiler(name: str) -> None:
    launch = typo_kernel if name == "native" else typo_kernel.interpret

    def frames() -> list[str]:
        with pytest.raises(TritiumError) as caught:
            launch[(1,)](np.zeros(1, np.float32))
        every = traceback.extract_tb(caught.value.__traceback__)
        return [frame.name if frame.filename == __file__ else "ours" for frame in every]

    kernel = [] if name == "native" else ["typo_kernel"]
    assert [each for each in frames() if each != "ours"] == ["frames", *kernel]
    assert frames().count("ours") <= 3
    with knobs.compilation.scope():
        knobs.compilation.front_end_debugging = True
        assert frames().count("ours") > 3


def test_the_default_device() -> None:
    tritium.set_default_device("cpu")
    for unknown in ("cuda:999", "mps", "cuda:x"):
        with pytest.raises(LaunchError, match=unknown) as caught:
            tritium.set_default_device(unknown)
        assert caught.value.code == "E0802"
    tritium.set_default_device(None)


# ---- compiled once -------------------------------------------------------------------------------


def test_a_specialisation_is_compiled_once() -> None:
    kernel = tritium.jit(add.fn)
    x = np.zeros(2000, np.float32)
    first = kernel[(1,)](x, x, x, 5, BLOCK=64)
    assert kernel[(1,)](x, x, x, 7, BLOCK=64) is first
    assert kernel[(1,)](x, x, x, 16, BLOCK=64) is not first
    assert kernel[(1,)](x, x, x, 1, BLOCK=64) is not first
    assert kernel[(1,)](x, x, x, 5, BLOCK=128) is not first
    assert kernel[(1,)](x, x, x, 5, BLOCK=64, num_warps=8) is not first
    assert kernel[(1,)](x.astype(np.float64), x, x, 5, BLOCK=64) is not first
    assert len(kernel.kernels) == 6


def test_the_cache_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "cache"))
    x = np.arange(8, dtype=np.float32)

    def launch() -> bool:
        """Whether the code came from the disk."""
        kernel = tritium.jit(scaled.fn)
        made = kernel[(1,)](x.copy(), 8, BLOCK=8)
        assert made is not None
        cached: bool = made.code.version(True).cached
        return cached

    assert [launch(), launch()] == [False, True]
    assert {cache.size()[0][kind] for kind in ("kernel", "manifest")} == {1}
    for suffix, cached in ((cache.SUFFIX, False), (cache.MANIFEST_SUFFIX, True)):
        file = next((tmp_path / "cache" / "kernels").glob(f"*{suffix}"))
        file.write_bytes(file.read_bytes()[:-5])
        assert [launch(), launch()] == [cached, True]
    with knobs.compilation.scope():
        knobs.compilation.always_compile = True
        assert not launch()
    with knobs.cpu.scope():
        knobs.cpu.features = "-avx512f" if native.host_target().has("avx512f") else ""
        narrow = native.host_target().key
    assert narrow == native.host_target().key or not launch_with("-avx512f", launch)


def launch_with(features: str, launch: Any) -> bool:
    with knobs.cpu.scope():
        knobs.cpu.features = features
        cached: bool = launch()
        return cached


def test_without_a_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "file" / "cache"))
    x = np.arange(4, dtype=np.float32)
    tritium.jit(scaled.fn)[(1,)](x, 4, BLOCK=8)
    assert x.tolist() == [0, 3, 6, 9]


def test_the_overlapping_version_is_compiled_when_it_is_needed() -> None:
    kernel = tritium.jit(do_not_specialize_on_alignment=["x_ptr", "out_ptr"])(shifted.fn)
    buffer = np.arange(100, dtype=np.float32)
    made = kernel[(1,)](buffer, np.zeros(100, np.float32), 99, BLOCK=64)
    assert made is not None
    assert list(made.code._versions) == [True]
    assert kernel[(1,)](buffer[:-1], buffer[1:], 99, BLOCK=64) is made
    assert sorted(made.code._versions) == [False, True]
    # Empty arrays overlap with nothing, wherever they are.
    again = kernel[(0,)](buffer[:0], buffer[:0], 99, BLOCK=64)
    assert again is made


def test_a_global_that_changes_is_compiled_in_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(4, np.float32)
    scaled[(1,)](x, 4, BLOCK=4)
    assert (x == 3).all()
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(5))
    scaled[(1,)](x, 4, BLOCK=4)
    assert (x == 15).all()
    monkeypatch.setattr(scaled, "frozen_globals", True)
    scaled[(1,)](x, 4, BLOCK=4)
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(7))
    with pytest.raises(RuntimeError, match="SCALE") as caught:
        scaled[(1,)](x, 4, BLOCK=4)
    assert isinstance(caught.value, TritiumError)
    assert caught.value.code == "E0518"
    assert (x == 75).all()


def test_many_threads_launch_new_and_known_kernels() -> None:
    kernel = tritium.jit(add.fn)
    wrong: list[int] = []

    def launch(seed: int) -> None:
        for turn in range(20):
            n = 1 + (seed * 37 + turn * 101) % 5000
            x = np.arange(n, dtype=[np.float32, np.int32][turn % 2])
            out = np.empty_like(x)
            kernel[(tritium.cdiv(n, 256),)](x, x, out, n, BLOCK=256)
            if not np.array_equal(out, 2 * x):
                wrong.append(n)

    threads = [threading.Thread(target=launch, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(kernel.kernels) <= 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_launches(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, warnings
            warnings.simplefilter("ignore", DeprecationWarning)
            import numpy as np
            import tritium
            import tritium.language as tl

            @tritium.jit
            def fill(out_ptr, value, BLOCK: tl.constexpr):
                tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), value)

            def launch(value):
                out = np.zeros(1 << 22, np.int32)
                fill[(1 << 10,)](out, value, BLOCK=1 << 12)
                return bool((out == value).all())

            print(launch(2), flush=True)
            child = os.fork()
            if child == 0:
                print(launch(3), launch(2.0), flush=True)
                os._exit(0)
            os.waitpid(child, 0)
            print(launch(4), flush=True)
            """
        )
    )
    environment = {**os.environ, "TRITIUM_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.stdout.split() == ["True"] * 4, done.stderr


# ---- hooks ---------------------------------------------------------------------------------------


def test_hooks_of_a_launch() -> None:
    calls: list[Any] = []

    def described(grid: Any, metadata: Any, args: Any) -> dict[str, Any]:
        return {"grid": grid, "warps": metadata.num_warps, "value": args["value"]}

    kernel = tritium.jit(launch_metadata=described)(put.fn)
    kernel.add_pre_run_hook(lambda *args, **keywords: calls.append(("pre", len(args))))
    out = np.zeros(1, np.int32)
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.add(lambda told: calls.append(("enter", told.get())))
        knobs.runtime.launch_exit_hook.add(lambda told: calls.append(("exit", out[0])))
        kernel[(1,)](out, 5)
    kernel[(1,)](out, 6)
    assert [call[0] for call in calls] == ["pre", "enter", "exit", "pre"]
    told = calls[1][1]
    assert (told["name"], told["grid"], told["warps"], told["value"]) == ("put", (1, 1, 1), 4, 5)
    assert calls[2][1] == 5


def test_hooks_of_a_compilation() -> None:
    seen: list[dict[str, Any]] = []
    listened: list[dict[str, Any]] = []
    kernel = tritium.jit(put.fn)
    out = np.zeros(1, np.int32)
    knobs.runtime.jit_cache_hook = lambda **told: seen.append(told)
    knobs.runtime.jit_post_compile_hook = lambda **told: seen.append(told)
    knobs.compilation.listener = lambda **told: listened.append(told)
    kernel[(1,)](out, 7)
    kernel[(1,)](out, 9)
    assert len(seen) == 2
    assert all(not told["is_manual_warmup"] and not told["already_compiled"] for told in seen)
    assert seen[0]["fn"].name == "put"
    assert seen[0]["compile"]["signature"] == {"out_ptr": "*i32", "value": "i32"}
    assert set(listened[0]) == {"src", "metadata", "metadata_group", "times", "cache_hit"}
    assert listened[0]["metadata"]["name"] == "put"
    knobs.runtime.jit_cache_hook = lambda **told: True
    assert kernel[(1,)](out, 2.5) is None
    assert out[0] == 9


def test_dumped_stages(tmp_path: pathlib.Path) -> None:
    with knobs.compilation.scope(), knobs.cache.scope():
        knobs.compilation.dump_ir = True
        knobs.cache.dump_dir = tmp_path
        made = tritium.jit(put.fn)[(1,)](np.zeros(1, np.int32), 3)
    assert made is not None
    folder = tmp_path / f"put-{made.hash[:16]}"
    assert {each.suffix for each in folder.iterdir()} == {f".{stage}" for stage in made.asm}
    assert (folder / "put.source").read_text().startswith("def put(out_ptr, value):")


# ---- what goes wrong -----------------------------------------------------------------------------


def test_a_read_only_array() -> None:
    x = np.ones(4, np.float32)
    x.flags.writeable = False
    y, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    add[(1,)](x, x, out, 4, BLOCK=4)
    assert (out == 2).all()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out_ptr is read-only") as caught:
        add[(1,)](x, y, out, 4, BLOCK=4)
    assert isinstance(caught.value, TritiumError)
    assert caught.value.code == "E0514"
    assert (out == 2).all()
    with pytest.raises(ValueError, match="out_ptr is read-only"):
        add.interpret[(1,)](x, y, out, 4, BLOCK=4)
    assert (out == 2).all()


def test_a_read_only_array_that_is_written_through_a_pointer_in_a_loop() -> None:
    out = np.zeros(16, np.int32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out_ptr is read-only"):
        carried[(1,)](out, 4, BLOCK=4)
    assert not out.any()


def place(problem: TritiumError) -> str:
    """The text that the carets are under."""
    import linecache

    loc = problem.loc
    assert loc is not None
    assert loc.file == __file__
    line = linecache.getline(loc.file, loc.line)
    return line[loc.col : loc.end_col] if loc.line == loc.end_line else line[loc.col :].rstrip()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows the line only")
def test_errors_point_at_the_argument() -> None:
    x = np.zeros(4, np.float32)
    bad = np.zeros(4, np.complex64)
    with pytest.raises(TritiumError) as caught:
        add[(1,)](x, bad, x, 4, BLOCK=4)
    assert place(caught.value) == "bad"
    with pytest.raises(TritiumError) as caught:
        add[(1,)](x, x, x, n=x.dtype, BLOCK=4)
    assert place(caught.value) == "n=x.dtype"
    with pytest.raises(TritiumError) as caught:
        add[(-1,)](x, x, x, 4, BLOCK=4)
    assert place(caught.value) == "(-1,)"
    with pytest.raises(TritiumError) as caught:
        add[(1,)](x, x, x, 4, BLOCK=4, BLOK=5)
    assert place(caught.value) == "BLOK=5"
    with pytest.raises(TritiumError) as caught:
        add[(1,)](x, x, x, 4)
    assert place(caught.value) == "add[(1,)](x, x, x, 4)"
    with pytest.raises(TritiumError) as caught:
        add[(1,)](*[x, bad, x], 4, BLOCK=4)
    assert place(caught.value) == "add[(1,)](*[x, bad, x], 4, BLOCK=4)"
    naïve = {"é": 1}
    with pytest.raises(TritiumError) as caught:
        add[(1,)](x, naïve, x, 4, BLOCK=4)
    assert place(caught.value) == "naïve"
    with pytest.raises(TritiumError) as caught:
        add[(1,)](
            x,
            np.zeros(4, object),
            x,
            4,
            BLOCK=4,
        )
    assert place(caught.value) == "np.zeros(4, object)"
    with pytest.raises(TritiumError) as caught:
        add.interpret[(-1,)](x, x, x, 4, BLOCK=4)
    assert place(caught.value) == "(-1,)"


def test_errors_know_at_least_the_line() -> None:
    with pytest.raises(TritiumError) as caught:
        add[(1,)](np.zeros(4, np.complex64), 1, 2, 4, BLOCK=4)
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    assert place(caught.value) in "        add[(1,)](np.zeros(4, np.complex64), 1, 2, 4, BLOCK=4)"


def test_a_fault_of_the_compiler_leaves_a_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    import zipfile

    def broken(*args: Any, **keywords: Any) -> Any:
        raise KeyError("a lowering")

    monkeypatch.setattr("tritium.backends.cpu.compile_kernel", broken)
    monkeypatch.setenv("TRITIUM_REPORT_DIR", str(tmp_path))
    knobs.compilation.always_compile = True
    with pytest.raises(InternalError, match="a lowering") as caught:
        tritium.jit(put.fn)[(1,)](np.zeros(1, np.int32), 3)
    assert caught.value.report is not None
    with zipfile.ZipFile(caught.value.report) as report:
        assert report.read("kernel.py").startswith(b"def put")
        assert b"memory.store" in report.read("kernel.ir")


def test_a_cpu_this_machine_is_not() -> None:
    with knobs.cpu.scope():
        knobs.cpu.features = "+sve,+amx-fp16,+neon"
        with pytest.raises(TritiumError) as caught:
            tritium.jit(put.fn)[(1,)](np.zeros(1, np.int32), 3)
    assert caught.value.code == "E0801"


def test_kernels_are_not_called_from_the_host() -> None:
    with pytest.raises(RuntimeError) as caught:
        put(np.zeros(1), 3)
    assert isinstance(caught.value, TritiumError)
    assert caught.value.code == "E0516"
    with pytest.raises(TritiumError) as caught:
        put.interpret(np.zeros(1), 3)  # type: ignore[operator]
    assert caught.value.help == "launch it as put.interpret[grid](...)"


def test_named_cpus() -> None:
    out = np.zeros(1, np.int32)
    with knobs.cpu.scope():
        knobs.cpu.target = "generic"
        tritium.jit(put.fn)[(1,)](out, 3)
        assert out[0] == 3
        knobs.cpu.target = "z80"
        with pytest.raises(TritiumError) as caught:
            tritium.jit(put.fn)[(1,)](out, 4)
    assert caught.value.code == "E0801"
    assert "x86-64-v3" in caught.value.help


def test_compiled_kernel_type() -> None:
    assert isinstance(put[(1,)](np.zeros(1, np.int32), 3), CompiledKernel)


# ---- memory that belongs to no argument ----------------------------------------------------------


@tritium.jit
def copy_one(source, target, at):
    tl.store(target, tl.load(source + at))


@tritium.jit
def copy_through_a_table(table, target):
    tl.store(target, tl.load(tl.load(table).to(tl.pointer_type(tl.int32))))


@pytest.mark.parametrize("at", [-1, 4])
def test_the_interpreter_refuses_what_lies_beside_an_array(at: int) -> None:
    owner = np.arange(6, dtype=np.int32)
    source, target = owner[1:5].copy(), np.zeros(1, np.int32)
    with pytest.raises(TritiumError) as caught:
        copy_one.interpret[(1,)](source, target, at)
    assert caught.value.code == "E0608"
    assert "source" in caught.value.message
    assert target[0] == 0


def test_a_view_reaches_the_memory_it_belongs_to() -> None:
    owner, target = np.arange(6, dtype=np.int32), np.zeros(1, np.int32)
    copy_one.interpret[(1,)](owner[1:5], target, 4)
    assert target[0] == 5


def test_addresses_in_memory_are_followed() -> None:
    hidden, target = np.array([7], np.int32), np.zeros(1, np.int32)
    table = np.array([hidden.ctypes.data], np.int64)
    copy_through_a_table.interpret[(1,)](table, target)
    assert target[0] == 7
