"""The crash report: what is needed to find a fault of Tritium, in one file to send along."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping

from .errors import InternalError


def _nowhere() -> str | None:
    return None


_configured: Callable[[], str | None] = _nowhere


def use_directory(source: Callable[[], str | None]) -> None:
    """Ask ``source`` for the folder of reports from now on; None means the temporary folder."""
    global _configured
    _configured = source


def write_report(error: BaseException, parts: Mapping[str, str]) -> pathlib.Path:
    """Write a zip with the traceback of ``error`` and one file for each of ``parts``.

    ``parts`` maps names (``kernel.py``, ``before.ir``, ``pipeline.txt``) to their text. The file
    appears whole or not at all, readable by its owner only, in the configured folder, or in the
    temporary one where that can't be written to. An ``InternalError`` is told the path.

    Raises ``OSError`` when neither folder can be written to.
    """
    import tempfile

    told = _described(error)
    path: pathlib.Path | None = None
    folder = _configured()
    if folder is not None:
        try:
            path = _write(pathlib.Path(folder), [("error.txt", told), *parts.items()])
        except OSError as refused:
            told += f"\nThe report could not be written to {folder}: {refused}\n"
    if path is None:
        path = _write(pathlib.Path(tempfile.gettempdir()), [("error.txt", told), *parts.items()])
    if isinstance(error, InternalError):
        error.report = str(path)
    return path


def _described(error: BaseException) -> str:
    import platform

    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return f"Python {sys.version}\n{platform.platform()}\n\n{''.join(lines)}"


def _write(folder: pathlib.Path, parts: list[tuple[str, str]]) -> pathlib.Path:
    import tempfile
    import zipfile

    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".tritium-fault-", suffix=".tmp", dir=folder)
    unfinished = pathlib.Path(name)
    try:
        with (
            os.fdopen(handle, "wb") as stream,
            zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for member, content in zip(_members([part for part, _ in parts]), parts):
                archive.writestr(member, content[1].encode("utf-8", "backslashreplace"))
        chance = unfinished.stem.rpartition("-")[2]
        path = folder / f"tritium-fault-{time.strftime('%Y%m%d-%H%M%S')}-{chance}.zip"
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            unfinished.unlink()
        raise
    return path


def _members(names: list[str]) -> list[str]:
    """Distinct file names without folders, whatever the parts are called."""
    members: list[str] = []
    for name in names:
        safe = re.sub(r"[^\w.-]+", "_", name).lstrip(".") or "part"
        member, number = safe, 1
        while member in members:
            number += 1
            member = f"{number}-{safe}"
        members.append(member)
    return members
