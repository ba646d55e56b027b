"""Linear layouts: maps over F2 from places (register, lane, warp) to positions in a tile.

Source: K. Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation
Using F2", arXiv 2505.23819.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from . import f2
from .dims import log2

Bits = tuple[tuple[str, int], ...]
"""Named dimensions, each with its number of bits."""


def _low_bits(outputs: Bits) -> dict[str, int]:
    """Where each output begins in a packed int."""
    positions = {}
    position = 0
    for name, width in reversed(outputs):
        positions[name] = position
        position += width
    return positions


def _move(value: int, outputs: Bits, positions: Mapping[str, int]) -> int:
    """A packed int with each output moved to its new position; those without one are dropped."""
    moved = 0
    for name, width in reversed(outputs):
        if name in positions:
            moved |= (value & ((1 << width) - 1)) << positions[name]
        value >>= width
    return moved


@dataclass(frozen=True)
class LinearLayout:
    """A linear map over F2: the image of a place is the XOR of the bases at its set bits.

    ``inputs`` holds, for each input dimension, the images of 1, 2, 4, ... there (with 0 in all
    others): its *bases*. ``outputs`` holds each output dimension with its number of bits. An image
    is packed into one int, the last output in the low bits: for the axes of a tile, its row-major
    index. Inputs stand the other way round, the innermost first.

    A basis that is 0 means that the places differing in that bit hold the same element.
    """

    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: Bits

    def __post_init__(self) -> None:
        for names in (self.input_names, self.output_names):
            if len(set(names)) != len(names):
                raise ValueError(f"a dimension is named twice: {', '.join(names)}")
        limit = 1 << self.total_output_bits
        for name, bases in self.inputs:
            if any(not 0 <= basis < limit for basis in bases):
                raise ValueError(f"a basis of {name} is outside the outputs {self.outputs}")

    # Makers.

    @classmethod
    def from_bases(
        cls, bases: Mapping[str, Sequence[Sequence[int]]], outputs: Mapping[str, int]
    ) -> LinearLayout:
        """The layout with those bases, each a coordinate for every output, and output extents.

        Raises ``ValueError`` for an extent that is no power of two and for a coordinate outside.
        """
        empty = cls((), tuple((name, log2(extent)) for name, extent in outputs.items()))
        inputs = tuple((name, tuple(map(empty.pack, listed))) for name, listed in bases.items())
        return cls(inputs, empty.outputs)

    @classmethod
    def identity(cls, extent: int, input: str, output: str) -> LinearLayout:
        """``output = input`` over ``extent`` positions. Raises ``ValueError`` as ``log2`` does."""
        width = log2(extent)
        return cls(((input, tuple(1 << i for i in range(width))),), ((output, width),))

    @classmethod
    def zeros(cls, extent: int, input: str, outputs: Sequence[str] = ()) -> LinearLayout:
        """All ``extent`` positions of ``input`` map to 0, in ``outputs`` of extent 1."""
        return cls(((input, (0,) * log2(extent)),), tuple((name, 0) for name in outputs))

    # Facts.

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outputs)

    @property
    def columns(self) -> tuple[int, ...]:
        """The bases of all inputs, the first input's first."""
        return tuple(basis for _, bases in self.inputs for basis in bases)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the outputs."""
        return tuple(1 << width for _, width in self.outputs)

    @property
    def total_input_bits(self) -> int:
        return sum(len(bases) for _, bases in self.inputs)

    @property
    def total_output_bits(self) -> int:
        return sum(width for _, width in self.outputs)

    @property
    def rank(self) -> int:
        """The dimension of the image."""
        return f2.rank(self.columns)

    @property
    def is_surjective(self) -> bool:
        """Whether every position is held somewhere."""
        return self.rank == self.total_output_bits

    @property
    def is_injective(self) -> bool:
        """Whether no position is held twice."""
        return self.rank == self.total_input_bits

    @property
    def is_invertible(self) -> bool:
        return self.total_input_bits == self.total_output_bits == self.rank

    def bases(self, input: str) -> tuple[int, ...]:
        """The packed bases of an input; none if the layout hasn't got it."""
        for name, bases in self.inputs:
            if name == input:
                return bases
        return ()

    def input_bits(self, input: str) -> int:
        """The number of bits of an input; 0 if the layout hasn't got it."""
        return len(self.bases(input))

    def input_extent(self, input: str) -> int:
        """The number of positions of an input; 1 if the layout hasn't got it."""
        return 1 << self.input_bits(input)

    def output_bits(self, output: str) -> int:
        """The number of bits of an output; 0 if the layout hasn't got it."""
        return dict(self.outputs).get(output, 0)

    def output_extent(self, output: str) -> int:
        """The number of positions of an output; 1 if the layout hasn't got it."""
        return 1 << self.output_bits(output)

    def copies(self, input: str) -> int:
        """The bits of an input whose bases are 0, as a mask: they tell copies apart."""
        return sum(1 << i for i, basis in enumerate(self.bases(input)) if not basis)

    # Application.

    def pack(self, coordinates: Sequence[int]) -> int:
        """One int from a coordinate for each output. Raises ``ValueError`` for one outside."""
        if len(coordinates) != len(self.outputs):
            raise ValueError(f"{len(self.outputs)} coordinates are needed, got {coordinates}")
        packed = 0
        for coordinate, (name, width) in zip(coordinates, self.outputs):
            if not 0 <= coordinate < 1 << width:
                raise ValueError(f"{coordinate} is outside {name}, whose extent is {1 << width}")
            packed = packed << width | coordinate
        return packed

    def unpack(self, packed: int) -> tuple[int, ...]:
        """The coordinate of each output of a packed int."""
        coordinates = []
        for _, width in reversed(self.outputs):
            coordinates.append(packed & ((1 << width) - 1))
            packed >>= width
        return tuple(reversed(coordinates))

    def at(self, **place: int) -> int:
        """The packed image of a place; inputs that aren't given are 0."""
        packed = 0
        for name, position in place.items():
            bases = self.bases(name)
            if not 0 <= position < 1 << len(bases):
                raise ValueError(f"{name} = {position} is outside {1 << len(bases)} positions")
            packed ^= f2.apply(bases, position)
        return packed

    def __call__(self, **place: int) -> tuple[int, ...]:
        """The coordinates of the image of a place; inputs that aren't given are 0."""
        return self.unpack(self.at(**place))

    def images(self, input: str) -> tuple[int, ...]:
        """The packed images of every position of an input, all others being 0."""
        return f2.images(self.bases(input))

    # Algebra.

    def __mul__(self, outer: LinearLayout) -> LinearLayout:
        """The product: ``outer`` counts in the bits above this layout's, in each dimension.

        ``identity * zeros`` is ``x % n`` and ``zeros * identity`` is ``x // n``.
        """
        mine, theirs = dict(self.outputs), dict(outer.outputs)
        names = [*mine, *(name for name in theirs if name not in mine)]
        outputs = tuple((name, mine.get(name, 0) + theirs.get(name, 0)) for name in names)
        low = _low_bits(outputs)
        high = {name: low[name] + mine.get(name, 0) for name in theirs}
        inputs = {
            name: tuple(_move(basis, self.outputs, low) for basis in bases)
            for name, bases in self.inputs
        }
        for name, bases in outer.inputs:
            moved = tuple(_move(basis, outer.outputs, high) for basis in bases)
            inputs[name] = inputs.get(name, ()) + moved
        return LinearLayout(tuple(inputs.items()), outputs)

    def compose(self, outer: LinearLayout) -> LinearLayout:
        """The map ``x -> outer(self(x))``.

        Raises ``ValueError`` unless this layout's outputs are ``outer``'s inputs, extents included.
        """
        widths = {name: len(bases) for name, bases in outer.inputs}
        if widths != dict(self.outputs):
            raise ValueError(f"outputs {self.outputs} are not the inputs {widths}")
        columns = [basis for name, _ in reversed(self.outputs) for basis in outer.bases(name)]
        return LinearLayout(
            tuple(
                (name, tuple(f2.apply(columns, basis) for basis in bases))
                for name, bases in self.inputs
            ),
            outer.outputs,
        )

    def invert_and_compose(self, source: LinearLayout) -> LinearLayout:
        """A map C with ``source(C(x)) == self(x)``: where in ``source`` the element of x is.

        Where ``source`` holds an element in several places, x gets the one in the same block, warp
        and lane if there is one, else in the same block and warp, and so on: of an input that both
        have, bits stay the same unless only a change of them reaches the element with the inputs
        before it. C's outputs are ``source``'s inputs, in reverse: the first is the minor one.

        Raises ``ValueError`` unless both have the same outputs and ``source`` holds all of this.
        """
        if dict(source.outputs) != dict(self.outputs):
            raise ValueError(f"outputs {self.outputs} and {source.outputs} differ")
        source = source.order_outputs(self.output_names)
        columns = source.columns
        held = f2.Span(columns)
        first = _low_bits(tuple((name, len(bases)) for name, bases in reversed(source.inputs)))
        inputs = []
        for name, bases in self.inputs:
            shared = source.input_bits(name)
            places = []
            for position, wanted in enumerate(bases):
                stay = 1 << (first[name] + position) if position < shared else 0
                rest, change = held.reduce(wanted ^ f2.apply(columns, stay))
                if rest:
                    raise ValueError(f"{self.unpack(wanted)} is held nowhere in the source")
                places.append(stay ^ change)
            inputs.append((name, tuple(places)))
        outputs = tuple((name, len(bases)) for name, bases in reversed(source.inputs))
        return LinearLayout(tuple(inputs), outputs)

    def inverse(self) -> LinearLayout:
        """A map from outputs to inputs, one of the places where each position is held.

        The inverse of an invertible layout. Raises ``ValueError`` unless surjective.
        """
        inputs: list[tuple[str, tuple[int, ...]]] = []
        for name, low in _low_bits(self.outputs).items():
            width = self.output_bits(name)
            inputs.append((name, tuple(1 << (low + i) for i in range(width))))
        # A name that is an input and an output would be taken for the same place.
        identity = LinearLayout(
            tuple((f"output {name}", bases) for name, bases in inputs), self.outputs
        )
        found = identity.invert_and_compose(self)
        renamed = tuple((name.removeprefix("output "), bases) for name, bases in found.inputs)
        return LinearLayout(renamed, found.outputs)

    def divide_left(self, divisor: LinearLayout) -> LinearLayout | None:
        """The layout Q with ``divisor * Q == self`` but for dimensions' order, None if none is.

        It asks whether an access that moves a block of elements, ``divisor``, fits everywhere.
        """
        mine, theirs = dict(self.outputs), dict(divisor.outputs)
        if any(width > mine.get(name, -1) for name, width in theirs.items()):
            return None
        if any(len(bases) > self.input_bits(name) for name, bases in divisor.inputs):
            return None
        low = _low_bits(self.outputs)
        taken = sum(((1 << width) - 1) << low[name] for name, width in theirs.items())
        outputs = tuple((name, width - theirs.get(name, 0)) for name, width in self.outputs)
        positions = _low_bits(outputs)
        # What is left of an output lies above the divisor's bits of it.
        above = tuple(
            part
            for name, width in self.outputs
            for part in ((name, width - theirs.get(name, 0)), ("", theirs.get(name, 0)))
        )
        inputs = []
        for name, bases in self.inputs:
            head = tuple(_move(basis, divisor.outputs, low) for basis in divisor.bases(name))
            tail = bases[len(head) :]
            if bases[: len(head)] != head or any(basis & taken for basis in tail):
                return None
            inputs.append((name, tuple(_move(basis, above, positions) for basis in tail)))
        return LinearLayout(tuple(inputs), outputs)

    # The same map under other dimensions.

    def order_outputs(self, names: Sequence[str]) -> LinearLayout:
        """The outputs in another order. Raises ``ValueError`` unless they are the same names."""
        if tuple(names) == self.output_names:
            return self
        if sorted(names) != sorted(self.output_names):
            raise ValueError(f"{', '.join(names)} are not the outputs {self.outputs}")
        return self._with_outputs(tuple((name, self.output_bits(name)) for name in names))

    def keep_outputs(self, names: Iterable[str]) -> LinearLayout:
        """Only those outputs, in their present order; the bases stay and may become 0."""
        kept = set(names)
        return self._with_outputs(tuple(pair for pair in self.outputs if pair[0] in kept))

    def _with_outputs(self, outputs: Bits) -> LinearLayout:
        positions = _low_bits(outputs)
        inputs = tuple(
            (name, tuple(_move(basis, self.outputs, positions) for basis in bases))
            for name, bases in self.inputs
        )
        return LinearLayout(inputs, outputs)

    def order_inputs(self, names: Sequence[str]) -> LinearLayout:
        """The inputs in another order. Raises ``ValueError`` unless they are the same names."""
        if sorted(names) != sorted(self.input_names):
            raise ValueError(f"{', '.join(names)} are not the inputs {self.input_names}")
        return LinearLayout(tuple((name, self.bases(name)) for name in names), self.outputs)

    def keep_inputs(self, names: Iterable[str]) -> LinearLayout:
        """Only those inputs, in their present order, the others being 0."""
        kept = set(names)
        return LinearLayout(tuple(pair for pair in self.inputs if pair[0] in kept), self.outputs)

    def with_bases(self, input: str, bases: Sequence[int]) -> LinearLayout:
        """Other packed bases for one input, which is appended if the layout hasn't got it."""
        inputs = dict(self.inputs)
        inputs[input] = tuple(bases)
        return LinearLayout(tuple(inputs.items()), self.outputs)

    def without_copies(self, input: str) -> LinearLayout:
        """Without the bases of an input that are 0."""
        return self.with_bases(input, [basis for basis in self.bases(input) if basis])

    def reshape_outputs(self, outputs: Mapping[str, int]) -> LinearLayout:
        """The same row-major index split into outputs of other names and extents.

        Raises ``ValueError`` unless the extents are powers of two with the same product.
        """
        made = tuple((name, log2(extent)) for name, extent in outputs.items())
        if sum(width for _, width in made) != self.total_output_bits:
            raise ValueError(f"{dict(outputs)} are not as many positions as {self.outputs}")
        return LinearLayout(self.inputs, made)

    def reshape_inputs(self, inputs: Mapping[str, int]) -> LinearLayout:
        """The same index over all inputs, the first in the low bits, split into other inputs.

        Raises ``ValueError`` unless the extents are powers of two with the same product.
        """
        columns = self.columns
        made: list[tuple[str, tuple[int, ...]]] = []
        position = 0
        for name, extent in inputs.items():
            made.append((name, columns[position : position + log2(extent)]))
            position += log2(extent)
        if position != len(columns):
            raise ValueError(f"{dict(inputs)} are not as many places as {self.input_names}")
        return LinearLayout(tuple(made), self.outputs)

    def __str__(self) -> str:
        """One line for each input: where 1, 2, 4, ... of it are."""
        width = max((len(name) for name in self.input_names), default=0)
        extents = " x ".join(f"{name} {1 << bits}" for name, bits in self.outputs)
        lines = [f"-> {extents}"]
        for name, bases in self.inputs:
            listed = []
            for i, basis in enumerate(bases):
                coordinates = self.unpack(basis)
                inner = ", ".join(map(str, coordinates))
                listed.append(f"{1 << i}:({inner})")
            lines.append(f"{name:<{width}}  {'  '.join(listed) or 'one'}")
        return "\n".join(lines)
