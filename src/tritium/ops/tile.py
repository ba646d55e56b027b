"""``tl.tensor``: what a kernel's variables hold. Operators are added by the operation files."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tritium.diagnostics import error
from tritium.ir.core import ConcreteValue, Value
from tritium.ir.dtypes import Type, float8e4b15
from tritium.ir.tracer import active

from .codecs import decode
from .constexpr import constexpr
from .emit import METHODS
from .tuples import TileTuple


class Tile:
    """A tile, or a scalar when its shape is ``()``.

    While compiling, ``value`` is an SSA value; in eager mode it is a ``ConcreteValue`` whose
    ``data`` is a NumPy array. Tiles are immutable: every operation gives a new one.
    """

    __slots__ = ("value",)
    is_tile = True

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def handle(self) -> Any:
        """Triton's name: the SSA value, or the NumPy array in eager mode."""
        return self.data if isinstance(self.value, ConcreteValue) else self.value

    @property
    def data(self) -> Any:
        """Eager mode: the elements, a NumPy array of the storage dtype."""
        if not isinstance(self.value, ConcreteValue):
            raise AttributeError("a tile has no data while the kernel is compiled")
        return self.value.data

    @property
    def type(self) -> Type:
        return self.value.type

    @property
    def dtype(self) -> Type:
        """Element type; a pointer type for tiles of pointers."""
        return self.value.type.scalar

    @property
    def shape(self) -> TileTuple:
        """Extents, as a tuple of ``constexpr``."""
        return TileTuple(constexpr(extent) for extent in self.value.type.shape)

    @property
    def numel(self) -> constexpr:
        count = 1
        for extent in self.value.type.shape:
            count *= extent
        return constexpr(count)

    @property
    def T(self) -> Tile:
        """The transpose of a 2-D tile."""
        made: Tile = METHODS["trans"](self)
        return made

    def __getattr__(self, name: str) -> Any:
        method = METHODS.get(name)
        if method is None:
            raise AttributeError(f"a tile has no attribute {name!r}")
        return functools.partial(method, self)

    def __hash__(self) -> int:
        return id(self.value)

    def __iter__(self) -> Any:
        raise TypeError("a tile can't be iterated over")

    def __repr__(self) -> str:
        if isinstance(self.value, ConcreteValue):
            return f"{self.value.type}({self._elements()})"
        return f"tile of {self.value.type}"

    def _known_scalar(self, what: str) -> Any:
        if not isinstance(self.value, ConcreteValue):
            raise error("E0205", op=what, name="the value", got=self.type, argument=None)
        if self.value.data.size != 1:
            raise error("E0209", count=self.value.data.size)
        tracer = active()
        if tracer is not None:
            tracer.decides(self.value)
        return self._elements().reshape(())[()]

    def _elements(self) -> Any:
        """The known values as numbers: of fp8e4b15 the data are bit patterns."""
        return decode(self.data, float8e4b15) if self.dtype is float8e4b15 else self.data

    def __bool__(self) -> bool:
        return bool(self._known_scalar("a condition"))

    def __int__(self) -> int:
        return int(self._known_scalar("int()"))

    def __float__(self) -> float:
        return float(self._known_scalar("float()"))

    def __index__(self) -> int:
        return int(self._known_scalar("an index"))

    def __format__(self, spec: str) -> str:
        if isinstance(self.value, ConcreteValue) and self.value.data.size == 1:
            return format(self._elements().reshape(())[()].item(), spec)
        return format(str(self), spec)

    def __str__(self) -> str:
        if isinstance(self.value, ConcreteValue):
            return str(self._elements())
        return repr(self)

    if TYPE_CHECKING:

        def __add__(self, other: Any) -> Tile: ...
        def __sub__(self, other: Any) -> Tile: ...
        def __mul__(self, other: Any) -> Tile: ...
        def __truediv__(self, other: Any) -> Tile: ...
        def __floordiv__(self, other: Any) -> Tile: ...
        def __mod__(self, other: Any) -> Tile: ...
        def __pow__(self, other: Any) -> Tile: ...
        def __matmul__(self, other: Any) -> Tile: ...
        def __and__(self, other: Any) -> Tile: ...
        def __or__(self, other: Any) -> Tile: ...
        def __xor__(self, other: Any) -> Tile: ...
        def __lshift__(self, other: Any) -> Tile: ...
        def __rshift__(self, other: Any) -> Tile: ...
        def __lt__(self, other: Any) -> Tile: ...
        def __gt__(self, other: Any) -> Tile: ...
        def __neg__(self) -> Tile: ...
        def __pos__(self) -> Tile: ...
        def __invert__(self) -> Tile: ...
        def __getitem__(self, key: Any) -> Tile: ...
        def to(self, dtype: Any) -> Tile: ...


def _operator(name: str) -> Any:
    def method(self: Tile, *args: Any) -> Any:
        return METHODS[name](self, *args)

    method.__name__ = name
    return method


_OPERATORS = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod and rand or ror xor"
    " rxor lshift rlshift rshift rrshift pow rpow matmul rmatmul lt le gt ge eq ne neg pos invert"
    " getitem"
)
# Python looks operators up on the class, so they can't go through __getattr__.
for _name in _OPERATORS.split():
    setattr(Tile, f"__{_name}__", _operator(f"__{_name}__"))
