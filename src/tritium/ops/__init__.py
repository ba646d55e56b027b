"""The operations, one module a family: meaning, type rule, tests and surface function together.

Importing this package registers them all.
"""

from __future__ import annotations

from . import families

__all__ = ["families"]
