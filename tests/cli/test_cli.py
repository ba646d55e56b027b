from __future__ import annotations

import errno
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tritium
from tritium import knobs
from tritium.cli import main
from tritium.cli.script import guarded
from tritium.runtime import cache
from tritium.runtime.cache import Entry

GUIDE = pathlib.Path(__file__).parents[1] / "guide"


def invoke(*arguments: str) -> Result:
    """Run a verb in this process."""
    return CliRunner().invoke(main, list(arguments))


def command(*arguments: str, stdin: str = "", **rest: Any) -> subprocess.CompletedProcess[str]:
    """Run a verb in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tritium", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=170,
        **rest,
    )


def script(folder: pathlib.Path, text: str, name: str = "script.py") -> str:
    (folder / name).write_text(textwrap.dedent(text))
    return str(folder / name)


# ---- run -----------------------------------------------------------------------------------------


def test_a_script_runs_as_python_runs_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    text = """
    import sys
    import beside
    print(__name__, __file__, sys.argv[1:], beside.VALUE, sys.modules["__main__"].beside is beside)
    """
    path = script(tmp_path, text)
    plain = subprocess.run(
        [sys.executable, path, "a", "-b", "--c=1"], capture_output=True, text=True
    )
    assert command("run", path, "a", "-b", "--c=1").stdout == plain.stdout
    module = command("run", "-m", "script", "x", cwd=tmp_path)
    assert module.stdout.startswith("__main__ ")
    assert "['x'] 5" in module.stdout


@pytest.mark.parametrize(
    "text, status",
    [
        ("raise SystemExit(3)", 3),
        ("import sys; sys.exit('said')", 1),
        ("import sys; sys.exit()", 0),
        ("1 / 0", 1),
        ("def broken(:", 1),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_the_exit_status_is_the_script_s(tmp_path: pathlib.Path, text: str, status: int) -> None:
    assert command("run", script(tmp_path, text)).returncode == status


def test_a_traceback_begins_in_the_script(tmp_path: pathlib.Path) -> None:
    path = script(tmp_path, "def f():\n    return 1 / 0\nprint('first')\nf()\n")
    done = command("run", path)
    assert done.stdout == "first\n"
    files = re.findall(r'File "([^"]+)"', done.stderr)
    assert set(files) == {path}
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")


def test_errors_are_coloured_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(terminal: bool, no_color: str) -> str:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
        monkeypatch.setenv("NO_COLOR", no_color)

        def fail() -> None:
            raise tritium.TritiumError("E0117", "wrong")

        assert guarded(fail) == 1
        return capsys.readouterr().err

    assert "\033[" in shown(True, "")
    assert "\033[" not in shown(True, "1")
    assert "\033[" not in shown(False, "")


def test_a_debugger_that_is_quit(tmp_path: pathlib.Path) -> None:
    done = command("run", script(tmp_path, "breakpoint()\nprint('on')\n"), stdin="q\n")
    assert (done.returncode, done.stderr) == (1, "ended in the debugger\n")
    assert "on\n" not in done.stdout


def test_a_script_that_misses_its_gpu(tmp_path: pathlib.Path) -> None:
    path = script(tmp_path, "raise AssertionError('Torch not compiled with CUDA enabled')\n")
    assert "--device cpu" in command("run", path).stderr
    assert "--device cpu" not in command("run", "--device", "cpu", path).stderr


def test_a_script_that_is_no_python(tmp_path: pathlib.Path) -> None:
    path = script(tmp_path, "def f(:\n")
    plain = subprocess.run([sys.executable, path], capture_output=True, text=True)
    ended = command("run", path)
    assert (ended.returncode, ended.stderr) == (1, plain.stderr)


def test_wrong_use() -> None:
    for arguments in (["run"], ["run", "nothing.py"], ["run", "--device", "tpu", "x.py"], ["walk"]):
        assert invoke(*arguments).exit_code == 2
    misspelled = invoke("run", "--interpet", "script.py")
    assert misspelled.exit_code == 2
    assert "--interpet" in misspelled.output


def test_interpreted_kernels_are_python(tmp_path: pathlib.Path) -> None:
    text = """
    import numpy as np
    import triton, triton.language as tl
    seen = []
    @triton.jit
    def kernel(x_ptr):
        seen.append(int(tl.load(x_ptr)))
        tl.store(x_ptr, 5)
    x = np.array([3])
    kernel[(1,)](x)
    print(seen, x)
    """
    path = script(tmp_path, text)
    assert command("run", "--interpret", path).stdout == "[3] [5]\n"
    native = command("run", path)
    assert native.returncode == 1
    assert native.stderr.startswith("error[E0")
    fails = script(tmp_path, text.replace("seen.append(int(tl.load(x_ptr)))", "1 / 0"), "fails.py")
    failed = command("run", "--interpret", fails)
    assert failed.returncode == 1
    assert "error[E0701]: ZeroDivisionError" in failed.stderr


class TestGuide:
    """The guide's programs, as its reader starts them."""

    @pytest.fixture(autouse=True)
    def needs_torch(self) -> None:
        pytest.importorskip("torch", reason="the guide's programs use torch")

    def test_vector_add(self, tmp_path: pathlib.Path) -> None:
        lengths = [0, 1, 1023, 1024, 1025, 98_432, 10_000_000]
        program = str(GUIDE / "vector_add.py")
        done = command("run", program, "1000")
        assert done.stdout == "ok cpu 1000\n", done.stderr
        # The others in one process: loading torch takes seconds.
        text = f"""
        import runpy, sys
        for n in {lengths}:
            sys.argv[1:] = [str(n)]
            runpy.run_path({program!r})
        """
        done = command("run", script(tmp_path, text))
        assert done.stdout.splitlines() == [f"ok cpu {n}" for n in lengths], done.stderr

    def test_vector_add_interpreted(self) -> None:
        done = command("run", "--interpret", str(GUIDE / "vector_add.py"), "5000")
        assert done.stdout == "ok cpu 5000\n", done.stderr

    def test_breakpoint(self) -> None:
        done = command("run", str(GUIDE / "interpret.py"), stdin="p x\nc\n")
        assert re.search(r"interpret\.py\(1[67]\)add_kernel\(\)", done.stdout)
        assert "[0. 1. 2. 3. 4. 5. 6. 7.]" in done.stdout
        assert done.stdout.rstrip().endswith("[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]")

    def test_debug_helpers(self) -> None:
        done = command("run", str(GUIDE / "debug_helpers.py"), stdin="up\np x\nc\n")
        assert "double()" in done.stdout
        assert "[4. 5. 6. 7.]" in done.stdout
        assert re.findall(r"at \d \d", done.stdout) == ["at 1 1", "at 2 1"]
        assert done.stdout.rstrip().endswith("ok")


# ---- explain -------------------------------------------------------------------------------------

KERNEL = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, x * 2, mask=offs < n)

x = np.arange(5, dtype=np.float32)
scale[(1,)](x, 5, BLOCK=8)
scale[(1,)](x, 5, BLOCK=16)
print("done")
"""


@pytest.mark.parametrize(
    "stage, words", [("nests", "memory.store"), ("ttir", "func @scale"), ("asm", "scale.kernel:")]
)
def test_explain(tmp_path: pathlib.Path, stage: str, words: str) -> None:
    done = command("explain", "--stage", stage, script(tmp_path, KERNEL))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("done\n")
    assert done.stdout.count("==== scale(x_ptr: *fp32, n: i32, BLOCK = ") == 2
    assert done.stdout.count(words) >= 2


def test_explain_a_stage_that_kernels_of_the_cpu_do_not_have(tmp_path: pathlib.Path) -> None:
    done = command("explain", "--layout", script(tmp_path, KERNEL))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("compiled for cpu, it has no homes") == 2


def test_explain_for_a_gpu_that_is_not_there(tmp_path: pathlib.Path) -> None:
    done = command("explain", "--layout", "--target", "sm_90a", script(tmp_path, KERNEL))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("scale for sm_90a: 4 warps of 32 threads") == 2
    assert done.stdout.count("line 9   load ") == 2
    assert "cells: warp.lane:register" in done.stdout
    done = command("explain", "--stage", "ptx", "--target", "sm_80", script(tmp_path, KERNEL))
    assert done.stdout.count(".target sm_80") == 2
    done = command("explain", "--target", "sm_1", script(tmp_path, KERNEL))
    assert done.returncode == 2
    assert "name one of sm_75" in done.stderr


def test_explain_a_script_that_fails(tmp_path: pathlib.Path) -> None:
    done = command("explain", script(tmp_path, KERNEL + "1 / 0\n"))
    assert done.returncode == 1
    assert "==== scale" in done.stdout


# ---- doctor --------------------------------------------------------------------------------------


def test_doctor() -> None:
    done = invoke("doctor")
    assert done.exit_code == 0, done.output
    for words in (
        f"tritium {tritium.__version__}",
        "llvmlite",
        "LLVM",
        "vectors of",
        cache.folder(),
        "NVIDIA driver",
        " of the host: ",
        "natively: right",
        "in the interpreter: right",
        "cache.dir = ",
    ):
        assert words in done.output


def test_doctor_tells_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITIUM_CPU_FEATURES", "+sve,+amx-fp16,+neon")
    monkeypatch.setenv("TRITON_DEBUG", "perhaps")
    done = invoke("doctor")
    assert done.exit_code == 1
    assert "TRITON_DEBUG='perhaps' is not a boolean" in done.output
    assert "is not a CPU whose code runs here" in done.output


def test_doctor_tells_of_a_cache_that_can_not_be_written(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "can't be written" not in invoke("doctor").output
    asked = []

    def refuse(dir: str) -> Any:
        asked.append(dir)
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "a" / "b"))
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    done = invoke("doctor")
    assert done.exit_code == 0
    assert "can't be written, so that every process compiles anew: Read-only" in done.output
    assert asked == [str(tmp_path)]


# ---- cache ---------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("aa1", "aa2", "bb1"):
        cache.store(name, Entry({"kernel": f"kernel_{name}"}, {"object": b"\0" * 3000}))
    return tmp_path / "cache" / "kernels"


def test_cache_verbs(place: pathlib.Path) -> None:
    cache.store("aa1", Entry({"kernel": "kernel_aa1"}, {"ir": b""}), cache.MANIFEST_SUFFIX)
    size = invoke("cache", "size").output
    where = re.escape(str(place))
    assert re.fullmatch(rf"3 kernels, 1 manifest, 0 of the host: \d+ B in {where}\n", size)
    listed = [line.split() for line in invoke("cache", "list").output.splitlines()]
    assert [line[0] for line in listed] == ["aa1", "aa1", "aa2", "bb1"]
    assert [line[1] for line in listed] == ["kernel", "manifest", "kernel", "kernel"]
    assert all(line[-1] == f"kernel_{line[0]}" for line in listed)
    verified = invoke("cache", "verify")
    assert (verified.exit_code, verified.output) == (0, "4 entries whole, 0 damaged\n")
    (place / "aa2.kernel").write_bytes(b"broken")
    verified = invoke("cache", "verify")
    assert verified.exit_code == 1
    assert "3 entries whole, 1 damaged" in verified.output
    assert "damaged: aa2 (kernel)" in verified.output
    assert "damaged" in invoke("cache", "list").output
    repaired = invoke("cache", "verify", "--repair")
    assert repaired.exit_code == 0
    assert invoke("cache", "verify").output == "3 entries whole, 0 damaged\n"
    assert invoke("cache", "clear", "bb").output == f"removed 1 entry from {place}\n"
    assert invoke("cache", "clear", "kernel_aa1").output == f"removed 2 entries from {place}\n"
    assert invoke("cache", "clear").output == f"removed 0 entries from {place}\n"
    unknown = invoke("cache", "clear", "nosuch")
    assert (unknown.exit_code, unknown.output) == (1, "Error: no entry is named nosuch\n")
    assert list(place.iterdir()) == []
    assert invoke("cache", "size").output.startswith("0 kernels, 0 manifests, 0 of the host: 0 B")


def test_an_entry_of_another_version_is_not_called_damaged(place: pathlib.Path) -> None:
    (place / "aa2.kernel").write_bytes(b"tritium kernel 1\nas it was then")
    verified = invoke("cache", "verify", "--repair")
    whole = "2 entries whole, 0 damaged, 1 of another version\n"
    assert (verified.exit_code, verified.output) == (0, whole)
    assert invoke("cache", "list").output.count("of another version") == 1
    assert (place / "aa2.kernel").exists()


def test_doctor_goes_on_after_a_wrong_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITIUM_NUM_THREADS", "abc")
    told = invoke("doctor").output
    assert "the number of threads is unknown: TRITIUM_NUM_THREADS='abc'" in told
    assert "Options that are set" in told
    assert "Check" in told


def test_cache_prune(place: pathlib.Path) -> None:
    for age, name in enumerate(("aa2", "bb1", "aa1")):
        os.utime(place / f"{name}.kernel", (1e9 - age, 1e9 - age))
    length = (place / "aa2.kernel").stat().st_size
    assert invoke("cache", "prune", "1MB").output == f"removed 0 entries, {3 * length} B left\n"
    assert invoke("cache", "prune", f"{2 * length}").output.startswith("removed 1 entry")
    assert sorted(each.name for each in place.iterdir()) == ["aa2.kernel", "bb1.kernel"]
    assert invoke("cache", "prune", "0.2k").output.startswith("removed 1 entry")
    assert invoke("cache", "prune", "0").output == "removed 1 entry, 0 B left\n"
    for wrong in ("much", "-1", "1TBB", ""):
        assert invoke("cache", "prune", "--", wrong).exit_code == 2


def test_cache_verbs_without_a_cache(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "none"))
    assert invoke("cache", "size").output.startswith("0 kernels")
    assert invoke("cache", "list").output == ""
    cleared = f"removed 0 entries from {tmp_path / 'none' / 'kernels'}\n"
    assert invoke("cache", "clear").output == cleared
    assert not (tmp_path / "none").exists()


def test_a_cache_that_can_not_be_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "file"))
    done = invoke("cache", "list")
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")


def test_a_listing_that_is_not_read_to_its_end(
    place: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("tritium.cli.cache.click.echo", closed)
    assert "Error" not in invoke("cache", "list").output


# ---- demo ----------------------------------------------------------------------------------------


def test_demo_without_torch(tmp_path: pathlib.Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('torch was imported')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = command("demo", "--scale", "40", env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    for kernel in ("vector add", "fused gelu", "row softmax", "layer norm", "matmul"):
        assert re.search(rf"{kernel} .* ok \S+ +\d+ ms", done.stdout), done.stdout
    assert "Where to go next" in done.stdout
    assert "…" not in done.stdout


def test_demo_tells_how_the_command_is_found(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tritium.cli import demo

    monkeypatch.chdir(tmp_path)
    (tmp_path / "my env" / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "my env"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my env" / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo._activation() == "", "no script to name"
    (tmp_path / "my env" / "bin" / "activate").write_text("")
    assert demo._activation().startswith("  . 'my env/bin/activate'  ")
    (tmp_path / "my env" / "bin" / "tritium").write_text("")
    (tmp_path / "my env" / "bin" / "tritium").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "my env" / "bin"))
    assert demo._activation() == "", "it is found"


def test_demo_falls_back_to_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    from tritium.cli import demo

    calls = []

    def launch() -> None:
        calls.append(knobs.runtime.interpret)
        if not knobs.runtime.interpret:
            raise RuntimeError("no such instruction\nmore")

    import numpy as np

    case = demo.Case("one", "1", np.zeros(3), launch, lambda dtype: np.zeros(3, dtype), 1e-6)
    wrong: list[str] = []
    assert demo._row(case, wrong) == ["one", "1", "not compiled"]
    first, second = wrong[0].split("; ")
    assert first == "one could not be compiled for this CPU: no such instruction"
    assert second == "in the interpreter its error is 0.0e+00"
    assert calls == [False, True]


def test_help_and_version() -> None:
    assert tritium.__version__ in invoke("--version").output
    shown = invoke("-h").output
    for verb in ("cache", "demo", "doctor", "explain", "run"):
        assert verb in shown
        assert invoke(verb, "-h").exit_code == 0
