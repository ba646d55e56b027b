"""Converting a tile inside warps: lanes hand each other registers.

A shuffle takes one register of every lane and gives each lane that of one lane. So registers are
first exchanged inside a lane, by a condition on its number, until what the others want in round k
stands in the right register; then come the rounds; then registers are exchanged again.

With C the map from target to source places (register, lane, warp), written in blocks

    source register = A r + B l + G w        source lane = D r + E l + H w

round k gives lane l the target register k + N l from lane D k + F l + H w, where F = E + D N. Which
register a lane publishes must depend on its own number alone: M has to satisfy M F = B + A N, and
the lane l of warp w publishes P k + M l + (G + M H) w, where P = A + M D. N is chosen with the
lowest rank for which such an M exists: each unit of rank of N and M is one exchange of all
registers. Where the target has too few registers for that, because its lanes hold what is in
several registers of one lane of the source, there are more rounds than target registers, and the
exchanges afterwards choose. This contains the decomposition into swaps of register and lane bits
of the paper named in ``linear`` as the case of a permutation of bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from . import f2
from .dims import BLOCK, LANE, REGISTER, WARP
from .linear import LinearLayout

WORD_BITS = 32


def crossing(places: LinearLayout) -> str:
    """The outermost kind of place that elements change: block, warp, lane or register.

    ``places`` maps places of a target to those of a source. ``lane`` also where nothing leaves its
    thread but each picks its registers by its own number.
    """
    for name in (BLOCK, WARP, LANE):
        kept = places.keep_outputs([name])
        for input, bases in kept.inputs:
            stay = tuple(1 << i for i in range(len(bases)))
            if bases != (stay if input == name else (0,) * len(bases)):
                return name
    registers = places.keep_outputs([REGISTER])
    threads = (registers.bases(name) for name in (LANE, WARP, BLOCK))
    return LANE if any(map(any, threads)) else REGISTER


@dataclass(frozen=True)
class Exchange:
    """Words w and w XOR ``words`` change places in threads where ``lanes`` and ``warps`` say so.

    They do if an odd number of bits is set in the lane's number and ``lanes``, and the warp's and
    ``warps``, together. ``kept`` lists the words that are needed afterwards.
    """

    words: int
    lanes: int
    warps: int
    kept: tuple[int, ...]


@dataclass(frozen=True)
class Round:
    """Word ``published`` of each lane goes to the lanes that read there.

    Lane l reads from the lane that ``Shuffle`` gives for it, XOR ``lanes``.
    """

    published: int
    lanes: int


@dataclass(frozen=True)
class Shuffle:
    """A conversion inside warps, on words: registers packed together where both sides can.

    ``sources[w]`` lists the registers of source word w, ``targets[w]`` those of target word w, in
    the same order. Exchanges ``before`` are done on source words, round k makes the word k of what
    the exchanges ``after`` then turn into the target words, which may be fewer. Lane l of warp w
    reads in each round from the lane whose number is the XOR of ``lanes`` at the bits of l, of
    ``warps`` at those of w, and of the round's own ``lanes``.
    """

    sources: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    before: tuple[Exchange, ...]
    rounds: tuple[Round, ...]
    after: tuple[Exchange, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    element_bits: int

    @property
    def is_butterfly(self) -> bool:
        """Whether each round is an exchange with the lane whose number differs by a constant."""
        return not any(self.warps) and self.lanes == tuple(1 << i for i in range(len(self.lanes)))

    def moves(self, round: Round) -> bool:
        """Whether a round crosses lanes; if not, each lane keeps its word."""
        return bool(round.lanes) or not self.is_butterfly

    @property
    def instructions_per_word(self) -> int:
        """The 32-bit instructions that move one word."""
        return max(1, self.element_bits // WORD_BITS)

    @property
    def shuffles(self) -> int:
        """The shuffle instructions of a thread."""
        return self.instructions_per_word * sum(map(self.moves, self.rounds))

    @property
    def selects(self) -> int:
        """The select instructions of a thread."""
        exchanges = (*self.before, *self.after)
        return self.instructions_per_word * sum(len(exchange.kept) for exchange in exchanges)

    def __str__(self) -> str:
        kind = "butterfly" if self.is_butterfly else "indexed"
        return f"{self.shuffles} {kind} shuffles, {self.selects} selects"


@dataclass(frozen=True)
class _Blocks:
    """The blocks of C by columns, a column for each input bit; named as in the module's text."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    g: tuple[int, ...]
    d: tuple[int, ...]
    e: tuple[int, ...]
    h: tuple[int, ...]

    @classmethod
    def of(cls, places: LinearLayout) -> _Blocks:
        registers, lanes = (places.keep_outputs([name]) for name in (REGISTER, LANE))
        return cls(
            *(registers.bases(name) for name in (REGISTER, LANE, WARP)),
            *(lanes.bases(name) for name in (REGISTER, LANE, WARP)),
        )

    def without(self, pairs: Sequence[tuple[int, int]]) -> _Blocks:
        """Without those (source, target) register bits, which meet each other only."""
        left = {source for source, _ in pairs}
        gone = {target for _, target in pairs}
        top = max((vector.bit_length() for vector in (*self.a, *self.b, *self.g)), default=0)
        kept = [bit for bit in range(top) if bit not in left]

        def squeezed(vector: int) -> int:
            return sum((vector >> bit & 1) << i for i, bit in enumerate(kept))

        return _Blocks(
            tuple(squeezed(v) for i, v in enumerate(self.a) if i not in gone),
            tuple(map(squeezed, self.b)),
            tuple(map(squeezed, self.g)),
            tuple(v for i, v in enumerate(self.d) if i not in gone),
            self.e,
            self.h,
        )


def plan_shuffle(places: LinearLayout, element_bits: int) -> Shuffle:
    """The shuffles for a map from places of the target to places of the source, inside warps.

    ``places`` is ``target.invert_and_compose(source)``. Raises ``ValueError`` if it crosses warps,
    or what a thread takes depends on its block.
    """
    if crossing(places) not in (LANE, REGISTER):
        raise ValueError("elements would change warps")
    if any(places.keep_outputs([REGISTER, LANE]).bases(BLOCK)):
        raise ValueError("threads would choose by their block")
    blocks = _Blocks.of(places)
    pairs = _payload(blocks, element_bits)
    targets = _words(places.input_bits(REGISTER), [target for _, target in pairs])
    narrow, n = _choose(blocks.without(pairs))
    f, m = _solve(narrow, n)
    published = [a ^ f2.apply(m, d) for a, d in zip(narrow.a, narrow.d)]
    warps = [g ^ f2.apply(m, h) for g, h in zip(narrow.g, narrow.h)]
    rounds = tuple(
        Round(word, lanes) for word, lanes in zip(f2.images(published), f2.images(narrow.d))
    )
    return Shuffle(
        sources=_words(places.output_bits(REGISTER), [source for source, _ in pairs]),
        targets=targets,
        before=_exchanges(m, warps, sorted({round.published for round in rounds})),
        rounds=rounds,
        after=_exchanges(n, [0] * len(warps), range(len(targets))),
        lanes=tuple(f),
        warps=narrow.h,
        element_bits=element_bits,
    )


def _payload(blocks: _Blocks, element_bits: int) -> list[tuple[int, int]]:
    """Register bits (source, target) that stand for each other alone, enough to fill a word."""
    pairs: list[tuple[int, int]] = []
    for target, (vector, lanes) in enumerate(zip(blocks.a, blocks.d)):
        if element_bits << len(pairs) >= WORD_BITS:
            break
        others = (*blocks.a[:target], *blocks.a[target + 1 :], *blocks.b, *blocks.g)
        single = vector and not vector & (vector - 1)
        if single and not lanes and not any(other & vector for other in others):
            pairs.append((vector.bit_length() - 1, target))
    return pairs


def _words(register_bits: int, packed: list[int]) -> tuple[tuple[int, ...], ...]:
    """The registers of each word, those differing in the ``packed`` bits together."""
    inside = f2.images([1 << bit for bit in packed])
    outside = f2.images([1 << bit for bit in range(register_bits) if bit not in packed])
    return tuple(tuple(word | element for element in inside) for word in outside)


def _choose(blocks: _Blocks) -> tuple[_Blocks, list[int]]:
    """The columns of N; the blocks with columns of A and D for the rounds that had to be added.

    M exists if F maps nothing to 0 that B + A N doesn't. Lanes that E maps to 0, so that they read
    from one lane, and that B sends to several registers there, need N: either to a register that
    D sends to another lane, or to an added round, which has no D and brings B's register.
    """
    n = [0] * len(blocks.e)
    reached = f2.Span(blocks.e)
    wanted = f2.Span()
    chosen: list[int] = []
    added: list[int] = []
    for lanes in f2.kernel(blocks.e):
        register = f2.apply(blocks.b, lanes)
        rest, combination = wanted.reduce(register)
        if rest:
            combination = 1 << wanted.added
            wanted.add(register)
            bit = next((bit for bit, d in enumerate(blocks.d) if d not in reached), None)
            if bit is None:
                bit = len(blocks.d) + len(added)
                added.append(register)
            else:
                reached.add(blocks.d[bit])
            chosen.append(1 << bit)
        n[lanes.bit_length() - 1] = f2.apply(chosen, combination)
    return replace(blocks, a=(*blocks.a, *added), d=blocks.d + (0,) * len(added)), n


def _solve(blocks: _Blocks, n: Sequence[int]) -> tuple[list[int], list[int]]:
    """The columns of F = E + D N and of M with M F = B + A N."""
    f = [e ^ f2.apply(blocks.d, vector) for e, vector in zip(blocks.e, n)]
    goal = [b ^ f2.apply(blocks.a, vector) for b, vector in zip(blocks.b, n)]
    known = f2.Span(f)
    # What F doesn't reach is published to nobody: M may be anything there, and is 0.
    return f, [f2.apply(goal, known.reduce(1 << bit)[1]) for bit in range(len(f))]


def _exchanges(
    lanes: Sequence[int], warps: Sequence[int], wanted: Sequence[int]
) -> tuple[Exchange, ...]:
    """Exchanges that put word ``w + lanes(l) + warps(w)`` where w is, for each wanted w."""
    span = f2.Span()
    columns = [*lanes, *warps]
    independent = [vector for vector in columns if span.add(vector)]
    kept = tuple(wanted)
    if not independent:
        return ()
    basis = f2.Span(independent)
    factors = [basis.reduce(vector)[1] for vector in columns]
    made: list[Exchange] = []
    for number, vector in enumerate(independent):
        masks = sum((factor >> number & 1) << bit for bit, factor in enumerate(factors))
        here = masks & ((1 << len(lanes)) - 1)
        made.append(Exchange(vector, here, masks >> len(lanes), kept))
        kept = tuple(sorted({w ^ flip for w in kept for flip in (0, vector)}))
    return tuple(reversed(made))
