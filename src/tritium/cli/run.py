"""``tritium run``: a script written for Triton, unmodified."""

from __future__ import annotations

import os
import sys

import click

from tritium import compat, knobs

from .script import guarded, run_module, run_script


@click.command(
    short_help="Run a script written for Triton.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--device",
    type=click.Choice(["cpu"]),
    help='cpu: what the script puts on the device "cuda" is on the CPU.',
)
@click.option("--interpret", is_flag=True, help="Run the kernels step by step as Python.")
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module.")
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    device: str | None, interpret: bool, module: bool, script: str, args: tuple[str, ...]
) -> None:
    """Run SCRIPT with ARGS; `import triton` means Tritium in it.

    The exit status is the script's own: 1 after an error, 2 for a wrong use of this command.
    """
    if script.startswith("-"):
        raise click.NoSuchOption(script)
    if not module and not os.path.isfile(script):
        raise click.UsageError(f"there is no file {script}")
    compat.install()
    if device == "cpu":
        compat.map_cuda_to_cpu()
    if interpret:
        knobs.runtime.interpret = True
    runner = run_module if module else run_script
    sys.exit(guarded(lambda: runner(script, args), mapped=device == "cpu"))
