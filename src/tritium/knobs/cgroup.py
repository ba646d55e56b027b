"""How many CPUs a control group of Linux allows."""

from __future__ import annotations

import functools
import math
import os


@functools.cache
def cgroup_cpus(membership: str, root: str) -> float:
    """The CPUs that ``cpu.max`` allows to the process's cgroup and those above it; else infinity.

    ``membership`` is the file that names the cgroup, ``root`` where version 2 cgroups are mounted.
    """
    try:
        with open(membership, encoding="utf-8") as file:
            paths = [line.strip()[3:] for line in file if line.startswith("0::")]
    except OSError:
        return math.inf
    least = math.inf
    for path in paths:
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(parts) + 1):
            least = min(least, _quota(os.path.join(root, *parts[:depth], "cpu.max")))
    return least


def _quota(file: str) -> float:
    try:
        with open(file, encoding="utf-8") as stream:
            quota, period = stream.read().split()
    except (OSError, ValueError):
        # The root cgroup has no such file.
        return math.inf
    return math.inf if quota == "max" else int(quota) / int(period)
