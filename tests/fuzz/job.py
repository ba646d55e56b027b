"""A long run over random programs, mutated or generated, in processes that may die.

    python -m tests.fuzz.job mutated --programs 20000 --jobs 2 --log mutated.jsonl
    python -m tests.fuzz.job generated --programs 20000 --jobs 2
    python -m tests.fuzz.job mutated --seed 17

It prints how many programs had which outcome, by code and by mutation, and the faults. A run goes
on from the log that it finds. A program that ends its process, or that says nothing for ``SILENCE``
seconds, is a fault with its seed. ``--seed`` shows one program and what becomes of it. The status
is 1 where there are faults.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TextIO

SILENCE = 150.0
"""Seconds after which a program is given up."""
MEMORY = 6 << 30
"""Bytes of addresses that a process may have."""
SHARE = 250
"""Programs that one process runs."""
SHOWN = 40
"""Faults whose text is printed."""

if sys.platform == "linux":
    import resource

Result = dict[str, Any]


def run_mutated(seed: int) -> Result:
    from tests.fuzz.outcome import outcome_of

    outcome, mutant = outcome_of(seed)
    made: Result = {"kind": outcome.kind, "code": outcome.code, "mutations": mutant.kinds}
    if outcome.is_fault or outcome.kind.startswith("uncoded"):
        made |= {"detail": outcome.detail, "source": mutant.source}
    return made


def run_generated(seed: int) -> Result:
    from tests.fuzz.generate import generate
    from tests.fuzz.test_fuzz import check

    program = generate(seed)
    try:
        return {"kind": "agrees", "counted": sorted(check(program))}
    except Exception as problem:  # noqa: BLE001 - any is a fault
        told = "".join(traceback.format_exception(problem)[-8:])
        kind = f"fault: {type(problem).__name__}"
        return {"kind": kind, "code": str(problem)[:60], "detail": told, "source": program.source}


KINDS = {"mutated": "tests.fuzz.job:run_mutated", "generated": "tests.fuzz.job:run_generated"}


def runner(kind: str) -> Callable[[int], Result]:
    """What runs one program of a kind, which may also be any ``module:function``."""
    module, _, function = KINDS.get(kind, kind).partition(":")
    made: Callable[[int], Result] = getattr(importlib.import_module(module), function)
    return made


# ---- one process --------------------------------------------------------------------------------


def child(kind: str, first: int, last: int) -> None:
    """Run the programs of the seeds, and write one line for each."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["TRITIUM_VERIFY"] = "1"
    warnings.simplefilter("ignore")
    # What kernels print goes nowhere.
    lines = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    run = runner(kind)
    for seed in range(first, last):
        print(json.dumps({"seed": seed, **run(seed)}), file=lines, flush=True)


def results(kind: str, first: int, last: int) -> Iterator[Result]:
    """The results of seeds in order, through as many processes as it takes."""
    while first < last:
        command = [sys.executable, "-m", "tests.fuzz.job", kind, "--child", str(first), str(last)]
        with (
            tempfile.TemporaryFile() as said,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said) as process,
        ):
            while first < last:
                line = _answer(process)
                yield {"seed": first, **_lost(process, said)} if line is None else json.loads(line)
                first += 1
                if line is None:
                    break


def _answer(process: subprocess.Popen[bytes]) -> bytes | None:
    """The next line of a process; None where there is none in time."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], SILENCE)
    line = process.stdout.readline() if ready else b""
    return line if line.endswith(b"\n") else None


def _lost(process: subprocess.Popen[bytes], said: IO[bytes]) -> Result:
    """What is known of a process that doesn't answer, which is ended."""
    try:
        what = f"ends with {process.wait(1.0)}"
    except subprocess.TimeoutExpired:
        process.kill()
        what = "says nothing"
    said.seek(0)
    told = said.read()[-4000:].decode(errors="replace")
    return {"kind": f"fault: the process {what}", "detail": told}


# ---- the whole ----------------------------------------------------------------------------------


class Run:
    """Hands out shares of the seeds to processes and collects what they say."""

    def __init__(self, kind: str, seeds: list[int], log: TextIO | None) -> None:
        self.kind = kind
        self.shares = [seeds[at : at + SHARE] for at in range(0, len(seeds), SHARE)]
        self.log = log
        self.found: list[Result] = []
        self.lock = threading.Lock()

    def work(self) -> None:
        while True:
            with self.lock:
                if not self.shares:
                    return
                share = self.shares.pop(0)
            for result in results(self.kind, share[0], share[-1] + 1):
                self.note(result)

    def note(self, result: Result) -> None:
        with self.lock:
            self.found.append(result)
            if self.log is not None:
                print(json.dumps(result), file=self.log, flush=True)

    def run(self, jobs: int) -> list[Result]:
        threads = [threading.Thread(target=self.work) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.found


def is_fault(result: Result) -> bool:
    return str(result["kind"]).startswith("fault")


def tally(found: list[Result]) -> list[str]:
    """How many programs had which outcome, code and mutation."""
    lines = [f"{len(found)} programs"]
    for title, counted in (
        ("outcome", Counter(each["kind"] for each in found)),
        ("code", Counter(each["code"] for each in found if each.get("code"))),
        ("mutation", Counter(kind for each in found for kind in each.get("mutations", ()))),
    ):
        lines += [f"{count:7}  {title}: {what}" for what, count in counted.most_common()]
    faults = [each for each in found if is_fault(each)]
    for each in faults[:SHOWN]:
        lines.append(f"\nseed {each['seed']}: {each['kind']} {each.get('code', '')}")
        lines += [each.get("source", ""), each.get("detail", "")]
    lines.append(f"{len(faults)} faults")
    return lines


def show(kind: str, seed: int) -> int:
    result = runner(kind)(seed)
    if kind == "mutated":
        from tests.fuzz.outcome import mutant_of

        subject, mutant, arguments = mutant_of(seed)
        print(f"# {subject.name}: {subject.kernel}, grid {subject.grid}, {arguments}")
        print(mutant.source)
    print("\n".join(f"{name}: {value}" for name, value in result.items()))
    return int(is_fault(result))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kind", help=" or ".join(KINDS))
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--child", type=int, nargs=2, metavar=("FIRST", "LAST"))
    given = parser.parse_args(arguments)
    if given.child is not None:
        child(given.kind, *given.child)
        return 0
    if given.seed is not None:
        return show(given.kind, given.seed)
    known: list[Result] = []
    if given.log is not None and given.log.exists():
        known = [json.loads(line) for line in given.log.read_text().splitlines()]
    done = {each["seed"] for each in known}
    # A share is one run of seeds: what is done already cuts it.
    wanted = [seed for seed in range(given.first, given.first + given.programs) if seed not in done]
    log = given.log.open("a") if given.log is not None else None
    found = known
    for piece in _runs(wanted):
        found = found + Run(given.kind, piece, log).run(given.jobs)
    print("\n".join(tally(sorted(found, key=lambda each: each["seed"]))))
    return int(any(map(is_fault, found)))


def _runs(seeds: list[int]) -> Iterator[list[int]]:
    """Seeds that follow one another."""
    start = 0
    for at in range(1, len(seeds) + 1):
        if at == len(seeds) or seeds[at] != seeds[at - 1] + 1:
            yield seeds[start:at]
            start = at


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
