from __future__ import annotations

import importlib
import os
import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

import tritium
from tritium import compat
from tritium.diagnostics import TritiumError


@pytest.fixture
def alias() -> Iterator[None]:
    """The alias, in this process, for one test."""
    before = compat.installed()
    compat.install()
    yield
    if not before:
        compat.uninstall()


def run(script: str, tmp_path: pathlib.Path, *options: str, **environment: str) -> str:
    """What a script prints under ``tritium run``."""
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(script))
    done = subprocess.run(
        [sys.executable, "-m", "tritium", "run", *options, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("alias")
def test_the_modules_of_the_alias() -> None:
    triton = importlib.import_module("triton")
    assert triton.__version__ == compat.TRITON_VERSION == "3.9.0"
    assert triton.language is importlib.import_module("triton.language") is tritium.language
    assert tritium.language.__name__ == "tritium.language"
    assert tritium.language.__spec__.name == "tritium.language"
    for name in triton.__all__:
        assert getattr(triton, name) is not None
    assert triton.cdiv(7, 2) == 4
    assert triton.Config is tritium.Config
    assert issubclass(triton.CompilationError, triton.TritonError)
    for name, errors in {
        "triton.errors": "TritonError",
        "triton.compiler.errors": "CompilationError CompileTimeAssertionFailure",
        "triton.runtime.errors": "OutOfResources PTXASError AutotunerError InterpreterError",
        "triton.runtime": "driver Autotuner Heuristics Config JITFunction KernelInterface",
        "triton.runtime.jit": "JITFunction KernelParam TensorWrapper reinterpret MockTensor jit",
        "triton.runtime.autotuner": "Autotuner Heuristics Config OutOfResources",
        "triton.runtime.driver": "active driver",
        "triton.compiler": "CompiledKernel CompilationError LazyDict",
        "triton.compiler.compiler": "CompiledKernel",
        "triton.backends.compiler": "GPUTarget",
        "triton.knobs": "runtime cache compilation autotuning language",
        "triton.tools.tensor_descriptor": "TensorDescriptor",
        "triton.language.core": "constexpr tensor dtype",
    }.items():
        module = importlib.import_module(name)
        for each in errors.split():
            assert hasattr(module, each), (name, each)
    assert triton.runtime.driver.active.get_current_target().backend == "cpu"
    assert triton.knobs is tritium.knobs
    assert "jit" in dir(triton)


@pytest.mark.usefixtures("alias")
def test_what_is_missing_is_named() -> None:
    with pytest.raises(ImportError, match=r"triton.experimental is not part of Tritium"):
        importlib.import_module("triton.experimental.gluon")
    with pytest.raises(ImportError, match=r"triton.language.extra.libdevice is not part|extra"):
        importlib.import_module("triton.language.extra.libdevice")
    triton = importlib.import_module("triton")
    assert not hasattr(triton, "set_allocator")
    with pytest.raises(AttributeError, match=r"triton.set_allocator is not part of Tritium"):
        _ = triton.set_allocator
    with pytest.raises(ImportError, match="make_backend"):
        exec("from triton.compiler import make_backend")


def test_taking_the_alias_away() -> None:
    if compat.installed():
        pytest.skip("the alias serves this whole process")
    compat.install()
    compat.install()
    importlib.import_module("triton.language")
    assert compat.installed()
    compat.uninstall()
    assert not compat.installed()
    assert not [name for name in sys.modules if name.partition(".")[0] == "triton"]
    assert sys.modules["tritium.language"] is tritium.language


REAL = """
raise ImportError("the installed triton was imported")
"""


def test_an_installed_triton_is_left_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "site" / "triton" / "language").mkdir(parents=True)
    (tmp_path / "site" / "triton" / "__init__.py").write_text("__version__ = '2.0.0'\n")
    (tmp_path / "site" / "triton" / "testing.py").write_text(REAL)
    script = """
    import triton, triton.language as tl
    print(triton.__version__)
    try:
        import triton.testing
    except ImportError as problem:
        print(problem)
    """
    out = run(script, tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert out.splitlines()[0] == "3.9.0"
    assert "triton.testing is not part of Tritium" in out
    late = "import triton, tritium.compat\ntritium.compat.install()"
    done = subprocess.run(
        [sys.executable, "-c", late],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )
    assert "E0802" in done.stderr


KERNEL = """
import numpy as np
import triton
import triton.language as tl

FACTOR = tl.constexpr(2)

@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, x * FACTOR, mask=offs < n)

x = np.arange(5, dtype=np.float32)
scale[(1,)](x, 5, BLOCK=8)
print(x.tolist())
"""


def test_a_global_that_changes_is_an_error_as_in_triton(tmp_path: pathlib.Path) -> None:
    change = """
FACTOR = tl.constexpr(3)
try:
    scale[(1,)](x, 5, BLOCK=8)
except RuntimeError as problem:
    print("FACTOR" in str(problem))
print(x.tolist())
"""
    out = run(KERNEL + change, tmp_path).splitlines()
    assert out == ["[0.0, 2.0, 4.0, 6.0, 8.0]", "True", "[0.0, 2.0, 4.0, 6.0, 8.0]"]


@pytest.mark.usefixtures("alias")
def test_the_decorator_of_the_alias() -> None:
    triton = importlib.import_module("triton")

    def kernel(x):
        pass

    assert triton.jit(kernel).frozen_globals
    assert triton.jit(debug=True)(kernel).frozen_globals
    assert not tritium.jit(kernel).frozen_globals


def test_the_pytest_plugin(tmp_path: pathlib.Path) -> None:
    (tmp_path / "conftest.py").write_text("import triton\n")
    (tmp_path / "test_kernel.py").write_text(
        KERNEL
        + "from tritium import knobs\ndef test_scale():\n    assert x.tolist() == [0, 2, 4, 6, 8]\n"
        "def test_interpreted():\n    assert scale[(1,)](x, 5, BLOCK=8) is None\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tritium.compat.pytest", str(tmp_path)]
    for options, outcome in (([], "1 failed, 1 passed"), (["--tritium-interpret"], "2 passed")):
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider", *options],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
        )
        assert "triton: Tritium" in done.stdout
        assert outcome in done.stdout


def test_the_error_when_another_triton_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", sys)
    with pytest.raises(TritiumError) as caught:
        compat.install()
    assert caught.value.code == "E0802"
