"""The names of ``tl`` that are no functions: types, containers, iterators."""

from __future__ import annotations

from typing import Any

from tritium.ir.dtypes import ALL, DType, int32
from tritium.ir.types import MAX_TILE_NUMEL, PointerType, TileType
from tritium.ops.arith import PropagateNan
from tritium.ops.constexpr import constexpr
from tritium.ops.hints import Condition, Range, StaticRange
from tritium.ops.tile import Tile
from tritium.ops.tuples import TileTuple


class const:
    """As a parameter's annotation: a pointer that the kernel doesn't write through."""


VALUES: dict[str, Any] = {
    **{dtype.codegen_name(): dtype for dtype in ALL},
    "pi32_t": PointerType(int32),
    "PropagateNan": PropagateNan,
    "TRITON_MAX_TENSOR_NUMEL": MAX_TILE_NUMEL,
    "block_type": TileType,
    "condition": Condition,
    "const": const,
    "constexpr": constexpr,
    "dtype": DType,
    "pointer_type": PointerType,
    "range": Range,
    "slice": slice,
    "static_range": StaticRange,
    "tensor": Tile,
    "tuple": TileTuple,
}
