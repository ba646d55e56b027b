"""The crash report of an internal error."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from tritium import knobs
from tritium.diagnostics import InternalError, write_report


def caught() -> InternalError:
    try:
        try:
            raise ZeroDivisionError("inner")
        except ZeroDivisionError as inner:
            raise InternalError("no such lowering") from inner
    except InternalError as error:
        return error


def contents(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode("utf-8") for name in archive.namelist()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "reports" / "deeper"


def write(folder: Path, error: BaseException, parts: dict[str, str]) -> Path:
    with knobs.runtime.scope():
        knobs.runtime.report_dir = str(folder)
        return write_report(error, parts)


def test_a_report_holds_the_traceback_and_the_parts(folder: Path) -> None:
    error = caught()
    path = write(folder, error, {"kernel.py": "x = 'é'\n", "before.ir": "func @k"})
    assert path.parent == folder
    assert path.suffix == ".zip"
    found = contents(path)
    assert list(found) == ["error.txt", "kernel.py", "before.ir"]
    assert found["kernel.py"] == "x = 'é'\n"
    assert found["before.ir"] == "func @k"
    assert sys.version in found["error.txt"]
    assert "ZeroDivisionError: inner" in found["error.txt"]
    assert "InternalError: no such lowering" in found["error.txt"]
    assert error.report == str(path)
    assert str(path) in str(error)


def test_nothing_else_is_left_and_reports_do_not_replace_each_other(folder: Path) -> None:
    paths = {write(folder, caught(), {}) for _ in range(5)}
    assert set(folder.iterdir()) == paths
    assert len(paths) == 5


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
def test_only_the_owner_can_read_it(folder: Path) -> None:
    path = write(folder, caught(), {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_names_and_texts_of_any_kind_are_stored(folder: Path) -> None:
    parts = {
        "../../outside.txt": "1",
        "/absolute": "2",
        "a b": "3",
        "a_b": "4",
        "error.txt": "5",
        "...": "6",
        "surrogate": "\ud800",
    }
    found = contents(write(folder, caught(), parts))
    assert all("/" not in name and not name.startswith(".") for name in found)
    assert len(found) == len(parts) + 1
    assert list(found.values())[1:-1] == ["1", "2", "3", "4", "5", "6"]
    assert found["surrogate"] == "\\ud800"


def test_any_exception_can_be_reported(folder: Path) -> None:
    found = contents(write(folder, ValueError("not ours"), {}))
    assert "ValueError: not ours" in found["error.txt"]


def test_a_folder_that_cannot_be_used_is_replaced_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    blocked = tmp_path / "file"
    blocked.write_text("")
    path = write(blocked / "below", caught(), {"part": "p"})
    assert path.parent == tmp_path / "temporary"
    found = contents(path)
    assert found["part"] == "p"
    assert f"could not be written to {blocked / 'below'}" in found["error.txt"]


def test_the_temporary_folder_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert write_report(caught(), {}).parent == tmp_path


def test_a_failed_write_leaves_nothing_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    error = caught()
    with pytest.raises(OSError, match="no space left"):
        write_report(error, {})
    assert list(tmp_path.iterdir()) == []
    assert error.report is None
