"""The plugin of ``pytest -p tritium.compat.pytest``: tests that import triton test Tritium."""

from __future__ import annotations

import pytest

import tritium
from tritium import knobs

from .alias import TRITON_VERSION, install
from .device import map_cuda_to_cpu

# A conftest.py may import triton, and is loaded after this.
install()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of ``tritium run``."""
    group = parser.getgroup("tritium")
    group.addoption(
        "--tritium-device",
        choices=["cpu"],
        help="cpu: what the tests put on the device cuda is on the CPU",
    )
    group.addoption(
        "--tritium-interpret", action="store_true", help="run kernels step by step as Python"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Carry the options out."""
    if config.getoption("--tritium-device") == "cpu":
        map_cuda_to_cpu()
    if config.getoption("--tritium-interpret"):
        knobs.runtime.interpret = True


def pytest_report_header(config: pytest.Config) -> str:
    """A line that says what triton is here."""
    return f"triton: Tritium {tritium.__version__}, as triton {TRITON_VERSION}"
