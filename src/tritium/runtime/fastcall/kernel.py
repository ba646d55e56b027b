"""The short way of one kernel: its entries, and when a launch is worth being written down."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritium.backends.host import layout
from tritium.backends.host.layout import WORD
from tritium.ops.constexpr import unwrap
from tritium.runtime import hostcode, objects, settings
from tritium.runtime.arrays import CPU
from tritium.runtime.options import DEFAULTS, Options

if TYPE_CHECKING:
    from tritium.runtime.binder import Bound
    from tritium.runtime.compiled import CompiledKernel
    from tritium.runtime.jit import JITFunction

    from .entry import Entry

CONDITIONS: list[Callable[[], bool]] = []
"""What else must hold for the short way; a change of it is told by ``knobs.REVISION``."""
_FIRST = 2
"""The launch from which on they are written down: many kernels are launched once."""
_FIRST_ON_GPU = 16
"""The same on a GPU, whose code needs no LLVM to run: native launches do, and loading it takes as
long as thousands of launches by Python."""
_EAGER = 256
"""So many launches by Python are all looked at; later ones ever more rarely."""
_ALIKE = 8
"""So many launches of one specialisation are written down: then what differs does so each time."""


_WRITING = threading.RLock()
if hasattr(os, "register_at_fork"):
    # Another thread may have held it, which the child doesn't have.
    os.register_at_fork(after_in_child=_WRITING._at_fork_reinit)  # type: ignore[attr-defined]


class Fast:
    """What native code knows of a kernel.

    ``launch(grid, arguments, keywords)`` launches it by Python. ``launches_by_python`` counts those
    that went well.
    """

    def __init__(self, kernel: JITFunction, launch: Callable[..., Any]) -> None:
        self._kernel = kernel
        self._launch = launch
        self.launches_by_python = 0
        self._entries: dict[Any, Entry] = {}
        self._written: dict[Any, list[Any]] = {}
        """The keys of the entries that were written for launches that are compiled alike."""
        self._hooks: list[Any] = []
        self._resolved: _Resolved | None = None
        self._maker: Any = None
        self._state = bytearray(layout.Kernel.SIZE)
        self._words = (ctypes.c_uint64 * (layout.Kernel.SIZE // WORD)).from_buffer(self._state)
        self._table = (ctypes.c_uint64 * (2 * layout.Kernel.MOST))()

    def maker(self) -> Any:
        """The builtin function that makes a launch of a grid: always the same one."""
        hooks = self._kernel.pre_run_hooks
        self._words[layout.Kernel.HOOKS // WORD] = id(hooks)
        self._hooks = hooks
        if self._maker is None:
            from .process import process

            shared = process()
            self._resolved = _Resolved(self._launch)
            for field, value in (
                (layout.Kernel.PROCESS, shared.address),
                (layout.Kernel.TABLE, ctypes.addressof(self._table)),
                (layout.Kernel.SLOW, id(self._launch)),
                (layout.Kernel.RESOLVED, id(self._resolved)),
            ):
                self._words[field // WORD] = value
            # The list keeps the last launch that was made, and its grid.
            self._maker = shared.maker((self._state, [None, None], self))
        return self._maker

    def worth_writing(self, device: str) -> bool:
        """Count a launch by Python, and say whether it should be written down."""
        self.launches_by_python += 1
        count = self.launches_by_python
        if count >= _EAGER and count & (count - 1):
            return False
        first = _FIRST if device == CPU or "llvmlite" in sys.modules else _FIRST_ON_GPU
        return count >= first and hostcode.SUPPORTED and objects.python_is_readable()

    def write(
        self,
        bound: Bound,
        compiled: CompiledKernel,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> bool:
        """Write a launch down, if it is one that native code can do; whether it is."""
        # A kernel that is launched once, as in a warm start, does without all this.
        from .arguments import Unusual
        from .entry import Entry
        from .process import process

        shared = process()
        shared.look_for_torch()
        shared.settle()
        if not shared.active or not self._still_holds(bound, compiled, keywords):
            return False
        names = self._kernel.binder.positional[: len(args)]
        given = [*zip(names, args), *keywords.items()]
        if len(names) < len(args):
            return False
        rules = self._kernel.binder.rules
        known = [compiled.code.linked(disjoint) for disjoint in (True, False)]
        alike = (bound.key, *map(id, known), shared.serial, len(args), *keywords)
        before = self._written.setdefault(alike, [])
        if len(before) >= _ALIKE and before[-1] in self._entries:
            return False
        try:
            made = Entry(shared.serial, bound, compiled, rules, given, len(args))
        except Unusual:
            return False
        with _WRITING:
            # Another thread may launch between two lines: it must see no entry that is gone.
            self._words[layout.Kernel.ENTRIES // WORD] = 0
            self._entries.pop(made.key, None)
            if len(self._entries) == layout.Kernel.MOST:
                del self._entries[next(iter(self._entries))]
            self._entries[made.key] = made
            before.append(made.key)
            del before[:-_ALIKE]
            self._publish()
        return True

    def _still_holds(
        self, bound: Bound, compiled: CompiledKernel, keywords: Mapping[str, Any]
    ) -> bool:
        """Whether what was launched is what would be launched under the settings as recorded."""
        kernel = self._kernel
        given = {name: unwrap(value) for name, value in keywords.items() if name in DEFAULTS}
        options = Options(given, kernel.__name__, kernel.debug)
        same = options == bound.options and bound.settings == settings.current()
        return same and kernel.kernels.get(bound.key) is compiled

    def _publish(self) -> None:
        """Show the entries to native code, the newest first."""
        count = layout.Kernel.ENTRIES // WORD
        self._words[count] = 0
        for place, entry in enumerate(reversed(self._entries.values())):
            self._table[2 * place] = id(entry.memory)
            self._table[2 * place + 1] = entry.address
        self._words[count] = len(self._entries)

    def forget(self) -> None:
        """Do away with the entries."""
        with _WRITING:
            self._words[layout.Kernel.ENTRIES // WORD] = 0
            self._entries.clear()
            self._written.clear()


class _Resolved:
    """Launches over a grid that its function has returned: that isn't called again."""

    def __init__(self, launch: Callable[..., Any]) -> None:
        self.launch = launch

    def __call__(self, grid: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        return self.launch(lambda values: grid, args, keywords)
