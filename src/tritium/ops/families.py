"""Every family of operations: importing this module fills the tables of operations and names."""

from __future__ import annotations

from . import (  # noqa: F401
    aggregates,
    arith,
    atomic,
    bins,
    blocks,
    cast,
    compare,
    constants,
    control,
    create,
    dot,
    hints,
    indexing,
    later,
    logic,
    map,
    math,
    memory,
    program,
    rearrange,
    reduce,
    report,
    scan,
    select,
    shape,
    sort,
)
