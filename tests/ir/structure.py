"""Structural equality of functions: everything but the names of values."""

from __future__ import annotations

from tritium.ir import Function, Op, Region, Value, attribute_text


def assert_equal(left: Function, right: Function, *, locations: bool = False) -> None:
    """Raise AssertionError at the first place where two functions differ."""
    assert left.name == right.name
    assert [(p.name, p.type, p.divisibility) for p in left.params] == [
        (p.name, p.type, p.divisibility) for p in right.params
    ]
    if locations:
        assert left.loc == right.loc
    _regions(left.body, right.body, {}, locations)


def _regions(left: Region, right: Region, same: dict[Value, Value], locations: bool) -> None:
    assert [arg.type for arg in left.args] == [arg.type for arg in right.args]
    same.update(zip(left.args, right.args))
    assert len(left.ops) == len(right.ops)
    for mine, theirs in zip(left.ops, right.ops):
        _ops(mine, theirs, same, locations)


def _ops(left: Op, right: Op, same: dict[Value, Value], locations: bool) -> None:
    assert type(left) is type(right)
    assert [same[value] for value in left.operands] == right.operands
    assert left.bounds == right.bounds
    assert _attributes(left) == _attributes(right)
    assert [r.type for r in left.results] == [r.type for r in right.results]
    if locations:
        assert left.loc == right.loc
    assert len(left.regions) == len(right.regions)
    for mine, theirs in zip(left.regions, right.regions):
        _regions(mine, theirs, same, locations)
    same.update(zip(left.results, right.results))


def _attributes(op: Op) -> dict[str, tuple[type, str]]:
    return {key: (type(value), attribute_text(value)) for key, value in op.attributes.items()}
