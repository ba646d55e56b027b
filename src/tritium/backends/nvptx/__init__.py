"""The NVIDIA backend: who holds which element of a tile, and how elements change hands."""

from __future__ import annotations
