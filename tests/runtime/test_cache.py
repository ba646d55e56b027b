from __future__ import annotations

import errno
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import warnings

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


def test_the_verbs(place: pathlib.Path) -> None:
    assert cache.size() == (0, 0)
    assert cache.entries() == []
    assert cache.clear() == 0
    for name in ("a", "b", "c"):
        cache.store(name, ENTRY)
    (place / ".a-1.tmp").write_bytes(b"left by a process that was killed")
    length = len(cache.encode(ENTRY))
    (place / "b.kernel").write_bytes(b"damaged")
    (place / "README").write_text("not ours")
    assert cache.size() == (3, 2 * length + 7)
    assert [(name, facts) for name, _, facts in cache.entries()] == [
        ("a", ENTRY.facts),
        ("b", None),
        ("c", ENTRY.facts),
    ]
    assert cache.survey() == (3, 2 * length + 7, ["b"])
    assert cache.clear(["b"]) == 1
    assert cache.size()[0] == 2
    assert cache.clear() == 2
    assert [each.name for each in place.iterdir()] == ["README"]


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
    assert cache.survey().damaged == []
    assert knobs.cache.dir == os.environ["TRITIUM_CACHE_DIR"]
