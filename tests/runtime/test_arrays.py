from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tritium.diagnostics import ArgumentTypeError, ArgumentValueError, LaunchError
from tritium.ir import dtypes
from tritium.runtime import arrays
from tritium.runtime.arrays import EVERYWHERE, ArrayArgument, Elsewhere, MockTensor, TensorWrapper


def described(value: Any) -> ArrayArgument:
    found = arrays.describe(value, "kernel", "x")
    assert found is not None
    return found


def bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """By NumPy's own function."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return low, high


# ---- NumPy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", dtypes.VALUES, ids=str)
def test_every_dtype_of_the_language_that_numpy_stores(dtype: dtypes.DType) -> None:
    array = np.zeros(16, dtype.numpy)
    found = described(array)
    expected = dtypes.uint8 if dtype is dtypes.float8e4b15 else dtype
    assert found.element is expected
    assert found.address == array.ctypes.data
    assert (found.low, found.high) == bounds(array)
    assert found.writable
    assert found.device == "cpu"


VIEWS = {
    "part": lambda a: a[3:7],
    "backwards": lambda a: a[::-1],
    "transposed": lambda a: a.reshape(4, 8).T,
    "one element": lambda a: a[5:6],
    "another type": lambda a: a.view(np.int8)[4:],
    "a view of a view": lambda a: a[2:][3:][::-2],
    "strided": lambda a: as_strided(a[4:], (3, 3), (8, 4)),
    "expanded": lambda a: np.broadcast_to(a[1:2], (5, 7)),
    "through a memoryview": lambda a: np.asarray(memoryview(a)[4:9]),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_a_view_owns_the_bytes_of_its_whole_storage(view: Any) -> None:
    base = np.arange(32, dtype=np.float32)
    made = view(base)
    found = described(made)
    assert found.address == made.ctypes.data
    assert (found.low, found.high) == bounds(base)


def test_storage_of_a_buffer() -> None:
    buffer = bytearray(64)
    whole = (ctypes.c_char * 64).from_buffer(buffer)
    found = described(np.frombuffer(buffer, np.int16, 4, offset=8))
    assert (found.low, found.high) == (ctypes.addressof(whole), ctypes.addressof(whole) + 64)


def test_arrays_without_elements() -> None:
    for shape in ((0,), (3, 0), (0, 5)):
        found = described(np.zeros(shape, np.float32))
        assert found.high - found.low == 0


def test_an_array_without_axes() -> None:
    array = np.array(3.0, np.float64)
    found = described(array)
    assert (found.low, found.high) == (array.ctypes.data, array.ctypes.data + 8)


def test_a_read_only_array_is_marked() -> None:
    array = np.zeros(4)
    array.flags.writeable = False
    assert not described(array).writable
    assert not described(np.broadcast_to(np.zeros(1), 4)).writable


REFUSED = {
    "complex64": (np.zeros(2, np.complex64), "NumPy array of complex64", "view(np.float32)"),
    "complex128": (np.zeros(2, np.complex128), "NumPy array of complex128", "view(np.float64)"),
    "object": (np.array([None, 1]), "NumPy array of object", "astype"),
    "swapped": (np.zeros(2, np.dtype(np.int32).newbyteorder()), "NumPy array of >i4", "newbyte"),
    "text": (np.array(["a"]), "NumPy array of <U1", "astype"),
    "time": (np.zeros(2, "M8[s]"), "NumPy array of datetime64[s]", "np.int64"),
    "fields": (np.zeros(2, [("a", "f4")]), "NumPy array of [('a', '<f4')]", "x['a']"),
    "int4": (np.zeros(2, ml_dtypes.int4), "NumPy array of int4", "astype"),
    "e8m0": (np.zeros(2, ml_dtypes.float8_e8m0fnu), "NumPy array of float8_e8m0fnu", "astype"),
}


@pytest.mark.parametrize("array, type, hint", REFUSED.values(), ids=REFUSED.keys())
def test_arrays_of_other_types_are_refused(array: Any, type: str, hint: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        arrays.describe(array, "kernel", "x")
    assert caught.value.code == "E0501"
    assert caught.value.argument == "x"
    assert type in caught.value.message
    assert hint in caught.value.help


def test_a_misaligned_array_is_refused() -> None:
    packed = np.zeros(3, np.dtype([("flag", "i1"), ("x", "f4")]))
    with pytest.raises(ArgumentValueError) as caught:
        described(packed["x"])
    assert caught.value.code == "E0515"


@pytest.mark.parametrize(
    "value", [1, 2.0, True, None, "x", [1], np.float32(1), np.ndarray], ids=repr
)
def test_what_is_no_array(value: Any) -> None:
    assert arrays.describe(value, "kernel", "x") is None


# ---- other protocols -----------------------------------------------------------------------------


class Interface:
    """An object with NumPy's protocol only."""

    def __init__(self, array: np.ndarray[Any, Any], read_only: bool = False) -> None:
        self.array = array
        self.__array_interface__ = {
            **array.__array_interface__,
            "data": (array.ctypes.data, read_only),
        }


def test_array_interface() -> None:
    array = np.arange(6, dtype=np.int16)[::2]
    found = described(Interface(array))
    assert found.address == array.ctypes.data
    assert found.element is dtypes.int16
    assert found.writable
    assert not described(Interface(array, read_only=True)).writable


class OnADevice:
    __cuda_array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (4096, False)}


def test_cuda_array_interface() -> None:
    found = described(OnADevice())
    assert isinstance(found, arrays.Produced)
    assert (found.address, found.low, found.high) == (4096, 4096, 4104)
    assert (found.element, found.device, found.stream) == (dtypes.float32, "cuda:0", 0)
    assert found.writable

    class Shaped(OnADevice):
        shape = (2,)

    retyped = described(arrays.reinterpret(Shaped(), dtypes.int32))
    assert (retyped.element, retyped.stream) == (dtypes.int32, 0)


def test_cuda_array_interface_with_all_that_it_may_tell() -> None:
    class Told:
        __cuda_array_interface__ = {
            "shape": (3, 2),
            "typestr": "<i2",
            "data": (4096, True),
            "strides": (-16, 4),
            "stream": 7,
            "version": 3,
            "mask": None,
        }

    found = described(Told())
    assert (found.element, found.stream, found.writable) == (dtypes.int16, 7, False)
    assert (found.low, found.high) == (4096 - 32, 4096 + 6)
    moved = found._replace(address=8192)
    assert (moved.address, moved.stream) == (8192, 7)


@pytest.mark.parametrize(
    "change", [{"typestr": "<c8"}, {"mask": OnADevice()}, {"data": None}, {"shape": 3}]
)
def test_cuda_array_interface_of_what_kernels_do_not_take(change: dict[str, Any]) -> None:
    class Told:
        __cuda_array_interface__ = {**OnADevice.__cuda_array_interface__, **change}

    with pytest.raises(ArgumentTypeError):
        described(Told())


def test_a_device_without_a_backend() -> None:
    problem = arrays.elsewhere(Elsewhere("mps:0"), "kernel", "pair.1")
    assert isinstance(problem, LaunchError)
    assert (problem.code, problem.argument) == ("E0513", "pair")


class Exchanged:
    """An object that speaks DLPack only, by a NumPy array's capsules."""

    def __init__(self, array: np.ndarray[Any, Any], old: bool = False) -> None:
        self.array = array
        self.old = old
        self.device = (1, 0)

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.old and keywords:
            raise TypeError("unexpected keyword")
        self.asked = dict(keywords)
        # NumPy's own has no streams.
        keywords.pop("stream", None)
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    "view", [lambda a: a, lambda a: a[2:], lambda a: a.T, lambda a: a[::-1, ::2]], ids=range(4)
)
def test_dlpack(old: bool, view: Any) -> None:
    array = view(np.arange(24, dtype=np.float64).reshape(4, 6))
    found = described(Exchanged(array, old))
    assert found.element is dtypes.float64
    assert found.address == array.ctypes.data
    assert (found.low, found.high) == bounds(array)


def test_dlpack_tells_read_only_arrays() -> None:
    array = np.zeros(4, np.int32)
    array.flags.writeable = False
    assert not described(Exchanged(array)).writable


def test_dlpack_elsewhere() -> None:
    value = Exchanged(np.zeros(4, np.int32))
    value.device = (8, 1)
    with pytest.raises(Elsewhere, match="metal:1"):
        described(value)
    value.device = (2, 1)
    assert described(value).device == "cuda:1"
    assert value.asked["stream"] == 1
    value.device = (3, 0)
    assert described(value).device == "cpu"


def test_dlpack_of_complex_numbers() -> None:
    with pytest.raises(ArgumentTypeError, match="complex64"):
        described(Exchanged(np.zeros(4, np.complex64)))


class Tensor:
    """What torch's tensors show, without torch."""

    def __init__(self, array: Any, dtype: Any = "torch.float32", device: str = "cpu") -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = dtype
        self.device = device

    def data_ptr(self) -> int:
        address: int = self.array.ctypes.data
        return address


def test_objects_with_data_ptr() -> None:
    array = np.zeros(4, np.float32)
    found = described(Tensor(array))
    assert found.address == array.ctypes.data
    assert found.element is dtypes.float32
    assert (found.low, found.high) == EVERYWHERE
    assert not found.bounded


def test_objects_with_data_ptr_elsewhere_or_of_other_types() -> None:
    assert described(Tensor(np.zeros(4), device="cuda:1")).device == "cuda:1"
    assert described(Tensor(np.zeros(4), device="cuda")).device == "cuda:0"
    far = Tensor(np.zeros(4), device="mps:0")
    with pytest.raises(Elsewhere, match="mps:0") as caught:
        described(far)
    assert caught.value.tensor
    assert arrays.reinterpret(far, dtypes.int32).base is far
    with pytest.raises(ArgumentTypeError, match="complex64"):
        described(Tensor(np.zeros(4), "torch.complex64"))


# ---- torch ---------------------------------------------------------------------------------------


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch", reason="compares with torch")
    base = torch.arange(24, dtype=torch.float32)
    for view in (base, base[4:], base.reshape(4, 6).T, base[:1].expand(5), base.view(torch.int32)):
        found = described(view)
        assert found.address == view.data_ptr()
        assert found.low == base.data_ptr()
        assert found.high == base.data_ptr() + 24 * 4
        assert found.element.itemsize == 4
    integers = ("bool", "int8", "uint8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
    floats8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    for name in (*integers, *floats8, "float16", "bfloat16", "float32", "float64"):
        dtype = getattr(torch, name)
        found = described(torch.zeros(3, dtype=torch.uint8).to(dtype))
        assert found.element is dtypes.from_name(name)
    assert described(torch.zeros(0)).low == described(torch.zeros(0)).high
    with pytest.raises(ArgumentTypeError, match="complex64"):
        described(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(Elsewhere, match="meta"):
        described(torch.zeros(2, device="meta"))
    with pytest.raises(ArgumentTypeError):
        described(torch.eye(2).to_sparse())


def test_numpy_views_of_torch_tensors() -> None:
    torch = pytest.importorskip("torch", reason="compares with torch")
    base = torch.arange(24, dtype=torch.float32)
    found = described(base[6:12].numpy())
    assert (found.low, found.high) == (base.data_ptr(), base.data_ptr() + 96)


# ---- reinterpret ---------------------------------------------------------------------------------


def test_reinterpret() -> None:
    array = np.zeros(8, np.uint8)
    view = arrays.reinterpret(array, dtypes.float8e4b15)
    assert isinstance(view, TensorWrapper)
    found = described(view)
    assert found.element is dtypes.float8e4b15
    assert found.address == view.data_ptr() == array.ctypes.data
    assert view.shape == (8,)
    assert view.stride() == (1,)
    assert view.stride(0) == 1
    assert view.element_size() == 1
    again = arrays.reinterpret(view, dtypes.int8)
    assert again.base is array
    copy = view.clone()
    copy.base[:] = 7
    assert not array.any()
    view.copy_(copy)
    assert (array == 7).all()
    assert view.new_empty((2, 3)).shape == (2, 3)
    with pytest.raises(TypeError):
        arrays.reinterpret(3, dtypes.int8)


def test_mock_tensors() -> None:
    mock = MockTensor.wrap_dtype(dtypes.float16)
    assert described(mock).element is dtypes.float16
    assert described(mock).address == 0
    assert MockTensor(dtypes.int8, (2, 3, 4)).stride() == (12, 4, 1)
    assert MockTensor.wrap_dtype(3) == 3
    torch = pytest.importorskip("torch", reason="compares with torch")
    assert described(MockTensor.wrap_dtype(torch.bfloat16)).element is dtypes.bfloat16


# ---- tensors whose elements aren't in memory as they are -----------------------------------------


def test_negated_views_are_refused() -> None:
    torch = pytest.importorskip("torch", reason="makes a tensor that is negated on reading")
    view = torch.ones(4, dtype=torch.complex64).mul(1j).conj().imag
    assert view.is_neg()
    with pytest.raises(ArgumentTypeError, match="resolve_neg") as caught:
        described(view)
    assert caught.value.code == "E0501"
    assert described(view.resolve_neg()).element is dtypes.float32


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_tensors_without_memory() -> None:
    torch = pytest.importorskip("torch", reason="makes such tensors")
    from torch._subclasses.fake_tensor import FakeTensorMode

    freed = torch.zeros(8)
    freed.untyped_storage().resize_(0)
    with FakeTensorMode():
        fake = torch.zeros(8)
    assert arrays.is_mock(described(freed))
    assert arrays.is_mock(described(fake))
    assert arrays.is_mock(described(MockTensor(dtypes.int8)))
    assert not arrays.is_mock(described(torch.zeros(0)))
    assert not arrays.is_mock(described(torch.zeros(8)))


class Odd:
    """An array whose address is no number."""

    dtype = "float32"

    def data_ptr(self) -> str:
        return "here"


def test_an_address_is_an_integer() -> None:
    with pytest.raises(ArgumentTypeError, match="no integer") as caught:
        described(Odd())
    assert caught.value.code == "E0501"
