"""Choosing among configurations of a kernel: ``Config``, ``heuristics``, ``autotune``."""

from __future__ import annotations

from .autotuner import Autotuner, autotune
from .config import Config
from .heuristics import Heuristics, heuristics

__all__ = ["Autotuner", "Config", "Heuristics", "autotune", "heuristics"]
