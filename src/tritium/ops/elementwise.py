"""What all element by element operations share: type rules, arithmetic's types, cases.

A member states ``accepts`` and ``compute``. Operands have one type, shape included. Floats are
computed in ``dtype.compute`` (fp32 for the narrower ones) and rounded once into their own type;
integers wrap, and int1 is computed as the low bit of a byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, Value, operand
from tritium.ir.dtypes import FLOATS, INTEGERS, Array, DType, Type, int1
from tritium.ir.types import shaped

from . import samples
from .codecs import from_compute, to_compute
from .spec import Case, Sample

SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (7, 3), (2, 1, 5))
"""Shapes that every elementwise operation is also tried on, besides a long vector."""


class Elementwise(Op):
    """Base of operations whose result at an index depends on the operands at that index only."""

    accepts: ClassVar[tuple[DType, ...]] = INTEGERS + FLOATS
    """Element types that operands may have."""
    expected: ClassVar[str] = "numbers"
    """What messages call these types."""
    hint: ClassVar[str] = ""
    """What messages advise for other types."""

    def operand_type(self) -> Type:
        """The one type of all operands. Raises E0204 for an element type that isn't accepted,
        E0201 where the types differ."""
        names = [key for key, declared in self.fields.items() if declared.is_operand]
        first = self.operands[0].type
        for name, value in zip(names, self.operands):
            if value.scalar not in self.accepts:
                raise error(
                    "E0204",
                    op=self.verb,
                    expected=self.expected,
                    got=value.type,
                    hint=self.hint,
                    argument=name,
                )
            if value.type is not first:
                raise error(
                    "E0201",
                    op=self.verb,
                    left=first,
                    right=value.type,
                    hint="operands must have one type",
                    argument=name,
                )
        return first

    def infer(self) -> Type:
        return self.operand_type()

    def compute(self, *arrays: Array) -> Any:
        """The result from operands in the computing type, in that type."""
        raise TypeError(f"{type(self).__name__} has no reference rule")

    def evaluate(self, machine: Any, *arrays: Any) -> Any:
        dtype = self.operands[0].scalar
        assert isinstance(dtype, DType)
        return compute_storage(self.compute, dtype, [np.asarray(array) for array in arrays])

    @classmethod
    def operand_arrays(cls, dtype: DType) -> tuple[Array, ...]:
        """Long vectors of operands for the generated cases."""
        arity = sum(declared.is_operand for declared in cls.fields.values())
        return (samples.vector(dtype),) if arity == 1 else samples.grid(dtype, arity)

    @classmethod
    def variants(cls) -> Sequence[dict[str, Any]]:
        """Attribute values to try."""
        return ({},)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """A long vector of every accepted type, and small shapes of one."""
        for attributes in cls.variants():
            extra = "".join(f" {key}={value}" for key, value in attributes.items())
            for dtype in cls.accepts:
                arrays = cls.operand_arrays(dtype)
                yield cls.case(f"{dtype}{extra}", dtype, arrays, arrays[0].shape, attributes)
            small = cls.operand_arrays(cls.accepts[-1])
            for shape in SHAPES:
                count = int(np.prod(shape))
                arrays = tuple(array[-count:].reshape(shape) for array in small)
                label = f"{cls.accepts[-1]} {list(shape)}{extra}"
                yield cls.case(label, cls.accepts[-1], arrays, shape, attributes)

    @classmethod
    def case(
        cls,
        label: str,
        dtype: DType,
        arrays: Sequence[Array],
        shape: tuple[int, ...],
        attributes: dict[str, Any],
    ) -> Case:
        """One case on operands of one type."""
        names = [key for key, declared in cls.fields.items() if declared.is_operand]
        type = shaped(dtype, shape)
        operands = {name: Sample(type, array) for name, array in zip(names, arrays)}
        return Case(cls, label, operands, attributes)


@np.errstate(all="ignore")
def compute_storage(compute: Any, dtype: DType, arrays: Sequence[Array]) -> Array:
    """``compute`` on arrays in storage form, its result stored as ``dtype``."""
    if dtype.is_floating():
        result = compute(*(to_compute(array, dtype) for array in arrays))
        return from_compute(np.asarray(result, dtype.compute.numpy), dtype)
    if dtype is int1:
        result = compute(*(array.astype(np.uint8) for array in arrays))
        return np.asarray((result & np.uint8(1)) != 0)
    return np.asarray(compute(*arrays), dtype.numpy)


class Unary(Elementwise):
    """Base of operations on one tile."""

    x: Value = operand()


class Binary(Elementwise):
    """Base of operations on two tiles of one type."""

    x: Value = operand()
    y: Value = operand()


class Ternary(Elementwise):
    """Base of operations on three tiles of one type."""

    x: Value = operand()
    y: Value = operand()
    z: Value = operand()
