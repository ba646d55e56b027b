"""Compare every conversion between element types with the exact result, on the interpreter and CPU.

    python scripts/cast_table.py            # minutes
    python scripts/cast_table.py --write    # keep what was found in benchmarks/casts.json

From 8- and 16-bit types every value is converted; from wider ones the values where a rule turns,
the ties and neighbours of every narrower format, and random ones. The exact results are the tests'
own: Python's integers and fractions, one rounding. The interpreter's rule is compared with them,
and what the CPU computes, a scalar and a vector at a time, with the rule.
`scripts/generate_docs.py` makes a table of what is kept.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.backends.jit import Loops  # noqa: E402
from tests.backends.test_vector_casts import BODIES, equal, samples  # noqa: E402
from tests.ops.oracles import converted, values  # noqa: E402
from tests.ops.test_generated import same_number  # noqa: E402

from tritium.backends import llvm  # noqa: E402
from tritium.ir.dtypes import VALUES, DType  # noqa: E402
from tritium.ir.types import shaped  # noqa: E402
from tritium.ops import codecs  # noqa: E402
from tritium.ops.cast import Convert, is_narrowing  # noqa: E402
from tritium.ops.spec import Case, Sample  # noqa: E402

KEPT = ROOT / "benchmarks" / "casts.json"
LANES = (1, 16)
WIDER = 20_000
"""Values of a wider type at the most: the exact results take a while."""


def pairs() -> Iterator[tuple[DType, DType, codecs.Rounding]]:
    """Every conversion there is, in each of its roundings."""
    for source in VALUES:
        for target in VALUES:
            if codecs.is_convertible(source, target):
                for rounding in codecs.ROUNDINGS[: 1 + is_narrowing(source, target)]:
                    yield source, target, rounding


def operands(source: DType) -> np.ndarray[Any, Any]:
    """Every value of a type of at most 16 bits, a sample of a wider one."""
    found = samples(source)
    if source.bits <= 16:
        return found
    # An odd step meets values of every kind.
    step = max(1, len(found) // WIDER) | 1
    some = found[::step]
    return np.ascontiguousarray(some[: len(some) // max(LANES) * max(LANES)])


def wrong(
    source: DType, target: DType, rounding: codecs.Rounding, loops: Sequence[Loops]
) -> tuple[int, int, int]:
    """How many values were tried, and how many the interpreter and the CPU got wrong."""
    x = operands(source)
    case = Case(
        Convert,
        "",
        {"x": Sample(shaped(source, x.shape), x)},
        {"dtype": target, "rounding": rounding},
    )
    have = codecs.convert(x, source, target, rounding)
    want = converted(case, values(x, source))
    interp = sum(not same_number(*each) for each in zip(values(have, target), want, strict=True))
    cpu = 0
    for loop in loops:
        got = np.zeros(len(x), target.numpy)
        loop.call(f"{source}.{target}.{rounding}", x, out=got)
        cpu += int(np.count_nonzero(~equal(got, have, target)))
    return min(len(x), 1 << source.bits), interp, cpu


def main() -> int:
    """Print a line for each conversion; the exit status is 1 if any result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"keep it in {KEPT.name}")
    given = parser.parse_args()
    target = llvm.host_target()
    loops = [Loops(BODIES, lanes, target) for lanes in LANES]
    found = []
    for source, dtype, rounding in pairs():
        tried, interp, cpu = wrong(source, dtype, rounding, loops)
        row = {"from": source.name, "to": dtype.name, "rounding": rounding, "values": tried}
        found.append({**row, "interp": interp, "cpu": cpu})
        told = f"{tried:6} values, wrong: interpreter {interp}, CPU {cpu}"
        print(f"{source.name:10} to {dtype.name:10} {rounding} {told}", flush=True)
    total, bad = (sum(f(row) for row in found) for f in (_tried, _bad))
    print(f"{len(found)} conversions, {total} values, {bad} wrong")
    if given.write:
        kept = {"cpu": target.cpu, "date": datetime.date.today().isoformat(), "found": found}
        KEPT.write_text(json.dumps(kept).replace("}, {", "},\n{") + "\n", encoding="utf-8")
    return 1 if bad else 0


def _tried(row: dict[str, Any]) -> int:
    return int(row["values"])


def _bad(row: dict[str, Any]) -> int:
    return int(row["interp"]) + int(row["cpu"])


if __name__ == "__main__":
    sys.exit(main())
