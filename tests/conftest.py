"""What every test gets: a cache of its own, a clean environment, the profile, the gpu mark."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import signal
import tempfile
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from tests import counts, crashes

from tritium import knobs
from tritium.diagnostics import forget_warnings

hypothesis.settings.register_profile(
    "tritium",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tritium")


def is_knob(name: str) -> bool:
    return name.startswith(("TRITON_", "TRITIUM_"))


# Before any test module is imported: what the caller's shell sets must not change a result. One
# that has started this in the background has it ignore Ctrl-C, which tests press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for variable in filter(is_knob, list(os.environ)):
    del os.environ[variable]


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each test process compiles into a cache of its own, starting empty, and verifies all IR."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITIUM_VERIFY", "1")
        patch.setenv("TRITIUM_CACHE_DIR", str(tmp_path_factory.mktemp("tritium-cache")))
        yield


@pytest.fixture(autouse=True)
def knob_environment(session_cache: None) -> Iterator[None]:
    """Undoes what a test, or a script it ran in this process, did to options and warnings."""
    before = {name: value for name, value in os.environ.items() if is_knob(name)}
    yield
    for group in knobs.GROUPS:
        group.reset()
    forget_warnings()
    for name in [name for name in os.environ if is_knob(name) and name not in before]:
        del os.environ[name]
    os.environ.update(before)


@functools.cache
def why_no_gpu() -> str | None:
    """The reason CUDA can't be used here, or None; asks the driver itself, no package needed."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1) on this machine"
    if status := driver.cuInit(0):
        return f"the NVIDIA driver doesn't start: cuInit returned {status}"
    count = ctypes.c_int(0)
    if status := driver.cuDeviceGetCount(ctypes.byref(count)):
        return f"the NVIDIA driver lists no devices: cuDeviceGetCount returned {status}"
    return None if count.value else "the NVIDIA driver finds no GPU"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and (reason := why_no_gpu()):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {reason}"))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each process that runs tests where to leave the traceback of its end."""
    node.workerinput["crashes"] = _crash_folder()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if told := getattr(config, "workerinput", None):
        crashes.watch(told["crashes"], told["workerid"])


@functools.cache
def _crash_folder() -> str:
    folder = tempfile.TemporaryDirectory(prefix="tritium-crashes-")
    atexit.register(folder.cleanup)
    return folder.name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where processes died; what tests counted, in whichever process they ran."""
    from tests.fuzz import tally

    told = {
        "test processes that died": crashes.left(_crash_folder()),
        "random tile programs": tally.lines(_recorded(terminalreporter, "random programs")),
        counts.PROPERTY: counts.lines(_recorded(terminalreporter, counts.PROPERTY)),
    }
    for title, lines in told.items():
        if lines:
            terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(line)


def _recorded(terminalreporter: pytest.TerminalReporter, name: str) -> list[Any]:
    """What the tests that ran have recorded under a name."""
    return [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for key, value in getattr(report, "user_properties", ())
        if key == name and report.when == "call"
    ]
