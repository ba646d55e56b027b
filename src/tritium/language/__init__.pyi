"""What kernels import as ``tl``.

Written by scripts/generate_stubs.py: change the source, not this file.
"""

from typing import Any

from tritium.ir.dtypes import DType as dtype
from tritium.ir.types import PointerType as pointer_type
from tritium.ir.types import TileType as block_type
from tritium.ops.arith import PropagateNan as PropagateNan
from tritium.ops.constexpr import constexpr as constexpr
from tritium.ops.hints import Condition as condition
from tritium.ops.hints import Range as range
from tritium.ops.hints import StaticRange as static_range
from tritium.ops.tile import Tile
from tritium.ops.tuples import TileTuple as tuple

from . import core as core
from . import math as math
from . import random as random
from . import standard as standard
from .names import const as const

void: dtype
int8: dtype
int16: dtype
int32: dtype
int64: dtype
int1: dtype
uint8: dtype
uint16: dtype
uint32: dtype
uint64: dtype
float8e4nv: dtype
float8e4b8: dtype
float8e4b15: dtype
float8e5: dtype
float8e5b16: dtype
float16: dtype
bfloat16: dtype
float32: dtype
float64: dtype
pi32_t: pointer_type
TRITON_MAX_TENSOR_NUMEL: int

class tensor(Tile):
    """A tile, or a scalar where its shape is ()."""

    def abs(self) -> tensor:
        """The absolute value of each element; unsigned integers stay as they are."""

    def advance(self, offsets: Any) -> Any:
        """A block pointer whose offsets are larger by ``offsets``, one integer for each axis."""

    def all(self, axis: Any = None, keep_dims: Any = False) -> Any:
        """Whether no element along ``axis`` is 0, of all elements where it is None: int1."""

    def any(self, axis: Any = None, keep_dims: Any = False) -> Any:
        """Whether an element along ``axis`` isn't 0, of all elements where it is None: int1."""

    def argmax(self, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
        """The int32 index of the largest element along ``axis``, as ``max`` gives it."""

    def argmin(self, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
        """The int32 index of the smallest element along ``axis``, as ``min`` gives it."""

    def argsort(self, dim: Any = None, descending: Any = False) -> tensor:
        """The int32 indices along ``dim`` that sort ``x`` as ``sort`` does: stable."""

    def associative_scan(
        self,
        axis: Any,
        combine_fn: Any,
        reverse: Any = False,
        exclusive: Any = None,
    ) -> Any:
        """Each element of ``input`` combined with all that stand before it along ``axis``."""

    def atomic_add(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """Add ``val`` to memory in one step."""

    def atomic_and(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """Leave the bits set in both memory and ``val``, in one step."""

    def atomic_cas(self, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> tensor:
        """Write ``val`` where memory has the bits of ``cmp``, in one step; gives what was there."""

    def atomic_load(self, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """The elements at ``pointer``, each read in one step and exactly once."""

    def atomic_max(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """Leave the larger of memory and ``val``, in one step."""

    def atomic_min(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """Leave the smaller of memory and ``val``, in one step."""

    def atomic_or(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """Leave the bits set in memory or ``val``, in one step."""

    def atomic_poll(
        self,
        expected_value: Any,
        sem: Any = None,
        scope: Any = None,
        timeout_ns: Any = None,
    ) -> Any:
        """Read one element again and again until it is ``expected_value``; gives True."""

    def atomic_store(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> None:
        """Write ``val`` to ``pointer``, each element in one step, where ``mask`` (int1) is true."""

    def atomic_xchg(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """Replace memory by ``val`` in one step."""

    def atomic_xor(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """Leave the bits set in one of memory and ``val``, in one step."""

    def broadcast_to(self, *shape: Any) -> tensor:
        """``input`` repeated along its axes of extent 1 until it has ``shape``."""

    def cast(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> tensor:
        """``input`` converted to ``dtype``."""

    def cdiv(self, div: Any) -> Any:
        """``x / div`` rounded up, for positive integers: ``(x + div - 1) // div``."""

    def ceil(self) -> tensor:
        """The smallest integer not below each element of fp32 or fp64, as a float."""

    def cos(self) -> tensor:
        """The cosine of fp32 or fp64, in radians. Raises E0204 for other types."""

    def count(self, axis: Any = None, keep_dims: Any = False) -> Any:
        """How many elements along ``axis`` aren't 0, of all elements where it is None: int32."""

    def cumprod(
        self,
        axis: Any = 0,
        reverse: Any = False,
        dtype: Any = None,
        exclusive: Any = False,
    ) -> tensor:
        """The running products along ``axis``, by the rules of ``cumsum``; an exclusive one
        starts with 1.
        """

    def cumsum(
        self,
        axis: Any = 0,
        reverse: Any = False,
        dtype: Any = None,
        exclusive: Any = False,
    ) -> tensor:
        """The running sums along ``axis``: result k is the sum of the elements 0 to k."""

    def erf(self) -> tensor:
        """The error function of fp32 or fp64. Raises E0204 for other types."""

    def exp(self) -> tensor:
        """e to the power of each element of fp32 or fp64. Raises E0204 for other types."""

    def exp2(self) -> tensor:
        """2 to the power of each element of fp32 or fp64. Raises E0204 for other types."""

    def expand_dims(self, axis: Any) -> tensor:
        """``input`` with new axes of extent 1 at the positions ``axis`` of the result."""

    def flip(self, dim: Any = None) -> tensor:
        """``x`` with its elements in the opposite order along axis ``dim``, the last where it is
        None.
        """

    def floor(self) -> tensor:
        """The largest integer not above each element of fp32 or fp64, as a float."""

    def gather(self, index: Any, axis: Any) -> tensor:
        """Elements of ``src`` at the places along ``axis`` that the integers ``index`` give."""

    def histogram(self, num_bins: Any, mask: Any = None) -> tensor:
        """How many elements of ``input``, integers of any shape, have each value 0 to
        ``num_bins`` - 1.
        """

    def item(self) -> tensor:
        """The only element of ``input``, as a scalar. Raises E0206 where there are more."""

    def log(self) -> tensor:
        """The natural logarithm of fp32 or fp64. Raises E0204 for other types."""

    def log2(self) -> tensor:
        """The logarithm to base 2 of fp32 or fp64. Raises E0204 for other types."""

    def logical_and(self, y: Any) -> Any:
        """``x and y`` of int1 tiles: both are computed. Raises E0204 for other types."""

    def logical_not(self) -> Any:
        """``not x``: of a constant Python's, of an int1 tile each element's. Raises E0204
        otherwise.
        """

    def logical_or(self, y: Any) -> Any:
        """``x or y`` of int1 tiles: both are computed. Raises E0204 for other types."""

    def max(
        self,
        axis: Any = None,
        return_indices: Any = False,
        return_indices_tie_break_left: Any = True,
        keep_dims: Any = False,
    ) -> Any:
        """The largest element along ``axis``, of all elements where it is None."""

    def min(
        self,
        axis: Any = None,
        return_indices: Any = False,
        return_indices_tie_break_left: Any = True,
        keep_dims: Any = False,
    ) -> Any:
        """The smallest element along ``axis``, of all elements where it is None; else as
        ``max``.
        """

    def permute(self, *dims: Any) -> tensor:
        """The axes of ``input`` in another order: axis i of the result is axis ``dims[i]``."""

    def ravel(self, can_reorder: Any = False) -> tensor:
        """``x`` as one axis, in row-major order. ``can_reorder`` is never used."""

    def reduce(self, axis: Any, combine_fn: Any, keep_dims: Any = False) -> Any:
        """``input`` combined along ``axis`` by ``combine_fn``."""

    def reduce_or(self, axis: Any, keep_dims: Any = False) -> Any:
        """The bitwise or of the integers along ``axis``, of all elements where it is None."""

    def reshape(self, *shape: Any, can_reorder: Any = False) -> tensor:
        """The elements of ``input``, in row-major order, in another shape."""

    def roll(self, shift: Any, dim: Any = None) -> tensor:
        """``x`` moved by ``shift`` places along axis ``dim``, the last where it is None; what
        leaves at one end comes in at the other. ``shift`` may be a run-time integer of any
        type.
        """

    def rsqrt(self) -> tensor:
        """1 / sqrt(x) of fp32 or fp64. Raises E0204 for other types."""

    def set(self, index: Any, value: Any) -> tensor:
        """A tile like ``x`` with ``value`` at ``index``; ``x`` itself doesn't change."""

    def shift(self, shift: Any, fill: Any = 0, dim: Any = None) -> tensor:
        """``x`` moved by ``shift`` places along axis ``dim``, the last where it is None;
        ``fill`` comes in, cast to the type of ``x``. ``shift`` may be a run-time integer of
        any type.
        """

    def sigmoid(self) -> Any:
        """``1 / (1 + exp(-x))`` of each element, fp32 or fp64."""

    def sin(self) -> tensor:
        """The sine of fp32 or fp64, in radians. Raises E0204 for other types."""

    def softmax(self, dim: Any = None, keep_dims: Any = None, ieee_rounding: Any = False) -> Any:
        """The elements' exponentials over their sum along ``dim``, axis 0 where that is None."""

    def sort(self, dim: Any = None, descending: Any = False, values: Any = None) -> Any:
        """The elements of ``x`` in order along ``dim``, the last axis where that is None."""

    def split(self) -> tuple:
        """The two halves of ``a`` along its last axis, of extent 2, which they don't have."""

    def sqrt(self) -> tensor:
        """The square root of fp32 (within 2 ulp on GPUs) or fp64. Raises E0204 for other types."""

    def sqrt_rn(self) -> tensor:
        """The square root of fp32, correctly rounded. Raises E0204 for other types."""

    def squeeze(self, dim: Any) -> tensor:
        """``x`` without its axis ``dim``, whose extent must be 1; the last axis leaves a scalar."""

    def store(
        self,
        value: Any,
        mask: Any = None,
        boundary_check: Any = (),
        cache_modifier: Any = '',
        eviction_policy: Any = '',
    ) -> None:
        """Write ``value`` to ``pointer`` in the lanes whose ``mask`` (int1) is true."""

    def sum(self, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> tensor:
        """The sum along ``axis``, of all elements where it is None."""

    def tanh(self) -> tensor:
        """The hyperbolic tangent of fp32 or fp64. Raises E0204 for other types."""

    def to(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> tensor:
        """``input`` converted to ``dtype``."""

    def topk(
        self,
        k: Any,
        dim: Any = None,
        descending: Any = True,
        return_indices: Any = False,
    ) -> Any:
        """The ``k`` largest elements along ``dim``, the smallest without ``descending``, in
        order.
        """

    def trans(self, *dims: Any) -> tensor:
        """``input`` with its last two axes exchanged, or permuted by ``dims`` as ``permute``
        does.
        """

    def unsqueeze(self, dim: Any) -> tensor:
        """``x`` with a new axis of extent 1 at position ``dim`` of the result."""

    def view(self, *shape: Any) -> tensor:
        """An older name of ``reshape``."""

    def xor_sum(self, axis: Any = None, keep_dims: Any = False) -> Any:
        """The exclusive or of the integers along ``axis``, of all elements where it is None."""

def abs(x: Any) -> tensor:
    """The absolute value of each element; unsigned integers stay as they are.

    Raises E0204 for a pointer.
    """

def add(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """``x + y``. ``sanitize_overflow`` says whether checked builds report integer overflow here."""

def advance(base: Any, offsets: Any) -> Any:
    """A block pointer whose offsets are larger by ``offsets``, one integer for each axis.

    Raises E0204 for anything but a block pointer or a tuple of scalar integers, E0206 for another
    number of them.
    """

def all(input: Any, axis: Any = None, keep_dims: Any = False) -> Any:
    """Whether no element along ``axis`` is 0, of all elements where it is None: int1."""

def any(input: Any, axis: Any = None, keep_dims: Any = False) -> Any:
    """Whether an element along ``axis`` isn't 0, of all elements where it is None: int1."""

def arange(start: Any, end: Any) -> tensor:
    """The int32 vector start, start + 1, ..., end - 1, of any length from 1.

    Raises E0205 for a run-time bound, E0204 for one that is no integer, E0206 where ``end`` is not
    above ``start`` or the vector is too long, E0203 where it leaves int32.
    """

def argmax(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
    """The int32 index of the largest element along ``axis``, as ``max`` gives it."""

def argmin(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
    """The int32 index of the smallest element along ``axis``, as ``min`` gives it."""

def argsort(x: Any, dim: Any = None, descending: Any = False) -> tensor:
    """The int32 indices along ``dim`` that sort ``x`` as ``sort`` does: stable."""

def associative_scan(
    input: Any,
    axis: Any,
    combine_fn: Any,
    reverse: Any = False,
    exclusive: Any = None,
) -> Any:
    """Each element of ``input`` combined with all that stand before it along ``axis``.

    ``input`` is a tile or a tuple of n tiles of one shape; ``combine_fn``, a kernel function, takes
    the n scalars so far and the n of the next element, and returns n scalars of the same types. It
    should be associative. ``reverse`` runs from the end of the axis. ``exclusive``, a scalar (n of
    them for a tuple), leaves the element itself out: the first result is that scalar, every other
    one what the inclusive scan has one place before. Returns a tile, or a tuple of them.

    Raises E0204 for a scalar, E0206 where the shapes, the function's results or ``exclusive`` don't
    fit, E0207 for an axis out of range.
    """

def assume(cond: Any) -> None:
    """A promise that the scalar int1 ``cond`` is true. Raises E0204 for anything else.

    Used where it says something of one value: that it is a multiple of a constant
    (``n % 16 == 0``), or how it compares with one; and of what is combined by ``&``.
    """

def atomic_add(
    pointer: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
) -> tensor:
    """Add ``val`` to memory in one step.

    ``val`` is cast to the element type; it and the mask (int1) are broadcast to the pointer's
    shape. Gives what was in memory before, and 0 in lanes whose mask is false. Lanes that share an
    address are carried out one after the other, in row-major order. Elements are integers of 8 to
    64 bits, fp16, bf16, fp32 and fp64. ``sem`` is "acquire", "release", "acq_rel" (the default) or
    "relaxed", ``scope`` "gpu" (the default), "cta" or "sys".

    Raises E0601 without a pointer, E0204 for other elements, E0602 for a mask that isn't int1,
    E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an unknown option.
    """

def atomic_and(
    pointer: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
) -> tensor:
    """Leave the bits set in both memory and ``val``, in one step.

    ``val`` is cast to the element type; it and the mask (int1) are broadcast to the pointer's
    shape. Gives what was in memory before, and 0 in lanes whose mask is false. Lanes that share an
    address are carried out one after the other, in row-major order. Elements are integers of 8 to
    64 bits, fp16, bf16, fp32 and fp64. ``sem`` is "acquire", "release", "acq_rel" (the default) or
    "relaxed", ``scope`` "gpu" (the default), "cta" or "sys".

    Raises E0601 without a pointer, E0204 for other elements, E0602 for a mask that isn't int1,
    E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an unknown option.
    """

def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> tensor:
    """Write ``val`` where memory has the bits of ``cmp``, in one step; gives what was there.

    ``cmp`` and ``val`` are cast to the element type and broadcast to the pointer's shape; types,
    order of lanes, ``sem`` and ``scope`` as of ``atomic_add``.

    Raises E0601 without a pointer, E0204 for other elements, E0603 where shapes don't fit, E0605
    for a pointer to const, E0606 for an unknown option.
    """

def atomic_load(pointer: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """The elements at ``pointer``, each read in one step and exactly once.

    Lanes whose ``mask`` (int1) is false give 0. ``sem`` is "acquire" (the default) or "relaxed".

    Raises E0601 without a pointer, E0204 for elements that ``atomic_add`` doesn't take, E0602 for a
    mask that isn't int1, E0603 where it doesn't fit, E0606 for an unknown option.
    """

def atomic_max(
    pointer: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
) -> tensor:
    """Leave the larger of memory and ``val``, in one step.

    ``val`` is cast to the element type; it and the mask (int1) are broadcast to the pointer's
    shape. Gives what was in memory before, and 0 in lanes whose mask is false. Lanes that share an
    address are carried out one after the other, in row-major order. Elements are integers of 8 to
    64 bits, fp16, bf16, fp32 and fp64. ``sem`` is "acquire", "release", "acq_rel" (the default) or
    "relaxed", ``scope`` "gpu" (the default), "cta" or "sys".

    Raises E0601 without a pointer, E0204 for other elements, E0602 for a mask that isn't int1,
    E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an unknown option.
    """

def atomic_min(
    pointer: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
) -> tensor:
    """Leave the smaller of memory and ``val``, in one step.

    ``val`` is cast to the element type; it and the mask (int1) are broadcast to the pointer's
    shape. Gives what was in memory before, and 0 in lanes whose mask is false. Lanes that share an
    address are carried out one after the other, in row-major order. Elements are integers of 8 to
    64 bits, fp16, bf16, fp32 and fp64. ``sem`` is "acquire", "release", "acq_rel" (the default) or
    "relaxed", ``scope`` "gpu" (the default), "cta" or "sys".

    Raises E0601 without a pointer, E0204 for other elements, E0602 for a mask that isn't int1,
    E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an unknown option.
    """

def atomic_or(
    pointer: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
) -> tensor:
    """Leave the bits set in memory or ``val``, in one step.

    ``val`` is cast to the element type; it and the mask (int1) are broadcast to the pointer's
    shape. Gives what was in memory before, and 0 in lanes whose mask is false. Lanes that share an
    address are carried out one after the other, in row-major order. Elements are integers of 8 to
    64 bits, fp16, bf16, fp32 and fp64. ``sem`` is "acquire", "release", "acq_rel" (the default) or
    "relaxed", ``scope`` "gpu" (the default), "cta" or "sys".

    Raises E0601 without a pointer, E0204 for other elements, E0602 for a mask that isn't int1,
    E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an unknown option.
    """

def atomic_poll(
    pointer: Any,
    expected_value: Any,
    sem: Any = None,
    scope: Any = None,
    timeout_ns: Any = None,
) -> Any:
    """Read one element again and again until it is ``expected_value``; gives True.

    Meanwhile other programs run. ``sem`` and ``scope`` as of ``atomic_load``. Programs have no
    clock, so ``timeout_ns`` must be None. Where nothing can ever change, eager mode ends the launch
    (E0702), and compiled code waits until Ctrl-C.
    """

def atomic_store(
    pointer: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
) -> None:
    """Write ``val`` to ``pointer``, each element in one step, where ``mask`` (int1) is true.

    ``val`` is cast to the element type; it and the mask are broadcast to the pointer's shape. Where
    lanes share an address the last one stands. ``sem`` is "release" (the default) or "relaxed".

    Raises E0601 without a pointer, E0204 for elements that ``atomic_add`` doesn't take, E0602 for a
    mask that isn't int1, E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an
    unknown option.
    """

def atomic_xchg(
    pointer: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
) -> tensor:
    """Replace memory by ``val`` in one step.

    ``val`` is cast to the element type; it and the mask (int1) are broadcast to the pointer's
    shape. Gives what was in memory before, and 0 in lanes whose mask is false. Lanes that share an
    address are carried out one after the other, in row-major order. Elements are integers of 8 to
    64 bits, fp16, bf16, fp32 and fp64. ``sem`` is "acquire", "release", "acq_rel" (the default) or
    "relaxed", ``scope`` "gpu" (the default), "cta" or "sys".

    Raises E0601 without a pointer, E0204 for other elements, E0602 for a mask that isn't int1,
    E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an unknown option.
    """

def atomic_xor(
    pointer: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
) -> tensor:
    """Leave the bits set in one of memory and ``val``, in one step.

    ``val`` is cast to the element type; it and the mask (int1) are broadcast to the pointer's
    shape. Gives what was in memory before, and 0 in lanes whose mask is false. Lanes that share an
    address are carried out one after the other, in row-major order. Elements are integers of 8 to
    64 bits, fp16, bf16, fp32 and fp64. ``sem`` is "acquire", "release", "acq_rel" (the default) or
    "relaxed", ``scope`` "gpu" (the default), "cta" or "sys".

    Raises E0601 without a pointer, E0204 for other elements, E0602 for a mask that isn't int1,
    E0603 where shapes don't fit, E0605 for a pointer to const, E0606 for an unknown option.
    """

def bitonic_merge(x: Any, dim: Any = None, descending: Any = False) -> tensor:
    """A bitonic sequence along ``dim`` (rising, then falling, or rotated) in order: ``sort``."""

def broadcast(input: Any, other: Any) -> tuple:
    """Both operands broadcast to their common shape, by NumPy's rules.

    Raises E0202 where the shapes don't fit.
    """

def broadcast_to(input: Any, *shape: Any) -> tensor:
    """``input`` repeated along its axes of extent 1 until it has ``shape``.

    The ranks must be equal, but a scalar may become any shape. ``shape`` is given as several
    integers or as one tuple. Raises E0202 where an extent doesn't fit, E0204 for another rank.
    """

def cast(input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> tensor:
    """``input`` converted to ``dtype``.

    Floats round once, to nearest with ties to even, or toward zero under
    ``fp_downcast_rounding="rtz"``, which only a float narrowing takes. Floats to integers truncate
    and saturate, integers to narrower ones wrap, anything to int1 is ``x != 0``. With ``bitcast``
    the bits are kept instead, and the widths must be equal. Raises E0210 for a pair without a
    conversion, E0206 for a misplaced rounding or different widths.
    """

def cat(input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> tensor:
    """``input``, then ``other``, along axis ``dim``; all other extents are equal.

    ``can_reorder`` permits another order of the elements; it is never used. Raises E0201 for two
    element types, E0206 where other extents differ, E0207 for an axis out of range.
    """

def cdiv(x: Any, div: Any) -> Any:
    """``x / div`` rounded up, for positive integers: ``(x + div - 1) // div``.

    The sum wraps like any other.
    """

def ceil(x: Any) -> tensor:
    """The smallest integer not below each element of fp32 or fp64, as a float.

    Raises E0204 for other types.
    """

def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """``x`` held between ``min`` and ``max``; where min > max, ``max``.

    A NaN in ``x`` becomes ``min``, or stays with ``tl.PropagateNan.ALL``.
    """

def cos(x: Any) -> tensor:
    """The cosine of fp32 or fp64, in radians. Raises E0204 for other types."""

def count(input: Any, axis: Any = None, keep_dims: Any = False) -> Any:
    """How many elements along ``axis`` aren't 0, of all elements where it is None: int32."""

def cumprod(
    input: Any,
    axis: Any = 0,
    reverse: Any = False,
    dtype: Any = None,
    exclusive: Any = False,
) -> tensor:
    """The running products along ``axis``, by the rules of ``cumsum``; an exclusive one starts
    with 1.
    """

def cumsum(
    input: Any,
    axis: Any = 0,
    reverse: Any = False,
    dtype: Any = None,
    exclusive: Any = False,
) -> tensor:
    """The running sums along ``axis``: result k is the sum of the elements 0 to k.

    Signed integers under 32 bits are summed as int32, unsigned ones and int1 as uint32; all other
    types in their own, fp16 and bf16 included. ``dtype`` converts the elements before. The sums are
    added one after the other, from the end of the axis with ``reverse``. ``exclusive`` leaves the
    element itself out: the first result is 0.

    Raises E0204 for a scalar, E0207 for an axis out of range.
    """

def debug_barrier() -> None:
    """Nothing: memory operations of a program already take effect in program order."""

def device_assert(cond: Any, msg: Any = '', mask: Any = None) -> None:
    """End the launch with E0703 unless ``cond`` (int1) is true in every lane of ``mask``.

    The error names the line, the program and the first lane. ``assert`` in a kernel is the same.
    Compiled kernels check where they are launched with ``debug=True`` or TRITON_DEBUG=1; the
    interpreter always does.

    Raises E0204 for a condition or mask that isn't int1 and for a message that is no constant
    string, E0202 for shapes that don't fit.
    """

def device_print(prefix: Any, *args: Any, hex: Any = False) -> None:
    """Print elements when the kernel runs, a line for each.

    A line reads ``pid (0, 0, 0) idx (2, 1) prefix: 3``; of several values each says which it is.
    ``prefix`` is a constant string of printable ASCII; ``hex`` prints bits as hexadecimal digits.
    ``print`` in a compiled kernel is the same; step by step it is Python's own.

    Raises E0204 and E0206 for another prefix, E0210 for what has no value.
    """

def div_rn(x: Any, y: Any) -> tensor:
    """``x / y`` of fp32, correctly rounded. Raises E0204 for other types."""

def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
) -> tensor:
    """The matrix product of ``input`` [..., M, K] and ``other`` [..., K, N], plus ``acc``.

    Any extents; leading axes are batches and must be equal. Both operands have one type: int8
    (gives int32), fp16 (fp32, or fp16 by ``out_dtype``), bf16, fp32 (fp32), fp64 (fp64), or
    each is one of the 8-bit floats (as fp16). ``acc`` has the type and shape of the result;
    ``out_dtype`` is its type where it isn't given. ``input_precision``, for fp32 operands on a
    GPU: tf32 (the default, unless ``knobs.language.fp32_default`` says otherwise), tf32x3,
    ieee, bf16x3, bf16x6; ``allow_tf32`` is its older form. int32 wraps; floats have the
    rounding errors of K + 1 additions in fp32 (fp64 for fp64), in no particular order.

    Raises E0201 for types that don't multiply, E0204 for a rank under 2 or an unfit ``acc``, E0206
    where extents don't meet, E0210 for another ``out_dtype``, E0606 for an unknown precision.
    """

def dot_scaled(*args: Any, **kwargs: Any) -> Any:
    """Not supported yet: scaled products come with a later version. Raises E0121."""

def erf(x: Any) -> tensor:
    """The error function of fp32 or fp64. Raises E0204 for other types."""

def exp(x: Any) -> tensor:
    """e to the power of each element of fp32 or fp64. Raises E0204 for other types."""

def exp2(x: Any) -> tensor:
    """2 to the power of each element of fp32 or fp64. Raises E0204 for other types."""

def expand_dims(input: Any, axis: Any) -> tensor:
    """``input`` with new axes of extent 1 at the positions ``axis`` of the result.

    ``axis`` is an integer or a sequence of them; negative ones count from the end of the result.
    A scalar becomes a tile. Raises E0207 for a position out of range, E0206 for one given twice.
    """

def expect_zero(x: Any, mask: Any) -> tensor:
    """``x`` itself, of which the caller expects 0 where ``mask`` is false. Nothing checks that.

    Raises E0602 for a mask that isn't int1, E0202 for one that doesn't broadcast with ``x``.
    """

def fdiv(x: Any, y: Any, ieee_rounding: Any = False, approx: Any = False) -> tensor:
    """``x / y`` of floats, promoted as ``/`` does.

    ``ieee_rounding`` asks for the correctly rounded fp32 quotient on every target; ``approx``
    permits a faster one, which no target of Tritium uses. Raises E0204 for two integers.
    """

def flip(x: Any, dim: Any = None) -> tensor:
    """``x`` with its elements in the opposite order along axis ``dim``, the last where it is None.

    Raises E0207 for an axis out of range.
    """

def floor(x: Any) -> tensor:
    """The largest integer not above each element of fp32 or fp64, as a float.

    Raises E0204 for other types.
    """

def fma(x: Any, y: Any, z: Any) -> tensor:
    """``x * y + z`` of floats, rounded once. Raises E0204 for integers."""

def full(shape: Any, value: Any, dtype: Any) -> tensor:
    """A tile of that shape whose elements are ``value``; ``()`` gives a scalar.

    ``value`` is a number, of a kind that ``dtype`` takes (an integer wraps, a float must be whole
    for an integer type), or a tile of one element, which is cast. Raises E0203 for a number of
    another kind, E0206 for a tile of several elements, E0204 for a shape or type that is none,
    E0205 where they aren't known at compile time.
    """

def gather(src: Any, index: Any, axis: Any) -> tensor:
    """Elements of ``src`` at the places along ``axis`` that the integers ``index`` give.

    ``index`` has the rank of ``src``, and its extents but along ``axis``; the result has its shape.
    A place before the first is taken as the first, one behind the last as the last. Raises E0204
    for places that are no integers, E0206 for extents that differ, E0207 for an axis out of range.
    """

def histogram(input: Any, num_bins: Any, mask: Any = None) -> tensor:
    """How many elements of ``input``, integers of any shape, have each value 0 to ``num_bins`` - 1.

    An int32 tile of ``num_bins`` counts, any number of them. Values out of range are left out, as
    are elements where ``mask``, an int1 tile of the same shape or a scalar, is false.

    Raises E0204 for floats, scalars and other masks, E0206 for a number of bins that no tile has.
    """

def inline_asm_elementwise(*args: Any, **kwargs: Any) -> Any:
    """Not supported yet: calls of foreign code come with a later version. Raises E0121."""

def interleave(a: Any, b: Any) -> tensor:
    """The elements of ``a`` and ``b`` in turn along the last axis, ``a``'s first.

    Two scalars give a tile of shape (2,). Raises E0201 for two element types, E0202 where the
    shapes don't fit.
    """

def join(a: Any, b: Any) -> tensor:
    """``a`` and ``b``, broadcast to each other, side by side on a new last axis of extent 2.

    Two scalars give a tile of shape (2,). Raises E0201 for two element types, E0202 where the
    shapes don't fit.
    """

def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: Any = '',
    cache_modifier: Any = '',
    eviction_policy: Any = '',
    volatile: Any = False,
) -> tensor:
    """The elements at ``pointer``, in the pointer's shape and its element type.

    Lanes whose ``mask`` (int1) is false read no memory: they give ``other``, cast to the element
    type, or 0. Mask and other are broadcast to the pointer's shape; a larger mask broadcasts the
    pointer, unless that is a scalar.

    Of a block pointer the block: along the axes that ``boundary_check`` lists, elements outside of
    the array read no memory and give 0, or NaN with ``padding_option="nan"``. It takes no mask.

    No option changes a result. On NVIDIA GPUs ``cache_modifier`` (ca, cg, cs, cv; wb and wt are for
    stores and say nothing here) is the instruction's cache operator, ``eviction_policy``
    (evict_first, evict_last; evict_normal is the default) its priority in L2, and in L1 too where
    there is no cache operator. A ``volatile`` load ignores both. What is volatile or cv is read
    once, for all threads, also where several hold the element.

    Raises E0601 without a pointer, E0602 for a mask that isn't int1, E0603 where shapes don't fit,
    E0604 for ``other`` without a mask, E0606 for an unknown option, E0607 for options of block
    pointers.
    """

def load_tensor_descriptor(desc: Any, offsets: Any) -> tensor:
    """The block of a tensor descriptor at ``offsets``, one integer for each axis.

    Elements outside of the array are the descriptor's padding. Raises E0204 for anything but a
    descriptor and a tuple of scalar integers, E0206 for another number of these.
    """

def log(x: Any) -> tensor:
    """The natural logarithm of fp32 or fp64. Raises E0204 for other types."""

def log2(x: Any) -> tensor:
    """The logarithm to base 2 of fp32 or fp64. Raises E0204 for other types."""

def make_block_ptr(
    base: Any,
    shape: Any,
    strides: Any,
    offsets: Any,
    block_shape: Any,
    order: Any,
) -> Any:
    """A pointer to a block of an array: ``block_shape`` elements from ``offsets`` on.

    ``base`` points to the array's first element; ``shape``, ``strides`` and ``offsets`` are
    integers in elements, known or not, one for each axis. ``tl.load`` and ``tl.store`` take it, and
    ``tl.advance`` moves it. ``order`` lists the axes from the fastest on, and changes no result.

    Raises E0601 for a base that is no scalar pointer, E0204 for what is no tuple of scalar
    integers, E0206 where there isn't one for each axis, or for an order that is none.
    """

def make_tensor_descriptor(
    base: Any,
    shape: Any,
    strides: Any,
    block_shape: Any,
    padding_option: Any = 'zero',
) -> Any:
    """A descriptor of an array, whose blocks are read by ``load(offsets)`` and the like.

    ``shape`` and ``strides``, in elements, are integers for each of 1 to 5 axes; extents are int32,
    or int64 where they are given as 64-bit or uint32, strides are int64, and the last stride is a
    compile-time 1. Elements outside of the shape read as ``padding_option``, "zero" or "nan", and
    aren't written. Along the last axis a block has at least 16 bytes; strides that are known are
    multiples of 16 bytes, and extents that are known at least 1, as copies by hardware need.

    Raises E0601 for a base that is no scalar pointer, E0204 for what is no tuple of scalar
    integers, E0606 for another padding, E0206 for everything else.
    """

def map_elementwise(scalar_fn: Any, *args: Any, pack: Any = 1) -> Any:
    """``scalar_fn``, a kernel function of scalars, on each element of the tiles ``args``.

    The tiles are broadcast together. Unlike a tile's operations the function may branch and loop by
    the element's value; it neither accesses memory nor prints or asserts. It returns one value, or
    a tuple of them: the result is a tile, or a tuple of tiles. With ``pack`` it takes that many
    elements of each tile at once, those of the first tile first, and returns as many values of each
    result.

    Raises E0204 for scalars, E0202 for shapes that don't fit, E0206 where ``pack`` doesn't divide
    the number of elements, or for a function that returns something else or does more than compute.
    """

def max(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The largest element along ``axis``, of all elements where it is None.

    Floats under 32 bits give fp32, integers and int1 int32; wider types stay. NaN is dropped where
    there is anything else. With ``return_indices`` the pair (largest, its int32 index along
    ``axis``), in the type of ``input``: the smallest index of equal ones, or any of them without
    ``return_indices_tie_break_left``; which one is unspecified where there is a NaN. ``keep_dims``
    keeps reduced axes with extent 1.

    Raises E0204 for a scalar, E0207 for an axis out of range, E0206 for indices without an axis.
    """

def max_constancy(input: Any, values: Any) -> Any:
    """``input`` itself: a promise that along each axis runs of ``values`` elements are equal.

    One integer for each axis; runs begin at multiples of it. See ``multiple_of``. Raises E0206 for
    another number of values.
    """

def max_contiguous(input: Any, values: Any) -> Any:
    """``input`` itself: a promise that along each axis runs of ``values`` elements count up by 1.

    One integer for each axis; runs begin at multiples of it. See ``multiple_of``. Raises E0206 for
    another number of values.
    """

def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The larger of each pair of elements; of -0 and +0, +0.

    A constant counts as a tile of its own type. One NaN is dropped; ``tl.PropagateNan.ALL`` makes
    it the result.
    """

def min(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The smallest element along ``axis``, of all elements where it is None; else as ``max``."""

def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The smaller of each pair of elements; of -0 and +0, -0.

    A constant counts as a tile of its own type. One NaN is dropped; ``tl.PropagateNan.ALL`` makes
    it the result.
    """

def mul(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """``x * y``. ``sanitize_overflow`` says whether checked builds report integer overflow here."""

def multiple_of(input: Any, values: Any) -> Any:
    """``input`` itself: a promise that along each axis runs start at multiples of ``values``.

    One integer for each axis, or one for a scalar. Runs are those of ``max_contiguous`` or
    ``max_constancy``, or such as are known. A promise changes no result where it holds; on a GPU
    one that doesn't hold may make accesses go wrong. Raises E0206 for another number of values and
    for values under 1.
    """

def num_programs(axis: Any) -> tensor:
    """The number of programs along ``axis`` (0, 1 or 2) of the grid: an int32 scalar.

    Raises E0206 for another axis, E0205 where it isn't a compile-time value.
    """

def pair_uniform_to_normal(u1: Any, u2: Any) -> Any:
    """Two independent numbers, normally distributed, of two evenly from [0, 1).

    Box-Muller: ``sqrt(-2 ln u1)`` times the cosine and the sine of ``2 pi u2``. ``u1`` is raised to
    1e-7, so no result is beyond 5.68.
    """

def permute(input: Any, *dims: Any) -> tensor:
    """The axes of ``input`` in another order: axis i of the result is axis ``dims[i]``.

    ``dims`` is given as several integers or as one tuple and names every axis once. Raises E0206
    where it doesn't.
    """

def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any = 10) -> Any:
    """The four words of the counter ``c0`` to ``c3`` under an integer ``seed``.

    Counters are 32 or 64 bits wide, read as unsigned, and so is the result. With 32 bits the two
    words of the key are the low and the high half of the seed as uint64; with 64 bits they are the
    seed and 0.
    """

def philox_impl(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: Any = 10) -> Any:
    """The four words of the counter ``c0`` to ``c3`` under the key ``k0``, ``k1``.

    All are uint32, or all uint64: the generator of that width.
    """

def program_id(axis: Any) -> tensor:
    """This program's index along ``axis`` (0, 1 or 2) of the grid: an int32 scalar, from 0.

    Raises E0206 for another axis, E0205 where it isn't a compile-time value.
    """

def rand(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """A number from [0, 1) for each integer of ``offset``, evenly distributed; fp32."""

def rand4x(seed: Any, offsets: Any, n_rounds: Any = 10) -> Any:
    """Four numbers from [0, 1) for each integer of ``offsets``; fp32.

    They cost what one of ``rand`` does.
    """

def randint(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """A uint32 for each integer of ``offset``, evenly from 0 to 2^32 - 1."""

def randint4x(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Four uint32 for each integer of ``offset``: the generator's four words.

    An offset of 64 bits is the first two words of the counter, a narrower one the first.
    """

def randn(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """A number for each integer of ``offset``, normal with mean 0 and variance 1; fp32."""

def randn4x(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Four numbers for each integer of ``offset``, normal with mean 0 and variance 1; fp32."""

def ravel(x: Any, can_reorder: Any = False) -> tensor:
    """``x`` as one axis, in row-major order. ``can_reorder`` is never used."""

def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False) -> Any:
    """``input`` combined along ``axis`` by ``combine_fn``.

    ``input`` is a tile or a tuple of n tiles of one shape; ``combine_fn``, a kernel function, takes
    n left and n right scalars and returns n scalars of the same types. It should be associative and
    commutative. ``axis`` None reduces all elements, in row-major order; ``keep_dims`` keeps the
    reduced axes with extent 1. Returns a tile, or a tuple of them.

    Raises E0204 for a scalar, E0206 where the shapes or the function's results don't fit, E0207
    for an axis out of range.
    """

def reduce_or(input: Any, axis: Any, keep_dims: Any = False) -> Any:
    """The bitwise or of the integers along ``axis``, of all elements where it is None."""

def reshape(input: Any, *shape: Any, can_reorder: Any = False) -> tensor:
    """The elements of ``input``, in row-major order, in another shape.

    ``shape`` is given as several integers or as one tuple; ``()`` makes a tile of one element a
    scalar. ``can_reorder`` permits another order of the elements; it is never used. Raises E0206
    where the number of elements differs.
    """

def roll(x: Any, shift: Any, dim: Any = None) -> tensor:
    """``x`` moved by ``shift`` places along axis ``dim``, the last where it is None; what leaves at
    one end comes in at the other. ``shift`` may be a run-time integer of any type.

    Raises E0204 for a shift that is no integer, E0207 for an axis out of range.
    """

def rsqrt(x: Any) -> tensor:
    """1 / sqrt(x) of fp32 or fp64. Raises E0204 for other types."""

def set(x: Any, index: Any, value: Any) -> tensor:
    """A tile like ``x`` with ``value`` at ``index``; ``x`` itself doesn't change.

    ``index`` is what may stand in ``x[...]``, without new axes: places, ``slice(start, stop)``,
    or a tuple of these. ``value`` is broadcast to the shape of ``x[index]`` and cast to the type of
    ``x``. A run-time place outside of the tile replaces nothing. Raises E0202 where the value
    doesn't fit, and what ``x[index]`` raises.
    """

def shift(x: Any, shift: Any, fill: Any = 0, dim: Any = None) -> tensor:
    """``x`` moved by ``shift`` places along axis ``dim``, the last where it is None; ``fill`` comes
    in, cast to the type of ``x``. ``shift`` may be a run-time integer of any type.

    Raises E0204 for a shift that is no integer, E0207 for an axis out of range.
    """

def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))`` of each element, fp32 or fp64."""

def sin(x: Any) -> tensor:
    """The sine of fp32 or fp64, in radians. Raises E0204 for other types."""

def softmax(x: Any, dim: Any = None, keep_dims: Any = None, ieee_rounding: Any = False) -> Any:
    """The elements' exponentials over their sum along ``dim``, axis 0 where that is None.

    The largest element is subtracted first, so nothing overflows; fp16 and bf16 give fp32.
    ``ieee_rounding`` asks for a correctly rounded division on every target. ``keep_dims`` has no
    meaning any more: the result has the shape of ``x``.
    """

def sort(x: Any, dim: Any = None, descending: Any = False, values: Any = None) -> Any:
    """The elements of ``x`` in order along ``dim``, the last axis where that is None.

    The sort is stable. -0.0 stands before +0.0, and NaN after all numbers, before them with
    ``descending``. ``values``, a tile of the same shape or a tuple of them, is sorted along: the
    result is then the tuple (sorted ``x``, values...). Any extent.

    Raises E0204 for scalars and pointers, E0207 for an axis out of range, E0206 for values of
    another shape.
    """

def split(a: Any) -> tuple:
    """The two halves of ``a`` along its last axis, of extent 2, which they don't have.

    Raises E0206 for another extent.
    """

def sqrt(x: Any) -> tensor:
    """The square root of fp32 (within 2 ulp on GPUs) or fp64. Raises E0204 for other types."""

def sqrt_rn(x: Any) -> tensor:
    """The square root of fp32, correctly rounded. Raises E0204 for other types."""

def squeeze(x: Any, dim: Any) -> tensor:
    """``x`` without its axis ``dim``, whose extent must be 1; the last axis leaves a scalar.

    Raises E0207 for an axis out of range, E0206 where its extent isn't 1.
    """

def static_assert(cond: Any, msg: Any = '') -> None:
    """Stop compiling unless ``cond``, a compile-time bool, is true: E0119 with ``msg``.

    Raises E0205 for a run-time condition, E0204 for anything but a bool.
    """

def static_print(
    *values: Any,
    sep: Any = ' ',
    end: Any = '\n',
    file: Any = None,
    flush: Any = False,
) -> None:
    """Print at compile time, as Python's ``print``: values of constants, types of tiles."""

def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: Any = '',
    eviction_policy: Any = '',
) -> None:
    """Write ``value`` to ``pointer`` in the lanes whose ``mask`` (int1) is true.

    ``value`` is cast to the element type; it and the mask are broadcast to the pointer's shape.
    Where lanes share an address, any one of them wins. ``cache_modifier`` (wb, cg, cs, wt; ca and
    cv are for loads and say nothing here) and ``eviction_policy`` as in ``load``.

    Raises E0601 without a pointer, E0602 for a mask that isn't int1, E0603 where shapes don't fit,
    E0605 for a pointer to const, E0606 for an unknown option, E0607 for an option of block
    pointers.
    """

def store_tensor_descriptor(desc: Any, offsets: Any, value: Any) -> None:
    """Write a tile of the block's shape at ``offsets``; what is outside of the array is dropped.

    ``value`` is cast to the element type; a plain number stands for a tile of it. Raises E0204
    for a tile or scalar of another shape, and as ``load_tensor_descriptor``.
    """

def sub(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """``x - y``. ``sanitize_overflow`` says whether checked builds report integer overflow here."""

def sum(input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> tensor:
    """The sum along ``axis``, of all elements where it is None.

    Signed integers under 32 bits are summed as int32, unsigned ones and int1 as uint32; all other
    types in their own, fp16 and bf16 included. ``dtype`` converts the elements before. Integers
    wrap. The order of the additions is documented. ``keep_dims`` keeps reduced axes with extent 1.

    Raises E0204 for a scalar or fp8 elements, E0207 for an axis out of range.
    """

def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> Any:
    """The row and column of step ``i * size_j + j`` when groups of rows are walked by columns.

    The ``size_i`` by ``size_j`` grid is cut into groups of ``size_g`` rows; within a group the
    steps go down each column before the next. The last group may have fewer rows. Row-major (i, j)
    steps so reuse a group's data. Returns the pair (row, column).
    """

def tanh(x: Any) -> tensor:
    """The hyperbolic tangent of fp32 or fp64. Raises E0204 for other types."""

def to_tensor(x: Any) -> tensor:
    """A number or ``constexpr`` as a scalar tile; a tile as it is.

    bool gives int1; int the first of int32, uint32, int64 and uint64 that holds it; float gives
    fp32, or fp64 when fp32 can't hold it as a normal number.
    """

def topk(
    x: Any,
    k: Any,
    dim: Any = None,
    descending: Any = True,
    return_indices: Any = False,
) -> Any:
    """The ``k`` largest elements along ``dim``, the smallest without ``descending``, in order.

    NaN counts as the largest. ``dim`` None is the last axis; ``k`` may be any number of its
    elements. With ``return_indices`` the pair (elements, their int32 indices along ``dim``); of
    equal elements those of lower indices come first.

    Raises E0204 for scalars and pointers, E0207 for an axis out of range, E0206 for a ``k`` that is
    not 1 to the extent.
    """

def trans(input: Any, *dims: Any) -> tensor:
    """``input`` with its last two axes exchanged, or permuted by ``dims`` as ``permute`` does.

    Raises E0204 for a rank under 2, E0206 where ``dims`` doesn't name every axis once.
    """

def uint_to_uniform_float(x: Any) -> Any:
    """fp32 from 0 to 1, 1 excluded, of evenly distributed integers of 32 or 64 bits.

    The bits are read as signed; ``~x`` stands for a negative ``x``. The result is that times a
    constant just below 2^-31 or 2^-63, rounded twice: to fp32, and after the product.
    """

def umulhi(x: Any, y: Any) -> tensor:
    """The upper 32 (or 64) bits of the product of two 32- (or 64-) bit integers as unsigned.

    Raises E0204 for other types.
    """

def unsqueeze(x: Any, dim: Any) -> tensor:
    """``x`` with a new axis of extent 1 at position ``dim`` of the result.

    A negative ``dim`` counts from the end of the result. Raises E0207 out of range.
    """

def view(input: Any, *shape: Any) -> tensor:
    """An older name of ``reshape``."""

def where(condition: Any, x: Any, y: Any) -> tensor:
    """``x`` where ``condition`` is true, else ``y``; all three are broadcast together.

    Both sides are computed. x and y meet as the operands of ``+`` do, or are pointers of one type.
    Another condition than int1 counts as ``condition != 0``, with a warning. Raises E0201 where x
    and y have no common type, E0204 for a pointer as condition.
    """

def xor_sum(input: Any, axis: Any = None, keep_dims: Any = False) -> Any:
    """The exclusive or of the integers along ``axis``, of all elements where it is None."""

def zeros(shape: Any, dtype: Any) -> Any:
    """A tile of that shape whose elements are 0; ``()`` gives a scalar."""

def zeros_like(input: Any) -> Any:
    """A tile of zeros with the shape and element type of ``input``."""
