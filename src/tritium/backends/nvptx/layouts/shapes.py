"""What operations that move no data do to the layout of a tile: only positions get other names.

Every layout here maps places (``dims.PLACES``) to the axes ``dim0``, ``dim1``, ... of a tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from .dims import REGISTER, axes, axis
from .linear import LinearLayout


def _renumber(layout: LinearLayout) -> LinearLayout:
    """Outputs named by their position again."""
    outputs = tuple((axis(number), width) for number, (_, width) in enumerate(layout.outputs))
    return LinearLayout(layout.inputs, outputs)


def transpose(layout: LinearLayout, order: Sequence[int]) -> LinearLayout:
    """Axis i of the result is axis ``order[i]`` of the operand.

    Raises ``ValueError`` unless ``order`` names every axis once.
    """
    return _renumber(layout.order_outputs([axis(number) for number in order]))


def reshape(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """The elements in row-major order under another shape of powers of two.

    For extents that are no powers of two, ask ``extents.reshape_keeps_index`` first. Raises
    ``ValueError`` unless both shapes have as many elements.
    """
    outputs = axes(shape)
    return layout.reshape_outputs({name: 1 << width for name, width in outputs})


def expand_dims(layout: LinearLayout, number: int) -> LinearLayout:
    """A new axis of extent 1 before axis ``number``."""
    outputs = list(layout.outputs)
    outputs.insert(number, ("new", 0))
    return _renumber(LinearLayout(layout.inputs, tuple(outputs)))


def slice_axis(layout: LinearLayout, number: int) -> LinearLayout:
    """Without axis ``number``: where a reduction along it leaves its result.

    Lanes and warps along the axis then hold copies; registers along it are merged into one.
    """
    names = [name for name in layout.output_names if name != axis(number)]
    return _renumber(layout.keep_outputs(names)).without_copies(REGISTER)


def broadcast(layout: LinearLayout, number: int, extent: int) -> LinearLayout:
    """Axis ``number``, of extent 1, repeated ``extent`` times, in new registers of each thread.

    The new registers count above those that were there. Raises ``ValueError`` if the axis has
    another extent.
    """
    name = axis(number)
    if layout.output_extent(name) != 1:
        raise ValueError(f"{name} has the extent {layout.output_extent(name)}, not 1")
    return layout * LinearLayout.identity(extent, REGISTER, name)


def join(layout: LinearLayout) -> LinearLayout:
    """A new last axis of extent 2 that tells two operands apart, as the lowest register bit."""
    name = axis(len(layout.outputs))
    pair = LinearLayout.identity(2, REGISTER, name)
    names = [*layout.output_names, name]
    return (pair * layout).order_outputs(names).order_inputs(layout.input_names)


def split(layout: LinearLayout) -> tuple[LinearLayout, int] | None:
    """The layout of the two halves along the last axis, of extent 2, and their register bit.

    Registers with that bit clear hold the first half. None if the halves don't lie in the same
    threads: then the tile has to be converted before it is split. Raises ``ValueError`` if the
    last axis has another extent.
    """
    if layout.shape[-1] != 2:
        raise ValueError(f"the last axis has the extent {layout.shape[-1]}, not 2")
    holders = [
        (name, position)
        for name, bases in layout.inputs
        for position, basis in enumerate(bases)
        if basis & 1
    ]
    registers = layout.bases(REGISTER)
    if len(holders) != 1 or holders[0][0] != REGISTER or registers[holders[0][1]] != 1:
        return None
    bit = holders[0][1]
    half = layout.with_bases(REGISTER, registers[:bit] + registers[bit + 1 :])
    return half.keep_outputs(layout.output_names[:-1]), bit
