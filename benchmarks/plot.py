"""The ratios of a run as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .specs import PEER_ORDER

COLOURS = dict(zip(PEER_ORDER, ("#d55e00", "#e8a06c", "#0072b2", "#009e73", "#cc79a7")))


def draw(results: Mapping[str, Any], path: Path) -> None:
    """A panel a thread count: each fp32 case's ratios with their intervals, and its floor."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [case for case in results["cases"] if case["dtype"] == "float32"]
    counts = sorted({case["threads"] for case in shown})
    names = list(dict.fromkeys(case["name"] for case in shown))
    height = 1.6 + 0.32 * len(names)
    figure, panels = pyplot.subplots(
        1, len(counts), figsize=(1.8 + 4.5 * len(counts), height), sharey=True, squeeze=False
    )
    for axes, threads in zip(panels[0], counts):
        fill(axes, [case for case in shown if case["threads"] == threads], names)
        axes.set_title(f"{threads} thread{'s' if threads > 1 else ''}", fontsize=10)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=3, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.6 / height))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def fill(axes: Any, cases: list[Mapping[str, Any]], names: list[str]) -> None:
    """One panel: ``names`` from top to bottom, the cases' ratios on a logarithmic axis."""
    place = {name: y for y, name in enumerate(names)}
    for peer, colour in COLOURS.items():
        points = [(c["ratios"][peer], place[c["name"]]) for c in cases if peer in c["ratios"]]
        if not points:
            continue
        middle = [ratio["median"] for ratio, _ in points]
        spread = [
            [ratio["median"] - ratio["low"] for ratio, _ in points],
            [ratio["high"] - ratio["median"] for ratio, _ in points],
        ]
        heights = [y for _, y in points]
        axes.errorbar(middle, heights, xerr=spread, fmt="o", ms=4, lw=1, color=colour, label=peer)
    least = [(c["floor"]["least"], place[c["name"]]) for c in cases if "floor" in c]
    if least:
        axes.scatter(*zip(*least), marker="|", s=140, color="black", label="floor", zorder=3)
    axes.axvline(1.0, color="grey", lw=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", which="both", lw=0.3)
    axes.set_xlabel("peer's time / Tritium's")
