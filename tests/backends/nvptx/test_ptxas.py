"""Finding and running the assembler, what its words mean, lines of machine code."""

from __future__ import annotations

import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time

import pytest

from tritium.backends.nvptx import ptxas, sass, tools
from tritium.backends.nvptx.ptxas import AssemblerError, Usage

PTX = """\
.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 a, .param .u64 b)
.reqntid 128, 1, 1
{
.reg .b64 %rd<4>;
.reg .f32 %f<128>;
.loc 1 10 0
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
BODY
ret;
}
.file 1 "folder/kernel.py"
"""


def many_registers(count: int) -> str:
    """Values that are all needed at once, loaded on line 20 and stored on line 40."""
    loads = [f"ld.volatile.global.f32 %f{each}, [%rd1+{4 * each}];" for each in range(count)]
    stores = [
        f"st.volatile.global.f32 [%rd2+{4 * each}], %f{each};" for each in reversed(range(count))
    ]
    body = [".loc 1 20 0", *loads, ".loc 1 30 0", "bar.sync 0;", ".loc 1 40 0", *stores]
    return PTX.replace("BODY", "\n".join(body))


needs_ptxas = pytest.mark.skipif(tools.find("ptxas") is None, reason="there is no ptxas")


# ---- finding it ----------------------------------------------------------------------------------


def program(path: pathlib.Path, text: str = "#!/bin/sh\n") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.skipif(os.name != "posix", reason="programs are scripts here")
def test_places_in_order(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_HOME", "CUDA_PATH", "PATH"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site[1]"), str(tmp_path / "other")])
    usual = tools.find("ptxas")
    assert usual in (None, "/usr/local/cuda/bin/ptxas")
    wheels = [
        program(tmp_path / site / "nvidia" / package / "bin" / "ptxas")
        for site, package in (("other", "cuda_nvcc"), ("site[1]", "cu13"))
    ]
    assert tools.find("ptxas") in (usual, wheels[1])
    for name, below in (("CUDA_PATH", "bin"), ("CUDA_HOME", "bin"), ("PATH", ".")):
        path = program(tmp_path / name / below / "ptxas")
        found = tools.find("ptxas")
        assert found is not None
        assert os.path.samefile(found, path)
    assert tools.find("nvdisasm") in (None, "/usr/local/cuda/bin/nvdisasm")
    named = program(tmp_path / "mine" / "assembler")
    monkeypatch.setenv("TRITON_PTXAS_PATH", named)
    assert tools.find("ptxas") == named
    # What is named counts alone.
    monkeypatch.setenv("TRITIUM_PTXAS_PATH", str(tmp_path / "absent"))
    assert tools.find("ptxas") is None


@pytest.mark.skipif(os.name != "posix", reason="programs are scripts here")
def test_what_an_assembler_says_of_itself(tmp_path: pathlib.Path) -> None:
    said = (
        "#!/bin/sh\ncase $1 in\n"
        "--version) echo 'Cuda compilation tools, release 12.8, V12.8.93';;\n"
        "*) echo \"Allowed values: 'compute_90','lto_90','sm_90','sm_90a','sm_100f'.\";;\nesac\n"
    )
    found = tools.describe(program(tmp_path / "ptxas", said))
    assert (found.release, found.ptx_version) == ("12.8.93", 87)
    assert found.arches == {"sm_90", "sm_90a", "sm_100f"}
    assert found.takes("sm_90a", 87)
    assert not found.takes("sm_90a", 88)
    assert not found.takes("sm_100a", 80)
    newest = said.replace("12.8, V12.8.93", "19.4, V19.4.1")
    assert tools.describe(program(tmp_path / "newer", newest)).ptx_version >= 90
    with pytest.raises(ValueError, match="doesn't say its version"):
        tools.describe(program(tmp_path / "other", "#!/bin/sh\necho hello\n"))


@needs_ptxas
def test_the_assembler_of_this_machine() -> None:
    path = tools.find("ptxas")
    assert path is not None
    found = tools.describe(path)
    assert found.ptx_version >= 78
    assert "sm_80" in found.arches


# ---- its words -----------------------------------------------------------------------------------


def test_usage_is_read() -> None:
    log = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'kernel' for 'sm_90a'
ptxas info    : Function properties for kernel
    296 bytes stack frame, 288 bytes spill stores, 280 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 296 bytes cumulative stack size, 512 bytes smem
"""
    assert ptxas.usage(log) == Usage(24, 296, 288, 280, 512)
    assert ptxas.usage("") == Usage()


@pytest.mark.parametrize(
    ("log", "status", "message", "place"),
    [
        (
            "ptxas k.ptx, line 12; error   : Unexpected instruction types specified for 'add'\n",
            255,
            "Unexpected instruction types specified for 'add': BODY",
            ("folder/kernel.py", 10),
        ),
        ("ptxas k.ptx, line 3; fatal   : Parsing error", 255, "Parsing error: .address_size", None),
        ("ptxas fatal   : Unresolved extern function 'f'", 255, "Unresolved extern function", None),
        ("", -11, "ptxas ended by signal 11", None),
        ("", 3, "ptxas ended with status 3", None),
    ],
)
def test_refusals_name_the_line_of_python(
    log: str, status: int, message: str, place: tuple[str, int] | None
) -> None:
    found = ptxas.refusal(log, PTX, status)
    assert isinstance(found, AssemblerError)
    assert message in str(found)
    assert found.place == place
    assert found.log == log


def test_the_place_is_that_of_the_last_location() -> None:
    text = '.loc 2 7 1\nadd;\n.loc 1 9 1\nmul;\n.loc 1 0 0\nbar;\n.file 1 "a.py"\n.file 2 "b.py"\n'
    places = [ptxas.python_place(text, number) for number in (1, 2, 3, 4, 6)]
    assert places == [("b.py", 7), ("b.py", 7), ("a.py", 9), ("a.py", 9), None]
    assert ptxas.python_place(".loc 3 7 1\nadd;\n", 2) is None


# ---- running it ----------------------------------------------------------------------------------


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_code_and_its_registers(arch: str) -> None:
    path = tools.find("ptxas")
    assert path is not None
    small = ptxas.assemble(path, many_registers(8), arch)
    large = ptxas.assemble(path, many_registers(100), arch)
    assert small.cubin[:4] == b"\x7fELF"
    assert small.usage.registers < 64 < 100 <= large.usage.registers
    assert small.usage.spill_stores == large.usage.spill_stores == 0
    assert sass.spill_place(large.cubin) is None


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_line_at_which_registers_are_put_in_memory(arch: str) -> None:
    path = tools.find("ptxas")
    assert path is not None
    text = many_registers(100).replace(".reqntid 128, 1, 1", ".reqntid 128, 1, 1\n.maxnreg 32")
    made = ptxas.assemble(path, text, arch)
    assert made.usage.spill_stores >= 4 * (100 - 32)
    assert made.usage.registers <= 32
    # Volatile loads come in order: each is put away when the registers are full.
    assert sass.spill_place(made.cubin) == ("folder/kernel.py", 20)


@needs_ptxas
def test_options_and_refusals() -> None:
    path = tools.find("ptxas")
    assert path is not None
    limited = ptxas.assemble(path, many_registers(100), "sm_80", ["--maxrregcount=40"])
    assert limited.usage.registers <= 40 or limited.usage.spill_stores == 0
    with pytest.raises(AssemblerError, match=r"frobnicate") as caught:
        ptxas.assemble(path, PTX.replace("BODY", "frobnicate.f32 %f1, %f2;"), "sm_80")
    assert caught.value.place == ("folder/kernel.py", 10)
    with pytest.raises(AssemblerError):
        ptxas.assemble(path, PTX.replace("BODY", ""), "sm_80", ["--no-such-option"])


COPYING = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in -o) shift; out=$1;; *) source=$1;; esac
  shift
done
sleep 0.05
cat "$source" > "$out.first"
cat "$source" "$out.first" > "$out"
"""
"""An assembler that reads its source twice, as ptxas does, and gives it back."""


@pytest.mark.skipif(os.name != "posix", reason="programs are scripts here")
@pytest.mark.parametrize("length", [1, 1 << 20])
def test_ptx_of_any_length_can_be_read_twice(tmp_path: pathlib.Path, length: int) -> None:
    path, text = program(tmp_path / "ptxas", COPYING), "\u00e4" * length
    with ptxas.Assembling(path, "sm_80") as started:
        time.sleep(0.1)
        assert started.finish(text).cubin.decode() == 2 * text
    assert ptxas.assemble(path, text, "sm_80").cubin.decode() == 2 * text


@pytest.mark.skipif(os.name != "posix", reason="programs are scripts here")
def test_something_is_done_while_it_works(tmp_path: pathlib.Path) -> None:
    path = program(tmp_path / "ptxas", COPYING.replace("sleep 0.05", "") + "sleep 0.2\n")
    with ptxas.Assembling(path, "sm_80") as started:
        running: list[bool] = []
        made = started.finish(PTX, lambda: running.append(started._process.poll() is None))
    assert made.cubin.decode() == 2 * PTX
    assert running == [True]


@pytest.mark.skipif(os.name != "posix", reason="programs are scripts here")
@pytest.mark.parametrize("users", ["", "glibc.malloc.hugetlb=0:glibc.malloc.check=3"])
def test_its_memory_is_what_the_user_says_else_large_pages(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, users: str
) -> None:
    script = COPYING.replace('cat "$source" "$out.first" >', 'echo "$GLIBC_TUNABLES" >')
    monkeypatch.setenv("GLIBC_TUNABLES", users)
    said = ptxas.assemble(program(tmp_path / "ptxas", script), PTX, "sm_80").cubin.decode()
    assert "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=" in said
    # Of what is said twice the last counts.
    assert said.strip().endswith(users or "glibc.malloc.trim_threshold=1073741824")
    monkeypatch.delenv("GLIBC_TUNABLES")
    again = ptxas.assemble(program(tmp_path / "ptxas", script), PTX, "sm_80").cubin.decode()
    assert again.startswith("glibc.malloc.hugetlb=1:")


@pytest.mark.skipif(os.name != "posix", reason="programs are scripts here")
def test_where_no_file_can_be_its_standard_input(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptxas, "_INPUT", str(tmp_path / "absent"))
    path = program(tmp_path / "ptxas", COPYING.replace('cat "$source" ', "cat "))
    for text in (PTX, "x" * (3 << 20)):
        assert ptxas.assemble(path, text, "sm_80").cubin.decode() == text


@pytest.mark.skipif(os.name != "posix", reason="programs are scripts here")
@pytest.mark.parametrize("waits", ["", "sleep 0.1\n"])
def test_an_assembler_that_ends_without_reading(tmp_path: pathlib.Path, waits: str) -> None:
    path = program(tmp_path / "ptxas", f"#!/bin/sh\n{waits}echo 'ptxas fatal   : no'\nexit 3\n")
    with pytest.raises(AssemblerError, match=r"^no$"):
        ptxas.assemble(path, PTX, "sm_80")
    stops = program(tmp_path / "stops", f"#!/bin/sh\n{waits}head -c 1 $6 > /dev/null\nexit 3\n")
    with pytest.raises(AssemblerError, match="ended with status 3"):
        ptxas.assemble(stops, "x" * (1 << 20), "sm_80")


# ---- what goes wrong -----------------------------------------------------------------------------


READING = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in -o) shift; out=$1;; *) source=$1;; esac
  shift
done
exec 3< "$source"
"""
"""The first lines of an assembler that has opened its source and hasn't read it."""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


def is_running(number: int) -> bool:
    try:
        status = pathlib.Path(f"/proc/{number}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def python(code: str, *words: str) -> subprocess.Popen[str]:
    head = "import os, sys, time\nfrom tritium.backends.nvptx import ptxas\n"
    command = [sys.executable, "-c", head + code, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@on_linux
@pytest.mark.parametrize("before", ["", "sleep 1\n"])
def test_it_ends_when_the_process_is_killed(tmp_path: pathlib.Path, before: str) -> None:
    """Before it has opened its source, and after."""
    path = program(tmp_path / "ptxas", COPYING.replace("sleep 0.05\n", before))
    code = (
        "started = ptxas.Assembling(sys.argv[1], 'sm_80')\n"
        "print(started._process.pid, started._folder.name, flush=True)\ntime.sleep(60)\n"
    )
    with python(code, path) as parent:
        assert parent.stdout is not None
        number, folder = parent.stdout.readline().split()
        time.sleep(0.3)
        assert is_running(int(number))
        parent.kill()
    end = time.monotonic() + 10
    try:
        while is_running(int(number)):
            assert time.monotonic() < end, "it waits for ever"
            time.sleep(0.02)
    finally:
        if is_running(int(number)):
            os.kill(int(number), signal.SIGKILL)
        for each in pathlib.Path(folder).iterdir():
            each.unlink()
        os.rmdir(folder)


@on_linux
def test_a_fork_does_not_keep_it_waiting(tmp_path: pathlib.Path) -> None:
    path = program(tmp_path / "ptxas", READING + 'cat <&3 > "$out"\n')
    code = (
        "ptxas._SECONDS = 5.0\n"
        "with ptxas.Assembling(sys.argv[1], 'sm_80') as started:\n"
        "    time.sleep(0.2)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n        time.sleep(60)\n"
        "    try:\n        print(started.finish('text').cubin.decode())\n"
        "    finally:\n        os.kill(child, 9)\n"
    )
    with python(code, path) as parent:
        assert parent.communicate() == ("text\n", None)


@pytest.mark.skipif(os.name != "posix", reason="programs are scripts here")
@pytest.mark.parametrize("script", ["#!/bin/sh\n", READING, READING + "head -c 9 <&3\n"])
@pytest.mark.parametrize("length", [1, 300_000, 3 << 20])
def test_an_assembler_that_hangs_is_waited_for_no_longer_than_is_said(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, script: str, length: int
) -> None:
    monkeypatch.setattr(ptxas, "_SECONDS", 0.2)
    path = program(tmp_path / "ptxas", script + "exec sleep 20\n")
    before = time.monotonic()
    with ptxas.Assembling(path, "sm_80") as started:
        time.sleep(0.1)
        with pytest.raises(AssemblerError, match="had not ended after"):
            started.finish("x" * length)
    assert time.monotonic() - before < 15


@pytest.mark.skipif(os.name != "posix", reason="programs are scripts here")
def test_an_assembler_may_say_much_before_it_reads(tmp_path: pathlib.Path) -> None:
    says = 'head -c 300000 /dev/zero | tr "\\0" x\ncat <&3 > "$out"\n'
    text = "y" * (3 << 20)
    with ptxas.Assembling(program(tmp_path / "ptxas", READING + says), "sm_80") as started:
        time.sleep(0.1)
        made = started.finish(text)
    assert made.cubin.decode() == text
    assert made.log == "x" * 300_000


@pytest.mark.skipif(os.name != "posix", reason="the words are those of the system")
def test_an_assembler_that_can_not_be_started(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssemblerError, match=r"could not be run: .*nowhere"):
        ptxas.assemble("/nowhere/ptxas", PTX, "sm_80")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(AssemblerError, match=r"could not be run: .*absent"):
        ptxas.assemble(sys.executable, PTX, "sm_80")


@on_linux
def test_no_space_is_left(tmp_path: pathlib.Path) -> None:
    path = program(tmp_path / "ptxas", READING + 'cat <&3 > "$out"\n')
    code = (
        "import resource\n"
        "with ptxas.Assembling(sys.argv[1], 'sm_80') as started:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "    try:\n        started.finish('x' * 5000)\n"
        "    except ptxas.AssemblerError as problem:\n        print(problem)\n"
    )
    with python(code, path) as process:
        said, _ = process.communicate()
    assert said.startswith("ptxas could not be run: ")
    assert "File too large" in said


# ---- machine code --------------------------------------------------------------------------------


@needs_ptxas
@pytest.mark.skipif(tools.find("nvdisasm") is None, reason="there is no nvdisasm")
def test_machine_code_as_text_agrees_with_the_lines() -> None:
    path = tools.find("ptxas")
    assert path is not None
    text = many_registers(100).replace(".reqntid 128, 1, 1", ".reqntid 128, 1, 1\n.maxnreg 32")
    made = ptxas.assemble(path, text, "sm_90a")
    shown = sass.disassemble(made.cubin)
    assert ".text.kernel" in shown
    # What is counted as a store to local memory is what NVIDIA's own tool calls STL.
    code = next(d for name, d in sass._sections(made.cubin) if name.startswith(".text."))
    counted = sum(
        int.from_bytes(code[at : at + 8], "little") & 0xFFF == 0x387
        for at in range(0, len(code), 16)
    )
    assert counted == shown.count(" STL") > 0


def test_what_is_no_machine_code_has_no_lines() -> None:
    for image in (b"", b"\x7fELF", b"\0" * 64, b"\x7fELF" + bytes(200)):
        assert sass.spill_place(image) is None


@pytest.mark.parametrize(
    ("number", "coded"),
    [(0, b"\x00"), (63, b"\x3f"), (-64, b"\x40"), (64, b"\xc0\x00"), (-129, b"\xff\x7e")],
)
def test_signed_numbers_of_dwarf(number: int, coded: bytes) -> None:
    assert sass._Reader(coded).signed() == number
