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

from . import dot, interpreter, pointwise, rows
from .case import Case, Setup
from .measure import time_rounds
from .specs import OURS, Spec, floor, specs

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
    times = time_rounds([case.ours, *case.peers], pairs)
    return case.result(setup, times, floor(spec, setup.threads) if judge else None)


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


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--peers", required=True, help="torch,numpy,numba,compile")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--triton", type=Path, help="Triton's Python: its interpreter is the peer")
    parser.add_argument("--out", type=Path, required=True, help="gets a line of JSON for each case")
    parser.add_argument("names", nargs="+")
    return parser.parse_args()


def main() -> None:
    options = parse()
    judge = not options.quick
    setup = make_setup(options.threads, frozenset(options.peers.split(",")))
    which = interpreter.specs if options.triton else specs
    known = {spec.name: spec for spec in which(options.quick)}
    with options.out.open("w") as out:
        for name in options.names:
            spec = known[name]
            if options.triton:
                result = interpreter.run(spec, options.triton, setup, options.pairs, judge)
            else:
                result = run_case(spec, setup, options.pairs, judge)
            print(line(result), flush=True)
            out.write(json.dumps(result) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
