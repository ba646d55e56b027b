"""The GPU's run as a page, ``RESULTS_GPU.md``, and as the short table that is printed last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .report import limits, milliseconds, ratio_text, table
from .specs import OURS

LEAST_RATIO = 0.98
LEAST_MEAN = 1.1
LARGE = 100_000_000
LARGE_SHARE, LARGE_RATIO = 0.75, 1.2
YARDSTICK = "copy 2^"
"""What the name of the case begins with whose rate, by torch, is the copy bandwidth."""

METHOD = """\
Each kernel's source is executed twice, with `triton` and `tl` bound to Triton and to Tritium, in
one process, on the same tensors of random data. Each side is run with each of the same few
configurations, its result compared with float64 in every element of an output that held NaN
before; a side is then timed with the configuration that was fastest for it. Before each timed call
256 MB are written, so that the caches hold none of its data; CUDA events stand around the call. In
a round every side runs once, in random order; the host is a millisecond ahead of the device. A
ratio is the peer's time over Tritium's: above 1, Tritium is faster. It is that of the medians of
{rounds} rounds; in brackets its 95 % bootstrap interval, the rounds resampled as pairs. GB/s count
each input read once and the output written once. The share is that of the rate of torch's copy on
the device. torch: `add(out=)`, `softmax`, `layer_norm`, `sum(out=)`, `copy_`.

A case passes if it is at least {ratio} times as fast as Triton, and, where it moves more than
100 MB, at {share:.0%} of the copy's rate or at least {much} times as fast as Triton; the geometric
mean of the ratios has to be {mean}; add in bfloat16, add of an odd length and the transposition of
an odd shape are no part of it.
"""

LAUNCHES = """\
Host time of one launch in trains of launches, in the spelling users write, on 100 elements. The
floor is a loop compiled by LLVM that calls `cuLaunchKernel` with arguments packed before.
"""

FIRST = """\
In fresh processes that have torch's context: from the kernel's definition to its result on small
tensors. The second process has the first one's cache, and must not load llvmlite.
"""


def rate(result: Mapping[str, Any], side: str) -> float | None:
    """GB/s of a side; None where it wasn't timed."""
    found = result["sides"].get(side)
    return result["moved"] / found["median"] / 1e9 if found else None


def copy_rate(results: Sequence[Mapping[str, Any]]) -> float | None:
    """GB/s of torch's copy on the device; None where the case wasn't run."""
    for result in results:
        if result["name"].startswith(YARDSTICK) and "torch" in result["sides"]:
            return rate(result, "torch")
    return None


def verdict(result: Mapping[str, Any], copied: float | None) -> list[str]:
    """What a case misses, in words; empty where it passes or can't be judged."""
    ratio = result["ratios"].get("triton")
    if ratio is None:
        return [f"{OURS} failed"] if OURS not in result["sides"] and result["errors"] else []
    missed = []
    if ratio["median"] < LEAST_RATIO:
        missed.append(f"below {LEAST_RATIO}x Triton")
    ours = rate(result, OURS)
    if copied and ours and result["moved"] > LARGE and ratio["median"] < LARGE_RATIO:
        share = ours / copied
        if share < LARGE_SHARE:
            missed.append(f"at {share:.0%} of the copy")
    return missed


def geometric_mean(results: Sequence[Mapping[str, Any]]) -> float | None:
    """Of the ratios to Triton of the cases that have one, further ones left out."""
    counted = [r for r in results if not r.get("further") and "triton" in r["ratios"]]
    found = [r["ratios"]["triton"]["median"] for r in counted]
    return math.exp(sum(map(math.log, found)) / len(found)) if found else None


def cells(result: Mapping[str, Any], copied: float | None) -> list[str]:
    """Name, rates of the three sides, share, ratios, verdict."""
    rates = [rate(result, side) for side in (OURS, "triton", "torch")]
    share = rates[0] / copied if copied and rates[0] else None
    ratios = [result["ratios"].get(peer) for peer in ("triton", "torch")]
    missed = verdict(result, copied)
    return [
        result["name"],
        *("" if each is None else f"{each:,.0f}" for each in rates),
        "" if share is None else f"{share:.0%}",
        *("" if each is None else ratio_text(each) for each in ratios),
        "; ".join(missed) if missed else "met" if ratios[0] else "-",
    ]


HEAD = ("case", "Tritium GB/s", "Triton", "torch", "of copy", "to Triton", "to torch", "floor")


def summary_lines(results: Mapping[str, Any]) -> list[str]:
    """What was met and missed, a line each."""
    copied = copy_rate(results["cases"])
    missed = [f"{r['name']}: {'; '.join(w)}" for r in results["cases"] if (w := verdict(r, copied))]
    passed = sum("triton" in r["ratios"] and not verdict(r, copied) for r in results["cases"])
    lines = [f"{passed} of {len(results['cases'])} cases pass."]
    if (mean := geometric_mean(results["cases"])) is not None:
        text = "met" if mean >= LEAST_MEAN else "missed"
        lines.append(f"Geometric mean to Triton: {mean:.3f} ({text}: {LEAST_MEAN}).")
    timed = [line for part in ("launch", "first") for line in results[part] if "met" in line]
    if timed:
        late = [line["name"] for line in timed if not line["met"]]
        lines.append(f"{len(timed) - len(late)} of {len(timed)} limits of time are met.")
        missed += late
    if missed:
        lines.append(f"Missed: {'. '.join(missed)}.")
    return lines


def short_table(results: Mapping[str, Any]) -> str:
    """What is printed last: a line a case, aligned, then the summary."""
    copied = copy_rate(results["cases"])
    rows = [list(HEAD), *(cells(result, copied) for result in results["cases"])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        "  ".join(
            cell.ljust(width) if column in (0, len(HEAD) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines + summary_lines(results)) + "\n"


def all_times(results: Sequence[Mapping[str, Any]]) -> str:
    """Medians in milliseconds, and the configuration that each compiled side was timed with."""
    rows = []
    for result in results:
        row = [result["name"]]
        for side in (OURS, "triton", "torch"):
            found = result["sides"].get(side)
            row.append(milliseconds(found["median"]) if found else "")
        rows.append([*row, *(result["configs"].get(side, "") for side in (OURS, "triton"))])
    head = ["case", "Tritium ms", "Triton ms", "torch ms", "Tritium's configuration", "Triton's"]
    return table(head, rows)


def heading(results: Mapping[str, Any]) -> str:
    machine = results["machine"]
    versions = ", ".join(f"{name} {v}" for name, v in machine["versions"].items())
    lines = ["| | |", "|---|---|", f"| command | `{results['command']}` |"]
    for name in ("date", "revision", "device", "driver", "ptxas", "processor", "system"):
        lines.append(f"| {name} | {machine[name]} |")
    return "\n".join([*lines, f"| versions | {versions} |"]) + "\n"


def page(results: Mapping[str, Any]) -> str:
    """The whole page, Markdown."""
    copied = copy_rate(results["cases"])
    method = METHOD.format(
        rounds=results["rounds"], ratio=LEAST_RATIO, share=LARGE_SHARE, much=LARGE_RATIO,
        mean=LEAST_MEAN,
    )  # fmt: skip
    parts = ["# Results on a GPU\n", "\n".join(summary_lines(results)) + "\n", heading(results)]
    parts.append("## Method\n\n" + method)
    if results["cases"]:
        parts.append("## Rates\n")
        parts.append(table(HEAD, [cells(result, copied) for result in results["cases"]]))
        parts.append(all_times(results["cases"]))
    if results["launch"]:
        parts += ["## Launches\n", LAUNCHES, limits(results["launch"])]
    if results["first"]:
        parts += ["## First results\n", FIRST, limits(results["first"])]
    if results["errors"]:
        parts.append("## Failed\n")
        notes = [f"* {note['name']}: {note['reason']}\n" for note in results["errors"]]
        parts.append("".join(notes))
    return "\n".join(parts)
