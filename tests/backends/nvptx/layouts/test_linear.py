"""The algebra of linear layouts, against evaluation at every place."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from tests.backends.nvptx.layouts import machine, random_layouts

from tritium.backends.nvptx.layouts import LANE, PLACES, REGISTER, WARP, LinearLayout


def line(extent: int) -> LinearLayout:
    return LinearLayout.identity(extent, "x", "y")


def small(random: Random) -> LinearLayout:
    """Any map at all between two inputs and two outputs."""
    widths = [random.randrange(4), random.randrange(4)]
    outputs = {"a": 1 << widths[0], "b": 1 << widths[1]}
    bases = {
        name: [
            tuple(random.randrange(1 << width) for width in widths)
            for _ in range(random.randrange(4))
        ]
        for name in ("x", "y")
    }
    return LinearLayout.from_bases(bases, outputs)


def places(layout: LinearLayout) -> list[dict[str, int]]:
    ranges = (range(layout.input_extent(name)) for name in layout.input_names)
    return [dict(zip(layout.input_names, place)) for place in itertools.product(*ranges)]


def position(layout: LinearLayout, place: dict[str, int]) -> dict[str, int]:
    return dict(zip(layout.output_names, layout(**place)))


@given(random_layouts.randoms)
def test_an_image_is_the_xor_of_bases_in_each_output(random: Random) -> None:
    widths = (random.randrange(4), random.randrange(4))
    bases = [tuple(random.randrange(1 << w) for w in widths) for _ in range(5)]
    layout = LinearLayout.from_bases(
        {"x": bases[:2], "y": bases[2:]}, {"a": 1 << widths[0], "b": 1 << widths[1]}
    )
    for x, y in itertools.product(range(4), range(8)):
        wanted = [0, 0]
        for bit, basis in enumerate(bases):
            if (x | y << 2) >> bit & 1:
                wanted = [w ^ c for w, c in zip(wanted, basis)]
        assert layout(x=x, y=y) == tuple(wanted)
        assert layout.at(x=x, y=y) == wanted[0] << widths[1] | wanted[1]
        assert layout.images("x")[x] ^ layout.images("y")[y] == layout.at(x=x, y=y)


def test_products_count_on() -> None:
    assert line(4) * line(2) == line(8)
    modulo = line(4) * LinearLayout.zeros(8, "x", ["y"])
    divided = LinearLayout.zeros(4, "x", ["y"]) * line(8)
    assert [modulo(x=x) for x in range(32)] == [(x % 4,) for x in range(32)]
    assert [divided(x=x) for x in range(32)] == [(x // 4,) for x in range(32)]


@given(random_layouts.randoms)
def test_a_product_places_the_outer_above_the_inner(random: Random) -> None:
    inner, outer = small(random), small(random)
    product = inner * outer
    for low, high in itertools.product(places(inner), places(outer)):
        place = {name: low[name] + high[name] * inner.input_extent(name) for name in low}
        a, b = position(inner, low), position(outer, high)
        assert position(product, place) == {
            name: a[name] + b[name] * inner.output_extent(name) for name in a
        }


@given(random_layouts.randoms)
def test_compose_applies_one_after_the_other(random: Random) -> None:
    inner = small(random)
    bases = {
        name: [(random.randrange(8), random.randrange(2)) for _ in range(inner.output_bits(name))]
        for name in reversed(inner.output_names)
    }
    outer = LinearLayout.from_bases(bases, {"c": 8, "d": 2})
    both = inner.compose(outer)
    for place in places(inner):
        assert both(**place) == outer(**position(inner, place))
    with pytest.raises(ValueError, match="are not the inputs"):
        inner.compose(LinearLayout.identity(64, "a", "c"))


def distance(a: dict[str, int], b: dict[str, int]) -> int:
    """0 for the same thread, 1 for the same warp, 2 for the same block, 3 otherwise."""
    return max((i for i, name in enumerate(PLACES) if a.get(name) != b.get(name) and i), default=0)


@settings(max_examples=30)
@given(random_layouts.randoms)
def test_invert_and_compose_finds_the_nearest_holder(random: Random) -> None:
    shape = random_layouts.shape(random, 2, random.randint(0, 7))
    warps = random.randrange(3)
    source = random_layouts.layout(random, shape, warps)
    target = random_layouts.layout(random, shape, warps)
    found = target.invert_and_compose(source)
    assert found.input_names == target.input_names
    assert found.output_names == tuple(reversed(source.input_names))
    holders: dict[int, list[dict[str, int]]] = {}
    for place in places(source):
        holders.setdefault(source.at(**place), []).append(place)
    for place in places(target):
        assert source(**position(found, place)) == target(**place)
        if sum(bin(number).count("1") for number in place.values()) == 1:
            nearest = min(distance(place, holder) for holder in holders[target.at(**place)])
            assert distance(place, position(found, place)) == nearest


def test_nothing_is_taken_from_where_it_is_not() -> None:
    source = LinearLayout.from_bases({REGISTER: [(1,)], LANE: [(0,)]}, {"a": 4})
    with pytest.raises(ValueError, match=r"\(2,\) is held nowhere"):
        LinearLayout.identity(4, LANE, "a").invert_and_compose(source)
    with pytest.raises(ValueError, match="differ"):
        LinearLayout.identity(4, LANE, "b").invert_and_compose(source)


def test_a_copy_in_the_same_warp_is_preferred() -> None:
    """Warp 1 holds what warp 0 does; each then keeps one half: nothing crosses warps."""
    source = LinearLayout.from_bases({REGISTER: [(1,)], WARP: [(0,)]}, {"a": 2})
    target = LinearLayout.from_bases({REGISTER: [], WARP: [(1,)]}, {"a": 2})
    found = target.invert_and_compose(source)
    assert position(found, {WARP: 1}) == {WARP: 1, REGISTER: 1}


@given(random_layouts.randoms)
def test_an_inverse_leads_back(random: Random) -> None:
    shape = random_layouts.shape(random, 2, random.randint(0, 9))
    layout = random_layouts.layout(random, shape, 2)
    assert layout.is_surjective
    back = layout.inverse()
    again = back.compose(layout.order_outputs(tuple(reversed(back.input_names))))
    for name, bases in again.inputs:
        assert [dict(zip(again.output_names, again.unpack(basis))) for basis in bases] == [
            {other: (1 << bit if other == name else 0) for other in layout.output_names}
            for bit in range(layout.output_bits(name))
        ]
    if layout.is_invertible:
        forth = layout.compose(back)
        for place in places(layout)[:64]:
            assert position(forth, place) == place


def test_an_inverse_may_have_the_names_of_its_inputs() -> None:
    swapped = LinearLayout.from_bases({"a": [(0, 1)], "b": [(1, 0)]}, {"a": 2, "b": 2})
    assert position(swapped.inverse(), {"a": 1, "b": 0}) == {"a": 0, "b": 1}


def test_only_what_is_held_can_be_inverted() -> None:
    with pytest.raises(ValueError, match="held nowhere"):
        LinearLayout.zeros(2, "x", ["y"]).__mul__(LinearLayout((), (("y", 1),))).inverse()


@given(random_layouts.randoms)
def test_left_division_undoes_a_product(random: Random) -> None:
    divisor, quotient = small(random), small(random)
    product = divisor * quotient
    assert product.divide_left(divisor) == quotient
    columns = [(name, bit) for name, bases in product.inputs for bit in range(len(bases))]
    outputs = [(name, bit) for name, width in product.outputs for bit in range(width)]
    if not columns or not outputs:
        return
    (name, bit), (output, flipped) = random.choice(columns), random.choice(outputs)
    change = product.pack([1 << flipped if n == output else 0 for n in product.output_names])
    bases = list(product.bases(name))
    bases[bit] ^= change
    found = product.with_bases(name, bases).divide_left(divisor)
    within = bit < divisor.input_bits(name) or flipped < divisor.output_bits(output)
    assert (found is None) == within
    if found is not None:
        assert divisor * found == product.with_bases(name, bases)


def test_division_asks_for_room() -> None:
    assert line(4).divide_left(line(8)) is None
    assert line(4).divide_left(LinearLayout.identity(2, "x", "z")) is None
    assert line(4).divide_left(LinearLayout.identity(2, "z", "y")) is None
    assert line(4).divide_left(line(4)) == line(1)


@given(random_layouts.randoms)
def test_dimensions_change_their_order_and_names_only(random: Random) -> None:
    layout = small(random)
    turned = layout.order_outputs(["b", "a"]).order_inputs(["y", "x"])
    flat = layout.reshape_outputs({"all": 1 << layout.total_output_bits})
    joined = layout.reshape_inputs({"all": 1 << layout.total_input_bits})
    kept = layout.keep_outputs(["b"]).keep_inputs(["x"])
    for place in places(layout):
        a, b = layout(**place)
        assert turned(**place) == (b, a)
        assert flat(**place) == (a * layout.output_extent("b") + b,)
        assert joined(all=place["x"] + place["y"] * layout.input_extent("x")) == (a, b)
        if not place["y"]:
            assert kept(x=place["x"]) == (b,)


@given(random_layouts.randoms)
def test_rank_counts_what_is_reached(random: Random) -> None:
    layout = small(random)
    reached = {layout(**place) for place in places(layout)}
    assert len(reached) == 1 << layout.rank
    assert layout.is_surjective == (len(reached) == 1 << layout.total_output_bits)
    assert layout.is_injective == (len(reached) == len(places(layout)))


def test_copies_are_marked_and_removed() -> None:
    layout = LinearLayout.from_bases({REGISTER: [(1,), (0,), (2,), (0,)]}, {"a": 4})
    assert layout.copies(REGISTER) == 0b1010
    assert layout.without_copies(REGISTER).bases(REGISTER) == (1, 2)
    assert layout.copies(LANE) == 0


def test_the_software_block_evaluates_alike() -> None:
    layout = random_layouts.surjective(Random(1), (8, 16), 2)
    values = machine.held(layout)
    for place in places(layout):
        spot = values[place["block"], place["warp"], place["lane"], place["register"]]
        assert spot == layout.at(**place)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: LinearLayout.identity(3, "x", "y"), "3 is not a power of two"),
        (lambda: LinearLayout.from_bases({"x": [(2,)]}, {"y": 2}), "2 is outside y"),
        (lambda: LinearLayout.from_bases({"x": [(1, 1)]}, {"y": 2}), "1 coordinates are needed"),
        (lambda: LinearLayout((("x", (2,)),), (("y", 1),)), "a basis of x is outside"),
        (lambda: LinearLayout((("x", ()), ("x", ())), ()), "named twice: x, x"),
        (lambda: line(4)(x=4), "x = 4 is outside 4 positions"),
        (lambda: line(4)(z=1), "z = 1 is outside 1 positions"),
        (lambda: line(4).order_outputs(["z"]), "z are not the outputs"),
        (lambda: line(4).order_inputs(["z"]), "z are not the inputs"),
        (lambda: line(4).reshape_outputs({"z": 8}), "are not as many positions"),
        (lambda: line(4).reshape_inputs({"z": 8}), "are not as many places"),
    ],
)
def test_misuse_is_refused(make: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()  # type: ignore[operator]


def test_printing_lists_the_bases() -> None:
    layout = LinearLayout.from_bases(
        {REGISTER: [(0, 1)], LANE: [(0, 2), (1, 0)], WARP: []}, {"dim0": 2, "dim1": 4}
    )
    assert str(layout) == (
        "-> dim0 2 x dim1 4\nregister  1:(0, 1)\nlane      1:(0, 2)  2:(1, 0)\nwarp      one"
    )
