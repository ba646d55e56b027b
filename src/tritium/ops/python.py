"""What Python's own syntax means on kernel values: constants, operators, assignment, truth.

The front end calls these rules while it walks a kernel's syntax tree, and eager mode's rewritten
copy of the kernel calls them while it runs, so that both give one meaning to the same line.

A kernel value is a ``Tile``, a ``constexpr`` (a number, string or enum member that is known), a
``TileTuple`` of kernel values, or an object that is known as it is: None, a dtype, a function, a
module, a class.
"""

from __future__ import annotations

import ast
import difflib
import enum
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from tritium.diagnostics import TritiumError, error
from tritium.ir.dtypes import int1, int64

from .compare import RELATIONS
from .constants import describe as describe_operand
from .constants import number, to_tile
from .constexpr import constexpr, unwrap
from .emit import METHODS
from .methods import BoundMethod as BoundMethod
from .tile import Tile
from .tuples import Structure, TileTuple

_CONSTANTS = (bool, int, float, complex, str, enum.Enum, np.generic)


def wrap(value: Any) -> Any:
    """A Python object as a kernel value: constants as ``constexpr``, sequences as tuples."""
    known = unwrap(value)
    # A function in a constexpr runs at compile time: unwrapped, it would be refused.
    if isinstance(known, _CONSTANTS) or (known is not value and isinstance(known, FunctionType)):
        return value if isinstance(value, constexpr) else constexpr(known)
    if isinstance(known, (tuple, list)):
        return TileTuple(map(wrap, known), getattr(type(known), "_fields", None))
    return known


def plain(value: Any) -> Any:
    """A known kernel value as plain Python: constants unwrapped, tuples as tuples."""
    known = unwrap(value)
    return tuple(map(plain, known)) if isinstance(known, TileTuple) else known


def is_known(value: Any) -> bool:
    """Whether no part of a kernel value is a run-time tile."""
    if isinstance(value, Structure):
        return all(map(is_known, value._parts()))
    return not isinstance(value, Tile)


def same(left: Any, right: Any) -> bool:
    """Whether two known values are the same: of one type and equal, zeros by their sign too."""
    left, right = unwrap(left), unwrap(right)
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left.hex() == float(right).hex()
    if isinstance(left, Structure):
        pairs = zip(left._parts(), right._parts())
        return bool(left._kind() == right._kind()) and all(same(l, r) for l, r in pairs)
    return bool(left == right)


def describe(value: Any) -> str:
    """What a message calls a kernel value."""
    if isinstance(value, TileTuple):
        return f"the tuple {value._shown(map(describe, value))}"
    if isinstance(value, Structure):
        return value._shown(map(describe, value._parts()))
    return str(describe_operand(value))


def type_text(value: Any) -> str:
    """What a message calls the type of a variable's value."""
    known = unwrap(value)
    if isinstance(known, Tile):
        return str(known.type)
    if isinstance(known, Structure):
        return known._shown(map(type_text, known._parts()))
    return repr(value) if isinstance(value, constexpr) else describe(value)


# ---- assignment ----------------------------------------------------------------------------------


def assigned(value: Any, name: str) -> Any:
    """What ``name = value`` stores: numbers become scalar tiles, in tuples too.

    None, dtypes, functions and other known objects stay as they are. Raises E0204 for constants
    that no tile can hold, such as strings: these need the annotation ``tl.constexpr``.
    """
    if isinstance(value, TileTuple):
        return TileTuple((assigned(each, name) for each in value), value.fields)
    if not isinstance(value, constexpr):
        return value
    if number(value) is None:
        raise error(
            "E0204",
            op=f"{name} = ...",
            expected="a number, a tile or a tuple of these",
            got=repr(value.value),
            hint=f"annotate a compile-time value: {name}: tl.constexpr = ...",
        )
    return to_tile(value)


# ---- operators -----------------------------------------------------------------------------------

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
}
"""The operators of Python's syntax trees."""

UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
}


def binary(symbol: str, left: Any, right: Any) -> Any:
    """``left <symbol> right``. Raises E0201 for operands that it isn't defined for."""
    try:
        return wrap(BINARY[symbol](left, right))
    except TritiumError:
        raise
    except TypeError as cause:
        raise error(
            "E0201",
            op=symbol,
            left=describe(left),
            right=describe(right),
            hint="operands must be tiles or numbers",
        ) from cause


def unary(symbol: str, value: Any) -> Any:
    """``<symbol>value``. Raises E0210 for an operand that it isn't defined for."""
    try:
        return wrap(UNARY[symbol](value))
    except TritiumError:
        raise
    except TypeError as cause:
        raise error("E0210", op=symbol, got=describe(value), hint="") from cause


def compare(symbol: str, left: Any, right: Any) -> Any:
    """A comparison; ``is`` and ``in`` are about known values only, and E0201 otherwise."""
    if symbol in RELATIONS and isinstance(right, Tile):
        return RELATIONS[symbol](left, right)
    if symbol in BINARY:
        return binary(symbol, left, right)
    if symbol in ("is", "is not"):
        identical = unwrap(left) is unwrap(right)
        return constexpr(identical == (symbol == "is"))
    if not (is_known(left) and is_known(right)):
        raise error(
            "E0201",
            op=symbol,
            left=describe(left),
            right=describe(right),
            hint="compare the elements one by one",
        )
    return constexpr((plain(left) in plain(right)) == (symbol == "in"))


class Combination:
    """``and`` or ``or`` of values that are given one by one, from left to right.

    A known value that decides ends it there; other known values drop out. What remains are tiles,
    which are combined by ``logical_and`` or ``logical_or``.
    """

    __slots__ = ("_has_tile", "decided", "value", "word")

    def __init__(self, word: str) -> None:
        self.word = word
        self.decided = False
        self.value: Any = None
        self._has_tile = False

    def add(self, operand: Any) -> bool:
        """Take the next operand; returns whether it decides."""
        if isinstance(operand, Tile):
            joined = METHODS[f"logical_{self.word}"]
            self.value = joined(self.value, operand) if self._has_tile else operand
            self._has_tile = True
        elif bool(plain(operand)) == (self.word == "or"):
            self.value = operand
            self.decided = True
        elif not self._has_tile:
            self.value = operand
        return self.decided


def negate(value: Any) -> Any:
    """``not value``: of a tile element by element (int1 only), else of Python's truth value."""
    if isinstance(value, Tile):
        return METHODS["logical_not"](value)
    return constexpr(not plain(value))


def condition(value: Any, construct: str) -> bool | Tile:
    """What an ``if``, ``while`` or conditional expression decides by.

    A known bool, int or None gives a bool; a scalar tile an int1 scalar: ``x != 0``, for a pointer
    whether it is not null. A tile of one element counts as a scalar. Raises E0403 for other tiles,
    E0206 for other known values.
    """
    known = unwrap(value)
    if isinstance(known, Tile):
        return _run_time_condition(known)
    if known is None or isinstance(known, (int, np.bool_)):
        return bool(known)
    raise error(
        "E0206",
        op=construct,
        text=f"the condition is {describe(value)}, not a bool, an integer or None",
        hint="compare it with something",
    )


def _run_time_condition(tile: Tile) -> Tile:
    count = int(tile.numel)
    if count != 1:
        raise error("E0403", got=tile.type)
    scalar: Tile = METHODS["item"](tile) if tile.type.shape else tile
    if scalar.dtype.is_ptr():
        scalar = METHODS["to"](scalar, int64)
    if scalar.dtype is int1:
        return scalar
    tested: Tile = METHODS["__ne__"](scalar, 0)
    return tested


# ---- attributes ----------------------------------------------------------------------------------


def receiver(value: Any, name: str) -> Any:
    """What ``value.name`` is looked up on.

    A ``constexpr`` shows the attributes of what it holds, besides ``value`` and ``type``; a number
    that has no such attribute of its own has a scalar tile's, so that an argument that happens to
    be known (1, say) can be used as any other.
    """
    if isinstance(value, constexpr) and name in ("value", "type"):
        return value
    held = unwrap(value)
    if name == "value" and not hasattr(held, name):
        # A dtype, say, that was declared tl.constexpr.
        return constexpr(held)
    if number(held) is not None and not hasattr(held, name) and _is_tile_attribute(name):
        return to_tile(held)
    return held


def attribute(value: Any, name: str) -> Any:
    """``value.name``, looked up on ``receiver``, as a kernel value.

    Raises AttributeError where there is none.
    """
    owner = receiver(value, name)
    if isinstance(owner, Tile):
        method = METHODS.get(name)
        return wrap(getattr(owner, name)) if method is None else BoundMethod(owner, method)
    if isinstance(owner, TileTuple):
        return getattr(owner, name)
    return wrap(getattr(owner, name))


def has_attribute(value: Any, name: str) -> bool:
    """Whether ``attribute`` finds one; for a tile without computing it, which may be refused."""
    owner = receiver(value, name)
    if isinstance(owner, Tile):
        return name in METHODS or hasattr(Tile, name)
    return hasattr(owner, name)


def no_attribute(value: Any, name: str) -> TritiumError:
    """The error (E0117) that ``attribute`` found none of that name."""
    known = [*METHODS, *dir(Tile)] if isinstance(value, Tile) else dir(unwrap(value))
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else ""
    text = f"{describe(value)} has no attribute {name!r}"
    return error("E0117", error="AttributeError", text=text, hint=hint)


def _is_tile_attribute(name: str) -> bool:
    return name in METHODS or (not name.startswith("_") and hasattr(Tile, name))
