"""Waits for shared memory: random programs are executed, and no two threads may meet.

The executions know nothing of pending accesses: a program with its barriers in it is unrolled, with
any number of iterations and any side of each branch, and every pair of accesses is looked at.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritium.backends.emit import Builder, Module, void
from tritium.backends.nvptx.layouts import Scope
from tritium.backends.nvptx.shared import ALIGN, ROOMY, SharedMemory, most_bytes
from tritium.backends.nvptx.target import gpu_target
from tritium.backends.nvptx.waits import Access, Waits

WARPS = 2
BYTES = 8


@dataclass
class Loop:
    """``head`` runs once more than ``body``: the loop is left between them."""

    head: list[Any] = field(default_factory=list)
    body: list[Any] = field(default_factory=list)


@dataclass
class Branch:
    sides: list[list[Any]] = field(default_factory=list)


Step = Access | Scope | Loop | Branch


class Program:
    """Writes a random program, its barriers among its accesses."""

    def __init__(self, random: Random, structured: bool = True) -> None:
        self.random = random
        self.steps: list[Any] = []
        self.here = self.steps
        self.waits = Waits(lambda scope: self.here.append(scope))
        self.structured = structured
        self.write(6, 0)

    def write(self, most: int, depth: int) -> None:
        for _ in range(self.random.randint(1, most)):
            kind = self.random.random() if self.structured and depth < 3 else 0.0
            if kind < 0.7:
                self.access()
            elif kind < 0.87:
                self.loop(depth)
            else:
                self.branch(depth)

    def access(self) -> None:
        start = self.random.randrange(BYTES)
        end = self.random.randint(start + 1, BYTES)
        owner = self.random.choice([None, None, 1, 2])
        access = Access(start, end, self.random.random() < 0.5, owner)
        self.waits.access(access)
        self.here.append(access)

    def loop(self, depth: int) -> None:
        outer, made = self.here, Loop()
        outer.append(made)
        self.waits.loop_begins()
        if self.random.random() < 0.5:
            self.here = made.head
            self.write(3, depth + 1)
            self.waits.loop_leaves()
        self.here = made.body
        self.write(4, depth + 1)
        self.waits.loop_ends()
        self.here = outer

    def branch(self, depth: int) -> None:
        outer, made = self.here, Branch()
        outer.append(made)
        self.waits.branch_begins()
        for _ in range(2):
            self.here = []
            made.sides.append(self.here)
            self.waits.side_begins()
            if self.random.random() < 0.8:
                self.write(3, depth + 1)
        self.waits.branch_ends()
        self.here = outer


def executed(steps: list[Any], random: Random) -> list[Access | Scope]:
    """One way through a program."""
    trace: list[Access | Scope] = []
    for step in steps:
        if isinstance(step, Loop):
            for _ in range(random.randrange(4)):
                trace += executed(step.head, random) + executed(step.body, random)
            trace += executed(step.head, random)
        elif isinstance(step, Branch):
            trace += executed(random.choice(step.sides), random)
        else:
            trace.append(step)
    return trace


def touched(access: Access) -> set[tuple[int, int, int]]:
    """(byte, warp, lane): warps have two lanes here.

    The warps of an owner divide its bytes, each owner in its own way; of what isn't owned every
    thread may have any byte.
    """
    found = set()
    for byte in range(access.start, access.end):
        for warp, lane in itertools.product(range(WARPS), range(2)):
            mine = access.owner is None or (byte + access.owner) // access.owner % WARPS == warp
            if mine:
                found.add((byte, warp, lane))
    return found


def conflict(trace: list[Access | Scope]) -> tuple[Access, Access] | None:
    """Two accesses by different threads to a byte, one storing, with no wait of both between."""
    for first, left in enumerate(trace):
        if not isinstance(left, Access):
            continue
        scopes: set[Scope] = set()
        for right in trace[first + 1 :]:
            if isinstance(right, Scope):
                scopes.add(right)
                continue
            if Scope.BLOCK in scopes:
                break
            if not (left.stores or right.stores):
                continue
            for (a, u, i), (b, v, j) in itertools.product(touched(left), touched(right)):
                if a == b and ((u != v) or (i != j and Scope.WARP not in scopes)):
                    return left, right
    return None


@given(st.integers(0, 2**32 - 1))
def test_no_two_threads_meet_without_a_wait(seed: int) -> None:
    program = Program(Random(seed))
    for attempt in range(4):
        trace = executed(program.steps, Random(seed + attempt))
        assert conflict(trace[:60]) is None


@given(st.integers(0, 2**32 - 1))
def test_no_wait_is_needless_where_the_code_is_straight(seed: int) -> None:
    trace = executed(Program(Random(seed), structured=False).steps, Random(0))
    for position, step in enumerate(trace):
        if isinstance(step, Scope):
            assert conflict(trace[:position] + trace[position + 1 :]) is not None


def scopes_of(*accesses: Access) -> list[Scope]:
    written: list[Scope] = []
    waits = Waits(written.append)
    for access in accesses:
        waits.access(access)
    return written


def test_reading_twice_waits_once() -> None:
    assert scopes_of(Access(0, 4, True), Access(0, 4, False), Access(0, 2, False)) == [Scope.BLOCK]


def test_bytes_apart_need_no_wait() -> None:
    assert scopes_of(Access(0, 4, True), Access(4, 8, True), Access(8, 9, False)) == []


def test_warps_that_keep_to_themselves_wait_for_themselves() -> None:
    own = [Access(0, 8, stores, 1) for stores in (True, False, True, False)]
    assert scopes_of(*own) == [Scope.WARP] * 3
    assert scopes_of(own[0], Access(0, 8, False, 2)) == [Scope.BLOCK]


def test_a_loop_that_stores_what_it_loaded_waits_at_its_end() -> None:
    program: list[Any] = []
    waits = Waits(program.append)
    waits.loop_begins()
    for stores in (True, False):
        waits.access(Access(0, 4, stores))
        program.append(stores)
    waits.loop_ends()
    assert program == [True, Scope.BLOCK, False, Scope.BLOCK]


def test_what_a_condition_touched_last_is_pending_after_the_loop() -> None:
    program: list[Any] = []
    waits = Waits(program.append)
    waits.loop_begins()
    waits.access(Access(0, 4, False))
    waits.loop_leaves()
    waits.block()
    waits.loop_ends()
    waits.access(Access(0, 4, True))
    assert program == [Scope.BLOCK] * 2


def test_a_loop_whose_iterations_wait_first_does_not_wait_at_its_end() -> None:
    program: list[Any] = []
    waits = Waits(program.append)
    waits.access(Access(0, 4, True))
    waits.loop_begins()
    waits.access(Access(0, 4, False))
    waits.loop_ends()
    assert program == [Scope.BLOCK]


def test_what_is_done_after_a_wait_does_not_meet_the_next_iteration() -> None:
    program: list[Any] = []
    waits = Waits(program.append)
    waits.loop_begins()
    for start in (0, 8):
        waits.access(Access(start, start + 4, True))
        waits.access(Access(start, start + 4, False))
    waits.loop_ends()
    assert program == [Scope.BLOCK] * 2


# ---- allocation ----------------------------------------------------------------------------------


def memory(warps: int = 4) -> tuple[SharedMemory, list[str]]:
    """Shared memory of a writer that does nothing else, and the calls it wrote."""
    function = Module("memory").function("f", void, [])
    order = SimpleNamespace(waited=lambda: None)
    writer: Any = SimpleNamespace(
        b=Builder(function.entry),
        module=function.module,
        num_warps=warps,
        order=order,
        target=gpu_target("sm_90a"),
    )
    return SharedMemory(writer), function.entry.lines


def barriers(lines: list[str]) -> list[str]:
    return [line for line in lines if "barrier" in line or "bar.warp" in line]


def used(shared: SharedMemory, size: int) -> int:
    with shared.scratch(size) as scratch:
        scratch.stores()
        scratch.loads()
        return scratch.offset


def test_scratch_alternates_and_saves_waits() -> None:
    shared, lines = memory()
    assert [used(shared, 100) for _ in range(4)] == [0, 112, 0, 112]
    assert len(barriers(lines)) == 4
    assert shared.total == 212


def test_large_scratch_is_used_again_at_once() -> None:
    shared, lines = memory()
    assert [used(shared, ROOMY) for _ in range(3)] == [0, 0, 0]
    assert len(barriers(lines)) == 5
    assert shared.total == ROOMY


def test_live_scratch_is_nobody_elses() -> None:
    shared, _ = memory()
    random = Random(4)
    with shared.scratch(64) as outer, shared.scratch(40, 128) as inner:
        assert inner.offset == 128
        for _ in range(50):
            size = random.randint(1, 30000)
            with shared.scratch(size) as other:
                for live in (outer, inner):
                    apart = other.offset >= live.offset + live.bytes
                    assert apart or other.offset + size <= live.offset
                other.stores()


@pytest.mark.parametrize("warps,name", [(1, "nvvm.bar.warp.sync"), (2, "nvvm.barrier.cta")])
def test_one_warp_waits_for_itself(warps: int, name: str) -> None:
    shared, lines = memory(warps)
    used(shared, 16)
    assert [name in line for line in barriers(lines)] == [True]


def test_memory_is_declared_for_the_driver_to_size() -> None:
    shared, _ = memory()
    assert shared.base.text == "@smem"
    shared.writer.b.ret()
    text = shared.writer.module.text()
    assert f"@smem = external addrspace(3) global [0 x i8], align {ALIGN}" in text
    assert most_bytes((9, 0)) == 232448
