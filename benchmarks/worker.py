"""One process of one thread count: checks and times cases, and writes a line of JSON for each.

The libraries read their thread counts when they are loaded: the caller sets the environment.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

from . import dot, pointwise, rows
from .case import OURS, Case, Setup
from .measure import summary, time_rounds
from .specs import Spec, floor, specs

BUILDERS = {**pointwise.BUILDERS, **rows.BUILDERS, **dot.BUILDERS}


def make_setup(threads: int, peers: frozenset[str]) -> Setup:
    torch = None
    if "torch" in peers and importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
    return Setup(threads, peers, torch)


def run_case(spec: Spec, setup: Setup, pairs: int, judge: bool) -> dict[str, Any]:
    """Raises WrongResult before anything is timed, if a side is wrong."""
    case: Case = BUILDERS[spec.kernel](spec, setup)
    case.check()
    result: dict[str, Any] = {
        "name": spec.name,
        "kernel": spec.kernel,
        "shape": spec.shape,
        "dtype": spec.dtype,
        "threads": setup.threads,
        "arguments": "NumPy arrays" if setup.torch is None else "torch tensors",
        "work": case.work,
        "unit": case.unit,
        **summary(time_rounds([case.ours, *case.peers], pairs), OURS),
    }
    wanted = floor(spec, setup.threads) if judge else None
    found = wanted.ratio(result["ratios"]) if wanted else None
    if wanted and found:
        peer, ratio = found
        result["floor"] = {
            "text": wanted.text,
            "least": wanted.least,
            "peer": peer,
            "ratio": ratio,
            "met": wanted.met(ratio),
        }
    return result


def line(result: dict[str, Any]) -> str:
    """The case in one printed line."""
    sides = result["sides"]
    ours = sides[OURS]["median"]
    peers = "  ".join(f"{name} {r['median']:.2f}x" for name, r in result["ratios"].items())
    verdict = ""
    if "floor" in result:
        verdict = f"  [{result['floor']['text']}: {'met' if result['floor']['met'] else 'MISSED'}]"
    rate = result["work"] / ours / 1e9
    return (
        f"{result['name']:28} {result['threads']}T {ours * 1e3:9.3f} ms "
        f"{rate:7.1f} G{result['unit']}/s  {peers}{verdict}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    setup = make_setup(options.threads, frozenset(options.peers.split(",")))
    known = {spec.name: spec for spec in specs(options.quick)}
    with options.out.open("w") as out:
        for name in options.names:
            result = run_case(known[name], setup, options.pairs, judge=not options.quick)
            print(line(result), flush=True)
            out.write(json.dumps(result) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
