"""Programs that are suspended and resumed, in eager mode and from IR."""

from __future__ import annotations

import mmap
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.interp.launching import jit, launch, prepared

import tritium.language as tl
from tritium import interp
from tritium.diagnostics import TritiumError
from tritium.interp import grid as grids
from tritium.interp.grid import Cancelled, Fiber, Scheduler
from tritium.interp.memory import PAGE, shared_pages
from tritium.interp.waiting import Poll
from tritium.ir.core import Function
from tritium.ir.dtypes import int32
from tritium.ir.types import PointerType
from tritium.ops import families  # noqa: F401 - registers the operations
from tritium.ops.arith import Add
from tritium.ops.control import Return
from tritium.ops.create import Constant
from tritium.ops.memory import Load, Offset, Store
from tritium.ops.program import ProgramId

# ---- fibers --------------------------------------------------------------------------------------


def test_a_fiber_takes_turns_with_its_owner() -> None:
    seen: list[str] = []

    def body() -> None:
        seen.append("a")
        fiber.suspend()
        seen.append("b")

    fiber = Fiber(body)
    assert not fiber.resume()
    seen.append("between")
    assert fiber.resume()
    assert fiber.resume()
    assert seen == ["a", "between", "b"]


def test_what_the_body_raises_arrives_where_it_was_resumed() -> None:
    def body() -> None:
        fiber.suspend()
        raise KeyError("x")

    fiber = Fiber(body)
    fiber.resume()
    with pytest.raises(KeyError):
        fiber.resume()
    assert fiber.done


def test_cancelling_unwinds_the_body() -> None:
    seen: list[str] = []

    def body() -> None:
        try:
            fiber.suspend()
        except Cancelled:
            seen.append("unwound")
            raise

    fiber = Fiber(body)
    fiber.resume()
    threads = threading.active_count()
    fiber.cancel()
    assert seen == ["unwound"]
    assert fiber.done
    assert threading.active_count() == threads - 1


def test_a_fiber_that_never_ran_is_cancelled() -> None:
    fiber = Fiber(lambda: pytest.fail("ran"))
    fiber.cancel()
    assert fiber.resume()


def test_numpys_error_state_is_inherited() -> None:
    seen: list[Any] = []
    with np.errstate(over="call"):
        Fiber(lambda: seen.append(np.geterr()["over"])).resume()
    assert seen == ["call"]


# ---- the scheduler -------------------------------------------------------------------------------


def run(extents: tuple[int, int, int], body: Callable[[Scheduler, Any], None]) -> None:
    scheduler = Scheduler(extents, lambda program: body(scheduler, program))
    scheduler.run()


def test_without_suspension_there_is_one_thread() -> None:
    seen: list[Any] = []
    run((3, 2, 1), lambda _, program: seen.append((program, threading.current_thread())))
    assert [program for program, _ in seen] == [
        (0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (1, 1, 0), (2, 1, 0),
    ]  # fmt: skip
    assert {thread for _, thread in seen} == {threading.current_thread()}


def test_one_waits_for_a_later_one() -> None:
    seen: list[str] = []
    ready: list[int] = []

    def body(scheduler: Scheduler, program: Any) -> None:
        x = program[0]
        seen.append(f"begin {x}")
        if x == 0:
            while not ready:
                scheduler.suspend()
        if x == 3:
            ready.append(1)
        seen.append(f"end {x}")

    run((5, 1, 1), body)
    begins = [int(each[-1]) for each in seen if each.startswith("begin")]
    assert begins == [0, 1, 2, 3, 4]
    assert seen.index("end 3") < seen.index("end 0") < seen.index("begin 4")


def test_later_ones_wait_for_a_suspended_one() -> None:
    """Program 2 waits for 0, which waits for 1: every program starts in order and all end."""
    done: list[int] = []

    def body(scheduler: Scheduler, program: Any) -> None:
        x = program[0]
        waits_for = {0: 1, 2: 0, 5: 4}.get(x)
        while waits_for is not None and waits_for not in done:
            scheduler.suspend()
        done.append(x)

    run((6, 1, 1), body)
    assert sorted(done) == [0, 1, 2, 3, 4, 5]
    assert done.index(1) < done.index(0) < done.index(2)


@pytest.mark.parametrize("count", [2, 64])
def test_a_barrier_of_all_programs(count: int) -> None:
    arrived: list[int] = []
    left: list[int] = []

    def body(scheduler: Scheduler, program: Any) -> None:
        for round_number in range(3):
            arrived.append(program[0])
            while len(arrived) < count * (round_number + 1):
                scheduler.suspend()
        left.append(program[0])

    run((count, 1, 1), body)
    assert sorted(left) == list(range(count))


def test_a_failure_ends_the_suspended_ones() -> None:
    threads = threading.active_count()
    ended: list[int] = []

    def body(scheduler: Scheduler, program: Any) -> None:
        if program[0] == 3:
            raise ValueError("3")
        try:
            while True:
                scheduler.suspend()
        finally:
            ended.append(program[0])

    with pytest.raises(ValueError, match="3"):
        run((5, 1, 1), body)
    assert sorted(ended) == [0, 1, 2]
    assert threading.active_count() == threads


def poll(address: int, state: object = 0) -> Poll:
    return Poll(address, frozenset([address // PAGE]), lambda: state)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other thread may write what programs poll: one that watches tests doesn't."""
    monkeypatch.setattr(grids, "outsiders", lambda launching, pages: False)


@pytest.mark.usefixtures("alone")
def test_programs_that_wait_forever() -> None:
    def body(scheduler: Scheduler, program: Any) -> None:
        while True:
            scheduler.suspend(poll(0x1000 + program[0]))

    with pytest.raises(TritiumError) as caught:
        run((3, 1, 1), body)
    assert caught.value.code == "E0702"
    assert "(0, 0, 0) for a change at 0x1000, (1, 0, 0) for a change at" in caught.value.message
    assert "must write" in caught.value.help


@pytest.mark.usefixtures("alone")
def test_no_more_programs_wait_than_there_may_be_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "MOST_SUSPENDED", 4)
    started: list[int] = []

    def body(scheduler: Scheduler, program: Any) -> None:
        started.append(program[0])
        while True:
            scheduler.suspend(poll(0x1000))

    with pytest.raises(TritiumError) as caught:
        run((100, 1, 1), body)
    assert "no more than 4 programs" in caught.value.help
    assert started == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("length", [1, 2, 3, 300])
def test_a_round_of_states_is_noticed(length: int) -> None:
    """A program that polls many places in turn waits for ever like any other."""
    passes: list[int] = []

    def body(scheduler: Scheduler, program: Any) -> None:
        while True:
            passes.append(1)
            scheduler.suspend(poll(0x1000, len(passes) % length))

    with pytest.raises(TritiumError) as caught:
        run((1, 1, 1), body)
    assert caught.value.code == "E0702"
    assert len(passes) <= 4 * length + 4


@pytest.mark.usefixtures("alone")
def test_programs_that_count_end() -> None:
    """No program that gives up in the end is ended before, however long that takes."""
    ended: list[int] = []

    def body(scheduler: Scheduler, program: Any) -> None:
        for attempt in range(3000):
            scheduler.suspend(poll(0x1000, attempt))
        ended.append(program[0])

    run((3, 1, 1), body)
    assert sorted(ended) == [0, 1, 2]


@pytest.mark.usefixtures("alone")
def test_what_changes_memory_begins_anew() -> None:
    ready: list[int] = []

    def body(scheduler: Scheduler, program: Any) -> None:
        if program[0] == 0:
            while len(ready) < 500:
                scheduler.suspend(poll(0x1000))
            return
        for step in range(500):
            ready.append(step)
            scheduler.progressed()
            scheduler.suspend(poll(0x2000))

    run((2, 1, 1), body)


@pytest.mark.usefixtures("alone")
def test_the_end_of_a_program_leaves_those_that_wait() -> None:
    def body(scheduler: Scheduler, program: Any) -> None:
        attempt = 0
        while program[0] < 2 or attempt < 50:
            attempt += 1
            scheduler.suspend(poll(0x1000, attempt if program[0] == 2 else 0))

    with pytest.raises(TritiumError) as caught:
        run((3, 1, 1), body)
    assert "(0, 0, 0) for a change at 0x1000, (1, 0, 0) for a change at" in caught.value.message
    assert "(2, 0, 0)" not in caught.value.message


def test_another_thread_may_make_programs_go_on() -> None:
    ready: list[int] = []
    late = threading.Timer(0.3, ready.append, [1])

    def body(scheduler: Scheduler, program: Any) -> None:
        if program[0] == 0:
            late.start()
        while not ready:
            scheduler.suspend(poll(0x1000))

    run((3, 1, 1), body)
    late.join()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="nobody tells what is shared")
def test_another_process_may_write_shared_memory() -> None:
    with mmap.mmap(-1, 2 * PAGE) as shared, mmap.mmap(-1, PAGE, mmap.MAP_PRIVATE) as own:
        places = [np.frombuffer(each, np.uint8).ctypes.data // PAGE for each in (shared, own)]
        assert shared_pages([places[0]])
        assert shared_pages([places[1], places[0] + 1])
        assert not shared_pages([places[1]])
        assert not shared_pages([])


# ---- kernels -------------------------------------------------------------------------------------


@jit
def two_stores(log_ptr, x_ptr):
    pid = tl.program_id(0)
    before = tl.load(x_ptr)
    tl.store(x_ptr, before + 1)
    after = tl.load(x_ptr)
    tl.store(log_ptr + 2 * pid, before)
    tl.store(log_ptr + 2 * pid + 1, after)


def two_stores_ir() -> Function:
    """``two_stores`` in tile IR."""
    pointer = PointerType(int32)
    made = Function("two_stores", [("log_ptr", pointer, 1), ("x_ptr", pointer, 1)])
    block = made.body.block
    log, x = block.args

    def add(cls: Any, **fields: Any) -> Any:
        op = cls(**fields)
        block.append(op)
        results = op.make_results()
        return results[0] if results else None

    one = add(Constant, value=1, dtype=int32)
    pid = add(ProgramId, axis=0)
    before = add(Load, pointer=x)
    add(Store, pointer=x, value=add(Add, x=before, y=one))
    after = add(Load, pointer=x)
    first = add(Offset, pointer=log, offset=add(Add, x=pid, y=pid))
    add(Store, pointer=first, value=before)
    add(Store, pointer=add(Offset, pointer=first, offset=one), value=after)
    add(Return)
    return made


class Suspend(interp.Client):
    """Suspends program 0 before its first store, once."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def program_begins(self, machine: interp.Machine) -> None:
        self.order.append(f"begin {machine.program[0]}")

    def program_ends(self, machine: interp.Machine) -> None:
        self.order.append(f"end {machine.program[0]}")

    def before_store(self, machine: Any, op: Any, addresses: Any, mask: Any, values: Any) -> None:
        if machine.program == (0, 0, 0) and "suspended 0" not in self.order:
            self.order.append("suspended 0")
            machine.baton.suspend()
            self.order.append("resumed 0")


ORDER = ["begin 0", "suspended 0", "begin 1", "end 1", "resumed 0", "end 0"]
LOG = [0, 1, 0, 1]
"""Program 0 has read 0 and is suspended; program 1 reads 0 and writes 1; program 0 writes 1."""


def run_two(executor: str, log: np.ndarray, x: np.ndarray, clients: list[Any]) -> None:
    if executor == "ir":
        interp.run_ir(two_stores_ir(), [log, x], (2,), clients=clients)
    else:
        launch(two_stores, (2,), options={"clients": clients}, log_ptr=log, x_ptr=x)


@pytest.mark.parametrize("executor", ["eager", "ir"])
def test_program_0_is_suspended_while_program_1_runs(executor: str) -> None:
    log, x, client = np.full(4, -1, np.int32), np.zeros(1, np.int32), Suspend()
    run_two(executor, log, x, [client])
    assert client.order == ORDER
    assert log.tolist() == LOG
    assert x[0] == 1
    run_two(executor, log, x := np.zeros(1, np.int32), [])
    assert log.tolist() == [0, 1, 1, 2]
    assert x[0] == 2


def programs(executor: str, log: np.ndarray, x: np.ndarray, clients: list[Any]) -> list[Fiber]:
    launched: Any
    if executor == "ir":
        launched = interp.Evaluator(two_stores_ir(), [log, x], (2,), clients=clients)
    else:
        arguments, ranges = prepared(two_stores, {"log_ptr": log, "x_ptr": x})
        launched = interp.EagerLaunch(two_stores, arguments, (2,), ranges, clients=clients)
    return [launched.program((index, 0, 0)) for index in range(2)]


@pytest.mark.parametrize("executor", ["eager", "ir"])
def test_programs_by_hand(executor: str) -> None:
    log, x, client = np.full(4, -1, np.int32), np.zeros(1, np.int32), Suspend()
    zero, one = programs(executor, log, x, [client])
    assert not zero.resume()
    assert log.tolist() == [-1, -1, -1, -1]
    assert one.resume()
    assert log.tolist() == [-1, -1, 0, 1]
    assert zero.resume()
    assert client.order == ORDER
    assert log.tolist() == LOG


@pytest.mark.parametrize("executor", ["eager", "ir"])
def test_a_program_that_is_left_suspended_can_be_ended(executor: str) -> None:
    log, x = np.full(4, -1, np.int32), np.zeros(1, np.int32)
    zero, _ = programs(executor, log, x, [Suspend()])
    zero.resume()
    zero.cancel()
    assert x[0] == 0


@jit
def wait_for_next(flags_ptr, n, PATIENCE: tl.constexpr):
    """Each program waits until the one after it is done; the last one waits for none."""
    pid = tl.program_id(0)
    if pid + 1 < n:
        while tl.load(flags_ptr + pid + 1, volatile=True) == 0:
            pass
    tl.store(flags_ptr + pid, 1)


def test_a_loop_that_waits_lets_others_run() -> None:
    flags = np.zeros(20, np.int32)
    launch(wait_for_next, (20,), flags_ptr=flags, n=20, PATIENCE=0)
    assert flags.all()


@pytest.mark.usefixtures("alone")
def test_a_loop_that_waits_forever_is_an_error() -> None:
    flags = np.zeros(20, np.int32)
    with pytest.raises(TritiumError) as caught:
        launch(wait_for_next, (3,), flags_ptr=flags, n=20, PATIENCE=0)
    assert caught.value.code == "E0702"
    assert f"(2, 0, 0) for a change at {flags.ctypes.data + 12:#x}" in caught.value.message


@jit
def for_ever(flags_ptr, out_ptr):
    """A loop without a condition, which the front end doesn't have."""
    while True:
        if tl.load(flags_ptr, volatile=True) != 0:
            break
        if tl.program_id(0) == 2:
            tl.store(flags_ptr, 1)
    tl.store(out_ptr + tl.program_id(0), 1)


@pytest.mark.usefixtures("alone")
def test_a_loop_without_a_condition_waits_too() -> None:
    flags, out = np.zeros(1, np.int32), np.zeros(4, np.int32)
    launch(for_ever, (4,), flags_ptr=flags, out_ptr=out)
    assert out.all()
    flags[:], out[:] = 0, 0
    with pytest.raises(TritiumError) as caught:
        launch(for_ever, (2,), flags_ptr=flags, out_ptr=out)
    assert caught.value.code == "E0702"
    assert not out.any()


@jit
def opened(flags_ptr, pair):
    return tl.load(flags_ptr + pair[0], volatile=True) != 0


@jit
def holds_much(flags_ptr, n, KIND: tl.constexpr, NAME: tl.constexpr):
    scale, nothing, dtype = 1.5, None, KIND
    pair = (0, (n, True))
    line = tl.arange(0, 4) * scale
    block = tl.make_block_ptr(flags_ptr, (n,), (1,), (0,), (4,), (0,))
    while not opened(flags_ptr, pair):
        line = tl.where(line < 9, line, 0.0).to(dtype)
        pair = (pair[0], (min(n, 7), nothing is None))
    tl.store(block, line.to(tl.int32))


@pytest.mark.usefixtures("alone")
def test_a_state_of_all_kinds_of_values() -> None:
    with pytest.raises(TritiumError) as caught:
        launch(holds_much, (2,), flags_ptr=np.zeros(4, np.int32), n=4, KIND=tl.float32, NAME="x")
    assert caught.value.code == "E0702"


@jit
def holds_an_iterator(flags_ptr, out_ptr, passes: tl.constexpr):
    rest = iter(range_of(passes))
    while tl.load(flags_ptr, volatile=True) == 0:
        if next(rest, None) is None:
            break
    tl.store(out_ptr, 1)


range_of = range


@pytest.mark.usefixtures("alone")
def test_an_iterator_may_end_a_wait() -> None:
    out = np.zeros(1, np.int32)
    launch(holds_an_iterator, (2,), flags_ptr=np.zeros(1, np.int32), out_ptr=out, passes=500)
    assert out[0] == 1


PASSES: list[int] = []


@jit
def with_plain_python(flags_ptr, out_ptr, told: tl.constexpr):
    while tl.load(flags_ptr, volatile=True) == 0:
        told()
    tl.store(out_ptr, 1)


@pytest.mark.usefixtures("alone")
def test_plain_python_may_end_a_wait() -> None:
    """What it keeps is no kernel's variable, so nobody can tell that nothing changes."""
    flags, out = np.zeros(1, np.int32), np.zeros(1, np.int32)

    def told() -> None:
        PASSES.append(1)
        if len(PASSES) == 3000:
            flags[0] = 1

    launch(with_plain_python, (2,), flags_ptr=flags, out_ptr=out, told=told)
    assert out[0] == 1
    assert len(PASSES) >= 3000


@jit
def interrupted(x_ptr, stop: tl.constexpr):
    while tl.load(x_ptr, volatile=True) == 0:
        if tl.program_id(0) == 2:
            stop()


def test_ctrl_c_ends_every_program() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        launch(interrupted, (5,), x_ptr=np.zeros(1, np.int32), stop=stop)
    assert threading.active_count() == threads


@pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is not signal.default_int_handler, reason="SIGINT is taken"
)
def test_the_signal_reaches_a_program_on_another_thread() -> None:
    """Program 2 runs while the calling thread waits for it."""
    sent: list[bool] = []

    def stop() -> None:
        if not sent:
            sent.append(threading.current_thread() is not threading.main_thread())
            signal.raise_signal(signal.SIGINT)

    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        launch(interrupted, (5,), x_ptr=np.zeros(1, np.int32), stop=stop)
    assert sent == [True]
    assert threading.active_count() == threads
