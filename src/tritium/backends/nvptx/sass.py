"""Reading machine code: which lines of Python put registers in memory; its text by nvdisasm.

A cubin is an ELF file. Its table of lines is DWARF's (the standard's version 2, "Line Number
Information"); instructions have 16 bytes from sm_70 on, whose low 12 bits name the operation.
"""

from __future__ import annotations

import bisect
import collections
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from . import tools

_STORE_LOCAL = 0x387
"""STL: what a spilled register is written by."""
_BYTES = 16
_SECONDS = 120.0


class Row(NamedTuple):
    """From an address on the code is of that file and line."""

    address: int
    file: str
    line: int


# ---- spills --------------------------------------------------------------------------------------


def spill_place(cubin: bytes) -> tuple[str, int] | None:
    """The file and line whose code writes local memory most often; None where that isn't known."""
    try:
        parts = dict(_sections(cubin))
        code = next(data for name, data in parts.items() if name.startswith(".text."))
        rows = list(lines(parts[".debug_line"]))
    except (StopIteration, KeyError, struct.error, IndexError):
        # Without lines, or not as described above: a warning can do without.
        return None
    addresses = [row.address for row in rows]
    counts: collections.Counter[tuple[str, int]] = collections.Counter()
    for at in range(0, len(code) - _BYTES + 1, _BYTES):
        if struct.unpack_from("<Q", code, at)[0] & 0xFFF == _STORE_LOCAL:
            place = bisect.bisect_right(addresses, at) - 1
            if place >= 0 and rows[place].line:
                counts[rows[place].file, rows[place].line] += 1
    return counts.most_common(1)[0][0] if counts else None


def _sections(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and contents of each section of an ELF file of 64 bits that holds any."""
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<3H", image, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", image, table + size * each) for each in range(count)]
    texts = heads[names][4]
    for name, kind, _, _, offset, length in heads:
        at = texts + name
        nothing = 8
        data = b"" if kind == nothing else image[offset : offset + length]
        yield image[at : image.index(b"\0", at)].decode(), data


# ---- the table of lines --------------------------------------------------------------------------


class _Reader:
    """Numbers and texts one after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, form: str) -> int:
        (number,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return int(number)

    def unsigned(self) -> int:
        result = shift = 0
        while True:
            byte = self.take("B")
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result

    def signed(self) -> int:
        start = self.at
        number = self.unsigned()
        bits = 7 * (self.at - start)
        return number - (1 << bits) if number >> (bits - 1) else number

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode(errors="replace")
        self.at = end + 1
        return found


def lines(section: bytes) -> Iterator[Row]:
    """The rows of the first unit of ``.debug_line``, by address."""
    reader = _Reader(section)
    end = reader.take("I") + 4
    version = reader.take("H")
    start = reader.take("I") + reader.at
    step = reader.take("B")
    if version >= 4:
        reader.take("B")
    reader.take("B")
    base, span, first = reader.take("b"), reader.take("B"), reader.take("B")
    counts = [reader.take("B") for _ in range(first - 1)]
    files = _files(reader)
    reader.at = start
    yield from _program(reader, end, step, (base, span, first), counts, files)


def _files(reader: _Reader) -> list[str]:
    folders = [""]
    while folder := reader.text():
        folders.append(folder)
    files = [""]
    while name := reader.text():
        folder = folders[reader.unsigned()]
        reader.unsigned()
        reader.unsigned()
        files.append(os.path.join(folder, name))
    return files


def _program(
    reader: _Reader,
    end: int,
    step: int,
    special: tuple[int, int, int],
    counts: list[int],
    files: list[str],
) -> Iterator[Row]:
    """Run the program that makes the rows. The names of its operations are DWARF's."""
    base, span, first = special
    address, file, line = 0, 1, 1
    extended, copy, advance_pc, advance_line, set_file, add_pc, fixed = 0, 1, 2, 3, 4, 8, 9
    while reader.at < end:
        operation = reader.take("B")
        if operation >= first:
            address += (operation - first) // span * step
            line += base + (operation - first) % span
            yield Row(address, files[file], line)
        elif operation == extended:
            length = reader.unsigned()
            following = reader.at + length
            end_of_sequence, set_address = 1, 2
            kind = reader.take("B")
            if kind == end_of_sequence:
                return
            if kind == set_address:
                address = reader.take("Q")
            reader.at = following
        elif operation == copy:
            yield Row(address, files[file], line)
        elif operation == advance_pc:
            address += reader.unsigned() * step
        elif operation == advance_line:
            line += reader.signed()
        elif operation == set_file:
            file = reader.unsigned()
        elif operation == add_pc:
            address += (255 - first) // span * step
        elif operation == fixed:
            address += reader.take("H")
        else:
            for _ in range(counts[operation - 1]):
                reader.unsigned()


# ---- text ----------------------------------------------------------------------------------------


def disassemble(cubin: bytes) -> str:
    """Machine code as text. Raises OSError where there is no nvdisasm, or none that reads it."""
    import subprocess
    import tempfile

    path = tools.find("nvdisasm")
    if path is None:
        raise FileNotFoundError("there is no nvdisasm to show machine code")
    with tempfile.TemporaryDirectory(prefix="tritium-sass-") as folder:
        file = os.path.join(folder, "kernel.cubin")
        with open(file, "wb") as stream:
            stream.write(cubin)
        done = subprocess.run(
            [path, "-c", file], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    if done.returncode:
        raise OSError(f"nvdisasm can't show the machine code: {done.stderr.strip()}")
    return done.stdout
