from __future__ import annotations

import errno
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tritium import knobs
from tritium.diagnostics import TritiumWarning
from tritium.runtime import cache
from tritium.runtime.cache import Entry

ENTRY = Entry(
    {"entry": "add_kernel", "pairs": [[0, 2], [1, 2]], "scratch": 64},
    {
        "object": random.Random(1).randbytes(4000),
        "llir": b"define void @add_kernel()" * 40,
        "": b"",
    },
)

needs_posix = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")


@pytest.fixture(autouse=True)
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", set())
    return tmp_path / "cache" / "kernels"


def test_an_entry_comes_back() -> None:
    assert cache.load("k") is None
    assert cache.store("k", ENTRY)
    assert cache.load("k") == ENTRY
    assert cache.load("other") is None
    changed = ENTRY._replace(facts={"entry": "other"})
    assert cache.store("k", changed)
    assert cache.load("k") == changed


def test_it_is_one_private_file(place: pathlib.Path) -> None:
    cache.store("k", ENTRY)
    assert [each.name for each in place.iterdir()] == ["k.kernel"]
    if os.name == "posix":
        assert place.stat().st_mode & 0o777 == 0o700
        assert place.parent.stat().st_mode & 0o777 == 0o700
        assert (place / "k.kernel").stat().st_mode & 0o077 == 0


def test_every_truncation_is_a_miss(place: pathlib.Path) -> None:
    cache.store("k", ENTRY)
    data = (place / "k.kernel").read_bytes()
    for length in [*range(0, 200), *range(200, len(data), 97), len(data) - 1]:
        (place / "k.kernel").write_bytes(data[:length])
        assert cache.load("k") is None
    (place / "k.kernel").write_bytes(data + b"\0")
    assert cache.load("k") is None
    assert cache.store("k", ENTRY)
    assert cache.load("k") == ENTRY


def test_every_flipped_bit_is_a_miss(place: pathlib.Path) -> None:
    cache.store("k", ENTRY)
    data = (place / "k.kernel").read_bytes()
    chance = random.Random(0)
    for at in [*range(120), *chance.sample(range(120, len(data)), 200)]:
        flipped = bytearray(data)
        flipped[at] ^= 1 << chance.randrange(8)
        (place / "k.kernel").write_bytes(flipped)
        assert cache.load("k") is None


def test_a_folder_in_the_place_of_an_entry_is_a_miss(place: pathlib.Path) -> None:
    (place / "k.kernel").mkdir(parents=True)
    os.chmod(place.parent, 0o700)
    os.chmod(place, 0o700)
    assert cache.load("k") is None
    assert not cache.store("k", ENTRY)
    assert [each.name for each in place.iterdir()] == ["k.kernel"]


def test_a_file_in_the_place_of_the_folder(place: pathlib.Path) -> None:
    place.parent.write_text("")
    assert not cache.store("k", ENTRY)
    assert cache.load("k") is None


@pytest.mark.parametrize("step", ["os.replace", "tempfile.mkstemp", "os.makedirs"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_full_disk_or_a_read_only_one(
    monkeypatch: pytest.MonkeyPatch, place: pathlib.Path, step: str, code: int
) -> None:
    cache.store("old", ENTRY)

    def refuse(*args: object, **keywords: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(step, refuse)
    assert not cache.store("k", ENTRY)
    assert [each.name for each in place.iterdir()] == ["old.kernel"]
    assert cache.load("old") == ENTRY


@needs_posix
def test_a_read_only_folder(place: pathlib.Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes anywhere")
    place.mkdir(parents=True, mode=0o700)
    place.chmod(0o500)
    assert not cache.store("k", ENTRY)
    assert cache.load("k") is None
    place.chmod(0o700)


@needs_posix
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused_with_one_warning(
    place: pathlib.Path, mode: int
) -> None:
    cache.store("k", ENTRY)
    place.chmod(mode)
    with pytest.warns(TritiumWarning, match="others can write to it") as caught:
        assert cache.load("k") is None
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load("k") is None
        assert not cache.store("k", ENTRY)


@needs_posix
def test_so_is_one_below_such_a_folder_unless_it_is_sticky(place: pathlib.Path) -> None:
    cache.store("k", ENTRY)
    place.parent.chmod(0o1777)
    assert cache.load("k") == ENTRY
    place.parent.chmod(0o777)
    with pytest.warns(TritiumWarning):
        assert cache.load("k") is None


@needs_posix
def test_a_loose_umask_makes_no_folder_that_is_refused() -> None:
    before = os.umask(0)
    try:
        assert cache.store("k", ENTRY)
    finally:
        os.umask(before)
    assert cache.load("k") == ENTRY


def test_the_key_depends_on_every_part_and_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [cache.key(*parts) for parts in (("a", "b"), ("ab",), ("", "ab"), ("b", "a"), ("é",))]
    assert len(set(keys)) == len(keys)
    assert cache.key("a", "b") == keys[0]
    monkeypatch.setattr(cache, "compiler_hash", lambda: "another compiler")
    assert cache.key("a", "b") != keys[0]


def compiler_files(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A compiler of two files, an hour old, in the place of Tritium's; returns one of them."""
    monkeypatch.setattr(cache, "__file__", str(folder / "runtime" / "cache.py"))
    for room in cache._COMPILER:
        (folder / room / "deep").mkdir(parents=True)
    for name in ("runtime/cache.py", "ops/deep/a.py"):
        (folder / name).write_text("one = 1")
        os.utime(folder / name, (time.time() - 3600,) * 2)
    return folder / "ops/deep/a.py"


def fresh_hash() -> str:
    cache.compiler_hash.cache_clear()
    return cache.compiler_hash()


@pytest.fixture
def forget_hash() -> Iterator[None]:
    yield
    cache.compiler_hash.cache_clear()


@pytest.mark.usefixtures("forget_hash")
def test_the_compilers_hash(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler_files(tmp_path / "a", monkeypatch)
    monkeypatch.setattr(cache, "_SETTLED", -1.0)
    monkeypatch.setattr(cache, "_STARTED", time.time() + 60)
    first = fresh_hash()
    assert cache.size()[0]["host"] == 1
    read: list[str] = []

    def watched(file: object, *rest: Any) -> Any:
        read.append(str(file))
        return open(file, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr(cache, "open", watched, raising=False)
    assert fresh_hash() == first
    assert not [name for name in read if name.endswith(".py")]
    file = compiler_files(tmp_path / "b", monkeypatch)
    assert fresh_hash() == first, "the same text in another place"
    assert len([name for name in read if name.endswith(".py")]) == 2
    (tmp_path / "b/ops/note.txt").write_text("no source")
    assert fresh_hash() == first
    hashes = {first}
    for text in ("one = 2", "one = 11"):
        file.write_text(text)
        os.utime(file, (time.time() - 3600,) * 2)
        hashes.add(fresh_hash())
    file.rename(file.with_name("b.py"))
    hashes.add(fresh_hash())
    assert len(hashes) == 4


@pytest.mark.usefixtures("forget_hash")
def test_a_compiler_that_has_changed_since_it_was_loaded_has_no_entries(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler_files(tmp_path / "a", monkeypatch)
    monkeypatch.setattr(cache, "_STARTED", 0.0)
    assert fresh_hash() != fresh_hash()
    assert cache.compiler_hash() == cache.compiler_hash(), "within the process there is one key"
    assert cache.size()[0]["host"] == 0


def test_the_verbs(place: pathlib.Path) -> None:
    nothing = {"kernel": 0, "manifest": 0, "host": 0}
    assert cache.size() == (nothing, 0)
    assert cache.entries() == []
    assert cache.clear() == 0
    assert cache.prune(0) == (0, 0)
    for name in ("a", "b", "c"):
        cache.store(name, ENTRY)
    cache.store("a", ENTRY, cache.MANIFEST_SUFFIX)
    cache.store("d", ENTRY, cache.HOST_SUFFIX)
    (place / ".a-1.tmp").write_bytes(b"left by a process that was killed")
    length = len(cache.encode(ENTRY, "a.kernel"))
    (place / "b.kernel").write_bytes(b"damaged")
    (place / "README").write_text("not ours")
    assert cache.size() == ({"kernel": 3, "manifest": 1, "host": 1}, 4 * length + 7)
    assert [(each.name, each.kind, each.facts) for each in cache.entries()] == [
        ("a", "kernel", ENTRY.facts),
        ("a", "manifest", ENTRY.facts),
        ("b", "kernel", None),
        ("c", "kernel", ENTRY.facts),
        ("d", "host", ENTRY.facts),
    ]
    assert cache.clear(["b"]) == 1
    assert cache.size()[0]["kernel"] == 2
    assert cache.clear() == 4
    assert [each.name for each in place.iterdir()] == ["README"]


def test_an_entry_under_another_name_is_a_miss(place: pathlib.Path) -> None:
    cache.store("k", ENTRY)
    data = (place / "k.kernel").read_bytes()
    for name in ("other.kernel", "k.manifest", "k.host"):
        (place / name).write_bytes(data)
        (place / name).chmod(0o600)
    assert cache.load("other") is None
    assert cache.load("k", cache.MANIFEST_SUFFIX) is None
    assert cache.load("k", cache.HOST_SUFFIX) is None
    assert cache.load("k") == ENTRY
    assert len([each for each in cache.entries() if each.facts is None]) == 3


def test_kinds_of_one_name_are_apart() -> None:
    cache.store("k", ENTRY)
    assert cache.load("k", cache.MANIFEST_SUFFIX) is None
    other = Entry({"reads": {}}, {"ir": b"text"})
    cache.store("k", other, cache.MANIFEST_SUFFIX)
    assert cache.load("k") == ENTRY
    assert cache.load("k", cache.MANIFEST_SUFFIX) == other


def test_what_was_used_last_is_kept_longest(place: pathlib.Path) -> None:
    for age, name in enumerate(("c", "a", "b", "d")):
        cache.store(name, ENTRY)
        then = time.time() - 86_400 * (age + 1)
        os.utime(place / f"{name}.kernel", (then, then))
    listed = {each.name: each.used for each in cache.entries()}
    assert listed == {each.name: each.used for each in cache.entries()}, "listing is no use"
    assert cache.load("d") == ENTRY
    for name, age in (("old", 7200), ("young", 60)):
        (place / f".{name}-1.tmp").write_bytes(b"")
        os.utime(place / f".{name}-1.tmp", (time.time() - age, time.time() - age))
    length = len(cache.encode(ENTRY, "a.kernel"))
    assert cache.prune(4 * length) == (0, 4 * length)
    assert cache.prune(3 * length - 1) == (2, 2 * length)
    assert [each.name for each in cache.entries()] == ["c", "d"]
    assert sorted(each.name for each in place.glob(".*")) == [".young-1.tmp"]


@pytest.mark.parametrize("then", [0.0, 4e9, -1e9])
def test_a_clock_that_is_wrong(place: pathlib.Path, then: float) -> None:
    cache.store("k", ENTRY)
    os.utime(place / "k.kernel", (then, then))
    assert cache.load("k") == ENTRY
    os.utime(place / "k.kernel", (then, then))
    assert cache.prune(0) == (1, 0)


@needs_posix
def test_an_entry_that_others_can_write_to_is_a_miss(place: pathlib.Path) -> None:
    cache.store("k", ENTRY)
    for mode in (0o620, 0o602, 0o666):
        (place / "k.kernel").chmod(mode)
        assert cache.load("k") is None
    assert cache.entries()[0].facts is None
    cache.store("k", ENTRY)
    assert cache.load("k") == ENTRY


@needs_posix
def test_what_is_no_file_is_a_miss(place: pathlib.Path, tmp_path: pathlib.Path) -> None:
    cache.store("k", ENTRY)
    (place / "k.kernel").rename(tmp_path / "elsewhere")
    (place / "k.kernel").symlink_to(tmp_path / "elsewhere")
    assert cache.load("k") is None
    assert cache.store("k", ENTRY), "the link is replaced, not followed"
    assert cache.load("k") == ENTRY
    assert not (place / "k.kernel").is_symlink()
    (place / "loop.kernel").symlink_to("loop.kernel")
    (place / "nothing.kernel").symlink_to("nowhere")
    os.mkfifo(place / "pipe.kernel")
    (place / "folder.kernel").mkdir()
    for name in ("loop", "nothing", "pipe", "folder"):
        assert cache.load(name) is None
    assert [each.name for each in cache.entries() if each.facts is None] == [
        *("folder", "loop", "nothing", "pipe")
    ]
    assert cache.clear() == 4
    assert [each.name for each in place.iterdir()] == ["folder.kernel"]


@needs_posix
def test_the_folder_may_be_a_link(place: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o700)
    place.parent.symlink_to(tmp_path / "disk")
    assert cache.store("k", ENTRY)
    assert cache.load("k") == ENTRY


def test_two_processes_write_and_read_the_same_entries() -> None:
    script = """
    from tritium.runtime import cache
    from tritium.runtime.cache import Entry

    bad = 0
    for turn in range(60):
        for name in ("a", "b", "c"):
            facts = {"name": name}
            cache.store(name, Entry(facts, {"object": name.encode() * (1000 + turn)}))
            found = cache.load(name)
            good = found is not None and found.facts == facts
            bad += not (good and set(found.sections["object"]) == set(name.encode()))
    print(bad)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in running] == ["0", "0"]
    assert all(each.facts for each in cache.entries())
    assert knobs.cache.dir == os.environ["TRITIUM_CACHE_DIR"]


def test_what_was_packed_before_is_kept_as_it_is() -> None:
    sections = {"long": b"abc" * 1000, "empty": b""}
    packed = {name: cache.pack(data) for name, data in sections.items()}
    data = cache.encode(cache.Entry({"entry": "x"}, dict(packed)), "file")
    assert data == cache.encode(cache.Entry({"entry": "x"}, dict(sections)), "file")
    found = cache.decode(data, "file")
    assert found is not None
    assert found.sections == sections
