"""Lowerings that every backend shares. Importing the package fills the table of rules."""

from __future__ import annotations

from . import arith, cast, compare, logic, math, select

__all__ = ["arith", "cast", "compare", "logic", "math", "select"]
