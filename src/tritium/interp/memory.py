"""Loads and stores of interpreted programs: straight on the process's memory, by byte address.

Nothing is copied in or out, so aliasing, strides and offsets are what they are on a device.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Addresses: TypeAlias = NDArray[np.uint64]

PAGE = 4096
"""Granularity at which memory is mapped; larger pages are multiples of it."""
HIGHEST = 1 << 63
"""No process has memory from here on."""
NEARBY = 1 << 24
"""How far, in bytes, an address may lie from an argument for a message to mention it."""


class Range(NamedTuple):
    """Bytes [low, high) that belong to an argument of the launch."""

    low: int
    high: int
    name: str = ""
    writable: bool = True


class Fault(NamedTuple):
    """The first lane of an access that can't be carried out, and why."""

    lane: int
    address: int
    reason: str
    read_only: Range | None = None


class _Intervals:
    """Disjoint ascending intervals of addresses."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        merged: list[list[int]] = []
        for low, high in sorted(each for each in intervals if each[0] < each[1]):
            if merged and low <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        self._lows = [low for low, _ in merged]
        self._highs = [high for _, high in merged]
        self._low_array = np.array(self._lows, np.uint64)
        self._high_array = np.array(self._highs, np.uint64)

    def covers(self, low: int, high: int) -> bool:
        """Whether one interval holds all of [low, high)."""
        index = bisect.bisect_right(self._lows, low) - 1
        return index >= 0 and high <= self._highs[index]

    def meets(self, low: int, high: int) -> bool:
        """Whether an interval has a byte of [low, high)."""
        index = bisect.bisect_left(self._lows, high) - 1
        return index >= 0 and self._highs[index] > low

    def contains(self, addresses: Addresses, size: int) -> NDArray[np.bool_]:
        """For each address, whether the ``size`` bytes there lie in one interval."""
        if not self._lows:
            return np.zeros(addresses.shape, bool)
        index = np.searchsorted(self._low_array, addresses, side="right") - 1
        # An address below the first interval wraps to a distance that no interval has.
        offset = addresses - self._low_array[index]
        extent = self._high_array[index] - self._low_array[index]
        fits = (extent >= np.uint64(size)) & (offset <= extent - np.uint64(size))
        return np.asarray((index >= 0) & fits)


class _Mappings:
    """Which pages of the process may be read and written, as Linux tells.

    Elsewhere every page is trusted. What was found to be mapped stays so for one launch.
    """

    def __init__(self) -> None:
        self._proven: dict[str, set[int]] = {"r": set(), "w": set()}

    def lacks(self, pages: set[int], access: str) -> set[int]:
        """Those of ``pages`` that can't be accessed so (``"r"`` or ``"w"``)."""
        proven = self._proven[access]
        missing = pages - proven
        if missing and (mapped := self.read(access)) is not None:
            missing = {page for page in missing if not mapped.covers(*_page_bounds(page))}
            proven |= pages - missing
            return missing
        return set()

    def read(self, access: str) -> _Intervals | None:
        """The memory whose permissions have that letter; None where nobody tells."""
        if not sys.platform.startswith("linux"):
            return None
        try:
            with open("/proc/self/maps", encoding="ascii", errors="replace") as file:
                fields = [line.split(maxsplit=2) for line in file]
        except OSError:
            # A sandbox without /proc: nothing can be asked.
            return None
        bounds = [
            tuple(int(bound, 16) for bound in field[0].split("-"))
            for field in fields
            if access in field[1]
        ]
        return _Intervals((low, high) for low, high in bounds)


def shared_pages(pages: Iterable[int]) -> bool:
    """Whether another process may write one of these pages, as Linux tells; False elsewhere."""
    shared = _Mappings().read("s")
    return shared is not None and any(shared.meets(*_page_bounds(page)) for page in pages)


def _page_bounds(page: int) -> tuple[int, int]:
    return page * PAGE, (page + 1) * PAGE


class _Window:
    """A stretch of memory as NumPy's array protocol describes it."""

    __slots__ = ("__array_interface__",)

    def __init__(self, address: int, count: int, dtype: np.dtype[Any]) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (count,),
            "typestr": dtype.str,
        }


def window(address: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """``count`` elements at ``address``, aligned or not, as a writable array that owns nothing."""
    return np.asarray(_Window(address, count, dtype))


def byte_range(array: NDArray[Any], name: str = "") -> Range:
    """The bytes an array's elements lie in, whatever the signs of its strides."""
    address: int = array.__array_interface__["data"][0]
    if array.size == 0:
        return Range(address, address, name, array.flags.writeable)
    reach = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape)]
    low = address + sum(step for step in reach if step < 0)
    high = address + sum(step for step in reach if step > 0) + array.itemsize
    return Range(low, high, name, array.flags.writeable)


class Memory:
    """What the pointers of one launch reach.

    ``ranges`` are the bytes of the launch's arguments. ``closed``: nothing else is ever meant, so
    an access outside is a fault. A program that gets a pointer elsewhere (loaded from memory, made
    of an integer) opens the memory: other addresses are used too from then on, where the system
    says that they are mapped.
    """

    def __init__(
        self, ranges: Iterable[Range | tuple[int, int]] = (), *, closed: bool = False
    ) -> None:
        self.ranges = [Range(*each) for each in ranges]
        self._closed = closed
        self._readable = _Intervals(each[:2] for each in self.ranges)
        self._writable = _Intervals(each[:2] for each in self.ranges if each.writable)
        self._mappings = _Mappings()

    def fault(self, addresses: Addresses, size: int, write: bool) -> Fault | None:
        """The first of the one-dimensional ``addresses`` where ``size`` bytes can't be accessed."""
        known = self._writable if write else self._readable
        low, high = int(addresses.min()), int(addresses.max()) + size
        if known.covers(low, high):
            return None
        outside = np.flatnonzero(~known.contains(addresses, size))
        if write:
            inside = self._readable.contains(addresses[outside], size)
            if inside.any():
                lane = int(outside[np.argmax(inside)])
                return self._read_only(lane, int(addresses[lane]))
        return self._unmapped(addresses, outside, size, "w" if write else "r")

    def _unmapped(
        self, addresses: Addresses, lanes: NDArray[np.intp], size: int, access: str
    ) -> Fault | None:
        """The first of ``lanes``, which lie outside of every argument, that can't be accessed."""
        asked = addresses[lanes]
        if self._closed:
            return Fault(int(lanes[0]), int(asked[0]), self._outside(int(asked[0]), size))
        first = asked // np.uint64(PAGE)
        last = (asked + np.uint64(size - 1)) // np.uint64(PAGE)
        pages = {int(page) for page in np.union1d(first, last)}
        never = {page for page in pages if page == 0 or page * PAGE >= HIGHEST}
        bad = never | self._mappings.lacks(pages - never, access)
        if not bad:
            return None
        touched = zip(first.tolist(), last.tolist())
        at = next(at for at, both in enumerate(touched) if not bad.isdisjoint(both))
        address = int(asked[at])
        reason = f"where no memory can be {'written' if access == 'w' else 'read'}"
        return Fault(int(lanes[at]), address, self._explained(reason, address, size))

    def _outside(self, address: int, size: int) -> str:
        return self._explained("which lies in no argument", address, size)

    def _explained(self, reason: str, address: int, size: int) -> str:
        if address < PAGE:
            reason = "which is a null pointer"
        return reason + self._neighbour(address, size)

    def _read_only(self, lane: int, address: int) -> Fault:
        owner = next(each for each in self.ranges if each.low <= address < each.high)
        return Fault(lane, address, "which is read-only", owner)

    def _neighbour(self, address: int, size: int) -> str:
        """How an address lies to the nearest argument, for a message; empty if it is far away."""
        found: list[tuple[int, str]] = []
        for each in self.ranges:
            name = each.name or "an argument"
            if address + size > each.high:
                past = address + size - each.high
                found.append((past, f", {past} bytes past the end of {name}"))
            elif address < each.low:
                found.append((each.low - address, f", {each.low - address} bytes before {name}"))
        distance, text = min(found, default=(NEARBY, ""))
        return text if distance < NEARBY else ""

    def open(self) -> None:
        """From now on pointers may be meant that no argument has."""
        self._closed = False

    def gather(self, addresses: Addresses, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The elements of ``dtype`` at one-dimensional ``addresses``, which are all accessible."""
        raw = _raw(dtype)
        view, index = _indexed(addresses, raw)
        picked = view[index]
        return picked.view(raw).reshape(-1).view(dtype)

    def scatter(self, addresses: Addresses, values: NDArray[Any]) -> None:
        """Write ``values`` to ``addresses``, both one-dimensional.

        Elements are written in order, so where they overlap the last one stands whole.
        """
        raw = _raw(values.dtype)
        values = np.ascontiguousarray(values).view(raw)
        view, index = _indexed(addresses, raw)
        if index.ndim == 2:
            view[index] = values.view(np.uint8).reshape(index.shape)
        else:
            view[index] = values


def _raw(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Unsigned integers of the same size: bits are moved as they are, NaN payloads included."""
    return np.dtype(f"u{dtype.itemsize}")


def _indexed(addresses: Addresses, raw: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """A view of the memory that ``addresses`` span, and where in it each element lies.

    The index has a second axis, over bytes, where elements lie between each other's places.
    """
    base = addresses.min()
    offsets = (addresses - base).astype(np.intp)
    count = int(offsets.max()) + raw.itemsize
    if raw.itemsize == 1:
        return window(int(base), count, raw), offsets
    if not (offsets & (raw.itemsize - 1)).any():
        steps = offsets >> (raw.itemsize.bit_length() - 1)
        return window(int(base), count // raw.itemsize, raw), steps
    bytes_of = offsets[:, None] + np.arange(raw.itemsize, dtype=np.intp)
    return window(int(base), count, np.dtype(np.uint8)), bytes_of


def lanes_of(mask: NDArray[np.bool_] | None, shape: tuple[int, ...]) -> NDArray[np.intp] | None:
    """The flat indices of the lanes that take part; None for all."""
    if mask is None:
        return None
    return np.flatnonzero(mask if mask.shape == shape else np.broadcast_to(mask, shape))
