"""Results of operations on whole tiles by loops over Python numbers and indices.

An oracle takes a case and its operands' arrays (pointers as offsets) and gives the results, then
the final contents of the case's buffers, as arrays.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from tests.ops.oracles import ORACLES, rounded, stored, values

from tritium.ir.dtypes import DType, float64, int32
from tritium.ops.spec import Array, Case

Results = tuple[Array, ...]
TileOracle = Callable[..., Results]


def indices(shape: Sequence[int]) -> Iterable[tuple[int, ...]]:
    return itertools.product(*map(range, shape))


def from_numbers(numbers: Sequence[Any], shape: Sequence[int], dtype: DType) -> Array:
    """Numbers of a type as an array that the comparison takes: float64 for floats."""
    kind = np.float64 if dtype.is_floating() else dtype.numpy
    return np.array(list(numbers), kind).reshape(tuple(shape))


# ---- creation and shape --------------------------------------------------------------------------


def constant(case: Case) -> Results:
    value, dtype = case.attributes["value"], case.attributes["dtype"]
    if not dtype.is_floating():
        return (from_numbers([int(value)], (), dtype),)
    if math.isfinite(value) and value != 0:
        return (from_numbers([rounded(Fraction(value), dtype)], (), dtype),)
    return (from_numbers([stored(float(value), dtype)], (), dtype),)


def picked(x: Array, shape: Sequence[int], source: Callable[..., tuple[int, ...]]) -> Results:
    """The tile whose element at an index is ``x`` at ``source(index)``."""
    made = np.empty(tuple(shape), x.dtype)
    for index in indices(shape):
        made[index] = x[source(index)]
    return (made,)


def broadcast(case: Case, x: Array) -> Results:
    stretched = [extent == 1 for extent in x.shape]
    return picked(
        x,
        case.attributes["shape"],
        lambda index: tuple(0 if one else i for i, one in zip(index, stretched)),
    )


def expand_dims(case: Case, x: Array) -> Results:
    axis = case.attributes["axis"]
    shape = [*x.shape]
    shape.insert(axis, 1)
    return picked(x, shape, lambda index: index[:axis] + index[axis + 1 :])


def reshape(case: Case, x: Array) -> Results:
    shape = case.attributes["shape"]
    made = np.empty(shape, x.dtype)
    for new, old in zip(indices(shape), indices(x.shape), strict=True):
        made[new] = x[old]
    return (made,)


def trans(case: Case, x: Array) -> Results:
    order = case.attributes["order"]
    return picked(
        x,
        [x.shape[axis] for axis in order],
        lambda index: tuple(index[order.index(axis)] for axis in range(x.ndim)),
    )


def slice_(case: Case, x: Array) -> Results:
    starts, steps = case.attributes["starts"], case.attributes["steps"]
    return picked(
        x,
        case.attributes["extents"],
        lambda index: tuple(s + i * d for s, i, d in zip(starts, index, steps)),
    )


def cat(case: Case, left: Array, right: Array) -> Results:
    axis = case.attributes["axis"]
    shape = [*left.shape]
    middle = shape[axis]
    shape[axis] += right.shape[axis]
    made = np.empty(shape, left.dtype)
    for index in indices(shape):
        beyond = (*index[:axis], index[axis] - middle, *index[axis + 1 :])
        made[index] = left[index] if index[axis] < middle else right[beyond]
    return (made,)


def update(case: Case, x: Array, value: Array) -> Results:
    starts, steps = case.attributes["starts"], case.attributes["steps"]
    made = np.array(x)
    for index in indices(value.shape):
        made[tuple(s + i * d for s, i, d in zip(starts, index, steps))] = value[index]
    return (made,)


def gather(case: Case, x: Array, index: Array) -> Results:
    axis = case.attributes["axis"]
    last = x.shape[axis] - 1

    def source(at: tuple[int, ...]) -> tuple[int, ...]:
        place = max(0, min(last, int(index[at])))
        return (*at[:axis], place, *at[axis + 1 :])

    return picked(x, index.shape, source)


# ---- memory --------------------------------------------------------------------------------------


def offset(case: Case, pointer: Array, by: Array) -> Results:
    pointee = case.operands["pointer"].type.scalar.element_ty
    size = {1: 1, 8: 1, 16: 2, 32: 4, 64: 8}[pointee.bits]
    moved = [
        (int(address) + int(count) * size) % 2**64
        for address, count in zip(pointer.reshape(-1), by.reshape(-1))
    ]
    return (np.array(moved, np.uint64).reshape(pointer.shape),)


def load(case: Case, pointer: Array, *rest: Array) -> Results:
    mask = rest[0] if rest else np.ones(pointer.shape, bool)
    memory = case.buffers["memory"]
    made = np.empty(pointer.shape, memory.dtype)
    for index in indices(pointer.shape):
        if mask[index]:
            made[index] = memory[pointer[index]]
        else:
            made[index] = rest[1][index] if len(rest) > 1 else np.zeros((), memory.dtype)
    return (made, memory)


def store(case: Case, pointer: Array, value: Array, mask: Array | None = None) -> Results:
    memory = np.array(case.buffers["memory"])
    for index in indices(pointer.shape):
        if mask is None or mask[index]:
            memory[pointer[index]] = value[index]
    return (memory,)


# ---- atomic operations ---------------------------------------------------------------------------

ATOMIC_RULES = {"add": "arith.add", "max": "arith.maximum", "min": "arith.minimum"}
BITS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def atomic_update(case: Case, pointer: Array, value: Array, mask: Array | None = None) -> Results:
    kind, dtype = case.attributes["kind"], case.row
    assert isinstance(dtype, DType)
    raw = f"u{dtype.itemsize}"

    def change(old: Any, given: Any) -> Any:
        if kind == "xchg":
            return given
        if kind in BITS:
            return BITS[kind](old.view(raw), given.view(raw)).view(old.dtype)
        (x,), (y,) = values(old, dtype), values(given, dtype)
        number = pair_rule(ATOMIC_RULES[kind], dtype)(x, y)
        return np.array(number, np.float64 if dtype.is_floating() else dtype.numpy).astype(
            dtype.numpy
        )

    return lane_by_lane(case, pointer, mask, change, value)


def atomic_cas(case: Case, pointer: Array, compare: Array, value: Array) -> Results:
    def change(old: Any, wanted: Any, given: Any) -> Any:
        return given if old.tobytes() == wanted.tobytes() else old

    return lane_by_lane(case, pointer, None, change, compare, value)


def atomic_store(case: Case, pointer: Array, value: Array, mask: Array | None = None) -> Results:
    return lane_by_lane(case, pointer, mask, lambda old, given: given, value)[1:]


def lane_by_lane(
    case: Case, pointer: Array, mask: Array | None, change: Callable[..., Any], *given: Array
) -> Results:
    memory = np.array(case.buffers["memory"])
    found = np.zeros(pointer.shape, memory.dtype)
    for index in indices(pointer.shape):
        if mask is None or mask[index]:
            found[index] = memory[pointer[index]]
            parts = [each[index] for each in given]
            memory[pointer[index]] = change(found[index], *parts)
    return (found, memory)


# ---- reductions ----------------------------------------------------------------------------------

Combine = Callable[[Any, Any], Any]


def in_order(elements: list[Any], innermost: bool, combine: Combine, start: Any = None) -> Any:
    """The documented order, one element after the other."""
    stride = 64 if innermost else 4
    partial = []
    for lane in range(min(stride, len(elements))):
        lanes = elements[lane::stride]
        first = lanes[0] if start is None else combine(start, lanes[0])
        partial.append(functools.reduce(combine, lanes[1:], first))
    half = stride // 2
    while half:
        for lane in range(half):
            if lane + half < len(partial):
                partial[lane] = combine(partial[lane], partial[lane + half])
        half //= 2
    return partial[0]


def along(
    case: Case, tiles: Sequence[Array], reduce: Callable[[list[Any], bool], Any]
) -> list[Any]:
    """``reduce`` of the elements along the axis, at every index of the other axes.

    With several tiles the elements are tuples.
    """
    axis = case.attributes["axis"]
    shape = tiles[0].shape
    rest = shape[:axis] + shape[axis + 1 :]
    scalars = [sample.type.scalar for sample in case.samples()]
    results = []
    for index in indices(rest):
        line = (*index[:axis], slice(None), *index[axis:])
        columns = [values(tile[line], scalar) for tile, scalar in zip(tiles, scalars)]
        elements = columns[0] if len(tiles) == 1 else list(zip(*columns))
        results.append(reduce(elements, axis == len(shape) - 1))
    return results


def reduction(mnemonic: str, case: Case, x: Array) -> Results:
    dtype = case.samples()[0].type.scalar
    combine = pair_rule(mnemonic, dtype)
    start = 0.0 if mnemonic == "arith.add" and dtype.is_floating() else None
    axis = case.attributes["axis"]
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    numbers = along(case, [x], lambda line, innermost: in_order(line, innermost, combine, start))
    return (from_numbers(numbers, shape, dtype),)


def pair_rule(mnemonic: str, dtype: DType) -> Combine:
    oracle = ORACLES[mnemonic]
    stand_in = _StandIn(dtype)
    return lambda x, y: oracle(stand_in, [x], [y])[0]


class _StandIn:
    """What the elementwise oracles ask of a case."""

    attributes = {"propagate_nan": False}

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype


def argmin(line: list[tuple[Any, int]], innermost: bool) -> tuple[Any, int]:
    """The smallest value with its smallest index: no order matters."""
    return min(line)


def welford(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Chan's update in fp32 scalars."""
    (mean1, m1, w1), (mean2, m2, w2) = (tuple(map(np.float32, each)) for each in (left, right))
    weight = w1 + w2
    share = np.float32(0) if weight == 0 else w2 / weight
    delta = mean2 - mean1
    return mean1 + delta * share, m1 + m2 + delta * delta * w1 * share, weight


def reduce_region(case: Case, *tiles: Array) -> Results:
    dtypes = [sample.type.scalar for sample in case.samples()]
    axis = case.attributes["axis"]
    shape = tiles[0].shape[:axis] + tiles[0].shape[axis + 1 :]
    kind = case.label.partition(" ")[0]
    if kind == "first":
        return picked(tiles[0], shape, lambda index: (*index[:axis], 0, *index[axis:]))
    if kind in ("add", "max"):
        combine = pair_rule({"add": "arith.add", "max": "arith.maximum"}[kind], dtypes[0])
        numbers = along(case, tiles, lambda line, inner: in_order(line, inner, combine))
        return (from_numbers(numbers, shape, dtypes[0]),)
    if kind == "argmin":
        rows = along(case, tiles, argmin)
    else:
        assert kind == "welford"
        rows = along(case, tiles, lambda line, inner: in_order(line, inner, welford))
    columns = zip(*rows)
    return tuple(from_numbers(c, shape, dtype) for c, dtype in zip(columns, dtypes))


# ---- scans ---------------------------------------------------------------------------------------


def scan(case: Case, *tiles: Array) -> Results:
    """A left fold line by line, over Python numbers."""
    samples = case.operands["inputs"]
    assert isinstance(samples, tuple)
    dtypes = [sample.type.scalar for sample in samples]
    tiles, starts = tiles[: len(dtypes)], tiles[len(dtypes) :]
    combine = scan_rule(case.label.split()[0], dtypes)
    first = tuple(values(each, dtype)[0] for each, dtype in zip(starts, dtypes))
    backwards = case.attributes["reverse"]
    axis, shape = case.attributes["axis"], tiles[0].shape
    made = [np.empty(shape, object) for _ in dtypes]
    for index in indices(shape[:axis] + shape[axis + 1 :]):
        line = (*index[:axis], slice(None), *index[axis:])
        columns = [values(tile[line], dtype) for tile, dtype in zip(tiles, dtypes)]
        elements = list(zip(*columns))[:: -1 if backwards else 1]
        totals = list(itertools.accumulate(elements, combine))
        totals = [first, *totals[:-1]] if first else totals
        for tile, column in zip(made, zip(*(totals[:: -1 if backwards else 1]))):
            tile[line] = column
    return tuple(from_numbers(tile.ravel(), shape, dtype) for tile, dtype in zip(made, dtypes))


def scan_rule(kind: str, dtypes: Sequence[Any]) -> Combine:
    if kind == "first":
        return lambda left, right: left
    if kind in ("add", "max"):
        pair = pair_rule({"add": "arith.add", "max": "arith.maximum"}[kind], dtypes[0])
        return lambda left, right: (pair(left[0], right[0]),)
    return {"argmin": min, "welford": welford}[kind]


def order(value: Any) -> tuple[Any, ...]:
    """A number's place in the total order: -0.0 before +0.0, NaN last."""
    if isinstance(value, float):
        if value != value:
            return (True,)
        return (False, value, math.copysign(1, value) > 0)
    return (value,)


def sort(case: Case, keys: Array, *others: Array) -> Results:
    """Python's sort, which is stable in both directions, line by line."""
    dtype, axis = case.samples()[0].type.scalar, case.attributes["axis"]
    shape, count = keys.shape, case.attributes["count"] or keys.shape[axis]
    made = [np.empty((*shape[:axis], count, *shape[axis + 1 :]), x.dtype) for x in (keys, *others)]
    for index in indices(shape[:axis] + shape[axis + 1 :]):
        line = (*index[:axis], slice(None), *index[axis:])
        numbers = [order(value) for value in values(keys[line], dtype)]
        places = sorted(
            range(shape[axis]), key=numbers.__getitem__, reverse=case.attributes["descending"]
        )
        for result, source in zip(made, (keys, *others)):
            result[line] = source[line][places[:count]]
    return tuple(made)


# ---- histograms and maps -------------------------------------------------------------------------


def histogram(case: Case, x: Array, mask: Array | None = None) -> Results:
    counts = [0] * case.attributes["bins"]
    chosen = [True] * x.size if mask is None else mask.ravel().tolist()
    for value, taken in zip(x.ravel().tolist(), chosen, strict=True):
        if taken and 0 <= value < len(counts):
            counts[int(value)] += 1
    return (np.array(counts, np.int32),)


def map_elementwise(case: Case, x: Array, y: Array | None = None) -> Results:
    dtype = case.samples()[0].type.scalar
    kind, numbers = case.label.split()[0], values(x, dtype)
    if kind == "swap":
        made = [numbers[place ^ 1] for place in range(len(numbers))]
        return (from_numbers(made, x.shape, dtype),)
    pair = {"add": pair_rule("arith.add", dtype), "greater": lambda a, b: b if a < b else a}[kind]
    assert y is not None
    made = [pair(a, b) for a, b in zip(numbers, values(y, dtype))]
    return (from_numbers(made, x.shape, dtype),)


# ---- dot -----------------------------------------------------------------------------------------


def dot(case: Case, a: Array, b: Array, acc: Array | None = None) -> Results:
    out = case.attributes["out_dtype"]
    scalars = [sample.type.scalar for sample in case.samples()]
    left = np.array(values(a, scalars[0]), object).reshape(a.shape)
    right = np.array(values(b, scalars[1]), object).reshape(b.shape)
    shape = (*a.shape[:-1], b.shape[-1])
    start = [0] * math.prod(shape) if acc is None else values(acc, out)
    numbers = []
    for (*batch, row, column), first in zip(indices(shape), start):
        terms = zip(left[(*batch, row)], right[(*batch, slice(None), column)])
        numbers.append(sum_of_products(terms, first, out, scalars[0]))
    return (from_numbers(numbers, shape, out),)


def sum_of_products(terms: Iterable[tuple[Any, Any]], first: Any, out: DType, kind: DType) -> Any:
    """Exact but for one rounding to float64; int32 wraps."""
    if out is int32:
        total = sum((x * y for x, y in terms), first)
        return (total + 2**31) % 2**32 - 2**31
    if kind is float64:
        return float(sum((Fraction(x) * Fraction(y) for x, y in terms), Fraction(first)))
    # Products of narrower types are exact in float64.
    return math.fsum([*(x * y for x, y in terms), first])


TILE_ORACLES: dict[str, TileOracle] = {
    "create.constant": constant,
    "create.splat": lambda case, x: picked(x, case.attributes["shape"], lambda index: ()),
    "create.arange": lambda case: (
        np.array(list(range(case.attributes["start"], case.attributes["end"])), np.int32),
    ),
    "program.id": lambda case: (np.array(0, np.int32),),
    "program.count": lambda case: (np.array(1, np.int32),),
    "shape.broadcast": broadcast,
    "shape.expand_dims": expand_dims,
    "shape.reshape": reshape,
    "shape.trans": trans,
    "rearrange.slice": slice_,
    "rearrange.cat": cat,
    "rearrange.update": update,
    "rearrange.gather": gather,
    "memory.offset": offset,
    "memory.load": load,
    "memory.store": store,
    "atomic.update": atomic_update,
    "atomic.cas": atomic_cas,
    "atomic.load": load,
    "atomic.store": atomic_store,
    "reduce.sum": functools.partial(reduction, "arith.add"),
    "reduce.max": functools.partial(reduction, "arith.maximum"),
    "reduce.min": functools.partial(reduction, "arith.minimum"),
    "reduce.reduce": reduce_region,
    "scan.scan": scan,
    "bins.histogram": histogram,
    "map.elementwise": map_elementwise,
    "sort.sort": sort,
    "dot.dot": dot,
}
"""By the operation's mnemonic."""
