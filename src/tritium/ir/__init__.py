"""Tile IR: types, values, operations, regions, their text form, and the verifier."""

from __future__ import annotations

from .core import (
    ORDERED,
    PURE,
    READS,
    REGISTRY,
    WRITES,
    Block,
    ConcreteValue,
    Effects,
    Field,
    FieldKind,
    Function,
    Op,
    Param,
    Region,
    Value,
    attribute,
    op,
    operand,
    operands,
    optional,
    region,
)
from .dtypes import DType, Type
from .parser import parse_fields, parse_function
from .printer import attribute_text, function_text, loc_text, op_text, type_text
from .tracer import Machine, Tracer, active, tracing
from .types import MAX_TILE_NUMEL, PointerType, TileType, element, like, shaped
from .verifier import verify

__all__ = [
    "MAX_TILE_NUMEL",
    "ORDERED",
    "PURE",
    "READS",
    "REGISTRY",
    "WRITES",
    "Block",
    "ConcreteValue",
    "DType",
    "Effects",
    "Field",
    "FieldKind",
    "Function",
    "Machine",
    "Op",
    "Param",
    "PointerType",
    "Region",
    "TileType",
    "Tracer",
    "Type",
    "Value",
    "active",
    "attribute",
    "attribute_text",
    "element",
    "function_text",
    "like",
    "loc_text",
    "op",
    "op_text",
    "operand",
    "operands",
    "optional",
    "parse_fields",
    "parse_function",
    "region",
    "shaped",
    "tracing",
    "type_text",
    "verify",
]
