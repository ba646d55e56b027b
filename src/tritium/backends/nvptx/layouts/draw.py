"""Layouts as text: who holds what."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from .dims import BLOCK, LANE, OFFSET, REGISTER, WARP
from .extents import Extents
from .linear import LinearLayout

_ROWS = 32
_COLUMNS = 16
_TABLES = 4


def draw(
    layout: LinearLayout, shape: Sequence[int], rows: int = _ROWS, columns: int = _COLUMNS
) -> str:
    """A table of the elements of a tile and who holds them; ``shape`` is the logical one.

    A cell says ``lane:register``, with the warp and the block before it where there are several
    (``warp.lane:register``). Neighbours in successive registers of a thread share a cell:
    ``3:0-3``. Where an element is held in several places, the first is named, and the line above
    the table says how many there are. Padding stands in parentheses. A layout of shared memory
    shows offsets.

    The last axis runs to the right and the one before it down; with more, there is a table for each
    index of the others. At most ``rows`` rows and ``columns`` cells of each are drawn, of the first
    tables. A tile with one axis fills lines of half as many cells.

    Raises ``ValueError`` if the layout isn't one of the shape's physical extents, or has positions
    that nobody holds.
    """
    extents = Extents(tuple(shape))
    if layout.shape != extents.physical:
        raise ValueError(f"a layout of {extents.physical} is needed, got one of {layout.shape}")
    lines = list(_heading(layout, extents))
    outer = [range(extent) for extent in layout.shape[:-2]]
    for number, index in enumerate(itertools.product(*outer)):
        if number == _TABLES:
            lines.append("...")
            break
        if index:
            lines.append(f"[{', '.join(map(str, index))}, :, :]")
        lines += _table(layout, extents, index, rows, columns)
    return "\n".join(lines)


def _heading(layout: LinearLayout, extents: Extents) -> Iterator[str]:
    padded = f" in {_times(extents.physical)}" if extents.is_padded else ""
    counts = [f"{1 << len(bases)} {name}s" for name, bases in layout.inputs if bases]
    copies = 1 << (layout.total_input_bits - layout.rank)
    each = f", each element in {copies} places" if copies > 1 else ""
    held = " x ".join(counts) or "one place"
    yield f"{_times(extents.logical)} elements{padded}; {held}{each}"
    if layout.input_names == (OFFSET,):
        yield "cells: offset"
    else:
        yield f"cells: {'.'.join([*_outer(layout), LANE])}:{REGISTER}"


def _times(extents: Sequence[int]) -> str:
    return " x ".join(map(str, extents)) or "1"


def _outer(layout: LinearLayout) -> list[str]:
    """The inputs that a cell names before the lane."""
    return [name for name in (BLOCK, WARP) if layout.bases(name)]


def _run(layout: LinearLayout, extents: Extents) -> int:
    """How many neighbours share a cell: they are in successive places of one thread, everywhere."""
    inner, last = layout.input_names[0], layout.output_names[-1]
    run = 1
    while extents.logical[-1] % (2 * run) == 0 and layout.divide_left(
        LinearLayout.identity(2 * run, inner, last)
    ):
        run *= 2
    return run


def _table(
    layout: LinearLayout, extents: Extents, index: tuple[int, ...], rows: int, columns: int
) -> list[str]:
    """The lines for the last two axes, or the only one, the others at ``index``."""
    run = _run(layout, extents)
    places = layout.inverse()
    starts = range(0, layout.shape[-1], run)
    if len(layout.shape) == 1:
        columns = max(1, columns // 2)
        drawn = []
        wanted = [(starts[i : i + columns], index) for i in range(0, len(starts), columns)]
    else:
        drawn = [["", *(str(start) for start in starts[:columns])]]
        wanted = [(starts[:columns], (*index, row)) for row in range(layout.shape[-2])]
    for line, before in wanted[:rows]:
        cells = (_cell(layout, places, extents, (*before, start), run) for start in line)
        drawn.append([str(before[-1] if before else line[0]), *cells])
    if len(layout.shape) > 1 and len(starts) > columns:
        drawn = [[*cells, "..."] for cells in drawn]
    widths = [max(map(len, column)) for column in itertools.zip_longest(*drawn, fillvalue="")]
    made = ["  ".join(map(str.rjust, cells, widths)).rstrip() for cells in drawn]
    return [*made, "..."] if len(wanted) > rows else made


def _cell(
    layout: LinearLayout,
    places: LinearLayout,
    extents: Extents,
    position: tuple[int, ...],
    run: int,
) -> str:
    """The first holder of the ``run`` elements from a position on."""
    place = dict(zip(places.output_names, places(**dict(zip(layout.output_names, position)))))
    inner = place[layout.input_names[0]]
    text = f"{inner}-{inner + run - 1}" if run > 1 else str(inner)
    if layout.input_names != (OFFSET,):
        threads = (place.get(name, 0) for name in (*_outer(layout), LANE))
        text = f"{'.'.join(map(str, threads))}:{text}"
    return text if extents.contains(position) else f"({text})"
