"""The nests of a kernel as text: loops, what is computed in them, and why it isn't one loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.ir.core import Op

from .plan import BlockPlan, Group
from .sinks import Sink, SinkKind
from .whole import is_whole

if TYPE_CHECKING:
    from .kernel import KernelWriter


def dump_plans(kernel: KernelWriter) -> str:
    """Every block's steps, indented by nesting, with the reasons and the slow accesses."""
    lines: list[str] = []
    for depth, plan in kernel.plans:
        lines.extend("  " * depth + line for line in _plan(plan, kernel.width))
    for what, count in sorted(kernel.counts.items()):
        lines.append(f"slow: {count} x {what}")
    lines.append(f"scratch: {kernel.arena.peak} bytes")
    return "\n".join(lines) + "\n"


def _plan(plan: BlockPlan, width: int) -> list[str]:
    lines = ["block:"]
    for step in plan.steps:
        if step.group is not None:
            lines.extend("  " + line for line in _group(step.group, width))
        elif step.op is not None and _is_worth_a_line(step.op):
            lines.append(f"  {step.op.mnemonic}")
    lines.extend(f"  because {reason}" for reason in plan.reasons)
    return lines


def _is_worth_a_line(op: Op) -> bool:
    return bool(op.regions) or is_whole(op)


def _group(group: Group, width: int) -> list[str]:
    lines: list[str] = []
    pad = ""
    for number, extent in enumerate(group.outer):
        blocked = f" by {width}, transposed in registers" if number == group.block else ""
        lines.append(f"{pad}for r{number}<{extent}{blocked}:")
        pad += "  "
    for subnest in group.subnests:
        first = subnest[0]
        extent = first.space[first.lane]
        inner = "; ".join(_sink(sink) for sink in subnest)
        lines.append(f"{pad}for c<{extent} by {min(width, extent)}: {inner}")
    return lines


def _sink(sink: Sink) -> str:
    fused = sorted(
        value.defining_op.mnemonic
        for value in sink.inlined
        if value.defining_op is not None and value.defining_op.family in _SHOWN
    )
    made = f" of {', '.join(fused)}" if fused else ""
    if sink.kind is SinkKind.KEEP:
        assert sink.value is not None
        return f"keep %{sink.value.name or sink.value.type}{made}"
    along = f" along axis {sink.along}" if sink.along is not None else ""
    return f"{sink.op.mnemonic}{along}{made}"


_SHOWN = ("memory", "math", "arith", "cast", "select", "compare", "logic")
