"""Block pointers and tensor descriptors: strided blocks of an array, read and written as tiles.

Both are kernel values with parts (base, shape, strides, offsets), and what they do is made of
pointer tiles and masks. Index arithmetic is done in int64, so it doesn't wrap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from tritium.diagnostics import TritiumError, error
from tritium.ir.dtypes import DType, Type, int32, int64
from tritium.ir.types import TileType

from .cast import convert_tile
from .constants import constant, describe, number, to_tile
from .constexpr import constexpr, unwrap
from .create import arange, folded, static_choice, static_int, static_shape
from .emit import SURFACE, surface
from .methods import BoundMethod
from .shape import broadcast_tile, expand_dims
from .tile import Tile
from .tuples import Structure, TileTuple, elements, several

PADDINGS = ("zero", "nan")
"""What elements outside of the shape read as; for block pointers "" is zero too."""

_MOST_AXES = 5
ALIGNMENT = 16
"""Bytes: of addresses, strides and blocks' rows, as copies by hardware need."""


# ---- addresses -----------------------------------------------------------------------------------


def _integer(value: Any) -> int | None:
    """An integer that is known; None for anything else."""
    plain = number(folded(value))
    return plain if isinstance(plain, int) and not isinstance(plain, bool) else None


def _no_integer(op: str, value: Any, argument: str) -> TritiumError:
    expected, got = f"scalar integers as {argument}", describe(unwrap(value))
    return error("E0204", op=op, expected=expected, got=got, hint="", argument=argument)


def _scalar(op: str, value: Any, argument: str, dtype: Any = int64) -> Tile:
    """An integer of ``dtype``. Raises E0204 for anything but a scalar integer."""
    known, plain = unwrap(value), _integer(value)
    if plain is not None:
        return constant(plain, dtype, argument)
    if isinstance(known, Tile) and not known.type.shape and known.dtype.is_int():
        return convert_tile(known, dtype)
    raise _no_integer(op, known, argument)


def _extent(op: str, value: Any) -> Tile:
    """How long an array is along an axis: as int32, or as int64 where that may not hold it."""
    known, plain = unwrap(value), _integer(value)
    most = plain
    if isinstance(known, Tile) and known.dtype.is_int():
        most = known.dtype.get_int_max_value()  # type: ignore[attr-defined]
    wide = most is not None and not _fits(most, int32)
    return _scalar(op, known, "shape", int64 if wide else int32)


def _fits(value: int, dtype: DType) -> bool:
    return dtype.get_int_min_value() <= value <= dtype.get_int_max_value()


def _listed(op: str, values: Any, argument: str, count: int | None = None) -> tuple[Any, ...]:
    """The elements of a sequence. Raises E0204 for none, E0206 for another number of them."""
    known = elements(values)
    if known is None:
        got = describe(values)
        raise error("E0204", op=op, expected="a tuple", got=got, hint="", argument=argument)
    if count is not None and len(known) != count:
        what = "extents of the shape" if argument == "shape" else argument
        text = f"{len(known)} {what} for {count} axes"
        raise error("E0206", op=op, text=text, hint="give one for each axis", argument=argument)
    return known


def _base(op: str, base: Any) -> Tile:
    known = unwrap(base)
    if not isinstance(known, Tile) or known.type.shape or not known.dtype.is_ptr():
        got = describe(known)
        raise error("E0601", op=op, got=got, argument="base")
    return known


def _along(index: Tile, axis: int, rank: int) -> Tile:
    """A vector as a tile of ``rank`` axes that varies along one of them."""
    others = [each for each in range(rank) if each != axis]
    return expand_dims(index, others) if others else index


def _reach(
    base: Tile,
    shape: Sequence[Any],
    strides: Sequence[Any],
    indices: Sequence[Tile],
    checked: Collection[int],
) -> tuple[Tile, Tile | None]:
    """Pointers to the elements at these indices, and the mask of those inside of ``shape``.

    ``indices`` holds an int64 vector for each axis; only ``checked`` axes count for the mask.
    """
    extents = tuple(index.type.shape[0] for index in indices)
    pointers, mask = base, None
    for axis, index in enumerate(indices):
        spread = _along(index, axis, len(extents))
        pointers = pointers + spread * _scalar("a block", strides[axis], "strides")
        if axis in checked:
            extent = _scalar("a block", shape[axis], "shape")
            inside = (spread < extent) & (spread >= 0)  # type: ignore[operator]
            mask = inside if mask is None else mask & inside
    return (
        broadcast_tile(pointers, extents),
        None if mask is None else broadcast_tile(mask, extents),
    )


def _run(offset: Tile, extent: int) -> Tile:
    """The int64 indices offset, offset + 1, ... of that many elements."""
    return offset + convert_tile(arange(0, extent), int64)


def _fill(op: str, padding: str, element: Type) -> float | None:
    """What a load gives outside of the shape; None stands for zero. Raises E0206."""
    if padding != "nan":
        return None
    if not element.is_floating():
        hint = 'use padding_option="zero"'
        text = f"{element} has no NaN"
        raise error("E0206", op=op, text=text, hint=hint, argument="padding_option")
    return float("nan")


# ---- block pointers ------------------------------------------------------------------------------


class BlockPointer(Structure):
    """A block of ``block_shape`` at ``offsets`` in an array of ``shape`` with these ``strides``."""

    __slots__ = ("base", "block_shape", "offsets", "shape", "strides")

    def __init__(
        self,
        base: Tile,
        shape: Iterable[Any],
        strides: Iterable[Any],
        offsets: Iterable[Any],
        block_shape: tuple[int, ...],
    ) -> None:
        self.base = base
        self.shape = TileTuple(shape)
        self.strides = TileTuple(strides)
        self.offsets = TileTuple(offsets)
        self.block_shape = block_shape

    def _parts(self) -> tuple[Any, ...]:
        return (self.base, self.shape, self.strides, self.offsets)

    def _rebuilt(self, parts: Iterable[Any]) -> BlockPointer:
        base, shape, strides, offsets = parts
        return BlockPointer(base, shape, strides, offsets, self.block_shape)

    def _kind(self) -> Any:
        return type(self), self.block_shape

    def _shown(self, parts: Iterable[str]) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"a block pointer to {list(self.block_shape)} of {self.dtype.element_ty}"

    @property
    def dtype(self) -> Any:
        """The type of its base: ``dtype.element_ty`` is what a load gives."""
        return self.base.dtype

    type = dtype

    @property
    def advance(self) -> BoundMethod:
        """``tl.advance`` of it."""
        return BoundMethod(self, advance)


def _check_order(order: Any, rank: int) -> None:
    given = _listed("make_block_ptr", order, "order", rank)
    axes = [static_int("make_block_ptr", axis, "order") for axis in given]
    if sorted(axes) != list(range(rank)):
        text = f"{tuple(axes)} is no order of {rank} axes"
        hint = f"for rows: {tuple(reversed(range(rank)))}"
        raise error("E0206", op="make_block_ptr", text=text, hint=hint, argument="order")


@surface
def make_block_ptr(
    base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
) -> BlockPointer:
    """A pointer to a block of an array: ``block_shape`` elements from ``offsets`` on.

    ``base`` points to the array's first element; ``shape``, ``strides`` and ``offsets`` are
    integers in elements, known or not, one for each axis. ``tl.load`` and ``tl.store`` take it, and
    ``tl.advance`` moves it. ``order`` lists the axes from the fastest on, and changes no result.

    Raises E0601 for a base that is no scalar pointer, E0204 for what is no tuple of scalar
    integers, E0206 where there isn't one for each axis, or for an order that is none.
    """
    name = "make_block_ptr"
    start = _base(name, base)
    extents = static_shape(name, block_shape, "block_shape")
    rank = len(extents)
    sizes, steps, starts = (
        [_scalar(name, each, label) for each in _listed(name, values, label, rank)]
        for label, values in (("shape", shape), ("strides", strides), ("offsets", offsets))
    )
    _check_order(order, rank)
    return BlockPointer(start, sizes, steps, starts, extents)


@surface(method=True)
def advance(base: Any, offsets: Any) -> BlockPointer:
    """A block pointer whose offsets are larger by ``offsets``, one integer for each axis.

    Raises E0204 for anything but a block pointer or a tuple of scalar integers, E0206 for another
    number of them.
    """
    pointer = unwrap(base)
    if not isinstance(pointer, BlockPointer):
        got, wanted = describe(pointer), "a block pointer"
        raise error("E0204", op="advance", expected=wanted, got=got, hint="", argument="base")
    given = _listed("advance", offsets, "offsets", len(pointer.block_shape))
    moves = [_scalar("advance", each, "offsets") for each in given]
    moved = [offset + move for offset, move in zip(pointer.offsets, moves)]
    return BlockPointer(pointer.base, pointer.shape, pointer.strides, moved, pointer.block_shape)


def _checked_axes(op: str, pointer: BlockPointer, boundary_check: Any) -> set[int]:
    known = unwrap(boundary_check)
    given = () if known is None else several(known)
    rank = len(pointer.block_shape)
    axes = [static_int(op, axis, "boundary_check") for axis in given]
    for axis in axes:
        if not 0 <= axis < rank:
            shape, name = pointer.block_shape, "boundary_check"
            raise error("E0207", op=op, axis=axis, shape=shape, argument=name)
    return set(axes)


def _refuse_mask(op: str, pointer: BlockPointer, **given: Any) -> None:
    for name, value in given.items():
        if unwrap(value) is not None:
            raise error("E0609", op=op, name=name, got=pointer, argument=name)


def _elements(op: str, pointer: BlockPointer, boundary_check: Any) -> tuple[Tile, Tile | None]:
    axes = _checked_axes(op, pointer, boundary_check)
    indices = [_run(offset, n) for offset, n in zip(pointer.offsets, pointer.block_shape)]
    return _reach(pointer.base, pointer.shape.values, pointer.strides.values, indices, axes)


def load_block(
    pointer: BlockPointer,
    mask: Any,
    other: Any,
    boundary_check: Any,
    padding_option: Any,
    **options: Any,
) -> Tile:
    """``tl.load`` of a block pointer."""
    _refuse_mask("load", pointer, mask=mask, other=other)
    padding = static_choice("load", padding_option, "padding_option", ("", *PADDINGS))
    fill = _fill("load", padding, pointer.dtype.element_ty)
    pointers, inside = _elements("load", pointer, boundary_check)
    made: Tile = SURFACE["load"](pointers, inside, None if inside is None else fill, **options)
    return made


def store_block(
    pointer: BlockPointer, value: Any, mask: Any, boundary_check: Any, **options: Any
) -> None:
    """``tl.store`` of a block pointer: ``value`` has the block's shape and element type exactly."""
    _refuse_mask("store", pointer, mask=mask)
    known = unwrap(value)
    element = pointer.dtype.element_ty
    wanted = TileType(element, pointer.block_shape)
    if isinstance(known, Tile) and (
        known.dtype is not element or known.type.shape not in ((), pointer.block_shape)
    ):
        hint = f"cast it: value.to({element})" if known.dtype is not element else ""
        got, expected = known.type, f"a value of {wanted}"
        raise error("E0204", op="store", expected=expected, got=got, hint=hint, argument="value")
    pointers, inside = _elements("store", pointer, boundary_check)
    SURFACE["store"](pointers, value, inside, **options)


# ---- tensor descriptors --------------------------------------------------------------------------


class TensorDescriptor(Structure):
    """An array whose blocks of ``block_shape`` are read and written at any offsets, checked."""

    __slots__ = ("_block_shape", "base", "padding", "shape", "strides")

    def __init__(
        self,
        base: Tile,
        shape: Iterable[Any],
        strides: Iterable[Any],
        block_shape: tuple[int, ...],
        padding: str,
    ) -> None:
        self.base = base
        self.shape = TileTuple(shape)
        self.strides = TileTuple(strides)
        self._block_shape = block_shape
        self.padding = padding

    def _parts(self) -> tuple[Any, ...]:
        return (self.base, self.shape, self.strides)

    def _rebuilt(self, parts: Iterable[Any]) -> TensorDescriptor:
        base, shape, strides = parts
        return TensorDescriptor(base, shape, strides, self._block_shape, self.padding)

    def _kind(self) -> Any:
        return type(self), self._block_shape, self.padding

    def _shown(self, parts: Iterable[str]) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"a tensor descriptor of {list(self._block_shape)} of {self.dtype}"

    @property
    def block_shape(self) -> TileTuple:
        """The extents of a block, as a tuple of ``constexpr``."""
        return TileTuple(map(constexpr, self._block_shape))

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.base.dtype.element_ty  # type: ignore[attr-defined]

    @property
    def block_type(self) -> Type:
        """The type of a block."""
        return TileType(self.dtype, self._block_shape)

    type = block_type

    def __getattr__(self, name: str) -> Any:
        method = DESCRIPTOR_METHODS.get(name)
        if method is None:
            raise AttributeError(f"a tensor descriptor has no attribute {name!r}")
        return BoundMethod(self, method)


@surface
def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero"
) -> TensorDescriptor:
    """A descriptor of an array, whose blocks are read by ``load(offsets)`` and the like.

    ``shape`` and ``strides``, in elements, are integers for each of 1 to 5 axes; extents are int32,
    or int64 where they are given as 64-bit or uint32, strides are int64, and the last stride is a
    compile-time 1. Elements outside of the shape read as ``padding_option``, "zero" or "nan", and
    aren't written. Along the last axis a block has at least 16 bytes; strides that are known are
    multiples of 16 bytes, and extents that are known at least 1, as copies by hardware need.

    Raises E0601 for a base that is no scalar pointer, E0204 for what is no tuple of scalar
    integers, E0606 for another padding, E0206 for everything else.
    """
    name = "make_tensor_descriptor"
    start = _base(name, base)
    element = start.dtype.element_ty  # type: ignore[attr-defined]
    made = _description(name, element, shape, strides, block_shape, padding_option)
    return TensorDescriptor(
        start,
        [_extent(name, each) for each in made.shape],
        [_scalar(name, each, "strides") for each in made.strides],
        made.block_shape,
        made.padding,
    )


class Description(NamedTuple):
    """What a descriptor is made of, checked: ``shape`` and ``strides`` as they were given."""

    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    block_shape: tuple[int, ...]
    padding: str


def _description(
    op: str,
    element: Type,
    shape: Any,
    strides: Any,
    block_shape: Any,
    padding: Any,
    address: int | None = None,
) -> Description:
    """The rule for all descriptors, whoever makes them; ``address`` is the base's, if known.

    Raises E0204, E0205 and E0606, and E0206 for what hardware can't copy.
    """
    extents = static_shape(op, block_shape, "block_shape")
    rank = len(extents)
    sizes, steps = _listed(op, shape, "shape", rank), _listed(op, strides, "strides", rank)
    size = element.itemsize
    known_sizes, known_steps = map(_integer, sizes), [_integer(each) for each in steps]
    problem = None
    if not 1 <= rank <= _MOST_AXES:
        problem = (f"{rank} axes", f"1 to {_MOST_AXES} axes are allowed", "block_shape")
    elif known_steps[-1] != 1:
        got = describe(unwrap(steps[-1]))
        hint = "the last axis must be contiguous: write 1, or pass it as an argument that is 1"
        problem = (f"the last stride must be a compile-time 1, got {got}", hint, "strides")
    elif extents[-1] * size < ALIGNMENT:
        text = f"the last axis of a block has {extents[-1] * size} bytes"
        problem = (text, f"at least {ALIGNMENT} are needed", "block_shape")
    elif any(step is not None and step * size % ALIGNMENT for step in known_steps[:-1]):
        text = f"a stride is no multiple of {ALIGNMENT} bytes"
        problem = (text, "pad the rows of the array", "strides")
    elif any(extent is not None and extent < 1 for extent in known_sizes):
        problem = ("an extent of shape is under 1", "launch nothing for an empty array", "shape")
    elif address is not None and address % ALIGNMENT:
        text = f"the address of base is no multiple of {ALIGNMENT} bytes"
        problem = (text, "pass a copy, or a view that starts at such an address", "base")
    if problem is not None:
        text, hint, argument = problem
        raise error("E0206", op=op, text=text, hint=hint, argument=argument)
    option = static_choice(op, padding, "padding_option", PADDINGS)
    _fill(op, option, element)
    return Description(sizes, steps, extents, option)


def host_description(
    op: str, element: Type, address: int, shape: Any, strides: Any, block_shape: Any, padding: Any
) -> Description:
    """The fields of a descriptor that is made on the host, where all numbers are known.

    Raises what ``make_tensor_descriptor`` raises, E0206 for an ``address`` that isn't aligned, too.
    """
    made = _description(op, element, shape, strides, block_shape, padding, address)
    sizes, steps = (
        tuple(_known(op, each, name) for each in values)
        for name, values in (("shape", made.shape), ("strides", made.strides))
    )
    return made._replace(shape=sizes, strides=steps)


def _known(op: str, value: Any, argument: str) -> int:
    plain = _integer(value)
    if plain is None:
        raise _no_integer(op, value, argument)
    if not _fits(plain, int64):
        raise error("E0203", value=f"{op}: {plain} in {argument}", type=int64, argument=argument)
    return plain


def _descriptor(op: str, desc: Any) -> TensorDescriptor:
    known = unwrap(desc)
    if not isinstance(known, TensorDescriptor):
        got, wanted = describe(known), "a tensor descriptor"
        raise error("E0204", op=op, expected=wanted, got=got, hint="", argument="desc")
    return known


def _block(op: str, desc: TensorDescriptor, offsets: Any) -> tuple[Tile, Tile]:
    given = _listed(op, offsets, "offsets", len(desc._block_shape))
    starts = [_scalar(op, each, "offsets") for each in given]
    indices = [_run(start, extent) for start, extent in zip(starts, desc._block_shape)]
    pointers, inside = _reach(
        desc.base, desc.shape.values, desc.strides.values, indices, range(len(indices))
    )
    assert inside is not None
    return pointers, inside


def _same_shape(op: str, value: Any, shape: tuple[int, ...]) -> Any:
    known = unwrap(value)
    if isinstance(known, Tile) and known.type.shape != shape:
        expected = f"a value of shape {list(shape)}"
        raise error("E0204", op=op, expected=expected, got=known.type, hint="", argument="value")
    return known


@surface
def load_tensor_descriptor(desc: Any, offsets: Any) -> Tile:
    """The block of a tensor descriptor at ``offsets``, one integer for each axis.

    Elements outside of the array are the descriptor's padding. Raises E0204 for anything but a
    descriptor and a tuple of scalar integers, E0206 for another number of these.
    """
    array = _descriptor("load_tensor_descriptor", desc)
    fill = _fill("load_tensor_descriptor", array.padding, array.dtype)
    pointers, inside = _block("load_tensor_descriptor", array, offsets)
    made: Tile = SURFACE["load"](pointers, inside, fill)
    return made


@surface
def store_tensor_descriptor(desc: Any, offsets: Any, value: Any) -> None:
    """Write a tile of the block's shape at ``offsets``; what is outside of the array is dropped.

    ``value`` is cast to the element type; a plain number stands for a tile of it. Raises E0204
    for a tile or scalar of another shape, and as ``load_tensor_descriptor``.
    """
    array = _descriptor("store_tensor_descriptor", desc)
    value = _same_shape("store_tensor_descriptor", value, array._block_shape)
    pointers, inside = _block("store_tensor_descriptor", array, offsets)
    SURFACE["store"](pointers, value, inside)


def _rows(op: str, desc: Any, x_offsets: Any, y_offset: Any) -> tuple[Tile, Tile]:
    """Pointers to parts of rows, from column ``y_offset`` on, and the mask of those inside."""
    array = _descriptor(op, desc)
    if len(array._block_shape) != 2 or array._block_shape[0] != 1:
        text = f"the block has the shape {list(array._block_shape)}"
        raise error("E0206", op=op, text=text, hint="it must be [1, columns]", argument="desc")
    rows = to_tile(x_offsets, op, "x_offsets")
    if len(rows.type.shape) != 1 or not rows.dtype.is_int():
        raise error(
            "E0204",
            op=op,
            expected="a vector of integers as x_offsets",
            got=rows.type,
            hint="",
            argument="x_offsets",
        )
    columns = _run(_scalar(op, y_offset, "y_offset"), array._block_shape[1])
    indices = (convert_tile(rows, int64), columns)
    pointers, inside = _reach(array.base, array.shape.values, array.strides.values, indices, (0, 1))
    assert inside is not None
    return pointers, inside


@surface(name="")
def gather_rows(desc: Any, x_offsets: Any, y_offset: Any) -> Tile:
    """The rows ``x_offsets`` of a descriptor with blocks [1, columns], from ``y_offset`` on.

    The result has a row for each element of the vector ``x_offsets``; padded as by ``load``. Raises
    E0204 for offsets of other types or shapes, E0206 for other blocks.
    """
    pointers, inside = _rows("gather", desc, x_offsets, y_offset)
    array = _descriptor("gather", desc)
    made: Tile = SURFACE["load"](pointers, inside, _fill("gather", array.padding, array.dtype))
    return made


@surface(name="")
def scatter_rows(desc: Any, value: Any, x_offsets: Any, y_offset: Any) -> None:
    """Write the rows of ``value`` to the rows ``x_offsets``, from column ``y_offset`` on.

    What is outside of the array is dropped, and a plain number stands for a tile of it. Raises as
    ``gather`` does, and E0204 for a tile or scalar of another shape.
    """
    pointers, inside = _rows("scatter", desc, x_offsets, y_offset)
    value = _same_shape("scatter", value, pointers.type.shape)
    SURFACE["store"](pointers, value, inside)


def _atomic(operation: str) -> Any:
    def atomic(desc: Any, offsets: Any, value: Any) -> None:
        array = _descriptor(operation, desc)
        value = _same_shape(operation, value, array._block_shape)
        pointers, inside = _block(operation, array, offsets)
        SURFACE[operation](pointers, value, mask=inside)

    atomic.__name__ = atomic.__qualname__ = operation
    atomic.__doc__ = f"``tl.{operation}`` of a block at ``offsets``, inside of the array only."
    return surface(name="")(atomic)


DESCRIPTOR_METHODS: dict[str, Any] = {
    "load": load_tensor_descriptor,
    "store": store_tensor_descriptor,
    "gather": gather_rows,
    "scatter": scatter_rows,
    **{
        f"atomic_{each}": _atomic(f"atomic_{each}")
        for each in ("add", "min", "max", "and", "or", "xor")
    },
}
"""What descriptors can do, by the name of the method."""


class DescriptorArgument(NamedTuple):
    """What a launch passes in place of a descriptor that the host made."""

    descriptor_base: Any
    descriptor_shape: tuple[int, ...]
    descriptor_strides: tuple[int, ...]
    descriptor_block_shape: constexpr
    descriptor_padding: constexpr


def described(values: Iterable[Any], fields: tuple[str, ...] | None) -> Structure:
    """An argument of a kernel that has parts: a tuple, or a descriptor that the host made."""
    if fields != DescriptorArgument._fields:
        return TileTuple(values, fields)
    base, shape, strides, block_shape, padding = values
    return TensorDescriptor(base, shape, strides, unwrap(block_shape), unwrap(padding))
