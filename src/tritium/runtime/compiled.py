"""``CompiledKernel``: one specialisation of a kernel, compiled; what a launch returns."""

from __future__ import annotations

import collections
import functools
import keyword
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritium import knobs
from tritium.diagnostics import error
from tritium.frontend.dependencies import Dependencies
from tritium.frontend.specialize import Spec

from .binder import Bound, Grid, resolve_grid
from .code import KernelCode, refuse_read_only
from .options import Options
from .slots import fits

if TYPE_CHECKING:
    from .jit import JITFunction


class GPUTarget(collections.namedtuple("GPUTarget", "backend arch warp_size")):
    """Triton's name for what code is generated for: ``GPUTarget("cpu", "znver4", 0)``."""

    __slots__ = ()


class Stages(Mapping[str, Any]):
    """The stages of a compilation by name; text, or bytes. Those not kept are made on access.

    ``source`` is Python, ``ttir`` tile IR as the front end made it, ``optimised`` after the passes,
    ``llir`` LLVM IR. On the CPU ``nests`` shows how it was cut into loops, ``asm`` is assembly and
    ``object`` an object file; on a GPU ``homes`` shows who holds what, and there are ``ptx``,
    ``cubin`` and ``sass``.
    """

    def __init__(self, make: Mapping[str, Callable[[], Any]]) -> None:
        self._make = make
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._make

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)

    def __repr__(self) -> str:
        return f"Stages({', '.join(self)})"


class LazyDict:
    """What launch hooks get: a dictionary, parts of which are computed when it is asked for."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = dict(data)
        self.extras: list[tuple[Callable[..., Mapping[str, Any]], tuple[Any, ...]]] = []

    def get(self) -> dict[str, Any]:
        """All of it."""
        for function, args in self.extras:
            self.data = {**self.data, **function(*args)}
        self.extras.clear()
        return self.data

    def add(self, function: Callable[..., Mapping[str, Any]], args: tuple[Any, ...]) -> None:
        """Have the result of ``function(*args)`` added on demand."""
        self.extras.append((function, args))


class CompiledKernel:
    """One specialisation of a kernel: ``kernel[grid](*args)`` runs it with other arguments.

    ``asm`` holds the stages, ``metadata`` the options and facts as a named tuple, ``dependencies``
    what the compilation read. ``n_regs``, ``n_spills`` (registers of a thread, and how many of them
    were put in memory) and ``n_max_threads`` are 0 on the CPU.
    """

    def __init__(
        self,
        source: JITFunction,
        name: str,
        specs: Mapping[str, Spec],
        options: Options,
        code: KernelCode,
        dependencies: Dependencies,
    ) -> None:
        self.src = source
        self.name = name
        self.specs = dict(specs)
        self.options = options
        self.code = code
        self.dependencies = dependencies
        self.hash = code.key
        self.asm = Stages(
            {
                "source": lambda: source.src,
                "ttir": code.tile_ir,
                "optimised": code.optimised_ir,
                **code.stages(),
            }
        )

    @property
    def n_regs(self) -> int:
        """Registers of a thread."""
        return self.code.registers

    @property
    def n_spills(self) -> int:
        """Registers of a thread that were put in memory."""
        return self.code.spills

    @property
    def n_max_threads(self) -> int:
        """The most threads that a block of this code can have."""
        return self.code.most_threads

    @property
    def module(self) -> Any:
        """The driver's handle of the loaded code; None on the CPU."""
        return self.code.module

    @property
    def function(self) -> Any:
        """The driver's handle of the function; on the CPU the key of the code."""
        return self.code.function

    @property
    def kernel(self) -> bytes:
        """The binary."""
        binary: bytes = self.asm[self.code.binary]
        return binary

    @functools.cached_property
    def target(self) -> GPUTarget:
        """What it is compiled for."""
        return GPUTarget(*self.code.triton_target)

    @functools.cached_property
    def metadata(self) -> Any:
        """Options and facts, as a named tuple."""
        from tritium import __version__

        facts = {
            **self.options,
            "name": self.name,
            "hash": self.hash,
            "target": self.target,
            "tmem_size": 0,
            "global_scratch_size": 0,
            "global_scratch_align": 1,
            "profile_scratch_size": 0,
            "profile_scratch_align": 1,
            "warp_size": self.target.warp_size,
            "backend_name": self.target.backend,
            "triton_version": __version__,
            **self.code.facts(),
        }
        names = sorted(name for name in facts if not keyword.iskeyword(name))
        return collections.namedtuple("KernelMetadata", names)(**{n: facts[n] for n in names})

    @property
    def packed_metadata(self) -> tuple[int, int, int]:
        """``(num_warps, num_ctas, shared)``."""
        return self.options.num_warps, self.options.num_ctas, self.metadata.shared

    def launch_metadata(self, grid: Grid, stream: Any, *args: Any) -> LazyDict | None:
        """What launch hooks are told; None when there are none.

        ``args`` are the values of all parameters.
        """
        if not (knobs.runtime.launch_enter_hook.calls or knobs.runtime.launch_exit_hook.calls):
            return None
        told = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        describe = self.src.launch_metadata
        if describe is not None:
            named = dict(zip(self.src.arg_names, args))
            told.add(describe, (grid, self.metadata, named))
        return told

    # ---- launching -------------------------------------------------------------------------------

    def launch(self, bound: Bound, grid: Grid, stream: Any = None) -> None:
        """Run the grid with bound arguments. Raises E0514 for a read-only array it writes.

        ``stream`` is the handle of a stream of a GPU, by default the current one.
        """
        values = bound.leaf_values()
        refuse_read_only(self.code, self.name, bound, values)
        told = None
        if bound.settings.hooked:
            told = self.launch_metadata(grid, stream, *bound.values.values())
        if told is not None:
            knobs.runtime.launch_enter_hook(told)
        if 0 not in grid:
            self.code.launch(values, grid, stream)
        if told is not None:
            knobs.runtime.launch_exit_hook(told)

    @property
    def run(self) -> Callable[..., None]:
        """Triton's launcher: ``(gx, gy, gz, stream, function, packed_metadata, launch_metadata,
        enter_hook, exit_hook, *all_args)``, constexpr parameters included."""
        return self._run

    def _run(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: Any,
        function: Any,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Callable[..., object] | None,
        exit_hook: Callable[..., object] | None,
        *args: Any,
    ) -> None:
        bound = self._refit(args)
        values = bound.leaf_values()
        refuse_read_only(self.code, self.name, bound, values)
        grid = resolve_grid((grid_x, grid_y, grid_z), bound.values, self.name)
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if 0 not in grid:
            self.code.launch(values, grid, stream)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        """``kernel[grid](*args)``: all parameters by position, constexpr ones included.

        What the kernel was compiled for is not looked at again, except that an argument which its
        code can't take raises E0515.
        """

        def launch(*args: Any, stream: Any = None) -> None:
            from . import callsite

            with callsite.placing(self.src.arg_names):
                bound = self._refit(args)
                extents = resolve_grid(grid, bound.values, self.name)
                self.launch(bound, extents, stream)

        return launch

    def _refit(self, args: Sequence[Any]) -> Bound:
        bound = self.src.binder.bind(args, {})
        bound.specs = self.specs
        for name, spec, value in bound.leaves():
            if not fits(spec, value):
                text = f"it was compiled for {spec}, which {value!r:.60} is not"
                raise error(
                    "E0515",
                    kernel=self.name,
                    name=name,
                    text=text,
                    hint="launch the kernel itself: it compiles for each kind of argument",
                    argument=name.partition(".")[0],
                )
        return bound

    def dump(self) -> str:
        """Write every stage to ``knobs.cache.dump_dir``; returns the folder."""
        folder = os.path.join(knobs.cache.dump_dir, f"{self.name}-{self.hash[:16]}")
        os.makedirs(folder, exist_ok=True)
        for stage in self.asm:
            content = self.asm[stage]
            data = content if isinstance(content, bytes) else content.encode()
            with open(os.path.join(folder, f"{self.name}.{stage}"), "wb") as stream:
                stream.write(data)
        return folder

    def __repr__(self) -> str:
        return f"CompiledKernel({self.name}, {self.hash[:16]})"
