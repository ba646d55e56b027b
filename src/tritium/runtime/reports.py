"""What compiled code on the CPU prints, and which of its checks have failed."""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tritium.backends.host.layout import REPORT
from tritium.diagnostics import Loc
from tritium.ir.dtypes import from_name, int8
from tritium.ir.types import PointerType
from tritium.ops import report

_NUMBERS = itertools.count(1)
_PROBLEMS: dict[int, list[BaseException]] = {}
"""What has gone wrong in the launches that are running, by their numbers."""


@contextmanager
def raising() -> Iterator[int]:
    """Gives the number of a launch, which its code tells; raises afterwards its first problem.

    That stands for an error of the launch itself, which it may have led to. An interrupt comes
    before all problems, wherever in the launch it came.
    """
    number = next(_NUMBERS)
    problems = _PROBLEMS[number] = []
    try:
        yield number
    except Exception:
        if problems:
            raise _gravest(problems) from None
        raise
    finally:
        del _PROBLEMS[number]
    if problems:
        raise _gravest(problems)


def _gravest(problems: list[BaseException]) -> BaseException:
    return min(problems, key=_is_error)


def _is_error(problem: BaseException) -> bool:
    """Not an interrupt, or another reason to end the program."""
    return isinstance(problem, Exception)


@functools.lru_cache(maxsize=1024)
def _described(text: bytes) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(text)
    told["types"] = [from_name(name) if name else PointerType(int8) for name, _ in told["operands"]]
    return told


def _arrays(told: dict[str, Any], values: int) -> list[Any]:
    from tritium.interp.memory import window

    count = len(told["types"])
    addresses = (ctypes.c_uint64 * count).from_address(values) if count else ()
    arrays = []
    for address, scalar, (_, shape) in zip(addresses, told["types"], told["operands"]):
        elements = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.array(window(address, elements, scalar.numpy)).reshape(shape))
    return arrays


def _report(launch: int, what: int, size: int, x: int, y: int, z: int, values: int) -> None:
    problem: BaseException | None
    try:
        if not all(map(_is_error, _PROBLEMS[launch])):
            # It is to end soon, however much it has to say.
            return
        told = _described(ctypes.string_at(what, size))
        arrays = _arrays(told, values)
        if "message" not in told:
            lines = report.printed((x, y, z), told["prefix"], told["hex"], told["types"], arrays)
            sys.stdout.write(lines)
            return
        file, line, function = told.get("place", ("", 0, ""))
        loc = Loc(file, line, function=function) if file else None
        mask = arrays[1] if len(arrays) > 1 else None
        problem = report.failure((x, y, z), told["message"], arrays[0], mask, loc)
    except BaseException as fault:  # noqa: BLE001 - raised by the launch
        problem = fault
    if problem is not None:
        _PROBLEMS[launch].append(problem)


_CALLBACK = ctypes.CFUNCTYPE(
    None,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    *(ctypes.c_int32 for _ in range(3)),
    ctypes.c_void_p,
)(_report)


def imports() -> dict[str, int]:
    """What an object file that prints or checks is linked with."""
    address = ctypes.cast(_CALLBACK, ctypes.c_void_p).value
    assert address is not None
    return {REPORT: address}
