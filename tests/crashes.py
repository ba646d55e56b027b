"""What a test process that dies leaves behind, so that the end of the log tells where it was."""

from __future__ import annotations

import faulthandler
import os
from pathlib import Path

MOST_LINES = 60
_STARTS = "Fatal Python error"
_files: list[int] = []


def watch(folder: str, worker: str) -> None:
    """Have the traceback of a fatal signal written to a file of this process."""
    path = os.path.join(folder, worker)
    _files[:] = [os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC)]
    faulthandler.enable(file=_files[0])


def note(text: str) -> None:
    """What this process is about to do; it takes the place of the last note."""
    for file in _files:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{text}\n".encode(), 0)
        os.lseek(file, 0, os.SEEK_END)


def left(folder: str) -> list[str]:
    """The lines that processes which died have left, the first of each."""
    found = []
    for path in sorted(Path(folder).iterdir()):
        text = path.read_text(errors="replace")
        if _STARTS in text:
            found += [f"{path.name}:", *text.splitlines()[:MOST_LINES]]
    return found
