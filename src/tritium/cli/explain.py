"""``tritium explain``: how the kernels that a script launches were compiled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from tritium import compat, knobs
from tritium.diagnostics import TritiumError

from .script import guarded, run_script

if TYPE_CHECKING:
    from tritium.runtime.compiled import CompiledKernel

STAGES = ("nests", "ttir", "optimised", "llir", "asm", "homes", "ptx", "sass")
_ON_GPU = {"nests": "homes", "asm": "ptx"}
"""What a kernel for a GPU has in the place of stages of the CPU's."""


@click.command(
    short_help="How the kernels of a script were compiled.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--device", type=click.Choice(["cpu"]), help="As in `tritium run`.")
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    default="nests",
    show_default=True,
    help="The loops it became, IR before and after the passes, LLVM IR, assembly; on a GPU who "
    "holds what (homes), PTX, machine code.",
)
@click.option("--layout", is_flag=True, help="--stage homes: who holds what, and why.")
@click.option(
    "--target",
    metavar="ARCH",
    help="Show what each kernel becomes for a GPU that needn't be there, as sm_90a.",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def explain(
    device: str | None,
    stage: str,
    layout: bool,
    target: str | None,
    script: str,
    args: tuple[str, ...],
) -> None:
    """Run SCRIPT with ARGS, then print a stage of each kernel that it compiled."""
    if target is not None:
        _check(target)
    compat.install()
    if device == "cpu":
        compat.map_cuda_to_cpu()
    made: list[CompiledKernel] = []

    def note(fn: Any, **told: Any) -> None:
        known = {id(each) for each in made}
        made.extend(each for each in fn.jit_function.kernels.values() if id(each) not in known)

    knobs.runtime.jit_post_compile_hook = note
    status = guarded(lambda: run_script(script, args), mapped=device == "cpu")
    for kernel in made:
        click.echo(f"\n==== {kernel.name}({_signature(kernel)})")
        shown = kernel if target is None else _for_gpu(kernel, target)
        click.echo(_text(shown, "homes" if layout else stage))
    sys.exit(status)


def _check(arch: str) -> None:
    """Raises BadParameter for a name of no GPU."""
    from tritium.backends.nvptx.target import gpu_target

    try:
        gpu_target(arch)
    except ValueError as problem:
        raise click.BadParameter(str(problem), param_hint="--target") from None


def _for_gpu(kernel: CompiledKernel, arch: str) -> CompiledKernel:
    """The same specialisation and options for a GPU of that architecture."""
    from tritium.frontend import TraceOptions, trace
    from tritium.ir import function_text
    from tritium.runtime import targets
    from tritium.runtime.compiled import CompiledKernel

    options = kernel.options
    traced = trace(kernel.src, kernel.specs, TraceOptions(debug=options.debug))
    function = traced.function
    place = targets.OnGpu(kernel.name, "cuda", arch)
    fuse, located = options.enable_fp_fusion, function_text(function, locations=True)
    common = {
        "fuse": place.fuse if fuse is None else bool(fuse),
        "source": kernel.src.src,
        "located": located,
        "times": {},
        "function": function,
    }
    types = [param.type for param in function.params]
    code = place.code(kernel.src, located, types, options, common)
    return CompiledKernel(kernel.src, kernel.name, kernel.specs, options, code, traced.dependencies)


def _text(kernel: Any, stage: str) -> str:
    found = stage if stage in kernel.asm else _ON_GPU.get(stage, "")
    if found not in kernel.asm:
        return f"compiled for {kernel.target.backend}, it has no {stage}: name another --stage"
    try:
        return str(kernel.asm[found]).rstrip()
    except TritiumError as problem:
        return f"{problem.message}: {problem.help}"


def _signature(kernel: Any) -> str:
    return ", ".join(
        f"{name} = {spec.value!r}" if spec.signature == "constexpr" else f"{name}: {spec.signature}"
        for name, spec in kernel.specs.items()
    )
