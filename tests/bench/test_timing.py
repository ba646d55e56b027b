"""What is called how often, and what is made of the times; the clock is one of the test's own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tritium.bench import do_bench, timing, waiting_for


class Clock:
    """Stands still but for what calls take."""

    def __init__(self, *seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.calls = 0
        self.waits = 0

    def call(self) -> None:
        self.now += self.seconds[self.calls % len(self.seconds)]
        self.calls += 1

    def wait(self) -> None:
        self.waits += 1

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    def made(*seconds: float) -> Clock:
        found = Clock(*seconds)
        monkeypatch.setattr(timing, "time", found)
        return found

    return made


def test_quantiles_in_milliseconds(clock: Any) -> None:
    # After the first call, five for the estimate of 2 ms and five to warm up: 1, 2, 3 ms in turn.
    slow = clock(1e-3, 2e-3, 3e-3)
    found = do_bench(slow.call, warmup=10, rep=24, quantiles=(0.5, 0.0, 1.0), wait=slow.wait)
    np.testing.assert_allclose(found, [2, 1, 3])
    assert slow.calls == 1 + 5 + round(10 / 2.2) + round(24 / 2.2)
    assert slow.waits == 1 + 1 + round(24 / 2.2)


def test_short_calls_are_timed_together(clock: Any) -> None:
    short = clock(1e-6)
    (median,) = do_bench(short.call, warmup=0, rep=1)
    assert median == pytest.approx(1e-3)
    assert short.calls == 1 + 5 + 200 * 5


def test_at_least_one_sample(clock: Any) -> None:
    slow = clock(1.0)
    assert do_bench(slow.call, warmup=0, rep=0) == pytest.approx([1000.0])
    assert slow.calls == 1 + 5 + 1


def test_the_clock_is_the_system_s() -> None:
    (median,) = do_bench(lambda: time.sleep(0.002), warmup=0, rep=4)
    assert median >= 2


def test_nothing_to_wait_for_on_the_cpu() -> None:
    assert waiting_for("cpu") is None
