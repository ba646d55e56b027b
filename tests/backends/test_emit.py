"""The text emitter: types, constants, folding, blocks, loops, memory. Checked by running the
code."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.backends.jit import Loops

from tritium.backends import llvm
from tritium.backends.emit import (
    Builder,
    EmitError,
    LType,
    Module,
    V,
    array,
    bfloat,
    const,
    const_lanes,
    double,
    elem,
    false,
    float_,
    half,
    i1,
    i8,
    i16,
    i32,
    i64,
    i128,
    lanes,
    like,
    memory_type,
    pointer,
    ptr,
    struct_type,
    true,
    undef,
    vec,
    void,
    zero,
)
from tritium.backends.llvm import Library


def new_function(
    params: Sequence[tuple[LType, str]] = (), result: LType = void
) -> tuple[Module, Builder, list[V]]:
    module = Module("test")
    attributes = llvm.host_target().attributes
    function = module.function("f", result, params, attributes=attributes)
    return module, Builder(function.entry), function.params


def run(module: Module, result: Any, types: Sequence[Any], *args: Any) -> Any:
    library: Library = llvm.compile_and_link(module.text(), llvm.host_target(), ["f"])
    return ctypes.CFUNCTYPE(result, *types)(library.address("f"))(*args)


def integer_function(body: Callable[[Builder, V, V], V]) -> Callable[[int, int], int]:
    module, b, (x, y) = new_function([(i64, "x"), (i64, "y")], i64)
    b.ret(body(b, x, y))
    library = llvm.compile_and_link(module.text(), llvm.host_target(), ["f"])
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(
        library.address("f")
    )
    return lambda x, y: function(x, y) if library else 0


# ---- types and constants -------------------------------------------------------------------------


def test_types_are_interned() -> None:
    assert vec(float_, 16) is vec(float_, 16)
    assert vec(i8, 1) is i8
    assert pointer(0) is ptr
    assert pointer(3) is not ptr
    assert struct_type(i32, i1) is struct_type(i32, i1)
    assert elem(vec(half, 8)) is half
    assert elem(half) is half
    assert lanes(vec(half, 8)) == 8
    assert lanes(half) == 1
    assert like(vec(float_, 4), i32) is vec(i32, 4)


@pytest.mark.parametrize(
    "type_, mangled",
    [
        (float_, "f32"),
        (vec(bfloat, 8), "v8bf16"),
        (vec(ptr, 4), "v4p0"),
        (pointer(3), "p3"),
        (i128, "i128"),
    ],
)
def test_mangled_names(type_: LType, mangled: str) -> None:
    assert type_.mangled == mangled


def test_types_that_cannot_be() -> None:
    for bad in (lambda: vec(void, 4), lambda: vec(vec(i8, 2), 2), lambda: vec(i8, 0)):
        with pytest.raises(EmitError):
            bad()
    with pytest.raises(EmitError):
        struct_type(i8).mangled  # noqa: B018


@pytest.mark.parametrize(
    "constant, text",
    [
        (const(i8, 255), "i8 -1"),
        (const(i1, True), "i1 true"),
        (const(vec(i1, 4), 1), "<4 x i1> splat (i1 true)"),
        (const(vec(i32, 4), 0), "<4 x i32> zeroinitializer"),
        (const(vec(i32, 4), -7), "<4 x i32> splat (i32 -7)"),
        (const(double, 0.1), "double 0x3FB999999999999A"),
        (const(float_, 0.1), "float 0x3FB99999A0000000"),
        (const(float_, 1e39), "float 0x7FF0000000000000"),
        (const(float_, -0.0), "float 0x8000000000000000"),
        (const(half, 1.0), "half 0xH3C00"),
        (const(half, -1e9), "half 0xHFC00"),
        (const(vec(float_, 2), 1.0), "<2 x float> splat (float 0x3FF0000000000000)"),
        (const(ptr, 0), "ptr null"),
        (const_lanes(i32, range(3)), "<3 x i32> <i32 0, i32 1, i32 2>"),
        (const_lanes(i32, [5, 5]), "<2 x i32> splat (i32 5)"),
        (zero(array(i8, 4)), "[4 x i8] zeroinitializer"),
        (undef(float_), "float poison"),
    ],
)
def test_constants(constant: V, text: str) -> None:
    assert str(constant) == text


def test_constants_that_cannot_be() -> None:
    for type_, value in ((i32, 1.5), (ptr, 4), (bfloat, 1.0), (void, 0)):
        with pytest.raises(EmitError):
            const(type_, value)
    with pytest.raises(EmitError):
        const_lanes(i32, [])


def test_float_constants_reach_the_machine_exactly() -> None:
    values = [0.1, -0.0, 1e-45, 2.0**-149, 3.4028234663852886e38, math.inf, math.pi]
    for value in values:
        module, b, (out,) = new_function([(ptr, "out")])
        b.store(const(float_, value), out, align=4)
        b.ret()
        got = np.zeros(1, np.float32)
        run(module, None, [ctypes.c_void_p], got.ctypes.data)
        assert got.tobytes() == struct.pack("<f", value)


# ---- folding and reuse ---------------------------------------------------------------------------


def test_integer_folding_agrees_with_the_machine() -> None:
    """What the emitter computes at compile time is what the instruction computes."""
    names = ["add", "sub", "mul", "and_", "or_", "xor", "shl", "lshr", "ashr"]
    numbers = [0, 1, -1, 3, 63, -(1 << 63), (1 << 63) - 1, 1 << 40]
    for name in names:
        function = integer_function(lambda b, x, y, name=name: getattr(b, name)(x, y))
        _, b, _ = new_function()
        for x in numbers:
            for y in numbers:
                folded = getattr(b, name)(const(i64, x), const(i64, y))
                if name in ("shl", "lshr", "ashr") and not 0 <= y < 64:
                    assert folded.integer is None
                else:
                    assert folded.integer == function(x, y), (name, x, y)


def test_comparison_folding_agrees_with_the_machine() -> None:
    numbers = [0, 1, -1, -(1 << 63), (1 << 63) - 1]
    for predicate in ("eq", "ne", *(s + c for s in "su" for c in ("gt", "ge", "lt", "le"))):
        function = integer_function(
            lambda b, x, y, predicate=predicate: b.zext(b.icmp(predicate, x, y), i64)
        )
        _, b, _ = new_function()
        for x in numbers:
            for y in numbers:
                folded = b.icmp(predicate, const(i64, x), const(i64, y))
                assert folded.integer == function(x, y), (predicate, x, y)


def test_identities_write_nothing() -> None:
    _, b, (x,) = new_function([(i32, "x")])
    one, none = const(i32, 1), const(i32, 0)
    assert b.add(x, none) is x
    assert b.add(none, x) is x
    assert b.mul(one, x) is x
    assert b.mul(x, none).integer == 0
    assert b.and_(x, const(i32, -1)) is x
    assert b.or_(x, const(i32, -1)).integer == -1
    assert b.shl(x, none) is x
    assert b.sdiv(x, one) is x
    assert b.select(true, x, none) is x
    assert b.select(false, x, none) is none
    assert b.bitcast(x, i32) is x
    assert b.block.lines == []


@pytest.mark.parametrize(
    "operation, value, source, target, expected",
    [
        ("zext", -1, i8, i32, 255),
        ("sext", -1, i8, i32, -1),
        ("sext", 1, i1, i32, -1),
        ("zext", 1, i1, i8, 1),
        ("trunc", 0x1FF, i32, i8, -1),
        ("trunc", 2, i32, i1, 0),
    ],
)
def test_folded_resizes(
    operation: str, value: int, source: LType, target: LType, expected: int
) -> None:
    _, b, _ = new_function()
    for count in (1, 4):
        result = getattr(b, operation)(const(vec(source, count), value), target)
        assert result.type is vec(target, count)
        assert result.integer == expected


def test_the_same_instruction_in_a_block_is_written_once() -> None:
    _, b, (x, p) = new_function([(i32, "x"), (ptr, "p")])
    first = b.add(x, const(i32, 5))
    assert b.add(x, const(i32, 5)) is first
    assert b.add(x, const(i32, 6)) is not first
    loaded = b.load(i32, p, align=4)
    assert b.load(i32, p, align=4) is not loaded
    other = b.function.block()
    b.br(other)
    b.goto(other)
    assert b.add(x, const(i32, 5)) is not first


def test_operands_are_checked() -> None:
    _, b, (x, y, f, p) = new_function([(i32, "x"), (i64, "y"), (float_, "f"), (ptr, "p")])
    wrong: list[Callable[[], object]] = [
        lambda: b.add(x, y),
        lambda: b.add(f, f),
        lambda: b.fadd(x, x),
        lambda: b.fma(f, f, x),
        lambda: b.icmp("lt", x, x),
        lambda: b.fcmp("eq", f, f),
        lambda: b.select(x, f, f),
        lambda: b.select(true, f, x),
        lambda: b.bitcast(x, double),
        lambda: b.fptrunc(f, bfloat),
        lambda: b.fptrunc(const(double, 1.0), half),
        lambda: b.fadd(f, f, "nnan"),
        lambda: b.fadd(f, f, "fast"),
        lambda: b.add(x, x, "fast"),
        lambda: b.load(i32, p, align=3),
        lambda: b.gep(x, 4),
        lambda: b.cbr(x, b.block, b.block),
        lambda: b.ret(x),
        lambda: b.atomic_rmw("nand", p, x, align=4),
        lambda: b.load(i32, p, align=4, ordering="relaxed"),
        lambda: b.insert(const(vec(i32, 4), 0), y, 0),
        lambda: b.extract(x, 0),
        lambda: b.phi(i32).add(y, b.block),
        lambda: b.concat([const_lanes(i32, [1, 2])] * 3),
    ]
    for action in wrong:
        with pytest.raises(EmitError):
            action()


def test_structure_is_checked() -> None:
    module, b, _ = new_function()
    with pytest.raises(EmitError, match="no terminator"):
        module.text()
    b.ret()
    with pytest.raises(EmitError, match="terminated twice"):
        b.ret()
    with pytest.raises(EmitError, match="defined twice"):
        module.function("f", void, [])
    module.declare("g", void, [i32])
    with pytest.raises(EmitError, match="declared as"):
        module.declare("g", i32, [i32])
    module.global_("table", i32, "0", align=4)
    with pytest.raises(EmitError, match="defined as"):
        module.global_("table", i32, "1", align=4)


# ---- blocks and loops ----------------------------------------------------------------------------


def test_blocks_are_written_in_any_order() -> None:
    """An invariant goes to the preheader while the body is being written."""
    module, b, (count, x) = new_function([(i64, "count"), (i64, "x")], i64)
    with b.loop(const(i64, 0), count, carried=[const(i64, 0)]) as loop:
        with b.at(loop.preheader):
            square = b.mul(x, x)
        loop.next([b.add(loop.carried[0], square)])
    b.ret(loop.results[0])
    assert module.text().index("mul") < module.text().index("i.body:")
    assert run(module, ctypes.c_int64, [ctypes.c_int64] * 2, 5, 3) == 45
    assert run(module, ctypes.c_int64, [ctypes.c_int64] * 2, 0, 3) == 0


def test_nested_loops_with_steps() -> None:
    module, b, (rows, columns) = new_function([(i64, "rows"), (i64, "columns")], i64)
    with b.loop(const(i64, 0), rows, 2, carried=[const(i64, 0)], name="row") as outer:
        start = [outer.carried[0]]
        with b.loop(outer.index, columns, carried=start, name="column") as inner:
            inner.next([b.add(inner.carried[0], b.mul(outer.index, inner.index))])
        outer.next(inner.results)
    b.ret(outer.results[0])
    expected = sum(r * c for r in range(0, 7, 2) for c in range(r, 9))
    assert run(module, ctypes.c_int64, [ctypes.c_int64] * 2, 7, 9) == expected


def test_a_loop_needs_the_next_value_of_all_it_carries() -> None:
    _, b, _ = new_function()
    loop = b.loop_open(const(i64, 0), const(i64, 4), carried=[const(i64, 0)])
    with pytest.raises(EmitError, match="carries 1"):
        loop.close(b)
    loop.next([const(i64, 1)])
    with pytest.raises(EmitError, match="once"):
        loop.next([const(i64, 1)])
    with pytest.raises(EmitError):
        b.loop_open(const(i64, 0), const(i32, 4))


def test_when_and_switch_and_phi() -> None:
    module, b, (x,) = new_function([(i64, "x")], i64)
    with b.when(b.icmp("sgt", x, const(i64, 9)), weights=(1, 9)) as before:
        smaller = b.sub(x, const(i64, 10))
        inside = b.block
    value = b.phi(i64, incoming=[(x, before), (smaller, inside)])
    cases = [b.function.block("case") for _ in range(3)]
    b.switch(value, cases[0], [(1, cases[1]), (-2, cases[2])])
    for number, block in enumerate(cases):
        with b.at(block):
            b.ret(const(i64, 100 * number))
    run_one = [run(module, ctypes.c_int64, [ctypes.c_int64], x) for x in (0, 1, 11, -2, 8)]
    assert run_one == [0, 100, 100, 200, 0]


def test_functions_call_each_other_and_outside() -> None:
    module = Module()
    helper = module.function("helper", i64, [(i64, "x")], linkage="internal")
    b = Builder(helper.entry)
    b.ret(b.mul(helper.params[0], const(i64, 3)))
    function = module.function("f", i64, [(i64, "x")])
    b = Builder(function.entry)
    tripled = b.call("helper", i64, function.params)
    b.ret(b.call("outside", i64, [tripled]))
    with pytest.raises(EmitError):
        b.call("helper", i32, function.params)
    callback_type = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    callback = callback_type(lambda value: value + 1)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    image = llvm.emit_object(llvm.optimise(module.text(), llvm.host_target()))
    library = llvm.link(image, ["f"], {"outside": address})
    assert callback_type(library.address("f"))(5) == 16


def test_names_that_need_quotes() -> None:
    module = Module()
    function = module.function("f", i64, [(i64, "x y"), (i64, "v.1")])
    b = Builder(function.entry)
    total = b.add(*function.params, name="x y")
    b.ret(b.mul(total, total, name="v.1"))
    assert run(module, ctypes.c_int64, [ctypes.c_int64] * 2, 2, 3) == 25


# ---- lanes ---------------------------------------------------------------------------------------


def test_lanes() -> None:
    def body(b: Builder, values: Sequence[V], _: object) -> V:
        x = values[0]
        reversed_ = b.shuffle(x, None, range(7, -1, -1))
        low, high = b.slice(reversed_, 0, 4), b.slice(reversed_, 4, 4)
        swapped = b.concat([high, low])
        first = b.splat(b.extract(swapped, 1), 8)
        return b.insert(b.add(swapped, first), const(i32, -5), 2)

    x = np.arange(8, dtype=np.int32) * 10
    got = np.zeros_like(x)
    Loops({"lanes": ((i32,), i32, body)}, 8, llvm.host_target()).call("lanes", x, out=got)
    backwards = x[::-1]
    swapped = np.concatenate([backwards[4:], backwards[:4]])
    expected = swapped + swapped[1]
    expected[2] = -5
    assert got.tolist() == expected.tolist()


def test_constant_lanes_are_not_written() -> None:
    _, b, _ = new_function()
    assert b.splat(const(i32, 4), 8).text == "splat (i32 4)"
    assert b.extract(const(vec(i32, 8), 4), 3).integer == 4
    assert b.shuffle(const(vec(i32, 8), 4), None, [0, 1]) is const(vec(i32, 2), 4)
    assert b.iota(i32, 4).text == "<i32 0, i32 1, i32 2, i32 3>"
    assert b.block.lines == []


def test_aggregates() -> None:
    module, b, (x,) = new_function([(i64, "x")], i64)
    pair = b.insert_value(undef(struct_type(i64, i1)), x, 0)
    pair = b.insert_value(pair, true, 1)
    b.ret(b.add(b.extract_value(pair, 0), b.zext(b.extract_value(pair, 1), i64)))
    assert run(module, ctypes.c_int64, [ctypes.c_int64], 41) == 42


# ---- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "type_, moved",
    [
        (vec(i1, 8), vec(i8, 8)),
        (i1, i8),
        (vec(bfloat, 8), vec(i16, 8)),
        (vec(half, 8), vec(i16, 8)),
        (half, half),
        (vec(float_, 8), vec(float_, 8)),
    ],
)
def test_what_lanes_move_as(type_: LType, moved: LType) -> None:
    assert memory_type(type_) is moved


MASKED_TYPES = [(i8, np.uint8), (i16, np.uint16), (half, np.float16), (float_, np.float32)]


@pytest.mark.parametrize("element, dtype", [*MASKED_TYPES, (double, np.float64), (i1, np.bool_)])
@pytest.mark.parametrize("cpu", [None, "x86-64-v3"])
def test_masked_access_touches_the_masked_lanes_only(
    element: LType, dtype: Any, cpu: str | None
) -> None:
    try:
        target = llvm.host_target(cpu)
    except ValueError as reason:
        pytest.skip(str(reason))
    module = Module()
    params = [(ptr, "a"), (ptr, "out"), (i64, "n")]
    function = module.function("f", void, params, attributes=target.attributes)
    b = Builder(function.entry)
    source, destination, count = function.params
    size = max(element.bits, 8) // 8
    mask = b.active_mask(const(i64, 0), count, 8)
    x = b.masked_load(vec(element, 8), source, mask, zero(vec(element, 8)), align=size)
    b.store(x, destination, align=size)
    b.masked_store(x, b.gep(destination, 8 * size), mask, align=size)
    b.ret()
    library = llvm.compile_and_link(module.text(), target, ["f"])
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
        library.address("f")
    )
    x = np.arange(1, 9).astype(dtype)
    for n in range(9):
        out = np.full(16, 1, dtype)
        call(x.ctypes.data, out.ctypes.data, n)
        kept = np.where(np.arange(8) < n, x, np.zeros(1, dtype))
        stored = np.where(np.arange(8) < n, x, np.ones(1, dtype))
        assert out.tolist() == [*kept.tolist(), *stored.tolist()]


def test_a_masked_load_does_not_read_past_a_page() -> None:
    import mmap

    page = mmap.PAGESIZE
    module, b, (source, out) = new_function([(ptr, "source"), (ptr, "out")])
    mask = const_lanes(i1, [1, 1, 0, 0, 0, 0, 0, 0])
    b.store(b.masked_load(vec(i32, 8), source, mask, zero(vec(i32, 8)), align=4), out, align=4)
    b.ret()
    libc = ctypes.CDLL(None)
    with mmap.mmap(-1, 2 * page) as memory:
        anchor = (ctypes.c_char * len(memory)).from_buffer(memory)
        start = ctypes.addressof(anchor)
        ctypes.memset(start + page - 8, 7, 8)
        assert libc.mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(page), 0) == 0
        got = np.ones(8, np.int32)
        run(module, None, [ctypes.c_void_p] * 2, start + page - 8, got.ctypes.data)
        assert got.tolist() == [0x07070707] * 2 + [0] * 6
        assert libc.mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(page), 3) == 0
        del anchor


def test_constant_masks_are_plain_or_nothing() -> None:
    _, b, (p,) = new_function([(ptr, "p")])
    other = const(vec(i32, 4), 9)
    assert b.masked_load(vec(i32, 4), p, const(vec(i1, 4), 0), other, align=4) is other
    b.masked_store(other, p, const(vec(i1, 4), 0), align=4)
    assert b.block.lines == []
    b.masked_store(other, p, const(vec(i1, 4), 1), align=4)
    assert b.block.lines == ["  store <4 x i32> splat (i32 9), ptr %p, align 4"]


def test_gather_and_scatter() -> None:
    module, b, (table, index, out) = new_function([(ptr, "table"), (ptr, "index"), (ptr, "out")])
    indices = b.load(vec(i64, 8), index, align=8)
    offsets = b.mul(indices, const(vec(i64, 8), 2))
    mask = b.icmp("ne", indices, const(vec(i64, 8), 3))
    type_ = vec(half, 8)
    x = b.gather(type_, b.gep(table, offsets), mask, const(type_, -1.0), align=2)
    b.scatter(x, b.gep(out, offsets), mask, align=2)
    b.store(x, b.gep(out, 64), align=2)
    b.ret()
    table_ = np.arange(100, 116).astype(np.float16)
    indices_ = np.array([5, 3, 0, 15, 3, 1, 5, 2])
    out_ = np.zeros(64, np.float16)
    run(
        module,
        None,
        [ctypes.c_void_p] * 3,
        table_.ctypes.data,
        indices_.ctypes.data,
        out_.ctypes.data,
    )
    expected = np.where(indices_ == 3, -1, table_[indices_])
    assert out_[32:40].tolist() == expected.tolist()
    scattered = np.zeros(16)
    scattered[indices_[indices_ != 3]] = table_[indices_[indices_ != 3]]
    assert out_[:16].tolist() == scattered.tolist()


def test_atomics() -> None:
    module, b, (p, x) = new_function([(ptr, "p"), (i64, "x")], i64)
    old = b.atomic_rmw("add", p, x, align=8, ordering="seq_cst")
    seen, swapped = b.cmpxchg(p, b.add(old, x), const(i64, 1000), align=8)
    _, missed = b.cmpxchg(p, const(i64, 5), const(i64, 6), align=8, scope="singlethread")
    b.fence("seq_cst")
    loaded = b.load(i64, p, align=8, ordering="acquire")
    b.store(b.add(loaded, seen), p, align=8, ordering="release", volatile=True)
    flags = b.add(b.zext(swapped, i64), b.mul(b.zext(missed, i64), const(i64, 10)))
    b.ret(b.add(old, flags))
    memory = ctypes.c_int64(7)
    got = run(module, ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int64], ctypes.byref(memory), 3)
    assert (got, memory.value) == (8, 1010)


def test_marks_of_memory_operations() -> None:
    module, b, (p,) = new_function([(ptr, "p")])
    scope = module.alias_scopes(["a", "b"])
    lists = [module.metadata(f"!{{{reference}}}") for reference in scope]
    x = b.load(i32, p, align=4, volatile=True, metadata=[("alias.scope", lists[0])])
    b.load(i32, p, align=4, invariant=True)
    b.store(x, p, align=4, nontemporal=True, metadata=[("noalias", lists[1])])
    b.store(x, b.gep(p, 64), align=4, nontemporal=True)
    b.prefetch(p)
    b.comment("two\nlines")
    b.ret()
    text = module.text()
    assert text.count("!{i32 1}") == 1
    assert "load volatile i32" in text
    assert "; two lines" in text
    optimised = str(llvm.optimise(text, llvm.host_target()))
    assert "!nontemporal" in optimised
    assert "!alias.scope" in optimised


def test_allocas_go_to_the_entry_block() -> None:
    module, b, (count,) = new_function([(i64, "count")], i64)
    with b.loop(const(i64, 0), count) as loop:
        slot = b.alloca(array(i64, 4), align=64)
        b.store(loop.index, b.gep(slot, 8), align=8)
    b.ret(b.load(i64, b.gep(slot, 8), align=8))
    assert module.text().index("alloca") < module.text().index("br label")
    assert run(module, ctypes.c_int64, [ctypes.c_int64], 6) == 5


def test_copies_and_fills() -> None:
    module, b, (source, out) = new_function([(ptr, "source"), (ptr, "out")])
    b.memcpy(out, source, const(i64, 10), align=1)
    b.memset(b.gep(out, 10), const(i8, 3), const(i64, 300), align=1)
    b.ret()
    data, got = np.arange(10, dtype=np.uint8), np.zeros(320, np.uint8)
    run(module, None, [ctypes.c_void_p] * 2, data.ctypes.data, got.ctypes.data)
    assert got.tolist() == [*range(10), *[3] * 300, *[0] * 10]


def test_tables_and_strings() -> None:
    module, b, (index,) = new_function([(i64, "index")], i64)
    table = module.constant_table("table", [const(i64, value) for value in (10, 20, 30)], align=8)
    again = module.constant_table("table", [const(i64, value) for value in (10, 20, 30)], align=8)
    assert again.text == table.text
    text = module.string("text", b'a"\n\x00z')
    letter = b.load(i8, b.gep(text, index), align=1)
    value = b.load(i64, b.gep(table, b.mul(index, const(i64, 8))), align=8)
    b.ret(b.add(value, b.zext(letter, i64)))
    assert run(module, ctypes.c_int64, [ctypes.c_int64], 1) == 20 + ord('"')
    assert run(module, ctypes.c_int64, [ctypes.c_int64], 2) == 30 + ord("\n")


def test_inline_assembly_escapes_its_text() -> None:
    _, b, (x,) = new_function([(i32, "x")])
    b.asm('a "b" \\ c\n', "=r,r", i32, [x], side_effects=True)
    line = 'call i32 asm sideeffect "a \\22b\\22 \\5C c\\0A", "=r,r"(i32 %x)'
    assert b.block.lines[-1].endswith(line)
