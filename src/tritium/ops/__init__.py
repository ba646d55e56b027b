"""The operations, one module a family: meaning, type rule, tests and surface function together.

``families`` imports them all.
"""

from __future__ import annotations
