"""The traceback of a test process that has died is kept for the end of the log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import crashes

DIES = """
import ctypes, sys
from tests import crashes
crashes.watch(sys.argv[1], "gw7")
crashes.note("a first thing")
crashes.note("the last thing")
if sys.argv[2] == "dies":
    ctypes.string_at(0)
"""


def run(folder: Path, what: str) -> list[str]:
    root = Path(__file__).parent.parent
    command = [sys.executable, "-c", DIES, str(folder), what]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    assert (done.returncode == 0) == (what == "ends"), done.stderr.decode()
    return crashes.left(str(folder))


def test_what_a_process_was_about_to_do_is_kept(tmp_path: Path) -> None:
    name, note, *trace = run(tmp_path, "dies")
    assert (name, note) == ("gw7:", "the last thing")
    assert "Fatal Python error" in trace[0]
    assert any("string_at" in line for line in trace)


def test_a_process_that_ends_leaves_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "ends") == []
