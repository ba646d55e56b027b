"""The rules of ``canonicalize``, by what they look at."""

from __future__ import annotations

from . import arith, constants, control, shape, splat
from .base import RULES, Rewrite, Rule, rule

__all__ = ["RULES", "Rewrite", "Rule", "arith", "constants", "control", "rule", "shape", "splat"]
