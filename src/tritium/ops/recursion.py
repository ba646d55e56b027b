"""Python's limit of recursion, raised while the syntax tree of a kernel is walked."""

from __future__ import annotations

import sys
import threading

RECURSION_LIMIT = 10_000
"""Python frames: expressions may be long, and kernel functions may call one another deeply."""


class DeepRecursion:
    """Raises Python's recursion limit while at least one thread is inside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, RECURSION_LIMIT))
            self._users += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setrecursionlimit(self._before)


deep_recursion = DeepRecursion()
