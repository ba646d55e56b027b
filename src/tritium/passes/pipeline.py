"""Passes by name, and pipelines of them as text: ``canonicalize,cse,dce``.

A pass is a function of a kernel and its options that changes the kernel in place and says whether
it did. Valid IR in, valid IR out. Options stand in braces, written as attributes are in the IR's
text: ``canonicalize{disable = ("add-zero",)}``; they are the fields of the pass's dataclass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from tritium import knobs
from tritium.diagnostics import InternalError, TritiumError, error
from tritium.ir import Function, attribute_text, parse_fields, verify

Run = Callable[[Function, Any], bool]
AnyRun = TypeVar("AnyRun", bound=Run)

DEVICE = "canonicalize,cse,carried,hoist,canonicalize,cse,dce"
"""What a back end runs that makes use of hints, as those of GPUs do."""

DEFAULT = f"forget,{DEVICE}"
"""What the CPU back end runs."""


def contracted(pipeline: str) -> str:
    """A pipeline under ``enable_fp_fusion``: fused is what the kernel's text says."""
    return f"contract,{pipeline}"


@dataclass(frozen=True)
class NoOptions:
    """The options of a pass that has none."""


@dataclass(frozen=True)
class Pass:
    """A registered pass."""

    name: str
    run: Run
    options: type


@dataclass(frozen=True)
class Step:
    """A pass together with its options: one entry of a pipeline."""

    made: Pass
    options: Any

    def __str__(self) -> str:
        """The entry's text; options that have their default are left out."""
        given = [
            f"{each.name} = {attribute_text(getattr(self.options, each.name))}"
            for each in fields(self.options)
            if getattr(self.options, each.name) != each.default
        ]
        return self.made.name + (f"{{{', '.join(given)}}}" if given else "")


@dataclass(frozen=True)
class PassRun:
    """What came of one step: ``seconds`` without verification, and whether the IR changed."""

    step: Step
    seconds: float
    changed: bool


PASSES: dict[str, Pass] = {}
"""Every pass by its name."""


def register_pass(name: str, options: type = NoOptions) -> Callable[[AnyRun], AnyRun]:
    """Decorator: make a function the pass ``name``; ``options`` is a frozen dataclass."""

    def register(run: AnyRun) -> AnyRun:
        if name in PASSES:
            raise ValueError(f"pass {name} is defined twice")
        PASSES[name] = Pass(name, run, options)
        return run

    return register


def parse_pipeline(text: str) -> list[Step]:
    """The steps of a pipeline. Raises E0303 for an unknown pass or option."""
    steps = []
    for name, given in parse_fields(text):
        known = PASSES.get(name)
        if known is None:
            hint = f"there are: {', '.join(sorted(PASSES))}"
            raise error("E0303", text=f"no pass is called {name}", hint=hint)
        try:
            steps.append(Step(known, known.options(**given)))
        except (TypeError, ValueError) as problem:
            hint = f"its options are: {', '.join(f.name for f in fields(known.options)) or 'none'}"
            raise error("E0303", text=f"{name}: {problem}", hint=hint) from None
    return steps


def run_pipeline(
    function: Function,
    text: str = DEFAULT,
    *,
    check: bool | None = None,
    after: Callable[[Step, Function], object] | None = None,
) -> list[PassRun]:
    """Run the passes that ``text`` names, one after the other, on a kernel in place.

    ``check`` verifies the IR before the first and after each pass; None asks
    ``knobs.compilation.verify``. ``after`` is called after each pass. Raises E0303 for a bad text,
    E0301 where the kernel isn't valid to begin with, InternalError where a pass broke it.
    """
    steps = parse_pipeline(text)
    if check is None:
        check = knobs.compilation.verify
    if check:
        verify(function)
    runs = []
    for step in steps:
        start = time.perf_counter()
        changed = step.made.run(function, step.options)
        runs.append(PassRun(step, time.perf_counter() - start, changed))
        if check:
            _check(function, step)
        if after is not None:
            after(step, function)
    return runs


def _check(function: Function, step: Step) -> None:
    try:
        verify(function)
    except TritiumError as problem:
        raise InternalError(f"the pass {step} made invalid IR of {function.name}: {problem}") from (
            problem
        )
