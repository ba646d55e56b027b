"""Tiles of more elements a thread than are worked on at once: trips through their registers.

The highest register bits become an input of their own, ``TRIP``, whose value is known at run time.
It is a place like lanes and warps are: what operations do to layouts, padding and vectors need no
further rule.
"""

from __future__ import annotations

from functools import lru_cache

from . import f2
from .dims import REGISTER, TRIP, log2
from .linear import LinearLayout


def in_trips(layout: LinearLayout | None) -> bool:
    """Whether a layout counts trips; it does so last."""
    return layout is not None and bool(layout.inputs) and layout.inputs[-1][0] == TRIP


def split(layout: LinearLayout, most: int, each: int) -> LinearLayout:
    """A layout of more than ``most`` registers in trips of ``each`` of them, a power of two."""
    registers = layout.bases(REGISTER)
    if in_trips(layout) or 1 << len(registers) <= most:
        return layout
    low = log2(each)
    short = layout.with_bases(REGISTER, registers[:low])
    return LinearLayout((*short.inputs, (TRIP, registers[low:])), short.outputs)


@lru_cache(maxsize=1024)
def whole(layout: LinearLayout) -> tuple[LinearLayout, tuple[int, ...]]:
    """The layout in which a thread has the elements of all trips, and for each bit of the trip the
    register bits that it changes there.

    The registers of one trip are the lowest ones. Trips of the same elements are one.
    """
    if not in_trips(layout):
        return layout, ()
    trips = layout.bases(TRIP)
    bases = list(layout.bases(REGISTER))
    held = f2.Span(bases)
    bases += [basis for basis in trips if held.add(basis)]
    span = f2.Span(bases)
    columns = tuple(span.reduce(basis)[1] for basis in trips)
    short = layout.keep_inputs(layout.input_names[:-1])
    return short.with_bases(REGISTER, bases), columns
