"""The assumptions under which a loop's body is written."""

from __future__ import annotations

import enum


class Mode(enum.Enum):
    """Which assumptions the code being written may make."""

    INTERIOR = "interior"
    BOUNDARY = "boundary"
    GENERIC = "generic"
