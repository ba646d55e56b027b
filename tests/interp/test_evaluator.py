"""Compiled IR by the reference rules, against the same kernels run as Python."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from tests.interp import test_eager as eager
from tests.interp.launching import jit, launch

import tritium.language as tl
from tritium import interp
from tritium.diagnostics import InternalError, TritiumError
from tritium.frontend import ConstantSpec, PointerSpec, ScalarSpec, trace
from tritium.interp.evaluator import _prepare
from tritium.ir.core import Function, Op, Value, operand
from tritium.ir.dtypes import DType, float32, from_numpy, int1, int8, int32, uint8
from tritium.ir.types import PointerType, Type
from tritium.ops.callable import DeviceFunction
from tritium.ops.control import Return, Yield
from tritium.ops.memory import Load, Store


def compiled(kernel: DeviceFunction, given: dict[str, Any]) -> tuple[Function, list[Any]]:
    """The IR of a kernel for these arguments, and its run-time arguments."""
    specs: dict[str, Any] = {}
    args: list[Any] = []
    for name, value in given.items():
        if name in kernel.constexpr_names:
            specs[name] = ConstantSpec(value)
            continue
        if isinstance(value, eager.Raw):
            specs[name], value = PointerSpec(value.dtype), value.array
        elif isinstance(value, np.ndarray):
            specs[name] = PointerSpec(from_numpy(value.dtype))
        elif isinstance(value, interp.Scalar):
            specs[name] = ScalarSpec(value.dtype)
        else:
            specs[name] = ScalarSpec(float32 if isinstance(value, float) else int32)
        args.append(value)
    return trace(kernel, specs).function, args


def agree(kernel: DeviceFunction, grid: tuple[int, ...], **given: Any) -> list[np.ndarray]:
    """Run a kernel both ways on copies of its arrays; both must leave the same bytes."""
    results: list[list[np.ndarray]] = []
    for run in (run_python, run_compiled):
        copied = {name: copy_of(value) for name, value in given.items()}
        run(kernel, grid, copied)
        results.append([array for array in map(array_of, copied.values()) if array is not None])
    for python, ir in zip(*results):
        assert python.tobytes() == ir.tobytes()
    return results[0]


def array_of(value: Any) -> np.ndarray | None:
    value = value.array if isinstance(value, eager.Raw) else value
    return value if isinstance(value, np.ndarray) else None


def copy_of(value: Any) -> Any:
    if isinstance(value, eager.Raw):
        return eager.Raw(value.array.copy(), value.dtype)
    return value.copy() if isinstance(value, np.ndarray) else value


def run_python(kernel: DeviceFunction, grid: tuple[int, ...], given: dict[str, Any]) -> None:
    launch(kernel, grid, **given)


def run_compiled(kernel: DeviceFunction, grid: tuple[int, ...], given: dict[str, Any]) -> None:
    function, args = compiled(kernel, given)
    interp.run_ir(function, args, grid)


RNG = np.random.default_rng(11)
FLOATS = RNG.standard_normal(1000).astype(np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


@jit
def everything(x_ptr, out_ptr, n, scale, R: tl.constexpr, C: tl.constexpr):
    rows, cols = tl.arange(0, R), tl.arange(0, C)
    ptrs = x_ptr + rows[:, None] * C + cols[None, :]
    acc = tl.zeros((R, C), tl.float32)
    best = tl.full((R,), float("-inf"), tl.float32)
    k = 0
    while k < n and not k > 6:
        x = tl.load(ptrs, mask=(cols[None, :] + k) % 3 != 0, other=scale)
        if k % 2 == 0:
            acc += x * scale
            low = tl.min(x, 1)
        else:
            acc -= tl.trans(tl.trans(x))
            low = tl.sum(x, axis=1) / C
        best = tl.maximum(best, low)
        ptrs += 1 if k > 2 else 2
        k += 1
    for i in tl.range(n, 0, -2):
        best += i
    out = tl.where(acc > best[:, None], acc, best[:, None])
    tl.store(out_ptr + rows[:, None] * C + cols[None, :], out.reshape(R, C))


@pytest.mark.parametrize("n", [0, 1, 5, 9])
def test_loops_branches_and_reductions(n: int) -> None:
    (_, out) = agree(
        everything, (1,), x_ptr=FLOATS, out_ptr=zeros(6, 10), n=n, scale=0.3, R=6, C=10
    )
    assert np.isfinite(out).all()


@jit
def early(out_ptr, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    if pid == 2:
        tl.store(out_ptr + pid, -1)
        return
    tl.store(out_ptr + pid, pid if pid > 1 else 100)


def test_early_returns() -> None:
    (out,) = agree(early, (6,), out_ptr=zeros(6, dtype=np.int32), n=5)
    assert out.tolist() == [100, 100, -1, 3, 4, 0]


def test_kernels_of_eager_mode() -> None:
    agree(
        eager.add_kernel,
        (4,),
        x_ptr=FLOATS,
        y_ptr=FLOATS[::-1].copy(),
        out_ptr=zeros(1000),
        n=1000,
        BLOCK_SIZE=256,
    )
    agree(eager.variance, (1,), x_ptr=FLOATS, out_ptr=zeros(3), B=100)
    agree(eager.composites, (1,), x_ptr=FLOATS, out_ptr=zeros(3, 20), R=3, C=20)
    agree(eager.with_a_loop, (1,), out_ptr=zeros(2, dtype=np.int32), n=10, FLAG=True)
    agree(
        eager.matmul,
        (3, 3),
        a_ptr=FLOATS,
        b_ptr=FLOATS,
        c_ptr=zeros(20, 20),
        M=20,
        N=20,
        K=30,
        BM=8,
        BN=8,
        BK=16,
    )
    agree(
        eager.offsets,
        (1,),
        x_ptr=np.arange(300, dtype=np.int32),
        out_ptr=zeros(2, dtype=np.int32),
        unsigned=interp.Scalar(uint8, 250),
        signed=interp.Scalar(int8, 30),
    )
    patterns = np.arange(8, dtype=np.uint8)
    agree(
        eager.booleans,
        (1,),
        x_ptr=eager.Raw(patterns, int1),
        out_ptr=eager.Raw(patterns + 1, int1),
        B=8,
    )


# ---- the evaluator itself ------------------------------------------------------------------------


def test_arguments_in_every_form() -> None:
    function, _ = compiled(eager.narrow, {"x_ptr": zeros(1), "out_ptr": zeros(1)})
    x, out = np.array([2.5], np.float32), zeros(1)
    ranges = [interp.byte_range(x), interp.byte_range(out)]
    forms: list[Any] = [out, out.ctypes.data, interp.Pointer(float32, out.ctypes.data)]
    for form in forms:
        out[:] = 0
        interp.run_ir(function, [x, form], (1,), ranges)
        assert out[0] == 2.5
    with pytest.raises(TypeError, match="takes 2 arguments"):
        interp.run_ir(function, [x], (1,))


def test_scalars_must_be_of_the_parameters_type() -> None:
    given = {"out_ptr": zeros(6, dtype=np.int32), "n": 5}
    function, (out, _) = compiled(early, given)
    with pytest.raises(TypeError, match="the parameter is int32"):
        interp.run_ir(function, [out, interp.Scalar(uint8, 5)], (1,))
    interp.run_ir(function, [out, np.int64(5)], (1,))
    assert out[0] == 100


def test_an_error_has_the_operations_place() -> None:
    function, _ = compiled(eager.constant, {"x_ptr": zeros(1, dtype=np.int32)})
    with pytest.raises(TritiumError) as caught:
        interp.run_ir(function, [0], (1,))
    assert caught.value.code == "E0608"
    loc = caught.value.loc
    assert loc is not None
    assert loc.file == eager.__file__
    assert loc.function == "constant"
    if sys.version_info >= (3, 11):
        with pytest.raises(TritiumError) as python:
            launch(eager.constant, (1,), x_ptr=interp.Pointer(int32, 0))
        assert python.value.loc is not None
        assert (loc.line, loc.col) == (python.value.loc.line, python.value.loc.col)
        assert loc.end_col == python.value.loc.end_col


def test_a_read_only_array_is_not_written() -> None:
    out = zeros(6, dtype=np.int32)
    function, _ = compiled(early, {"out_ptr": out, "n": 5})
    out.flags.writeable = False
    with pytest.raises(TritiumError) as caught:
        interp.run_ir(function, [out, 5], (1,))
    assert caught.value.code == "E0514"


class Counts(interp.Client):
    """The largest number of values that are alive at a store."""

    def __init__(self) -> None:
        self.most = 0

    def after_store(self, machine: Any, op: Op, addresses: Any, mask: Any, values: Any) -> None:
        self.most = max(self.most, len(machine.values))


@jit
def long(out_ptr, N: tl.constexpr):
    x = tl.arange(0, 4)
    for _ in tl.static_range(N):
        x = x * 3 + 1
        tl.store(out_ptr + tl.arange(0, 4), x)


def test_values_are_dropped_after_their_last_use() -> None:
    most = []
    for count in (4, 64):
        out, client = zeros(4, dtype=np.int32), Counts()
        function, args = compiled(long, {"out_ptr": out, "N": count})
        interp.run_ir(function, args, (1,), clients=[client])
        most.append(client.most)
    assert most[0] == most[1]


def test_what_a_region_reads_stays_while_it_may_run_again() -> None:
    function, _ = compiled(
        everything,
        {"x_ptr": FLOATS, "out_ptr": zeros(6, 10), "n": 3, "scale": 0.5, "R": 6, "C": 10},
    )
    for op in function.walk():
        for region in op.regions:
            inside = {value for inner in region.walk() for value in inner.results}
            for step in _prepare(region.block):
                assert {*step.dead} <= {*inside, *region.args}


class Wrong(Op):
    """Contradicts its own type rule."""

    x: Value = operand()
    answer: Any = None

    def infer(self) -> Type:
        return self.x.type

    def evaluate(self, machine: Any, x: Any) -> Any:
        return type(self).answer


@pytest.mark.parametrize(
    "answer", [np.float64(1), np.zeros(3, np.float32), (np.float32(1), np.float32(1)), None]
)
def test_an_operation_that_contradicts_itself_is_an_internal_error(answer: Any) -> None:
    function = Function("kernel", [("x", float32, 1)])
    op = Wrong(x=function.body.args[0])
    op.make_results()
    function.body.block.append(op)
    function.body.block.append(Return())
    Wrong.answer = answer
    with pytest.raises(InternalError):
        interp.run_ir(function, [1.0], (1,))
    Wrong.answer = np.float32(1)
    interp.run_ir(function, [1.0], (1,))


def test_memory_operations_of_pointers_to_pointers() -> None:
    inner = PointerType(int32)
    function = Function("kernel", [("table", PointerType(inner), 1), ("out", inner, 1)])
    block = function.body.block
    table, out = block.args

    def add(op: Op) -> Value:
        block.append(op)
        results = op.make_results()
        return results[0] if results else out

    value = add(Load(pointer=add(Load(pointer=table))))
    add(Store(pointer=out, value=value))
    block.append(Return())
    data = np.array([42], np.int32)
    pointers = np.array([data.ctypes.data], np.uint64)
    result = zeros(1, dtype=np.int32)
    interp.run_ir(function, [pointers, result], (1,))
    assert result[0] == 42


def test_every_dtype_passes_as_a_scalar() -> None:
    for dtype in tl.core.get_int_dtype(8, True), float32:
        assert isinstance(dtype, DType)
        assert interp.Scalar(dtype, 3).data().dtype == dtype.numpy
    assert interp.Scalar(int1, 2).data().item() is False
    assert interp.Scalar(tl.bfloat16, 1.0 + 2.0**-9).data().astype(float) == 1.0


def test_terminators_hand_on_their_operands() -> None:
    assert Yield(values=()).evaluate(None, (1, 2)) == (1, 2)
