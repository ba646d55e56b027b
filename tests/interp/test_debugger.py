"""pdb on kernels, in processes of their own with a scripted terminal."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import pdb
import numpy as np
import tritium.language as tl
from tests.interp.launching import jit, launch
"""

ROOT = pathlib.Path(__file__).parents[2]


def debugged(folder: pathlib.Path, body: str, commands: str, *options: str) -> str:
    """What a script prints while pdb reads ``commands`` from its standard input."""
    script = folder / "script.py"
    script.write_text(PRELUDE + textwrap.dedent(body), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *options, str(script)],
        input=commands,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PYTHON_COLORS": "0"},
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def stops(output: str) -> list[tuple[str, str]]:
    """Where pdb stopped: the function and the line's text."""
    pattern = r"> .*script\.py\((\d+)\)(\w+)\(\).*\n-> (.*)"
    return [(function, text.strip()) for _, function, text in re.findall(pattern, output)]


KERNEL = """
    @jit
    def kernel(x_ptr, out_ptr, B: tl.constexpr):
        pid = tl.program_id(0)
        x = tl.load(x_ptr + pid * B + tl.arange(0, B))
        {stop}
        y = x * 2
        tl.store(out_ptr + pid * B + tl.arange(0, B), y)

    x = np.arange(8, dtype=np.float32)
    out = np.zeros_like(x)
    launch(kernel, (2,), x_ptr=x, out_ptr=out, B=4)
    print(out.tolist())
"""

RESULT = "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]"


@pytest.mark.parametrize("stop", ["breakpoint()", "pdb.set_trace()", "import pdb; pdb.set_trace()"])
def test_breakpoint_stops_in_the_users_frame(tmp_path: pathlib.Path, stop: str) -> None:
    output = debugged(tmp_path, KERNEL.format(stop=stop), "p x\np pid, B\np x.sum()\nc\np x\nc\n")
    first, second = stops(output)
    # Since Python 3.13 the stop is at the line itself, before at the next one.
    assert first[0] == second[0] == "kernel"
    assert first[1] in (stop, "y = x * 2")
    assert "(Pdb) tile<4xfp32>([0. 1. 2. 3.])" in output
    assert "(int32(0), 4)" in output
    assert "fp32(6.0)" in output
    assert "(Pdb) tile<4xfp32>([4. 5. 6. 7.])" in output
    assert output.rstrip().endswith(RESULT)


def test_stepping_goes_line_by_line(tmp_path: pathlib.Path) -> None:
    body = """
        @jit
        def twice(v):
            w = v + v
            return w

        @jit
        def kernel(out_ptr, n):
            breakpoint()
            total = 0
            for i in range(2):
                if i == 1 and n > 1:
                    total += i
            y = twice(
                total
            )
            tl.store(out_ptr, y)

        out = np.zeros(1, np.int32)
        launch(kernel, (1,), out_ptr=out, n=2)
        print(out.tolist())
    """
    output = debugged(tmp_path, body, "b kernel\n" + "n\n" * 12 + "c\n")
    lines = [text for _, text in stops(output)]
    if lines[0] == "breakpoint()":
        del lines[0]
    assert lines[:8] == [
        "total = 0",
        "for i in range(2):",
        "if i == 1 and n > 1:",
        "for i in range(2):",
        "if i == 1 and n > 1:",
        "total += i",
        "for i in range(2):",
        "y = twice(",
    ]
    assert "tl.store(out_ptr, y)" in lines
    assert output.rstrip().endswith("[2]")


def test_conditional_helpers(tmp_path: pathlib.Path) -> None:
    body = """
        def breakpoint_if(condition):
            if condition:
                pdb.set_trace()

        @jit
        def kernel(out_ptr):
            pid_0, pid_1 = tl.program_id(0), tl.program_id(1)
            breakpoint_if(pid_0[0] == 1 and int(pid_1) == 2)
            tl.store(out_ptr + pid_0 * 3 + pid_1, pid_0 + pid_1)

        out = np.zeros(6, np.int32)
        launch(kernel, (2, 3), out_ptr=out)
        print(out.tolist())
    """
    output = debugged(tmp_path, body, "up\np f'{pid_0} {pid_1}'\np pid_0\nc\n")
    assert "'1 2'" in output
    assert "int32(1)" in output
    assert "breakpoint_if(pid_0[0] == 1 and int(pid_1) == 2)" in output
    assert output.rstrip().endswith("[0, 1, 2, 1, 2, 3]")


def test_a_breakpoint_on_a_line(tmp_path: pathlib.Path) -> None:
    line = 4 + PRELUDE.count("\n") + 2
    output = debugged(
        tmp_path,
        KERNEL.format(stop="pass"),
        f"b {line}, pid == 1\nc\np x\nc\nq\n",
        "-m",
        "pdb",
    )
    assert ("kernel", "y = x * 2") in stops(output) or ("kernel", "pass") in stops(output)
    assert "tile<4xfp32>([4. 5. 6. 7.])" in output
    assert "tile<4xfp32>([0. 1. 2. 3.])" not in output
    assert RESULT in output


def test_quitting_leaves_no_wrapped_error(tmp_path: pathlib.Path) -> None:
    body = KERNEL.format(stop="pdb.set_trace()").replace(
        "launch(kernel, (2,), x_ptr=x, out_ptr=out, B=4)",
        "import bdb\n    try:\n        launch(kernel, (2,), x_ptr=x, out_ptr=out, B=4)\n"
        "    except bdb.BdbQuit:\n        print('quit')",
    )
    output = debugged(tmp_path, body, "q\n")
    assert "quit" in output
    assert output.rstrip().endswith("[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]")


def test_post_mortem_starts_in_the_users_frame(tmp_path: pathlib.Path) -> None:
    body = """
        @jit
        def kernel(out_ptr):
            secret = 41
            raise ValueError("no")

        try:
            launch(kernel, (1,), out_ptr=np.zeros(1, np.int32))
        except Exception as problem:
            pdb.post_mortem(problem.__traceback__)
    """
    output = debugged(tmp_path, body, "p secret\nq\n")
    assert stops(output) == [("kernel", 'raise ValueError("no")')]
    assert "int32(41)" in output


def test_a_kernel_of_exec_and_its_helper_in_another_module(tmp_path: pathlib.Path) -> None:
    (tmp_path / "helpers.py").write_text(
        "import tritium.language as tl\n"
        "from tests.interp.launching import jit\n\n\n"
        "@jit\n"
        "def helper(v):\n"
        "    breakpoint()\n"
        "    return v + 1\n",
        encoding="utf-8",
    )
    body = """
        import linecache
        import helpers

        text = '''
        @jit
        def kernel(out_ptr):
            y = helpers.helper(tl.load(out_ptr))
            tl.store(out_ptr, y)
        '''
        linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
        exec(compile(text, "<cell 1>", "exec"))
        out = np.array([5], np.int32)
        launch(kernel, (1,), out_ptr=out)
        print(out.tolist())
    """
    output = debugged(tmp_path, body, "p v\nup\np out_ptr\nw\nc\n")
    assert "helpers.py" in output
    assert "int32(5)" in output
    assert "<cell 1>(4)kernel()" in output
    assert "y = helpers.helper(tl.load(out_ptr))" in output
    assert output.rstrip().endswith("[6]")


def test_a_suspended_program_can_be_debugged(tmp_path: pathlib.Path) -> None:
    """Program 1 runs on a thread of its own, and reads the same terminal."""
    body = """
        from tritium import interp

        class Suspend(interp.Client):
            def after_load(self, machine, op, addresses, mask, values):
                if machine.program == (0, 0, 0):
                    machine.baton.suspend()

        @jit
        def kernel(x_ptr):
            pid = tl.program_id(0)
            x = tl.load(x_ptr + pid)
            if pid == 1:
                breakpoint()
            tl.store(x_ptr + pid, x + 1)

        x = np.array([10, 20, 30], np.int32)
        launch(kernel, (3,), options={"clients": [Suspend()]}, x_ptr=x)
        print(x.tolist())
    """
    output = debugged(tmp_path, body, "p x\nn\nn\nc\n")
    assert "int32(20)" in output
    assert ("kernel", "tl.store(x_ptr + pid, x + 1)") in stops(output)
    assert output.rstrip().endswith("[11, 21, 31]")
