"""Processes that a script starts afresh: ``import triton`` means Tritium there too.

A forked child has everything its parent has. One that is spawned, or comes from a fork server,
imports the script again, so it must find the alias before that: it is set up where the child reads
what its parent tells it of the script.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .after_import import after_import


def follow() -> None:
    """Have ``multiprocessing`` set up the children of this process as long as the alias is there.

    What the environment says of ``knobs`` they inherit anyway.
    """
    after_import("multiprocessing.spawn", _patch)


class _Setup:
    """Sets a child up when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        device = sys.modules["tritium.compat.device"]
        return _set_up, (device.mapped(),)


def _set_up(maps_cuda: bool) -> None:
    from . import install, map_cuda_to_cpu

    install()
    if maps_cuda:
        map_cuda_to_cpu()


def _patch(spawn: ModuleType) -> None:
    told: Any = spawn.get_preparation_data
    if getattr(told, "is_tritium", False):
        return

    def get_preparation_data(name: str) -> dict[str, Any]:
        from . import installed

        data: dict[str, Any] = told(name)
        # Python leaves entries alone that it doesn't know.
        return {**data, "tritium": _Setup()} if installed() else data

    get_preparation_data.is_tritium = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = get_preparation_data  # type: ignore[attr-defined]
