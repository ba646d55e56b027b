"""The state of one interpreted program: where it is on the grid, and how it reaches memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tritium.diagnostics import InternalError, Loc, TritiumError, error
from tritium.ir.core import Op
from tritium.ir.dtypes import Array, Type

from .frames import current_loc
from .grid import Baton, Fiber, Index, Scheduler, padded
from .memory import PAGE, Addresses, Fault, Memory, lanes_of
from .waiting import Poll

MOST_CHANGES = 64
"""Passes of a loop that each change memory by what they poll, before others get their turn."""


class Client:
    """Something that watches programs: a checker, a tracer, a debugger. Override what it needs.

    Masked-off lanes are false in ``mask`` (None: every lane takes part); arrays must not be
    changed. A client may raise a coded error, and may suspend the program
    (``machine.baton.suspend()``).
    """

    def program_begins(self, machine: Machine) -> None:
        """A program is about to run."""

    def program_ends(self, machine: Machine) -> None:
        """A program has run to its end."""

    def before_load(
        self, machine: Machine, op: Op, addresses: Addresses, mask: Array | None
    ) -> None:
        """Memory is about to be read."""

    def after_load(
        self, machine: Machine, op: Op, addresses: Addresses, mask: Array | None, values: Array
    ) -> None:
        """Memory was read; masked-off lanes of ``values`` hold what they are filled with."""

    def before_store(
        self, machine: Machine, op: Op, addresses: Addresses, mask: Array | None, values: Array
    ) -> None:
        """Memory is about to be written."""

    def after_store(
        self, machine: Machine, op: Op, addresses: Addresses, mask: Array | None, values: Array
    ) -> None:
        """Memory was written."""


class Machine:
    """One program; it is what ``Op.evaluate`` is given.

    ``polls`` counts the loads and atomic operations that have polled. ``decided``: what came of
    them has decided what the program does. ``kept``: it may be in memory that the program wrote.
    """

    __slots__ = (
        "_address",
        "_changes",
        "_pages",
        "_seen",
        "_vain",
        "baton",
        "clients",
        "decided",
        "grid",
        "kept",
        "kernel",
        "memory",
        "polls",
        "program",
    )

    def __init__(
        self,
        program: Index,
        grid: Index,
        memory: Memory,
        baton: Baton,
        kernel: str = "",
        clients: Sequence[Client] = (),
    ) -> None:
        self.program = program
        self.grid = grid
        self.memory = memory
        self.baton = baton
        self.kernel = kernel
        self.clients = clients
        self.polls = 0
        self.decided = False
        self.kept = False
        self._seen = 0
        self._vain = False
        self._changes = 0
        self._address = 0
        self._pages: set[int] = set()

    def loc(self, op: Op) -> Loc | None:
        """Where the operation that is being carried out stands in the user's source."""
        return op.loc if op.loc is not None else current_loc()

    def load(self, op: Op, addresses: Addresses, mask: Array | None, fill: Array) -> Array:
        """Elements at byte ``addresses``, of ``fill``'s dtype, where ``mask``; ``fill`` elsewhere.

        Raises E0608 for an address that can't be read.
        """
        for client in self.clients:
            client.before_load(self, op, addresses, mask)
        loaded = np.array(_shaped(fill, addresses.shape), order="C")
        flat, lanes = addresses.reshape(-1), lanes_of(mask, addresses.shape)
        active = flat if lanes is None else flat[lanes]
        if active.size:
            self._check(op, active, lanes, addresses.shape, loaded.itemsize, write=False)
            picked = self.memory.gather(active, loaded.dtype)
            loaded.reshape(-1)[slice(None) if lanes is None else lanes] = picked
        for client in self.clients:
            client.after_load(self, op, addresses, mask, loaded)
        if op.results[0].scalar.is_ptr():
            self.memory.open()
        if active.size and getattr(op, "is_fresh", False):
            self._poll(active)
        return loaded

    def store(self, op: Op, addresses: Addresses, values: Array, mask: Array | None) -> None:
        """Write ``values`` at byte ``addresses`` where ``mask``; of equal ones the last lane wins.

        Raises E0608 for an address that can't be written and E0514 for a read-only argument;
        nothing is written then.
        """
        for client in self.clients:
            client.before_store(self, op, addresses, mask, values)
        values = _shaped(values, addresses.shape)
        flat, lanes = addresses.reshape(-1), lanes_of(mask, addresses.shape)
        active = flat if lanes is None else flat[lanes]
        if active.size:
            self._check(op, active, lanes, addresses.shape, values.itemsize, write=True)
            kept = values.reshape(-1)
            self.memory.scatter(active, kept if lanes is None else kept[lanes])
            self.baton.progressed()
            self.kept |= self.polls > 0
        for client in self.clients:
            client.after_store(self, op, addresses, mask, values)

    def update(
        self,
        op: Op,
        addresses: Addresses,
        mask: Array | None,
        change: Callable[..., Array],
        *given: Array,
    ) -> Array:
        """Change the elements at byte ``addresses`` where ``mask``, lane after lane.

        ``change`` gives the new elements from the old ones and those of ``given``, whose shape is
        the addresses'. Returns what each lane found; 0 in the others. Raises as ``store`` does.
        """
        values = given[-1]
        for client in self.clients:
            client.before_load(self, op, addresses, mask)
            client.before_store(self, op, addresses, mask, values)
        found = np.zeros(addresses.shape, values.dtype)
        flat, lanes = addresses.reshape(-1), lanes_of(mask, addresses.shape)
        lanes = np.arange(flat.size) if lanes is None else lanes
        active = flat[lanes]
        changed = False
        if active.size:
            self._check(op, active, lanes, addresses.shape, values.itemsize, write=True)
            parts = [each.reshape(-1)[lanes] for each in given]
            old = found.reshape(-1)
            for turn in _turns(active):
                before = self.memory.gather(active[turn], values.dtype)
                after = change(before, *(part[turn] for part in parts))
                changed |= before.tobytes() != after.tobytes()
                self.memory.scatter(active[turn], after)
                old[lanes[turn]] = before
        if changed:
            self.baton.progressed()
            self.polls += 1
            self.kept = True
            self._address = int(active[0])
        elif active.size:
            self._poll(active)
        for client in self.clients:
            client.after_load(self, op, addresses, mask, found)
            client.after_store(self, op, addresses, mask, values)
        return found

    def print(self, text: str) -> None:
        """Print whole lines, by Python's standard output."""
        sys.stdout.write(text)

    def made_pointers(self) -> None:
        """Note that the program makes pointers of integers: they may lead anywhere."""
        self.memory.open()

    def turn(self, state: Callable[[], object]) -> None:
        """A loop begins another pass: where what it polled decided that, others get their turn.

        They get it later where each pass changed memory, as one does that takes the next piece of
        work. ``state`` is what ``Poll`` says.
        """
        if self.polls != self._seen and self.decided:
            self._seen, self.decided = self.polls, False
            self._changes += 1
            if not self._vain and self._changes < MOST_CHANGES:
                return
            self._vain, self._changes = False, 0
            pages, self._pages = frozenset(self._pages), set()
            self.baton.suspend(Poll(self._address, pages, state))

    def _poll(self, active: Addresses) -> None:
        self.polls += 1
        self._vain = True
        self._address = int(active[0])
        if active.size == 1:
            self._pages.add(self._address // PAGE)
        else:
            self._pages.update((np.unique(active // np.uint64(PAGE))).tolist())

    def run(self, region: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """Run eager mode's callable on arrays; returns a tuple of arrays."""
        results: tuple[Any, ...] = region(*args)
        return results

    def _check(
        self,
        op: Op,
        active: Addresses,
        lanes: NDArray[np.intp] | None,
        shape: tuple[int, ...],
        size: int,
        *,
        write: bool,
    ) -> None:
        fault = self.memory.fault(active, size, write)
        if fault is not None:
            lane = fault.lane if lanes is None else int(lanes[fault.lane])
            where = tuple(int(index) for index in np.unravel_index(lane, shape)) if shape else ()
            raise self._fault(op, fault, where).at(op.loc)

    def _fault(self, op: Op, fault: Fault, lane: tuple[int, ...]) -> TritiumError:
        if fault.read_only is not None:
            return error("E0514", kernel=self.kernel, name=fault.read_only.name)
        return error(
            "E0608",
            op=op.verb,
            program=self.program,
            lane=f"lane {lane}" if lane else "it",
            address=f"{fault.address:#x}",
            reason=fault.reason,
            argument="pointer",
        )


class Launch:
    """The programs of one launch. Subclasses say how one runs.

    ``clients`` watch every program.
    """

    def __init__(self, grid: Sequence[int], clients: Sequence[Client]) -> None:
        self.grid = padded(tuple(grid))
        self.clients = clients

    def machine(self, program: Index, baton: Baton) -> Machine:
        """The state that a program starts with."""
        raise TypeError(f"{type(self).__name__} has no programs")

    def body(self, machine: Machine) -> None:
        """Run one program."""
        raise TypeError(f"{type(self).__name__} has no programs")

    def run(self) -> None:
        """Run every program of the grid. Raises the coded errors of the operations."""
        scheduler = Scheduler(self.grid, lambda program: self._watched(program, scheduler))
        scheduler.run()

    def program(self, program: Index) -> Fiber:
        """One program that runs when it is resumed, and can be suspended by a client."""
        fiber = Fiber(lambda: self._watched(program, fiber))
        return fiber

    def _watched(self, program: Index, baton: Baton) -> None:
        machine = self.machine(program, baton)
        for client in self.clients:
            client.program_begins(machine)
        self.body(machine)
        for client in self.clients:
            client.program_ends(machine)


def _turns(addresses: Addresses) -> Iterator[NDArray[np.intp]]:
    """The lanes in turns of distinct addresses: the first of each address, the second, ..."""
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    places = np.arange(order.size)
    turns = places - np.maximum.accumulate(np.where(starts, places, 0))
    for turn in range(int(turns.max()) + 1):
        yield order[turns == turn]


def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
    # Broadcasting to the same shape takes NumPy longer than a small operation.
    return array if array.shape == shape else np.broadcast_to(array, shape)


def conform(op: Op, type: Type, data: Any, over_lanes: bool = False) -> Array:
    """A result of ``evaluate`` as an array, checked against the type that ``infer`` gave.

    ``over_lanes``: the operation stands in a region of scalars that runs on arrays, so the shape is
    free. Raises ``InternalError`` where they differ: the operation contradicts itself.
    """
    array = np.asarray(data)
    fits = over_lanes or array.shape == type.shape
    if array.dtype != type.scalar.numpy or not fits:
        raise InternalError(
            f"{op.mnemonic} evaluates to {array.dtype} {array.shape}, its type is {type}"
        )
    return array


def conform_all(
    op: Op, types: Sequence[Type], outcome: Any, over_lanes: bool = False
) -> list[Array]:
    """All results of one operation, by ``conform``."""
    given = () if outcome is None else outcome if isinstance(outcome, tuple) else (outcome,)
    if len(given) != len(types):
        raise InternalError(f"{op.mnemonic} evaluates to {len(given)} results of {len(types)}")
    return [conform(op, type, data, over_lanes) for type, data in zip(types, given)]
