"""Compiled code on disk: one file an entry, which appears whole or not at all.

Any problem with a file means that the kernel is compiled again, never an error. An entry holds
sections of bytes by name and a dictionary; a checksum covers all of it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import stat
import time
import zlib
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from tritium import knobs
from tritium.diagnostics import warn
from tritium.ir.digest import digest

_FAMILY = b"tritium kernel "
"""What files of every version of the format begin with."""
MAGIC = _FAMILY + b"2\n"
SUFFIX = ".kernel"
MANIFEST_SUFFIX = ".manifest"
"""Of what leads to a kernel without tracing it (``runtime.manifest``)."""
HOST_SUFFIX = ".host"
"""Of code that runs beside kernels."""
KINDS = {SUFFIX: "kernel", MANIFEST_SUFFIX: "manifest", HOST_SUFFIX: "host"}
FOLDER = "kernels"
_DIGEST = digest().digest_size
# The rooms whose text decides what code comes out for a kernel, and what an entry holds.
_COMPILER = ("backends", "frontend", "ir", "language", "ops", "passes", "runtime")
_MOST_BYTES = 1 << 28
"""Of a file that is read: no entry comes near."""
_TOUCH_AFTER = 3600.0
"""Seconds after which a use of an entry is noted once more, for ``prune``."""
_SETTLED = 10.0
"""Seconds after which a source file that doesn't change is taken to stay so."""
_ABANDONED = 3600.0
"""Seconds after which a file that somebody began to write is taken for left behind."""
_STARTED = time.time()

_warned: set[str] = set()


class Entry(NamedTuple):
    """What is kept for a kernel: facts that JSON can hold, and sections of bytes.

    Sections may be ``pack``ed already.
    """

    facts: dict[str, Any]
    sections: dict[str, bytes]


class Packed(bytes):
    """A section as it lies in a file."""


def pack(data: bytes) -> Packed:
    """Do what takes time of keeping a section."""
    return Packed(zlib.compress(data, 1))


class Item(NamedTuple):
    """An entry as it lies in the folder.

    ``kind`` is a value of ``KINDS``. ``used`` is when it was last loaded or stored, to an hour, in
    seconds since the epoch. ``facts`` are None for one that can't be used: it is of another format,
    such as an older version's, where ``other_format``, and damaged otherwise.
    """

    name: str
    kind: str
    size: int
    used: float
    facts: Mapping[str, Any] | None
    other_format: bool = False

    @property
    def damaged(self) -> bool:
        """Whether its contents are not what was written."""
        return self.facts is None and not self.other_format


@functools.cache
def compiler_hash() -> str:
    """A hash of the compiler's own source text: other code means other entries.

    Reading all of it would take longer than all else of a warm start, so an entry keeps the hash of
    files whose place, size and times are as they were. Where files have changed since they were
    loaded, maybe, there are no entries for this process.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files, latest = _sources(package)
    listing = digest("\0".join([package, *files]).encode())
    if _STARTED < latest <= time.time():
        return os.urandom(32).hex()
    known = load(listing.hexdigest(), HOST_SUFFIX)
    if known is not None and isinstance(known.facts.get("compiler"), str):
        return str(known.facts["compiler"])
    text = digest()
    for each in files:
        path = each.partition("\0")[0]
        with open(path, "rb") as stream:
            name = os.path.relpath(path, package)
            text.update(name.encode() + b"\0" + stream.read() + b"\0")
    found = text.hexdigest()
    # A file that has just been written may be written again in the same tick of its clock.
    if time.time() > latest + _SETTLED:
        store(listing.hexdigest(), Entry({"compiler": found, "entry": "compiler"}, {}), HOST_SUFFIX)
    return found


def _sources(package: str) -> tuple[list[str], float]:
    """The path, size, times and number of each source file, and when the last of them changed.

    Written to be quick: it is a tenth of a warm start.
    """
    files: list[str] = []
    latest = 0
    folders = [os.path.join(package, room) for room in _COMPILER]
    for folder in folders:
        with os.scandir(folder) as found:
            for each in found:
                if each.name.endswith(".py"):
                    it = each.stat()
                    modified, changed = it.st_mtime_ns, it.st_ctime_ns
                    files.append(f"{each.path}\0{it.st_size} {modified} {changed} {it.st_ino}")
                    if changed > latest or modified > latest:
                        latest = max(changed, modified)
                elif each.name != "__pycache__" and each.is_dir():
                    folders.append(each.path)
    files.sort()
    return files, latest / 1e9


def key(*parts: str) -> str:
    """The name of an entry that depends on all ``parts`` and on the compiler itself."""
    name = digest(compiler_hash().encode())
    for part in parts:
        name.update(b"\0%d\0" % len(part.encode()) + part.encode())
    return name.hexdigest()


def folder() -> str:
    """Where the entries are."""
    return os.path.join(knobs.cache.dir, FOLDER)


def load(name: str, suffix: str = SUFFIX) -> Entry | None:
    """The entry of that name; None where there is none, or none that can be trusted."""
    place = folder()
    try:
        if not _is_private(place):
            return None
        return decode(_read(os.path.join(place, name + suffix)), name + suffix)
    except OSError:
        return None


def _read(path: str, note: bool = True) -> bytes:
    """A file that this user (or root) wrote; raises ``OSError`` for anything else of that name.

    ``note`` has its time show that it was used.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise OSError(f"{path} is no entry")
        if os.name == "posix" and (reason := _foreign(status)):
            raise OSError(f"{path} is not trusted: {reason}")
        if note and abs(time.time() - status.st_mtime) > _TOUCH_AFTER:
            with contextlib.suppress(OSError):
                os.utime(path)
        return stream.read()


def store(name: str, entry: Entry, suffix: str = SUFFIX) -> bool:
    """Keep an entry; whether that succeeded."""
    import tempfile

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
                stream.write(encode(entry, name + suffix))
            os.replace(unfinished, os.path.join(place, name + suffix))
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


def encode(entry: Entry, file: str) -> bytes:
    """An entry as the contents of a file: magic, digest, length of the head, head, sections.

    The digest is that of what follows and of the file's name: a file can't stand for another.
    """
    packed = {
        name: data if isinstance(data, Packed) else pack(data)
        for name, data in entry.sections.items()
    }
    head = json.dumps(
        {"facts": entry.facts, "sections": [[name, len(data)] for name, data in packed.items()]}
    ).encode()
    body = len(head).to_bytes(8, "little") + head + b"".join(packed.values())
    return MAGIC + _sum(file, body) + body


def _sum(file: str, body: bytes | memoryview) -> bytes:
    made = digest(file.encode() + b"\0")
    made.update(body)
    result: bytes = made.digest()
    return result


def decode(data: bytes, file: str) -> Entry | None:
    """The entry in a file of that name, None for one that is damaged or of another format."""
    start = len(MAGIC) + _DIGEST
    body = memoryview(data)[start:]
    if data[: len(MAGIC)] != MAGIC or _sum(file, body) != data[len(MAGIC) : start]:
        return None
    # From here on it is what ``encode`` wrote.
    at = 8 + int.from_bytes(body[:8], "little")
    head = json.loads(bytes(body[8:at]))
    sections = {}
    for name, length in head["sections"]:
        sections[name] = zlib.decompress(body[at : at + length])
        at += length
    return Entry(head["facts"], sections)


# ---- looking after it ----------------------------------------------------------------------------


def _files(*suffixes: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder()) as found:
            return sorted(
                (each for each in found if each.name.endswith(suffixes)),
                key=lambda each: each.name,
            )
    except FileNotFoundError:
        return []


def entries() -> list[Item]:
    """Every entry, by name. Raises ``OSError`` where the folder can't be read."""
    found = []
    for file in _files(*KINDS):
        with contextlib.suppress(FileNotFoundError):
            status = file.stat(follow_symlinks=False)
            entry, other = None, False
            with contextlib.suppress(OSError):
                data = _read(file.path, note=False)
                entry = decode(data, file.name)
                other = data.startswith(_FAMILY) and not data.startswith(MAGIC)
            name, suffix = os.path.splitext(file.name)
            facts = None if entry is None else entry.facts
            kind, used = KINDS[suffix], status.st_mtime
            found.append(Item(name, kind, status.st_size, used, facts, other))
    return found


def size() -> tuple[dict[str, int], int]:
    """The number of entries by kind, and the bytes of all, without reading them."""
    counts, total = dict.fromkeys(KINDS.values(), 0), 0
    for file in _files(*KINDS):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat(follow_symlinks=False).st_size
            counts[KINDS[os.path.splitext(file.name)[1]]] += 1
    return counts, total


def clear(names: Collection[str] | None = None) -> int:
    """Remove all entries, or those named; how many.

    Raises ``OSError`` where one can't be removed.
    """
    count = 0
    for file in _files(*KINDS, ".tmp"):
        if names is None or os.path.splitext(file.name)[0] in names:
            count += _remove(file) and not file.name.endswith(".tmp")
    return count


def prune(most: int) -> tuple[int, int]:
    """Remove what was used longest ago until no more than ``most`` bytes are left.

    What a process that was killed left behind goes too. Returns how many entries were removed, and
    the bytes that are left. Raises ``OSError`` as ``clear`` does.
    """
    ages: list[tuple[float, int, os.DirEntry[str]]] = []
    for file in _files(*KINDS, ".tmp"):
        with contextlib.suppress(FileNotFoundError):
            status = file.stat(follow_symlinks=False)
            if not file.name.endswith(".tmp"):
                ages.append((status.st_mtime, status.st_size, file))
            elif abs(time.time() - status.st_mtime) > _ABANDONED:
                _remove(file)
    left, count = sum(length for _, length, _ in ages), 0
    for _, length, file in sorted(ages, key=lambda each: each[0]):
        if left <= most:
            break
        count += _remove(file)
        left -= length
    return count, left


def _remove(file: os.DirEntry[str]) -> bool:
    """Whether the file was there; a folder in the place of an entry isn't Tritium's, and stays."""
    if file.is_dir(follow_symlinks=False):
        return False
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file.path)
        return True
    return False
