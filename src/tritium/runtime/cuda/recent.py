"""What was launched on GPUs last: a device says only later that a kernel has failed.

Native launches note themselves in the same memory.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from tritium.backends.host.layout import WORD, Recent


class Launched(NamedTuple):
    """A kernel's name, and where it is defined."""

    name: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.name} ({self.file}:{self.line})"


_memory = (ctypes.c_uint64 * (Recent.SIZE // WORD))()
ADDRESS = ctypes.addressof(_memory)
"""Of the memory that ``layout.Recent`` describes."""
_kernels: list[Launched] = []


def number(kernel: Launched) -> int:
    """A number for a kernel, from 1 on."""
    _kernels.append(kernel)
    return len(_kernels)


def note(number: int) -> None:
    """Note that the kernel of that number is launched."""
    count = _memory[Recent.COUNT // WORD]
    _memory[Recent.NUMBERS // WORD + count % Recent.MOST] = number
    _memory[Recent.COUNT // WORD] = count + 1


def launched() -> list[Launched]:
    """Each kernel that was launched lately, once, the last one first."""
    count = _memory[Recent.COUNT // WORD]
    numbers = (
        _memory[Recent.NUMBERS // WORD + at % Recent.MOST]
        for at in range(count - 1, max(-1, count - 1 - Recent.MOST), -1)
    )
    return [_kernels[each - 1] for each in dict.fromkeys(numbers)]
