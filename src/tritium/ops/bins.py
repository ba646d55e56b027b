"""Histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, Value, attribute, op, operand, optional
from tritium.ir.dtypes import INTEGERS, Type, float32, int1, int32
from tritium.ir.types import MAX_TILE_NUMEL, TileType

from . import samples
from .constants import to_tile
from .constexpr import unwrap
from .create import static_int
from .emit import emit_tile, surface
from .shape import broadcast_tile, require_tile
from .spec import Case, Reject, given
from .tile import Tile


@op("bins.histogram")
class Histogram(Op):
    """How many elements of ``x`` have each of the values 0 to ``bins`` - 1, as int32.

    Other values are left out, as are the elements where ``mask`` is false.
    """

    unsupported: ClassVar[Mapping[str, str]] = {"nvptx": "bins have no layout of tiles yet"}

    x: Value = operand()
    mask: Value | None = optional()
    bins: int = attribute()

    def infer(self) -> Type:
        fits = self.x.scalar in INTEGERS
        expected, hint = "a tile of integers", "cast it first"
        require_tile("histogram", [self.x.type], "input", expected, fits=fits, hint=hint)
        if self.mask is not None and (
            self.mask.scalar is not int1 or self.mask.shape != self.x.shape
        ):
            expected = f"an int1 tile of shape {self.x.shape}"
            got = self.mask.type
            raise error(
                "E0204", op="histogram", expected=expected, got=got, hint="", argument="mask"
            )
        if not 1 <= self.bins <= MAX_TILE_NUMEL:
            raise error(
                "E0206",
                op="histogram",
                text=f"a tile can't have {self.bins} bins",
                hint=f"use 1 to {MAX_TILE_NUMEL}",
                argument="num_bins",
            )
        return TileType(int32, (self.bins,))

    def evaluate(self, machine: Any, x: Any, mask: Any) -> Any:
        counted = (x >= 0) & (x < self.bins)
        if mask is not None:
            counted &= mask
        places = np.asarray(x)[counted].astype(np.int64)
        return np.bincount(places, minlength=self.bins).astype(np.int32)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every integer type, values out of range, masks, odd extents and ranks."""
        for dtype in INTEGERS:
            for shape, bins in (((80,), 7), ((3, 5), 1), ((1,), 3), ((200,), 300), ((2, 3, 5), 16)):
                mask = samples.tile(int1, shape)
                for make in (samples.ordinary, samples.tile):
                    for masked in (None, mask):
                        kind = f"{make.__name__}{' masked' * bool(masked)}"
                        label = f"{dtype} {list(shape)} {bins} {kind}"
                        operands = {"x": make(dtype, shape), "mask": masked}
                        yield Case(cls, label, operands, {"bins": bins})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Floats, scalars, masks of another type or shape, numbers of bins."""
        x = given(int32, 4)
        yield Reject("floats", "E0204", lambda: histogram(given(float32, 4), 4), "input")
        yield Reject("a scalar", "E0204", lambda: histogram(given(int32), 4), "input")
        yield Reject("no bins", "E0206", lambda: histogram(x, 0), "num_bins")
        yield Reject("runtime bins", "E0205", lambda: histogram(x, given(int32)), "num_bins")
        yield Reject("a mask", "E0204", lambda: histogram(x, 4, given(int32, 4)), "mask")
        yield Reject("a mask's shape", "E0204", lambda: histogram(x, 4, given(int1, 3)), "mask")


@surface(method=True)
def histogram(input: Any, num_bins: Any, mask: Any = None) -> Tile:
    """How many elements of ``input``, integers of any shape, have each value 0 to ``num_bins`` - 1.

    An int32 tile of ``num_bins`` counts, any number of them. Values out of range are left out, as
    are elements where ``mask``, an int1 tile of the same shape or a scalar, is false.

    Raises E0204 for floats, scalars and other masks, E0206 for a number of bins that no tile has.
    """
    x = to_tile(input, "histogram", "input")
    bins = static_int("histogram", num_bins, "num_bins")
    chosen = None
    if unwrap(mask) is not None:
        chosen = to_tile(mask, "histogram", "mask")
        if not chosen.type.shape and chosen.dtype is int1:
            chosen = broadcast_tile(chosen, x.type.shape)
    return emit_tile(Histogram, x=x, mask=chosen, bins=bins)
