"""The sizes of the CPU's caches, as Linux tells them of the first core."""

from __future__ import annotations

import os
from functools import cache

_FOLDER = "/sys/devices/system/cpu/cpu0/cache"
CORE_CACHE = 1 << 20
"""Bytes of a core's L2 cache where the system doesn't tell."""
LAST_LEVEL_CACHE = 32 << 20
"""Bytes of last level cache where the system doesn't tell."""


def core_cache() -> int:
    """Bytes of L2 cache of one core."""
    return _sizes(_FOLDER).get(2, CORE_CACHE)


def last_level_cache() -> int:
    """Bytes of the largest cache."""
    return max(_sizes(_FOLDER).values(), default=LAST_LEVEL_CACHE)


@cache
def _sizes(folder: str) -> dict[int, int]:
    """Bytes by level, of the larger where there are two; what can't be read is left out."""
    sizes: dict[int, int] = {}
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return sizes
    for name in names:
        try:
            level, size = (_line(folder, name, field) for field in ("level", "size"))
        except OSError:
            continue
        if level.isdigit() and size.endswith("K") and size[:-1].isdigit():
            sizes[int(level)] = max(sizes.get(int(level), 0), int(size[:-1]) << 10)
    return sizes


def _line(*path: str) -> str:
    with open(os.path.join(*path), encoding="ascii") as file:
        return file.read().strip()
