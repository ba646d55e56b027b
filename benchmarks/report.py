"""The run as a page: ``RESULTS.md``, from what ``results.json`` holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .specs import OURS, PEER_ORDER

METHOD = """\
A ratio is the peer's time over Tritium's: above 1, Tritium is faster. It is that of the medians of
{pairs} rounds; in brackets its 95 % bootstrap interval, the rounds resampled as pairs. In a round
every side runs once, in random order, on the same arrays and into the same output, which is
allocated before and aligned to 64 bytes; data is random. Before a side is timed, the process has
been idle until no thread of any pool computed any longer, and the side has run once untimed: its
own pool is awake, the others are asleep. One process a thread count; torch, numba, OpenBLAS and
Tritium are set to it. Every side's result is compared with float64 before anything is timed.

torch is eager, with `out=`: `add`; `exp`, `add`, `mul` in place of the output; `_softmax`;
`native_layer_norm`; `vector_norm` and three pointwise steps, and `rms_norm` itself, which has no
`out=`; `_log_softmax` and `nll_loss_forward`; `mm`. `torch.compile` is printed where there is a C++
compiler. NumPy runs on one thread but for its matrix product. A floor is the least ratio that
counts; 0.97 passes for 1, and odd sizes must reach 0.9 of a floor. bfloat16 has no floors.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are right-aligned."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def milliseconds(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def ratio_text(ratio: Mapping[str, float]) -> str:
    """Ratio with its interval: three digits, thousands separated."""
    median, low, high = (
        f"{v:,.0f}" if v >= 100 else f"{v:.2f}"
        for v in (ratio["median"], ratio["low"], ratio["high"])
    )
    return f"{median} [{low}, {high}]"


def verdict(result: Mapping[str, Any]) -> str:
    found = result.get("floor")
    if found is None:
        return "-"
    return f"{'met' if found['met'] else '**missed**'}: {found['text']}"


def peers_of(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """All peers that were timed, in the order of ``PEER_ORDER`` and then of appearance."""
    found = list(dict.fromkeys(name for result in results for name in result["ratios"]))
    known = [name for name in PEER_ORDER if name in found]
    return known + [name for name in found if name not in known]


def ratios(results: Sequence[Mapping[str, Any]]) -> str:
    peers = peers_of(results)
    rows = []
    for result in results:
        ours = result["sides"][OURS]
        rate = result["work"] / ours["median"] / 1e9
        cells = [ratio_text(r) if (r := result["ratios"].get(p)) else "" for p in peers]
        rows.append(
            [
                result["name"],
                f"{milliseconds(ours['median'])}",
                f"{rate:.1f} G{result['unit']}/s",
                *cells,
                verdict(result),
            ]
        )
    return table(["case", "ms", "rate", *peers, "floor"], rows)


def all_times(results: Sequence[Mapping[str, Any]]) -> str:
    """Medians and minima of every side in milliseconds, and the ratio of the minima."""
    sides = [OURS, *peers_of(results)]
    rows = []
    for result in results:
        cells = []
        for side in sides:
            found = result["sides"].get(side)
            text = ""
            if found:
                text = f"{milliseconds(found['median'])} / {milliseconds(found['minimum'])}"
            if found and side != OURS:
                text += f" ({result['ratios'][side]['minima']:.2f}x)"
            cells.append(text)
        rows.append([result["name"], *cells])
    return table(["case", *sides], rows)


def limits(lines: Sequence[Mapping[str, Any]]) -> str:
    """Times that have an upper limit instead of a peer."""
    rows = []
    for line in lines:
        most, text = line.get("most"), "-"
        if most is not None:
            text = f"{'met' if line['met'] else '**missed**'}: {time_text(most)}"
        rows.append([line["name"], time_text(line["median"]), time_text(line["minimum"]), text])
    return table(["", "median", "minimum", "limit"], rows)


def time_text(seconds: float) -> str:
    """Three digits, in microseconds below a millisecond and in milliseconds from there on."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    return f"{milliseconds(seconds)} ms"


def summary_line(results: Mapping[str, Any]) -> str:
    """How many floors and limits were met, and the names of those that weren't."""
    judged = [
        (f"{case['name']}, {case['threads']} thread(s)", case["floor"]["met"])
        for section in ("cases", "interpreter")
        for case in results[section]
        if "floor" in case
    ]
    judged += [
        (line["name"], line["met"])
        for section in ("compile", "launch")
        for line in results[section]
        if "met" in line
    ]
    missed = [name for name, met in judged if not met]
    text = f"{len(judged) - len(missed)} of {len(judged)} floors and limits are met."
    return text + (f" Missed: {'; '.join(missed)}." if missed else "")


def heading(results: Mapping[str, Any]) -> str:
    machine = results["machine"]
    versions = ", ".join(f"{name} {v}" for name, v in machine["versions"].items())
    rows = [
        ("command", f"`{results['command']}`"),
        ("date", machine["date"]),
        ("revision", machine["revision"]),
        ("processor", f"{machine['processor']}, {machine['processors']} usable"),
        ("caches", machine["caches"]),
        ("system", machine["system"]),
        ("versions", versions),
        ("NumPy's BLAS", machine["NumPy's BLAS"]),
        ("load", f"{machine['load before']:.2f} before, {machine['load after']:.2f} after"),
    ]
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join(lines) + "\n"


def page(results: Mapping[str, Any]) -> str:
    """The whole page, Markdown."""
    parts = ["# Results\n", summary_line(results) + "\n", heading(results)]
    parts.append("## Method\n\n" + METHOD.format(pairs=results["pairs"]))
    if results["plot"]:
        parts.append(f"![Ratios to the peers]({results['plot']})\n")
    for threads in sorted({case["threads"] for case in results["cases"]}):
        cases = [case for case in results["cases"] if case["threads"] == threads]
        parts.append(f"## {threads} thread{'s' if threads > 1 else ''}\n")
        parts.append(f"Arguments of the kernels: {cases[0]['arguments']}.\n")
        parts.append(ratios(cases))
        parts.append("Medians / minima in ms, and the ratio of the minima:\n")
        parts.append(all_times(cases))
    if results["interpreter"]:
        parts.append("## Triton's interpreter\n")
        parts.append(
            f"Triton {results['triton']} with TRITON_INTERPRET=1, in an environment and a process "
            "of its own, on arrays of the same sizes; Tritium on one thread.\n"
        )
        parts.append(ratios(results["interpreter"]))
    if results["compile"]:
        parts.append("## Compilation\n")
        parts.append(
            "In fresh processes that have imported NumPy and Tritium, but not llvmlite: from the "
            "kernel's definition to its first result, on small arrays. The limit of a second "
            "process is `import llvmlite.binding` of this run plus 15 ms.\n"
        )
        parts.append(limits(results["compile"]))
    if results["launch"]:
        parts.append("## Launches\n")
        parts.append(limits(results["launch"]))
    notes = results["skipped"] + results["errors"]
    if notes:
        parts.append("## Left out\n")
        parts.append("".join(f"* {note['name']}: {note['reason']}\n" for note in notes))
    return "\n".join(parts)
