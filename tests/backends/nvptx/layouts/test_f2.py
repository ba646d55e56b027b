"""Linear algebra over F2, against enumeration of all sums."""

from __future__ import annotations

import itertools
from functools import reduce
from operator import xor

from hypothesis import given
from hypothesis import strategies as st

from tritium.backends.nvptx.layouts import f2

vectors = st.lists(st.integers(0, 63), max_size=6)


def sums(listed: list[int]) -> set[int]:
    chosen = itertools.product((0, 1), repeat=len(listed))
    return {reduce(xor, (v for v, c in zip(listed, choice) if c), 0) for choice in chosen}


def combine(listed: list[int], combination: int) -> int:
    return reduce(xor, (v for i, v in enumerate(listed) if combination >> i & 1), 0)


def test_bits_are_listed_from_the_lowest() -> None:
    assert list(f2.bits(0b101001)) == [0, 3, 5]


@given(vectors)
def test_images_are_those_of_counting(columns: list[int]) -> None:
    wanted = tuple(combine(columns, number) for number in range(1 << len(columns)))
    assert f2.images(columns) == wanted
    assert tuple(f2.apply(columns, number) for number in range(1 << len(columns))) == wanted


@given(vectors, st.integers(0, 63))
def test_a_span_has_all_sums_and_says_how(listed: list[int], vector: int) -> None:
    span = f2.Span(listed)
    members = sums(listed)
    assert 1 << span.rank == len(members)
    assert (vector in span) == (vector in members)
    rest, combination = span.reduce(vector)
    assert vector == rest ^ combine(listed, combination)
    assert {span.reduce(vector ^ member)[0] for member in members} == {rest}
    assert span.bounds(vector) == (
        min(vector ^ member for member in members),
        max(vector ^ member for member in members),
    )


@given(vectors)
def test_sums_use_no_vector_later_than_they_have_to(listed: list[int]) -> None:
    span = f2.Span(listed)
    for length in range(len(listed) + 1):
        for member in sums(listed[:length]):
            assert span.reduce(member)[1] < 1 << length


@given(vectors)
def test_the_kernel_is_what_maps_to_zero(columns: list[int]) -> None:
    found = f2.kernel(columns)
    zeros = {n for n in range(1 << len(columns)) if combine(columns, n) == 0}
    assert sums(found) == zeros
    tops = [vector.bit_length() for vector in found]
    assert len(set(tops)) == len(tops)
    for top in tops:
        assert sum(vector >> (top - 1) & 1 for vector in found) == 1


@given(vectors, vectors)
def test_an_intersection_is_that_of_the_sets(left: list[int], right: list[int]) -> None:
    found = f2.intersection(left, right)
    assert sums(found) == sums(left) & sums(right)
    assert f2.rank(found) == len(found)


@given(vectors, vectors, st.integers(0, 4))
def test_extend_takes_what_is_new(first: list[int], more: list[int], most: int) -> None:
    span = f2.Span(first)
    taken = span.extend(more)
    assert 1 << span.rank == len(sums([*first, *more]))
    assert f2.rank(first) + len(taken) == span.rank
    assert f2.Span(first).extend(more, most) == taken[:most]
