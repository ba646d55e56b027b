"""The device, the compilers, and the count of the cases that ran."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import pytest
from tests.backends.nvptx.gpu.compiling import (
    Farm,
    compile_batch,
    importable,
    in_process,
    processors,
)
from tests.backends.nvptx.gpu.device import Device
from tests.backends.nvptx.gpu.running import COUNTED

from tritium.backends.nvptx.target import gpu_target


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    """The first GPU, behind a process."""
    made = Device()
    yield made
    made.close()


@pytest.fixture(scope="session")
def farm(request: pytest.FixtureRequest, device: Device) -> Iterator[Farm]:
    """Compiles for the device; ahead of the tests where these run in one process."""
    arch = gpu_target(device.capability).arch
    batches = [
        item.callspec.params["batch"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and "farm" in item.fixturenames
        and "batch" in getattr(item, "callspec", _Nothing).params
    ]
    ahead = batches if "PYTEST_XDIST_WORKER" not in os.environ else []
    compile_one = functools.partial(in_process, compile_batch)
    with importable():
        made = Farm(ahead, processors(), lambda batch: compile_one(batch, arch))
        yield made
        made.close()


class _Nothing:
    params: dict[str, object] = {}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many cases ran as kernels, on what."""
    counted: dict[str, int] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name.startswith(COUNTED) and report.when == "call":
                    counted[name] = counted.get(name, 0) + value
    for name, value in sorted(counted.items()):
        terminalreporter.write_line(f"{name}: {value}")
