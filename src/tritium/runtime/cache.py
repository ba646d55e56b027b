"""Compiled code on disk: one file an entry, which appears whole or not at all.

Any problem with a file means that the kernel is compiled again, never an error. An entry holds
sections of bytes by name and a dictionary; a checksum covers all of it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tritium import knobs
from tritium.diagnostics import warn

MAGIC = b"tritium kernel 1\n"
SUFFIX = ".kernel"
FOLDER = "kernels"
_DIGEST = hashlib.sha256().digest_size
# The rooms whose text decides what code comes out for an IR, and what an entry holds.
_COMPILER = ("ir", "ops", "passes", "backends", "runtime")

_warned: set[str] = set()


class Entry(NamedTuple):
    """What is kept for a kernel: facts that JSON can hold, and sections of bytes."""

    facts: dict[str, Any]
    sections: dict[str, bytes]


class Usage(NamedTuple):
    """What ``survey`` found: entries, their bytes, and the names of damaged ones."""

    entries: int
    size: int
    damaged: list[str]


@functools.cache
def compiler_hash() -> str:
    """A hash of the compiler's own source text: other code means other entries."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    digest = hashlib.sha256()
    for room in _COMPILER:
        for folder, folders, files in sorted(os.walk(os.path.join(package, room))):
            folders.sort()
            for name in sorted(files):
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    digest.update(os.path.relpath(path, package).encode() + b"\0")
                    with open(path, "rb") as stream:
                        digest.update(stream.read() + b"\0")
    return digest.hexdigest()


def key(*parts: str) -> str:
    """The name of an entry that depends on all ``parts`` and on the compiler itself."""
    digest = hashlib.sha256(compiler_hash().encode())
    for part in parts:
        digest.update(b"\0%d\0" % len(part.encode()) + part.encode())
    return digest.hexdigest()


def folder() -> str:
    """Where the entries are."""
    return os.path.join(knobs.cache.dir, FOLDER)


def load(name: str) -> Entry | None:
    """The entry of that name; None where there is none, or none that can be trusted."""
    place = folder()
    try:
        if not _is_private(place):
            return None
        with open(os.path.join(place, name + SUFFIX), "rb") as stream:
            return decode(stream.read())
    except OSError:
        return None


def store(name: str, entry: Entry) -> bool:
    """Keep an entry; whether that succeeded."""
    place = folder()
    try:
        # One after the other: makedirs gives the mode to the last folder only.
        for each in (os.path.dirname(place), place):
            os.makedirs(each, mode=0o700, exist_ok=True)
        if not _is_private(place):
            return False
        handle, unfinished = tempfile.mkstemp(prefix=f".{name[:16]}-", suffix=".tmp", dir=place)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(encode(entry))
            os.replace(unfinished, os.path.join(place, name + SUFFIX))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            raise
    except OSError:
        # A full disk, a read-only home: the kernel runs all the same.
        return False
    return True


def _is_private(place: str) -> bool:
    """Whether nobody but this user (and root) can have put code there; warns once if not.

    Raises ``OSError`` where the folder doesn't exist.
    """
    if os.name != "posix":
        return os.path.isdir(place)
    above = os.stat(os.path.dirname(place))
    below = os.stat(place)
    reason = _foreign(below) or _foreign(above, sticky=True)
    if reason and place not in _warned:
        _warned.add(place)
        text = f"the cache {place} is not used: {reason}"
        warn("W0901", text=text, hint="set TRITIUM_CACHE_DIR to a folder of your own")
    return not reason


def _foreign(status: os.stat_result, sticky: bool = False) -> str:
    if status.st_uid not in (0, os.geteuid()):
        return "it belongs to another user"
    if sticky and status.st_mode & stat.S_ISVTX:
        return ""
    return "others can write to it" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


# ---- the format ----------------------------------------------------------------------------------


def encode(entry: Entry) -> bytes:
    """An entry as a file: magic, SHA-256 of the rest, length of the head, head, sections."""
    packed = {name: zlib.compress(data, 1) for name, data in entry.sections.items()}
    head = json.dumps(
        {"facts": entry.facts, "sections": [[name, len(data)] for name, data in packed.items()]}
    ).encode()
    body = len(head).to_bytes(8, "little") + head + b"".join(packed.values())
    return MAGIC + hashlib.sha256(body).digest() + body


def decode(data: bytes) -> Entry | None:
    """The entry in a file, None for one that is damaged or of another format."""
    start = len(MAGIC) + _DIGEST
    body = memoryview(data)[start:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        return None
    at = 8 + int.from_bytes(body[:8], "little")
    head = json.loads(bytes(body[8:at]))
    sections = {}
    for name, length in head["sections"]:
        sections[name] = zlib.decompress(body[at : at + length])
        at += length
    return Entry(head["facts"], sections)


# ---- looking after it ----------------------------------------------------------------------------


def _files() -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder()) as found:
            yield from sorted(
                (each for each in found if each.name.endswith((SUFFIX, ".tmp"))),
                key=lambda each: each.name,
            )
    except FileNotFoundError:
        return


def entries() -> list[tuple[str, int, Mapping[str, Any] | None]]:
    """Name, bytes and facts of each entry; None for the facts of a damaged one.

    Raises ``OSError`` where the folder can't be read.
    """
    found: list[tuple[str, int, Mapping[str, Any] | None]] = []
    for file in _files():
        if file.name.endswith(SUFFIX):
            with open(file.path, "rb") as stream:
                data = stream.read()
            entry = decode(data)
            name = file.name.removesuffix(SUFFIX)
            found.append((name, len(data), None if entry is None else entry.facts))
    return found


def survey() -> Usage:
    """How much there is, and what of it is damaged. Raises ``OSError`` as ``entries`` does."""
    found = entries()
    damaged = [name for name, _, facts in found if facts is None]
    return Usage(len(found), sum(size for _, size, _ in found), damaged)


def size() -> tuple[int, int]:
    """The number of entries and their bytes, without reading them."""
    sizes = [file.stat().st_size for file in _files() if file.name.endswith(SUFFIX)]
    return len(sizes), sum(sizes)


def clear(names: list[str] | None = None) -> int:
    """Remove all entries, or those named; how many. Raises ``OSError`` where one can't be."""
    count = 0
    for file in _files():
        name = file.name.removesuffix(SUFFIX)
        if names is None or name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.path)
                count += file.name.endswith(SUFFIX)
    return count
