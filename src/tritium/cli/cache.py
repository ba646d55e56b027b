"""``tritium cache``: what compiled kernels take on disk."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tritium.runtime import cache as store
from tritium.runtime.cache import Item

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


@click.group(short_help="Compiled kernels on disk: size, list, clear, prune, verify.")
def cache() -> None:
    """Compiled kernels on disk: how many, which, are they whole; remove them.

    A kernel has an entry of machine code, and a manifest for each set of launch options, by which
    it is found without being traced. Entries of the host are code that runs beside kernels.
    """


def _files(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb whose trouble with files is one line, not a traceback."""

    @wraps(verb)
    def checked(*args: Any, **keywords: Any) -> None:
        try:
            verb(*args, **keywords)
        except BrokenPipeError:
            # The reader has seen enough: click ends in silence.
            raise
        except OSError as problem:
            raise click.ClickException(str(problem)) from problem

    return checked


@cache.command()
@_files
def size() -> None:
    """Number of entries by kind, the bytes of all, and where they are."""
    click.echo(f"{contents()} in {store.folder()}")


@cache.command("list")
@_files
def list_entries() -> None:
    """One line an entry: name in the cache, kind, size, name of the function."""
    for each in store.entries():
        unknown = "of another version" if each.other_format else "damaged"
        what = unknown if each.facts is None else _function(each)
        click.echo(f"{each.name[:16]}  {each.kind:8}  {_bytes(each.size):>10}  {what}")


@cache.command()
@click.argument("names", nargs=-1)
@_files
def clear(names: tuple[str, ...]) -> None:
    """Remove all entries, or some.

    NAMES are names of kernels, or what names in the cache begin with.
    """
    chosen = None
    if names:
        found = store.entries()
        chosen = [each.name for each in found if each.name.startswith(names)]
        chosen += [each.name for each in found if each.facts and _function(each) in names]
        if not chosen:
            raise click.ClickException(f"no entry is named {' or '.join(names)}")
    click.echo(f"removed {_count(store.clear(chosen), 'entry')} from {store.folder()}")


@cache.command()
@click.argument("most", metavar="SIZE")
@_files
def prune(most: str) -> None:
    """Remove the entries used longest ago until the rest takes at most SIZE: 200000, 50MB, 1GB."""
    given = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMG]?)B?", most.strip().replace("K", "k"))
    if given is None:
        raise click.BadParameter(f"{most} is no size such as 50MB", param_hint="SIZE")
    count, left = store.prune(int(float(given[1]) * _UNITS[given[2]]))
    click.echo(f"removed {_count(count, 'entry')}, {_bytes(left)} left")


@cache.command()
@click.option("--repair", is_flag=True, help="Remove what is damaged.")
@_files
def verify(repair: bool) -> None:
    """Check every entry's checksum; exit status 1 if any is damaged.

    A damaged one does no harm: it is made again when it is needed. Those of another version of
    Tritium are left to it; ``tritium cache prune`` removes what nobody uses.
    """
    found = store.entries()
    damaged = [each for each in found if each.damaged]
    others = sum(each.other_format for each in found)
    whole = _count(len(found) - len(damaged) - others, "entry")
    also = f", {others} of another version" if others else ""
    click.echo(f"{whole} whole, {len(damaged)} damaged{also}")
    for each in damaged:
        click.echo(f"damaged: {each.name} ({each.kind})")
    if repair and damaged:
        click.echo(f"removed {store.clear([each.name for each in damaged])}")
    elif damaged:
        sys.exit(1)


def contents() -> str:
    """What the cache holds, in words. Raises ``OSError`` where it can't be read."""
    counts, total = store.size()
    kernels, manifests, host = (counts[kind] for kind in ("kernel", "manifest", "host"))
    what = f"{_count(kernels, 'kernel')}, {_count(manifests, 'manifest')}, {host} of the host"
    return f"{what}: {_bytes(total)}"


def _function(entry: Item) -> str:
    facts = entry.facts or {}
    return str(facts.get("kernel", facts.get("entry", "")))


def _count(count: int, what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{count} {what if count == 1 else plural}"


def _bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
