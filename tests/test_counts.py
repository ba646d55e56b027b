"""The closing table of generated cases."""

from __future__ import annotations

from tests.counts import PROPERTY, lines, note


def test_the_table() -> None:
    said: list[tuple[str, object]] = []

    def record(name: str, value: object) -> None:
        said.append((name, value))

    note(record, "interpreter", "math.exp", 3)
    note(record, "CPU", "math.exp", 5)
    note(record, "CPU", "math.log", 7)
    note(record, "CPU", "arith.add", 11)
    assert {name for name, _ in said} == {PROPERTY}
    table = [line.split() for line in lines(value for _, value in said)]
    assert table == [
        ["CPU", "interpreter"],
        ["arith", "11", "0"],
        ["math", "12", "3"],
        ["all", "23", "3"],
    ]


def test_no_table_without_cases() -> None:
    assert lines([]) == []
