"""Array arguments: where the elements of an object lie in memory, and of what type they are.

Nothing is copied. NumPy arrays (with the dtypes of ml_dtypes), objects with torch's protocol
(``data_ptr`` and ``dtype``), with ``__array_interface__`` and with DLPack are taken as they are. A
kernel gets the address of the first element only; strides it is told by other arguments.
"""

from __future__ import annotations

import abc
import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritium.diagnostics import TritiumError, error
from tritium.ir.dtypes import DType, from_name, from_numpy

from . import objects

CPU, CUDA = "cpu", "cuda"
ANYWHERE = ""
"""The device of what only stands for an array."""
NO_BACKEND = "Tritium runs kernels on the CPU and on NVIDIA's GPUs"
EVERYWHERE = (0, 1 << 64)
"""The bytes of an object that doesn't tell how large its storage is."""


class ArrayArgument(NamedTuple):
    """An array as a kernel sees it.

    ``element`` is the type of its elements, ``address`` the byte address of the first one,
    ``device`` "cpu", "cuda:0" and so on. ``low`` and ``high`` bound the bytes of the whole storage
    that the array is a view of, ``EVERYWHERE`` where that isn't known. ``owner`` keeps the memory
    alive.
    """

    element: DType
    address: int
    device: str
    writable: bool
    low: int
    high: int
    owner: Any

    @property
    def bounded(self) -> bool:
        """Whether the extent of the storage is known."""
        return (self.low, self.high) != EVERYWHERE


_argument = functools.partial(tuple.__new__, ArrayArgument)
"""Makes one of all its fields, in half the time."""


class Refused(Exception):
    """Why an object can't be an array argument: its type in words, and a line of help."""

    def __init__(self, type: str, hint: str) -> None:
        super().__init__(type)
        self.type = type
        self.hint = hint


class Produced(ArrayArgument):
    """An array that is made by what a stream of its device was given; ``stream`` is its handle."""

    stream: int

    def _replace(self, **fields: Any) -> Produced:
        made: Produced = super()._replace(**fields)
        made.stream = self.stream
        return made


class Elsewhere(Exception):
    """An array where no kernel runs: the device's name, whether it is a tensor, and why.

    A tensor's own library knows the CPU too, so it may have been meant to be there.
    """

    def __init__(self, device: str, tensor: bool = False, reason: str = NO_BACKEND) -> None:
        super().__init__(device)
        self.device = device
        self.tensor = tensor
        self.reason = reason

    @property
    def hint(self) -> str:
        """What to do."""
        return "copy it to the CPU first" + (": x.cpu()" if self.tensor else "")


def describe(
    value: Any, kernel: str, name: str, parameter: str | None = None
) -> ArrayArgument | None:
    """``value`` as an array, None if it isn't one.

    ``kernel``, ``name`` and ``parameter`` (whose part ``name`` may be) are for messages. Raises
    E0501 for an array of a type that kernels do not take, E0515 for one that is not aligned, and
    ``Elsewhere`` for one on another device.
    """
    parameter = name if parameter is None else parameter
    try:
        found = inspect(value)
    except Refused as refused:
        raise error(
            "E0501",
            kernel=kernel,
            name=name,
            type=refused.type,
            hint=refused.hint,
            argument=parameter,
        ) from None
    if found is not None and found.address % (found.element.itemsize or 1):
        size = found.element.itemsize
        raise error(
            "E0515",
            kernel=kernel,
            name=name,
            text=f"its address is not a multiple of the {size} bytes of an element",
            hint="pass a copy",
            argument=parameter,
        )
    return found


class Composite(abc.ABC):
    """An object of the host that a kernel gets in parts."""

    @abc.abstractmethod
    def argument(self, kernel: str, name: str, parameter: str) -> tuple[Any, ...]:
        """What a launch passes in its place. Raises where a kernel can't take it.

        ``kernel``, ``name`` and ``parameter`` (whose part ``name`` may be) are for messages.
        """


def element_strides(value: Any, op: str) -> tuple[int, ...]:
    """The strides of an array, in elements.

    ``op`` is for messages. Raises E0501 for an object that has none, E0515 for strides that are no
    multiples of an element.
    """
    strides = getattr(value, "stride", None)
    if callable(strides):
        return tuple(strides())
    if hasattr(value, "strides") and hasattr(value, "itemsize"):
        if any(step % value.itemsize for step in value.strides):
            text = f"its strides {value.strides} are no multiples of {value.itemsize} bytes"
            hint = "pass a copy"
            raise error("E0515", kernel=op, name="tensor", text=text, hint=hint, argument="tensor")
        return tuple(step // value.itemsize for step in value.strides)
    if hasattr(value, "__dlpack__"):
        from . import dlpack

        return dlpack.read(value).strides
    kind, hint = type(value).__name__, "pass a tensor or a NumPy array"
    raise error("E0501", kernel=op, name="tensor", type=kind, hint=hint, argument="tensor")


def elsewhere(problem: Elsewhere, kernel: str, name: str) -> TritiumError:
    """E0513 for an argument that is on a device without a backend."""
    return error(
        "E0513",
        kernel=kernel,
        name=name,
        device=problem.device,
        text=problem.reason,
        hint=problem.hint,
        argument=name.partition(".")[0],
    )


def inspect(value: Any) -> ArrayArgument | None:
    """``value`` as an array, None if it isn't one. Raises ``Refused`` and ``Elsewhere``."""
    reader = READERS.get(type(value))
    if reader is not None:
        return reader(value)
    if isinstance(value, np.ndarray):
        return _from_numpy(value)
    if isinstance(value, TensorWrapper):
        base = inspect(value.base)
        assert base is not None
        return base._replace(element=value.dtype)
    if isinstance(value, (np.generic, type)):
        # NumPy's scalars, and classes, show the protocols of arrays too.
        return None
    if callable(getattr(value, "data_ptr", None)) and hasattr(value, "dtype"):
        found = _from_torch(value)
        if callable(getattr(type(value), "data_ptr", None)):
            READERS[type(value)] = _from_torch
        return found
    if hasattr(value, "__cuda_array_interface__"):
        return _from_cuda_interface(value)
    if hasattr(value, "__array_interface__"):
        return _from_interface(value)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(value)
    return None


READERS: dict[type, Callable[[Any], ArrayArgument]] = {}
"""What reads the arrays of a type that has been seen."""


# ---- NumPy ---------------------------------------------------------------------------------------


def _from_numpy(array: np.ndarray[Any, Any]) -> ArrayArgument:
    element = numpy_element(array.dtype)
    address = objects.address(array)
    flags = array.flags
    if array.base is None and flags.c_contiguous:
        low, high = address, address + array.nbytes
    else:
        low, high = _numpy_storage(array)
    return _argument((element, address, CPU, flags.writeable, low, high, array))


READERS[np.ndarray] = _from_numpy


def read_natively(types: Iterable[type], read: Callable[[Any], ArrayArgument | None]) -> None:
    """Have ``read`` look at arrays of these types: see ``backends.host.reader``.

    Where it gives None, Python looks.
    """
    for kind in types:
        READERS[kind] = _natively(read, _from_numpy if kind is np.ndarray else _from_torch)


def _natively(
    read: Callable[[Any], ArrayArgument | None], otherwise: Callable[[Any], ArrayArgument]
) -> Callable[[Any], ArrayArgument]:
    def reader(value: Any) -> ArrayArgument:
        found = read(value)
        return otherwise(value) if found is None else found

    return reader


def numpy_element(dtype: np.dtype[Any]) -> DType:
    """The kernel's type for NumPy's. Raises ``Refused`` where there is none."""
    try:
        return from_numpy(dtype)
    except KeyError:
        raise Refused(f"NumPy array of {dtype}", _advice(dtype)) from None


def _advice(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "c":
        part = "np.float32" if dtype.itemsize == 8 else "np.float64"
        return f"pass x.view({part}): the real and imaginary parts alternate"
    if dtype.kind in "mM":
        return "pass x.view(np.int64)"
    if dtype.names is not None:
        return f"pass one field of it: x[{dtype.names[0]!r}]"
    if not dtype.isnative:
        return 'convert it: x.astype(x.dtype.newbyteorder("="))'
    return f"convert it: x.astype(np.{'float64' if dtype.kind == 'f' else 'float32'})"


def _numpy_storage(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The bytes [low, high) of the memory that an array is a view of."""
    low, high = _extent(array)
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            below = _extent(base)
        elif callable(getattr(base, "untyped_storage", None)):
            below = _torch_storage(base)
        elif (held := _buffer(base)) is not None:
            below = _extent(held)
        else:
            # as_strided keeps the array it was given in an object of its own.
            base = getattr(base, "base", None)
            continue
        low, high = min(low, below[0]), max(high, below[1])
        base = getattr(base, "base", None)
    return low, high


def _buffer(owner: Any) -> np.ndarray[Any, Any] | None:
    """The memory of an object with Python's buffer protocol."""
    if isinstance(owner, memoryview):
        owner = owner.obj
    try:
        return np.frombuffer(owner, np.uint8)
    except (TypeError, ValueError, BufferError, AttributeError):
        # It has no buffer, or one of several pieces.
        return None


def _extent(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    address = objects.address(array)
    return address_range(address, array.shape, array.strides, array.itemsize)


def address_range(
    address: int, shape: Sequence[int], strides: Sequence[int], size: int
) -> tuple[int, int]:
    """The bytes [low, high) that the elements lie in; strides and ``size`` are in bytes."""
    if 0 in shape:
        return address, address
    reach = [stride * (extent - 1) for stride, extent in zip(strides, shape)]
    low = address + sum(step for step in reach if step < 0)
    return low, address + sum(step for step in reach if step > 0) + size


# ---- torch, and what looks like it ---------------------------------------------------------------


def _from_torch(tensor: Any) -> ArrayArgument:
    try:
        element, device = _ELEMENTS[tensor.dtype], _DEVICES[tensor.device]
        address, storage = tensor.data_ptr(), tensor.untyped_storage()
        low = storage.data_ptr()
        high = low + storage.nbytes()
        known = type(address) is int and not tensor.is_neg()
    except (KeyError, TypeError, AttributeError, RuntimeError):
        known = False
    if not known:
        return _from_any_tensor(tensor)
    return _argument((element, address, device, True, low, high, tensor))


def _from_any_tensor(tensor: Any) -> ArrayArgument:
    """One of a dtype or on a device not seen before, of another library, or one to be refused."""
    element = _torch_element(tensor.dtype)
    device = ANYWHERE if isinstance(tensor, MockTensor) else _device(tensor)
    address = _address(tensor)
    low, high = _torch_storage(tensor)
    return ArrayArgument(element, address, device, True, low, high, tensor)


_HASHED: set[type] = set()
"""torch's types of dtypes and devices, whose values may be kept in dictionaries."""
_ELEMENTS: dict[Any, DType] = {}
_DEVICES: dict[Any, str] = {}


def _keep(value: Any) -> bool:
    """Whether what is found out of a dtype or a device may be remembered."""
    kind = type(value)
    if kind.__module__ == "torch" and kind.__name__ in ("dtype", "device"):
        _HASHED.add(kind)
    return kind in _HASHED


def _torch_element(dtype: Any) -> DType:
    if isinstance(dtype, DType):
        return dtype
    spelling = str(dtype).rpartition(".")[2]
    try:
        element = from_name(spelling)
    except KeyError:
        hint = "pass torch.view_as_real(x)" if "complex" in spelling else "convert it: x.to(dtype)"
        raise Refused(f"tensor of {spelling}", hint) from None
    if _keep(dtype):
        _ELEMENTS[dtype] = element
    return element


def _device(tensor: Any) -> str:
    """Where a tensor is. Raises ``Elsewhere`` for a device that no kernel runs on."""
    device = getattr(tensor, "device", CPU)
    kind, _, ordinal = str(device).partition(":")
    if kind not in (CPU, CUDA):
        raise Elsewhere(str(device), tensor=True)
    name = CPU if kind == CPU else f"{CUDA}:{ordinal or 0}"
    if _keep(device):
        _DEVICES[device] = name
    return name


def is_pinned(array: ArrayArgument) -> bool:
    """Whether an array in the CPU's memory can be reached by GPUs at the same address."""
    asked = getattr(array.owner, "is_pinned", None)
    return callable(asked) and bool(asked())


def _address(tensor: Any) -> int:
    """Of the first element, where the memory holds the elements as they are."""
    kind = type(tensor).__name__
    try:
        address = operator.index(tensor.data_ptr())
    except RuntimeError as problem:
        # A sparse, functional or otherwise unusual tensor.
        raise Refused(kind, str(problem).partition("\n")[0]) from None
    except TypeError:
        raise Refused(kind, "its data_ptr() is no integer") from None
    if getattr(tensor, "is_neg", bool)():
        raise Refused(f"{kind} whose elements are stored negated", "pass x.resolve_neg()")
    return address


def is_mock(array: ArrayArgument) -> bool:
    """Whether it only stands for an array, or its memory was freed: it has elements nowhere."""
    if isinstance(array.owner, MockTensor):
        return True
    count = getattr(array.owner, "numel", None) if array.address == 0 else None
    return callable(count) and count() > 0


def _torch_storage(tensor: Any) -> tuple[int, int]:
    storage_of = getattr(tensor, "untyped_storage", None)
    if storage_of is None or not callable(storage_of):
        return EVERYWHERE
    storage: Any = storage_of()
    low = int(storage.data_ptr())
    return low, low + int(storage.nbytes())


# ---- other protocols -----------------------------------------------------------------------------


def _from_interface(value: Any) -> ArrayArgument:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as problem:
        raise Refused(type(value).__name__, str(problem)) from None
    return _from_numpy(array)._replace(owner=value)


def _from_cuda_interface(value: Any) -> ArrayArgument:
    """An object of CUDA Array Interface, version 3 or before."""
    from .cuda import memory
    from .cuda.library import CudaFailure

    told = value.__cuda_array_interface__
    try:
        (address, read_only), shape = told["data"], tuple(told["shape"])
        dtype = np.dtype(told["typestr"])
        strides = told.get("strides")
    except (KeyError, TypeError, ValueError) as problem:
        raise Refused(type(value).__name__, f"its CUDA array interface lacks {problem}") from None
    if told.get("mask") is not None:
        raise Refused(f"masked {type(value).__name__}", "pass its elements without the mask")
    element = numpy_element(dtype)
    if strides is None:
        strides = [dtype.itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    address = int(address or 0)
    low, high = address_range(address, shape, strides, dtype.itemsize)
    try:
        device = f"{CUDA}:{memory.ordinal_of(address)}"
    except CudaFailure as problem:
        reason = f"the NVIDIA driver says of its address: {problem.name}, {problem.text}"
        raise Elsewhere("no device", reason=reason) from None
    made = Produced(element, address, device, not read_only, low, high, value)
    made.stream = memory.stream_of(told.get("stream"))
    return made


def _from_dlpack(value: Any) -> ArrayArgument:
    from . import dlpack

    device = dlpack.device_of(value)
    kind, _, ordinal = device.partition(":")
    if kind == CUDA:
        from .cuda import memory

        found = dlpack.read(value, memory.stream_for_dlpack(int(ordinal)))
    elif kind == CPU:
        found = dlpack.read(value)
    else:
        raise Elsewhere(device)
    element = found.element
    if element is None:
        raise Refused(f"{type(value).__name__} of {found.dtype_name}", "convert it first")
    strides = [stride * element.itemsize for stride in found.strides]
    low, high = address_range(found.address, found.shape, strides, element.itemsize)
    return ArrayArgument(element, found.address, device, found.writable, low, high, found.capsule)


# ---- Triton's host-side helpers ------------------------------------------------------------------


class TensorWrapper:
    """An array whose elements kernels see as ``dtype``; what ``reinterpret`` returns."""

    def __init__(self, base: Any, dtype: DType) -> None:
        self.base = base
        self.dtype = dtype
        self.data = getattr(base, "data", base)
        self.device = getattr(base, "device", CPU)
        self.shape = base.shape

    def data_ptr(self) -> int:
        """The byte address of the first element."""
        found = inspect(self.base)
        assert found is not None
        return found.address

    def stride(self, *axis: int) -> Any:
        """The strides in elements, or that of one axis. Raises E0515 for parts of elements."""
        if not isinstance(self.base, np.ndarray):
            return self.base.stride(*axis)
        strides = element_strides(self.base, "stride")
        return strides[axis[0]] if axis else strides

    def element_size(self) -> int:
        """Bytes an element takes."""
        return self.dtype.itemsize

    def cpu(self) -> TensorWrapper:
        """A copy in the CPU's memory; itself where it is there already."""
        return self if isinstance(self.base, np.ndarray) else self._like(self.base.cpu())

    def copy_(self, other: TensorWrapper) -> TensorWrapper:
        """Take the elements of another wrapper."""
        if isinstance(self.base, np.ndarray):
            np.copyto(self.base, other.base)
        else:
            self.base.copy_(other.base)
        return self

    def clone(self) -> TensorWrapper:
        """A copy of its own."""
        numpy = isinstance(self.base, np.ndarray)
        return self._like(self.base.copy() if numpy else self.base.clone())

    def to(self, device: Any) -> TensorWrapper:
        """A copy on ``device``."""
        return self._like(self.base.to(device))

    def new_empty(self, sizes: Sequence[int]) -> TensorWrapper:
        """Uninitialised, of another shape."""
        if isinstance(self.base, np.ndarray):
            return self._like(np.empty(sizes, self.base.dtype))
        return self._like(self.base.new_empty(sizes))

    def _like(self, base: Any) -> TensorWrapper:
        return TensorWrapper(base, self.dtype)

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor: Any, dtype: DType) -> Any:
    """A view of an array whose elements kernels see as ``dtype``, bit for bit.

    A wrapper is wrapped anew, and the array itself is returned where it has that type anyway.
    Raises E0501 (a ``TypeError``) for anything else.
    """
    if isinstance(tensor, TensorWrapper):
        return tensor.base if dtype == tensor.base.dtype else TensorWrapper(tensor.base, dtype)
    try:
        found = describe(tensor, "reinterpret", "tensor") is not None
    except Elsewhere:
        # It is an array; where it is matters to a launch.
        found = True
    if not found:
        kind = type(tensor).__name__
        hint = "pass a tensor or a NumPy array"
        raise error("E0501", kernel="reinterpret", name="tensor", type=kind, hint=hint)
    return TensorWrapper(tensor, dtype)


class MockTensor:
    """Stands for a tensor of a dtype in ``warmup``, which compiles without running."""

    def __init__(self, dtype: Any, shape: Sequence[int] | None = None) -> None:
        self.dtype = dtype
        self.shape = [1] if shape is None else list(shape)
        self.device = CPU

    @staticmethod
    def wrap_dtype(value: Any) -> Any:
        """A ``MockTensor`` for a dtype of the language, NumPy or torch; anything else as it is."""
        if isinstance(value, DType):
            return MockTensor(value)
        if isinstance(value, np.dtype):
            return MockTensor(value.name)
        kind = type(value)
        is_torch = kind.__name__ == "dtype" and kind.__module__ == "torch"
        return MockTensor(value) if is_torch else value

    def stride(self) -> tuple[int, ...]:
        """Row-major strides, in elements."""
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @staticmethod
    def data_ptr() -> int:
        """0, which counts as aligned."""
        return 0

    @staticmethod
    def ptr_range() -> int:
        """0: there is no memory."""
        return 0
