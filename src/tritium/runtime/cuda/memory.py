"""Memory of GPUs: whose it is, whose streams it waits for, copies of it on the host."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tritium.runtime.arrays import ArrayArgument

from . import devices, library
from .devices import Device
from .library import Unavailable

_ORDINAL = 9
"""The number of CUpointer_attribute for the device of an address."""
_ALIGNMENT = 256
"""Addresses that the driver gives out are multiples of it."""


def ordinal_of(address: int) -> int:
    """The number of the device whose memory an address is in; that of the current one for 0.

    Raises ``CudaFailure`` for an address that the driver doesn't know. Where there is no driver it
    is 0, and a launch says so.
    """
    if address:
        with contextlib.suppress(Unavailable):
            return library.load().integer("cuPointerGetAttribute", _ORDINAL, address)
    return devices.current_ordinal()


def stream_of(told: int | None) -> int:
    """The handle of a stream as the CUDA array interface names it; 0: there is none to wait for."""
    return int(told or 0)


def stream_for_dlpack(ordinal: int) -> int:
    """The current stream of a device, as DLPack names it: 1 is the default stream."""
    return devices.current_stream(ordinal) or devices.LEGACY


class DeviceArray:
    """A copy of a NumPy array in a device's memory, as kernels take it; where there is no torch."""

    def __init__(self, device: Device, array: np.ndarray[Any, Any]) -> None:
        self.device = device
        self.shape = array.shape
        self.dtype = array.dtype
        held = np.ascontiguousarray(array)
        self._size = held.nbytes
        with device.current():
            self._address = device.cuda.handle("cuMemAlloc_v2", max(1, held.nbytes))
            device.cuda.cuMemcpyHtoD_v2(self._address, held.ctypes.data, held.nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._address, False),
            "version": 3,
        }

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy in the host's memory, of what is there after all that was launched."""
        found = np.empty(self.shape, self.dtype)
        with self.device.current():
            self.device.cuda.cuCtxSynchronize()
            self.device.cuda.cuMemcpyDtoH_v2(found.ctypes.data, self._address, self._size)
        return found

    def free(self) -> None:
        """Give the memory back."""
        with self.device.current():
            self.device.cuda.cuMemFree_v2(self._address)


# ---- copies --------------------------------------------------------------------------------------


class Copy:
    """The bytes ``[low, high)`` of a device's memory in the host's."""

    def __init__(self, device: Device, low: int, high: int) -> None:
        self.device, self.low, self.high = device, low, high
        size = high - low
        self._memory = np.empty(size + 2 * _ALIGNMENT, np.uint8)
        start = self._memory.ctypes.data
        # What is known of the addresses as multiples holds of the copy's too.
        self.address = start + (low - start) % _ALIGNMENT
        device.cuda.cuMemcpyDtoH_v2(self.address, low, size)

    def give_back(self) -> None:
        """Write the copy to the device."""
        self.device.cuda.cuMemcpyHtoD_v2(self.low, self.address, self.high - self.low)


@contextlib.contextmanager
def on_host(
    device: Device, arrays: Sequence[ArrayArgument]
) -> Iterator[Callable[[ArrayArgument], ArrayArgument]]:
    """A ``with`` block in which arrays of a device have copies in the host's memory.

    It yields a function from an array to its copy. Storages are copied once, so that views of one
    overlap as they did; at the end they are copied back.
    """
    with device.current():
        device.cuda.cuCtxSynchronize()
        spans = _merged([_extent(device, each) for each in arrays if each.address])
        copies = [Copy(device, low, high) for low, high in spans]

        def copied(array: ArrayArgument) -> ArrayArgument:
            # Where a storage ends another one may begin: the first byte tells whose an address is.
            place = array.low if array.bounded else array.address
            for each in copies:
                if each.low <= place < each.high:
                    moved = each.address - each.low
                    low, high = each.address, each.address + each.high - each.low
                    return array._replace(address=array.address + moved, low=low, high=high)
            return array

        try:
            yield copied
        finally:
            for each in copies:
                each.give_back()


def _extent(device: Device, array: ArrayArgument) -> tuple[int, int]:
    """The bytes of the storage of an array, or those of all that was allocated with it."""
    if array.bounded:
        return array.low, array.high
    low, size = ctypes.c_uint64(), ctypes.c_size_t()
    device.cuda.cuMemGetAddressRange_v2(ctypes.byref(low), ctypes.byref(size), array.address)
    return low.value, low.value + size.value


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap as one, in ascending order; empty ones left out."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(each for each in spans if each[0] < each[1]):
        if found and low < found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found
