"""Linear algebra over F2. A vector is an int: bit i is its coordinate i, and addition is XOR.

A linear map is the sequence of its columns, the images of the unit vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def bits(vector: int) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    while vector:
        low = vector & -vector
        yield low.bit_length() - 1
        vector ^= low


def apply(columns: Sequence[int], vector: int) -> int:
    """The image of ``vector``: the sum of the columns at its set bits."""
    image = 0
    for position in bits(vector):
        image ^= columns[position]
    return image


def images(columns: Sequence[int]) -> tuple[int, ...]:
    """The images of 0, 1, ..., 2**len(columns) - 1."""
    table = [0]
    for column in columns:
        table += [image ^ column for image in table]
    return tuple(table)


class Span:
    """The subspace of all sums of the vectors that were added.

    A *combination* is an int whose bit i says that the i-th added vector takes part in a sum.
    """

    __slots__ = ("_rows", "added")

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        self._rows: dict[int, tuple[int, int]] = {}
        self.added = 0
        for vector in vectors:
            self.add(vector)

    @property
    def rank(self) -> int:
        """The dimension of the subspace."""
        return len(self._rows)

    def add(self, vector: int) -> bool:
        """Add a vector; whether it was independent of those before it."""
        rest, combination = self.reduce(vector)
        position = self.added
        self.added += 1
        if not rest:
            return False
        self._rows[rest.bit_length()] = (rest, combination | 1 << position)
        return True

    def reduce(self, vector: int) -> tuple[int, int]:
        """A remainder that depends only on ``vector`` modulo the subspace, and a combination.

        ``vector`` is the remainder plus the combination's sum. Only vectors that were independent
        of those before them take part, so a sum uses no vector later than it has to.
        """
        rest = combination = 0
        while vector:
            top = vector.bit_length()
            row = self._rows.get(top)
            if row is None:
                rest |= 1 << (top - 1)
                vector ^= 1 << (top - 1)
            else:
                vector ^= row[0]
                combination ^= row[1]
        return rest, combination

    def bounds(self, vector: int) -> tuple[int, int]:
        """The smallest and the largest number among ``vector`` plus a member."""
        smallest = largest = self.reduce(vector)[0]
        for top in sorted(self._rows, reverse=True):
            if not largest >> (top - 1) & 1:
                largest ^= self._rows[top][0]
        return smallest, largest

    def __contains__(self, vector: int) -> bool:
        return self.reduce(vector)[0] == 0

    def extend(self, candidates: Iterable[int], most: int | None = None) -> list[int]:
        """Add the candidates that are independent, ``most`` of them at most, and return those."""
        taken: list[int] = []
        for candidate in candidates:
            if most is not None and len(taken) >= most:
                break
            if candidate not in self and self.add(candidate):
                taken.append(candidate)
        return taken


def rank(vectors: Iterable[int]) -> int:
    """The dimension of the subspace that the vectors span."""
    return Span(vectors).rank


def kernel(columns: Sequence[int]) -> list[int]:
    """A basis of the vectors whose image is 0.

    The highest set bit of each is set in no other, and the columns at those bits are the ones that
    depend on earlier columns.
    """
    span = Span()
    found = []
    for position, column in enumerate(columns):
        rest, combination = span.reduce(column)
        if not rest:
            found.append(combination | 1 << position)
        span.add(column)
    return found


def intersection(left: Sequence[int], right: Sequence[int]) -> list[int]:
    """A basis of the vectors that both sequences span; vectors of ``left`` where they serve."""
    theirs = Span(right)
    whole = [vector for vector in left if vector in theirs]
    mine = (1 << len(left)) - 1
    sums = (apply(left, found & mine) for found in kernel([*left, *right]))
    return Span().extend([*whole, *sums])
