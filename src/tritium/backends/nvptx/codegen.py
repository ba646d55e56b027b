"""From LLVM IR to PTX, in a process that can't be ended by it.

LLVM's code generator ends the process at an intrinsic that it can't translate for an architecture
(a message on stderr, and abort). So what is known to work is compiled here, and what isn't in
another process: its end is then an error like others.

    python -m tritium.backends.nvptx.codegen sm_90a < kernel.ll > kernel.ptx
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tritium.backends import llvm
from tritium.backends.llvm import LLVMError, Times

from .target import GpuTarget, gpu_target

# Intrinsics that were seen to come out as PTX that ptxas takes, by the lowest compute capability;
# the tests compile the whole table of operations.
_KNOWN: tuple[tuple[tuple[int, int], str], ...] = (
    ((7, 5), r"(abs|[su]max|[su]min|fsh[lr]|ctpop|ctlz|cttz|bitreverse|bswap)\.i(8|16|32|64)"),
    ((7, 5), r"(ceil|floor|trunc|copysign|fabs|fma|sqrt|(minimum|maximum)num)\.f(32|64)"),
    ((7, 5), r"arithmetic\.fence\.f(16|32|64)"),
    ((7, 5), r"assume|lifetime\.(start|end)\..*|(memcpy|memset|memmove)\..*"),
    ((7, 5), r"nvvm\.read\.ptx\.sreg\..*|nvvm\.mulhi\..*|nvvm\.fma\.rn\.(sat\.)?[fd]"),
    ((7, 5), r"nvvm\.(ex2|lg2|sin|cos|rcp|sqrt|rsqrt|tanh|div)\.(approx|full)(\.ftz)?(\.f)?"),
    ((7, 5), r"nvvm\.[fd]2u?(i|ll)\.rz|nvvm\.barrier\.cta\.sync\.aligned\.(all|count)"),
    ((7, 5), r"nvvm\.bar\.warp\.sync|nvvm\.shfl\.sync\.(bfly|up|down|idx)\.(i32|f32)"),
    ((8, 0), r"(maximum|minimum)\.(f(16|32|64)|bf16)|((maximum|minimum)num|fma)\.(f16|bf16)"),
    ((8, 0), r"nvvm\.(f2bf16|ff2f16x2|ff2bf16x2)\.r[nz]|nvvm\.redux\.sync\.[a-z]+"),
    ((8, 9), r"nvvm\.ff\.to\.e[45]m[23]x2\.rn|nvvm\.e[45]m[23]x2\.to\.f16x2\.rn"),
)
_INSTRUCTIONS = (" frem ", " landingpad ", " va_arg ", "fp128", "x86_fp80")
_SECONDS = 600.0


def to_ptx(text: str, target: GpuTarget, times: Times | None = None) -> str:
    """Optimise a module and generate its PTX; adds seconds by phase to ``times``.

    Raises LLVMError where LLVM refuses it, in whichever process.
    """
    if unsure(text, target):
        with llvm.timed(times, "codegen in a process of its own"):
            return _elsewhere(text, target)
    return _here(text, target, times)


def unsure(text: str, target: GpuTarget) -> list[str]:
    """What in a module's text isn't known to be translated for the architecture."""
    names = set(re.findall(r"@llvm\.([\w.]+)", text))
    known = [pattern for capability, pattern in _KNOWN if target.capability >= capability]
    listed = re.compile("|".join(known))
    found = [f"llvm.{name}" for name in sorted(names) if listed.fullmatch(name) is None]
    return found + [word.strip() for word in _INSTRUCTIONS if word in text]


def _here(text: str, target: GpuTarget, times: Times | None = None) -> str:
    module = llvm.optimise(text, target.llvm, times)
    with llvm.timed(times, "codegen"):
        return llvm.assembly(module)


def _elsewhere(text: str, target: GpuTarget) -> str:
    package = os.path.dirname(os.path.abspath(__file__))
    for _ in __name__.split(".")[:-1]:
        package = os.path.dirname(package)
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", __name__, target.arch],
        input=text,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no message"]
        names = ", ".join(unsure(text, target))
        raise LLVMError(f"LLVM has no code for {target.arch} of {names}: {said[0]}", text)
    return done.stdout


def main() -> None:
    """Read LLVM IR for the architecture that is named, write its PTX."""
    sys.stdout.write(_here(sys.stdin.read(), gpu_target(sys.argv[1])))


if __name__ == "__main__":
    main()
