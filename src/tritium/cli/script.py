"""Running a user's script as Python does, and reporting how it ends."""

from __future__ import annotations

import io
import os
import re
import sys
import traceback
import types
from collections.abc import Callable, Sequence

from tritium.diagnostics import TritiumError, text
from tritium.diagnostics.frames import PACKAGE

FAILED = 1
INTERRUPTED = 130
_NO_GPU = re.compile(r"not compiled with CUDA|NVIDIA driver|No CUDA GPUs")
"""What torch says where it has no GPU."""


def run_script(script: str, args: Sequence[str]) -> None:
    """Run a file as the main module, with its own folder first on the path.

    Raises what the script raises.
    """
    path = os.path.abspath(script)
    with io.open_code(path) as stream:
        code = compile(stream.read(), script, "exec")
    module = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    sys.argv = [script, *args]
    sys.path.insert(0, os.path.dirname(path))
    exec(code, module.__dict__)


def run_module(name: str, args: Sequence[str]) -> None:
    """Run a module of the path as ``python -m`` does. Raises what it raises."""
    import runpy

    sys.argv = [name, *args]
    sys.path.insert(0, os.getcwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def guarded(program: Callable[[], None], mapped: bool = False) -> int:
    """Run a program; the exit status, its errors printed to stderr.

    ``mapped``: the device "cuda" is on the CPU; else a script that misses it is told how.
    Coded errors are shown with their source lines and carets, others as Python shows them, without
    Tritium's own frames above the script's. ``SystemExit`` goes through.
    """
    try:
        program()
    except TritiumError as problem:
        _show(problem)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as problem:  # noqa: BLE001 - shown to the user, as Python would
        if type(problem).__module__ == "bdb":
            print("ended in the debugger", file=sys.stderr)
            return FAILED
        own = _own(problem.__traceback__)
        if isinstance(problem, SyntaxError) and own is problem.__traceback__:
            # The script's text has none of the frames.
            own = None
        sys.excepthook(type(problem), problem.with_traceback(own), own)
        if not mapped and _NO_GPU.search(str(problem)):
            print("help: --device cpu maps the device cuda to the CPU", file=sys.stderr)
        return FAILED
    finally:
        sys.stdout.flush()
    return 0


def _show(problem: TritiumError) -> None:
    sys.stdout.flush()
    color = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    print(text(problem, color=color), file=sys.stderr)
    launch = _launch(problem.__traceback__)
    if launch is not None and problem.loc is not None:
        shown = [(each.file, each.line) for each in problem.loc.chain()]
        if launch not in shown:
            print(f"launched from {launch[0]}:{launch[1]}", file=sys.stderr)


def _launch(trace: types.TracebackType | None) -> tuple[str, int] | None:
    """The last line of the user's that an exception passed before it came into Tritium."""
    found = None
    for frame, line in traceback.walk_tb(_own(trace)):
        if frame.f_code.co_filename.startswith(PACKAGE):
            break
        found = (frame.f_code.co_filename, line)
    return found


def _own(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback from the script's first frame on; the whole one where it has none."""
    at = trace
    while at is not None and _is_ours(at.tb_frame.f_code.co_filename):
        at = at.tb_next
    return trace if at is None else at


def _is_ours(file: str) -> bool:
    return file.startswith((PACKAGE, "<frozen runpy>"))
