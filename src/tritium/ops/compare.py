"""Comparisons, which give int1."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from tritium.ir.core import op
from tritium.ir.dtypes import DType, Type, float32, int1
from tritium.ir.types import PointerType, like

from .arith import operator_methods, operator_rejects
from .codecs import to_compute
from .elementwise import Binary
from .emit import emit_tile
from .promotion import promote
from .spec import Reject, given
from .tile import Tile


class Comparison(Binary):
    """Base of comparisons: ordered on floats (false where one is NaN), by value, -0 equal to +0."""

    relation: ClassVar[Callable[[Any, Any], Any]]
    """The comparison of Python's ``operator`` module."""

    def infer(self) -> Type:
        return like(self.operand_type(), int1)

    def evaluate(self, machine: Any, *arrays: Any) -> Any:
        dtype = self.x.scalar
        assert isinstance(dtype, DType)
        x, y = (np.asarray(array) for array in arrays)
        if dtype.is_floating():
            x, y = to_compute(x, dtype), to_compute(y, dtype)
        return np.asarray(type(self).relation(x, y))

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """What every comparison refuses: pointers too, even with 0."""
        yield from operator_rejects(cls.relation)
        pointer = PointerType(float32)
        yield Reject("a pointer with 0", "E0201", lambda: cls.relation(given(pointer), 0), "right")


@op("compare.eq")
class Eq(Comparison):
    """Whether x equals y."""

    relation = operator.eq


@op("compare.ne")
class Ne(Comparison):
    """Whether x differs from y; true where a float is NaN."""

    relation = operator.ne


@op("compare.lt")
class Lt(Comparison):
    """Whether x is less than y."""

    relation = operator.lt


@op("compare.le")
class Le(Comparison):
    """Whether x is less than or equal to y."""

    relation = operator.le


@op("compare.gt")
class Gt(Comparison):
    """Whether x is greater than y."""

    relation = operator.gt


@op("compare.ge")
class Ge(Comparison):
    """Whether x is greater than or equal to y."""

    relation = operator.ge


def _operator(cls: type[Comparison], symbol: str) -> Callable[[Any, Any], Tile]:
    def compare(x: Any, y: Any) -> Tile:
        left, right = promote(symbol, x, y)
        return emit_tile(cls, x=left, y=right)

    return compare


SYMBOLS: dict[str, type[Comparison]] = {
    "==": Eq,
    "!=": Ne,
    "<": Lt,
    "<=": Le,
    ">": Gt,
    ">=": Ge,
}

RELATIONS: dict[str, Callable[[Any, Any], Tile]] = {
    symbol: _operator(cls, symbol) for symbol, cls in SYMBOLS.items()
}
"""The comparison of two operands, one of them a tile at least, by its symbol.

Python itself turns ``1 < x`` into ``x > 1``: called from here, messages keep the source's order.
"""

for _symbol, _cls in SYMBOLS.items():
    operator_methods(_cls.relation.__name__, RELATIONS[_symbol], reflected=False)
