"""``tritium cache``: what compiled kernels take on disk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tritium.runtime import cache as store


@click.group(short_help="Compiled kernels on disk: size, list, clear, verify.")
def cache() -> None:
    """Compiled kernels on disk: how many, which, are they whole; remove them."""


def _files(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb whose trouble with files is one line, not a traceback."""

    @wraps(verb)
    def checked(*args: Any, **keywords: Any) -> None:
        try:
            verb(*args, **keywords)
        except OSError as problem:
            raise click.ClickException(str(problem)) from problem

    return checked


@cache.command()
@_files
def size() -> None:
    """Number of kernels, their bytes, and where they are."""
    count, total = store.size()
    click.echo(f"{count} {_kernels(count)}, {_bytes(total)} in {store.folder()}")


@cache.command("list")
@_files
def list_entries() -> None:
    """One line a kernel: name in the cache, size, name of the function."""
    for name, length, facts in store.entries():
        what = "damaged" if facts is None else facts.get("kernel", "").removesuffix(".kernel")
        click.echo(f"{name[:16]}  {_bytes(length):>10}  {what}")


@cache.command()
@click.argument("names", nargs=-1)
@_files
def clear(names: tuple[str, ...]) -> None:
    """Remove all kernels, or those whose names in the cache begin with NAMES."""
    chosen = None
    if names:
        chosen = [name for name, _, _ in store.entries() if name.startswith(names)]
    count = store.clear(chosen)
    click.echo(f"removed {count} {_kernels(count)}")


@cache.command()
@click.option("--repair", is_flag=True, help="Remove what is damaged.")
@_files
def verify(repair: bool) -> None:
    """Check every kernel's checksum; exit status 1 if any is damaged.

    A damaged one does no harm: it is compiled again when it is needed.
    """
    usage = store.survey()
    whole = usage.entries - len(usage.damaged)
    click.echo(f"{whole} {_kernels(whole)} whole, {len(usage.damaged)} damaged")
    for name in usage.damaged:
        click.echo(f"damaged: {name}")
    if repair and usage.damaged:
        click.echo(f"removed {store.clear(usage.damaged)}")
    elif usage.damaged:
        sys.exit(1)


def _kernels(count: int) -> str:
    return "kernel" if count == 1 else "kernels"


def _bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
