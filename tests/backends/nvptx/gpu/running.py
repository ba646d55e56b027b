"""Runs batches on an executor and tells what differs from the operations' own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tests.backends.nvptx.gpu.batches import ALIGNED, Batch
from tests.backends.nvptx.gpu.compiling import Code, Part
from tests.backends.nvptx.gpu.device import Fault
from tests.backends.nvptx.gpu.image import CaseImage, LaunchImage
from tests.ops.harness import case_difference

from tritium.ops.spec import Case

COUNTED = "nvptx "
"""Begins the name of a test's property that holds how many of something it ran."""


class Executor(Protocol):
    """Runs a kernel's code as one program: a GPU, or what stands for it."""

    def run(self, code: Code, image: LaunchImage) -> None:
        """The image then holds what the kernel left. Raises Fault."""


def run_part(
    executor: Executor, part: Part, aligned: bool, grid: tuple[int, int, int] = (1, 1, 1)
) -> list[str]:
    """What is wrong with the results of a kernel, a line a case. Raises Fault."""
    assert part.code is not None
    image = CaseImage(part.cases, aligned, grid)
    executor.run(part.code, image)
    wrong = differences(part.cases, image)
    damage = image.damage()
    return [*wrong, f"{labels(part.cases)}: {damage}"] if damage else wrong


def differences(cases: Sequence[Case], image: CaseImage) -> list[str]:
    found = []
    for case, got in zip(cases, image.results(), strict=True):
        text = case_difference(case, got, "nvptx")
        if text:
            found.append(f"{case.label}: {text}")
    return found


def labels(cases: Sequence[Case]) -> str:
    return "; ".join(case.label for case in cases)


def run_batch(
    executor: Executor, batch: Batch, parts: Sequence[Part], singly: Callable[[], list[Part]]
) -> list[str]:
    """What is wrong with a batch; where a kernel of several cases faults, each is run alone."""
    wrong: list[str] = []
    for part in parts:
        if part.code is None:
            wrong.append(f"{labels(part.cases)}: {part.problem}")
            continue
        try:
            wrong += run_part(executor, part, batch.divisibility == ALIGNED, batch.grid)
        except Fault as fault:
            if len(part.cases) == 1:
                wrong.append(f"{labels(part.cases)}: {fault}")
                continue
            alone = run_batch(executor, batch, singly(), singly)
            wrong += alone or [f"{labels(part.cases)}: {fault}, though each alone runs"]
    return wrong
