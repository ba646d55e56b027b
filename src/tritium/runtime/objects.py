"""What native code may read of Python's objects, of NumPy's arrays and of torch's tensors.

NumPy documents the C structure of its arrays. torch gives address and dtype of a tensor through
DLPack's table of functions, but not the storage that it is a view of, which decides whether two
tensors overlap: its place is looked for. Everything is compared with what Python says of a few
objects; where anything differs, such objects go through the binder.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritium.backends.host import layout
from tritium.backends.host.layout import TYPE, WORD, DLTensor, Fact
from tritium.ir.dtypes import DType, from_name

_VERSION = 24
_TABLE = b"dlpack_exchange_api"
_MAJOR = 1
_MINOR_WITH_STREAMS = 2
"""DLPack's version from which on the table has the function of streams."""
_IMPLEMENTATION_WORDS = 24
"""How far a tensor's implementation is looked through: it is no smaller."""


def word(address: int) -> int:
    """The 8 bytes there."""
    return ctypes.c_uint64.from_address(address).value


def half(address: int) -> int:
    """The 4 bytes there."""
    return ctypes.c_uint32.from_address(address).value


@functools.cache
def python_is_readable() -> bool:
    """Whether an object's type stands where it does in a build with a GIL and without tracing."""
    if "t" in getattr(sys, "abiflags", "") or ctypes.sizeof(ctypes.c_void_p) != WORD:
        return False
    samples: tuple[Any, ...] = (None, True, 7, 1.5, "text", (), [], int, np.zeros(2))
    return all(word(id(each) + TYPE) == id(type(each)) for each in samples)


@functools.cache
def dictionary_version() -> int:
    """Where a dictionary has a number that each change of any dictionary makes a new one of.

    0 where there is none: PEP 509 is gone from Python 3.14.
    """
    samples: list[dict[Any, Any]] = [{}, {b"a": b"b", b"c": b"d"}, dict.fromkeys(range(100))]
    for each in samples:
        changes: list[Callable[[], object]] = [
            functools.partial(each.update, {b"x": b"1"}),
            functools.partial(each.update, {b"x": b"2"}),
            functools.partial(each.pop, b"x"),
            functools.partial(each.setdefault, b"x", b"3"),
            each.clear,
        ]
        seen = {0, word(id(each) + _VERSION)}
        for number, change in enumerate(changes, 3):
            change()
            seen.add(word(id(each) + _VERSION))
            each.get(b"x")
            if len(seen) != number or word(id(each) + _VERSION) not in seen:
                return 0
    return _VERSION


# ---- NumPy ---------------------------------------------------------------------------------------


class ArrayFields(NamedTuple):
    """Of NumPy: its type, and where a dtype has the size of an element."""

    type: int
    element_size: int


@functools.cache
def numpy_fields() -> ArrayFields | None:
    """What is read of arrays; None where they are not as documented."""
    plain = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    fixed = np.arange(3, dtype=np.int8)
    fixed.flags.writeable = False
    samples: list[np.ndarray[Any, Any]] = [plain, plain[1:, ::-1], plain.T, fixed]
    samples += [np.array(2.5), np.empty((0, 2), np.int16)]
    dtypes = [np.dtype(each) for each in ("b1", "i2", "f4", "c16", "V100", "U5")]
    sizes = [
        at
        for at in range(16, 80, 4)
        if all(half(id(each) + at) == each.itemsize for each in dtypes)
    ]
    if len(sizes) != 1 or not all(map(_is_documented, samples)):
        return None
    return ArrayFields(id(np.ndarray), sizes[0])


def address(array: np.ndarray[Any, Any]) -> int:
    """Of the first element."""
    if numpy_fields() is None:
        found: int = array.__array_interface__["data"][0]
        return found
    # The interface makes a dictionary of everything else too.
    return _word.from_address(id(array) + layout.Array.DATA).value


_word = ctypes.c_uint64


def _is_documented(array: np.ndarray[Any, Any]) -> bool:
    at, fields = id(array), layout.Array
    if half(at + fields.DIMENSIONS) != array.ndim:
        return False
    base = 0 if array.base is None else id(array.base)
    shape = [word(word(at + fields.SHAPE) + WORD * axis) for axis in range(array.ndim)]
    strides = [
        ctypes.c_int64.from_address(word(at + fields.STRIDES) + WORD * axis).value
        for axis in range(array.ndim)
    ]
    flags = half(at + fields.FLAGS)
    return (
        word(at + fields.DATA) == array.__array_interface__["data"][0]
        and (tuple(shape), tuple(strides)) == (array.shape, array.strides)
        and word(at + fields.BASE) == base
        and word(at + fields.DTYPE) == id(array.dtype)
        and flags == array.flags.num
        and bool(flags & fields.WRITEABLE) == array.flags.writeable
    )


# ---- torch ---------------------------------------------------------------------------------------


class TensorFields(NamedTuple):
    """Of torch: its types, DLPack's function, offsets and a mask: see ``layout.Process``."""

    tensor: int
    parameter: int
    exchange: int
    implementation: int
    storage: int
    data: int
    size: int
    keys: int
    negated: int


_found: dict[str, TensorFields | None] = {}


def torch_fields() -> TensorFields | None:
    """What is read of tensors; None where torch isn't loaded (yet), or has no such table."""
    if "torch" not in _found:
        torch = sys.modules.get("torch")
        # While torch is being imported its types are incomplete.
        if torch is None or not hasattr(torch, "nn") or not hasattr(torch.nn, "Parameter"):
            return None
        _found["torch"] = _torch_fields(torch)
    return _found["torch"]


def _torch_fields(torch: Any) -> TensorFields | None:
    exchange = _exchange(torch.Tensor)
    if exchange == 0:
        return None
    samples = [torch.zeros(size) for size in (3, 70, 1000)]
    samples += [samples[1][5:9], torch.zeros(4, 5, dtype=torch.int16).T, torch.zeros(2)[:0]]
    for each in samples:
        if describe(exchange, each)[0] != each.data_ptr():
            return None
    way, negation = _way(samples), _negation(torch, samples)
    if way is None or negation is None:
        return None
    return TensorFields(id(torch.Tensor), id(torch.nn.Parameter), exchange, *way, *negation)


def _exchange(tensor: Any) -> int:
    """The address of the function that describes a tensor; 0 where there is none."""
    table = _table(tensor)
    return word(table + DLTensor.EXCHANGE) if table else 0


def _table(tensor: Any) -> int:
    """The address of DLPack's table of functions; 0 where there is none."""
    capsule = getattr(tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None or type(capsule).__name__ != "PyCapsule":
        return 0
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = int(get(capsule, _TABLE) or 0)
    return table if table and half(table) == _MAJOR else 0


def describe(exchange: int, tensor: Any) -> tuple[int, int]:
    """The address of a tensor's first element, and what native code has for ``layout.Fact.TAG``."""
    held = (ctypes.c_uint64 * (DLTensor.SIZE // WORD))()
    fill = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(exchange)
    at = ctypes.addressof(held)
    fill(tensor, at)
    kind, number = half(at + DLTensor.DEVICE), half(at + DLTensor.DEVICE + 4)
    place = 0 if kind == DLTensor.CPU else number + 1
    tag = half(at + DLTensor.DTYPE) | place << Fact.PLACE
    return word(at + DLTensor.DATA) + word(at + DLTensor.BYTE_OFFSET), tag


def work_stream() -> int:
    """The address of the function that gives a GPU's current stream; 0 where there is none.

    It must agree with what torch's Python says, of the default stream and of another one.
    """
    if "stream" not in _streams:
        _streams["stream"] = _work_stream(sys.modules["torch"])
    return _streams["stream"]


_streams: dict[str, int] = {}


def _work_stream(torch: Any) -> int:
    table = _table(torch.Tensor)
    function = word(table + DLTensor.WORK_STREAM) if table else 0
    if function == 0 or word(table) >> 32 < _MINOR_WITH_STREAMS:
        return 0
    device = torch.cuda.current_device()
    if current_stream(function, device) != torch.cuda.current_stream(device).cuda_stream:
        return 0
    with torch.cuda.stream(torch.cuda.Stream(device)):
        told = torch.cuda.current_stream(device).cuda_stream
        return function if current_stream(function, device) == told else 0


def current_stream(function: int, device: int) -> int | None:
    """What the function of ``work_stream`` says of a GPU; None where it fails."""
    kinds = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    found = ctypes.c_uint64()
    failed = ctypes.CFUNCTYPE(*kinds)(function)(DLTensor.CUDA, device, ctypes.addressof(found))
    return None if failed else found.value


def torch_elements(exchange: int) -> dict[int, DType]:
    """The types of elements by torch's DLPack dtypes, where one of torch's types alone has it."""
    torch: Any = sys.modules["torch"]
    found: dict[int, set[DType]] = {}
    for dtype in {each for each in vars(torch).values() if isinstance(each, torch.dtype)}:
        try:
            element = from_name(str(dtype).rpartition(".")[2])
            _, code = describe(exchange, torch.empty(1, dtype=dtype))
        except (KeyError, RuntimeError, BufferError):
            # Kernels have no such type, or DLPack has none.
            continue
        found.setdefault(code, set()).add(element)
    return {
        code: elements.pop()
        for code, elements in found.items()
        if len(elements) == 1 and not is_ambiguous(code)
    }


def is_ambiguous(dtype: int) -> bool:
    """Whether several types of torch have that DLPack dtype: its int4 looks as its int8 does."""
    code, bits = dtype & 0xFF, dtype >> 8 & 0xFF
    return code in (0, 1) and bits == 8


def _way(samples: Sequence[Any]) -> tuple[int, int, int, int] | None:
    """Offsets: object to implementation, to storage, in it the address and the size of its bytes.

    None where they aren't found.
    """
    try:
        storages = [each.untyped_storage() for each in samples]
        known = [each._cdata for each in samples]
        stores = [each._cdata for each in storages]
        addresses = [each.data_ptr() for each in storages]
        sizes = [each.nbytes() for each in storages]
    except AttributeError:
        return None
    implementation = _offset([id(each) for each in samples], known, 8)
    if implementation is None:
        return None
    storage = _offset(known, stores, 12)
    # The address stands twice: torch's own memory is freed by it too.
    data = _offset(stores, addresses, 10, first_of_several=True)
    size = _offset(stores, sizes, 10)
    if storage is None or data is None or size is None:
        return None
    return implementation, storage, data, size


def _offset(
    bases: Sequence[int], values: Sequence[int], words: int, *, first_of_several: bool = False
) -> int | None:
    """Where behind each base its value stands, within so many words."""
    found = [
        at
        for at in range(TYPE, words * WORD, WORD)
        if all(word(base + at) == value for base, value in zip(bases, values))
    ]
    return found[0] if len(found) == 1 or (found and first_of_several) else None


def _negation(torch: Any, samples: Sequence[Any]) -> tuple[int, int] | None:
    """Where an implementation says that elements are stored negated, and by which bit."""
    try:
        views = [(torch._neg_view(each), each.view_as(each)) for each in samples]
        pairs = [(one._cdata, other._cdata) for one, other in views]
    except (AttributeError, RuntimeError):
        return None
    found: list[tuple[int, int]] = []
    for at in range(TYPE, _IMPLEMENTATION_WORDS * WORD, WORD):
        changes = {word(one + at) ^ word(other + at) for one, other in pairs}
        if len(changes) == 1 and (change := changes.pop()) and not change & (change - 1):
            found.append((at, change))
    del views
    return found[0] if len(found) == 1 else None
