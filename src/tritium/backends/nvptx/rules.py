"""Lowering rules of NVIDIA GPUs, tried before the common ones."""

from __future__ import annotations

from tritium.backends.common.rules import Rule
from tritium.ir.core import Op

NVPTX: dict[type[Op], Rule] = {}
"""Rules by class of operation."""
