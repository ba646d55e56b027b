"""What happens at a launch: bind, choose the executor, compile if need be, run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tritium import knobs
from tritium.backends import llvm
from tritium.diagnostics import TritiumError, error
from tritium.frontend.dependencies import Dependencies
from tritium.frontend.specialize import (
    ConstantSpec,
    PointerSpec,
    ScalarSpec,
    Spec,
    TupleSpec,
)
from tritium.ir import function_text

from . import manifest, targets
from .arrays import CPU, ArrayArgument, is_mock
from .binder import Bound, Grid, GridLike, resolve_grid
from .code import COMPILING, KernelCode
from .compiled import CompiledKernel

if TYPE_CHECKING:
    from .jit import JITFunction


@contextlib.contextmanager
def interpret(enabled: bool = True) -> Iterator[None]:
    """Run the kernels launched inside step by step as Python: a ``with`` block or a decorator.

    It holds for this thread (or asynchronous task). ``enabled=False`` runs them natively.
    """
    with knobs.runtime.scope():
        knobs.runtime.interpret = enabled
        yield


def run(
    kernel: JITFunction,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    grid: GridLike,
    warmup: bool,
    interpret: bool = False,
    arch: str | None = None,
) -> CompiledKernel | None:
    """Launch a kernel, or only compile it; the errors of the binder and of compilation.

    ``arch`` compiles for a GPU of that architecture, whatever there is here.
    """
    for hook in kernel.pre_run_hooks:
        hook(*args, **keywords)
    bound = kernel.binder.bind(args, keywords)
    bound.arch = arch
    if not (warmup or bound.usual):
        _refuse_mocks(kernel, bound)
    if interpret or bound.settings.interpret:
        if not warmup:
            _interpret(kernel, bound, grid)
        return None
    if warmup:
        return compiled_for(kernel, bound, warmup)
    extents = resolve_grid(grid, bound.values if callable(grid) else {}, kernel.__name__)
    compiled = compiled_for(kernel, bound)
    if compiled is not None:
        compiled.launch(bound, extents)
        kernel.launched(bound, compiled, args, keywords)
    return compiled


def _refuse_mocks(kernel: JITFunction, bound: Bound) -> None:
    for name, array in bound.arrays():
        if is_mock(array):
            raise error(
                "E0515",
                kernel=kernel.__name__,
                name=name,
                text=f"a {type(array.owner).__name__} without memory",
                hint="pass an array that has its elements; warmup takes any",
                argument=name.partition(".")[0],
            )


# ---- natively ------------------------------------------------------------------------------------


def compiled_for(kernel: JITFunction, bound: Bound, warmup: bool = False) -> CompiledKernel | None:
    """The code for these arguments, compiled if there is none.

    None when ``knobs.runtime.jit_cache_hook`` forbids that. Where a global that was compiled in
    has changed, the code is compiled anew, or E0518 raised for a kernel with frozen globals.
    """
    key = bound.key
    found = kernel.kernels.get(key)
    if found is not None:
        changed = found.dependencies.changed()
        if changed is None:
            return found
        if kernel.frozen_globals:
            raise error("E0518", kernel=kernel.__name__, name=changed)
    with COMPILING:
        again = kernel.kernels.get(key)
        if again is not None and again is not found:
            return again
        if _vetoed(kernel, bound, warmup):
            return None
        made = _compile(kernel, bound)
        kernel.kernels[key] = made
    hook = knobs.runtime.jit_post_compile_hook
    if hook is not None:
        hook(**_hook_arguments(kernel, bound, warmup))
    return made


def _compile(kernel: JITFunction, bound: Bound) -> CompiledKernel:
    times: dict[str, float] = {}
    code, dependencies = _code(kernel, bound, times)
    name = kernel.__name__ if kernel.repr is None else kernel.repr(_specialization(kernel, bound))
    made = CompiledKernel(kernel, name, bound.specs, bound.options, code, dependencies)
    try:
        version = code.version(True)
    finally:
        code.catch_up()
    if knobs.compilation.dump_ir:
        made.dump()
    listener = knobs.compilation.listener
    if listener is not None:
        listener(
            src=kernel,
            metadata=made.metadata._asdict(),
            metadata_group={},
            times=times,
            cache_hit=version.cached,
        )
    return made


def _code(
    kernel: JITFunction, bound: Bound, times: dict[str, float]
) -> tuple[KernelCode, Dependencies]:
    """The kernel in tile IR and what making it read: from the cache, else traced."""
    with llvm.timed(times, "capture"):
        source = kernel.src
    place = targets.of(kernel, bound)
    found, function = None, None
    with llvm.timed(times, "look up"):
        key = manifest.key(kernel, bound, place.target)
        if key is not None and not knobs.compilation.always_compile:
            found = manifest.find(key, kernel, bound)
    if found is None:
        from tritium.frontend import TraceOptions, trace

        with llvm.timed(times, "trace"):
            traced = trace(kernel, bound.specs, TraceOptions(debug=bound.options.debug))
            function = traced.function
            located = function_text(function, locations=True)
            text = located if place.locations else function_text(function)
            found = manifest.Found(text, located, traced.dependencies)
    fuse = bound.options.enable_fp_fusion
    common: dict[str, Any] = {
        "fuse": place.fuse if fuse is None else bool(fuse),
        "source": source,
        "located": found.located,
        "times": times,
        "function": function,
    }
    types = [spec.type for _, spec, _ in bound.leaves()]
    code = place.code(kernel, found.ir, types, bound.options, common)
    if function is not None and key is not None:
        code.later(functools.partial(_keep, key, kernel, found, times))
    return code, found.dependencies


def _keep(key: str, kernel: JITFunction, made: manifest.Found, times: dict[str, float]) -> None:
    with llvm.timed(times, "store"):
        manifest.keep(key, kernel, made)


def _specialization(kernel: JITFunction, bound: Bound) -> SimpleNamespace:
    """What a ``repr`` function is given."""
    return SimpleNamespace(
        name=kernel.__name__,
        fn=kernel,
        signature={name: spec.signature for name, spec in bound.specs.items()},
        constants={
            name: spec.value for name, spec in bound.specs.items() if isinstance(spec, ConstantSpec)
        },
        options=bound.options,
    )


def _vetoed(kernel: JITFunction, bound: Bound, warmup: bool) -> bool:
    hook = knobs.runtime.jit_cache_hook
    return hook is not None and bool(hook(**_hook_arguments(kernel, bound, warmup)))


def _hook_arguments(kernel: JITFunction, bound: Bound, warmup: bool) -> dict[str, Any]:
    special = _specialization(kernel, bound)
    key = str(bound.key)
    types = ", ".join(f"{name}: {each}" for name, each in special.signature.items())
    module = kernel.__module__
    return {
        "key": key,
        "repr": f"{kernel.__name__}[num_warps={bound.options.num_warps}]({types})",
        "fn": SimpleNamespace(module=module, name=kernel.__name__, jit_function=kernel),
        "compile": {
            "key": key,
            "signature": special.signature,
            "constants": special.constants,
            "device": int(bound.device.partition(":")[2] or 0),
            **bound.options,
        },
        "is_manual_warmup": warmup,
        "already_compiled": False,
    }


# ---- in the interpreter --------------------------------------------------------------------------


def _interpret(kernel: JITFunction, bound: Bound, grid: GridLike) -> None:

    from . import verdict

    extents = resolve_grid(grid, bound.values, kernel.__name__)
    verdict.refuse_read_only(kernel, bound)
    with _reachable(kernel, bound) as reached:
        _step(kernel, bound, extents, reached)


def _step(
    kernel: JITFunction,
    bound: Bound,
    extents: Grid,
    reached: Callable[[ArrayArgument], ArrayArgument],
) -> None:
    from tritium import interp

    from . import verdict

    arguments = {
        name: _interpreted(spec, bound.described[name], reached)
        for name, spec in bound.specs.items()
    }
    arrays = [(name, reached(array)) for name, array in bound.arrays()]
    ranges = [
        interp.Range(array.low, array.high, name, array.writable)
        for name, array in arrays
        if array.bounded
    ]
    try:
        interp.run_eager(
            kernel,
            arguments,
            extents,
            ranges,
            closed=all(array.bounded for _, array in arrays),
            enable_fp_fusion=bound.options.enable_fp_fusion,
        )
    except TritiumError as problem:
        said = verdict.compilers_words(kernel, bound, problem)
        if said is problem:
            raise
        raise said.with_traceback(problem.__traceback__) from problem.__cause__


@contextlib.contextmanager
def _reachable(
    kernel: JITFunction, bound: Bound
) -> Iterator[Callable[[ArrayArgument], ArrayArgument]]:
    """Gives arrays in the CPU's memory: those of a GPU have copies there inside the ``with``."""
    if bound.device == CPU:
        yield lambda array: array
        return
    from .cuda import devices, memory, problems
    from .cuda.library import CudaFailure, Unavailable

    name = kernel.__name__
    try:
        device = devices.get(int(bound.device.partition(":")[2]))
    except Unavailable as problem:
        raise problems.unavailable(name, bound.device, problem) from None
    far = [array for _, array in bound.arrays() if array.device != CPU]
    try:
        with memory.on_host(device, far) as copied:
            yield lambda array: array if array.device == CPU else copied(array)
    except CudaFailure as problem:
        raise problems.failed(name, device, problem) from None


def _interpreted(spec: Spec, value: Any, reached: Callable[[ArrayArgument], ArrayArgument]) -> Any:
    from tritium import interp

    if isinstance(spec, ConstantSpec):
        return None if spec.value is None else interp.Known(spec.value)
    if isinstance(spec, ScalarSpec):
        return interp.Scalar(spec.dtype, value)
    if isinstance(spec, PointerSpec):
        return interp.Pointer(spec.dtype, reached(value).address, spec.const)
    assert isinstance(spec, TupleSpec)
    parts = [_interpreted(each, part, reached) for each, part in zip(spec.elements, value)]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
