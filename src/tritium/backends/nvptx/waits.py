"""Where threads have to wait for each other, found from intervals of memory.

Accesses are told in program order. One that may meet an earlier access by another thread, one of
the two storing, waits first: for the block, or only for its own warp where both belong to one
scratch whose warps keep to bytes of their own. Nothing here writes code: ``Waits`` says what has to
be written, and is told the structure of the program around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from .layouts import Scope


@dataclass(frozen=True)
class Access:
    """Bytes ``start`` to ``end`` of memory, which all threads load from or store to.

    ``owner`` is given where each warp keeps to its own bytes, as all accesses of that owner divide
    them. ``settled``: the threads of each warp have waited for each other since.
    """

    start: int
    end: int
    stores: bool
    owner: int | None = None
    settled: bool = False

    def needs(self, later: Access) -> Scope | None:
        """What has to wait between this access and a later one."""
        apart = self.end <= later.start or later.end <= self.start
        if apart or not (self.stores or later.stores):
            return None
        if self.owner is not None and self.owner == later.owner:
            return None if self.settled else Scope.WARP
        return Scope.BLOCK


@dataclass
class _State:
    """What is pending where code is being written."""

    pending: list[Access] = field(default_factory=list)
    through: list[bool] = field(default_factory=list)
    """For each open loop, the outermost first, whether its start is reached without a barrier."""

    def copy(self) -> _State:
        return _State(list(self.pending), list(self.through))

    def join(self, other: _State) -> None:
        """After either of two ways here."""
        self.pending += [access for access in other.pending if access not in self.pending]
        self.through = [a or b for a, b in zip(self.through, other.through, strict=True)]


@dataclass
class _Branch:
    """A branch being written: what was pending before it, and at the ends of its sides so far."""

    start: _State
    ends: _State | None = None
    begun: bool = False


class Waits:
    """Follows a program as it is written; ``write`` is called where threads have to wait."""

    def __init__(self, write: Callable[[Scope], None]) -> None:
        self._write = write
        self._state = _State()
        self._exposed: list[list[Access]] = []
        """For each open loop, what is accessed before its body waits for the block."""
        self._loops: list[_State] = []
        """For each open loop, what is pending where it is left before its body's end."""
        self._branches: list[_Branch] = []

    @property
    def pending(self) -> Sequence[Access]:
        """What other threads may not have carried out yet."""
        return self._state.pending

    def access(self, access: Access) -> None:
        """An access is going to be written."""
        needed = {earlier.needs(access) for earlier in self._state.pending}
        if Scope.BLOCK in needed:
            self.block()
        elif Scope.WARP in needed:
            self.warp()
        if access not in self._state.pending:
            self._state.pending.append(access)
        for exposed, through in zip(self._exposed, self._state.through, strict=True):
            if through:
                exposed.append(access)

    def block(self) -> None:
        """All threads of the block wait."""
        self._write(Scope.BLOCK)
        self._state.pending = []
        self._state.through = [False] * len(self._state.through)

    def warp(self) -> None:
        """The threads of each warp wait."""
        self._write(Scope.WARP)
        self._state.pending = [replace(access, settled=True) for access in self._state.pending]

    # Loops.

    def loop_begins(self) -> None:
        """A loop's body starts; what comes before it stays pending. Unless ``loop_leaves`` says
        otherwise there may be no iteration at all."""
        self._loops.append(self._state.copy())
        self._state.through.append(True)
        self._exposed.append([])

    def loop_leaves(self) -> None:
        """In each iteration this is where the loop goes on or is left, and nowhere else."""
        left = self._state.copy()
        left.through.pop()
        self._loops[-1] = left

    def loop_ends(self) -> None:
        """A loop's body ends: it waits where its next iteration would meet what is pending."""
        exposed = self._exposed[-1]
        needed = {a.needs(b) for a in self._state.pending for b in exposed}
        if Scope.BLOCK in needed:
            self.block()
        elif Scope.WARP in needed:
            self.warp()
        self._exposed.pop()
        self._state.through.pop()
        self._state.join(self._loops.pop())

    # Branches.

    def branch_begins(self) -> None:
        """One of several sides runs, each begun by ``side_begins``."""
        self._branches.append(_Branch(self._state.copy()))

    def side_begins(self) -> None:
        """The next side, with what was pending before the branch."""
        branch = self._branches[-1]
        self._side_ends(branch)
        branch.begun = True
        self._state = branch.start.copy()

    def branch_ends(self) -> None:
        """After the branch everything is pending that is at the end of a side."""
        branch = self._branches.pop()
        self._side_ends(branch)
        if branch.ends is not None:
            self._state = branch.ends

    def _side_ends(self, branch: _Branch) -> None:
        if not branch.begun:
            return
        if branch.ends is None:
            branch.ends = self._state.copy()
        else:
            branch.ends.join(self._state)
