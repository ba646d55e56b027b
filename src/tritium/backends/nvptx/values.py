"""What a value is while a kernel is written."""

from __future__ import annotations

from dataclasses import dataclass

from tritium.backends.emit import V, pointer
from tritium.ir.dtypes import Type

from .layouts import LinearLayout

GLOBAL = pointer(1)
"""Pointers to the user's memory, as instructions take them."""


@dataclass(frozen=True, eq=False)
class Held:
    """A tile in the registers of a block's threads.

    ``type`` has the logical shape, ``layout`` the physical one; it maps register, lane and warp to
    the axes. ``registers`` has one LLVM scalar (``common.rules.register_type``) for each register
    of a thread, None where it is padding in every thread. What a thread's register holds where it
    is padding in that thread alone is nobody's to rely on. Scalars are no ``Held`` but a ``V``, the
    same in all threads.
    """

    type: Type
    layout: LinearLayout
    registers: tuple[V | None, ...]


@dataclass(frozen=True)
class Threads:
    """Which thread of the block this is, as i32: ``thread`` is ``warp * 32 + lane``."""

    thread: V
    lane: V
    warp: V
