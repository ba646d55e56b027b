"""The command ``tritium`` and its verbs; each is loaded when it is used."""

from __future__ import annotations

import importlib

import click

import tritium

_VERBS = {
    "cache": "cache:cache",
    "demo": "demo:demo",
    "doctor": "doctor:doctor",
    "explain": "explain:explain",
    "run": "run:run",
}


class _Lazy(click.Group):
    """A group whose commands stand in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = _VERBS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tritium.__version__, prog_name="tritium")
def main() -> None:
    """Triton kernels on CPUs and NVIDIA GPUs: run them, look at them, keep their code."""
