"""How long calls take: ``do_bench``."""

from __future__ import annotations

from .timing import do_bench, waiting_for

__all__ = ["do_bench", "waiting_for"]
