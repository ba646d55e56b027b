"""One specialisation of a kernel between its tile IR and machine code, for whichever device.

There are two versions of the machine code. One assumes that certain arrays don't overlap; a launch
where they do uses the other, which is compiled when it is first needed.
"""

from __future__ import annotations

import abc
import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritium import knobs
from tritium.backends import llvm
from tritium.diagnostics import InternalError, Loc, TritiumError, error, write_report
from tritium.ir import Function, function_text, parse_function

from . import cache
from .arrays import ArrayArgument
from .binder import Bound

Times = dict[str, float]

COMPILING = threading.RLock()
"""Held while a kernel is compiled."""
if hasattr(os, "register_at_fork"):
    # Another thread may have held it, which the child doesn't have.
    os.register_at_fork(after_in_child=COMPILING._at_fork_reinit)  # type: ignore[attr-defined]


if TYPE_CHECKING:
    from typing import Protocol

    class Compiled(Protocol):
        """What every backend tells of a version.

        ``alias_pairs`` are the pairs of parameters that it takes to be disjoint, ``written`` the
        parameters that are stored through, ``llvm_ir`` the text of a stage.
        """

        @property
        def alias_pairs(self) -> tuple[tuple[int, int], ...]: ...
        @property
        def written(self) -> frozenset[int]: ...
        @property
        def llvm_ir(self) -> str: ...


class Version:
    """One version of the code, ready to run; ``cached``: it was found in the cache.

    ``written`` are the kernel's in order. Native launches read what is at ``address``.
    """

    __slots__ = ("address", "cached", "kernel", "written")

    def __init__(self, kernel: Compiled, address: int, cached: bool) -> None:
        self.kernel: Any = kernel
        self.address = address
        self.written = sorted(kernel.written)
        self.cached = cached


class KernelCode(abc.ABC):
    """A kernel in tile IR, and its machine code for ``target``.

    ``ir`` is its text, with places in the source where machine code names them, ``located`` with
    places in any case; ``function`` is the same IR, where it is at hand. ``fuse`` has products and
    sums rounded once. ``source`` goes into a crash report; ``times`` collects the seconds of the
    phases.

    ``registers``, ``spills`` and ``most_threads`` are those of a thread and a block of a GPU;
    ``module`` is the driver's handle of loaded code, ``binary`` the stage that is run.
    """

    registers = 0
    spills = 0
    most_threads = 0
    module: Any = None
    binary: str

    def __init__(
        self,
        name: str,
        ir: str,
        target: Any,
        *,
        fuse: bool,
        source: str,
        located: str,
        times: Times,
        function: Function | None = None,
    ) -> None:
        self.name = name
        self.target = target
        self.times = times
        self.ir = ir
        self.located = located
        self.fuse = fuse
        self._source = source
        self._function = function
        self._optimised = False
        self._places: list[Loc | None] = []
        self._versions: dict[bool, Version] = {}
        self._reported: Times = {}
        self._later: list[Callable[[], object]] = []

    def later(self, step: Callable[[], object]) -> None:
        """Have something done that compiling can go on without: ``catch_up`` does it."""
        self._later.append(step)

    def catch_up(self) -> None:
        """Do what was put off, once; a back end may call it where it would only wait."""
        while self._later:
            self._later.pop()()

    @property
    def key(self) -> str:
        """The name of the first version in the cache."""
        return self._key(True)

    def _key(self, disjoint: bool) -> str:
        options = f"disjoint={disjoint} fuse={self.fuse}"
        return cache.key(self.ir, self.target.key, options, *self._depends_on())

    def _depends_on(self) -> Sequence[str]:
        """What the machine code depends on beside the IR and the target."""
        return ()

    # ---- what it is, for ``CompiledKernel`` ------------------------------------------------------

    @property
    def function(self) -> Any:
        """What the driver calls the function; where there is none, the key of the code."""
        return self.key

    @property
    @abc.abstractmethod
    def triton_target(self) -> tuple[str, Any, int]:
        """Backend, architecture and width of a warp."""

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """What ``metadata`` says beside the options."""

    @abc.abstractmethod
    def stages(self) -> Mapping[str, Callable[[], Any]]:
        """The stages that this backend has, by name."""

    # ---- launching -------------------------------------------------------------------------------

    @abc.abstractmethod
    def launch(self, values: Sequence[Any], grid: tuple[int, int, int], stream: Any = None) -> None:
        """Run the grid. ``values`` are those of the run-time parameters, arrays described."""

    def suited(self, values: Sequence[Any]) -> Version:
        """The version for these arguments: by whether arrays overlap."""
        version = self.version(True)
        for left, right in version.kernel.alias_pairs:
            one, other = values[left], values[right]
            if one.low < other.high and other.low < one.high:
                return self.version(False)
        return version

    @property
    def plain(self) -> bool:
        """Whether a launch needs nothing but the code, the arguments and the grid."""
        return True

    @abc.abstractmethod
    def words(self, values: Sequence[Any]) -> list[int]:
        """The slots that the compiled code is given for values of the run-time parameters."""

    def linked(self, disjoint: bool) -> Version | None:
        """A version of the code, None if it wasn't needed yet."""
        return self._versions.get(disjoint)

    # ---- compiling -------------------------------------------------------------------------------

    def version(self, disjoint: bool) -> Version:
        """The code that may (or may not) assume disjoint arrays, ready to run."""
        made = self._versions.get(disjoint)
        if made is None:
            with COMPILING:
                made = self._versions.get(disjoint)
                if made is None:
                    made = self._versions[disjoint] = self._make(disjoint)
        return made

    @abc.abstractmethod
    def _make(self, disjoint: bool) -> Version:
        """Compile a version, or find it in the cache."""

    def _found(self, name: str) -> cache.Entry | None:
        return None if knobs.compilation.always_compile else cache.load(name)

    def _report(self, disjoint: bool) -> None:
        if not knobs.compilation.time_passes:
            return
        from . import timing

        news = {
            phase: seconds - self._reported.get(phase, 0.0)
            for phase, seconds in self.times.items()
            if seconds != self._reported.get(phase)
        }
        self._reported = dict(self.times)
        timing.report(self.name if disjoint else f"{self.name}, where arrays overlap", news)

    def tile_ir(self) -> str:
        """The text of the IR as the front end made it, for readers."""
        return self.ir

    def _after_passes(self) -> Function:
        from tritium.passes import run_pipeline

        with COMPILING:
            if self._function is None:
                self._function = parse_function(self.located)
            if not self._optimised:
                self._note_places(self._function)
                for run in run_pipeline(self._function, self._pipeline()):
                    phase = f"pass {run.step}"
                    self.times[phase] = self.times.get(phase, 0.0) + run.seconds
                self._optimised = True
            return self._function

    def _note_places(self, function: Function) -> list[Loc | None]:
        self._places = [function.loc, *(op.loc for op in function.walk())]
        return self._places

    @property
    def places(self) -> list[Loc | None]:
        """Those of the kernel, and of its operations as they were traced, in order."""
        return self._places or self._note_places(parse_function(self.located))

    def _pipeline(self) -> str:
        from tritium.passes import contracted

        return contracted(self._passes()) if self.fuse else self._passes()

    def _passes(self) -> str:
        """The passes that the back end runs."""
        from tritium.passes import DEFAULT

        return DEFAULT

    def optimised_ir(self) -> str:
        """The text of the IR after the passes."""
        return function_text(self._after_passes())

    def _guarded(self, doing: str, step: Callable[[], Any]) -> Any:
        """Run a step that a user's program can't make fail; if it does, leave a report."""
        try:
            return step()
        except TritiumError:
            raise
        except Exception as problem:
            text = f"{doing} {self.name} failed: {type(problem).__name__}: {problem}"
            fault = InternalError(text)
            # The report shows it too.
            fault.__cause__ = problem
            parts = {
                "kernel.py": self._source,
                "kernel.ir": self.ir,
                "pipeline.txt": self._pipeline(),
            }
            if isinstance(problem, llvm.LLVMError) and problem.ir:
                parts["kernel.ll"] = problem.ir
            with contextlib.suppress(OSError):
                write_report(fault, parts)
            raise fault from problem


def refuse_read_only(code: KernelCode, kernel: str, bound: Bound, values: Sequence[Any]) -> None:
    """Raise E0514 where the kernel writes through a read-only array.

    ``values`` are the ``leaf_values`` of ``bound``.
    """
    for index in code.version(True).written:
        value = values[index]
        if isinstance(value, ArrayArgument) and not value.writable:
            name = bound.leaves()[index][0]
            argument = name.partition(".")[0]
            raise error("E0514", kernel=kernel, name=name, argument=argument)
