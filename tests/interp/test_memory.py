"""Gather and scatter on the process's memory, against a byte-by-byte model."""

from __future__ import annotations

import ctypes
import ctypes.util
import mmap
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritium.interp.memory import Memory, Range, byte_range, window

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux's /proc")

SIZES = (1, 2, 4, 8)


def addresses_of(array: np.ndarray, offsets: list[int]) -> np.ndarray:
    return np.array([array.ctypes.data + offset for offset in offsets], np.uint64)


@st.composite
def accesses(draw: st.DrawFn) -> tuple[int, list[int]]:
    """An element size and byte offsets into 64 bytes: duplicates and overlaps included."""
    size = draw(st.sampled_from(SIZES))
    aligned = draw(st.booleans())
    places = st.integers(0, 64 - size)
    if aligned:
        places = st.integers(0, 64 // size - 1).map(lambda index: index * size)
    return size, draw(st.lists(places, min_size=1, max_size=20))


@given(accesses())
def test_gather_reads_each_element_whole(access: tuple[int, list[int]]) -> None:
    size, offsets = access
    buffer = np.arange(100, 164, dtype=np.uint8)
    got = Memory().gather(addresses_of(buffer, offsets), np.dtype(f"u{size}"))
    want = [int.from_bytes(buffer[at : at + size].tobytes(), sys.byteorder) for at in offsets]
    assert got.tolist() == want
    assert got.dtype == np.dtype(f"u{size}")


@given(accesses())
def test_scatter_is_the_sequence_of_its_lanes(access: tuple[int, list[int]]) -> None:
    size, offsets = access
    buffer = np.zeros(64, np.uint8)
    want = bytearray(64)
    rng = np.random.default_rng(0)
    values = rng.integers(1, 2 ** min(8 * size, 63), len(offsets)).astype(f"u{size}")
    for at, value in zip(offsets, values):
        want[at : at + size] = value.tobytes()
    Memory().scatter(addresses_of(buffer, offsets), values)
    assert buffer.tobytes() == bytes(want)


@pytest.mark.parametrize("count", [3, 1000, 70_000])
def test_of_duplicates_the_last_lane_wins(count: int) -> None:
    buffer = np.zeros(5, np.int64)
    index = np.arange(count) % 5
    Memory().scatter(addresses_of(buffer, (index * 8).tolist()), np.arange(count))
    want = {int(place): lane for lane, place in enumerate(index)}
    assert buffer.tolist() == [want.get(place, 0) for place in range(5)]


def test_every_bit_pattern_of_bf16_passes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    patterns = np.arange(65536, dtype=np.uint16)
    out = np.zeros_like(patterns)
    addresses = np.uint64(patterns.ctypes.data) + np.arange(65536, dtype=np.uint64) * np.uint64(2)
    values = Memory().gather(addresses, np.dtype(ml_dtypes.bfloat16))
    assert values.dtype == np.dtype(ml_dtypes.bfloat16)
    target = np.uint64(out.ctypes.data) + np.arange(65536, dtype=np.uint64) * np.uint64(2)
    Memory().scatter(target, values)
    assert np.array_equal(out, patterns)


def test_a_window_owns_nothing_and_may_be_unaligned() -> None:
    buffer = np.zeros(16, np.uint8)
    window(buffer.ctypes.data + 3, 2, np.dtype(np.uint32))[:] = [1, 2]
    assert buffer[3:11].tobytes() == np.array([1, 2], np.uint32).tobytes()


def test_lanes_far_apart_need_no_memory_between() -> None:
    low, high = np.arange(4), np.arange(4) + 10
    addresses = np.array([high.ctypes.data, low.ctypes.data + 8], np.uint64)
    assert Memory().gather(addresses, np.dtype(np.int64)).tolist() == [10, 1]


@pytest.mark.parametrize(
    "view",
    [
        np.arange(10.0),
        np.arange(10.0)[::-1],
        np.arange(10.0)[2:9:3],
        np.arange(12.0).reshape(3, 4).T[::-1, 1:],
        np.broadcast_to(np.arange(3.0), (5, 3)),
        np.float64(1).reshape(()),
        np.zeros((0, 3)),
    ],
    ids=lambda view: f"{view.shape}{view.strides}",
)
def test_byte_range_spans_the_elements(view: np.ndarray) -> None:
    low, high = np.lib.array_utils.byte_bounds(view)
    want = (low, high) if view.size else (view.ctypes.data, view.ctypes.data)
    assert byte_range(view)[:2] == want


# ---- faults --------------------------------------------------------------------------------------


def only(address: int) -> np.ndarray:
    return np.array([address], np.uint64)


def test_known_ranges_need_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = np.zeros(8, np.uint8)
    memory = Memory([byte_range(buffer)])
    monkeypatch.setattr(memory._mappings, "lacks", lambda *_: pytest.fail("asked the system"))
    assert memory.fault(only(buffer.ctypes.data), 8, True) is None


def test_adjacent_ranges_are_one() -> None:
    memory = Memory([(1 << 40, (1 << 40) + 8), ((1 << 40) + 8, (1 << 40) + 16)])
    assert memory.fault(only((1 << 40) + 4), 8, False) is None


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("address", [0, 1, 4095])
def test_null(address: int, write: bool) -> None:
    fault = Memory().fault(only(address), 1, write)
    assert fault is not None
    assert fault.reason == "which is a null pointer"


@pytest.mark.parametrize("address", [1 << 63, (1 << 64) - 8])
def test_addresses_no_process_has(address: int) -> None:
    assert Memory().fault(only(address), 4, False) is not None


@linux
def test_the_first_bad_lane_is_named() -> None:
    buffer = np.zeros(8, np.float32)
    base = buffer.ctypes.data
    addresses = np.array([base, base + 4, 1 << 46, base + 8, 1 << 45], np.uint64)
    fault = Memory([byte_range(buffer)]).fault(addresses, 4, False)
    assert fault is not None
    assert (fault.lane, fault.address) == (2, 1 << 46)
    assert fault.reason == "where no memory can be read"


@linux
def test_mapped_memory_outside_of_the_arguments_is_fine() -> None:
    hidden = np.zeros(8, np.float32)
    assert Memory([(1 << 40, 1 << 41)]).fault(only(hidden.ctypes.data), 4, True) is None


@linux
def test_guard_pages_are_no_memory() -> None:
    """The page after a mapping whose protection is taken away, which a plain read would not see."""
    area = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None)
    second = ctypes.c_void_p(base + mmap.PAGESIZE)
    assert libc.mprotect(second, ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ) == 0
    memory = Memory()
    straddling = only(base + mmap.PAGESIZE - 4)
    assert memory.fault(straddling, 8, False) is None
    assert memory.fault(straddling, 8, True) is not None
    assert memory.fault(only(base), 8, True) is None
    assert libc.mprotect(second, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    assert Memory().fault(straddling, 8, False) is not None


@linux
def test_a_fault_near_an_argument_says_so() -> None:
    area = mmap.mmap(-1, mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None)
    assert libc.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    memory = Memory([Range(base - 64, base, "x_ptr")])
    fault = memory.fault(only(base), 4, False)
    assert fault is not None
    assert fault.reason == "where no memory can be read, 4 bytes past the end of x_ptr"
    memory = Memory([Range(base + 256, base + 300, "y_ptr")])
    fault = memory.fault(only(base), 4, False)
    assert fault is not None
    assert fault.reason.endswith(", 256 bytes before y_ptr")


def test_read_only_ranges() -> None:
    frozen, open_ = np.zeros(4, np.int32), np.zeros(4, np.int32)
    frozen.flags.writeable = False
    memory = Memory([byte_range(frozen, "x"), byte_range(open_, "y")])
    at = only(frozen.ctypes.data + 4)
    assert memory.fault(at, 4, False) is None
    fault = memory.fault(np.concatenate([only(open_.ctypes.data), at]), 4, True)
    assert fault is not None
    assert fault.lane == 1
    assert fault.read_only is not None
    assert fault.read_only.name == "x"


def test_a_writable_argument_over_a_read_only_one_can_be_written() -> None:
    owner = np.zeros(4, np.int32)
    view = owner[:2]
    view.flags.writeable = False
    memory = Memory([byte_range(view, "x"), byte_range(owner, "y")])
    assert memory.fault(only(owner.ctypes.data), 4, True) is None


def test_a_closed_memory_has_the_arguments_only() -> None:
    buffer = np.arange(64, dtype=np.float32)
    base = buffer.ctypes.data
    memory = Memory([Range(base, base + 128, "x_ptr")], closed=True)
    inside = np.array([base, base + 124], np.uint64)
    assert memory.fault(inside, 4, True) is None
    fault = memory.fault(np.array([base, base + 128], np.uint64), 4, False)
    assert fault is not None
    assert (fault.lane, fault.address) == (1, base + 128)
    assert fault.reason == "which lies in no argument, 4 bytes past the end of x_ptr"
    straddling = memory.fault(only(base + 126), 4, True)
    assert straddling is not None
    assert straddling.reason.endswith("2 bytes past the end of x_ptr")
    memory.open()
    assert memory.fault(only(base + 128), 4, False) is None
