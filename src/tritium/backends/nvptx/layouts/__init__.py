"""Linear layouts."""

from __future__ import annotations
