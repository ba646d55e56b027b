"""Functions of scalars on each element of stored tiles: a loop around the function's own code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritium.backends.emit import const, i64
from tritium.diagnostics import InternalError
from tritium.ops.map import MapElementwise

from .lines import operand_buffer, read, write
from .memory_map import Buffer
from .plan import Planner
from .whole import writes_tiles

if TYPE_CHECKING:
    from .kernel import KernelWriter


@writes_tiles(MapElementwise)
def write_map(kernel: KernelWriter, op: MapElementwise, results: Sequence[Buffer]) -> None:
    """Write one map where the kernel stands."""
    inputs = [operand_buffer(kernel, value) for value in op.inputs]
    body = op.function.block
    outer = kernel.plan.stored
    plan = Planner(body, disjoint=kernel.disjoint, outer=outer, width=kernel.width).run()
    b = kernel.b
    total = math.prod(op.inputs[0].shape)
    loop = b.loop_open(const(i64, 0), const(i64, total), op.pack, name="map")
    places = [b.add(loop.index, const(i64, number)) for number in range(op.pack)]
    arguments = iter(body.args)
    for buffer in inputs:
        for place in places:
            kernel.scalars[next(arguments)] = read(b, buffer, place)
    saved = kernel.yield_targets
    kernel.yield_targets = []
    yielded = iter(kernel.block(plan, len(kernel.plans)))
    kernel.yield_targets = saved
    for buffer in results:
        for place in places:
            value = next(yielded)
            if value is None:
                raise InternalError("a function of scalars that yields a tile")
            write(kernel.b, buffer, value, place)
    loop.close(kernel.b)
