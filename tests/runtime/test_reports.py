"""Prints and checks at run time, compiled and interpreted alike."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.runtime import reports

EXECUTORS = ["cpu", "interp"]


def on(kernel: Any, executor: str) -> Any:
    return kernel if executor == "cpu" else kernel.interpret


@tritium.jit
def prints(x, n: tl.constexpr, hex: tl.constexpr):
    at = tl.arange(0, n)
    value = tl.load(x + at)
    tl.device_print("value: ", value, hex=hex)
    tl.device_print("two", value.to(tl.int32), tl.program_id(0))
    tl.device_print("done")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_prints(executor: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([1.5, -2.0, 0.25], np.float32)
    for _ in range(2):
        on(prints, executor)[(1,)](x, n=3, hex=False)
        assert capsys.readouterr().out.splitlines() == [
            "pid (0, 0, 0) idx (0) value: 1.500000",
            "pid (0, 0, 0) idx (1) value: -2.000000",
            "pid (0, 0, 0) idx (2) value: 0.250000",
            "pid (0, 0, 0) idx (0) two: (operand 0) 1",
            "pid (0, 0, 0) idx (1) two: (operand 0) -2",
            "pid (0, 0, 0) idx (2) two: (operand 0) 0",
            "pid (0, 0, 0) idx () two: (operand 1) 0",
            "pid (0, 0, 0) done",
        ]
    on(prints, executor)[(1,)](x, n=1, hex=True)
    assert capsys.readouterr().out.splitlines()[0] == "pid (0, 0, 0) idx (0) value: 0x3fc00000"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_program_prints(executor: str, capsys: pytest.CaptureFixture[str]) -> None:
    on(prints, executor)[(50, 2)](np.ones(4, np.int8), n=4, hex=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 100 * 10
    want = {f"pid ({x}, {y}, 0) idx (3) value: 1" for x in range(50) for y in range(2)}
    assert want <= set(lines)


@tritium.jit
def checks(x, out, n: tl.constexpr):
    at = tl.arange(0, n)
    value = tl.load(x + n * tl.program_id(0) + at)
    tl.device_assert(value < 100, "too large", mask=at != 1)
    tl.store(out + n * tl.program_id(0) + at, value)


CHECK = 'tl.device_assert(value < 100, "too large", mask=at != 1)'


@pytest.mark.parametrize("executor", EXECUTORS)
def test_checks(executor: str) -> None:
    kernel = on(checks, executor)
    options = {"debug": True} if executor == "cpu" else {}
    x = np.arange(12, dtype=np.int32)
    x[[1, 4]] = 1000
    out = np.zeros_like(x)
    kernel[(4,)](x, out, n=3, **options)
    np.testing.assert_array_equal(out, x)
    x[8], out[:] = 1000, 0
    for _ in range(2):
        with pytest.raises(TritiumError) as caught:
            kernel[(4,)](x, out, n=3, **options)
        assert caught.value.code == "E0703"
        assert "(2, 0, 0), lane (2,): too large" in caught.value.message
        assert caught.value.loc is not None
        assert caught.value.loc.file == __file__
        with open(__file__, encoding="utf-8") as file:
            assert file.read().splitlines()[caught.value.loc.line - 1].strip() == CHECK
        assert f"|     {'^' * len(CHECK)}\n" in f"{caught.value}\n"
    assert (out[6:9] == 0).all()
    x[8] = 0
    kernel[(4,)](x, out, n=3, **options)
    np.testing.assert_array_equal(out, x)


def test_each_launch_raises_its_own_problems() -> None:
    raised = {"good": 0, "bad": 0}

    def launches(name: str, x: np.ndarray[Any, Any]) -> None:
        out = np.zeros_like(x)
        for _ in range(200):
            try:
                checks[(1,)](x, out, n=3, debug=True)
            except TritiumError:
                raised[name] += 1

    arrays = {"good": np.zeros(3, np.int32), "bad": np.full(3, 1000, np.int32)}
    threads = [threading.Thread(target=launches, args=each) for each in arrays.items()]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert raised == {"good": 0, "bad": 200}


@tritium.jit
def meets(mine, theirs, out, failing):
    tl.atomic_xchg(mine, 1)
    looks = 0
    while (tl.atomic_load(theirs) == 0) & (looks < 1 << 28):
        looks += 1
    tl.store(out, tl.atomic_load(theirs))
    tl.device_assert(tl.arange(0, 8) != failing, "met")


def test_launches_of_two_threads_run_side_by_side() -> None:
    """Each kernel waits for the other's, and fails in a lane of its own."""
    flags = np.zeros((2, 16), np.int32)
    out = np.zeros((2, 16), np.int32)
    raised: list[Any] = [None, None]
    begin = threading.Barrier(2)
    met, nobody = np.ones(1, np.int32), np.zeros(1, np.int32)
    meets[(1,)](met, met, nobody, -1, debug=True)

    def launch(me: int) -> None:
        begin.wait()
        try:
            meets[(1,)](flags[me], flags[1 - me], out[me], 3 + me, debug=True)
        except TritiumError as problem:
            raised[me] = problem.message

    threads = [threading.Thread(target=launch, args=(me,)) for me in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert out[:, 0].tolist() == [1, 1]
    assert [f"lane ({3 + me},): met" in raised[me] for me in range(2)] == [True, True]
    assert reports._PROBLEMS == {}


def told_and_raised(problem: Exception, raised: BaseException) -> None:
    with reports.raising() as number:
        reports._PROBLEMS[number].append(problem)
        raise raised


def test_an_interrupt_stays_one() -> None:
    problem = ValueError("told")
    for raised, wanted in ((KeyboardInterrupt(), KeyboardInterrupt), (OSError(), ValueError)):
        with pytest.raises(wanted):
            told_and_raised(problem, raised)
        assert reports._PROBLEMS == {}
        with reports.raising():
            pass


class Interrupted:
    """A standard output at which Ctrl-C is pressed."""

    def __init__(self) -> None:
        self.writes = 0

    def write(self, text: str) -> None:
        self.writes += 1
        raise KeyboardInterrupt

    def flush(self) -> None:
        pass


@tritium.jit
def fails_or_prints(x):
    me = tl.program_id(0)
    tl.device_assert(me + tl.load(x) != 0, "the first")
    tl.device_print("me", me)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_interrupt_in_a_print_ends_the_launch(
    executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = Interrupted()
    with tritium.knobs.cpu.scope(), monkeypatch.context() as patch:
        tritium.knobs.cpu.num_threads = 1
        patch.setattr(sys, "stdout", output)
        with pytest.raises(KeyboardInterrupt):
            on(prints, executor)[(50,)](np.ones(4, np.int8), n=4, hex=False)
    assert output.writes == 1
    assert reports._PROBLEMS == {}


def test_an_interrupt_comes_before_failing_checks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.zeros(1, np.int32)
    with tritium.knobs.cpu.scope():
        tritium.knobs.cpu.num_threads = 1
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", Interrupted())
            with pytest.raises(KeyboardInterrupt):
                fails_or_prints[(2,)](x, debug=True)
        with pytest.raises(TritiumError, match="the first"):
            fails_or_prints[(2,)](x, debug=True)
    assert capsys.readouterr().out == "pid (1, 0, 0) idx () me: 1\n"


@tritium.jit
def tritium_report(x):
    tl.store(x, 1)


def test_what_reports_is_known_by_what_it_does() -> None:
    """Not by its name, and in another process as well."""
    x = np.zeros(1, np.int32)
    assert tritium_report[(1,)](x).code.plain
    y = np.zeros(3, np.int32)
    assert not checks.warmup(y, y, n=3, grid=(1,), debug=True).code.plain
    assert checks.warmup(y, y, n=3, grid=(1,)).code.plain


def test_compiled_kernels_check_only_for_debugging() -> None:
    x, out = np.full(3, 1000, np.int32), np.zeros(3, np.int32)
    checks[(1,)](x, out, n=3)
    np.testing.assert_array_equal(out, x)


@tritium.jit
def asserts(x, out):
    value = tl.load(x)
    assert value > 0, "positive"
    tl.store(out, value)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_assert_statements(executor: str) -> None:
    kernel = on(asserts, executor)
    options = {"debug": True} if executor == "cpu" else {}
    x, out = np.zeros(1, np.float32), np.zeros(1, np.float32)
    with pytest.raises(TritiumError, match="positive"):
        kernel[(1,)](x, out, **options)
    x[0] = 2
    kernel[(1,)](x, out, **options)
    assert out[0] == 2


@tritium.jit
def plain_print(x):
    print("x", tl.load(x))


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    """Compiled it is ``device_print``; in eager mode it is Python's own."""
    x = np.full(1, 5, np.int32)
    plain_print[(1,)](x)
    assert capsys.readouterr().out == "pid (0, 0, 0) idx () x: 5\n"
    plain_print.interpret[(1,)](x)
    assert capsys.readouterr().out == "x 5\n"


@tritium.jit
def both(x, out):
    tl.device_print("x", x)
    tl.static_print("at compile time", 3)
    tl.store(out, 1)


def test_pointers_are_printed_as_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    x, out = np.zeros(1, np.float32), np.zeros(1, np.int32)
    for executor in EXECUTORS:
        on(both, executor)[(1,)](x, out)
        assert f"idx () x: {x.ctypes.data:#018x}\n" in capsys.readouterr().out


@tritium.jit
def waits_for_all(counter, ended, n):
    tl.device_assert(tl.program_id(0) != 3, "three")
    tl.atomic_add(counter, 1)
    while tl.atomic_load(counter) < n:
        pass
    tl.store(ended + tl.program_id(0), 1)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_failing_check_ends_those_that_wait(executor: str) -> None:
    """In the midst of their wait, and not for want of threads: that is an error of its own."""
    options = {"debug": True} if executor == "cpu" else {}
    counter, ended = np.zeros(1, np.int32), np.zeros(8, np.int32)
    with pytest.raises(TritiumError, match=r"program \(3, 0, 0\): three") as caught:
        on(waits_for_all, executor)[(8,)](counter, ended, 8, **options)
    assert caught.value.__context__ is None
    assert ended.tolist() == [0] * 8
    assert counter[0] <= 7


def test_after_a_failing_check_no_program_starts() -> None:
    """Of those that wait for each other; the others know nothing of it."""
    counter, ended = np.zeros(1, np.int32), np.zeros(20000, np.int32)
    with pytest.raises(TritiumError, match="three"):
        waits_for_all[(20000,)](counter, ended, 20000, debug=True)
    assert counter[0] <= 1024
