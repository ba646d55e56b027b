"""How tests of the front end compile and run kernels, and look at what is refused."""

from __future__ import annotations

import builtins
import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tritium.language as tl
from tritium.diagnostics import Loc, TritiumError
from tritium.frontend import (
    ConstantSpec,
    PointerSpec,
    ScalarSpec,
    Spec,
    TraceOptions,
    TraceResult,
    TupleSpec,
    trace,
)
from tritium.interp import Known, array_argument, run_eager, run_ir
from tritium.interp import Scalar as EagerScalar
from tritium.ir import Function, Op, verify
from tritium.ir.dtypes import DType, from_numpy
from tritium.ops.callable import DeviceFunction

jit = DeviceFunction

I32 = ScalarSpec(tl.int32)
I64 = ScalarSpec(tl.int64)
F32 = ScalarSpec(tl.float32)
PTR = PointerSpec(tl.int32)


def spec_of(value: Any, constexpr: bool = False) -> Spec:
    """A description for tests: Python ints are int32 whatever their value, arrays pointers."""
    if isinstance(value, (ConstantSpec, PointerSpec, ScalarSpec, TupleSpec)):
        return value
    if constexpr or value is None or isinstance(value, (str, DeviceFunction)):
        return ConstantSpec(value)
    if isinstance(value, np.ndarray):
        return PointerSpec(from_numpy(value.dtype))
    if isinstance(value, tuple):
        return TupleSpec(tuple(map(spec_of, value)), getattr(value, "_fields", None))
    if isinstance(value, bool):
        return ScalarSpec(tl.int1)
    return I32 if isinstance(value, int) else F32


def compile(kernel: DeviceFunction, *args: Any, debug: bool = False) -> TraceResult:
    """Trace ``kernel`` for these values or descriptions, and verify what comes out."""
    names = list(kernel.python_signature.parameters)
    specs = {
        name: spec_of(value, name in kernel.constexpr_names) for name, value in zip(names, args)
    }
    result = trace(kernel, specs, TraceOptions(debug=debug))
    verify(result.function)
    return result


def ir(kernel: DeviceFunction, *args: Any, debug: bool = False) -> Function:
    """The tile IR of ``kernel`` for these values or descriptions."""
    return compile(kernel, *args, debug=debug).function


def ops(function: Function, cls: type[Op]) -> list[Any]:
    """The operations of one class, in program order."""
    return [op for op in function.walk() if isinstance(op, cls)]


def results(kernel: DeviceFunction, *args: Any, size: int = 1, dtype: Any = np.int32) -> Any:
    """What ``kernel`` stores through its first parameter, from the IR.

    The kernel is run as Python too, and must store the same.
    """
    out = np.zeros(size, dtype)
    function = ir(kernel, out, *args)
    run_ir(function, [out, *_flat(args, kernel)], (1,))
    eager = np.zeros(size, dtype)
    names = list(kernel.python_signature.parameters)
    arguments = {
        name: _eager(value, name in kernel.constexpr_names)
        for name, value in zip(names, (eager, *args))
    }
    run_eager(kernel, arguments, (1,))
    np.testing.assert_array_equal(out, eager)
    return out.tolist() if size > 1 else out[0]


def _flat(values: Any, kernel: DeviceFunction | None = None) -> list[Any]:
    """The run-time arguments among ``values``."""
    flat: list[Any] = []
    names = list(kernel.python_signature.parameters)[1:] if kernel else [""] * len(values)
    for name, value in zip(names, values):
        known = value is None or isinstance(value, (str, DeviceFunction, ConstantSpec))
        if known or (kernel and name in kernel.constexpr_names):
            continue
        flat += _flat(value) if isinstance(value, tuple) else [value]
    return flat


def _eager(value: Any, constexpr: bool) -> Any:
    if isinstance(value, ConstantSpec):
        return Known(value.value)
    if constexpr or value is None or isinstance(value, (str, DeviceFunction)):
        return Known(value)
    if isinstance(value, np.ndarray):
        return array_argument(value)
    if isinstance(value, tuple):
        parts = [_eager(each, False) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    dtype: DType = spec_of(value).dtype  # type: ignore[union-attr]
    return EagerScalar(dtype, value)


def underlined(loc: Loc | None) -> str:
    """The source text that a location covers, its first line only."""
    assert loc is not None
    line = linecache.getline(loc.file, loc.line).rstrip("\n")
    return line[loc.col : loc.end_col if loc.end_line == loc.line else None]


def refused(
    attempt: Callable[[], object] | DeviceFunction, code: str, *args: Any, at: str
) -> TritiumError:
    """The error of a kernel, or of a call: it has that code and underlines ``at``."""
    with pytest.raises(TritiumError) as caught:
        compile(attempt, *args) if isinstance(attempt, DeviceFunction) else attempt()
    problem = caught.value
    assert problem.code == code, str(problem)
    assert underlined(problem.loc) == at, str(problem)
    return problem


def array(values: Any, dtype: Any = np.int32) -> NDArray[Any]:
    """A NumPy array for a kernel."""
    return np.asarray(values, dtype)


_defined = itertools.count()


def define(source: str, name: str = "kernel", **names: Any) -> DeviceFunction:
    """The function ``name`` of a piece of source, executed with ``tl`` and ``names`` as globals."""
    file = f"<defined {next(_defined)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"tl": tl, "jit": jit, **names}
    exec(builtins.compile(source, file, "exec", dont_inherit=True), scope)
    function = scope[name]
    return function if isinstance(function, DeviceFunction) else jit(function)


def launch(kernel: DeviceFunction, grid: tuple[int, ...], *args: Any) -> Function:
    """Run a grid from the IR, arrays in place; running it as Python must give the same arrays."""
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in args]
    names = list(kernel.python_signature.parameters)
    arguments = {
        name: _eager(value, name in kernel.constexpr_names) for name, value in zip(names, copies)
    }
    function = ir(kernel, *args)
    first, *rest = args
    run_ir(function, [first, *_flat(rest, kernel)], grid)
    run_eager(kernel, arguments, grid)
    for mine, other in zip(args, copies):
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, other)
    return function
